//! The interface between the engine and each kind of groups: Applications, Rollups, HealthRules.

use std::fmt;

use jiff::{SignedDuration, Timestamp};

use crate::{
    clusters::Clusters,
    combined_status::{BoundRows, BoundRowsQuery},
    effect::{Slot, Write},
    event::Outcome,
    facts::{Facts, OwnObject, ResourceVersion},
    feeds::{Feeds, ObjectId},
    group_clusters::ClusterReports,
    group_ref::{GroupRef, OwnKind},
    grouping_context::GroupingContext,
    id::{Cluster, FeedId, GroupKind, NamespacedName, ObjectKey},
    stats::{EngineStats, GroupSamples},
    view::{Group, GroupRelation, GroupStatus},
};

/// Evaluates all groups of one kind over the shared store of facts. Groupings do not know each other.
///
/// The engine delivers all events of a step before it calls `flush`.
pub(crate) trait Grouping: fmt::Debug + Send + Sync {
    /// Whether objects of this kind are its groups.
    fn handles(&self, kind: OwnKind) -> bool;

    /// Kinds that must be listed before any group is evaluated.
    fn required_kinds(&self) -> &'static [OwnKind];

    /// Whether its groups can have members in a cluster. It gets no events from other clusters.
    fn has_members_in(&self, cluster: &Cluster) -> bool {
        cluster.is_hub()
    }

    /// Whether it works in an engine that sees one namespace only.
    fn is_namespaced(&self) -> bool {
        true
    }

    /// See [`Engine::with_failed_after`](crate::Engine::with_failed_after).
    fn set_failed_after(&mut self, _failed_after: Option<SignedDuration>) {}

    /// See [`Engine::with_all_bound_objects`](crate::Engine::with_all_bound_objects).
    fn read_all_bound(&mut self) {}

