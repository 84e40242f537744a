//! A cluster that is watched: groups are evaluated as objects change.

use std::{
    collections::{BTreeMap, HashMap},
    mem,
    sync::Arc,
    time::Duration,
};

use bellwether_engine::{
    Cluster, ClusterEvent, ClusterSource, Event, Facts, FeedEvent, FeedId, Group, GroupKind, GroupRef, Lens,
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
};

/// Of the channel from the reflectors.
const CAPACITY: usize = 4096;

/// Events in one receive.
const BATCH: usize = 1024;

/// How long to collect more events after the first: changes come in bursts.
const BURST: Duration = Duration::from_millis(100);

/// How often to evaluate without an event: durations and verdicts depend on the time.
const TICK: Duration = Duration::from_secs(1);

/// What a reflector reads for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum FeedUser {
    /// A feed of the engine of this index.
    Engine(usize, FeedId),
    /// A kind of `LiveObservation::listed`, by index.
    Listed(usize),
}

/// An evaluator with its reflectors.
struct Watcher {
    evaluator: Evaluator,
    reader: Reader<FeedUser>,
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
    reader: &'l mut Reader<FeedUser>,
}

impl ClusterSource for EngineFeeds<'_> {
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
        self.reader.follow(FeedUser::Engine(self.index, feed), kind.clone(), lens);
    }

    fn leave(&mut self, feed: FeedId) {
        self.reader.leave(FeedUser::Engine(self.index, feed));
    }

    fn served(&self, kind: &GroupKind) -> Option<ServedResource> {
        self.reader.served(kind)
    }
}

/// A kind that is watched in addition to those of the engine.
struct ListedKind {
    kind: GroupKind,
    lens: Arc<Lens>,
    objects: HashMap<NamespacedName, Facts>,
    /// The objects of a list that is not complete yet.
    listing: Option<HashMap<NamespacedName, Facts>>,
}

pub struct LiveObservation {
    /// One for each scope.
    watchers: Vec<Watcher>,
    events: mpsc::Receiver<(FeedUser, FeedEvent)>,
    /// Addressed by index: only appended to.
    listed: Vec<ListedKind>,
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
            listed: Vec::new(),
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

    fn step(&mut self, batch: Vec<(FeedUser, FeedEvent)>) {
        let mut of_engines: Vec<_> = self.watchers.iter().map(|_| Vec::new()).collect();
        for (user, event) in batch {
            match user {
                FeedUser::Engine(index, feed) => {
                    if let Some(events) = of_engines.get_mut(index) {
                        events.push((feed, event));
                    }
                }
                FeedUser::Listed(index) => {
                    if let Some(listed) = self.listed.get_mut(index) {
                        listed.apply(event);
                    }
                }
            }
        }
        let now = Timestamp::now();
        for (index, events) in of_engines.into_iter().enumerate() {
            self.with_evaluator(index, |evaluator, feeds| evaluator.apply(now, events, feeds));
        }
        self.update_lenses();
        if self.synced.is_none() && self.is_synced() {
            self.synced = Some(now);
        }
    }

    fn with_evaluator(&mut self, index: usize, act: impl FnOnce(&mut Evaluator, &mut EngineFeeds<'_>)) {
        let Some(Watcher { evaluator, reader, .. }) = self.watchers.get_mut(index) else { return };
        act(evaluator, &mut EngineFeeds { index, reader });
    }

    /// Lists a kind again if the rules for it have changed.
    fn update_lenses(&mut self) {
        let Some(Watcher { evaluator, reader, .. }) = self.watchers.first_mut() else { return };
        for (index, listed) in self.listed.iter_mut().enumerate() {
            let lens = evaluator.engine.lens(&listed.kind);
            if *listed.lens != lens {
                listed.lens = Arc::new(lens);
                reader.follow(FeedUser::Listed(index), listed.kind.clone(), Arc::clone(&listed.lens));
            }
        }
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
        let Some(Watcher { evaluator, reader, .. }) = self.watchers.first_mut() else { return };
        for kind in kinds {
            if !self.listed.iter().any(|listed| listed.kind == kind) {
                let lens = Arc::new(evaluator.engine.lens(&kind));
                reader.follow(FeedUser::Listed(self.listed.len()), kind.clone(), Arc::clone(&lens));
                self.listed.push(ListedKind { kind, lens, objects: HashMap::new(), listing: None });
            }
        }
    }

    /// The objects of the kinds given to [`Self::also_watch`].
    pub fn listed(&self) -> Vec<ListedObject> {
        let of_kind = |listed: &ListedKind| {
            let object = |(name, facts): (&NamespacedName, &Facts)| ListedObject {
                kind: listed.kind.clone(),
                name: name.clone(),
                facts: facts.clone(),
            };
            listed.objects.iter().map(object).collect::<Vec<_>>()
        };
        self.listed.iter().flat_map(of_kind).collect()
    }
}

impl ListedKind {
    fn apply(&mut self, event: FeedEvent) {
        match event {
            FeedEvent::ListStarted => self.listing = Some(HashMap::new()),
            FeedEvent::Applied(name, object) => {
                self.listing.as_mut().unwrap_or(&mut self.objects).insert(name, object.facts);
            }
            FeedEvent::Deleted(name) => {
                self.listing.as_mut().unwrap_or(&mut self.objects).remove(&name);
            }
            // Objects that the list does not name were deleted. Until it is complete, the old ones stay.
            FeedEvent::ListCompleted => self.objects = mem::take(&mut self.listing).unwrap_or_default(),
            FeedEvent::Unreadable(_) => {
                self.objects = HashMap::new();
                self.listing = None;
            }
            FeedEvent::Served(_) | FeedEvent::Restored => {}
        }
    }
}
