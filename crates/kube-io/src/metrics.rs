//! The metrics of the controller.

use std::{
    collections::BTreeMap,
    fmt,
    ops::Add,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use bellwether_engine::{
    Cluster, ClusterStatus, Dialect, EngineStats, GroupRef, GroupSamples, Outcome, OwnKind,
};
use jiff::Timestamp;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use crate::read::{ReaderCounters, ReaderTotals};

/// Further clusters have no series of their own.
const MAX_CLUSTERS: usize = 10_000;

#[derive(Debug)]
pub struct Metrics {
    engine_events: Counter,
    step_duration: Histogram,
    writes: Family<WriteLabels, Counter>,
    write_duration: Histogram,
    writes_pending: Gauge,
    leader: Gauge,
    applications: Family<ReadyLabels, Gauge>,
    rollups: Family<HealthLabels, Gauge>,
    health_rules: Family<RuleLabels, Gauge>,
    objects: Gauge,
    kinds_watched: Gauge,
    events_dropped: AtomicU64,
    stats: Mutex<EngineStats>,
    hub: Arc<ReaderCounters>,
    readers: Mutex<Readers>,
}

/// The readers of the clusters of the inventory.
#[derive(Debug, Default)]
struct Readers {
    connected: BTreeMap<Cluster, Arc<ReaderCounters>>,
    /// Of readers that have ended: counters never decrease.
    ended: ReaderTotals,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct WriteLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReadyLabels {
    ready: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct HealthLabels {
    health: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ClusterLabels {
    cluster: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RuleLabels {
    valid: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabels {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct GroupLabels {
    kind: &'static str,
    namespace: String,
    name: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StateLabels {
    kind: &'static str,
    namespace: String,
    name: String,
    state: &'static str,
}

impl From<&GroupRef> for GroupLabels {
    fn from(group: &GroupRef) -> Self {
        let kind = match group.kind {
            OwnKind::Application(Dialect::Bellwether) => "Application",
            // Of two Applications of one name, one may be of the other API group.
            OwnKind::Application(Dialect::AppK8sIo) => "Application.app.k8s.io",
            OwnKind::BindingPolicy => "BindingPolicy",
            OwnKind::CombinedStatus => "CombinedStatus",
            OwnKind::HealthRule => "HealthRule",
            OwnKind::Rollup => "Rollup",
            OwnKind::StatusCollector => "StatusCollector",
        };
        Self { kind, namespace: group.name.namespace.to_string(), name: group.name.name.to_string() }
    }
}

/// The series of single clusters, which are made at each scrape, too.
fn register_clusters(clusters: &[(Cluster, ClusterStatus)], now: Timestamp, registry: &mut Registry) {
    let (fresh, connected, heard) = (
        Family::<ClusterLabels, Gauge>::default(),
        Family::<ClusterLabels, Gauge>::default(),
        Family::<ClusterLabels, Gauge>::default(),
    );
    for (cluster, status) in clusters.iter().take(MAX_CLUSTERS) {
        let labels = ClusterLabels { cluster: cluster.name().to_owned() };
        let is_fresh = status.last_heard.is_some() && status.silent_since(now).is_none();
        let is_connected = is_fresh && status.unreachable_since(now).is_none();
        fresh.get_or_create(&labels).set(is_fresh.into());
        connected.get_or_create(&labels).set(is_connected.into());
        if let Some(time) = status.last_heard {
            heard.get_or_create(&labels).set(time.as_second());
        }
    }
    registry.register(
        "cluster_fresh",
        "1 if the API server of a cluster responded within the last two minutes, otherwise 0; the label of the hub is \
         empty",
        fresh,
    );
    registry.register(
        "cluster_connected",
        "1 if the API server of a cluster responds and all watches of it are open, otherwise 0",
        connected,
    );
    registry.register_with_unit(
        "cluster_last_heard_timestamp",
        "Unix time of the last response of the API server of a cluster, in seconds; none before the first",
        Unit::Seconds,
        heard,
    );
}

/// The series of single groups. They are made at each scrape, so that a change of a group costs nothing, and a
/// deleted group leaves no series.
fn register_groups(groups: &GroupSamples, registry: &mut Registry) {
    let (states, progress) =
        (Family::<StateLabels, Gauge>::default(), Family::<GroupLabels, Gauge>::default());
    let (transitions, since) =
        (Family::<GroupLabels, Counter>::default(), Family::<GroupLabels, Gauge>::default());
    for sample in &groups.samples {
        let labels = GroupLabels::from(&sample.group);
        let GroupLabels { kind, namespace, name } = labels.clone();
        states.get_or_create(&StateLabels { kind, namespace, name, state: sample.state.name() }).set(1);
        if let Some(percent) = sample.progress {
            progress.get_or_create(&labels).set(percent.into());
        }
        if let Some(time) = sample.since {
            since.get_or_create(&labels).set(time.as_second());
        }
        transitions.get_or_create(&labels).inc_by(sample.transitions);
    }
    registry.register(
        "group_state",
        "1 for the current state of an Application or Rollup; other states have no series. Only on the leader",
        states,
    );
    registry.register(
        "group_progress",
        "Progress of an Application or Rollup in percent; 100 only if it is Ready. Only on the leader",
        progress,
    );
    registry.register(
        "group_transitions",
        "Changes of the state of an Application or Rollup that this process has seen. Only on the leader",
        transitions,
    );
    registry.register_with_unit(
        "group_state_since",
        "Unix time since when an Application or Rollup is in its state, in seconds, if known. Only on the leader",
        Unit::Seconds,
        since,
    );
    let without: Gauge = Gauge::default();
    without.set(i64::try_from(groups.without).unwrap_or(i64::MAX));
    registry.register(
        "groups_without_series",
        "Number of Applications and Rollups without series, because there are more than --metrics-groups",
        without,
    );
}

impl Metrics {
    pub(crate) fn new(hub: Arc<ReaderCounters>) -> Self {
        let seconds = |first: f64| Histogram::new((0..12).map(move |n| first * 2_f64.powi(n)));
        Self {
            engine_events: Counter::default(),
            step_duration: seconds(0.000_01),
            writes: Family::default(),
            write_duration: seconds(0.001),
            writes_pending: Gauge::default(),
            leader: Gauge::default(),
            applications: Family::default(),
            rollups: Family::default(),
            health_rules: Family::default(),
            objects: Gauge::default(),
            kinds_watched: Gauge::default(),
            events_dropped: AtomicU64::new(0),
            stats: Mutex::default(),
            hub,
            readers: Mutex::default(),
        }
    }

    pub(crate) fn connected(&self, cluster: Cluster, counters: Arc<ReaderCounters>) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.connected.insert(cluster, counters);
    }

    pub(crate) fn disconnected(&self, cluster: &Cluster) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counters) = readers.connected.remove(cluster) {
            readers.ended = readers.ended + ReaderTotals { open_watches: 0, ..counters.totals() };
        }
    }

    /// The sum over all clusters.
    fn read(&self) -> ReaderTotals {
        let readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        let connected = readers.connected.values().map(|counters| counters.totals());
        connected.fold(readers.ended + self.hub.totals(), Add::add)
    }

    pub(crate) fn stepped(&self, events: usize, seconds: f64) {
        self.engine_events.inc_by(events as u64);
        self.step_duration.observe(seconds);
    }

    pub(crate) fn wrote(&self, outcome: &Outcome, seconds: f64) {
        let outcome = match outcome {
            Outcome::Written(_) => "success",
            Outcome::Conflict | Outcome::FieldConflict(_) => "conflict",
            Outcome::NotFound => "not_found",
            Outcome::Rejected(_) => "rejected",
            Outcome::Failed(_) => "failed",
        };
        self.writes.get_or_create(&WriteLabels { outcome }).inc();
        self.write_duration.observe(seconds);
    }

    pub(crate) fn pending(&self, writes: usize, is_leader: bool) {
        self.writes_pending.set(i64::try_from(writes).unwrap_or(i64::MAX));
        self.leader.set(i64::from(is_leader));
    }

    pub(crate) fn counted(&self, stats: EngineStats, events_dropped: u64) {
        self.events_dropped.store(events_dropped, Ordering::Relaxed);
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.objects.set(number(stats.objects));
        self.kinds_watched.set(number(stats.feeds));
        for (ready, count) in ["true", "false", "unknown"].into_iter().zip(stats.applications) {
            self.applications.get_or_create(&ReadyLabels { ready }).set(number(count));
        }
        for (health, count) in ["healthy", "warning", "error"].into_iter().zip(stats.rollups) {
            self.rollups.get_or_create(&HealthLabels { health }).set(number(count));
        }
        for (valid, count) in ["true", "false"].into_iter().zip(stats.health_rules) {
            self.health_rules.get_or_create(&RuleLabels { valid }).set(number(count));
        }
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner) = stats;
    }

    /// The last statistics, at most one second old while something happens.
    pub fn stats(&self) -> EngineStats {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn is_leader(&self) -> bool {
        self.leader.get() == 1
    }

    /// All metrics in the OpenMetrics text format.
    pub fn text(&self, groups: &GroupSamples) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix("bellwether");
        let mut text = String::new();
        registry.register(
            "applications",
            "Number of Applications by the status of their condition Ready",
            self.applications.clone(),
        );
        registry.register("rollups", "Number of Rollups by health", self.rollups.clone());
        registry.register(
            "health_rules",
            "Number of HealthRules, valid and invalid",
            self.health_rules.clone(),
        );
        registry.register(
            "kinds_watched",
            "Number of kinds that are listed and watched",
            self.kinds_watched.clone(),
        );
        registry.register("objects", "Number of objects in the cache", self.objects.clone());
        registry.register(
            "engine_events",
            "Events processed by the engine: lists, watch events, results of writes, cluster changes",
            self.engine_events.clone(),
        );
        registry.register_with_unit(
            "engine_step_duration",
            "Duration of one engine step over one batch of events, in seconds",
            Unit::Seconds,
            self.step_duration.clone(),
        );
        registry.register("writes", "Writes to the API server by outcome", self.writes.clone());
        registry.register_with_unit(
            "write_duration",
            "Duration of one write to the API server, in seconds",
            Unit::Seconds,
            self.write_duration.clone(),
        );
        registry.register(
            "writes_pending",
            "Number of writes in the queue, without those in flight",
            self.writes_pending.clone(),
        );
        registry.register(
            "leader",
            "1 if this process is the leader and may write, otherwise 0",
            self.leader.clone(),
        );
        let read = self.read();
        let counters = [
            ("lists", "Lists started; all pages of a list count as one", read.lists),
            ("relists", "Lists started of a kind that was listed before", read.relists),
            ("watches", "Watches started", read.watches),
            ("objects_decoded", "Objects in lists and watch events decoded", read.decoded),
            ("objects_malformed", "Malformed objects ignored in list and watch responses", read.malformed),
            ("discoveries", "API discoveries started", read.discoveries),
            (
                "events_dropped",
                "Kubernetes Events not written: too many of one object, a full queue, or a failed request",
                self.events_dropped.load(Ordering::Relaxed),
            ),
        ];
        for (name, help, count) in counters {
            let counter: Counter = Counter::default();
            counter.inc_by(count);
            registry.register(name, help, counter);
        }
        let read_errors = Family::<ReasonLabels, Counter>::default();
        for (reason, count) in [("forbidden", read.forbidden), ("other", read.errors)] {
            read_errors.get_or_create(&ReasonLabels { reason }).inc_by(count);
        }
        registry.register(
            "read_errors",
            "Lists, watches and discoveries that failed; forbidden: a right is missing, maybe on purpose",
            read_errors,
        );
        let oldest: Gauge = Gauge::default();
        oldest.set(self.hub.oldest_response().map_or(0, Timestamp::as_second));
        registry.register_with_unit(
            "oldest_watch_activity_timestamp",
            "Unix time of the last response on the watch of the hub that has been silent longest, in seconds",
            Unit::Seconds,
            oldest,
        );
        register_clusters(&self.stats().clusters, Timestamp::now(), &mut registry);
        let open: Gauge = Gauge::default();
        open.set(i64::try_from(read.open_watches).unwrap_or(i64::MAX));
        registry.register("watches_open", "Number of open watches", open);
        register_groups(groups, &mut registry);
        prometheus_client::encoding::text::encode(&mut text, &registry)?;
        Ok(text)
    }
}
