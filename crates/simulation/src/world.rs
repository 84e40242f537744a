//! The whole loop in one process: what comes next, and what becomes of it.
//!
//! Everything that takes time is on an agenda, and chance says how long it takes. Nothing else decides what happens first,
//! so that one seed gives one history.

mod active_faults;
mod clusters;
mod leading;
mod reading;
mod run;
mod tidying;
mod writing;

use std::{
    collections::BTreeMap,
    mem,
    time::{Duration, Instant},
};

use bellwether_engine::{Census, Effect, Event, Now};
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

/// When every run begins.
const BEGINNING: i64 = 1_794_650_400;

/// That a clock was set is noticed within this time.
const NOTICED: Moment = 60_000;

/// Something on the agenda.
enum ScheduledEvent {
    /// Something of the plan.
    Planned(usize),
    /// The plan is over, and so is all that went wrong.
    Calm,
    /// A controller is started.
    Start(usize),
    /// The engine of a controller takes what waits for it.
    Step(usize, u64),
    /// A controller wakes by itself.
    Wake(usize, u64),
    /// A controller learns which kinds there are in a cluster.
    Kinds(usize, u64, Site),
    /// A question reaches an API server.
    Ask(RequestOrigin, ReadRequest),
    /// What came of it reaches the controller.
    Hear(RequestOrigin, Input),
    /// What a watch has to say of its own accord.
    Bookmark(u64),
    /// A write is on its way.
    Fly(Box<InFlightWrite>, WriteStage),
    /// The election.
    Lead(usize, u64, Lead),
    /// The garbage collector looks.
    Collect,
    /// Whoever runs Pods sees to them.
    RunPods,
    /// The API server that was behind is not any more.
    CatchUp,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// What happened.
    pub happenings: u64,
    /// Writes that were made.
    pub writes: u64,
    /// Milliseconds from the end of all faults until everything was right, by the clock of the run.
    pub until_right: u64,
}

/// The clusters, their faults, and those who look after them.
pub(crate) struct World<'p> {
    plan: &'p Plan,
    chance: SmallRng,
    now: Moment,
    begun: Instant,
    clusters: Clusters,
    agenda: BTreeMap<(Moment, u64), ScheduledEvent>,
    number: u64,
    /// How much of the agenda is more than the passing of time.
    foreground: usize,
    processes: Vec<Process>,
    connections: BTreeMap<u64, Connection>,
    lease: (Option<Record>, u64),
    calm: Option<Moment>,
    collecting: bool,
    running_pods: bool,
    adopted: Adopted,
    told: EventCounts,
    /// What went wrong on the way.
    wrong: Option<Violation>,
    /// Whether everything was right once after the last fault. From then on nothing may be written.
    was_right: bool,
    /// When all controllers began anew, and how much the leader had kept until then.
    begun_anew: Option<(Moment, Census)>,
    tally: Tally,
    /// What happens, line by line, if anybody wants to know.
    story: Option<Vec<String>>,
}

impl<'p> World<'p> {
    pub(crate) fn new(plan: &'p Plan, tell: bool) -> Self {
        let mut world = Self {
            plan,
            chance: SmallRng::seed_from_u64(plan.seed ^ 0x5eed),
            now: 0,
            begun: Instant::now(),
            clusters: Clusters::default(),
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
            told: EventCounts::default(),
            wrong: None,
            was_right: false,
            begun_anew: None,
            tally: Tally::default(),
            story: tell.then(Vec::new),
        };
        for process in 0..plan.processes {
            let at = world.chance.random_range(0..50);
            world.schedule(at, ScheduledEvent::Start(process));
        }
        for (number, (moment, _)) in plan.deeds.iter().enumerate() {
            world.schedule(*moment, ScheduledEvent::Planned(number));
        }
        let end = plan.deeds.last().map_or(0, |(moment, _)| *moment);
        let lasts = plan.deeds.iter().map(|(moment, deed)| moment + deed.lasts()).max().unwrap_or_default();
        let calm = world.chance.random_range(0..3_000);
        world.schedule(end.max(lasts) + calm, ScheduledEvent::Calm);
        world
    }

    /// What was told, line by line.
    pub(crate) fn into_story(self) -> Vec<String> {
        self.story.unwrap_or_default()
    }

    /// Who leads.
    fn leader(&self) -> Option<usize> {
        (0..self.processes.len()).find(|process| self.leads(*process))
    }

