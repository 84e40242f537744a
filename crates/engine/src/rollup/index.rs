//! Which Rollups an object may concern, found by its kind, its name and its labels rather than by asking all of them.

use std::collections::{BTreeSet, HashMap};

use crate::{
    anchors::{Anchor, Anchors, take},
    facts::Labels,
    id::{FeedId, Name},
    registry::GroupId,
};

use super::choice::What;

/// A choice of a Rollup: one of those that it was made of when it was last settled.
pub(super) type Seat = (GroupId, usize);

/// The way from objects to Rollups.
#[derive(Debug, Default)]
pub(super) struct Index(HashMap<FeedId, Seats>);

/// The Rollups that look at a kind.
#[derive(Debug, Default)]
struct Seats {
    naming: HashMap<Name, BTreeSet<Seat>>,
    selecting: Anchors<Seat>,
}

impl Index {
    pub(super) fn insert(&mut self, feed: FeedId, seat: Seat, what: &What) -> Anchor {
        let seats = self.0.entry(feed).or_default();
        match what {
            What::Named(name) => {
                seats.naming.entry(name.clone()).or_default().insert(seat);
                None
            }
            What::Selected { selector, .. } => seats.selecting.insert(selector, seat),
        }
    }

    pub(super) fn remove(&mut self, feed: FeedId, seat: Seat, what: &What, anchor: &Anchor) {
        let Some(seats) = self.0.get_mut(&feed) else { return };
        match what {
            What::Named(name) => take(&mut seats.naming, name, seat),
            What::Selected { .. } => seats.selecting.remove(anchor, seat),
        }
        if seats.naming.is_empty() && seats.selecting.is_empty() {
            self.0.remove(&feed);
        }
    }

    /// The choices that may mean an object, in their order.
    pub(super) fn candidates(&self, feed: FeedId, name: &Name, labels: &Labels) -> BTreeSet<Seat> {
        let Some(seats) = self.0.get(&feed) else { return BTreeSet::new() };
        let naming = seats.naming.get(name).into_iter().flatten().copied();
        naming.chain(seats.selecting.candidates(labels)).collect()
    }
}
