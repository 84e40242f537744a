//! A cluster that is watched, with the clusters that its BindingPolicies select: groups are evaluated as objects change.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    mem,
    sync::Arc,
    time::Duration,
};

use bellwether_engine::{
    Cluster, ClusterEvent, ClusterSource, ClusterSources, Event, FeedEvent, FeedId, Group, GroupKind,
    GroupRef, Lens, NamespacedName, ServedResource, Unreadable,
};
use bellwether_kube_io::{
    client::Connection,
    read::{Reader, ReaderSettings},
};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{
    ListedObject, Observation, drop_invented_times,
    evaluator::{EvaluationScope, Evaluator},
    kind_request::KindRequest,
    listed_objects,
    named_clusters::{ClusterProblem, NamedCluster},
    origin::Origin,
    stored_clusters::{StoredClusters, combined_status, requested},
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

/// How long to wait for a cluster at the start, so that it cannot hold back the others.
const PATIENCE: SignedDuration = SignedDuration::from_secs(10);

/// How often to ask a cluster whether it still responds: one without changes sends next to nothing.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// An evaluator with its reflectors.
struct Watcher {
    evaluator: Evaluator,
    readers: BTreeMap<Cluster, LiveReader>,
    groups: BTreeMap<(NamespacedName, GroupKind), Group>,
}

impl Watcher {
    /// Evaluates the groups that may have changed. Times between `begun` and `synced` are dropped.
    fn evaluate_changed(&mut self, now: Timestamp, begun: Timestamp, synced: Timestamp) {
        let changed = self.evaluator.take_changed();
        let mut found = Vec::new();
        // What changes in other clusters is not reported for the groups.
        if self.readers.len() > 1 || changed.iter().any(|(_, name)| name.is_none()) {
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

impl Watcher {
    /// Where no cluster is named, the controller has read the clusters.
    fn add_stored_clusters(&mut self) {
        let listed = self.evaluator.engine.objects(&combined_status()).and_then(Result::ok);
        let stored = StoredClusters::of(listed.into_iter().flatten().map(|(_, facts)| facts));
        for group in self.groups.values_mut() {
            stored.add_to(group);
        }
    }
}

/// Reads one cluster for one engine.
enum LiveReader {
    ApiServer(Box<Reader<EngineFeed>>),
    /// Files do not change: they are listed once.
    Files,
}

/// The feeds of one engine in one cluster.
struct EngineFeeds<'l> {
    index: usize,
    reader: &'l mut LiveReader,
    /// Set for files.
    origin: Option<&'l Origin>,
    /// A named cluster that has not responded yet.
    is_unread: bool,
    /// What files have, and which kinds cannot be read yet, for the next step.
    listed: &'l RefCell<Vec<(EngineFeed, FeedEvent)>>,
}

impl ClusterSource for EngineFeeds<'_> {
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
        let id = EngineFeed(self.index, feed);
        match (&mut *self.reader, self.origin) {
            (LiveReader::ApiServer(reader), _) => {
                reader.follow(id, kind.clone(), lens);
                let unread = FeedEvent::Unreadable(Unreadable::NotConnected);
                self.listed.borrow_mut().extend(self.is_unread.then_some((id, unread)));
            }
            (LiveReader::Files, Some(Origin::Files(files))) => {
                let listed = files.list(vec![KindRequest { kind: kind.clone(), lens }]);
                let events = listed.into_iter().flat_map(|(_, events)| events);
                self.listed.borrow_mut().extend(events.map(|event| (id, event)));
            }
            (LiveReader::Files, _) => {}
        }
    }

    fn leave(&mut self, feed: FeedId) {
        if let LiveReader::ApiServer(reader) = &mut *self.reader {
            reader.leave(EngineFeed(self.index, feed));
        }
    }

    fn served(&self, kind: &GroupKind) -> Option<ServedResource> {
        match &*self.reader {
            LiveReader::ApiServer(reader) => reader.served(kind),
            LiveReader::Files => self.origin?.served(kind),
        }
    }
}

pub struct LiveObservation<'o> {
    /// One for each scope.
    watchers: Vec<Watcher>,
    clusters: &'o [NamedCluster],
    unread_clusters: &'o [ClusterProblem],
    events: mpsc::Receiver<(EngineFeed, FeedEvent)>,
    listed_files: RefCell<Vec<(EngineFeed, FeedEvent)>>,
    /// When the clusters responded to a probe.
    responded: mpsc::UnboundedReceiver<(Cluster, Timestamp)>,
    /// Ends with the observation.
    _probes: JoinSet<()>,
    /// Kinds to list beside the groups.
    listed: BTreeSet<GroupKind>,
    begun: Timestamp,
    /// When all kinds were listed for the first time.
    synced: Option<Timestamp>,
}

