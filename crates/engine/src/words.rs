//! Words that many objects have in common, kept once.

use std::{collections::HashSet, sync::Arc};

use crate::facts::{Facts, Labels};

/// Keys and values of labels, and namespaces. Objects of one application share nearly all of theirs.
#[derive(Debug, Default)]
pub(crate) struct Words {
    known: HashSet<Arc<str>>,
    /// So many are known when it is time to forget those that nobody uses any more.
    full: usize,
}

impl Words {
    pub(crate) fn one(&mut self, word: &Arc<str>) -> Arc<str> {
        if let Some(known) = self.known.get(word) {
            return Arc::clone(known);
        }
        if self.known.len() >= self.full {
            self.known.retain(|word| Arc::strong_count(word) > 1);
            self.full = 2 * self.known.len() + 1024;
        }
        self.known.insert(Arc::clone(word));
        Arc::clone(word)
    }

    /// The same facts in words that are kept once.
    pub(crate) fn shared(&mut self, mut facts: Facts) -> Facts {
        let labels: Labels =
            facts.labels.iter().map(|(key, value)| (self.one(key), self.one(value))).collect();
        facts.labels = labels;
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_kept_once_and_forgotten_when_nobody_uses_them() {
        let mut words = Words::default();
        let web = words.one(&"web".into());
        assert!(Arc::ptr_eq(&web, &words.one(&"web".into())));
        for number in 0..100_000 {
            words.one(&number.to_string().into());
        }
        assert!(words.known.len() < 5_000, "{}", words.known.len());
        assert!(Arc::ptr_eq(&web, &words.one(&"web".into())), "what is in use stays");
    }
}
