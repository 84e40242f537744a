//! Faults in the traffic of each controller, in the controllers and in the control plane. Each of these four
//! runs its own random sequence; up to three faults are active at a time.

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
    environment::Environment,
    fault_windows::{FaultScope, FaultWindows},
    objects::Kind,
    observer::Observer,
    replica::Replica,
};

const MAX_ACTIVE: usize = 3;

pub(crate) struct Faults {
    environment: Arc<Environment>,
    observer: Observer,
    windows: FaultWindows,
    alarms: Alarms,
    rngs: [StdRng; 4],
    /// The number of faults by name.
    count: BTreeMap<String, usize>,
}

struct FaultContext<'a> {
    environment: &'a Environment,
    observer: &'a Observer,
    windows: &'a FaultWindows,
    alarms: &'a Alarms,
    until: Instant,
    /// Do not kill or stop the second controller.
    spares: bool,
    slots: Semaphore,
}

impl Faults {
    pub(crate) fn new(
        environment: &Arc<Environment>,
        observer: &Observer,
        windows: &FaultWindows,
        alarms: &Alarms,
        seed: u64,
    ) -> Self {
        Self {
            environment: Arc::clone(environment),
            observer: observer.clone(),
            windows: windows.clone(),
            alarms: alarms.clone(),
            rngs: [1, 2, 3, 4]
                .map(|course| StdRng::seed_from_u64(seed.wrapping_mul(31).wrapping_add(course))),
            count: BTreeMap::new(),
        }
    }

    pub(crate) fn count(&self) -> &BTreeMap<String, usize> {
        &self.count
    }

    /// Injects faults until a time, lifts them all, and returns their names. With `spares`, the second
    /// controller is neither killed nor stopped.
    pub(crate) async fn run(&mut self, until: Instant, spares: bool) -> Result<Vec<String>> {
        let context = FaultContext {
            environment: &self.environment,
            observer: &self.observer,
            windows: &self.windows,
            alarms: &self.alarms,
            until,
            spares,
            slots: Semaphore::new(MAX_ACTIVE),
        };
        let [first, second, third, fourth] = &mut self.rngs;
        let [a, b] = self.environment.replicas();
        let (a, b, processes, plane) = tokio::join!(
            context.traffic(a, first),
            context.traffic(b, second),
            context.processes(third),
            context.plane(fourth)
        );
        let broken: Vec<_> = [a?, b?, processes?, plane?].concat();
        for what in &broken {
            *self.count.entry(what.clone()).or_default() += 1;
        }
        Ok(broken)
    }
}

