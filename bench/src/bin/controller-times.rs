//! How a controller does on a real control plane: how soon changes show, what it writes, what it needs.
//!
//! The command line has the controller's program, how many objects there are, how many of them belong to one Application,
//! and for how many seconds how many of them change in each.

use std::{
    collections::HashMap,
    env,
    io::{Write as _, stderr, stdout},
    path::PathBuf,
    process,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use bellwether_bench::{
    Population,
    live::{Process, Server, Sightings},
};
use bellwether_testkit::{Cluster, work_of, work_of_all};
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep},
};

/// How long things may take that are not measured.
const PATIENCE: Duration = Duration::from_mins(3);

/// After so long, what follows from a change has happened.
const QUIET: Duration = Duration::from_secs(3);

/// So long a controller is watched that has nothing to do.
const IDLE: Duration = Duration::from_secs(20);

/// So many changes come in so many seconds in the burst, if the API server can take them.
const BURST: (usize, Duration) = (10_000, Duration::from_secs(10));

/// So many changes are under way at a time, at most.
const AT_A_TIME: usize = 20;

/// So many changes mean nothing.
const IDLE_CHANGES: usize = 1000;

/// A change that the API server has accepted.
struct Accepted {
    object: usize,
    ready: bool,
    sent: Instant,
    answered: Instant,
}

/// A control plane, and what happens on it.
struct Scene {
    cluster: Cluster,
    program: PathBuf,
    population: Population,
    server: Server,
    sightings: Sightings,
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let program = arguments.next().context("where is the controller?")?.into();
    let numbers = arguments.map(|argument| argument.to_string_lossy().parse());
    let numbers: Vec<usize> = numbers.collect::<Result<_, _>>()?;
    let [objects, group, seconds, rate] = *numbers else {
        anyhow::bail!(
            "how many objects, how many to an Application, for how many seconds, how many changes in each?"
        );
    };
    Scene::begin(program, Population::new(objects, group)?).await?.play(seconds, rate).await
}

impl Scene {
    async fn begin(program: PathBuf, population: Population) -> Result<Self> {
        let cluster = Cluster::start().await?;
        cluster.install(&bellwether_api::crds()).await?;
        let server = Server::new(cluster.admin().client().await?);
        let sightings = Sightings::begin(&server).await?;
        Ok(Self { cluster, program, population, server, sightings })
    }

    async fn play(&self, seconds: usize, rate: usize) -> Result<()> {
        let controller = self.start()?;
        controller.ready().await?;
        sleep(QUIET).await;
        let empty = controller.memory()?;
        tell("memory_empty", empty)?;
        controller.stop().await?;

        say(&format!("creating {} objects", self.population.objects()))?;
        let begun = Instant::now();
        self.server.populate(&self.population).await?;
        say(&format!("created in {:.0} s", begun.elapsed().as_secs_f64()))?;

        let controller = self.first_start().await?;
        tell("memory_full", controller.memory()?)?;
        tell("memory_each", (controller.memory()? - empty) / float(self.population.objects()))?;
        self.idle(&controller).await?;
        self.turns(&controller, seconds, rate).await?;
        self.words(rate).await?;
        self.mean_nothing().await?;
        self.burst().await?;
        tell("memory_later", controller.memory()?)?;
        controller.stop().await?;
        self.restart().await?;
        self.restart_after_changes().await
    }

    fn start(&self) -> Result<Process> {
        Process::start(&self.program, self.cluster.admin())
    }

    /// Nothing has a status yet.
    async fn first_start(&self) -> Result<Process> {
        let before = self.server.calls().await?;
        let controller = self.start()?;
        tell("first_ready_s", controller.ready().await?.as_secs_f64())?;
        let right = self.sightings.all_have(&self.expected(0), PATIENCE).await?;
        tell("first_right_s", (right - controller.begun()).as_secs_f64())?;
        sleep(QUIET).await;
        tell("first_writes", (self.server.calls().await? - before).statuses)?;
        Ok(controller)
    }

    async fn idle(&self, controller: &Process) -> Result<()> {
        say("nothing happens")?;
        let (begun, before) = (Instant::now(), controller.work()?);
        sleep(IDLE).await;
        tell("idle_percent", 100.0 * (controller.work()? - before) / begun.elapsed().as_secs_f64())
    }