    fn leads(&self, process: usize) -> bool {
        let process = &self.processes[process];
        let leads = |until: Instant| self.instant() < until;
        process.alive
            && process.election.as_ref().is_none_or(|election| election.leads_until().is_some_and(leads))
    }

    fn happen(&mut self, number: u64, happening: ScheduledEvent) -> Result<(), Violation> {
        // Who stands still does everything later.
        if let Some((process, epoch)) = happening.whose() {
            let process = &self.processes[process];
            if process.epoch != epoch || !process.alive {
                return Ok(());
            }
            if process.frozen_until > self.now {
                // In the order in which it would have.
                let until = process.frozen_until;
                self.foreground += usize::from(!happening.is_background());
                self.agenda.insert((until, number), happening);
                return Ok(());
            }
        }
        match happening {
            ScheduledEvent::Planned(number) => self.deed(Site::Hub, &self.plan.deeds[number].1),
            ScheduledEvent::Calm => self.calm(),
            ScheduledEvent::Start(process) => self.start(process),
            ScheduledEvent::Step(process, _) => return self.step(process),
            ScheduledEvent::Wake(process, _) => return self.wake(process),
            ScheduledEvent::Kinds(process, _, site) => self.learn_kinds(process, site),
            ScheduledEvent::Ask(asker, question) => self.ask(asker, question),
            ScheduledEvent::Hear(asker, input) => self.hear(asker, input),
            ScheduledEvent::Bookmark(connection) => self.bookmark(connection),
            ScheduledEvent::Fly(flight, journey) => return self.fly(flight, journey),
            ScheduledEvent::Lead(process, epoch, lead) => self.lead(process, epoch, lead),
            ScheduledEvent::Collect => self.collect(),
            ScheduledEvent::RunPods => self.run_pods(),
            ScheduledEvent::CatchUp => {}
        }
        Ok(())
    }

    fn schedule(&mut self, at: Moment, happening: ScheduledEvent) {
        self.number += 1;
        if !happening.is_background() {
            self.foreground += 1;
        }
        self.agenda.insert((at.max(self.now), self.number), happening);
    }

    fn soon(&mut self, happening: ScheduledEvent) {
        let at = self.now + self.latency();
        self.schedule(at, happening);
    }

    /// How long something takes: mostly not long.
    fn latency(&mut self) -> Moment {
        match self.chance.random_range(0..20) {
            0..6 => 0,
            6..16 => self.chance.random_range(1..15),
            16..19 => self.chance.random_range(15..200),
            _ => self.chance.random_range(200..1_500),
        }
    }

    fn instant(&self) -> Instant {
        self.begun + Duration::from_millis(self.now)
    }

    /// What the clock of a controller says.
    fn wall(&self, process: usize) -> Timestamp {
        let skew = self.processes[process].skew;
        Timestamp::from_millisecond((BEGINNING + skew) * 1000 + i64::try_from(self.now).unwrap_or_default())
            .unwrap_or(Timestamp::MAX)
    }

    /// What both clocks of a controller say.
    fn clock(&self, process: usize) -> Now {
        Now { time: self.wall(process), passed: Duration::from_millis(self.now) }
    }

