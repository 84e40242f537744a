//! The event loop of a run.
//!
//! Everything that takes time is on an agenda, ordered by time. Durations are random from the seed, and
//! nothing else decides the order, so a seed always gives the same run.

mod active_faults;
mod clusters;
mod inventory;
mod leading;
mod reading;
mod restoring;
mod run;
mod tidying;
mod writing;

use std::{
    collections::BTreeMap,
    mem,
    time::{Duration, Instant},
};

use bellwether_engine::{Effect, EngineStats, Event, FeedEvent, Now, Unreadable};
use bellwether_wire::election::Record;
use jiff::{SignedDuration, Timestamp};
use rand::{Rng as _, SeedableRng as _, rngs::SmallRng};

use crate::{
    checks::{Adopted, EventCounts},
    plan::{Moment, Plan},
    process::Process,
    site::Site,
    violation::Violation,
};
use clusters::Clusters;
use leading::Lead;
use reading::{Connection, Input, ReadRequest, RequestOrigin};
use writing::{InFlightWrite, WriteStage};

/// Start of every run, in seconds since the Unix epoch.
const BEGINNING: i64 = 1_794_650_400;

/// Milliseconds within which a controller notices that its clock was set.
const NOTICED: Moment = 60_000;

/// By how much the resourceVersions of a cluster go back when it is restored: no run makes up for it.
const RESTORED_BY: u64 = 100_000;

/// An entry of the agenda. The numbers are a controller and its epoch.
enum ScheduledEvent {
    /// An action of the plan, by its index.
    Planned(usize),
    /// The plan and all faults end.
    Calm,
    Start(usize),
    /// An engine takes events from its inbox.
    Step(usize, u64),
    /// A timer of a controller fires.
    Wake(usize, u64),
    /// Discovery of a cluster completes.
    Kinds(usize, u64, Site),
    /// A controller reads the inventory of clusters.
    ReadInventory(usize, u64),
    /// A controller connects to the cluster of an entry of the inventory.
    Connect(usize, u64, Site, u64),
    /// A controller reads the identity of the cluster of an entry of the inventory.
    Probe(usize, u64, Site, u64),
    /// A controller looks for clusters that were heard from.
    CheckLiveness(usize, u64),
    /// A controller looks for objects whose status an earlier process wrote.
    FindSingletons(usize, u64),
    /// The network of a cluster is plugged in again.
    PlugIn(Site),
    /// A controller compares the resourceVersion of the second cluster with the last one.
    CheckVersions(usize, u64),
    /// A list or watch request reaches an API server.
    Ask(RequestOrigin, ReadRequest),
    /// A response or watch event reaches the controller.
    Deliver(RequestOrigin, Input),
    /// A bookmark is due on a watch, by its connection.
    Bookmark(u64),
    /// A write reaches an API server, or its response the controller.
    Write(Box<InFlightWrite>, WriteStage),
    Lead(usize, u64, Lead),
    /// The garbage collector runs.
    Collect,
    /// The kubelet runs.
    RunPods,
    /// A fault of API servers ends, so that watches may have events.
    CatchUp,
}

/// Statistics of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunStats {
    /// Number of events.
    pub events: u64,
    /// Number of writes that API servers applied.
    pub writes: u64,
    /// Simulated milliseconds from the end of all faults until the state is correct.
    pub until_right: u64,
}

/// The clusters, their faults and the controllers.
pub(crate) struct World<'p> {
    plan: &'p Plan,
    rng: SmallRng,
    now: Moment,
    /// The monotonic clock at moment 0. Only differences count, so its real value does not matter.
    begun: Instant,
    clusters: Clusters,
    agenda: BTreeMap<(Moment, u64), ScheduledEvent>,
    /// The last number given to an entry of the agenda or to a connection.
    number: u64,
    /// Number of entries of the agenda that are not background; see `ScheduledEvent::is_background`.
    foreground: usize,
    processes: Vec<Process>,
    connections: BTreeMap<u64, Connection>,
    /// The Lease and its resourceVersion.
    lease: (Option<Record>, u64),
    /// When all faults ended.
    calm: Option<Moment>,
    /// Whether a run of the garbage collector is scheduled.
    collecting: bool,
    /// Whether a run of the kubelet is scheduled.
    running_pods: bool,
    adopted: Adopted,
    event_counts: EventCounts,
    /// The first violation inside an event that cannot return it.
    violation: Option<Violation>,
    /// Whether the state was correct once after the last fault. From then on any write is a violation.
    was_right: bool,
    /// When all controllers were restarted, and the statistics of the leader before that.
    begun_anew: Option<(Moment, EngineStats)>,
    tally: RunStats,
    /// One line for each event, if requested.
    story: Option<Vec<String>>,
}