    /// One object of each Application in turn makes it unready, and ready again.
    async fn turns(&self, controller: &Process, seconds: usize, rate: usize) -> Result<()> {
        // All are ready again in the end.
        let round = 2 * self.population.applications();
        let count = (seconds * rate / round).max(1) * round;
        say(&format!("{count} changes, {rate} a second"))?;
        let (before, worked, begun) = (self.server.calls().await?, self.work(controller)?, Instant::now());
        let told = ["bellwether_engine_step_duration_seconds", "bellwether_write_duration_seconds"];
        let means = [mean(controller, told[0]).await?, mean(controller, told[1]).await?];
        let changes = (0..count).map(|number| {
            let application = number % self.population.applications();
            (self.population.members(application).start, number / self.population.applications() % 2 == 1)
        });
        let accepted = self.make(changes, rate).await?;
        let (work, time) = (self.work(controller)?, begun.elapsed().as_secs_f64());
        sleep(QUIET).await;
        let calls = self.server.calls().await? - before;
        self.tell_delays("turn", &accepted)?;
        tell("turn_rate", float(accepted.len()) / time)?;
        tell("turn_writes", calls.statuses / float(accepted.len()))?;
        tell("turn_events", calls.events / float(accepted.len()))?;
        let names = ["turn_percent", "turn_server_percent", "turn_others_percent"];
        for (name, (after, before)) in names.into_iter().zip(work.into_iter().zip(worked)) {
            tell(name, 100.0 * (after - before) / time)?;
        }
        for ((name, metric), before) in ["turn_step_ms", "turn_write_ms"].into_iter().zip(told).zip(means) {
            let after = mean(controller, metric).await?;
            tell(name, 1000.0 * (after.0 - before.0) / (after.1 - before.1))?;
        }
        Ok(())
    }

    /// How long the controller has worked, the control plane, and all others but us.
    fn work(&self, controller: &Process) -> Result<[f64; 3]> {
        let parts = self.cluster.parts().filter_map(|part| self.cluster.process_id(part));
        let (own, server) = (controller.work()?, parts.map(work_of).sum::<Result<f64>>()?);
        Ok([own, server, work_of_all()? - own - server - work_of(process::id())?])
    }

    /// Objects of Applications change that are not ready before and after.
    async fn words(&self, rate: usize) -> Result<()> {
        let applications = self.population.applications();
        let first: Vec<_> = (0..applications).map(|number| self.population.members(number).start).collect();
        self.server.turn_all(&self.population, first.iter().copied(), false).await?;
        self.sightings.all_have(&self.expected(1), PATIENCE).await?;
        sleep(QUIET).await;
        let mut choice = 1_u64;
        let mut waiting: HashMap<usize, bool> = HashMap::new();
        let mut changes = Vec::new();
        for _ in 0..rate * 10 {
            // Any of them, and the same ones in each run.
            choice = choice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let object = usize::try_from(choice >> 33)? % self.population.objects();
            if !first.contains(&object) {
                let is_waiting = waiting.entry(object).or_default();
                *is_waiting = !*is_waiting;
                changes.push((object, !*is_waiting));
            }
        }
        say(&format!("{} changes of words alone", changes.len()))?;
        let before = self.server.calls().await?;
        let accepted = self.make(changes, rate).await?;
        sleep(QUIET).await;
        self.tell_delays("words", &accepted)?;
        tell("words_writes", (self.server.calls().await? - before).statuses / float(accepted.len()))?;
        let left = waiting.into_iter().filter(|(_, waiting)| *waiting).map(|(object, _)| object);
        self.server.turn_all(&self.population, first.into_iter().chain(left), true).await?;
        self.sightings.all_have(&self.expected(0), PATIENCE).await?;
        sleep(QUIET).await;
        Ok(())
    }

    async fn mean_nothing(&self) -> Result<()> {
        let before = self.server.calls().await?;
        let count = IDLE_CHANGES.min(self.population.objects());
        self.server.touch_all(&self.population, 0..count).await?;
        sleep(QUIET).await;
        tell("idle_changes", float(count))?;
        tell("idle_writes", (self.server.calls().await? - before).statuses)
    }

    /// All objects of one Application change, again and again.
    async fn burst(&self) -> Result<()> {
        let (count, time) = BURST;
        say(&format!("a burst of {count} changes"))?;
        let before = self.server.calls().await?;
        let begun = Instant::now();
        let workers = AT_A_TIME.min(self.population.members(0).len());
        let pause = time.mul_f64(float(workers) / float(count));
        let mut tasks = JoinSet::new();
        for worker in 0..workers {
            let (server, population) = (self.server.clone(), self.population.clone());
            tasks.spawn(async move {
                let members: Vec<_> = population.members(0).skip(worker).step_by(workers).collect();
                // All are ready again in the end.
                let round = 2 * members.len();
                let own = count / workers / round * round;
                let mut clock = interval(pause);
                clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
                for number in 0..own {
                    clock.tick().await;
                    let object = members[number % members.len()];
                    server.turn(&population, object, number / members.len() % 2 == 1).await?;
                }
                anyhow::Ok(own)
            });
        }
        let mut made = 0;
        while let Some(own) = tasks.join_next().await {
            made += own??;
        }
        let took = begun.elapsed().as_secs_f64();
        self.sightings.all_have(&self.expected(0), PATIENCE).await?;
        sleep(QUIET).await;
        tell("burst_changes", float(made))?;
        tell("burst_s", took)?;
        tell("burst_writes", (self.server.calls().await? - before).statuses)
    }

