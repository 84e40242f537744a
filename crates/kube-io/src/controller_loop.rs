//! The event loop of the controller: passes events to the engine and carries out its effects.

use std::{
    collections::{BTreeSet, HashMap},
    future::{Future, pending},
    sync::Arc,
    time::Duration,
};

use bellwether_engine::{
    Cluster, ClusterEvent, ClusterSource as _, ClusterSources, Driver, Effect, Engine, Event, FeedEvent,
    FeedId, GroupKind, GroupStatus, NamespacedName, NoSource, Now, Outcome, SINGLETON_LABEL, Slot,
    Transition, Warning, Write,
};
use bellwether_wire::Attempt;
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use tokio::{
    sync::{mpsc, watch},
    task::{Id, JoinError, JoinSet},
    time::{Instant, sleep, timeout},
};
use tracing::{debug, error, info, warn};

use crate::{
    bound_objects::BoundObjects,
    clock::now,
    connected_cluster::{ConnectedCluster, EventSenders, Generation},
    inventory::{Inventory, InventoryChange, InventorySettings},
    labelled_kinds::{LabelledKinds, SearchScope},
    leader_election::Leadership,
    metrics::Metrics,
    read::ReaderSettings,
    status_queries::{StatusHandle, StatusQueries},
    write::{REQUEST_TIMEOUT, Recorder, WriteResult, perform},
};

/// A full queue blocks the reflectors, and so the watches.
const QUEUE_SIZE: usize = 4096;

/// The upper bound of events in one engine step.
const BATCH_SIZE: usize = 1024;

const MAX_WRITES_IN_FLIGHT: usize = 16;

const LIVENESS_INTERVAL: Duration = Duration::from_secs(1);

/// A change of the wall clock or a silent cluster is detected after this time if nothing else happens.
const MAX_PAUSE: Duration = Duration::from_secs(15);

const STATS_INTERVAL: Duration = Duration::from_secs(1);

pub struct ControllerLoop {
    driver: Driver,
    clusters: ClusterSources<ConnectedCluster>,
    cluster_events: mpsc::Receiver<(Cluster, Generation, ClusterEvent)>,
    /// For the clusters of the inventory.
    senders: EventSenders,
    /// `None` without further clusters.
    inventory: Option<Inventory>,
    /// Kinds with objects whose status an earlier process wrote.
    singletons: Option<mpsc::Receiver<GroupKind>>,
    /// Of the last connected cluster.
    generation: Generation,
    /// How many clusters of the inventory are connected.
    remote_clusters: usize,
    liveness_checked: Instant,
    feed_events: mpsc::Receiver<(FeedId, FeedEvent)>,
    writes: JoinSet<(WriteResult, Duration)>,
    /// Clusters without a connection for which an error was logged.
    unconnected: BTreeSet<Cluster>,
    in_flight: HashMap<Id, (Slot, Write)>,
    recorder: Recorder,
    leadership: watch::Receiver<Leadership>,
    /// Changes when the Lease shows that the hub was restored from a backup.
    restored: Option<watch::Receiver<u64>>,
    queries: StatusQueries,
    metrics: Arc<Metrics>,
    stats_updated: Instant,
    /// Whether something has happened since the statistics were updated.
    stats_due: bool,
}

impl ControllerLoop {
    /// `client` is for the hub. Reading starts at once.
    pub fn new(
        engine: Engine,
        client: Client,
        settings: ReaderSettings,
        leadership: watch::Receiver<Leadership>,
        recorder: Recorder,
    ) -> Self {
        let (feeds, feed_events) = mpsc::channel(QUEUE_SIZE);
        let (clusters, cluster_events) = mpsc::channel(QUEUE_SIZE);
        let senders = EventSenders { feeds, clusters };
        let hub = ConnectedCluster::hub(client, settings, senders.clone());
        let generation = hub.generation;
        let metrics = Arc::new(Metrics::new(Arc::clone(hub.reader.counters())));
        Self {
            driver: Driver::new(engine, MAX_WRITES_IN_FLIGHT),
            clusters: ClusterSources::hub(hub),
            cluster_events,
            senders,
            inventory: None,
            singletons: None,
            generation,
            remote_clusters: 0,
            liveness_checked: Instant::now(),
            feed_events,
            writes: JoinSet::new(),
            unconnected: BTreeSet::new(),
            in_flight: HashMap::new(),
            recorder,
            leadership,
            restored: None,
            queries: StatusQueries::new(),
            metrics,
            stats_updated: Instant::now(),
            stats_due: true,
        }
    }

