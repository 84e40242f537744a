//! The state machine: applies events to the store of facts, passes them to the groupings, and collects
//! effects. The queries are in `queries.rs`.

mod queries;

use std::{collections::BTreeSet, mem, sync::Arc};

use jiff::{SignedDuration, Timestamp};

use crate::{
    application::Applications,
    clusters::{ClusterChange, Clusters},
    combined_status::CombinedStatuses,
    effect::{Effect, Slot, Write},
    effect_queue::{Changed, EffectQueue, Timer},
    event::{ClusterEvent, Event, FeedEvent, Outcome, Unreadable},
    facts::{Facts, ObservedObject, OwnFingerprint},
    feeds::{Feed, Feeds, ObjectId, StoreUpdate},
    group_ref::{GroupRef, OwnKind},
    grouping::Grouping,
    grouping_context::GroupingContext,
    health_rules::Rules,
    id::{Cluster, FeedId, GroupKind, NamespacedName, ObjectKey},
    nested::{Nested, NestedFacts},
    planted::Bug,
    requested_fields::RequestedFields,
    rollup::Rollups,
};

/// If the clock was set back by at least this, all kinds are relisted: a verdict may have been computed with
/// a time that is in the future now. After a smaller step, that time comes soon.
const MIN_SETBACK_TO_RELIST: SignedDuration = SignedDuration::from_mins(1);

/// In the order in which they act: HealthRules first, because they change the verdicts of the others'
/// members.
fn groupings() -> Vec<Box<dyn Grouping>> {
    vec![Box::<Rules>::default(), Box::<Applications>::default(), Box::<Rollups>::default()]
}

