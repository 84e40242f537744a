//! Queries. They take the time as an argument and change nothing.

use bellwether_health::user::UserRules;
use jiff::Timestamp;

use super::Engine;
use crate::{
    clusters::ClusterStatus,
    combined_status::{BoundRows, BoundRowsQuery},
    effect::{Part, Slot, Write},
    event::Unreadable,
    facts::Facts,
    group_clusters::ClusterReports,
    group_ref::{GroupRef, OwnKind},
    grouping::Grouping,
    id::{Cluster, GroupKind, NamespacedName},
    lens::Lens,
    stats::{EngineStats, GroupSamples},
    view::{Group, GroupRelation, GroupStatus, Member},
};

impl Engine {
    /// The change to write into a slot now; `None` if the slot is up to date. The outbox calls this when a
    /// write is due.
    pub fn render_write(&self, now: Timestamp, slot: &Slot) -> Option<Write> {
        match slot.part {
            Part::Status => {
                let group = slot.group()?;
                self.grouping(group.kind)?.status(&group, &self.feeds, now)
            }
            Part::OwnerReferences | Part::Object(_) | Part::ForeignStatus => {
                let rendered = || self.grouping(slot.grouping()?)?.object_write(slot, &self.feeds, now);
                self.queue.requested(slot).cloned().or_else(rendered)
            }
        }
    }

    /// All groups whose members are known, with their members, sorted by name. Empty before the required
    /// kinds are listed.
    pub fn groups(&self, now: Timestamp) -> Vec<Group> {
        if !self.synced {
            return Vec::new();
        }
        let groups = self.groupings.iter().flat_map(|grouping| grouping.groups(&self.feeds, now));
        let mut groups: Vec<_> = groups.collect();
        for group in &mut groups {
            self.add_clusters(group);
        }
        groups.sort_by(|a, b| (&a.name, &a.kind).cmp(&(&b.name, &b.kind)));
        groups
    }

    /// `None` if the group does not exist, or if one of its kinds is not known.
    pub fn group(&self, now: Timestamp, group: &GroupRef) -> Option<Group> {
        let mut found = self.grouping(group.kind).filter(|_| self.synced)?.group(group, &self.feeds, now)?;
        self.add_clusters(&mut found);
        Some(found)
    }

    /// Adds the clusters that members in the hub are bound to, if the group has none. It may be of another engine, which
    /// reads no policies.
    pub fn add_clusters(&self, group: &mut Group) {
        if group.clusters.is_some() {
            return;
        }
        let mut reports = ClusterReports::default();
        for Member { kind, name, .. } in &group.members {
            for grouping in &self.groupings {
                grouping.add_cluster_reports(kind, name, &self.feeds, &mut reports);
            }
        }
        group.clusters = reports.into_clusters();
    }

    pub(super) fn group_count(&self) -> usize {
        self.groupings.iter().map(|grouping| grouping.group_count()).sum()
    }

    /// `None` before its source has sent an event.
    pub fn cluster(&self, cluster: &Cluster) -> Option<&ClusterStatus> {
        self.clusters.get(cluster)
    }

    /// The status of one group without its members, or why it is not known.
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

    /// The rows of bound objects in their clusters; `None` before the lists of what policies can bind.
    pub fn bound_rows(&self, query: &BoundRowsQuery) -> Option<BoundRows> {
        let grouping = self.grouping(OwnKind::BindingPolicy).filter(|_| self.synced)?;
        grouping.bound_rows(query, (&self.feeds, &self.clusters))
    }

    /// True if every group can be reported: all kinds are listed, and no relist is in progress.
    pub fn is_consistent(&self) -> bool {
        self.synced && self.feeds.are_consistent()
    }

    /// True if all kinds that are read in one cluster are listed, and no relist is in progress.
    pub fn is_consistent_in(&self, cluster: &Cluster) -> bool {
        self.synced && self.feeds.are_consistent_in(cluster)
    }

    /// How the Applications of its namespace and the Rollups relate to an object, whether its kind is watched
    /// or not.
    pub fn relations(&self, kind: &GroupKind, name: &NamespacedName, facts: &Facts) -> Vec<GroupRelation> {
        self.groupings.iter().flat_map(|grouping| grouping.relations(kind, name, facts)).collect()
    }

    /// The objects of a kind in the hub with their current verdicts, sorted by name, or why they are not known.
    /// `None` if the kind is not followed, or not listed yet.
    pub fn objects(&self, kind: &GroupKind) -> Option<Result<Vec<(&NamespacedName, &Facts)>, &Unreadable>> {
        let (id, feed) = self.feeds.of_kind(&Cluster::hub(), kind)?;
        if let Some(unreadable) = &feed.unreadable {
            return Some(Err(unreadable));
        }
        let objects = self.feeds.all(id).into_iter().filter_map(|object| self.feeds.object(object));
        let mut objects: Vec<_> = objects.map(|stored| (&stored.name, &stored.facts)).collect();
        objects.sort_by_key(|(name, _)| *name);
        feed.listed.then_some(Ok(objects))
    }

    /// Whether a kind is read only for what it says about members above its objects. Such a kind need not be
    /// readable.
    pub fn is_only_below(&self, kind: &GroupKind) -> bool {
        let feed = self.feeds.of_kind(&Cluster::hub(), kind);
        feed.is_some_and(|(feed, _)| !self.groupings.iter().any(|grouping| grouping.needs(feed)))
    }

    /// The lens for a kind, with the active HealthRules.
    pub fn lens(&self, kind: &GroupKind) -> Lens {
        Lens::new(kind, self.feeds.rules().clone())
    }

    pub fn rules(&self) -> &UserRules {
        self.feeds.rules()
    }

    pub fn stats(&self) -> EngineStats {
        let (feeds, objects) = self.feeds.size();
        let (index_entries, unknown) = (self.queue.request_count(), self.feeds.unknown());
        let mut stats = EngineStats {
            synced: self.synced,
            feeds,
            objects,
            index_entries,
            unlisted_kinds: unknown,
            ..EngineStats::default()
        };
        let clusters = self.clusters.all().map(|(cluster, status)| (cluster.clone(), status.clone()));
        stats.clusters = clusters.collect();
        for grouping in &self.groupings {
            grouping.add_to_stats(&mut stats);
        }
        stats
    }

    /// The groups that have been evaluated, at most `limit`, for metrics. Rollups first: they are few, and each
    /// stands for much.
    pub fn group_samples(&self, limit: usize) -> GroupSamples {
        let mut samples = GroupSamples::new(limit);
        for grouping in self.groupings.iter().rev() {
            grouping.add_samples(&self.feeds, &mut samples);
        }
        samples
    }

    /// Groups that contain one another, so that their nested evaluation does not end.
    pub fn cyclic_groups(&self) -> impl Iterator<Item = &GroupRef> {
        self.nested.iter().flat_map(|nested| &nested.cyclic)
    }

    fn grouping(&self, kind: OwnKind) -> Option<&dyn Grouping> {
        self.groupings.iter().find(|grouping| grouping.handles(kind)).map(|grouping| &**grouping)
    }
}
