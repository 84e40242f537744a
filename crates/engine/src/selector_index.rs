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
    anchored: HashMap<(Arc<str>, Arc<str>), BTreeSet<T>>,
    /// Those whose selectors demand no label in one value.
    others: BTreeSet<T>,
}

impl<T> Default for SelectorIndex<T> {
    fn default() -> Self {
        Self { anchored: HashMap::new(), others: BTreeSet::new() }
    }
}

impl<T: Ord + Copy> SelectorIndex<T> {
    /// Somebody has this selector. Gives back where they are found.
    pub(crate) fn insert(&mut self, selector: &Selector, who: T) -> SelectorLabel {
        // The label that the fewest others are found by says most.
        let anchor = selector
            .anchors()
            .map(|(key, value)| (Arc::clone(key), Arc::clone(value)))
            .min_by_key(|anchor| self.anchored.get(anchor).map_or(0, BTreeSet::len));
        match &anchor {
            Some(anchor) => self.anchored.entry(anchor.clone()).or_default().insert(who),
            None => self.others.insert(who),
        };
        anchor
    }

    /// They have it no longer.
    pub(crate) fn remove(&mut self, anchor: &SelectorLabel, who: T) {
        match anchor {
            Some(anchor) => take(&mut self.anchored, anchor, who),
            None => _ = self.others.remove(&who),
        }
    }

    /// Those whose selectors may match.
    pub(crate) fn candidates(&self, labels: &Labels) -> impl Iterator<Item = T> {
        let anchored = labels.iter().filter_map(|label| self.anchored.get(label)).flatten();
        anchored.chain(&self.others).copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.anchored.is_empty() && self.others.is_empty()
    }
}

/// Takes one out of one of many sets. No set is empty.
pub(crate) fn take<K: Hash + Eq, T: Ord + Copy>(sets: &mut HashMap<K, BTreeSet<T>>, key: &K, who: T) {
    if let Some(set) = sets.get_mut(key) {
        set.remove(&who);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}