/// A deterministic state machine: the same events in the same order give the same effects.
#[derive(Debug)]
pub struct Engine {
    feeds: Feeds,
    clusters: Clusters,
    queue: EffectQueue,
    groupings: Vec<Box<dyn Grouping>>,
    /// The feeds of our own kinds. No other feed starts before their initial lists have completed.
    base: Vec<FeedId>,
    synced: bool,
    /// If set, a group that is a member of another counts as evaluated here, not by its stored status.
    nested: Option<Nested>,
    /// Kinds that are kept for readers, whether a group uses them or not.
    kept: BTreeSet<GroupKind>,
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine {
    /// An empty engine. Its first step follows our own kinds.
    pub fn new() -> Self {
        Self::with_groupings(groupings())
    }

    /// An engine that sees one namespace only. It ignores Rollups: their components may be in any namespace,
    /// and would seem to be missing.
    pub fn of_one_namespace() -> Self {
        Self::with_groupings(groupings().into_iter().filter(|grouping| grouping.is_namespaced()).collect())
    }

    /// Does without HealthRules on purpose: their kind is not read. Call this before
    /// [`with_kind`](Self::with_kind).
    #[must_use]
    pub fn without_health_rules(self) -> Self {
        let others = self.groupings.into_iter().filter(|grouping| !grouping.handles(OwnKind::HealthRule));
        let engine = Self::with_groupings(others.collect());
        Self { nested: self.nested, ..engine }
    }

    /// Also combines the state of objects in many clusters, as BindingPolicies say.
    #[must_use]
    pub fn with_combined_statuses(self) -> Self {
        let mut groupings = self.groupings;
        groupings.push(Box::<CombinedStatuses>::default());
        Self { nested: self.nested, ..Self::with_groupings(groupings) }
    }

    /// Reads all objects that BindingPolicies bind in their clusters, whether a clause asks for their state or not,
    /// and has the policies among the [`groups`](Self::groups).
    #[must_use]
    pub fn with_all_bound_objects(mut self) -> Self {
        for grouping in &mut self.groupings {
            grouping.read_all_bound();
        }
        self
    }

    fn with_groupings(groupings: Vec<Box<dyn Grouping>>) -> Self {
        let (feeds, clusters, queue) = (Feeds::default(), Clusters::default(), EffectQueue::default());
        let mut engine = Self {
            feeds,
            clusters,
            queue,
            groupings,
            base: Vec::new(),
            synced: false,
            nested: None,
            kept: BTreeSet::new(),
        };
        let mut base = engine.base_kinds();
        base.sort_unstable();
        engine.base = base.into_iter().map(|kind| engine.follow(&kind.kind())).collect();
        engine
    }

    /// Also evaluates groups of an optional kind: Applications of `app.k8s.io`. Our own groups do not wait
    /// for their initial list: they never release objects, so no other Application can take one over too
    /// early.
    #[must_use]
    pub fn with_kind(mut self, kind: OwnKind) -> Self {
        self.follow(&kind.kind());
        self
    }

    /// Evaluates groups that are members of other groups here, instead of reading their stored status.
    #[must_use]
    pub fn with_nested_evaluation(mut self) -> Self {
        self.nested = Some(Nested::default());
        self
    }

    /// Follows a kind for [`objects`](Self::objects) from the next step on, whether a group uses it or not.
    pub fn keep(&mut self, kind: &GroupKind) {
        self.keep_with(kind, &RequestedFields::default());
    }

    /// As [`keep`](Self::keep), with these fields of the objects.
    pub fn keep_with(&mut self, kind: &GroupKind, fields: &RequestedFields) {
        if self.kept.insert(kind.clone()) {
            self.feeds.acquire(&Cluster::hub(), kind, fields, &mut self.queue.effects);
        }
    }

    /// How long a Pod must have failed until its workload counts as Failed. `None`: objects below members are
    /// not read at all. By default, [`FAILED_AFTER`](crate::FAILED_AFTER).
    #[must_use]
    pub fn with_failed_after(mut self, failed_after: Option<SignedDuration>) -> Self {
        for grouping in &mut self.groupings {
            grouping.set_failed_after(failed_after);
        }
        self
    }

    fn follow(&mut self, kind: &GroupKind) -> FeedId {
        self.feeds.acquire(&Cluster::hub(), kind, &RequestedFields::default(), &mut self.queue.effects)
    }

    /// Handles a batch of events and returns the effects. Groups are evaluated once, after the last event.
    pub fn step(&mut self, now: Timestamp, events: impl IntoIterator<Item = Event>) -> Vec<Effect> {
        for event in events {
            match event {
                Event::Feed(feed, event) if self.is_from_removed_source(feed, &event) => {}
                Event::Feed(feed, event) => self.feed_event(feed, event, now),
                Event::Cluster(cluster, event) => self.cluster_event(&cluster, event, now),
                Event::Written { slot, write, outcome } => self.written(&slot, &write, &outcome, now),
                Event::InventoryListed => {
                    self.for_each_grouping(now, |grouping, _| grouping.inventory_listed());
                }
                Event::SingletonKind(kind) => {
                    self.for_each_grouping(now, |grouping, cx| grouping.singletons_found(&kind, cx));
                }
                Event::Tick => {}
            }
        }
        while let Some(timer) = self.queue.due(now) {
            match timer {
                Timer::Verdict(object) => self.reassess(object, now),
                Timer::Below(object) => self.below_changed(object, now),
                Timer::Retry(slot) => {
                    self.with_grouping(slot.grouping(), now, |grouping, cx| grouping.retry(&slot, cx));
                }
                Timer::Group(group) => {
                    self.with_grouping(Some(group.kind), now, |grouping, _| grouping.timer_fired(&group));
                }
                Timer::Silence(cluster) => {
                    self.clusters.timer_fired(&cluster);
                    if self.clusters.silent_since(&cluster, now).is_some() {
                        self.silence_changed(&cluster);
                    }
                    self.schedule_silence_timer(&cluster, now);
                }
                Timer::Freshness(cluster) => {
                    self.for_each_grouping(now, |grouping, cx| grouping.freshness_due(&cluster, cx));
                }
            }
        }
        if !self.synced && self.base.iter().all(|feed| self.feeds.get(*feed).is_some_and(Feed::is_known)) {
            self.synced = true;
            self.queue.kinds_changed(OwnKind::ALL);
            self.for_each_grouping(now, |grouping, cx| grouping.sync(cx));
        }
        self.flush(now);
        self.evaluate_nested(now);
        for feed in self.feeds.take_unused() {
            self.for_each_with_members_in(feed, now, |grouping, cx| grouping.feed_dropped(feed, cx));
            self.feeds.drop_feed(feed, &mut self.queue.effects);
        }
        self.queue.drain()
    }

    fn flush(&mut self, now: Timestamp) {
        self.for_each_grouping(now, |grouping, cx| grouping.flush(cx));
    }

    /// Reassesses the objects of nested groups by their evaluation, innermost first, until nothing changes.
    fn evaluate_nested(&mut self, now: Timestamp) {
        let Some(mut nested) = self.nested.take() else { return };
        let mut changed = self.queue.take_changed();
        nested.due_again(&changed);
        if !nested.due.is_empty() {
            // Reassess these, to see whether they are still cyclic.
            let cyclic = mem::take(&mut nested.cyclic);
            nested.due.extend(cyclic.iter().cloned());
            changed.extend(self.reassess_nested(&mut nested, now));
            for group in cyclic.symmetric_difference(&nested.cyclic) {
                self.queue.group_changed(group);
            }
        }
        self.queue.restore_changed(changed);
        self.nested = Some(nested);
    }

    /// Returns the groups that changed.
    fn reassess_nested(&mut self, nested: &mut Nested, now: Timestamp) -> BTreeSet<Changed> {
        let mut all = BTreeSet::new();
        // A round settles every group whose members were settled by the round before. So there are at most as
        // many rounds as groups, unless groups contain one another. Another `max_rounds` rounds find all of
        // those.
        let max_rounds = self.group_count() + 1;
        for round in 0..=2 * max_rounds {
            // Compute the whole round before applying it, so that the result does not depend on the order.
            let due = mem::take(&mut nested.due).into_iter();
            let reassessed: Vec<_> =
                due.filter_map(|group| Some((self.reassessment_of(&group, now)?, group))).collect();
            if reassessed.is_empty() {
                return all;
            }
            for ((object, reassessment), group) in reassessed {
                if round > max_rounds {
                    nested.cyclic.insert(group);
                }
                let Some(stored) = self.feeds.object_mut(object) else { continue };
                let before = stored.facts.clone();
                reassessment.apply(&mut stored.facts);
                self.object_changed(object, Some(&before), now);
            }
            self.flush(now);
            let changed = self.queue.take_changed();
            nested.due_again(&changed);
            all.extend(changed);
        }
        nested.due.clear();
        all
    }

    /// How to assess the object of a group; `None` if its facts say so already.
    fn reassessment_of(&self, group: &GroupRef, now: Timestamp) -> Option<(ObjectId, NestedFacts)> {
        let object = self.feeds.find(&Cluster::hub(), &group.kind.kind(), &group.name)?;
        let reassessment = NestedFacts::of(&self.group(now, group)?, &self.feeds.object(object)?.facts)?;
        Some((object, reassessment))
    }

    /// The kinds to list before anything else.
    fn base_kinds(&self) -> Vec<OwnKind> {
        self.groupings.iter().flat_map(|grouping| grouping.required_kinds()).copied().collect()
    }

    /// Call this when the wall clock was set. Timers keep their remaining time. After a setback, all kinds
    /// are relisted, because verdicts may rest on a time that has not come yet.
    pub fn clock_set(&mut self, by: SignedDuration) {
        self.queue.clock_set(by);
        self.clusters.clock_set(by);
        for grouping in &mut self.groupings {
            grouping.clock_set(by);
        }
        if by < -MIN_SETBACK_TO_RELIST {
            self.feeds.relist_all(&mut self.queue.effects);
        }
    }

    fn for_each_grouping(
        &mut self,
        now: Timestamp,
        mut act: impl FnMut(&mut dyn Grouping, &mut GroupingContext<'_>),
    ) {
        for grouping in &mut self.groupings {
            act(
                &mut **grouping,
                &mut GroupingContext {
                    feeds: &mut self.feeds,
                    clusters: &self.clusters,
                    queue: &mut self.queue,
                    now,
                },
            );
        }
    }

    /// Skips groupings without members in the cluster of the feed.
    fn for_each_with_members_in(
        &mut self,
        feed: FeedId,
        now: Timestamp,
        mut act: impl FnMut(&mut dyn Grouping, &mut GroupingContext<'_>),
    ) {
        let Some(cluster) = self.feeds.get(feed).map(|feed| feed.cluster.clone()) else { return };
        self.for_each_grouping(now, |grouping, cx| {
            if grouping.has_members_in(&cluster) || Bug::MixClusters.is_planted() {
                act(grouping, cx);
            }
        });
    }

    /// Calls the grouping that reads a kind; does nothing if there is none.
    fn with_grouping<R: Default>(
        &mut self,
        kind: Option<OwnKind>,
        now: Timestamp,
        act: impl FnOnce(&mut dyn Grouping, &mut GroupingContext<'_>) -> R,
    ) -> R {
        let reads_kind = |grouping: &&mut Box<dyn Grouping>| kind.is_some_and(|kind| grouping.handles(kind));
        let grouping = self.groupings.iter_mut().find(reads_kind);
        grouping.map_or_else(R::default, |grouping| {
            let (feeds, clusters, queue) = (&mut self.feeds, &self.clusters, &mut self.queue);
            act(&mut **grouping, &mut GroupingContext { feeds, clusters, queue, now })
        })
    }

    /// A removed source may still deliver events. `NotConnected` comes from the router, not from a source.
    fn is_from_removed_source(&self, id: FeedId, event: &FeedEvent) -> bool {
        let is_removed = |feed: &Feed| self.clusters.is_removed(&feed.cluster);
        self.feeds.get(id).is_some_and(is_removed)
            && !matches!(event, FeedEvent::Unreadable(Unreadable::NotConnected))
    }

    fn feed_event(&mut self, id: FeedId, event: FeedEvent, now: Timestamp) {
        let Some(feed) = self.feeds.get_mut(id) else { return };
        match event {
            FeedEvent::Served(served) => {
                let is_new = feed.served.as_ref() != Some(&served);
                feed.served = Some(served);
                if is_new {
                    self.feed_changed(id, false, now);
                }
            }
            FeedEvent::Unreadable(unreadable) => {
                let is_unserved = unreadable == Unreadable::NotServed;
                feed.unreadable = Some(unreadable);
                // A kind that is not served has no objects.
                for object in if is_unserved { self.feeds.all(id) } else { Vec::new() } {
                    self.object_deleted(object, now);
                }
                self.feed_changed(id, true, now);
            }
            FeedEvent::Restored => self.forget_versions(id, now),
            FeedEvent::ListStarted => {
                self.feeds.begin_list(id);
                self.own_kind_changed(id);
                self.for_each_with_members_in(id, now, |grouping, cx| grouping.list_started(id, cx));
            }
            FeedEvent::ListCompleted => {
                let (was_listed, was_unreadable) = (feed.listed, feed.unreadable.is_some());
                for object in self.feeds.end_list(id) {
                    self.object_deleted(object, now);
                }
                // The objects were counted as they arrived, but their groups were not evaluated during the
                // relist.
                if was_listed && !was_unreadable {
                    self.own_kind_changed(id);
                    self.for_each_with_members_in(id, now, |grouping, cx| grouping.list_completed(id, cx));
                } else {
                    self.feed_changed(id, was_unreadable, now);
                }
            }
            FeedEvent::Applied(name, object) => self.object_applied(id, name, *object, now),
            FeedEvent::Deleted(name) => {
                if let Some(object) = self.feeds.find_in(id, &name) {
                    self.object_deleted(object, now);
                }
            }
        }
    }

    fn cluster_event(&mut self, cluster: &Cluster, event: ClusterEvent, now: Timestamp) {
        let before = self.clusters.silent_since(cluster, now);
        let is_heard = matches!(event, ClusterEvent::Heard(_));
        if let ClusterEvent::Kinds(kinds) = &event
            && cluster.is_hub()
        {
            self.feeds.set_discovered_in_hub(Arc::clone(kinds));
            self.for_each_grouping(now, |grouping, _| grouping.kinds_discovered());
        }
        match self.clusters.handle(cluster, event, now) {
            Some(ClusterChange::Added) => self.feeds.follow_cluster(cluster, &mut self.queue.effects),
            Some(ClusterChange::Replaced) if cluster.is_hub() => {
                for feed in self.feeds.of_cluster(cluster) {
                    self.forget_versions(feed, now);
                }
            }
            Some(ClusterChange::Replaced) if Bug::KeepRowsOfRebuilt.is_planted() => {}
            Some(ClusterChange::Replaced) => self.forget_objects_of(cluster, now),
            Some(ClusterChange::Removed) => {
                // The next cluster of this name may be another one, or the same one restored from a backup:
                // its resourceVersions are not comparable.
                self.feeds.forget_versions_of(cluster);
                for feed in self.feeds.of_cluster(cluster) {
                    self.feed_event(feed, FeedEvent::Unreadable(Unreadable::NotConnected), now);
                }
            }
            None => {}
        }
        if before != self.clusters.silent_since(cluster, now) {
            self.silence_changed(cluster);
        }
        self.for_each_grouping(now, |grouping, cx| {
            if is_heard {
                grouping.cluster_heard(cluster, cx);
            } else {
                grouping.cluster_changed(cluster, cx);
            }
        });
        self.schedule_silence_timer(cluster, now);
    }

    fn forget_versions(&mut self, feed: FeedId, now: Timestamp) {
        self.feeds.forget_versions(feed);
        self.for_each_with_members_in(feed, now, |grouping, cx| grouping.versions_forgotten(feed, cx));
    }

    /// Another cluster has the name: nothing is known of it before its kinds are listed.
    fn forget_objects_of(&mut self, cluster: &Cluster, now: Timestamp) {
        for feed in self.feeds.of_cluster(cluster) {
            for object in self.feeds.all(feed) {
                self.object_deleted(object, now);
            }
            self.feeds.await_list(feed);
        }
        self.feeds.follow_cluster(cluster, &mut self.queue.effects);
    }

    fn schedule_silence_timer(&mut self, cluster: &Cluster, now: Timestamp) {
        if let Some(at) = self.clusters.next_timer(cluster, now) {
            self.queue.schedule(at, Timer::Silence(cluster.clone()));
        }
    }

    /// A cluster became silent, or is heard from again. While the hub is silent, `summary` reports no group
    /// as known.
    fn silence_changed(&mut self, cluster: &Cluster) {
        if cluster.is_hub() {
            self.queue.kinds_changed(OwnKind::ALL);
        }
    }

    /// The status of any group of this kind may change, also of a name that does not exist.
    fn own_kind_changed(&mut self, feed: FeedId) {
        let feed = self.feeds.get(feed).filter(|feed| feed.cluster.is_hub());
        if let Some(kind) = feed.and_then(|feed| OwnKind::of(&feed.kind)) {
            self.queue.kinds_changed([kind]);
            // Until the required kinds are listed, `summary` names those that are missing.
            self.queue.kinds_changed(OwnKind::ALL.into_iter().filter(|_| !self.synced));
        }
    }

    fn feed_changed(&mut self, id: FeedId, readability: bool, now: Timestamp) {
        self.own_kind_changed(id);
        self.for_each_with_members_in(id, now, |grouping, cx| grouping.feed_changed(id, readability, cx));
    }

    fn object_applied(&mut self, feed: FeedId, name: NamespacedName, object: ObservedObject, now: Timestamp) {
        let ObservedObject { facts, own } = object;
        // Objects of our own kinds count in the hub only.
        let own = own.filter(|_| self.feeds.get(feed).is_some_and(|feed| feed.cluster.is_hub()));
        if let Some(other) = self.feeds.find_recreated(feed, &name, &facts.uid) {
            self.object_deleted(other, now);
        }
        match self.feeds.put(feed, name, facts, own.as_ref().map(OwnFingerprint::of)) {
            Some(StoreUpdate::Changed(object, before)) => {
                self.schedule_verdict_timer(object);
                let (facts, before) = before.map(|before| *before).unzip();
                if let (Some(own), Some(stored)) = (&own, self.feeds.object(object)) {
                    let (name, facts) = (stored.name.clone(), stored.facts.clone());
                    let kind = Some(OwnFingerprint::of(own).kind);
                    if let (Some(nested), Some(kind)) = (&mut self.nested, kind) {
                        nested.due.insert(GroupRef::new(kind, name.clone()));
                    }
                    self.with_grouping(kind, now, |grouping, cx| {
                        grouping.group_applied(&name, &facts, own, cx);
                    });
                } else if let Some(before) = before.flatten() {
                    self.remove_group(before.kind, object, now);
                }
                self.object_changed(object, facts.as_ref(), now);
            }
            Some(StoreUpdate::OlderThanOurWrite(object, before)) => {
                self.schedule_verdict_timer(object);
                self.object_changed(object, Some(&*before), now);
            }
            Some(StoreUpdate::VersionOnly(object)) => self.object_version_changed(object, now),
            Some(StoreUpdate::Stale) | None => {}
        }
    }

    fn object_changed(&mut self, object: ObjectId, before: Option<&Facts>, now: Timestamp) {
        let Some(feed) = self.feeds.object(object).map(|stored| stored.feed) else { return };
        self.for_each_with_members_in(feed, now, |grouping, cx| grouping.object_changed(object, before, cx));
    }

    /// One of our own objects was deleted, or cannot be decoded any more.
    fn remove_group(&mut self, kind: OwnKind, object: ObjectId, now: Timestamp) {
        let Some(stored) = self.feeds.object(object) else { return };
        let group = GroupRef::new(kind, stored.name.clone());
        self.with_grouping(Some(kind), now, |grouping, cx| grouping.remove(&group, cx));
    }

    fn object_version_changed(&mut self, object: ObjectId, now: Timestamp) {
        let Some(stored) = self.feeds.object(object) else { return };
        let feed = stored.feed;
        if let Some(own) = stored.own {
            let (group, facts) = (GroupRef::new(own.kind, stored.name.clone()), stored.facts.clone());
            self.with_grouping(Some(own.kind), now, |grouping, _| grouping.version_changed(&group, &facts));
        }
        self.for_each_with_members_in(feed, now, |grouping, cx| grouping.object_version_changed(object, cx));
    }

    fn object_deleted(&mut self, object: ObjectId, now: Timestamp) {
        let Some(feed) = self.feeds.object(object).map(|stored| stored.feed) else { return };
        self.for_each_with_members_in(feed, now, |grouping, cx| grouping.before_object_removed(object, cx));
        if let Some(own) = self.feeds.object(object).and_then(|stored| stored.own) {
            self.remove_group(own.kind, object, now);
        }
        let Some(stored) = self.feeds.remove(object) else { return };
        let Some(feed_of) = self.feeds.get(feed) else { return };
        let (cluster, kind) = (feed_of.cluster.clone(), feed_of.kind.clone());
        let key = ObjectKey { cluster, kind, name: stored.name };
        self.queue.withdraw(&key);
        self.for_each_with_members_in(feed, now, |grouping, cx| grouping.after_object_removed(&key, cx));
    }

    fn written(&mut self, slot: &Slot, write: &Write, outcome: &Outcome, now: Timestamp) {
        // A write that was rejected, failed or got a 404 is still needed, and the outbox retries it. After a
        // conflict, the write is requested again once the newer version is known here.
        let is_over = match write {
            Write::Status { .. } => return self.status_written(slot, write, outcome, now),
            Write::OwnerReferences { .. } | Write::Apply { .. } => matches!(outcome, Outcome::Written(_)),
            Write::Create { .. } | Write::SetFields { .. } | Write::Delete { .. } => {
                matches!(outcome, Outcome::Written(_) | Outcome::Conflict)
            }
        };
        if is_over {
            self.queue.complete(slot, write);
        }
        match (write, outcome) {
            (Write::Delete { uid }, Outcome::Written(_)) => self.feeds.mark_deleted(&slot.object, uid),
            (Write::SetFields { .. }, Outcome::Written(_)) => self.feeds.expect_change(&slot.object),
            _ => {}
        }
        self.with_grouping(slot.grouping(), now, |grouping, cx| grouping.written(slot, write, outcome, cx));
    }

    fn status_written(&mut self, slot: &Slot, write: &Write, outcome: &Outcome, now: Timestamp) {
        let object = &slot.object;
        let Some(group) = slot.group() else { return };
        let version = self.with_grouping(Some(group.kind), now, |grouping, cx| {
            grouping.status_written(&group, write, outcome, cx)
        });
        if let Some(version) = version
            && let Some(stored) = self.feeds.find(&object.cluster, &object.kind, &object.name)
            && let Some(stored) = self.feeds.object_mut(stored)
        {
            stored.record_write(version);
        }
    }

    /// Some verdicts change with time alone, such as one that waits for a deadline.
    fn schedule_verdict_timer(&mut self, object: ObjectId) {
        if let Some(later) = self.feeds.object(object).and_then(|stored| stored.facts.verdict.later.as_ref())
        {
            self.queue.schedule(later.at, Timer::Verdict(object));
        }
    }

    fn below_changed(&mut self, object: ObjectId, now: Timestamp) {
        let Some(feed) = self.feeds.object(object).map(|stored| stored.feed) else { return };
        self.for_each_with_members_in(feed, now, |grouping, cx| grouping.below_changed(object, cx));
    }

    fn reassess(&mut self, object: ObjectId, now: Timestamp) {
        let Some(stored) = self.feeds.object_mut(object) else { return };
        let before = stored.facts.clone();
        let Some(later) = stored.facts.verdict.later.take_if(|later| later.at <= now) else { return };
        stored.facts.verdict = later.verdict;
        self.schedule_verdict_timer(object);
        self.object_changed(object, Some(&before), now);
    }
}

#[cfg(feature = "planted")]
mod test_support;
#[cfg(test)]
mod tests;
