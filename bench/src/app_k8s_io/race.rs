//! Measures latency and cost of both controllers.

use std::{
    collections::HashSet,
    fmt::Write as _,
    io,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{FaultProxy, Requests, memory_of, work_of};
use futures::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _, stream::BoxStream};
use http::Request;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::{
    situations,
    stage::{Controller, Stage, Subjects, Who, path, text},
};

/// Each has an object of each of four kinds.
const APPLICATIONS: usize = 50;

/// The default resync period of the old controller, in seconds.
const PERIOD: u32 = 120;

/// The duration of the idle measurement: longer than the resync period.
const QUIET: Duration = Duration::from_secs(140);

const TIMEOUT: Duration = Duration::from_mins(10);

const MIB: f64 = 1_048_576.0;

type Watch = BoxStream<'static, io::Result<String>>;

struct Figures {
    first: Duration,
    first_calls: usize,
    first_writes: usize,
    delays: Vec<f64>,
    quiet_calls: usize,
    quiet_writes: usize,
    quiet_cpu: f64,
    cpu: f64,
    memory: f64,
}

/// Measures both controllers, one after the other, on equal clusters.
pub async fn race(subjects: &Subjects) -> Result<String> {
    ensure!(subjects.ours.exists(), "{} not found", subjects.ours.display());
    let old = run(Who::Old, subjects, 3).await?;
    let ours = run(Who::Ours, subjects, 100).await?;
    let mut text = format!("{APPLICATIONS} Applications of four objects each\n{:>14}{:>14}\n", "old", "ours");
    let seconds = |figures: &Figures| figures.first.as_secs_f64();
    let mut row = |digits: usize, old: f64, ours: f64, what: &str| {
        writeln!(text, "{old:>14.digits$}{ours:>14.digits$}  {what}")
    };
    let count = |number: usize| u32::try_from(number).map_or(f64::INFINITY, f64::from);
    row(2, seconds(&old), seconds(&ours), "s from the start until all statuses are right")?;
    row(0, count(old.first_calls), count(ours.first_calls), "requests until then")?;
    row(0, count(old.first_writes), count(ours.first_writes), "of them writes")?;
    row(3, middle(&old.delays), middle(&ours.delays), "s from a change to the status, median")?;
    let longest = |figures: &Figures| figures.delays.iter().copied().fold(0.0, f64::max);
    row(3, longest(&old), longest(&ours), "s maximum")?;
    row(0, count(old.delays.len()), count(ours.delays.len()), "changes")?;
    row(
        0,
        count(old.quiet_calls),
        count(ours.quiet_calls),
        &format!("requests in {} s while idle", QUIET.as_secs()),
    )?;
    row(0, count(old.quiet_writes), count(ours.quiet_writes), "of them writes")?;
    row(2, old.quiet_cpu, ours.quiet_cpu, "s of CPU time meanwhile")?;
    row(2, old.cpu, ours.cpu, "s of CPU time in total")?;
    row(1, old.memory / MIB, ours.memory / MIB, "MiB of memory at the end")?;
    Ok(text)
}

async fn run(who: Who, subjects: &Subjects, changes: usize) -> Result<Figures> {
    let stage = Stage::new(if who == Who::Old { "race-old" } else { "race-ours" }).await?;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "race"}});
    stage.create("", &namespace).await?;
    for number in 0..APPLICATIONS {
        for object in situations::application_of_four(&name(number)) {
            stage.create("race", &object).await?;
        }
    }
    let proxy = FaultProxy::before(&stage.cluster).await?;
    let mut watch = watch(&stage).await?;
    let begun = Instant::now();
    let controller = Controller::start(who, subjects, &stage.access.via(proxy.address()), PERIOD)?;
    let process = controller.program().id().context("the controller has ended")?;
    let calls = || (proxy.count(&Requests::all()), proxy.count(&Requests::writes()));
    let mut right = HashSet::new();
    while right.len() < APPLICATIONS {
        let (name, ready) = next(&mut watch).await?;
        right.extend((ready == "4/4").then_some(name));
    }
    let (first, (first_calls, first_writes)) = (begun.elapsed(), calls());

    // The old controller reconciles once more because of its own writes. That is not part of the idle
    // measurement.
    sleep(Duration::from_secs(20)).await;
    proxy.forget();
    let before = work_of(process)?;
    sleep(QUIET).await;
    let (quiet_cpu, (quiet_calls, quiet_writes)) = (work_of(process)? - before, calls());

    let mut delays = Vec::new();
    for change in 0..changes {
        let (name, is_ready) = (name(change % APPLICATIONS), change / APPLICATIONS % 2 == 1);
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment"});
        let ready = if is_ready { 3 } else { 2 };
        let status = json!({"status": {"readyReplicas": ready, "availableReplicas": ready}});
        stage.send("PATCH", &format!("{}/{name}/status", path("race", &deployment)), &status).await?;
        let since = Instant::now();
        let expected = (name, if is_ready { "4/4" } else { "3/4" }.to_owned());
        while next(&mut watch).await? != expected {}
        delays.push(since.elapsed().as_secs_f64());
    }
    let (cpu, memory) = (work_of(process)?, memory_of(process)?);
    Ok(Figures {
        first,
        first_calls,
        first_writes,
        delays,
        quiet_calls,
        quiet_writes,
        quiet_cpu,
        cpu,
        memory,
    })
}

fn middle(all: &[f64]) -> f64 {
    let mut sorted = all.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn name(number: usize) -> String {
    format!("app-{number}")
}

async fn watch(stage: &Stage) -> Result<Watch> {
    let path = "/apis/app.k8s.io/v1beta1/applications?watch=1&timeoutSeconds=3600";
    let stream = stage.client.request_stream(Request::get(path).body(Vec::new())?).await?;
    Ok(stream.lines().boxed())
}

/// The name and `componentsReady` of the next Application on the watch.
async fn next(watch: &mut Watch) -> Result<(String, String)> {
    let line = timeout(TIMEOUT, watch.try_next()).await.context("the watch has no more events")??;
    let mut event: Value = serde_json::from_str(&line.context("the watch has ended")?)?;
    let object = event["object"].take();
    Ok((text(&object["metadata"]["name"]), text(&object["status"]["componentsReady"])))
}
