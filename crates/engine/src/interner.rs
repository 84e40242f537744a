//! Deduplicates namespaces and labels: objects of one application share nearly all of theirs.

use std::{collections::HashSet, hash::Hash, sync::Arc};

use crate::facts::{Label, Labels};

#[derive(Debug, Default)]
pub(crate) struct Interner {
    strings: Interned<str>,
    labels: Interned<Label>,
}

impl Interner {
    pub(crate) fn intern(&mut self, text: &Arc<str>) -> Arc<str> {
        self.strings.intern(text, Arc::clone)
    }

    /// Replaces each label, or its key and value, by the shared copy.
    pub(crate) fn intern_labels(&mut self, labels: &mut Labels) {
        let Self { strings, labels: known } = self;
        labels.replace_each(|label| {
            *label = known.intern(label, |label| {
                Arc::new((strings.intern(&label.0, Arc::clone), strings.intern(&label.1, Arc::clone)))
            });
        });
    }
}

#[derive(Debug)]
struct Interned<T: ?Sized> {
    known: HashSet<Arc<T>>,
    /// At this size, values without other references are dropped.
    sweep_at: usize,
}

impl<T: ?Sized> Default for Interned<T> {
    fn default() -> Self {
        Self { known: HashSet::new(), sweep_at: 0 }
    }
}

impl<T: ?Sized + Eq + Hash> Interned<T> {
    /// The shared copy of a value. For a new value, `keep` makes the copy to share.
    fn intern(&mut self, value: &Arc<T>, keep: impl FnOnce(&Arc<T>) -> Arc<T>) -> Arc<T> {
        if let Some(known) = self.known.get(value) {
            return Arc::clone(known);
        }
        if self.known.len() >= self.sweep_at {
            self.known.retain(|known| Arc::strong_count(known) > 1);
            self.sweep_at = 2 * self.known.len() + 1024;
        }
        let kept = keep(value);
        self.known.insert(Arc::clone(&kept));
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unused_strings_are_dropped() {
        let mut interner = Interner::default();
        let web = interner.intern(&"web".into());
        assert!(Arc::ptr_eq(&web, &interner.intern(&"web".into())));
        for number in 0..100_000 {
            interner.intern(&number.to_string().into());
        }
        assert!(interner.strings.known.len() < 5_000, "{}", interner.strings.known.len());
        assert!(Arc::ptr_eq(&web, &interner.intern(&"web".into())), "what is in use stays");
    }

    #[test]
    fn labels_are_shared_with_other_objects() {
        let mut interner = Interner::default();
        let mut labels = |value: &str| {
            let mut labels: Labels =
                [("app".into(), "web".into()), ("pod".into(), value.into())].into_iter().collect();
            interner.intern_labels(&mut labels);
            labels
        };
        let (one, other) = (labels("one"), labels("other"));
        assert_eq!(
            [one.get("app"), one.get("pod"), other.get("pod")],
            [Some("web"), Some("one"), Some("other")]
        );
        let (one, other): (Vec<_>, Vec<_>) = (one.iter().collect(), other.iter().collect());
        assert!(std::ptr::eq(one[0], other[0]));
        assert!(Arc::ptr_eq(&one[1].0, &other[1].0), "and at least the key");
    }
}
