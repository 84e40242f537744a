//! Finds the Rollup entries that an object may match, by kind, name and labels, without testing all of them.

use std::collections::{BTreeSet, HashMap};

use crate::{
    facts::Labels,
    id::{FeedId, NamespacedName},
    registry::GroupId,
    selector_index::{SelectorIndex, SelectorLabel, remove_from_set},
};

use super::component_entry::Target;

/// An entry by its index in the Rollup's `entries`; valid until the next `apply_spec`.
pub(super) type EntryId = (GroupId, usize);

#[derive(Debug, Default)]
pub(super) struct ComponentIndex(HashMap<FeedId, KindEntries>);

#[derive(Debug, Default)]
struct KindEntries {
    naming: HashMap<NamespacedName, BTreeSet<EntryId>>,
    selecting: SelectorIndex<EntryId>,
}

impl ComponentIndex {
    pub(super) fn insert(&mut self, feed: FeedId, entry_id: EntryId, target: &Target) -> SelectorLabel {
        let entry_ids = self.0.entry(feed).or_default();
        match target {
            Target::Named(name) => {
                entry_ids.naming.entry(name.clone()).or_default().insert(entry_id);
                None
            }
            Target::Selected { selector, .. } => entry_ids.selecting.insert(selector, entry_id),
        }
    }

    pub(super) fn remove(
        &mut self,
        feed: FeedId,
        entry_id: EntryId,
        target: &Target,
        selector_label: &SelectorLabel,
    ) {
        let Some(entry_ids) = self.0.get_mut(&feed) else { return };
        match target {
            Target::Named(name) => remove_from_set(&mut entry_ids.naming, name, &entry_id),
            Target::Selected { .. } => entry_ids.selecting.remove(selector_label, entry_id),
        }
        if entry_ids.naming.is_empty() && entry_ids.selecting.is_empty() {
            self.0.remove(&feed);
        }
    }

    pub(super) fn candidates(
        &self,
        feed: FeedId,
        name: &NamespacedName,
        labels: &Labels,
    ) -> BTreeSet<EntryId> {
        let Some(entry_ids) = self.0.get(&feed) else { return BTreeSet::new() };
        let naming = entry_ids.naming.get(name).into_iter().flatten().copied();
        naming.chain(entry_ids.selecting.candidates(labels)).collect()
    }
}
