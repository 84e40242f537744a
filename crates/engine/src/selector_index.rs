//! Finds the selectors that may match an object by its labels, without testing all selectors.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
    sync::Arc,
};

use crate::{facts::Labels, selector::Selector};

/// The label under which a selector is indexed; `None` if it requires no single key and value.
pub(crate) type SelectorLabel = Option<(Arc<str>, Arc<str>)>;

#[derive(Debug)]
pub(crate) struct SelectorIndex<T> {
    /// By one required label each.
    by_label: HashMap<(Arc<str>, Arc<str>), BTreeSet<T>>,
    /// Selectors without a required label: always candidates.
    others: BTreeSet<T>,
}

impl<T> Default for SelectorIndex<T> {
    fn default() -> Self {
        Self { by_label: HashMap::new(), others: BTreeSet::new() }
    }
}

impl<T: Ord + Copy> SelectorIndex<T> {
    /// Returns the label under which it is indexed, for `remove`.
    pub(crate) fn insert(&mut self, selector: &Selector, id: T) -> SelectorLabel {
        // The label with the fewest selectors is the most selective.
        let label = selector
            .required_labels()
            .map(|(key, value)| (Arc::clone(key), Arc::clone(value)))
            .min_by_key(|label| self.by_label.get(label).map_or(0, BTreeSet::len));
        match &label {
            Some(label) => self.by_label.entry(label.clone()).or_default().insert(id),
            None => self.others.insert(id),
        };
        label
    }

    pub(crate) fn remove(&mut self, label: &SelectorLabel, id: T) {
        match label {
            Some(label) => remove_from_set(&mut self.by_label, label, &id),
            None => _ = self.others.remove(&id),
        }
    }

    pub(crate) fn candidates(&self, labels: &Labels) -> impl Iterator<Item = T> {
        let by_label = labels.iter().filter_map(|label| self.by_label.get(label)).flatten();
        by_label.chain(&self.others).copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_label.is_empty() && self.others.is_empty()
    }
}

/// Removes an empty set, too.
pub(crate) fn remove_from_set<K: Hash + Eq, T: Ord>(sets: &mut HashMap<K, BTreeSet<T>>, key: &K, entry: &T) {
    if let Some(set) = sets.get_mut(key) {
        set.remove(entry);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}