impl FaultContext<'_> {
    /// Waits for a random time. Returns whether there is time for another fault.
    async fn pause(&self, random: &mut StdRng, longest: f64) -> bool {
        sleep(Duration::from_secs_f64(random.random_range(0.3..longest))).await;
        Instant::now() + Duration::from_secs(1) < self.until
    }

    /// Waits while a fault is active, at most until the end.
    async fn hold(&self, random: &mut StdRng, longest: f64) {
        let time = Duration::from_secs_f64(random.random_range(1.0..longest));
        sleep(time.min(self.until.saturating_duration_since(Instant::now()))).await;
    }

    /// Injects faults into the traffic of one controller.
    async fn traffic(&self, replica: &Replica, random: &mut StdRng) -> Result<Vec<String>> {
        let mut broken = Vec::new();
        while self.pause(random, 6.0).await {
            let _slot = self.slots.acquire().await?;
            let (requests, kind, target) = any_requests(random);
            let past = Duration::from_secs(random.random_range(2..10));
            let revision = self
                .observer
                .revision_at(Instant::now().checked_sub(past).context("the clock starts too late")?);
            let (name, fault) = match target {
                Target::Reads => any_of_reads(revision, random),
                Target::Writes => any_of_writes(random),
                Target::All => any_of_all(random),
            };
            let past = if name == "past" { past } else { Duration::ZERO };
            let window = self.windows.begin(FaultScope { kind, past, ..FaultScope::default() });
            let injected = replica.proxy().inject(requests, fault);
            // A fault does not affect requests in flight. Cutting their connections makes the controller
            // repeat them.
            if random.random_bool(0.6) {
                replica.proxy().cut_all().await;
            }
            self.hold(random, 12.0).await;
            injected.lift();
            // The controller notices a silent connection only after minutes.
            if random.random_bool(0.3) || name == "half open" {
                replica.proxy().cut_all().await;
            }
            window.end();
            broken.push(name.to_owned());
        }
        Ok(broken)
    }

    /// Kills, stops or pauses a controller.
    async fn processes(&self, random: &mut StdRng) -> Result<Vec<String>> {
        let mut broken = Vec::new();
        while self.pause(random, 20.0).await {
            let _slot = self.slots.acquire().await?;
            let replicas = self.environment.replicas();
            let mortal = if self.spares { &replicas[..1] } else { &replicas[..] };
            let mut replica = mortal.choose(random).context("no controller")?;
            let name = match random.random_range(0..10) {
                0..4 => {
                    replica.kill();
                    self.hold(random, 5.0).await;
                    "controller killed"
                }
                4..6 => {
                    if let Err(error) = replica.stop().await {
                        self.alarms.raise(&format!("{error:#}"));
                    }
                    self.hold(random, 3.0).await;
                    "controller stopped"
                }
                _ => {
                    for other in replicas {
                        if other.leads().await {
                            replica = other;
                        }
                    }
                    // Fails if the controller has just ended by itself.
                    let window = self.windows.begin(FaultScope::default());
                    if replica.pause().is_ok() {
                        // Mostly longer than the lease.
                        sleep(Duration::from_secs(random.random_range(3..25))).await;
                        replica.resume()?;
                    }
                    window.end();
                    "leader paused"
                }
            };
            replica.start()?;
            broken.push(name.to_owned());
        }
        Ok(broken)
    }

    /// Kills or freezes a part of the control plane, or removes a CRD or rights.
    async fn plane(&self, random: &mut StdRng) -> Result<Vec<String>> {
        let mut broken = Vec::new();
        while self.pause(random, 15.0).await {
            let _slot = self.slots.acquire().await?;
            let away = Duration::from_secs_f64(random.random_range(0.0..4.0));
            let all = FaultScope { unreadable: true, ..FaultScope::default() };
            let name = match random.random_range(0..10) {
                0..3 => {
                    let window = self.windows.begin(all);
                    self.environment.kill(Part::ApiServer, away).await?;
                    window.end();
                    "API server killed"
                }
                3..5 => {
                    let window = self.windows.begin(all);
                    self.environment.kill(Part::Etcd, away).await?;
                    window.end();
                    "etcd killed"
                }
                5 => {
                    let window = self.windows.begin(all);
                    self.environment.freeze(Part::ApiServer, away).await?;
                    window.end();
                    "API server frozen"
                }
                6..8 => {
                    let afterwards = Duration::from_secs(20);
                    let kind = Some(Kind::Widget);
                    let window = self.windows.begin(FaultScope { kind, afterwards, ..all });
                    self.observer.widgets_removed(true);
                    self.environment.remove_widgets(away).await?;
                    window.end();
                    sleep(Duration::from_secs(2)).await;
                    self.observer.widgets_removed(false);
                    "kind removed"
                }
                _ => {
                    let kind = *Kind::ALL.choose(random).context("no kind")?;
                    let afterwards = Duration::from_secs(40);
                    let window = self.windows.begin(FaultScope { kind: Some(kind), afterwards, ..all });
                    self.environment.revoke_rights(kind, 2 * away).await?;
                    window.end();
                    "rights removed"
                }
            };
            broken.push(name.to_owned());
        }
        Ok(broken)
    }
}

/// The requests that a fault strikes.
enum Target {
    Reads,
    Writes,
    All,
}

/// Random requests, and the only kind whose events they may delay (`None`: all kinds).
fn any_requests(random: &mut StdRng) -> (Requests, Option<Kind>, Target) {
    let reads = || Requests::all().verb(Verb::Get).verb(Verb::List).verb(Verb::Watch);
    match random.random_range(0..10) {
        0..3 => {
            let kind = *Kind::ALL.choose(random).unwrap_or(&Kind::ConfigMap);
            (reads().resource(&kind.api_resource().qualified_name()), Some(kind), Target::Reads)
        }
        3 => (reads().resource("applications.bellwether.dev"), None, Target::Reads),
        4 => (Requests::all().verb(Verb::Watch), None, Target::Reads),
        5 => (reads(), None, Target::Reads),
        6 => (Requests::writes().resource("applications.bellwether.dev/status"), None, Target::Writes),
        7 => (Requests::all().verb(Verb::Patch), None, Target::Writes),
        8 => (Requests::writes(), None, Target::Writes),
        _ => (Requests::all(), None, Target::All),
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

/// A temporary error of an API server.
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
