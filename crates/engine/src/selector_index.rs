//! Selectors, found by the labels that they ask for rather than by asking all of them.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
    sync::Arc,
};

use crate::{facts::Labels, selector::Selector};

/// The label by which a selector is found; none if it demands no label in one value.
pub(crate) type SelectorLabel = Option<(Arc<str>, Arc<str>)>;

/// Those who have a selector.
#[derive(Debug)]
pub(crate) struct SelectorIndex<T> {
    /// By one of the labels that their selectors demand.
    by_label: HashMap<(Arc<str>, Arc<str>), BTreeSet<T>>,
    /// Those whose selectors demand no label in one value.
    others: BTreeSet<T>,
}

impl<T> Default for SelectorIndex<T> {
    fn default() -> Self {
        Self { by_label: HashMap::new(), others: BTreeSet::new() }
    }
}

impl<T: Ord + Copy> SelectorIndex<T> {
    /// Somebody has this selector. Gives back where they are found.
    pub(crate) fn insert(&mut self, selector: &Selector, id: T) -> SelectorLabel {
        // The label that the fewest others are found by says most.
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

    /// They have it no longer.
    pub(crate) fn remove(&mut self, label: &SelectorLabel, id: T) {
        match label {
            Some(label) => remove_from_set(&mut self.by_label, label, id),
            None => _ = self.others.remove(&id),
        }
    }

    /// Those whose selectors may match.
    pub(crate) fn candidates(&self, labels: &Labels) -> impl Iterator<Item = T> {
        let by_label = labels.iter().filter_map(|label| self.by_label.get(label)).flatten();
        by_label.chain(&self.others).copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_label.is_empty() && self.others.is_empty()
    }
}

/// Takes one out of one of many sets. No set is empty.
pub(crate) fn remove_from_set<K: Hash + Eq, T: Ord + Copy>(
    sets: &mut HashMap<K, BTreeSet<T>>,
    key: &K,
    id: T,
) {
    if let Some(set) = sets.get_mut(key) {
        set.remove(&id);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}
