//! What goes wrong: in the traffic of each controller, with the controllers themselves, and with the control plane. Each of
//! these has a course of its own, so that one to three things are wrong at a time.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use bellwether_testkit::{Fault, Part, Requests, StatusCode, Verb};
use rand::{Rng, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};
use tokio::{sync::Semaphore, time::sleep};

use crate::{
    alarm::Alarms,
    cast::Kind,
    replica::Replica,
    stage::Stage,
    trouble::{Effect, Troubles},
    witness::Witness,
};

/// So many things are wrong at a time, at most.
const AT_A_TIME: usize = 3;

/// Everything that goes wrong.
pub(crate) struct Faults {
    stage: Arc<Stage>,
    witness: Witness,
    troubles: Troubles,
    alarms: Alarms,
    courses: [StdRng; 4],
    /// How often each was.
    count: BTreeMap<String, usize>,
}

/// What a course needs.
struct Scene<'a> {
    stage: &'a Stage,
    witness: &'a Witness,
    troubles: &'a Troubles,
    alarms: &'a Alarms,
    until: Instant,
    /// Whether the second controller is not to be ended.
    spares: bool,
    room: Semaphore,
}

impl Faults {
    /// Faults that follow from a seed.
    pub(crate) fn new(
        stage: &Arc<Stage>,
        witness: &Witness,
        troubles: &Troubles,
        alarms: &Alarms,
        seed: u64,
    ) -> Self {
        Self {
            stage: Arc::clone(stage),
            witness: witness.clone(),
            troubles: troubles.clone(),
            alarms: alarms.clone(),
            courses: [1, 2, 3, 4]
                .map(|course| StdRng::seed_from_u64(seed.wrapping_mul(31).wrapping_add(course))),
            count: BTreeMap::new(),
        }
    }

    /// How often each was, so far.
    pub(crate) fn count(&self) -> &BTreeMap<String, usize> {
        &self.count
    }

    /// Breaks things until a time, and mends them all. One of the controllers can be spared: whatever happens around it, it is
    /// not ended. Gives back what was broken.
    pub(crate) async fn run(&mut self, until: Instant, spares: bool) -> Result<Vec<String>> {
        let scene = Scene {
            stage: &self.stage,
            witness: &self.witness,
            troubles: &self.troubles,
            alarms: &self.alarms,
            until,
            spares,
            room: Semaphore::new(AT_A_TIME),
        };
        let [first, second, third, fourth] = &mut self.courses;
        let [a, b] = self.stage.replicas();
        let (a, b, processes, plane) = tokio::join!(
            scene.traffic(a, first),
            scene.traffic(b, second),
            scene.processes(third),
            scene.plane(fourth)
        );
        let broken: Vec<_> = [a?, b?, processes?, plane?].concat();
        for what in &broken {
            *self.count.entry(what.clone()).or_default() += 1;
        }
        Ok(broken)
    }
}

impl Scene<'_> {
    /// Waits for a while; gives back whether there is time for something.
    async fn rest(&self, random: &mut StdRng, longest: f64) -> bool {
        sleep(Duration::from_secs_f64(random.random_range(0.3..longest))).await;
        Instant::now() + Duration::from_secs(1) < self.until
    }

    /// Lets something last, but not for too long.
    async fn last(&self, random: &mut StdRng, longest: f64) {
        let time = Duration::from_secs_f64(random.random_range(1.0..longest));
        sleep(time.min(self.until.saturating_duration_since(Instant::now()))).await;
    }

    /// The traffic of one controller is struck.
    async fn traffic(&self, replica: &Replica, random: &mut StdRng) -> Result<Vec<String>> {
        let mut broken = Vec::new();
        while self.rest(random, 6.0).await {
            let _room = self.room.acquire().await?;
            let (requests, kind, struck) = any_requests(random);
            let past = Duration::from_secs(random.random_range(2..10));
            let revision = self.witness.revision_at(Instant::now().checked_sub(past).context("no past")?);
            let (name, fault) = match struck {
                Struck::Reads => any_of_reads(revision, random),
                Struck::Writes => any_of_writes(random),
                Struck::All => any_of_all(random),
            };
            let past = if name == "past" { past } else { Duration::ZERO };
            let trouble = self.troubles.begin(Effect { kind, past, ..Effect::default() });
            let injected = replica.proxy().inject(requests, fault);
            // What is under way goes on, unless it has to come again.
            if random.random_bool(0.6) {
                replica.proxy().cut_all().await;
            }
            self.last(random, 12.0).await;
            injected.lift();
            // A silent connection is found out only after minutes.
            if random.random_bool(0.3) || name == "half open" {
                replica.proxy().cut_all().await;
            }
            trouble.end();
            broken.push(name.to_owned());
        }
        Ok(broken)
    }

    /// A controller is killed, stopped in its tracks, or asked to end.
    async fn processes(&self, random: &mut StdRng) -> Result<Vec<String>> {
        let mut broken = Vec::new();
        while self.rest(random, 20.0).await {
            let _room = self.room.acquire().await?;
            let replicas = self.stage.replicas();
            let mortal = if self.spares { &replicas[..1] } else { &replicas[..] };
            let mut replica = mortal.choose(random).context("no controller")?;
            let name = match random.random_range(0..10) {
                0..4 => {
                    replica.kill();
                    self.last(random, 5.0).await;
                    "controller killed"
                }
                4..6 => {
                    if let Err(error) = replica.stop().await {
                        self.alarms.raise(&format!("{error:#}"));
                    }
                    self.last(random, 3.0).await;
                    "controller stopped"
                }
                _ => {
                    for other in replicas {
                        if other.leads().await {
                            replica = other;
                        }
                    }
                    // One that has just ended by itself cannot be stopped.
                    let trouble = self.troubles.begin(Effect::default());
                    if replica.pause().is_ok() {
                        // As long as the lease, or longer.
                        sleep(Duration::from_secs(random.random_range(3..25))).await;
                        replica.resume()?;
                    }
                    trouble.end();
                    "leader paused"
                }
            };
            replica.start()?;
            broken.push(name.to_owned());
        }
        Ok(broken)
    }

    /// A part of the control plane dies, or something of it is taken away.
    async fn plane(&self, random: &mut StdRng) -> Result<Vec<String>> {
        let mut broken = Vec::new();
        while self.rest(random, 15.0).await {
            let _room = self.room.acquire().await?;
            let away = Duration::from_secs_f64(random.random_range(0.0..4.0));
            let all = Effect { unreadable: true, ..Effect::default() };
            let name = match random.random_range(0..10) {
                0..3 => {
                    let trouble = self.troubles.begin(all);
                    self.stage.kill(Part::ApiServer, away).await?;
                    trouble.end();
                    "API server killed"
                }
                3..5 => {
                    let trouble = self.troubles.begin(all);
                    self.stage.kill(Part::Etcd, away).await?;
                    trouble.end();
                    "etcd killed"
                }
                5 => {
                    let trouble = self.troubles.begin(all);
                    self.stage.freeze(Part::ApiServer, away).await?;
                    trouble.end();
                    "API server frozen"
                }
                6..8 => {
                    let afterwards = Duration::from_secs(20);
                    let kind = Some(Kind::Widget);
                    let trouble = self.troubles.begin(Effect { kind, afterwards, ..all });
                    self.witness.widgets_go(true);
                    self.stage.take_widgets(away).await?;
                    trouble.end();
                    sleep(Duration::from_secs(2)).await;
                    self.witness.widgets_go(false);
                    "kind removed"
                }
                _ => {
                    let kind = *Kind::ALL.choose(random).context("no kind")?;
                    let afterwards = Duration::from_secs(40);
                    let trouble = self.troubles.begin(Effect { kind: Some(kind), afterwards, ..all });
                    self.stage.take_rights(kind, 2 * away).await?;
                    trouble.end();
                    "rights removed"
                }
            };
            broken.push(name.to_owned());
        }
        Ok(broken)
    }
}

