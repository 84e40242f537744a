//! The machine itself: what happens goes in, what is to be done comes out. What it can be asked is in `ask.rs`.

mod ask;

use std::{collections::BTreeSet, mem};

use jiff::{SignedDuration, Timestamp};

use crate::{
    application::Applications,
    clusters::{ClusterChange, Clusters},
    context::Context,
    effect::{Change, Effect, Slot},
    effect_queue::{Changed, EffectQueue, Timer},
    event::{ClusterEvent, Event, FeedEvent, Outcome, Unreadable},
    facts::{Facts, ObservedObject, OwnFingerprint},
    feeds::{Feed, Feeds, ObjectId, StoreUpdate},
    group_ref::{GroupRef, OwnKind},
    grouping::Grouping,
    id::{Cluster, FeedId, GroupKind, NamespacedName, ObjectKey},
    nested::{Nested, Reassessment},
    planted::Bug,
    rollup::Rollups,
    rules::Rules,
    wanted::Wanted,
};

/// A clock that is put back by less than this will soon be where it was.
const MIN_SETBACK_TO_RELIST: SignedDuration = SignedDuration::from_mins(1);

/// All groupings, in the order in which they act: the rules before those whose members they judge.
fn groupings() -> Vec<Box<dyn Grouping>> {
    vec![Box::<Rules>::default(), Box::<Applications>::default(), Box::<Rollups>::default()]
}

