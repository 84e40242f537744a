//! CombinedStatuses: BindingPolicies bind objects of the hub to clusters, StatusCollectors combine the state of
//! each object in its clusters, and a CombinedStatus for each object and policy has the results.
//!
//! `resolve.rs` finds the kinds, clusters and objects of a policy (`policy.rs`, `clause.rs`) when its spec, the
//! collectors (`collector.rs`) or the clusters (`inventory.rs`) change. `rows.rs` keeps the rows of each binding
//! (`binding.rs`) up to date, one by one, as objects change (`row.rs`) and as time passes. `output.rs` compares
//! the results with the stored CombinedStatus. `bound_rows.rs` answers queries for the rows themselves, `view.rs`
//! shows a policy as a group; `bound_object.rs` has the state of a row, with its reason and message, for both.

mod binding;
mod bound_object;
mod bound_rows;
mod clause;
mod collector;
mod inventory;
mod output;
mod policy;
mod resolve;
mod row;
mod rows;
mod singleton;
mod view;

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::{BindingPolicySpec, BindingPolicyStatus, StatusCollectorSpec, StatusCollectorStatus};
use bellwether_conditions::Statement;
use jiff::{SignedDuration, Timestamp};

use crate::{
    clusters::Clusters,
    condition_types::{COLLECTORS_AVAILABLE, RESOLVED, SINGLETONS_APPLY, VALID},
    effect::{Effect, Part, Slot, Urgency, Write},
    effect_queue::Timer,
    event::Outcome,
    facts::{Facts, OwnManifest, OwnObject, ResourceVersion},
    feeds::{Feeds, ObjectId},
    group_clusters::ClusterReports,
    group_ref::{GroupRef, OwnKind},
    grouping::Grouping,
    grouping_context::GroupingContext,
    id::{Cluster, FeedId, GroupKind, NamespacedName, ObjectKey},
    planted::Bug,
    publication::Publication,
    registry::{GroupId, Registry},
    view::{Group, GroupRelation},
};

use binding::{BindingId, Bindings};
pub use bound_rows::{
    BoundRow, BoundRowKey, BoundRows, BoundRowsQuery, InvalidRowKey, RowFilter, RowVariables,
};
use collector::{CollectorState, CollectorVersion};
use inventory::{Inventory, InventoryChange};
use output::{Output, Wanted};
use policy::PolicyState;
use singleton::Singletons;
pub use singleton::{SINGLETON_LABEL, can_be_singleton};

#[derive(Debug, Default)]
pub(crate) struct CombinedStatuses {
    policies: Registry<PolicyState>,
    /// Read all bound objects in the clusters, whether a clause asks for their state or not.
    reads_all_bound: bool,
    collectors: Registry<CollectorState>,
    inventory: Inventory,
    /// Before that, clusters may be missing: nothing is published.
    is_inventory_listed: bool,
    bindings: Bindings,
    singletons: Singletons,
    /// Stored or wanted CombinedStatuses.
    outputs: BTreeMap<NamespacedName, Output>,
    /// Policies whose kinds and objects have to be found again.
    unresolved: BTreeSet<GroupId>,
    /// Policies whose clusters have to be selected again.
    unselected: BTreeSet<GroupId>,
    /// Kinds of policies that may not have to be read in the clusters any more.
    idle: BTreeSet<(GroupId, GroupKind)>,
    /// Bindings whose results may have changed.
    changed: BTreeSet<BindingId>,
    /// Outputs to compare with what is stored.
    unchecked: BTreeSet<NamespacedName>,
}

impl Grouping for CombinedStatuses {
    fn handles(&self, kind: OwnKind) -> bool {
        matches!(kind, OwnKind::BindingPolicy | OwnKind::CombinedStatus | OwnKind::StatusCollector)
    }

