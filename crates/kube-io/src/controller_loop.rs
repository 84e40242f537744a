//! The loop: what a cluster tells goes into the engine, and what the engine wants is written.

use std::{
    collections::{BTreeSet, HashMap},
    future::Future,
    sync::Arc,
    time::Duration,
};

use bellwether_engine::{
    Change, Cluster, ClusterEvent, Driver, Effect, Engine, Event, FeedEvent, FeedId, GroupKind, GroupStatus,
    NamespacedName, NoSource, Now, Outcome, Slot, Source as _, Sources,
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
    clock::now,
    connected::ConnectedCluster,
    metrics::Metrics,
    read::Settings,
    status_queries::{StatusHandle, StatusQueries},
    write::{Done, Leadership, PATIENCE, Recorder, perform},
};

/// So much news may wait for the engine before the cluster has to.
const NEWS_WAITING: usize = 4096;

/// So much news is taken in at a time.
const NEWS_AT_A_TIME: usize = 1024;

/// So many writes are under way at a time.
const WRITES_AT_A_TIME: usize = 16;

/// How often the engine is told when the clusters were heard from, at most.
const PULSE_EVERY: Duration = Duration::from_secs(1);

/// A clock that was set, or a cluster that is silent, is noticed after so long even if nothing else happens.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// How often is counted how much there is.
const COUNTS_EVERY: Duration = Duration::from_secs(1);

/// The engine and all that it lives on.
pub struct ControllerLoop {
    driver: Driver,
    clusters: Sources<ConnectedCluster>,
    /// What is found out about the clusters themselves.
    cluster_events: mpsc::Receiver<(Cluster, ClusterEvent)>,
    /// When was last asked when they were heard from.
    pulsed: Instant,
    news: mpsc::Receiver<(FeedId, FeedEvent)>,
    writes: JoinSet<(Done, Duration)>,
    /// The clusters that were to be written to and are not connected, which is reported once.
    unconnected: BTreeSet<Cluster>,
    /// What is being written, by the task that does.
    under_way: HashMap<Id, (Slot, Change)>,
    recorder: Recorder,
    leadership: watch::Receiver<Leadership>,
    queries: StatusQueries,
    metrics: Arc<Metrics>,
    /// When was counted last how much there is, and whether something has happened since then.
    counted: Instant,
    uncounted: bool,
}

impl ControllerLoop {
    /// One for the hub, which is read from now on and written to by whoever leads.
    pub fn new(
        engine: Engine,
        client: Client,
        settings: Settings,
        leadership: watch::Receiver<Leadership>,
        recorder: Recorder,
    ) -> Self {
        let (sender, news) = mpsc::channel(NEWS_WAITING);
        let (about, cluster_events) = mpsc::channel(NEWS_WAITING);
        let hub = ConnectedCluster::new(Cluster::hub(), client, settings, sender, about);
        let metrics = Arc::new(Metrics::new(Arc::clone(hub.reader.tally())));
        Self {
            driver: Driver::new(engine, WRITES_AT_A_TIME),
            clusters: Sources::hub(hub),
            cluster_events,
            pulsed: Instant::now(),
            news,
            writes: JoinSet::new(),
            unconnected: BTreeSet::new(),
            under_way: HashMap::new(),
            recorder,
            leadership,
            queries: StatusQueries::new(),
            metrics,
            counted: Instant::now(),
            uncounted: true,
        }
    }

    /// What it counts about itself.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// For those who want to know how groups are. They are answered between two steps.
    pub fn handle(&self) -> StatusHandle {
        self.queries.handle()
    }

    /// For somebody who wants to be told how a group is, whenever that differs. Whoever does not listen any more costs
    /// nothing.
    pub fn follow(&mut self, kind: GroupKind, name: NamespacedName) -> watch::Receiver<GroupStatus> {
        self.queries.follow(kind, name)
    }

