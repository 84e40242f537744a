//! Keeps the rows of bindings up to date, one by one.

use bellwether_model::Value;

use crate::{
    effect_queue::Timer,
    event::Unreadable,
    feeds::{Feed, StoredObject},
    grouping_context::GroupingContext,
    id::{Cluster, FeedId, GroupKind, NamespacedName},
    planted::Bug,
    registry::GroupId,
    requested_fields::RequestedFields,
};

use super::{
    CombinedStatuses,
    binding::{Binding, BindingId},
    policy::PolicyState,
    row::Report,
};

impl CombinedStatuses {
    /// An object changed in one of the clusters.
    pub(super) fn refresh_object(
        &mut self,
        cluster: &Cluster,
        kind: &GroupKind,
        name: &NamespacedName,
        cx: &mut GroupingContext<'_>,
    ) {
        for (policy, id) in self.bindings.of_object(kind, name) {
            if self.policies.get(policy).is_some_and(|policy| policy.clusters.contains(cluster)) {
                self.refresh(id, cluster, cx);
            }
        }
    }

    /// Sets the row of one cluster.
    pub(super) fn refresh(&mut self, id: BindingId, cluster: &Cluster, cx: &GroupingContext<'_>) {
        let Some(binding) = self.bindings.get_mut(id) else { return };
        let Some(policy) = self.policies.get(binding.policy) else { return };
        let Some(kind) = policy.kind(&binding.kind) else { return };
        let (Some(entry), Some(feed)) = (self.inventory.get(cluster), kind.feeds.get(cluster)) else {
            return;
        };
        let Some(object) = cx.feeds.object(binding.object) else { return };
        let is_stale = self.inventory.is_stale(cluster, binding.policy);
        let report = cx.feeds.get(feed.id).and_then(|known| {
            let found = cx.feeds.find_in(feed.id, &binding.name).and_then(|id| cx.feeds.object(id));
            let status = cx.clusters.get(cluster);
            let known_by = feed.known_by(status);
            let is_overdue = is_stale || known_by.is_some_and(|known_by| known_by <= cx.now);
            // The lists may arrive before the UID of the cluster, which may also be forbidden.
            let waits_for_uid = binding.reads_uid
                && known_by.is_some_and(|known_by| known_by > cx.now)
                && status.is_some_and(|status| status.uid.is_none());
            if waits_for_uid && !is_stale {
                return None;
            }
            report(known, found, &binding.returned, is_stale, is_overdue)
        });
        let has_changed = match report {
            Some(report) if keeps(object, &binding.obj) => {
                let obj = object.facts.values.as_deref().map_or(&Value::Null, |values| &values.fields);
                binding.set_row((cluster, &entry.name), &report, &entry.variable, obj)
            }
            _ => binding.set_pending(cluster),
        };
        if binding.wants_singleton {
            self.singletons.check(&binding.kind, &binding.name);
        }
        if has_changed {
            self.changed.insert(id);
        }
    }

    pub(super) fn refresh_all(&mut self, id: BindingId, cx: &GroupingContext<'_>) {
        let Some(binding) = self.bindings.get(id) else { return };
        let Some(policy) = self.policies.get(binding.policy) else { return };
        let Some(kind) = policy.kind(&binding.kind) else { return };
        let clusters: Vec<_> = kind.feeds.keys().cloned().collect();
        for cluster in clusters {
            self.refresh(id, &cluster, cx);
        }
        self.changed.insert(id);
    }

    /// The rows of one kind in one cluster.
    fn refresh_kind(
        &mut self,
        policy: GroupId,
        kind: &GroupKind,
        cluster: &Cluster,
        cx: &GroupingContext<'_>,
    ) {
        let bound = self.policies.get(policy).and_then(|policy| policy.kind(kind));
        let bindings: Vec<_> = bound.into_iter().flat_map(|kind| &kind.bindings).copied().collect();
        for id in bindings {
            self.refresh(id, cluster, cx);
        }
    }

    /// The rows of one cluster under one policy.
    fn refresh_policy(&mut self, policy: GroupId, cluster: &Cluster, cx: &GroupingContext<'_>) {
        let kinds = self.policies.get(policy).into_iter().flat_map(PolicyState::kinds);
        let kinds: Vec<_> = kinds.map(|(kind, _)| kind.clone()).collect();
        for kind in kinds {
            self.refresh_kind(policy, &kind, cluster, cx);
        }
    }

