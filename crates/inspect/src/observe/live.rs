//! A cluster that is watched: groups are evaluated as objects change.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use bellwether_engine::{
    Cluster, ClusterEvent, ClusterSource, Event, FeedEvent, FeedId, Group, GroupKind, GroupRef, Lens,
    NamespacedName, ServedResource,
};
use bellwether_kube_io::read::{Reader, ReaderSettings};
use jiff::Timestamp;
use kube::Client;
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use super::{
    ListedObject, drop_invented_times,
    evaluator::{EvaluationScope, Evaluator},
    listed_objects,
};

/// Of the channel from the reflectors.
const CAPACITY: usize = 4096;

/// Events in one receive.
const BATCH: usize = 1024;

/// How long to collect more events after the first: changes come in bursts.
const BURST: Duration = Duration::from_millis(100);

/// How often to evaluate without an event: durations and verdicts depend on the time.
const TICK: Duration = Duration::from_secs(1);

/// A feed of the engine of this index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct EngineFeed(usize, FeedId);

/// An evaluator with its reflectors.
struct Watcher {
    evaluator: Evaluator,
    reader: Reader<EngineFeed>,
    groups: BTreeMap<(NamespacedName, GroupKind), Group>,
}

impl Watcher {
    /// Evaluates the groups that may have changed. Times between `begun` and `synced` are dropped.
    fn evaluate_changed(&mut self, now: Timestamp, begun: Timestamp, synced: Timestamp) {
        let changed = self.evaluator.take_changed();
        let mut found = Vec::new();
        if changed.iter().any(|(_, name)| name.is_none()) {
            self.groups.clear();
            found = self.evaluator.groups(now);
        } else {
            for (kind, name) in changed.into_iter().filter_map(|(kind, name)| Some((kind, name?))) {
                self.groups.remove(&(name.clone(), kind.kind()));
                found.extend(self.evaluator.group(now, &GroupRef::new(kind, name)));
            }
        }
        drop_invented_times(&mut found, begun, synced);
        self.groups.extend(found.into_iter().map(|group| ((group.name.clone(), group.kind.clone()), group)));
    }
}

/// The feeds of one engine, among all that a reader has.
struct EngineFeeds<'l> {
    index: usize,
    reader: &'l mut Reader<EngineFeed>,
}

impl ClusterSource for EngineFeeds<'_> {
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
        self.reader.follow(EngineFeed(self.index, feed), kind.clone(), lens);
    }

    fn leave(&mut self, feed: FeedId) {
        self.reader.leave(EngineFeed(self.index, feed));
    }

    fn served(&self, kind: &GroupKind) -> Option<ServedResource> {
        self.reader.served(kind)
    }
}

pub struct LiveObservation {
    /// One for each scope.
    watchers: Vec<Watcher>,
    events: mpsc::Receiver<(EngineFeed, FeedEvent)>,
    /// Kinds to list beside the groups.
    listed: BTreeSet<GroupKind>,
    begun: Timestamp,
    /// When all kinds were listed for the first time.
    synced: Option<Timestamp>,
}

impl LiveObservation {
    /// Starts to watch the groups of these scopes and their members.
    ///
    /// # Panics
    ///
    /// If it is called outside of a Tokio runtime.
    pub fn start(client: &Client, scopes: Vec<EvaluationScope>) -> Self {
        let (sender, events) = mpsc::channel(CAPACITY);
        let watcher = |scope: EvaluationScope| {
            let settings = ReaderSettings { namespace: scope.namespace.clone(), ..ReaderSettings::default() };
            let reader = Reader::start(client.clone(), settings, sender.clone());
            Watcher { evaluator: Evaluator::new(scope), reader, groups: BTreeMap::new() }
        };
        let mut live = Self {
            watchers: scopes.into_iter().map(watcher).collect(),
            events,
            listed: BTreeSet::new(),
            begun: Timestamp::now(),
            synced: None,
        };
        for index in 0..live.watchers.len() {
            live.with_evaluator(index, |evaluator, feeds| evaluator.start(Timestamp::now(), feeds));
        }
        live
    }