/// A deterministic machine: the same events in the same order give the same effects.
#[derive(Debug)]
pub struct Engine {
    feeds: Feeds,
    clusters: Clusters,
    queue: EffectQueue,
    groupings: Vec<Box<dyn Grouping>>,
    /// The feeds of our own kinds. Before they are known, no other is begun.
    base: Vec<FeedId>,
    synced: bool,
    /// Whether groups that are members of others are judged by their own evaluation.
    nested: Option<Nested>,
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl Engine {
    /// One that knows nothing. Its first step asks to follow our own kinds.
    pub fn new() -> Self {
        Self::with_groupings(groupings())
    }

    /// One that is told of one namespace only. It leaves Rollups alone: their components may be anywhere, and what is
    /// elsewhere would seem not to be there.
    pub fn of_one_namespace() -> Self {
        Self::with_groupings(groupings().into_iter().filter(|grouping| grouping.is_namespaced()).collect())
    }

    fn with_groupings(groupings: Vec<Box<dyn Grouping>>) -> Self {
        let (feeds, clusters, queue) = (Feeds::default(), Clusters::default(), EffectQueue::default());
        let mut engine =
            Self { feeds, clusters, queue, groupings, base: Vec::new(), synced: false, nested: None };
        let mut base = engine.base_kinds();
        base.sort_unstable();
        engine.base = base.into_iter().map(|kind| engine.follow(&kind.kind())).collect();
        engine
    }

    /// One that looks after groups of another kind as well, where the cluster has them: the Applications of `app.k8s.io`.
    /// No group of ours waits for them: they keep the objects that they own, so that no other controller takes one over.
    #[must_use]
    pub fn with_kind(mut self, kind: OwnKind) -> Self {
        self.follow(&kind.kind());
        self
    }

    /// One that judges groups that are members of others by its own evaluation.
    #[must_use]
    pub fn with_nested_evaluation(mut self) -> Self {
        self.nested = Some(Nested::default());
        self
    }

    fn follow(&mut self, kind: &GroupKind) -> FeedId {
        self.feeds.acquire(&Cluster::hub(), kind, &Wanted::default(), &mut self.queue.effects)
    }

    /// Takes in what has happened, and says what follows from it.
    pub fn step(&mut self, now: Timestamp, events: impl IntoIterator<Item = Event>) -> Vec<Effect> {
        for event in events {
            match event {
                Event::Feed(feed, event) if self.is_from_removed_source(feed, &event) => {}
                Event::Feed(feed, event) => self.feed_event(feed, event, now),
                Event::Cluster(cluster, event) => self.cluster_event(&cluster, event, now),
                Event::Written { slot, change, outcome } => self.written(&slot, &change, &outcome, now),
                Event::Tick => {}
            }
        }
        while let Some(timer) = self.queue.due(now) {
            match timer {
                Timer::Verdict(object) => self.reassess(object, now),
                Timer::Retry(slot) => {
                    self.with_grouping(slot.grouping(), now, |grouping, cx| grouping.retry(&slot, cx));
                }
                Timer::Group(group) => {
                    self.with_grouping(Some(group.kind), now, |grouping, _| grouping.wake(&group));
                }
                Timer::Silence(cluster) => {
                    self.clusters.timer_fired(&cluster);
                    if self.clusters.silent_since(&cluster, now).is_some() {
                        self.silence_toggled(&cluster);
                    }
                    self.schedule_silence_timer(&cluster, now);
                }
            }
        }
        if !self.synced && self.base.iter().all(|feed| self.feeds.get(*feed).is_some_and(Feed::is_known)) {
            self.synced = true;
            self.queue.kinds_changed(OwnKind::ALL);
            self.for_each_grouping(now, |grouping, cx| grouping.sync(cx));
        }
        self.flush(now);
        self.settle_nested(now);
        for feed in self.feeds.take_unused() {
            self.for_each_with_members_in(feed, now, |grouping, cx| grouping.feed_dropped(feed, cx));
            self.feeds.drop_feed(feed, &mut self.queue.effects);
        }
        self.queue.drain()
    }

    /// Evaluates what has changed.
    fn flush(&mut self, now: Timestamp) {
        self.for_each_grouping(now, |grouping, cx| grouping.flush(cx));
    }

    /// Judges the objects of groups as the groups were evaluated, from the inside out, until nothing changes any more.
    fn settle_nested(&mut self, now: Timestamp) {
        let Some(mut nested) = self.nested.take() else { return };
        let mut changed = self.queue.take_changed();
        nested.due_again(&changed);
        if !nested.due.is_empty() {
            // Whether they still count one another shows when they are judged again.
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

    /// Gives back what has changed by it.
    fn reassess_nested(&mut self, nested: &mut Nested, now: Timestamp) -> BTreeSet<Changed> {
        let mut all = BTreeSet::new();
        // Each round is right about the groups that count only what the one before was right about: there are never more
        // rounds than groups, unless some count one another. Each of those is judged anew in as many rounds again.
        let max_rounds = self.group_count() + 1;
        for round in 0..=2 * max_rounds {
            // All of a round are evaluated before the first is judged: what they come to must not depend on their order.
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

    /// How the object of a group is to be judged; nothing if it is judged so already.
    fn reassessment_of(&self, group: &GroupRef, now: Timestamp) -> Option<(ObjectId, Reassessment)> {
        let object = self.feeds.find(&Cluster::hub(), &group.kind.kind(), &group.name)?;
        let reassessment = Reassessment::of(&self.group(now, group)?, &self.feeds.object(object)?.facts)?;
        Some((object, reassessment))
    }

    /// The kinds that our own groups are written in.
    fn base_kinds(&self) -> Vec<OwnKind> {
        self.groupings.iter().flat_map(|grouping| grouping.base()).copied().collect()
    }

    /// Somebody has set the clock. What waits for so long from some moment on waits no longer and no shorter for that. What
    /// an hour has made of an object that has not passed yet is looked at again.
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

    /// Lets every grouping do something.
    fn for_each_grouping(
        &mut self,
        now: Timestamp,
        mut act: impl FnMut(&mut dyn Grouping, &mut Context<'_>),
    ) {
        for grouping in &mut self.groupings {
            act(&mut **grouping, &mut Context { feeds: &mut self.feeds, queue: &mut self.queue, now });
        }
    }

    /// Lets every grouping that has members in the cluster of a feed do something.
    fn for_each_with_members_in(
        &mut self,
        feed: FeedId,
        now: Timestamp,
        mut act: impl FnMut(&mut dyn Grouping, &mut Context<'_>),
    ) {
        let Some(cluster) = self.feeds.get(feed).map(|feed| feed.cluster.clone()) else { return };
        self.for_each_grouping(now, |grouping, cx| {
            if grouping.has_members_in(&cluster) || Bug::MixClusters.is_planted() {
                act(grouping, cx);
            }
        });
    }

    /// Lets the grouping that reads a kind do something.
    fn with_grouping<R: Default>(
        &mut self,
        kind: Option<OwnKind>,
        now: Timestamp,
        act: impl FnOnce(&mut dyn Grouping, &mut Context<'_>) -> R,
    ) -> R {
        let reads_kind = |grouping: &&mut Box<dyn Grouping>| kind.is_some_and(|kind| grouping.reads(kind));
        let grouping = self.groupings.iter_mut().find(reads_kind);
        grouping.map_or_else(R::default, |grouping| {
            act(&mut **grouping, &mut Context { feeds: &mut self.feeds, queue: &mut self.queue, now })
        })
    }

    /// Whether news comes from a source that has been removed meanwhile. `NotConnected` comes from the router, not from a source.
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
                // Where there is no kind, there are no objects.
                for object in if is_unserved { self.feeds.all(id) } else { Vec::new() } {
                    self.object_deleted(object, now);
                }
                self.feed_changed(id, true, now);
            }
            FeedEvent::Restored => self.feeds.forget_versions(id),
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
                // Each object has been counted when it was seen; but of what they came to, nothing was said meanwhile.
                if was_listed && !was_unreadable {
                    self.own_kind_changed(id);
                    self.for_each_with_members_in(id, now, |grouping, _| grouping.list_completed(id));
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

    /// A source tells something of its cluster.
    fn cluster_event(&mut self, cluster: &Cluster, event: ClusterEvent, now: Timestamp) {
        let before = self.clusters.silent_since(cluster, now);
        match self.clusters.handle(cluster, event, now) {
            Some(ClusterChange::Added) => self.feeds.follow_cluster(cluster, &mut self.queue.effects),
            Some(ClusterChange::Replaced) => self.feeds.forget_versions_of(cluster),
            Some(ClusterChange::Removed) => {
                // Whatever is connected under this name next may be another cluster, or the same put back to an earlier time.
                self.feeds.forget_versions_of(cluster);
                for feed in self.feeds.of_cluster(cluster) {
                    self.feed_event(feed, FeedEvent::Unreadable(Unreadable::NotConnected), now);
                }
            }
            None => {}
        }
        if before != self.clusters.silent_since(cluster, now) {
            self.silence_toggled(cluster);
        }
        self.schedule_silence_timer(cluster, now);
    }

    fn schedule_silence_timer(&mut self, cluster: &Cluster, now: Timestamp) {
        if let Some(at) = self.clusters.next_timer(cluster, now) {
            self.queue.schedule(at, Timer::Silence(cluster.clone()));
        }
    }

    /// A cluster has fallen silent, or is heard from again. While the hub is silent, no summary is given of any group.
    fn silence_toggled(&mut self, cluster: &Cluster) {
        if cluster.is_hub() {
            self.queue.kinds_changed(OwnKind::ALL);
        }
    }

    /// What is said of groups of one of our own kinds may change, also of those that are not there.
    fn own_kind_changed(&mut self, feed: FeedId) {
        let feed = self.feeds.get(feed).filter(|feed| feed.cluster.is_hub());
        if let Some(kind) = feed.and_then(|feed| OwnKind::of(&feed.kind)) {
            self.queue.kinds_changed([kind]);
            // Before all of our own kinds are known, whoever asks is told which of them are not.
            self.queue.kinds_changed(OwnKind::ALL.into_iter().filter(|_| !self.synced));
        }
    }

    fn feed_changed(&mut self, id: FeedId, readability: bool, now: Timestamp) {
        self.own_kind_changed(id);
        self.for_each_with_members_in(id, now, |grouping, cx| grouping.feed_changed(id, readability, cx));
    }

    fn object_applied(&mut self, feed: FeedId, name: NamespacedName, object: ObservedObject, now: Timestamp) {
        let ObservedObject { facts, own } = object;
        // Our kinds mean something in the cluster that we serve.
        let own = own.filter(|_| self.feeds.get(feed).is_some_and(|feed| feed.cluster.is_hub()));
        if let Some(other) = self.feeds.namesake(feed, &name, &facts.uid) {
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
                    self.with_grouping(kind, now, |grouping, cx| grouping.set(&name, &facts, own, cx));
                } else if let Some(before) = before.flatten() {
                    self.remove_group(before.kind, object, now);
                }
                self.object_changed(object, facts.as_ref(), now);
            }
            Some(StoreUpdate::OlderThanOurWrite(object, before)) => {
                self.schedule_verdict_timer(object);
                self.object_changed(object, Some(&*before), now);
            }
            Some(StoreUpdate::Same(object)) => self.object_same(object, now),
            Some(StoreUpdate::Stale) | None => {}
        }
    }

    /// An object is there, or is not what it was.
    fn object_changed(&mut self, object: ObjectId, before: Option<&Facts>, now: Timestamp) {
        let Some(feed) = self.feeds.object(object).map(|stored| stored.feed) else { return };
        self.for_each_with_members_in(feed, now, |grouping, cx| grouping.object_changed(object, before, cx));
    }

    /// One of our own objects is gone, or is no longer one that we understand.
    fn remove_group(&mut self, kind: OwnKind, object: ObjectId, now: Timestamp) {
        let Some(stored) = self.feeds.object(object) else { return };
        let group = GroupRef::new(kind, stored.name.clone());
        self.with_grouping(Some(kind), now, |grouping, cx| grouping.remove(&group, cx));
    }

    /// An object has another version, and is what it was.
    fn object_same(&mut self, object: ObjectId, now: Timestamp) {
        let Some(stored) = self.feeds.object(object) else { return };
        let feed = stored.feed;
        if let Some(own) = stored.own {
            let (group, facts) = (GroupRef::new(own.kind, stored.name.clone()), stored.facts.clone());
            self.with_grouping(Some(own.kind), now, |grouping, _| grouping.version_changed(&group, &facts));
        }
        self.for_each_with_members_in(feed, now, |grouping, cx| grouping.object_same(object, cx));
    }

    fn object_deleted(&mut self, object: ObjectId, now: Timestamp) {
        let Some(feed) = self.feeds.object(object).map(|stored| stored.feed) else { return };
        self.for_each_with_members_in(feed, now, |grouping, cx| grouping.object_gone(object, cx));
        if let Some(own) = self.feeds.object(object).and_then(|stored| stored.own) {
            self.remove_group(own.kind, object, now);
        }
        let Some(stored) = self.feeds.remove(object) else { return };
        let Some(feed_of) = self.feeds.get(feed) else { return };
        let (cluster, kind) = (feed_of.cluster.clone(), feed_of.kind.clone());
        let key = ObjectKey { cluster, kind, name: stored.name };
        self.queue.withdraw(&key);
        self.for_each_with_members_in(feed, now, |grouping, cx| grouping.object_missing(&key, cx));
    }

    fn written(&mut self, slot: &Slot, change: &Change, outcome: &Outcome, now: Timestamp) {
        // What was refused, did not get through, or met an API server that knows no such object, is still wanted and is
        // tried again. What met another version of the object is asked for again when that version is known here.
        let is_over = match change {
            Change::Status { .. } => return self.status_written(slot, change, outcome, now),
            Change::Owners { .. } | Change::Apply { .. } => matches!(outcome, Outcome::Done(_)),
            Change::Create { .. } | Change::Replace { .. } | Change::Delete { .. } => {
                matches!(outcome, Outcome::Done(_) | Outcome::Conflict)
            }
        };
        if is_over {
            self.queue.complete(slot, change);
        }
        if let (Change::Delete { uid }, Outcome::Done(_)) = (change, outcome) {
            self.feeds.mark_deleted(&slot.object, uid);
        }
        self.with_grouping(slot.grouping(), now, |grouping, cx| grouping.written(slot, change, outcome, cx));
    }

    fn status_written(&mut self, slot: &Slot, change: &Change, outcome: &Outcome, now: Timestamp) {
        let object = &slot.object;
        let Some(group) = slot.group() else { return };
        let version = self.with_grouping(Some(group.kind), now, |grouping, cx| {
            grouping.status_written(&group, change, outcome, cx)
        });
        if let Some(version) = version
            && let Some(stored) = self.feeds.find(&object.cluster, &object.kind, &object.name)
            && let Some(stored) = self.feeds.object_mut(stored)
        {
            stored.record_write(version);
        }
    }

    /// Looks again when the verdict on an object will have turned into another.
    fn schedule_verdict_timer(&mut self, object: ObjectId) {
        if let Some(later) = self.feeds.object(object).and_then(|stored| stored.facts.verdict.later.as_ref())
        {
            self.queue.schedule(later.at, Timer::Verdict(object));
        }
    }

    /// Time has made another verdict of the one on an object, perhaps.
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
mod elsewhere;
#[cfg(test)]
mod tests;
