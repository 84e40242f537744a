//! Measures a controller on a real control plane: latency, writes, CPU and memory.
//!
//! Arguments: the controller's binary, the number of objects, the number of objects in one Application, the
//! duration in seconds, and the number of changes in a second.

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
    live::{Observations, Process, Server},
};
use bellwether_testkit::{Cluster, work_of, work_of_all};
use serde_json::json;
use tokio::{
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep},
};

/// The timeout of steps that are not measured.
const TIMEOUT: Duration = Duration::from_mins(3);

/// The time after which all effects of a change are visible.
const QUIET: Duration = Duration::from_secs(3);

/// The duration of the idle measurement.
const IDLE: Duration = Duration::from_secs(20);

/// The number of changes in the burst, and its duration if the API server is fast enough.
const BURST: (usize, Duration) = (10_000, Duration::from_secs(10));

const MAX_IN_FLIGHT: usize = 20;

/// The number of changes that do not affect a status.
const IDLE_CHANGES: usize = 1000;

/// A change that the API server has accepted.
struct Accepted {
    object: usize,
    ready: bool,
    sent: Instant,
    answered: Instant,
}

struct Benchmark {
    cluster: Cluster,
    program: PathBuf,
    population: Population,
    server: Server,
    observations: Observations,
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = env::args_os().skip(1);
    let program = arguments.next().context("missing argument: path of the controller")?.into();
    let numbers = arguments.map(|argument| argument.to_string_lossy().parse());
    let numbers: Vec<usize> = numbers.collect::<Result<_, _>>()?;
    let [objects, group, seconds, rate] = *numbers else {
        anyhow::bail!(
            "missing arguments: number of objects, number in one Application, seconds, changes in a second"
        );
    };
    Benchmark::begin(program, Population::new(objects, group)?).await?.run(seconds, rate).await
}

impl Benchmark {
    async fn begin(program: PathBuf, population: Population) -> Result<Self> {
        let cluster = Cluster::start().await?;
        cluster.install(&bellwether_api::crds()).await?;
        let server = Server::new(cluster.admin().client().await?);
        let observations = Observations::begin(&server).await?;
        Ok(Self { cluster, program, population, server, observations })
    }

    async fn run(&self, seconds: usize, rate: usize) -> Result<()> {
        let controller = self.start()?;
        controller.ready().await?;
        sleep(QUIET).await;
        let empty = controller.memory()?;
        figure("memory_empty", empty)?;
        controller.stop().await?;

        log(&format!("creating {} objects", self.population.objects()))?;
        let begun = Instant::now();
        self.server.populate(&self.population).await?;
        log(&format!("created in {:.0} s", begun.elapsed().as_secs_f64()))?;

        let controller = self.first_start().await?;
        figure("memory_full", controller.memory()?)?;
        figure("memory_each", (controller.memory()? - empty) / float(self.population.objects()))?;
        self.idle(&controller).await?;
        self.readiness_changes(&controller, seconds, rate).await?;
        self.message_changes(rate).await?;
        self.changes_without_effect().await?;
        self.burst().await?;
        figure("memory_later", controller.memory()?)?;
        controller.stop().await?;
        self.restart().await?;
        self.restart_after_changes().await
    }

    fn start(&self) -> Result<Process> {
        Process::start(&self.program, self.cluster.admin(), &[])
    }

    /// Starts the controller when no Application has a status.
    async fn first_start(&self) -> Result<Process> {
        let before = self.server.calls().await?;
        let controller = self.start()?;
        figure("first_ready_s", controller.ready().await?.as_secs_f64())?;
        let right = self.observations.all_have(&self.expected(0), TIMEOUT).await?;
        figure("first_right_s", (right - controller.begun()).as_secs_f64())?;
        sleep(QUIET).await;
        figure("first_writes", (self.server.calls().await? - before).statuses)?;
        Ok(controller)
    }

    async fn idle(&self, controller: &Process) -> Result<()> {
        log("idle")?;
        let (begun, before) = (Instant::now(), controller.cpu_seconds()?);
        sleep(IDLE).await;
        figure("idle_percent", 100.0 * (controller.cpu_seconds()? - before) / begun.elapsed().as_secs_f64())
    }