    /// Runs until `stop` is there. What is being written then is written to the end.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        tokio::pin!(stop);
        let mut batch = Vec::with_capacity(NEWS_AT_A_TIME);
        self.step([]);
        loop {
            if self.pulsed.elapsed() >= PULSE_EVERY {
                self.check_liveness();
            }
            self.write();
            let pause = self.pause();
            tokio::select! {
                () = &mut stop => break,
                count = self.news.recv_many(&mut batch, NEWS_AT_A_TIME) => {
                    // The reader has a sender as long as we have the reader.
                    debug_assert!(count > 0);
                    self.step(batch.drain(..).map(|(feed, news)| Event::Feed(feed, news)));
                }
                Some(ended) = self.writes.join_next_with_id() => self.written(ended),
                Some((cluster, event)) = self.cluster_events.recv() => {
                    self.step([Event::Cluster(cluster, event)]);
                }
                Some(query) = self.queries.query() => {
                    self.check_liveness();
                    // A clock that was set is noticed before anybody is answered by it.
                    let now = self.tick();
                    query.answer(&self.driver, now.time);
                }
                changed = self.leadership.changed() => if changed.is_err() { break },
                () = sleep(pause) => {
                    self.tick();
                    self.uncounted = true;
                }
            }
            self.count();
        }
        self.queries.close();
        // What is under way is written to the end, and told of.
        let last = async {
            while let Some(ended) = self.writes.join_next_with_id().await {
                self.written(ended);
            }
        };
        let _ = timeout(PATIENCE, last).await;
        self.recorder.finish(PATIENCE).await;
    }

    fn step(&mut self, events: impl IntoIterator<Item = Event>) {
        let (begun, now) = (Instant::now(), now());
        let mut count = 0;
        let events = events.into_iter().inspect(|_| count += 1);
        let effects = self.driver.step(now, events);
        self.apply_effects(effects);
        self.metrics.stepped(count, begun.elapsed().as_secs_f64());
    }

    /// Tells the engine the time, and gives it back.
    fn tick(&mut self) -> Now {
        let now = now();
        let effects = self.driver.tick(now);
        if !effects.is_empty() {
            self.apply_effects(effects);
        }
        now
    }

    /// Tells the engine when the clusters were last heard from.
    fn check_liveness(&mut self) {
        let pulses = self.clusters.iter_mut().flat_map(|(cluster, connected)| {
            connected.pulse().into_iter().map(|event| Event::Cluster(cluster.clone(), event))
        });
        let events: Vec<_> = pulses.collect();
        self.pulsed = Instant::now();
        if !events.is_empty() {
            let effects = self.driver.step(now(), events);
            self.apply_effects(effects);
        }
    }

    /// Does what follows from a step.
    fn apply_effects(&mut self, effects: Vec<Effect>) {
        let now = now();
        for effect in &effects {
            if let Effect::Follow { cluster, kind, .. } = effect
                && let Err(NoSource(cluster)) = self.clusters.get(cluster)
            {
                error!("cannot watch {kind} in cluster {}: it is not connected", cluster.name());
            }
        }
        let effects = self.clusters.route(effects, |unread| self.driver.step(now, unread));
        for effect in effects {
            match effect {
                Effect::Changed(kind, name) => {
                    self.queries.notify(&self.driver, now.time, kind, name.as_ref());
                }
                Effect::Record(turn) => {
                    let (object, to, why) = (&turn.object, turn.to, &turn.message);
                    let condition = turn.condition;
                    info!("{object}: {condition} is {to:?} now, {}: {why}", turn.reason);
                    // Somebody else leads by now, and may have told of it: rather untold than told twice.
                    if self.leadership.borrow().leads_at(std::time::Instant::now()) {
                        self.recorder.record(turn);
                    }
                }
                Effect::Warn(warning) => {
                    warn!("{}: {}", warning.object, warning.message);
                    if self.leadership.borrow().leads_at(std::time::Instant::now()) {
                        self.recorder.record(warning);
                    }
                }
                // The sources have taken the first two, the driver the others.
                Effect::Follow { .. } | Effect::Leave { .. } | Effect::Want(..) | Effect::Wake(_) => {}
            }
        }
        self.uncounted = true;
    }

    /// Begins the writes that are due, if they are ours to make.
    fn write(&mut self) {
        // Nobody else writes before the Lease has run out, and nothing of ours is under way then.
        let left = self.leadership.borrow_and_update().left_at(std::time::Instant::now());
        let (leading, within) = (left.is_some(), left.unwrap_or_default().min(PATIENCE));
        for (slot, change) in self.driver.write(now(), leading) {
            let cluster = self.clusters.get(&slot.object.cluster);
            if let Err(NoSource(cluster)) = &cluster
                && self.unconnected.insert(cluster.clone())
            {
                error!("cannot write to cluster {}: it is not connected", cluster.name());
            }
            let place = cluster.map(|cluster| (cluster.client.clone(), cluster.served(&slot.object.kind)));
            let wanted = (slot.clone(), change.clone());
            let task = self.writes.spawn(async move {
                let begun = Instant::now();
                let done = match place {
                    Ok((client, Some(served))) => {
                        perform(&client, Attempt::new(served, slot, change), within).await
                    }
                    Ok((_, None)) => Outcome::Failed("its kind is not served".into()).into(),
                    Err(error) => Outcome::from(error).into(),
                };
                (done, begun.elapsed())
            });
            self.under_way.insert(task.id(), wanted);
        }
        self.metrics.waits(self.driver.waiting(), leading);
    }

    fn written(&mut self, ended: Result<(Id, (Done, Duration)), JoinError>) {
        let (task, (done, took)) = ended.unwrap_or_else(|error| {
            let why = format!("the attempt ended by itself: {error}");
            (error.id(), (Outcome::Failed(why.into()).into(), Duration::ZERO))
        });
        let Some((slot, change)) = self.under_way.remove(&task) else { return };
        self.metrics.wrote(&done.outcome, took.as_secs_f64());
        let object = &slot.object;
        match &done.outcome {
            Outcome::Refused(why) => warn!("{object}: {} cannot be written: {why}", slot.part),
            Outcome::Failed(why) => debug!("{object}: {} was not written: {why}", slot.part),
            outcome => debug!("{object}: {} {outcome:?}", slot.part),
        }
        let retry_after = done.retry_after.and_then(|wait| SignedDuration::try_from(wait).ok());
        let (begun, now) = (Instant::now(), now());
        let effects = self.driver.written(now, (slot, change), done.outcome, retry_after);
        self.apply_effects(effects);
        self.metrics.stepped(1, begun.elapsed().as_secs_f64());
    }

    /// How long nothing has to be done, if nothing happens.
    fn pause(&self) -> Duration {
        let until_next =
            self.driver.next().map(|time| Timestamp::now().duration_until(time).max(SignedDuration::ZERO));
        let until_next = until_next.and_then(|pause| Duration::try_from(pause).ok());
        let until_count = self.uncounted.then(|| COUNTS_EVERY.saturating_sub(self.counted.elapsed()));
        [until_next, until_count].into_iter().flatten().min().unwrap_or(Duration::MAX).min(LONGEST_PAUSE)
    }

    /// Counts how much there is, now and then.
    fn count(&mut self) {
        if self.uncounted && self.counted.elapsed() >= COUNTS_EVERY {
            self.metrics.counted(self.driver.census(), now().time, self.recorder.dropped());
            (self.counted, self.uncounted) = (Instant::now(), false);
        }
    }
}