    /// Nothing has changed while there was no controller.
    async fn restart(&self) -> Result<()> {
        say("a restart")?;
        let before = self.server.calls().await?;
        let controller = self.start()?;
        tell("restart_ready_s", controller.ready().await?.as_secs_f64())?;
        sleep(QUIET).await;
        let calls = self.server.calls().await? - before;
        tell("restart_writes", calls.statuses)?;
        tell("restart_events", calls.events)?;
        tell("restart_memory", controller.memory()?)?;
        controller.stop().await
    }

    /// An object of each Application has.
    async fn restart_after_changes(&self) -> Result<()> {
        say("a restart after changes")?;
        let applications = 0..self.population.applications();
        let objects = applications.map(|application| self.population.members(application).start);
        self.server.turn_all(&self.population, objects, false).await?;
        let before = self.server.calls().await?;
        let controller = self.start()?;
        let right = self.sightings.all_have(&self.expected(1), PATIENCE).await?;
        tell("changed_right_s", (right - controller.begun()).as_secs_f64())?;
        sleep(QUIET).await;
        tell("changed_writes", (self.server.calls().await? - before).statuses)?;
        controller.stop().await
    }

    /// Makes changes, so many in a second.
    async fn make(
        &self,
        changes: impl IntoIterator<Item = (usize, bool)>,
        rate: usize,
    ) -> Result<Vec<Accepted>> {
        let mut clock = interval(Duration::from_secs(1).div_f64(float(rate)));
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tasks = JoinSet::new();
        let mut accepted = Vec::new();
        for (object, ready) in changes {
            clock.tick().await;
            // An API server that cannot take so many is not to drown in them.
            while tasks.len() >= AT_A_TIME
                && let Some(change) = tasks.join_next().await
            {
                accepted.push(change??);
            }
            let (server, population) = (self.server.clone(), self.population.clone());
            tasks.spawn(async move {
                let sent = Instant::now();
                server.turn(&population, object, ready).await?;
                anyhow::Ok(Accepted { object, ready, sent, answered: Instant::now() })
            });
        }
        while let Some(change) = tasks.join_next().await {
            accepted.push(change??);
        }
        Ok(accepted)
    }

    /// How long it took until changes showed in the status of their Applications.
    fn tell_delays(&self, what: &str, changes: &[Accepted]) -> Result<()> {
        let delay = |change: &Accepted| {
            let application = Population::application_name(self.population.application_of(change.object));
            let object = Population::object_name(change.object);
            let shown = self.sightings.first(&application, change.sent, &object, change.ready)?;
            Some(1000.0 * shown.saturating_duration_since(change.answered).as_secs_f64())
        };
        let delays = sorted(changes.iter().filter_map(delay).collect());
        for (name, percent) in [("p50", 50), ("p99", 99), ("max", 100)] {
            tell(&format!("{what}_{name}_ms"), at(&delays, percent)?)?;
        }
        let accepting = changes.iter().map(|change| 1000.0 * (change.answered - change.sent).as_secs_f64());
        let accepting = sorted(accepting.collect());
        for (name, percent) in [("p50", 50), ("p99", 99)] {
            tell(&format!("{what}_accept_{name}_ms"), at(&accepting, percent)?)?;
        }
        tell(&format!("{what}_changes"), float(changes.len()))?;
        tell(&format!("{what}_unseen"), float(changes.len() - delays.len()))
    }

    /// How many objects of each Application are ready, if so many of each are not.
    fn expected(&self, waiting: usize) -> HashMap<String, usize> {
        let ready = |application| {
            let members = self.population.members(application).len();
            (Population::application_name(application), members - waiting)
        };
        (0..self.population.applications()).map(ready).collect()
    }
}

/// The sum and the count of a metric that measures times.
async fn mean(controller: &Process, metric: &str) -> Result<(f64, f64)> {
    let sum = controller.metric(&format!("{metric}_sum")).await?;
    Ok((sum, controller.metric(&format!("{metric}_count")).await?))
}

/// A figure, in a line of its own.
fn tell(figure: &str, value: f64) -> Result<()> {
    writeln!(stdout(), "{}", json!({ "figure": figure, "value": value }))?;
    Ok(())
}

/// What is going on.
fn say(text: &str) -> Result<()> {
    writeln!(stderr(), "{text}")?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "no count here has more digits than a float")]
fn float(number: usize) -> f64 {
    number as f64
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The value that so many of a hundred do not exceed.
fn at(sorted: &[f64], percent: usize) -> Result<f64> {
    let last = sorted.len().checked_sub(1).context("no change has shown")?;
    Ok(sorted[(sorted.len() * percent / 100).min(last)])
}