impl<'p> World<'p> {
    pub(crate) fn new(plan: &'p Plan, tell: bool) -> Self {
        let mut world = Self {
            plan,
            rng: SmallRng::seed_from_u64(plan.seed ^ 0x5eed),
            now: 0,
            begun: Instant::now(),
            clusters: Clusters::of(plan),
            agenda: BTreeMap::new(),
            number: 0,
            foreground: 0,
            processes: (0..plan.processes).map(|name| Process::new(name, plan)).collect(),
            connections: BTreeMap::new(),
            lease: (None, 0),
            calm: None,
            collecting: false,
            running_pods: false,
            adopted: Adopted::default(),
            event_counts: EventCounts::default(),
            violation: None,
            was_right: false,
            begun_anew: None,
            tally: RunStats::default(),
            story: tell.then(Vec::new),
        };
        for process in 0..plan.processes {
            let at = world.rng.random_range(0..50);
            world.schedule(at, ScheduledEvent::Start(process));
        }
        for (number, (moment, _)) in plan.actions.iter().enumerate() {
            world.schedule(*moment, ScheduledEvent::Planned(number));
        }
        let end = plan.actions.last().map_or(0, |(moment, _)| *moment);
        let lasts =
            plan.actions.iter().map(|(moment, action)| moment + action.lasts()).max().unwrap_or_default();
        let calm = world.rng.random_range(0..3_000);
        world.schedule(end.max(lasts) + calm, ScheduledEvent::Calm);
        world
    }

    pub(crate) fn into_story(self) -> Vec<String> {
        self.story.unwrap_or_default()
    }

    fn leader(&self) -> Option<usize> {
        (0..self.processes.len()).find(|process| self.leads(*process))
    }

    fn leads(&self, process: usize) -> bool {
        let process = &self.processes[process];
        let leads = |until: Instant| self.instant() < until;
        process.alive
            && process.election.as_ref().is_none_or(|election| election.leads_until().is_some_and(leads))
    }

    fn handle(&mut self, number: u64, event: ScheduledEvent) -> Result<(), Violation> {
        if let Some((process, epoch)) = event.recipient() {
            let process = &self.processes[process];
            if process.epoch != epoch || !process.alive {
                return Ok(());
            }
            if process.frozen_until > self.now {
                // A frozen controller gets the event later. The number keeps the order of events.
                let until = process.frozen_until;
                self.foreground += usize::from(!event.is_background());
                self.agenda.insert((until, number), event);
                return Ok(());
            }
        }
        match event {
            ScheduledEvent::Planned(number) => self.action(Site::Hub, &self.plan.actions[number].1),
            ScheduledEvent::Calm => self.calm(),
            ScheduledEvent::Start(process) => self.start(process),
            ScheduledEvent::Step(process, _) => return self.step(process),
            ScheduledEvent::Wake(process, _) => return self.wake(process),
            ScheduledEvent::Kinds(process, _, site) => self.learn_kinds(process, site),
            ScheduledEvent::CheckVersions(process, epoch) => self.check_versions(process, epoch),
            ScheduledEvent::ReadInventory(process, _) => self.read_inventory(process),
            ScheduledEvent::Connect(process, epoch, site, number) => {
                self.connect(process, epoch, site, number);
            }
            ScheduledEvent::Probe(process, epoch, site, number) => self.probe(process, epoch, site, number),
            ScheduledEvent::CheckLiveness(process, _) => self.check_liveness(process),
            ScheduledEvent::FindSingletons(process, epoch) => self.find_singletons(process, epoch),
            ScheduledEvent::PlugIn(site) => self.plug_in(site),
            ScheduledEvent::Ask(origin, request) => self.ask(origin, request),
            ScheduledEvent::Deliver(origin, input) => self.deliver(origin, input),
            ScheduledEvent::Bookmark(connection) => self.bookmark(connection),
            ScheduledEvent::Write(write, stage) => return self.advance_write(write, stage),
            ScheduledEvent::Lead(process, epoch, lead) => self.lead(process, epoch, lead),
            ScheduledEvent::Collect => self.collect(),
            ScheduledEvent::RunPods => self.run_pods(),
            ScheduledEvent::CatchUp => {}
        }
        Ok(())
    }

    fn schedule(&mut self, at: Moment, event: ScheduledEvent) {
        self.number += 1;
        if !event.is_background() {
            self.foreground += 1;
        }
        self.agenda.insert((at.max(self.now), self.number), event);
    }

