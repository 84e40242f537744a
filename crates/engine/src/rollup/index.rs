//! Which Rollups an object may concern, found by its kind, its name and its labels rather than by asking all of them.

use std::collections::{BTreeSet, HashMap};

use crate::{
    facts::Labels,
    id::{FeedId, NamespacedName},
    registry::GroupId,
    selector_index::{SelectorIndex, SelectorLabel, take},
};

use super::component_entry::Target;

/// A choice of a Rollup: one of those that it was made of when it was last settled.
pub(super) type EntryId = (GroupId, usize);

/// The way from objects to Rollups.
#[derive(Debug, Default)]
pub(super) struct ComponentIndex(HashMap<FeedId, KindEntries>);

/// The Rollups that look at a kind.
#[derive(Debug, Default)]
struct KindEntries {
    naming: HashMap<NamespacedName, BTreeSet<EntryId>>,
    selecting: SelectorIndex<EntryId>,
}

impl ComponentIndex {
    pub(super) fn insert(&mut self, feed: FeedId, seat: EntryId, what: &Target) -> SelectorLabel {
        let seats = self.0.entry(feed).or_default();
        match what {
            Target::Named(name) => {
                seats.naming.entry(name.clone()).or_default().insert(seat);
                None
            }
            Target::Selected { selector, .. } => seats.selecting.insert(selector, seat),
        }
    }

    pub(super) fn remove(&mut self, feed: FeedId, seat: EntryId, what: &Target, anchor: &SelectorLabel) {
        let Some(seats) = self.0.get_mut(&feed) else { return };
        match what {
            Target::Named(name) => take(&mut seats.naming, name, seat),
            Target::Selected { .. } => seats.selecting.remove(anchor, seat),
        }
        if seats.naming.is_empty() && seats.selecting.is_empty() {
            self.0.remove(&feed);
        }
    }

    /// The choices that may mean an object, in their order.
    pub(super) fn candidates(
        &self,
        feed: FeedId,
        name: &NamespacedName,
        labels: &Labels,
    ) -> BTreeSet<EntryId> {
        let Some(seats) = self.0.get(&feed) else { return BTreeSet::new() };
        let naming = seats.naming.get(name).into_iter().flatten().copied();
        naming.chain(seats.selecting.candidates(labels)).collect()
    }
}