/// What a fault strikes.
enum Struck {
    Reads,
    Writes,
    All,
}

/// Some requests, and the kind of which news is late if they are struck.
fn any_requests(random: &mut StdRng) -> (Requests, Option<Kind>, Struck) {
    let reads = || Requests::all().verb(Verb::Get).verb(Verb::List).verb(Verb::Watch);
    match random.random_range(0..10) {
        0..3 => {
            let kind = Kind::any(random);
            (reads().resource(&kind.place().resource()), Some(kind), Struck::Reads)
        }
        3 => (reads().resource("applications.bellwether.dev"), None, Struck::Reads),
        4 => (Requests::all().verb(Verb::Watch), None, Struck::Reads),
        5 => (reads(), None, Struck::Reads),
        6 => (Requests::writes().resource("applications.bellwether.dev/status"), None, Struck::Writes),
        7 => (Requests::all().verb(Verb::Patch), None, Struck::Writes),
        8 => (Requests::writes(), None, Struck::Writes),
        _ => (Requests::all(), None, Struck::All),
    }
}

fn any_of_reads(revision: u64, random: &mut StdRng) -> (&'static str, Fault) {
    let after_lines = random.random_range(0..4);
    let time = Duration::from_millis(random.random_range(200..6000));
    match random.random_range(0..9) {
        0 => ("cut mid line", Fault::CutMidLine { after_lines }),
        1 => ("half open", Fault::HalfOpen { after_lines }),
        2 => ("delay", Fault::Delay(time)),
        3 => ("delayed events", Fault::DelayEvents(time)),
        4 => ("held events", Fault::HoldEvents),
        5 => ("gone", Fault::ErrorEvent(StatusCode::GONE)),
        6 => ("gone", answer(StatusCode::GONE, None)),
        7 => ("past", Fault::Past { resource_version: revision }),
        _ => any_answer(random),
    }
}

fn any_of_writes(random: &mut StdRng) -> (&'static str, Fault) {
    match random.random_range(0..5) {
        0 => ("lost response", Fault::LoseResponse),
        1 => ("held response", Fault::HoldResponse),
        _ => any_of_all(random),
    }
}

fn any_of_all(random: &mut StdRng) -> (&'static str, Fault) {
    let time = Duration::from_millis(random.random_range(200..6000));
    match random.random_range(0..5) {
        0 => ("cut mid line", Fault::CutMidLine { after_lines: 0 }),
        1 => ("half open", Fault::HalfOpen { after_lines: 0 }),
        2 => ("delay", Fault::Delay(time)),
        _ => any_answer(random),
    }
}

/// An API server that cannot, for now.
fn any_answer(random: &mut StdRng) -> (&'static str, Fault) {
    let wait = Duration::from_secs(random.random_range(1..4));
    match random.random_range(0..3) {
        0 => ("429", answer(StatusCode::TOO_MANY_REQUESTS, Some(wait))),
        1 => ("500", answer(StatusCode::INTERNAL_SERVER_ERROR, None)),
        _ => ("503", answer(StatusCode::SERVICE_UNAVAILABLE, random.random_bool(0.5).then_some(wait))),
    }
}

fn answer(status: StatusCode, retry_after: Option<Duration>) -> Fault {
    Fault::Answer { status, retry_after }
}