impl<'o> LiveObservation<'o> {
    /// Starts to watch the groups of these scopes and their members. A named cluster that could not be read at first is
    /// probed, and read as soon as it responds.
    ///
    /// # Panics
    ///
    /// If it is called outside of a Tokio runtime.
    pub async fn start(observation: &'o Observation, client: &Client, scopes: Vec<EvaluationScope>) -> Self {
        let clusters = &*observation.clusters;
        let (sender, events) = mpsc::channel(CAPACITY);
        let (responses, responded) = mpsc::unbounded_channel();
        let mut probes = JoinSet::new();
        let mut connections = BTreeMap::new();
        for cluster in clusters {
            if let Some(connection) = cluster.connection().await {
                let (answers, answered) = watch::channel(cluster.origin.is_ok());
                connections.insert(&cluster.name, (connection.client.clone(), answered));
                probes.spawn(probe(cluster.name.clone(), connection, answers, responses.clone()));
            }
        }
        let watcher = |scope: EvaluationScope| {
            let settings = ReaderSettings { namespace: scope.namespace.clone(), ..ReaderSettings::default() };
            let clusters = clusters.iter().filter(|_| scope.reads_clusters());
            let of_clusters = clusters.filter_map(|cluster| {
                let reader = match connections.get(&cluster.name) {
                    Some((client, answered)) => {
                        let (client, mut answered) = (client.clone(), answered.clone());
                        let answered = async move { drop(answered.wait_for(|answered| *answered).await) };
                        let settings = ReaderSettings::default();
                        let reader = Reader::start_after(answered, client, settings, sender.clone());
                        LiveReader::ApiServer(Box::new(reader))
                    }
                    None if cluster.origin.is_ok() => LiveReader::Files,
                    None => return None,
                };
                Some((cluster.name.clone(), reader))
            });
            let hub = Reader::start(client.clone(), settings, sender.clone());
            let hub = (Cluster::hub(), LiveReader::ApiServer(Box::new(hub)));
            let readers = of_clusters.chain([hub]).collect();
            Watcher { evaluator: Evaluator::new(scope), readers, groups: BTreeMap::new() }
        };
        let mut live = Self {
            watchers: scopes.into_iter().map(watcher).collect(),
            clusters,
            unread_clusters: &observation.notes.unread_clusters,
            events,
            listed_files: RefCell::default(),
            responded,
            _probes: probes,
            listed: BTreeSet::new(),
            begun: Timestamp::now(),
            synced: None,
        };
        let now = live.begun;
        for index in 0..live.watchers.len() {
            live.with_evaluator(index, |evaluator, feeds| {
                evaluator.start(now, feeds);
                let announcements = clusters.iter().flat_map(|cluster| cluster.announcement(now));
                evaluator.announce(now, observation.origin.discovered(), announcements, feeds);
                if clusters.is_empty() {
                    evaluator.engine.keep_with(&combined_status(), &requested());
                    evaluator.step(now, Vec::new(), feeds);
                }
            });
        }
        live
    }