    fn required_kinds(&self) -> &'static [OwnKind] {
        &[OwnKind::BindingPolicy, OwnKind::CombinedStatus, OwnKind::StatusCollector]
    }

    fn has_members_in(&self, _cluster: &Cluster) -> bool {
        true
    }

    /// A policy binds objects in all namespaces.
    fn is_namespaced(&self) -> bool {
        false
    }

    fn sync(&mut self, _cx: &mut GroupingContext<'_>) {
        self.collectors.sync();
        self.unresolved.extend(self.policies.sync());
        self.unchecked.extend(self.outputs.keys().cloned());
    }

    fn group_applied(
        &mut self,
        name: &NamespacedName,
        facts: &Facts,
        own: &OwnObject,
        cx: &mut GroupingContext<'_>,
    ) {
        match own {
            OwnObject::BindingPolicy(written) => self.policy_applied(name, facts, written, cx),
            OwnObject::StatusCollector(written) => self.collector_applied(name, facts, written, cx),
            OwnObject::CombinedStatus(fields) => {
                let output = self.outputs.entry(name.clone()).or_default();
                let has_changed = output.observe(facts, fields);
                self.unchecked.extend(has_changed.then(|| name.clone()));
            }
            _ => {}
        }
    }

    fn version_changed(&mut self, group: &GroupRef, facts: &Facts) {
        match group.kind {
            OwnKind::BindingPolicy => self.policies.version_changed(group, facts),
            OwnKind::StatusCollector => self.collectors.version_changed(group, facts),
            _ => {
                if let Some(output) = self.outputs.get_mut(&group.name)
                    && output.observe_version(facts)
                {
                    self.unchecked.insert(group.name.clone());
                }
            }
        }
    }

    fn remove(&mut self, group: &GroupRef, cx: &mut GroupingContext<'_>) {
        match group.kind {
            OwnKind::BindingPolicy => {
                let Some(id) = self.policies.id(group) else { return };
                self.unbind_policy(id, cx);
                if let Some((_, policy)) = self.policies.remove(group, cx.queue) {
                    policy.publication.withdraw(cx.queue);
                }
                self.unresolved.remove(&id);
                self.unselected.remove(&id);
            }
            OwnKind::StatusCollector => {
                if let Some((_, collector)) = self.collectors.remove(group, cx.queue) {
                    collector.publication.withdraw(cx.queue);
                    self.collector_changed(&group.name.name);
                }
            }
            _ => {
                let Some(output) = self.outputs.get_mut(&group.name) else { return };
                output.forget_stored();
                if output.binding.is_none() || Bug::IgnoreDeletedOutput.is_planted() {
                    self.outputs.remove(&group.name);
                } else {
                    // Someone else deleted it.
                    self.unchecked.insert(group.name.clone());
                }
            }
        }
    }

    fn object_changed(&mut self, object: ObjectId, before: Option<&Facts>, cx: &mut GroupingContext<'_>) {
        let Some(stored) = cx.feeds.object(object) else { return };
        let Some(feed) = cx.feeds.get(stored.feed) else { return };
        if feed.cluster.is_hub() {
            return self.hub_object_changed((object, stored.feed), before, cx);
        }
        let (cluster, kind, name) = (feed.cluster.clone(), feed.kind.clone(), stored.name.clone());
        self.refresh_object(&cluster, &kind, &name, cx);
    }

    fn object_version_changed(&mut self, object: ObjectId, cx: &mut GroupingContext<'_>) {
        let Some(stored) = cx.feeds.object(object) else { return };
        if let Some(feed) = cx.feeds.get(stored.feed).filter(|feed| feed.cluster.is_hub()) {
            self.singletons.observe(&feed.kind, &stored.name, &stored.facts, cx.now);
        }
    }

    fn before_object_removed(&mut self, object: ObjectId, cx: &mut GroupingContext<'_>) {
        let Some(stored) = cx.feeds.object(object) else { return };
        let Some(feed) = cx.feeds.get(stored.feed).filter(|feed| feed.cluster.is_hub()) else { return };
        let (kind, name) = (feed.kind.clone(), stored.name.clone());
        for (_, id) in self.bindings.of_object(&kind, &name) {
            self.unbind(id);
        }
        self.singletons.removed(&kind, &name);
    }

    fn after_object_removed(&mut self, object: &ObjectKey, cx: &mut GroupingContext<'_>) {
        if !object.cluster.is_hub() {
            self.refresh_object(&object.cluster, &object.kind, &object.name, cx);
        } else if object.kind == namespace_kind() {
            self.namespace_changed(&object.name.name, cx);
        }
    }

    fn versions_forgotten(&mut self, feed: FeedId, cx: &mut GroupingContext<'_>) {
        if is_feed_of(feed, OwnKind::CombinedStatus, cx.feeds) {
            self.outputs.values_mut().for_each(Output::forget_version);
        }
    }

    fn feed_changed(&mut self, feed: FeedId, _readability: bool, cx: &mut GroupingContext<'_>) {
        self.refresh_feed(feed, cx);
    }

    fn list_completed(&mut self, feed: FeedId, cx: &mut GroupingContext<'_>) {
        self.policies.mark_users_dirty(feed);
        self.check_outputs_of_users(feed, cx.feeds);
    }

    fn kinds_discovered(&mut self) {
        self.unresolved.extend(self.policies.ids());
    }

    fn cluster_changed(&mut self, cluster: &Cluster, cx: &mut GroupingContext<'_>) {
        if cluster.is_hub() {
            return;
        }
        self.await_cluster(cluster, cx);
        match self.inventory.update(cluster, cx.clusters.get(cluster), cx.now) {
            InventoryChange::None => {}
            InventoryChange::Selection => {
                self.unselected.extend(self.policies.ids());
                self.refresh_cluster(cluster, cx);
            }
            InventoryChange::Variable => self.refresh_cluster(cluster, cx),
        }
    }

    fn inventory_listed(&mut self) {
        self.is_inventory_listed = true;
        let all = self.policies.ids();
        self.policies.mark_all_dirty(all);
        self.unchecked.extend(self.outputs.keys().cloned());
    }

    fn singletons_found(&mut self, kind: &GroupKind, cx: &mut GroupingContext<'_>) {
        if !Bug::ForgetSingletons.is_planted() {
            self.hold_leftover(kind, cx);
        }
    }

    fn cluster_heard(&mut self, cluster: &Cluster, cx: &mut GroupingContext<'_>) {
        if self.inventory.has_stale(cluster) {
            self.check_freshness(cluster, cx);
        }
    }

    fn freshness_due(&mut self, cluster: &Cluster, cx: &mut GroupingContext<'_>) {
        if self.inventory.timer_fired(cluster, cx.now) {
            self.check_freshness(cluster, cx);
        }
    }

    fn timer_fired(&mut self, group: &GroupRef) {
        match group.kind {
            OwnKind::BindingPolicy => {
                self.policies.timer_fired(group);
                if let Some(id) = self.policies.id(group)
                    && let Some(policy) = self.policies.get_mut(id)
                {
                    policy.is_overdue = true;
                }
            }
            OwnKind::StatusCollector => self.collectors.timer_fired(group),
            _ => {
                if let Some(output) = self.outputs.get_mut(&group.name) {
                    output.retry();
                    self.unchecked.insert(group.name.clone());
                }
            }
        }
    }

    fn clock_set(&mut self, by: SignedDuration) {
        self.inventory.clock_set(by);
        self.singletons.clock_set(by);
        for policy in self.policies.iter_mut() {
            policy.publication.clock_set(by);
            policy.clock_set(by);
        }
        for output in self.outputs.values_mut() {
            output.clock_set(by);
        }
        for collector in self.collectors.iter_mut() {
            collector.publication.clock_set(by);
        }
    }

    fn flush(&mut self, cx: &mut GroupingContext<'_>) {
        if !self.policies.is_synced() {
            return;
        }
        self.resolve_all(cx);
        if self.is_inventory_listed {
            self.publish_results(cx);
            self.publish_singletons(cx);
            self.publish_policies(cx);
        }
        while let Some(id) = self.collectors.next_dirty(cx.queue) {
            let Some(collector) = self.collectors.get_mut(id) else { continue };
            let valid = collector.statement().status;
            collector.publication.request_write([(VALID, Some(valid))], None, false, cx.now, cx.queue);
        }
    }

    fn status(&self, group: &GroupRef, feeds: &Feeds, now: Timestamp) -> Option<Write> {
        match group.kind {
            OwnKind::BindingPolicy => {
                let id = self.policies.id(group)?;
                let policy = self.policies.get(id)?;
                (self.is_inventory_listed && policy.is_known(feeds)).then_some(())?;
                policy.status(self.statements(id, policy, feeds).into(), now)
            }
            OwnKind::StatusCollector => self.collectors.named(group)?.status(now),
            _ => None,
        }
    }

    fn object_write(&self, slot: &Slot, feeds: &Feeds, now: Timestamp) -> Option<Write> {
        if !self.is_inventory_listed {
            return None;
        }
        if slot.part == Part::ForeignStatus {
            return self.status_write(&slot.object, feeds, now);
        }
        let name = &slot.object.name;
        let output = self.outputs.get(name)?;
        if let Some(binding) = output.binding.and_then(|id| self.bindings.get(id))
            && binding.has_collectors()
        {
            let stored = feeds.object(binding.object)?;
            let policy = self.policies.get(binding.policy)?;
            if !binding.was_complete() || stored.facts.deleting {
                return None;
            }
            let policy = &policy.publication.group().name.name;
            let wanted = Wanted::new(binding, &stored.facts, feeds.get(stored.feed)?, policy)?;
            return output.write(name, &wanted, now);
        }
        self.is_orphan(name, output, feeds).then(|| output.deletion()).flatten()
    }

    fn status_written(
        &mut self,
        group: &GroupRef,
        write: &Write,
        outcome: &Outcome,
        cx: &mut GroupingContext<'_>,
    ) -> Option<ResourceVersion> {
        match group.kind {
            OwnKind::BindingPolicy => self.policies.status_written(group, write, outcome, cx),
            OwnKind::StatusCollector => self.collectors.status_written(group, write, outcome, cx),
            _ => None,
        }
    }

    fn written(&mut self, slot: &Slot, change: &Write, outcome: &Outcome, cx: &mut GroupingContext<'_>) {
        if slot.part == Part::ForeignStatus {
            return self.status_set(&slot.object, change, outcome, cx);
        }
        let name = &slot.object.name;
        if matches!((change, outcome), (Write::Create { .. }, Outcome::NotFound))
            && let Some((slot, write)) = output::namespace_write(name)
        {
            cx.queue.request_write(slot, Some(write));
        }
        let Some(output) = self.outputs.get_mut(name) else { return };
        match output.written(change, outcome, cx.now) {
            Some(until) => cx.queue.schedule(until, Timer::Group(output::group(name))),
            // The watch was faster than the response: the newer version is known.
            None if *outcome == Outcome::Conflict => _ = self.unchecked.insert(name.clone()),
            None => {}
        }
    }

    fn retry(&mut self, slot: &Slot, cx: &mut GroupingContext<'_>) {
        self.retry_status(&slot.object, cx);
    }

    fn bound_rows(&self, query: &BoundRowsQuery, read: (&Feeds, &Clusters)) -> Option<BoundRows> {
        self.rows_of(query, read)
    }

    fn read_all_bound(&mut self) {
        self.reads_all_bound = true;
    }

    fn groups(&self, feeds: &Feeds, _now: Timestamp) -> Vec<Group> {
        if self.reads_all_bound { self.views(feeds) } else { Vec::new() }
    }

    fn group(&self, group: &GroupRef, feeds: &Feeds, _now: Timestamp) -> Option<Group> {
        if group.kind != OwnKind::BindingPolicy {
            return None;
        }
        self.view(self.policies.id(group)?, feeds)
    }

    fn relations(&self, kind: &GroupKind, name: &NamespacedName, _facts: &Facts) -> Vec<GroupRelation> {
        self.policies_of(kind, name)
    }

    fn add_cluster_reports(
        &self,
        kind: &GroupKind,
        name: &NamespacedName,
        feeds: &Feeds,
        reports: &mut ClusterReports,
    ) {
        self.reports_of(kind, name, feeds, reports);
    }

    fn group_count(&self) -> usize {
        self.policies.iter().count()
    }

    fn needs(&self, feed: FeedId) -> bool {
        self.policies.uses(feed)
    }
}