    /// The required kinds are listed: from now on, groups may follow other kinds.
    fn sync(&mut self, cx: &mut GroupingContext<'_>);

    /// The object of a group was added or modified.
    fn group_applied(
        &mut self,
        name: &NamespacedName,
        facts: &Facts,
        own: &OwnObject,
        cx: &mut GroupingContext<'_>,
    );

    /// Only the resourceVersion of a group changed.
    fn version_changed(&mut self, group: &GroupRef, facts: &Facts);

    fn remove(&mut self, group: &GroupRef, cx: &mut GroupingContext<'_>);

    fn object_changed(&mut self, _object: ObjectId, _before: Option<&Facts>, _cx: &mut GroupingContext<'_>) {}

    /// Only the resourceVersion of an object changed.
    fn object_version_changed(&mut self, _object: ObjectId, _cx: &mut GroupingContext<'_>) {}

    /// With the time, objects below a member say something else about it.
    fn below_changed(&mut self, _member: ObjectId, _cx: &mut GroupingContext<'_>) {}

    /// An object is about to be removed from the store.
    fn before_object_removed(&mut self, _object: ObjectId, _cx: &mut GroupingContext<'_>) {}

    /// An object was removed from the store: a group that names it misses it now.
    fn after_object_removed(&mut self, _object: &ObjectKey, _cx: &mut GroupingContext<'_>) {}

    /// The initial list completed, discovery changed, or the kind became readable or unreadable.
    fn feed_changed(&mut self, _feed: FeedId, _readability: bool, _cx: &mut GroupingContext<'_>) {}

    /// The cluster of a feed was restored from a backup, or replaced: older resourceVersions are current.
    fn versions_forgotten(&mut self, _feed: FeedId, _cx: &mut GroupingContext<'_>) {}

    /// A list started: until it completes, the state of the kind is torn.
    fn list_started(&mut self, _feed: FeedId, _cx: &mut GroupingContext<'_>) {}

    /// A list completed: evaluate the groups that use the kind.
    fn list_completed(&mut self, _feed: FeedId, _cx: &mut GroupingContext<'_>) {}

    /// A feed ends: its objects are about to be removed.
    fn feed_dropped(&mut self, _feed: FeedId, _cx: &mut GroupingContext<'_>) {}

    /// Discovery in the hub has new results.
    fn kinds_discovered(&mut self) {}

    /// A cluster was added or removed, or its identity, its labels or its served kinds changed.
    fn cluster_changed(&mut self, _cluster: &Cluster, _cx: &mut GroupingContext<'_>) {}

    /// All clusters that are known at the start have been added.
    fn inventory_listed(&mut self) {}

    /// An earlier process wrote the status of objects of this kind.
    fn singletons_found(&mut self, _kind: &GroupKind, _cx: &mut GroupingContext<'_>) {}

    /// Data or a bookmark arrived.
    fn cluster_heard(&mut self, _cluster: &Cluster, _cx: &mut GroupingContext<'_>) {}

    /// What a cluster reported may be stale from now on.
    fn freshness_due(&mut self, _cluster: &Cluster, _cx: &mut GroupingContext<'_>) {}

    /// A timer of a group fired.
    fn timer_fired(&mut self, group: &GroupRef);

    /// Evaluates the dirty groups and queues the effects.
    fn flush(&mut self, cx: &mut GroupingContext<'_>);

    /// Renders the status of a group; `None` if the stored one is up to date.
    fn status(&self, group: &GroupRef, feeds: &Feeds, now: Timestamp) -> Option<Write>;

    /// Renders a write that was enqueued without being requested; `None` if nothing is to be written.
    fn object_write(&self, _slot: &Slot, _feeds: &Feeds, _now: Timestamp) -> Option<Write> {
        None
    }

    /// Handles the outcome of a status write. Returns the new resourceVersion, if it is newer than the known
    /// one.
    fn status_written(
        &mut self,
        group: &GroupRef,
        write: &Write,
        outcome: &Outcome,
        cx: &mut GroupingContext<'_>,
    ) -> Option<ResourceVersion>;

    /// Handles the outcome of any other write.
    fn written(&mut self, _slot: &Slot, _change: &Write, _outcome: &Outcome, _cx: &mut GroupingContext<'_>) {}

    /// Requests a write again that got a 409.
    fn retry(&mut self, _slot: &Slot, _cx: &mut GroupingContext<'_>) {}

    fn clock_set(&mut self, _by: SignedDuration) {}

    /// Groups whose kinds are known, with their members, in no particular order.
    fn groups(&self, _feeds: &Feeds, _now: Timestamp) -> Vec<Group> {
        Vec::new()
    }

    fn group(&self, _group: &GroupRef, _feeds: &Feeds, _now: Timestamp) -> Option<Group> {
        None
    }

    /// Rows of bound objects; `None` before the lists of what policies can bind.
    fn bound_rows(&self, _query: &BoundRowsQuery, _read: (&Feeds, &Clusters)) -> Option<BoundRows> {
        None
    }

    fn group_count(&self) -> usize {
        0
    }

    /// The status without members; `None` if there is no such group.
    fn summary(&self, _group: &GroupRef, _feeds: &Feeds, _now: Timestamp) -> Option<GroupStatus> {
        None
    }

    /// Whether its groups can have members of the kind of a feed, or need it in another way. What is only below
    /// members is not needed.
    fn needs(&self, _feed: FeedId) -> bool {
        false
    }

    /// How its groups relate to an object.
    fn relations(&self, _kind: &GroupKind, _name: &NamespacedName, _facts: &Facts) -> Vec<GroupRelation> {
        Vec::new()
    }

    /// Adds how the clusters report an object that its groups bind to them.
    fn add_cluster_reports(
        &self,
        _kind: &GroupKind,
        _name: &NamespacedName,
        _feeds: &Feeds,
        _reports: &mut ClusterReports,
    ) {
    }

    fn add_to_stats(&self, _stats: &mut EngineStats) {}

    /// Adds the groups that have been evaluated.
    fn add_samples(&self, _feeds: &Feeds, _samples: &mut GroupSamples) {}
}