    /// Schedules an event after a random latency.
    fn soon(&mut self, event: ScheduledEvent) {
        let at = self.now + self.latency();
        self.schedule(at, event);
    }

    /// A random latency in milliseconds, mostly short.
    fn latency(&mut self) -> Moment {
        match self.rng.random_range(0..20) {
            0..6 => 0,
            6..16 => self.rng.random_range(1..15),
            16..19 => self.rng.random_range(15..200),
            _ => self.rng.random_range(200..1_500),
        }
    }

    fn instant(&self) -> Instant {
        self.begun + Duration::from_millis(self.now)
    }

    /// The wall clock of a controller.
    fn wall(&self, process: usize) -> Timestamp {
        let skew = self.processes[process].skew;
        Timestamp::from_millisecond((BEGINNING + skew) * 1000 + i64::try_from(self.now).unwrap_or_default())
            .unwrap_or(Timestamp::MAX)
    }

    /// Both clocks of a controller.
    fn clock(&self, process: usize) -> Now {
        Now { time: self.wall(process), passed: Duration::from_millis(self.now) }
    }

    /// The moment at which the wall clock of a controller reaches a time.
    fn moment(&self, process: usize, time: Timestamp) -> Moment {
        let wait = time.duration_since(self.wall(process));
        // Rounded up: a controller that wakes too early must sleep again.
        let wait = wait.as_millis() + i128::from(wait.subsec_nanos() % 1_000_000 > 0);
        self.now + u64::try_from(wait.max(0)).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(format!("{:>8} ms  {}", self.now, line()));
        }
    }

    /// The engine takes events from its inbox: nearly all, or only a few.
    fn step(&mut self, process: usize) -> Result<(), Violation> {
        self.processes[process].steps = false;
        let most = if self.rng.random_bool(0.7) { 1024 } else { self.rng.random_range(1..4) };
        let events = self.processes[process].take(most, self.now);
        if let Some(feed) = self.processes[process].feeds.values().find(|feed| feed.view.old_list.is_some()) {
            let kind = feed.reflector.kind();
            return Err(Violation::new(format!("controller {process} accepted a stale list of {kind}")));
        }
        let now = self.clock(process);
        let events = events.into_iter().map(|(feed, event)| Event::Feed(feed, event));
        let effects = self.processes[process].driver.step(now, events);
        self.follow_up(process, effects);
        self.go_on(process)
    }

    fn wake(&mut self, process: usize) -> Result<(), Violation> {
        let now = self.clock(process);
        self.processes[process].wakes = None;
        let effects = self.processes[process].driver.tick(now);
        self.follow_up(process, effects);
        self.go_on(process)
    }

    fn follow_up(&mut self, process: usize, effects: Vec<Effect>) {
        let mut unconnected = Vec::new();
        for effect in effects {
            match effect {
                Effect::Follow { feed, cluster, kind, lens } => {
                    let Some(site) = Site::of(&cluster) else {
                        let violation = Violation::new(format!(
                            "{kind} is followed in {cluster:?}, which does not exist"
                        ));
                        self.violation = self.violation.take().or(Some(violation));
                        continue;
                    };
                    if !self.processes[process].reads(site) {
                        let gone = FeedEvent::Unreadable(Unreadable::NotConnected);
                        unconnected.push(Event::Feed(feed, gone));
                        continue;
                    }
                    self.close(process, feed);
                    let (seed, now) = (self.rng.random(), self.now);
                    self.processes[process].follow(feed, (site, &kind), &lens, (seed, now));
                    self.advance(process, feed);
                }
                Effect::Leave { feed, cluster } => {
                    self.close(process, feed);
                    let left = self.processes[process].feeds.remove(&feed);
                    let is_read = Site::of(&cluster).is_some_and(|site| self.processes[process].reads(site));
                    if is_read && left.is_none_or(|left| left.site.cluster() != cluster) {
                        let violation =
                            Violation::new(format!("a feed in {cluster:?} is left that does not exist"));
                        self.violation = self.violation.take().or(Some(violation));
                    }
                }
                Effect::Record(transition) => {
                    self.tell(|| {
                        let (object, to, message) = (&transition.object, transition.to, &transition.message);
                        format!("controller {process} records an Event: {object} is {to:?}: {message}")
                    });
                    if self.leads(process) {
                        let life = (process, self.processes[process].epoch);
                        let noted = self.event_counts.note(life, &transition, &self.clusters.hub.store);
                        self.violation = self.violation.take().or(noted.err());
                    }
                }
                Effect::Changed(kind, name) => {
                    self.processes[process].has_events = true;
                    self.processes[process].answers.changed(kind, name);
                }
                Effect::Warn(_) | Effect::EnqueueWrite(..) | Effect::Wake(_) => {}
            }
        }
        if !unconnected.is_empty() {
            let now = self.clock(process);
            let effects = self.processes[process].driver.step(now, unconnected);
            self.follow_up(process, effects);
        }
    }

    /// Queries the controller, sends the writes that are due, and schedules its next step and wake-up.
    fn go_on(&mut self, process: usize) -> Result<(), Violation> {
        let now = self.wall(process);
        self.processes[process].ask(&self.clusters.hub.store, now)?;
        self.write(process)?;
        if !self.processes[process].alive {
            return Ok(());
        }
        let epoch = self.processes[process].epoch;
        if !self.processes[process].inbox.is_empty() && !self.processes[process].steps {
            self.processes[process].steps = true;
            self.soon(ScheduledEvent::Step(process, epoch));
        }
        let next = self.processes[process].driver.next().map_or(u64::MAX, |next| self.moment(process, next));
        let at = next.min(self.now + NOTICED);
        if self.processes[process].wakes.is_none_or(|wakes| at < wakes || wakes < self.now) {
            self.processes[process].wakes = Some(at);
            self.schedule(at, ScheduledEvent::Wake(process, epoch));
        }
        Ok(())
    }

    /// Sends changes of a cluster to watches, and schedules the garbage collector and the kubelet.
    fn pass_on(&mut self, site: Site) {
        let now = self.now;
        let faults = &self.clusters[site].faults;
        let back: Vec<_> = faults.unserved.iter().filter(|(_, (until, _))| *until <= now).collect();
        let back: Vec<_> = back.into_iter().map(|(kind, _)| kind.clone()).collect();
        for kind in back {
            if let Some((_, served)) = self.clusters[site].faults.unserved.remove(&kind) {
                self.tell(|| format!("{kind} is served again"));
                self.clusters[site].store.kinds.insert(kind, served);
                self.kinds_changed(site);
            }
        }
        let cluster = &mut self.clusters[site];
        if cluster.faults.lag <= now {
            cluster.behind = cluster.store.revision;
        }
        let revisions = (cluster.store.revision, cluster.behind);
        let before = mem::replace(&mut cluster.passed_on, revisions);
        let after = cluster.passed_on;
        if before == after {
            return;
        }
        if site == Site::Hub && before.0 != after.0 {
            if !self.collecting {
                self.collecting = true;
                let at = self.now + self.rng.random_range(20..800);
                self.schedule(at, ScheduledEvent::Collect);
            }
            if !self.running_pods {
                self.running_pods = true;
                let at = self.now + self.rng.random_range(20..800);
                self.schedule(at, ScheduledEvent::RunPods);
            }
        }
        self.pump_all(site);
    }

    /// The wall clock of API servers, which is always right.
    fn time(&self) -> Timestamp {
        let now = Timestamp::from_second(BEGINNING).unwrap_or_default();
        let passed = SignedDuration::from_millis(i64::try_from(self.now).unwrap_or_default());
        now.saturating_add(passed).unwrap_or(now)
    }
}

impl ScheduledEvent {
    /// Whether it also occurs in a run that has come to rest.
    fn is_background(&self) -> bool {
        match self {
            Self::Wake(..)
            | Self::Bookmark(_)
            | Self::Lead(..)
            | Self::CheckVersions(..)
            | Self::Probe(..)
            | Self::CheckLiveness(..) => true,
            Self::Deliver(_, input) => input.is_background(),
            _ => false,
        }
    }

    /// The controller that gets the event, with its epoch. None for events at API servers.
    fn recipient(&self) -> Option<(usize, u64)> {
        match self {
            Self::Step(process, epoch)
            | Self::Wake(process, epoch)
            | Self::Kinds(process, epoch, _)
            | Self::ReadInventory(process, epoch)
            | Self::Connect(process, epoch, ..)
            | Self::Probe(process, epoch, ..)
            | Self::CheckLiveness(process, epoch)
            | Self::FindSingletons(process, epoch)
            | Self::CheckVersions(process, epoch) => Some((*process, *epoch)),
            Self::Deliver(origin, _) => Some((origin.process, origin.epoch)),
            Self::Lead(process, epoch, lead) => lead.is_in_controller().then_some((*process, *epoch)),
            _ => None,
        }
    }
}