    /// Relists all kinds of the hub when this value changes: the hub was restored from a backup.
    pub fn relist_on(&mut self, restored: watch::Receiver<u64>) {
        self.restored = Some(restored);
    }

    /// Also reads the clusters of the inventory, which come and go.
    pub fn start_inventory(&mut self, settings: InventorySettings) {
        if let Ok(hub) = self.clusters.get(&Cluster::hub()) {
            let (client, kinds) = (hub.client.clone(), hub.reader.kinds());
            // All clusters may have gone while no process ran.
            self.find_singletons(SearchScope::Patchable { namespace: settings.namespace.clone() });
            self.inventory = Some(Inventory::start(client, kinds, settings));
        }
    }

    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    pub fn handle(&self) -> StatusHandle {
        self.queries.handle()
    }

    /// `None` without a connection to the hub, which there always is.
    pub fn bound_objects(&self) -> Option<BoundObjects> {
        let hub = self.clusters.get(&Cluster::hub()).ok()?;
        Some(BoundObjects::new(self.handle(), hub.client.clone(), hub.reader.kinds()))
    }

    /// Subscribes to the status of a group.
    pub fn follow(&mut self, kind: GroupKind, name: NamespacedName) -> watch::Receiver<GroupStatus> {
        self.queries.follow(kind, name)
    }

