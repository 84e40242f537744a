//! What the process counts about itself.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use bellwether_engine::{Census, Outcome};
use jiff::Timestamp;
use prometheus_client::{
    encoding::{EncodeLabelSet, EncodeLabelValue},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

use crate::read::Tally;

/// What the process counts about itself.
#[derive(Debug)]
pub struct Metrics {
    events: Counter,
    step_seconds: Histogram,
    writes: Family<WriteLabels, Counter>,
    write_seconds: Histogram,
    waiting: Gauge,
    leading: Gauge,
    applications: Family<ReadyLabels, Gauge>,
    rollups: Family<HealthLabels, Gauge>,
    objects: Gauge,
    feeds: Gauge,
    untold: Gauge,
    fresh: Family<ClusterLabels, Gauge>,
    census: Mutex<Census>,
    tally: Arc<Tally>,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct WriteLabels {
    outcome: WriteOutcome,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelValue)]
enum WriteOutcome {
    Done,
    Conflict,
    Absent,
    Refused,
    Failed,
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

impl Metrics {
    pub(crate) fn new(tally: Arc<Tally>) -> Self {
        let seconds = |first: f64| Histogram::new((0..12).map(move |n| first * 2_f64.powi(n)));
        Self {
            events: Counter::default(),
            step_seconds: seconds(0.000_01),
            writes: Family::default(),
            write_seconds: seconds(0.001),
            waiting: Gauge::default(),
            leading: Gauge::default(),
            applications: Family::default(),
            rollups: Family::default(),
            objects: Gauge::default(),
            feeds: Gauge::default(),
            untold: Gauge::default(),
            fresh: Family::default(),
            census: Mutex::default(),
            tally,
        }
    }

    pub(crate) fn stepped(&self, events: usize, seconds: f64) {
        self.events.inc_by(events as u64);
        self.step_seconds.observe(seconds);
    }

    pub(crate) fn wrote(&self, outcome: &Outcome, seconds: f64) {
        let outcome = match outcome {
            Outcome::Done(_) => WriteOutcome::Done,
            Outcome::Conflict | Outcome::FieldConflict(_) => WriteOutcome::Conflict,
            Outcome::Absent => WriteOutcome::Absent,
            Outcome::Refused(_) => WriteOutcome::Refused,
            Outcome::Failed(_) => WriteOutcome::Failed,
        };
        self.writes.get_or_create(&WriteLabels { outcome }).inc();
        self.write_seconds.observe(seconds);
    }

    pub(crate) fn waits(&self, writes: usize, leading: bool) {
        self.waiting.set(i64::try_from(writes).unwrap_or(i64::MAX));
        self.leading.set(i64::from(leading));
    }

    pub(crate) fn counted(&self, census: Census, now: Timestamp, untold: u64) {
        self.fresh.clear();
        for (cluster, status) in &census.clusters {
            let is_fresh = status.heard.is_some() && status.silent_since(now).is_none();
            let cluster = cluster.name().to_owned();
            self.fresh.get_or_create(&ClusterLabels { cluster }).set(i64::from(is_fresh));
        }
        self.untold.set(i64::try_from(untold).unwrap_or(i64::MAX));
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.objects.set(number(census.objects));
        self.feeds.set(number(census.feeds));
        for (ready, count) in ["true", "false", "unknown"].into_iter().zip(census.applications) {
            self.applications.get_or_create(&ReadyLabels { ready }).set(number(count));
        }
        for (health, count) in ["healthy", "warning", "error"].into_iter().zip(census.rollups) {
            self.rollups.get_or_create(&HealthLabels { health }).set(number(count));
        }
        *self.census.lock().unwrap_or_else(PoisonError::into_inner) = census;
    }

    /// How much there was when somebody last looked.
    pub fn census(&self) -> Census {
        self.census.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All of it, as OpenMetrics text.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut registry = Registry::with_prefix("bellwether");
        let mut text = String::new();
        registry.register(
            "applications",
            "Applications, by whether they are ready",
            self.applications.clone(),
        );
        registry.register("rollups", "Rollups, by their health", self.rollups.clone());
        registry.register("kinds_followed", "Kinds that are watched", self.feeds.clone());
        registry.register("objects", "Objects that are kept", self.objects.clone());
        registry.register("events", "What was learnt about objects", self.events.clone());
        registry.register_with_unit(
            "step",
            "What the engine takes for what came together",
            Unit::Seconds,
            self.step_seconds.clone(),
        );
        registry.register("writes", "Writes, by how they ended", self.writes.clone());
        registry.register_with_unit(
            "write",
            "How long writes take",
            Unit::Seconds,
            self.write_seconds.clone(),
        );
        registry.register(
            "writes_waiting",
            "Places where something may have to be written, and is not being written",
            self.waiting.clone(),
        );
        registry.register("leading", "Whether this process may write", self.leading.clone());
        registry.register("turns_untold", "Turns of which no Event could be written", self.untold.clone());
        let counters = [
            ("lists", "Lists that were begun", &self.tally.lists),
            ("relists", "Lists of what had been listed before", &self.tally.relists),
            ("watches", "Watches that were begun", &self.tally.watches),
            ("read", "Objects and events that were understood", &self.tally.read),
            ("unreadable", "Objects that could not be understood", &self.tally.unreadable),
            ("read_errors", "Reads that failed", &self.tally.errors),
            ("discoveries", "Looks at which kinds there are", &self.tally.looks),
        ];
        for (name, help, count) in counters {
            let counter: Counter = Counter::default();
            counter.inc_by(count.get());
            registry.register(name, help, counter);
        }
        let heard: Gauge = Gauge::default();
        heard.set(self.tally.heard_least_recently().map_or(0, Timestamp::as_second));
        registry.register(
            "last_heard_timestamp_seconds",
            "When the watch that has been silent for longest was last heard from",
            heard,
        );
        registry.register(
            "cluster_fresh",
            "Whether a cluster has been heard from within two minutes; the hub has no name",
            self.fresh.clone(),
        );
        let open: Gauge = Gauge::default();
        open.set(i64::try_from(self.tally.open_watches.get()).unwrap_or(i64::MAX));
        registry.register("watches_open", "Watches that are open", open);
        prometheus_client::encoding::text::encode(&mut text, &registry)?;
        Ok(text)
    }
}