    /// Waits for a change, at most for a second, and evaluates the groups that may have changed.
    pub async fn changed(&mut self) {
        let mut batch = mem::take(self.listed_files.get_mut());
        if timeout(TICK, self.events.recv_many(&mut batch, BATCH)).await.is_ok() {
            sleep(BURST).await;
            while batch.len() < CAPACITY
                && let Ok(event) = self.events.try_recv()
            {
                batch.push(event);
            }
        }
        self.step(batch);
        self.report_connections();
        let (now, begun, synced) = (Timestamp::now(), self.begun, self.synced.unwrap_or(Timestamp::MAX));
        for watcher in &mut self.watchers {
            watcher.evaluate_changed(now, begun, synced);
            if self.clusters.is_empty() {
                watcher.add_stored_clusters();
            }
        }
        if let [watcher, other] = &mut *self.watchers
            && other.evaluator.scope.reads_clusters()
        {
            for group in watcher.groups.values_mut() {
                group.clusters = None;
                other.evaluator.engine.add_clusters(group);
            }
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

    fn with_evaluator(
        &mut self,
        index: usize,
        act: impl FnOnce(&mut Evaluator, &mut ClusterSources<EngineFeeds<'_>>),
    ) {
        let Some(Watcher { evaluator, readers, .. }) = self.watchers.get_mut(index) else { return };
        let (mut sources, listed) = (ClusterSources::default(), &self.listed_files);
        for (name, reader) in readers {
            let named = self.clusters.iter().find(|cluster| cluster.name == *name);
            let origin = named.and_then(|cluster| cluster.origin.as_ref().ok());
            let has_responded = evaluator.engine.cluster(name).is_some_and(|it| it.last_heard.is_some());
            let is_unread = named.is_some() && origin.is_none() && !has_responded;
            sources.insert(name.clone(), EngineFeeds { index, reader, origin, is_unread, listed });
        }
        act(evaluator, &mut sources);
    }

    /// Reports to the engines whether the clusters are connected, and when they last responded.
    fn report_connections(&mut self) {
        let now = Timestamp::now();
        let mut probed = Vec::new();
        while let Ok(response) = self.responded.try_recv() {
            probed.push(response);
        }
        for index in 0..self.watchers.len() {
            self.with_evaluator(index, |evaluator, sources| {
                let mut events = Vec::new();
                for (cluster, feeds) in sources.iter_mut() {
                    let (heard, connection) = match feeds.reader {
                        LiveReader::ApiServer(reader) => {
                            let counters = reader.counters();
                            let probed = probed.iter().filter(|(of, _)| of == cluster).map(|(_, at)| *at);
                            (probed.chain(counters.last_response()).max(), counters.connection())
                        }
                        LiveReader::Files => (Some(now), None),
                    };
                    // A response that is older than a probe before it changes nothing.
                    let known = evaluator.engine.cluster(cluster).and_then(|status| status.last_heard);
                    let heard = heard.max(known).map(ClusterEvent::Heard);
                    let own = heard.into_iter().chain(connection);
                    events.extend(own.map(|event| Event::Cluster(cluster.clone(), event)));
                }
                evaluator.step(now, events, sources);
            });
        }
    }

    /// Since when the API server has not responded, if it is out of touch.
    pub fn silent_since(&self) -> Option<Timestamp> {
        let hubs =
            self.watchers.iter().filter_map(|watcher| watcher.evaluator.engine.cluster(&Cluster::hub()));
        hubs.filter_map(|hub| hub.unreachable_since(Timestamp::now())).min()
    }

    /// Whether all kinds are listed, and no relist is in progress. A named cluster has some time to answer; then it is
    /// stale.
    pub fn is_synced(&self) -> bool {
        let is_late = self.begun.duration_until(Timestamp::now()) > PATIENCE;
        self.watchers.iter().all(|Watcher { evaluator, readers, .. }| {
            let mut clusters = readers.keys();
            clusters.all(|cluster| evaluator.engine.is_consistent_in(cluster) || is_late && !cluster.is_hub())
        })
    }

    /// Of the named clusters that have not responded since the start. Files do not change.
    pub fn unread_clusters(&self) -> impl Iterator<Item = &ClusterProblem> {
        let has_responded = |cluster: &Cluster| {
            self.watchers.iter().any(|Watcher { evaluator, readers, .. }| {
                let heard = evaluator.engine.cluster(cluster).and_then(|status| status.last_heard);
                matches!(readers.get(cluster), Some(LiveReader::ApiServer(_))) && heard > Some(self.begun)
            })
        };
        self.unread_clusters.iter().filter(move |problem| !has_responded(&problem.cluster))
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

/// Reports when a cluster responds, until the observation ends.
async fn probe(
    cluster: Cluster,
    connection: Connection,
    answers: watch::Sender<bool>,
    responses: mpsc::UnboundedSender<(Cluster, Timestamp)>,
) {
    loop {
        sleep(PROBE_INTERVAL).await;
        let is_there = matches!(timeout(PROBE_INTERVAL, connection.check()).await, Ok(Ok(())));
        if is_there {
            answers.send_replace(true);
            if responses.send((cluster.clone(), Timestamp::now())).is_err() {
                return;
            }
        }
    }
}