    /// All rows of one cluster: what the inventory says of it changed.
    pub(super) fn refresh_cluster(&mut self, cluster: &Cluster, cx: &GroupingContext<'_>) {
        for policy in self.policies.ids() {
            if self.policies.get(policy).is_some_and(|policy| policy.clusters.contains(cluster)) {
                self.refresh_policy(policy, cluster, cx);
            }
        }
    }

    /// Wakes the policies when the cluster has had enough time to answer.
    pub(super) fn await_cluster(&mut self, cluster: &Cluster, cx: &mut GroupingContext<'_>) {
        for policy in self.policies.iter().filter(|policy| policy.clusters.contains(cluster)) {
            let feeds = policy.kinds().filter_map(|(_, kind)| kind.feeds.get(cluster));
            let known_by = feeds.filter_map(|feed| feed.known_by(cx.clusters.get(cluster))).max();
            if let Some(known_by) = known_by.filter(|known_by| *known_by > cx.now) {
                cx.queue.schedule(known_by, policy.publication.timer());
            }
        }
    }

    /// Compares the age of what was heard last with the thresholds of the policies.
    pub(super) fn check_freshness(&mut self, cluster: &Cluster, cx: &mut GroupingContext<'_>) {
        let heard = cx.clusters.get(cluster).and_then(|status| status.last_heard);
        let checked = self.inventory.check(cluster, heard, cx.now);
        for policy in checked.changed {
            self.refresh_policy(policy, cluster, cx);
        }
        if let Some(timer) = checked.timer.filter(|_| !Bug::SetNoFreshnessTimer.is_planted()) {
            cx.queue.schedule(timer, Timer::Freshness(cluster.clone()));
        }
    }

    /// The initial list completed, or the kind became readable or unreadable.
    pub(super) fn refresh_feed(&mut self, feed: FeedId, cx: &mut GroupingContext<'_>) {
        let Some(known) = cx.feeds.get(feed) else { return };
        let (cluster, kind) = (known.cluster.clone(), known.kind.clone());
        self.policies.mark_users_dirty(feed);
        if cluster.is_hub() {
            return self.check_outputs_of_users(feed, cx.feeds);
        }
        for policy in self.policies.users(feed) {
            self.refresh_kind(policy, &kind, &cluster, cx);
        }
    }

    /// Rows that were not known in time.
    pub(super) fn refresh_overdue(&mut self, cx: &GroupingContext<'_>) {
        for id in self.policies.ids() {
            let Some(policy) = self.policies.get_mut(id) else { continue };
            if !std::mem::take(&mut policy.is_overdue) {
                continue;
            }
            let bindings: Vec<_> = policy.kinds().flat_map(|(_, kind)| &kind.bindings).copied().collect();
            for id in bindings {
                let pending = self.bindings.get(id).into_iter().flat_map(Binding::pending);
                for cluster in pending.cloned().collect::<Vec<_>>() {
                    self.refresh(id, &cluster, cx);
                }
            }
        }
    }
}

/// Whether the object was decoded with these fields.
pub(super) fn keeps(object: &StoredObject, requested: &RequestedFields) -> bool {
    let values = object.facts.values.as_deref();
    requested.paths.is_empty() || values.is_some_and(|values| values.requested.covers(requested))
}

/// What one cluster says about an object; `None` if that is not known yet.
pub(super) fn report<'a>(
    feed: &Feed,
    object: Option<&'a StoredObject>,
    requested: &RequestedFields,
    is_stale: bool,
    is_overdue: bool,
) -> Option<Report<'a>> {
    let facts = object.map(|object| &object.facts);
    match &feed.unreadable {
        Some(Unreadable::NotServed) => Some(Report { facts: None, found: Some(false), is_stale }),
        // What is stored was true before.
        Some(_) => {
            let found = feed.listed.then_some(facts.is_some());
            Some(Report { facts, found, is_stale: true })
        }
        None if !feed.listed => is_overdue.then_some(Report { facts, found: None, is_stale: true }),
        None => {
            let is_decoded = object.is_none_or(|object| keeps(object, requested));
            (is_decoded || is_overdue).then_some(Report { facts, found: Some(facts.is_some()), is_stale })
        }
    }
}