    /// Waits for a change, at most for a second, and evaluates the groups that may have changed.
    pub async fn changed(&mut self) {
        let mut batch = Vec::new();
        if timeout(TICK, self.events.recv_many(&mut batch, BATCH)).await.is_ok() {
            sleep(BURST).await;
            while batch.len() < CAPACITY
                && let Ok(event) = self.events.try_recv()
            {
                batch.push(event);
            }
        }
        self.step(batch);
        self.report_connection();
        let (now, begun, synced) = (Timestamp::now(), self.begun, self.synced.unwrap_or(Timestamp::MAX));
        for watcher in &mut self.watchers {
            watcher.evaluate_changed(now, begun, synced);
        }
    }

    fn step(&mut self, batch: Vec<(EngineFeed, FeedEvent)>) {
        let mut of_engines: Vec<_> = self.watchers.iter().map(|_| Vec::new()).collect();
        for (EngineFeed(index, feed), event) in batch {
            if let Some(events) = of_engines.get_mut(index) {
                events.push((feed, event));
            }
        }
        let now = Timestamp::now();
        for (index, events) in of_engines.into_iter().enumerate() {
            self.with_evaluator(index, |evaluator, feeds| evaluator.apply(now, events, feeds));
        }
        if self.synced.is_none() && self.is_synced() {
            self.synced = Some(now);
        }
    }

    fn with_evaluator(&mut self, index: usize, act: impl FnOnce(&mut Evaluator, &mut EngineFeeds<'_>)) {
        let Some(Watcher { evaluator, reader, .. }) = self.watchers.get_mut(index) else { return };
        act(evaluator, &mut EngineFeeds { index, reader });
    }

    /// Reports to the engines whether the cluster is connected, and when it last responded.
    fn report_connection(&mut self) {
        for index in 0..self.watchers.len() {
            self.with_evaluator(index, |evaluator, feeds| {
                let counters = feeds.reader.counters();
                let heard = counters.last_response().map(ClusterEvent::Heard);
                let events = heard.into_iter().chain(counters.connection());
                let events = events.map(|event| Event::Cluster(Cluster::hub(), event)).collect();
                evaluator.step(Timestamp::now(), events, feeds);
            });
        }
    }

    /// Since when the API server has not responded, if it is out of touch.
    pub fn silent_since(&self) -> Option<Timestamp> {
        let hubs =
            self.watchers.iter().filter_map(|watcher| watcher.evaluator.engine.cluster(&Cluster::hub()));
        hubs.filter_map(|hub| hub.unreachable_since(Timestamp::now())).min()
    }

    /// Whether all kinds are listed, and no relist is in progress.
    pub fn is_synced(&self) -> bool {
        self.watchers.iter().all(|watcher| watcher.evaluator.engine.is_consistent())
    }

    /// By name within each scope.
    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.watchers.iter().flat_map(|watcher| watcher.groups.values())
    }

    pub fn group(&self, kind: &GroupKind, name: &NamespacedName) -> Option<&Group> {
        let key = (name.clone(), kind.clone());
        self.watchers.iter().find_map(|watcher| watcher.groups.get(&key))
    }

    /// Watches these kinds as well, in the first scope.
    pub fn also_watch(&mut self, kinds: Vec<GroupKind>) {
        let kinds: Vec<_> = kinds.into_iter().filter(|kind| self.listed.insert(kind.clone())).collect();
        self.with_evaluator(0, |evaluator, feeds| {
            for kind in &kinds {
                evaluator.engine.keep(kind);
            }
            evaluator.step(Timestamp::now(), Vec::new(), feeds);
        });
    }

    /// The objects of the kinds given to [`Self::also_watch`], with their verdicts of now.
    pub fn listed(&self) -> Vec<ListedObject> {
        let Some(Watcher { evaluator, .. }) = self.watchers.first() else { return Vec::new() };
        self.listed.iter().flat_map(|kind| listed_objects(&evaluator.engine, kind)).collect()
    }
}
