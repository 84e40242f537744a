//! A second cluster in which no group has members, for tests of the loops that drive an engine.

use std::collections::BTreeMap;

use bellwether_health::Verdict;
use jiff::Timestamp;

use super::{Cluster, Engine, GroupKind, NamespacedName, RequestedFields, Slot, Write};

impl Engine {
    /// Also follows kinds of another cluster.
    #[must_use]
    pub fn with_feeds_in(mut self, cluster: &Cluster, kinds: impl IntoIterator<Item = GroupKind>) -> Self {
        for kind in kinds {
            self.feeds.acquire(cluster, &kind, &RequestedFields::default(), &mut self.queue.effects);
        }
        self
    }

    /// Requests a change that no group asks for.
    #[must_use]
    pub fn with_requested_write(mut self, slot: Slot, write: Write) -> Self {
        self.queue.request_write(slot, Some(write));
        self
    }

    /// When time alone may change something, as long as all clusters respond.
    pub fn next_change(&self) -> Option<Timestamp> {
        self.queue.next_change()
    }

    /// The verdicts of all objects of a kind in a cluster.
    pub fn verdicts(&self, cluster: &Cluster, kind: &GroupKind) -> BTreeMap<NamespacedName, Verdict> {
        let feed = self.feeds.of_kind(cluster, kind).map(|(feed, _)| self.feeds.all(feed));
        let objects = feed.into_iter().flatten().filter_map(|object| self.feeds.object(object));
        objects.map(|stored| (stored.name.clone(), stored.facts.verdict.clone())).collect()
    }
}