impl CombinedStatuses {
    fn policy_applied(
        &mut self,
        name: &NamespacedName,
        facts: &Facts,
        written: &OwnManifest<BindingPolicySpec, BindingPolicyStatus>,
        cx: &mut GroupingContext<'_>,
    ) {
        let OwnManifest { generation, created, spec, status } = written;
        let group = GroupRef::new(OwnKind::BindingPolicy, name.clone());
        let Some(id) = self.policies.id(&group) else {
            let publication =
                Publication::new(group.clone(), &policy::CONDITIONS, facts, (*generation, *created), status);
            let id = self.policies.insert(group, PolicyState::new(publication, spec.clone()));
            self.unresolved.insert(id);
            return;
        };
        let Some(policy) = self.policies.get_mut(id) else { return };
        let is_behind = policy.publication.observe(facts, *generation, status, cx.queue);
        if policy.spec != *spec {
            policy.set_spec(spec.clone());
            self.unresolved.insert(id);
        }
        if is_behind {
            self.policies.mark_dirty(id);
        }
    }

    fn collector_applied(
        &mut self,
        name: &NamespacedName,
        facts: &Facts,
        written: &OwnManifest<StatusCollectorSpec, StatusCollectorStatus>,
        cx: &mut GroupingContext<'_>,
    ) {
        let OwnManifest { generation, created, spec, status } = written;
        let group = GroupRef::new(OwnKind::StatusCollector, name.clone());
        let is_changed = if let Some(id) = self.collectors.id(&group)
            && let Some(collector) = self.collectors.get_mut(id)
        {
            let is_behind = collector.publication.observe(facts, *generation, status, cx.queue);
            let is_changed = collector.set_spec(spec);
            if is_behind || is_changed {
                self.collectors.mark_dirty(id);
            }
            is_changed
        } else {
            let publication = Publication::new(
                group.clone(),
                &collector::CONDITIONS,
                facts,
                (*generation, *created),
                status,
            );
            let id = self.collectors.insert(group, CollectorState::new(publication, spec.clone()));
            self.collectors.mark_dirty(id);
            true
        };
        if is_changed {
            self.collector_changed(&name.name);
        }
    }

