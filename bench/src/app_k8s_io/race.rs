//! Which of the two follows a change sooner, and what that costs.

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

/// So many Applications, each with an object of each of four kinds.
const APPLICATIONS: usize = 50;

/// As that controller looks again if nobody says otherwise, in seconds.
const PERIOD: u32 = 120;

/// How long nothing happens, to see what that costs: a little longer than its period.
const QUIET: Duration = Duration::from_secs(140);

const PATIENCE: Duration = Duration::from_mins(10);

const MIB: f64 = 1_048_576.0;

type Watch = BoxStream<'static, io::Result<String>>;

/// What was measured of one of them.
struct Figures {
    first: Duration,
    first_calls: usize,
    first_writes: usize,
    delays: Vec<f64>,
    quiet_calls: usize,
    quiet_writes: usize,
    quiet_work: f64,
    work: f64,
    memory: f64,
}

/// Measures both, one after the other, on clusters that are alike.
pub async fn race(subjects: &Subjects) -> Result<String> {
    ensure!(subjects.ours.exists(), "there is no program {}", subjects.ours.display());
    let old = run(Who::Old, subjects, 3).await?;
    let ours = run(Who::Ours, subjects, 100).await?;
    let mut text = format!("{APPLICATIONS} Applications of four objects each\n{:>14}{:>14}\n", "old", "ours");
    let seconds = |figures: &Figures| figures.first.as_secs_f64();
    let mut row = |digits: usize, old: f64, ours: f64, what: &str| {
        writeln!(text, "{old:>14.digits$}{ours:>14.digits$}  {what}")
    };
    let count = |number: usize| u32::try_from(number).map_or(f64::INFINITY, f64::from);
    row(2, seconds(&old), seconds(&ours), "s from the start until all statuses are right")?;
    row(0, count(old.first_calls), count(ours.first_calls), "calls until then")?;
    row(0, count(old.first_writes), count(ours.first_writes), "of which wrote")?;
    row(3, middle(&old.delays), middle(&ours.delays), "s from a change to the status, half of them")?;
    let longest = |figures: &Figures| figures.delays.iter().copied().fold(0.0, f64::max);
    row(3, longest(&old), longest(&ours), "s all of them")?;
    row(0, count(old.delays.len()), count(ours.delays.len()), "changes")?;
    row(
        0,
        count(old.quiet_calls),
        count(ours.quiet_calls),
        &format!("calls in {} s in which nothing happens", QUIET.as_secs()),
    )?;
    row(0, count(old.quiet_writes), count(ours.quiet_writes), "of which wrote")?;
    row(2, old.quiet_work, ours.quiet_work, "s of processor time meanwhile")?;
    row(2, old.work, ours.work, "s of processor time in all")?;
    row(1, old.memory / MIB, ours.memory / MIB, "MiB of memory in the end")?;
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
    let process = controller.program().id().context("it has ended")?;
    let calls = || (proxy.count(&Requests::all()), proxy.count(&Requests::writes()));
    let mut right = HashSet::new();
    while right.len() < APPLICATIONS {
        let (name, ready) = next(&mut watch).await?;
        right.extend((ready == "4/4").then_some(name));
    }
    let (first, (first_calls, first_writes)) = (begun.elapsed(), calls());

    // The second pass of the old one, over what it has written itself, belongs to the first.
    sleep(Duration::from_secs(20)).await;
    proxy.forget();
    let before = work_of(process)?;
    sleep(QUIET).await;
    let (quiet_work, (quiet_calls, quiet_writes)) = (work_of(process)? - before, calls());

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
    let (work, memory) = (work_of(process)?, memory_of(process)?);
    Ok(Figures {
        first,
        first_calls,
        first_writes,
        delays,
        quiet_calls,
        quiet_writes,
        quiet_work,
        work,
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

/// The next Application that the watch shows, and how many of its components are ready.
async fn next(watch: &mut Watch) -> Result<(String, String)> {
    let line = timeout(PATIENCE, watch.try_next()).await.context("nothing happens any more")??;
    let mut event: Value = serde_json::from_str(&line.context("the watch has ended")?)?;
    let object = event["object"].take();
    Ok((text(&object["metadata"]["name"]), text(&object["status"]["componentsReady"])))
}