    /// One object of each Application in turn becomes not ready, and ready again.
    async fn readiness_changes(&self, controller: &Process, seconds: usize, rate: usize) -> Result<()> {
        // Whole rounds, so that all are ready at the end.
        let round = 2 * self.population.applications();
        let count = (seconds * rate / round).max(1) * round;
        log(&format!("{count} changes, {rate} a second"))?;
        let (before, cpu_before, begun) =
            (self.server.calls().await?, self.cpu_seconds(controller)?, Instant::now());
        let histograms = ["bellwether_engine_step_duration_seconds", "bellwether_write_duration_seconds"];
        let means = [mean(controller, histograms[0]).await?, mean(controller, histograms[1]).await?];
        let changes = (0..count).map(|number| {
            let application = number % self.population.applications();
            (self.population.members(application).start, number / self.population.applications() % 2 == 1)
        });
        let accepted = self.make(changes, rate).await?;
        let (cpu, time) = (self.cpu_seconds(controller)?, begun.elapsed().as_secs_f64());
        sleep(QUIET).await;
        let calls = self.server.calls().await? - before;
        self.report_delays("turn", &accepted)?;
        figure("turn_rate", float(accepted.len()) / time)?;
        figure("turn_writes", calls.statuses / float(accepted.len()))?;
        figure("turn_events", calls.events / float(accepted.len()))?;
        let names = ["turn_percent", "turn_server_percent", "turn_others_percent"];
        for (name, (after, before)) in names.into_iter().zip(cpu.into_iter().zip(cpu_before)) {
            figure(name, 100.0 * (after - before) / time)?;
        }
        for ((name, metric), before) in
            ["turn_step_ms", "turn_write_ms"].into_iter().zip(histograms).zip(means)
        {
            let after = mean(controller, metric).await?;
            figure(name, 1000.0 * (after.0 - before.0) / (after.1 - before.1))?;
        }
        Ok(())
    }

    /// The CPU times of the controller, of the control plane, and of all other processes except this one.
    fn cpu_seconds(&self, controller: &Process) -> Result<[f64; 3]> {
        let parts = self.cluster.parts().filter_map(|part| self.cluster.process_id(part));
        let (own, server) = (controller.cpu_seconds()?, parts.map(work_of).sum::<Result<f64>>()?);
        Ok([own, server, work_of_all()? - own - server - work_of(process::id())?])
    }

    /// Changes objects of Applications that are not ready before and after the change, so that only messages
    /// change.
    async fn message_changes(&self, rate: usize) -> Result<()> {
        let applications = self.population.applications();
        let first: Vec<_> = (0..applications).map(|number| self.population.members(number).start).collect();
        self.server.set_all_ready(&self.population, first.iter().copied(), false).await?;
        self.observations.all_have(&self.expected(1), TIMEOUT).await?;
        sleep(QUIET).await;
        let mut choice = 1_u64;
        let mut waiting: HashMap<usize, bool> = HashMap::new();
        let mut changes = Vec::new();
        for _ in 0..rate * 10 {
            // A linear congruential generator: the same objects in each run.
            choice = choice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let object = usize::try_from(choice >> 33)? % self.population.objects();
            if !first.contains(&object) {
                let is_waiting = waiting.entry(object).or_default();
                *is_waiting = !*is_waiting;
                changes.push((object, !*is_waiting));
            }
        }
        log(&format!("{} changes of messages only", changes.len()))?;
        let before = self.server.calls().await?;
        let accepted = self.make(changes, rate).await?;
        sleep(QUIET).await;
        self.report_delays("words", &accepted)?;
        figure("words_writes", (self.server.calls().await? - before).statuses / float(accepted.len()))?;
        let left = waiting.into_iter().filter(|(_, waiting)| *waiting).map(|(object, _)| object);
        self.server.set_all_ready(&self.population, first.into_iter().chain(left), true).await?;
        self.observations.all_have(&self.expected(0), TIMEOUT).await?;
        sleep(QUIET).await;
        Ok(())
    }

    async fn changes_without_effect(&self) -> Result<()> {
        let before = self.server.calls().await?;
        let count = IDLE_CHANGES.min(self.population.objects());
        self.server.touch_all(&self.population, 0..count).await?;
        sleep(QUIET).await;
        figure("idle_changes", float(count))?;
        figure("idle_writes", (self.server.calls().await? - before).statuses)
    }

    /// Changes all objects of one Application repeatedly.
    async fn burst(&self) -> Result<()> {
        let (count, time) = BURST;
        log(&format!("a burst of {count} changes"))?;
        let before = self.server.calls().await?;
        let begun = Instant::now();
        let workers = MAX_IN_FLIGHT.min(self.population.members(0).len());
        let pause = time.mul_f64(float(workers) / float(count));
        let mut tasks = JoinSet::new();
        for worker in 0..workers {
            let (server, population) = (self.server.clone(), self.population.clone());
            tasks.spawn(async move {
                let members: Vec<_> = population.members(0).skip(worker).step_by(workers).collect();
                // Whole rounds, so that all are ready at the end.
                let round = 2 * members.len();
                let own = count / workers / round * round;
                let mut clock = interval(pause);
                clock.set_missed_tick_behavior(MissedTickBehavior::Burst);
                for number in 0..own {
                    clock.tick().await;
                    let object = members[number % members.len()];
                    server.set_ready(&population, object, number / members.len() % 2 == 1).await?;
                }
                anyhow::Ok(own)
            });
        }
        let mut made = 0;
        while let Some(own) = tasks.join_next().await {
            made += own??;
        }
        let took = begun.elapsed().as_secs_f64();
        self.observations.all_have(&self.expected(0), TIMEOUT).await?;
        sleep(QUIET).await;
        figure("burst_changes", float(made))?;
        figure("burst_s", took)?;
        figure("burst_writes", (self.server.calls().await? - before).statuses)
    }