    fn collector_changed(&mut self, name: &str) {
        if Bug::IgnoreCollectorChange.is_planted() {
            return;
        }
        for id in self.policies.ids() {
            if self.policies.get(id).is_some_and(|policy| policy.names_collector(name)) {
                self.unresolved.insert(id);
            }
        }
    }

    fn collector(&self, name: &str) -> CollectorVersion {
        let group = GroupRef::new(OwnKind::StatusCollector, NamespacedName::new("", name));
        self.collectors.named(&group).map_or(CollectorVersion::Missing, CollectorState::version)
    }

    /// Enqueues the outputs whose results changed, and those to compare with what is stored.
    fn publish_results(&mut self, cx: &mut GroupingContext<'_>) {
        for id in std::mem::take(&mut self.changed) {
            let Some(binding) = self.bindings.get_mut(id) else { continue };
            if binding.has_collectors() && !binding.is_complete() {
                continue;
            }
            let Some(output) = self.outputs.get(&binding.output) else { continue };
            let urgency = output.urgency(binding);
            let slot = output::slot(&binding.output);
            cx.queue.effects.push(Effect::EnqueueWrite(slot, Some(urgency)));
            self.unchecked.remove(&binding.output);
        }
        for name in std::mem::take(&mut self.unchecked) {
            let slot = output::slot(&name);
            let urgency = self.outputs.contains_key(&name).then_some(Urgency::Transition);
            cx.queue.effects.push(Effect::EnqueueWrite(slot, urgency));
        }
    }