    /// When the clock of a controller will say so.
    fn moment(&self, process: usize, time: Timestamp) -> Moment {
        let wait = time.duration_since(self.wall(process));
        // Rounded up: who wakes too early has to sleep again.
        let wait = wait.as_millis() + i128::from(wait.subsec_nanos() % 1_000_000 > 0);
        self.now + u64::try_from(wait.max(0)).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(format!("{:>8} ms  {}", self.now, line()));
        }
    }

    /// The engine takes some of what waits for it.
    fn step(&mut self, process: usize) -> Result<(), Violation> {
        self.processes[process].steps = false;
        let most = if self.chance.random_bool(0.7) { 1024 } else { self.chance.random_range(1..4) };
        let news = self.processes[process].take(most);
        if let Some(feed) = self.processes[process].feeds.values().find(|feed| feed.view.old_list.is_some()) {
            let kind = feed.follower.kind();
            return Err(Violation::new(format!("controller {process} believes an old list of {kind}")));
        }
        let now = self.clock(process);
        let events = news.into_iter().map(|(feed, news)| Event::Feed(feed, news));
        let effects = self.processes[process].driver.step(now, events);
        self.follow_up(process, effects);
        self.go_on(process)
    }

    /// Time has passed for a controller.
    fn wake(&mut self, process: usize) -> Result<(), Violation> {
        let now = self.clock(process);
        self.processes[process].wakes = None;
        let effects = self.processes[process].driver.tick(now);
        self.follow_up(process, effects);
        self.go_on(process)
    }

    fn follow_up(&mut self, process: usize, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Follow { feed, cluster, kind, lens } => {
                    let Some(site) = Site::of(&cluster) else {
                        let wrong =
                            Violation::new(format!("{kind} is followed in {cluster:?}, which is not there"));
                        self.wrong = self.wrong.take().or(Some(wrong));
                        continue;
                    };
                    self.close(process, feed);
                    let seed = self.chance.random();
                    self.processes[process].follow(feed, (site, &kind), &lens, seed);
                    self.advance(process, feed);
                }
                Effect::Leave { feed, cluster } => {
                    self.close(process, feed);
                    let left = self.processes[process].feeds.remove(&feed);
                    if left.is_none_or(|left| left.site.cluster() != cluster) {
                        let wrong =
                            Violation::new(format!("a feed of {cluster:?} is left that there was not"));
                        self.wrong = self.wrong.take().or(Some(wrong));
                    }
                }
                Effect::Record(turn) => {
                    self.tell(|| {
                        let (object, to, message) = (&turn.object, turn.to, &turn.message);
                        format!("controller {process} tells people: {object} is {to:?}: {message}")
                    });
                    if self.leads(process) {
                        let life = (process, self.processes[process].epoch);
                        self.wrong =
                            self.wrong.take().or(self.told.note(life, &turn, &self.clusters.hub.store).err());
                    }
                }
                Effect::Changed(kind, name) => {
                    self.processes[process].has_events = true;
                    self.processes[process].answers.changed(kind, name);
                }
                Effect::Warn(_) | Effect::Want(..) | Effect::Wake(_) => {}
            }
        }
    }

    /// Writes what is due, and sees to what is next. Before that, somebody asks.
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

    /// Passes on what has changed in a cluster: to those who watch, and to those who tidy up.
    fn pass_on(&mut self, site: Site) {
        let now = self.now;
        let trouble = &self.clusters[site].trouble;
        let back: Vec<_> = trouble.unserved.iter().filter(|(_, (until, _))| *until <= now).collect();
        let back: Vec<_> = back.into_iter().map(|(kind, _)| kind.clone()).collect();
        for kind in back {
            if let Some((_, served)) = self.clusters[site].trouble.unserved.remove(&kind) {
                self.tell(|| format!("{kind} is served again"));
                self.clusters[site].store.kinds.insert(kind, served);
                self.kinds_changed(site);
            }
        }
        let it = &mut self.clusters[site];
        if it.trouble.lag <= now {
            it.behind = it.store.revision;
        }
        let before = mem::replace(&mut it.passed_on, (it.store.revision, it.behind));
        let after = it.passed_on;
        if before == after {
            return;
        }
        if site == Site::Hub && before.0 != after.0 {
            if !self.collecting {
                self.collecting = true;
                let at = self.now + self.chance.random_range(20..800);
                self.schedule(at, ScheduledEvent::Collect);
            }
            if !self.running_pods {
                self.running_pods = true;
                let at = self.now + self.chance.random_range(20..800);
                self.schedule(at, ScheduledEvent::RunPods);
            }
        }
        self.pump_all(site);
    }

    /// The time as the cluster has it.
    fn time(&self) -> Timestamp {
        let now = Timestamp::from_second(BEGINNING).unwrap_or_default();
        let passed = SignedDuration::from_millis(i64::try_from(self.now).unwrap_or_default());
        now.saturating_add(passed).unwrap_or(now)
    }
}

impl ScheduledEvent {
    /// Whether it is the passing of time alone.
    fn is_background(&self) -> bool {
        match self {
            Self::Wake(..) | Self::Bookmark(_) | Self::Lead(..) => true,
            Self::Hear(_, input) => input.is_background(),
            _ => false,
        }
    }

    /// The controller that it happens to.
    fn whose(&self) -> Option<(usize, u64)> {
        match self {
            Self::Step(process, epoch) | Self::Wake(process, epoch) | Self::Kinds(process, epoch, _) => {
                Some((*process, *epoch))
            }
            Self::Hear(asker, _) => Some((asker.process, asker.epoch)),
            Self::Lead(process, epoch, lead) => lead.is_at_home().then_some((*process, *epoch)),
            _ => None,
        }
    }
}