    /// Runs until `stop` completes or the leadership channel closes, then waits for the writes in flight.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let mut batch = Vec::with_capacity(BATCH_SIZE);
        self.step([]);
        loop {
            if self.liveness_checked.elapsed() >= LIVENESS_INTERVAL {
                self.check_liveness();
            }
            self.write();
            let pause = self.pause();
            tokio::select! {
                () = &mut stop => break,
                count = self.feed_events.recv_many(&mut batch, BATCH_SIZE) => {
                    // The loop keeps a sender.
                    debug_assert!(count > 0);
                    self.step(batch.drain(..).map(|(feed, event)| Event::Feed(feed, event)));
                }
                Some(ended) = self.writes.join_next_with_id() => self.written(ended),
                Some((cluster, generation, event)) = self.cluster_events.recv() => {
                    if self.clusters.get(&cluster).is_ok_and(|connected| connected.generation == generation) {
                        self.step([Event::Cluster(cluster, event)]);
                    }
                }
                change = next_inventory_change(&mut self.inventory) => self.inventory_changed(change),
                kind = next_singleton_kind(&mut self.singletons) => self.step([Event::SingletonKind(kind)]),
                Some(query) = self.queries.query() => {
                    self.check_liveness();
                    // The engine learns of a changed wall clock before it answers.
                    let now = self.tick();
                    query.answer(&self.driver, &self.clusters, now.time);
                }
                changed = self.leadership.changed() => if changed.is_err() { break },
                () = next_change(&mut self.restored) => {
                    if let Ok(hub) = self.clusters.get(&Cluster::hub()) {
                        hub.reader.restored();
                    }
                }
                () = sleep(pause) => {
                    self.tick();
                    self.stats_due = true;
                }
            }
            self.update_stats();
        }
        self.queries.close();
        let writes_in_flight = async {
            while let Some(ended) = self.writes.join_next_with_id().await {
                self.written(ended);
            }
        };
        let _ = timeout(REQUEST_TIMEOUT, writes_in_flight).await;
        self.recorder.finish(REQUEST_TIMEOUT).await;
    }

    fn inventory_changed(&mut self, change: InventoryChange) {
        match change {
            InventoryChange::Added { cluster, metadata, access } => {
                if self.generation == Generation(0) {
                    self.find_singletons(SearchScope::All);
                }
                let Some(Inventory { remote, .. }) = &self.inventory else { return };
                self.generation.0 += 1;
                // Without credentials, it will not answer.
                let connecting =
                    access.is_none().then(|| Event::Cluster(cluster.clone(), ClusterEvent::Connecting));
                let senders = self.senders.clone();
                let connected =
                    ConnectedCluster::remote(cluster.clone(), self.generation, access, remote, senders);
                self.metrics.connected(cluster.clone(), Arc::clone(connected.reader.counters()));
                if self.clusters.insert(cluster.clone(), connected).is_none() {
                    self.remote_clusters += 1;
                }
                let metadata = ClusterEvent::Metadata(metadata);
                let added =
                    [Event::Cluster(cluster.clone(), ClusterEvent::Added), Event::Cluster(cluster, metadata)];
                self.step(added.into_iter().chain(connecting));
            }
            InventoryChange::Listed => self.step([Event::InventoryListed]),
            InventoryChange::Metadata(cluster, metadata) => {
                self.step([Event::Cluster(cluster, ClusterEvent::Metadata(metadata))]);
            }
            InventoryChange::Access(cluster, access) => {
                if let Ok(connected) = self.clusters.get(&cluster) {
                    connected.set_access(access);
                }
            }
            InventoryChange::Removed(cluster) => {
                if self.clusters.remove(&cluster).is_some() {
                    self.remote_clusters -= 1;
                }
                self.metrics.disconnected(&cluster);
                self.unconnected.remove(&cluster);
                self.step([Event::Cluster(cluster, ClusterEvent::Removed)]);
            }
        }
    }

    /// Ends an earlier search.
    fn find_singletons(&mut self, scope: SearchScope) {
        let Ok(hub) = self.clusters.get(&Cluster::hub()) else { return };
        let (found, receiver) = mpsc::channel(64);
        let search = LabelledKinds {
            scope,
            client: hub.client.clone(),
            kinds: hub.reader.kinds(),
            required: GroupKind::bellwether("BindingPolicy"),
            selector: format!("{SINGLETON_LABEL}=true"),
            found: found.clone(),
        };
        tokio::spawn(async move {
            tokio::select! {
                () = search.find() => {}
                () = found.closed() => {}
            }
        });
        self.singletons = Some(receiver);
    }

    fn step(&mut self, events: impl IntoIterator<Item = Event>) {
        let (begun, now) = (Instant::now(), now());
        let mut count = 0;
        let events = events.into_iter().inspect(|_| count += 1);
        let effects = self.driver.step(now, events);
        self.apply_effects(effects);
        self.metrics.stepped(count, begun.elapsed().as_secs_f64());
    }

    fn tick(&mut self) -> Now {
        let now = now();
        let effects = self.driver.tick(now);
        if !effects.is_empty() {
            self.apply_effects(effects);
        }
        now
    }

    fn check_liveness(&mut self) {
        let events = self.clusters.iter_mut().flat_map(|(cluster, connected)| {
            connected.liveness_events().into_iter().map(|event| Event::Cluster(cluster.clone(), event))
        });
        let events: Vec<_> = events.collect();
        self.liveness_checked = Instant::now();
        if !events.is_empty() {
            let effects = self.driver.step(now(), events);
            self.apply_effects(effects);
        }
    }

    fn apply_effects(&mut self, effects: Vec<Effect>) {
        let now = now();
        for effect in &effects {
            if let Effect::Follow { cluster, kind, .. } = effect
                && let Err(NoSource(cluster)) = self.clusters.get(cluster)
            {
                error!(%kind, cluster = cluster.name(), "cannot watch kind: cluster not connected");
            }
        }
        let effects = self.clusters.route(effects, |unreadable| self.driver.step(now, unreadable));
        for effect in effects {
            match effect {
                Effect::Changed(kind, name) => {
                    self.queries.notify(&self.driver, now.time, kind, name.as_ref());
                }
                Effect::Record(transition) => {
                    let Transition { object, subject, from, to, reason, message, .. } = &transition;
                    info!(
                        object = object.to_string(),
                        subject,
                        from,
                        to,
                        %reason,
                        cause = &**message,
                        "{}",
                        // One that lasts may be recorded again, as a Warning.
                        if *from == Some(*to) { "state lasts" } else { "transition" }
                    );
                    // A new leader may have recorded the same Event: rather none than two.
                    if self.leadership.borrow().leads_at(std::time::Instant::now()) {
                        self.recorder.record(transition);
                    }
                }
                Effect::Warn(warning) => {
                    let Warning { object, reason, message, .. } = &warning;
                    warn!(object = object.to_string(), reason, cause = &**message, "warning recorded");
                    if self.leadership.borrow().leads_at(std::time::Instant::now()) {
                        self.recorder.record(warning);
                    }
                }
                // Carried out by the sources (the first two) and by the driver.
                Effect::Follow { .. } | Effect::Leave { .. } | Effect::EnqueueWrite(..) | Effect::Wake(_) => {
                }
            }
        }
        self.stats_due = true;
    }

    /// Starts the writes that are due, if this process leads.
    fn write(&mut self) {
        // Writes end before the Lease expires, so that none is in flight when another process leads.
        let left = self.leadership.borrow_and_update().time_left(std::time::Instant::now());
        let (leading, within) = (left.is_some(), left.unwrap_or_default().min(REQUEST_TIMEOUT));
        for (slot, write) in self.driver.write(now(), leading) {
            let cluster = self.clusters.get(&slot.object.cluster);
            if let Err(NoSource(cluster)) = &cluster
                && self.unconnected.insert(cluster.clone())
            {
                error!(cluster = cluster.name(), "cannot write: cluster not connected");
            }
            let target = cluster.map(|cluster| (cluster.client.clone(), cluster.served(&slot.object.kind)));
            let in_flight = (slot.clone(), write.clone());
            let task = self.writes.spawn(async move {
                let begun = Instant::now();
                let done = match target {
                    Ok((client, Some(served))) => {
                        perform(&client, Attempt::new(served, slot, write), within).await
                    }
                    Ok((_, None)) => Outcome::Failed("kind not served".into()).into(),
                    Err(error) => Outcome::from(error).into(),
                };
                (done, begun.elapsed())
            });
            self.in_flight.insert(task.id(), in_flight);
        }
        self.metrics.pending(self.driver.waiting(), leading);
    }

    fn written(&mut self, ended: Result<(Id, (WriteResult, Duration)), JoinError>) {
        let (task, (done, took)) = ended.unwrap_or_else(|error| {
            let why = format!("the write task failed: {error}");
            (error.id(), (Outcome::Failed(why.into()).into(), Duration::ZERO))
        });
        let Some((slot, write)) = self.in_flight.remove(&task) else { return };
        self.metrics.wrote(&done.outcome, took.as_secs_f64());
        let (object, part) = (&slot.object, &slot.part);
        match &done.outcome {
            Outcome::Rejected(why) => {
                warn!(object = object.to_string(), %part, error = %why, "write rejected");
            }
            Outcome::Failed(why) => {
                debug!(object = object.to_string(), %part, error = %why, "write failed: retrying");
            }
            outcome => debug!(object = object.to_string(), %part, ?outcome, "write completed"),
        }
        let retry_after = done.retry_after.and_then(|wait| SignedDuration::try_from(wait).ok());
        let (begun, now) = (Instant::now(), now());
        let effects = self.driver.written(now, (slot, write), done.outcome, retry_after);
        self.apply_effects(effects);
        self.metrics.stepped(1, begun.elapsed().as_secs_f64());
    }

    /// The time until the next timer, statistics or liveness check.
    fn pause(&self) -> Duration {
        let until_next =
            self.driver.next().map(|time| Timestamp::now().duration_until(time).max(SignedDuration::ZERO));
        let until_next = until_next.and_then(|pause| Duration::try_from(pause).ok());
        let until_stats = self.stats_due.then(|| STATS_INTERVAL.saturating_sub(self.stats_updated.elapsed()));
        // Bookmarks of the hub are enough. Other clusters may count as stale after seconds.
        let longest = if self.remote_clusters == 0 { MAX_PAUSE } else { LIVENESS_INTERVAL };
        [until_next, until_stats].into_iter().flatten().min().unwrap_or(Duration::MAX).min(longest)
    }

    fn update_stats(&mut self) {
        if self.stats_due && self.stats_updated.elapsed() >= STATS_INTERVAL {
            self.metrics.counted(self.driver.stats(), self.recorder.dropped());
            self.stats_updated = Instant::now();
            self.stats_due = false;
        }
    }
}

/// Never completes without an inventory, or after its sources have ended.
async fn next_inventory_change(inventory: &mut Option<Inventory>) -> InventoryChange {
    if let Some(inventory) = inventory
        && let Some(change) = inventory.next().await
    {
        return change;
    }
    pending().await
}

/// Never completes before the search has begun, or after its end.
async fn next_singleton_kind(found: &mut Option<mpsc::Receiver<GroupKind>>) -> GroupKind {
    if let Some(receiver) = found {
        if let Some(kind) = receiver.recv().await {
            return kind;
        }
        *found = None;
    }
    pending().await
}

/// Never completes without a receiver, or after its sender is dropped.
async fn next_change(receiver: &mut Option<watch::Receiver<u64>>) {
    if let Some(receiver) = receiver
        && receiver.changed().await.is_ok()
    {
        return;
    }
    pending::<()>().await;
}