    fn publish_policies(&mut self, cx: &mut GroupingContext<'_>) {
        while let Some(id) = self.policies.next_dirty(cx.queue) {
            let Some(policy) = self.policies.get(id).filter(|policy| policy.is_known(cx.feeds)) else {
                continue;
            };
            let statements = self.statements(id, policy, cx.feeds);
            let conditions =
                statements.map(|(type_, statement)| (type_, statement.map(|statement| statement.status)));
            if let Some(policy) = self.policies.get_mut(id) {
                policy.publication.request_write(conditions, None, false, cx.now, cx.queue);
            }
        }
    }

    fn statements(
        &self,
        id: GroupId,
        policy: &PolicyState,
        feeds: &Feeds,
    ) -> [(&'static str, Option<Statement>); 3] {
        [
            (SINGLETONS_APPLY, policy.singletons_apply(&self.inapplicable_singletons(id, feeds))),
            (COLLECTORS_AVAILABLE, policy.collectors_available(|name| self.collector(name))),
            (RESOLVED, Some(policy.resolved(feeds))),
        ]
    }

    /// Whether the reason for a stored CombinedStatus has ended. While its policy, the objects that it may bind or
    /// the collectors cannot be read, or discovery misses the kind of the object, that is not known.
    fn is_orphan(&self, name: &NamespacedName, output: &Output, feeds: &Feeds) -> bool {
        if !can_read(feeds, OwnKind::BindingPolicy) || !can_read(feeds, OwnKind::StatusCollector) {
            return Bug::DeleteWhileUnreadable.is_planted();
        }
        let uid = output::policy_uid(name);
        let mut policies = self.policies.iter();
        let policy = policies.find(|policy| *policy.publication.uid == *uid);
        let is_discovered = || {
            let group = output.object_group(name);
            group.is_none_or(|group| !feeds.is_group_unavailable(group))
        };
        output.binding.is_some()
            || policy.is_none_or(|policy| policy.is_authoritative(feeds) && is_discovered())
    }
}

fn is_feed_of(feed: FeedId, kind: OwnKind, feeds: &Feeds) -> bool {
    feeds.of_kind(&Cluster::hub(), &kind.kind()).is_some_and(|(own, _)| own == feed)
}

/// Whether all objects of one of our kinds are known.
fn can_read(feeds: &Feeds, kind: OwnKind) -> bool {
    let feed = feeds.of_kind(&Cluster::hub(), &kind.kind());
    feed.is_some_and(|(_, feed)| feed.listed && feed.unreadable.is_none() && !feed.is_torn())
}

fn namespace_kind() -> GroupKind {
    GroupKind::new("", "Namespace")
}
