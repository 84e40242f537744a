//! What an engine can be asked. Nothing changes by it: the time is an argument, and whatever is said follows from what is
//! known.

use bellwether_health::user::UserRules;
use jiff::Timestamp;

use super::Engine;
use crate::{
    census::Census,
    clusters::ClusterStatus,
    effect::{Change, Part, Slot},
    facts::Facts,
    group_ref::{GroupRef, OwnKind},
    grouping::Grouping,
    id::{Cluster, GroupKind, NamespacedName},
    lens::Lens,
    view::{Claim, Group, GroupStatus},
};

impl Engine {
    /// What is to be written in a place at this moment, if anything is.
    pub fn change(&self, now: Timestamp, slot: &Slot) -> Option<Change> {
        match slot.part {
            Part::Status => {
                let group = slot.group()?;
                self.grouping(group.kind)?.status(&group, &self.feeds, now)
            }
            Part::Owners | Part::Existence(_) | Part::Applied(_) => self.queue.requested(slot).cloned(),
        }
    }

    /// All groups of which something can be said, by their names: none as long as our own kinds are not known.
    pub fn groups(&self, now: Timestamp) -> Vec<Group> {
        if !self.synced {
            return Vec::new();
        }
        let groups = self.groupings.iter().flat_map(|grouping| grouping.groups(&self.feeds, now));
        let mut groups: Vec<_> = groups.collect();
        groups.sort_by(|a, b| (&a.name, &a.kind).cmp(&(&b.name, &b.kind)));
        groups
    }

    /// One of them, with all its members; nothing if there is none, or if nothing can be said of it.
    pub fn group(&self, now: Timestamp, group: &GroupRef) -> Option<Group> {
        self.grouping(group.kind).filter(|_| self.synced)?.group(group, &self.feeds, now)
    }

    /// How many groups there are.
    pub(super) fn group_count(&self) -> usize {
        self.groupings.iter().map(|grouping| grouping.group_count()).sum()
    }

    /// What is known of a cluster; nothing before its source has told anything.
    pub fn cluster(&self, cluster: &Cluster) -> Option<&ClusterStatus> {
        self.clusters.get(cluster)
    }

    /// How a group is as one, without its members; or that there is none, or why nobody can tell.
    pub fn summary(&self, now: Timestamp, kind: &GroupKind, name: &NamespacedName) -> GroupStatus {
        let hub = self.clusters.get(&Cluster::hub());
        if let Some(since) = hub.and_then(|hub| hub.silent_since(now)) {
            return GroupStatus::Silent { since };
        }
        if !self.synced {
            let base = self.base.iter().filter_map(|feed| self.feeds.get(*feed));
            return GroupStatus::waiting_for(
                base.filter(|feed| !feed.is_known()).map(|feed| feed.kind.clone()),
            );
        }
        let found = OwnKind::of(kind).and_then(|kind| {
            self.grouping(kind)?.summary(&GroupRef::new(kind, name.clone()), &self.feeds, now)
        });
        found.unwrap_or_else(|| {
            let feed = self.feeds.of_kind(&Cluster::hub(), kind);
            GroupStatus::absent_or_unreadable(kind, feed.and_then(|(_, feed)| feed.unreadable.clone()))
        })
    }

    /// Whether something can be said of all groups that there are: every kind that they need is known, and none is being
    /// listed again.
    pub fn is_whole(&self) -> bool {
        self.synced && self.feeds.are_whole()
    }

    /// What the Applications of its namespace and the Rollups have to do with an object, whether its kind is followed or not.
    pub fn claims(&self, kind: &GroupKind, name: &NamespacedName, facts: &Facts) -> Vec<Claim> {
        self.groupings.iter().flat_map(|grouping| grouping.claims(kind, name, facts)).collect()
    }

    /// What is kept of the objects of a kind, by the rules that are in force.
    pub fn lens(&self, kind: &GroupKind) -> Lens {
        Lens::new(kind, self.feeds.rules().clone())
    }

    /// The rules of users that are in force.
    pub fn rules(&self) -> &UserRules {
        self.feeds.rules()
    }

    /// How much there is.
    pub fn census(&self) -> Census {
        let (feeds, objects) = self.feeds.size();
        let (notes, unknown) = (self.queue.request_count(), self.feeds.unknown());
        let mut census = Census { open: self.synced, feeds, objects, notes, unknown, ..Census::default() };
        let clusters = self.clusters.all().map(|(cluster, status)| (cluster.clone(), status.clone()));
        census.clusters = clusters.collect();
        for grouping in &self.groupings {
            grouping.count(&mut census);
        }
        census
    }

    /// The groups that count one another, so that no evaluation of them comes to an end.
    pub fn cyclic_groups(&self) -> impl Iterator<Item = &GroupRef> {
        self.nested.iter().flat_map(|nested| &nested.cyclic)
    }

    /// The grouping that reads a kind, if there is one here.
    fn grouping(&self, kind: OwnKind) -> Option<&dyn Grouping> {
        self.groupings.iter().find(|grouping| grouping.reads(kind)).map(|grouping| &**grouping)
    }
}