    /// Restarts the controller. No object has changed meanwhile.
    async fn restart(&self) -> Result<()> {
        log("restart")?;
        let before = self.server.calls().await?;
        let controller = self.start()?;
        figure("restart_ready_s", controller.ready().await?.as_secs_f64())?;
        sleep(QUIET).await;
        let calls = self.server.calls().await? - before;
        figure("restart_writes", calls.statuses)?;
        figure("restart_events", calls.events)?;
        figure("restart_memory", controller.memory()?)?;
        controller.stop().await
    }

    /// Restarts the controller. An object of each Application has changed meanwhile.
    async fn restart_after_changes(&self) -> Result<()> {
        log("restart after changes")?;
        let applications = 0..self.population.applications();
        let objects = applications.map(|application| self.population.members(application).start);
        self.server.set_all_ready(&self.population, objects, false).await?;
        let before = self.server.calls().await?;
        let controller = self.start()?;
        let right = self.observations.all_have(&self.expected(1), TIMEOUT).await?;
        figure("changed_right_s", (right - controller.begun()).as_secs_f64())?;
        sleep(QUIET).await;
        figure("changed_writes", (self.server.calls().await? - before).statuses)?;
        controller.stop().await
    }

    /// Makes `rate` changes in a second.
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
            // Do not overload an API server that is too slow for the rate.
            while tasks.len() >= MAX_IN_FLIGHT
                && let Some(change) = tasks.join_next().await
            {
                accepted.push(change??);
            }
            let (server, population) = (self.server.clone(), self.population.clone());
            tasks.spawn(async move {
                let sent = Instant::now();
                server.set_ready(&population, object, ready).await?;
                anyhow::Ok(Accepted { object, ready, sent, answered: Instant::now() })
            });
        }
        while let Some(change) = tasks.join_next().await {
            accepted.push(change??);
        }
        Ok(accepted)
    }

    /// The latency from a change to the status of its Application.
    fn report_delays(&self, what: &str, changes: &[Accepted]) -> Result<()> {
        let delay = |change: &Accepted| {
            let application = Population::application_name(self.population.application_of(change.object));
            let object = Population::object_name(change.object);
            let shown = self.observations.first(&application, change.sent, &object, change.ready)?;
            Some(1000.0 * shown.saturating_duration_since(change.answered).as_secs_f64())
        };
        let delays = sorted(changes.iter().filter_map(delay).collect());
        for (name, percent) in [("p50", 50), ("p99", 99), ("max", 100)] {
            figure(&format!("{what}_{name}_ms"), at(&delays, percent)?)?;
        }
        let accepting = changes.iter().map(|change| 1000.0 * (change.answered - change.sent).as_secs_f64());
        let accepting = sorted(accepting.collect());
        for (name, percent) in [("p50", 50), ("p99", 99)] {
            figure(&format!("{what}_accept_{name}_ms"), at(&accepting, percent)?)?;
        }
        figure(&format!("{what}_changes"), float(changes.len()))?;
        figure(&format!("{what}_unseen"), float(changes.len() - delays.len()))
    }

    /// The number of ready objects of each Application if `waiting` of them are not ready.
    fn expected(&self, waiting: usize) -> HashMap<String, usize> {
        let ready = |application| {
            let members = self.population.members(application).len();
            (Population::application_name(application), members - waiting)
        };
        (0..self.population.applications()).map(ready).collect()
    }
}

/// The sum and the count of a histogram.
async fn mean(controller: &Process, metric: &str) -> Result<(f64, f64)> {
    let sum = controller.metric(&format!("{metric}_sum")).await?;
    Ok((sum, controller.metric(&format!("{metric}_count")).await?))
}

/// Prints a figure as a line of JSON.
fn figure(name: &str, value: f64) -> Result<()> {
    writeln!(stdout(), "{}", json!({ "figure": name, "value": value }))?;
    Ok(())
}

/// Prints progress.
fn log(text: &str) -> Result<()> {
    writeln!(stderr(), "{text}")?;
    Ok(())
}

#[expect(clippy::cast_precision_loss, reason = "counts have fewer digits than a float")]
fn float(number: usize) -> f64 {
    number as f64
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

/// The percentile of sorted values.
fn at(sorted: &[f64], percent: usize) -> Result<f64> {
    let last = sorted.len().checked_sub(1).context("no change was visible")?;
    Ok(sorted[(sorted.len() * percent / 100).min(last)])
}
