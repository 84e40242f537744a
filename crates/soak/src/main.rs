//! Random load and random faults on a real control plane. Fails if any published status was wrong.
//!
//! Arguments: the controller's binary, the duration in minutes, the seed, and the directory for the logs of
//! the controllers (written only after an error).
//!
//! - Load and faults: `cast` defines the objects, `rules` the HealthRules, and `load` changes them. `stage` is
//!   the control plane, `replica` one controller, and `faults` injects faults.
//! - Expected statuses: the oracle of the simulation computes them from the objects in the cluster.
//! - Checks: `watch` and `witness` observe all changes and record them in the `chronicle`. `judge` compares each
//!   published status, as a `statement` for each kind, with the states that the controller may have seen;
//!   `fault_windows` says how stale those may be. `verdict` checks everything after the faults are lifted.
//! - Output: `alarm` prints errors at once, `report` prints the table at the end.

mod alarm;
mod cast;
mod chronicle;
mod fault_windows;
mod faults;
mod judge;
mod load;
mod replica;
mod report;
mod rules;
mod stage;
mod statement;
mod verdict;
mod watch;
mod witness;

use std::{
    cell::Cell,
    env,
    io::{Write as _, stdout},
    path::PathBuf,
    process::ExitCode,
    rc::Rc,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
use tokio::{
    task::{JoinSet, LocalSet},
    time::sleep,
};

use crate::{
    alarm::{Alarms, log},
    fault_windows::FaultWindows,
    faults::Faults,
    judge::{CheckCounts, check_statuses},
    load::Load,
    report::{Check, Report},
    stage::Stage,
    verdict::settle,
    witness::Witness,
};

/// Seconds of load and faults before each check.
const STORM: std::ops::Range<u64> = 20..45;

/// The run ends after this many errors.
const MAX_ERRORS: usize = 25;

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let mut arguments = env::args_os().skip(1);
    let program = PathBuf::from(arguments.next().context("missing argument: path of the controller")?);
    let mut number = |what: &'static str| -> Result<u64> {
        let argument = arguments.next().context(what)?;
        argument.to_string_lossy().parse().context(what)
    };
    let minutes = number("missing or invalid argument: minutes")?;
    let seed = number("missing or invalid argument: seed")?;
    let logs = PathBuf::from(arguments.next().context("missing argument: directory for logs")?);

    let alarms = Alarms::default();
    log(&format!("starting the control plane, seed {seed}"));
    let stage = Arc::new(Stage::set_up(&program).await?);
    // The witness and its readers share this thread: the oracle's objects are not Send. Proxies use the other
    // threads.
    let soak = Box::pin(soak(&stage, &alarms, Duration::from_secs(60 * minutes), seed));
    let report = LocalSet::new().run_until(soak).await;
    if report.is_err() || alarms.count() > 0 {
        stage.save_logs(&logs)?;
        log(&format!("logs of the controllers: {}", logs.display()));
    }
    let report = report?;
    writeln!(stdout(), "{}", report.table()?)?;
    Ok(if report.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn soak(stage: &Arc<Stage>, alarms: &Alarms, time: Duration, seed: u64) -> Result<Report> {
    let windows = FaultWindows::default();
    // Aborts the tasks when it is dropped.
    let mut tasks = JoinSet::new();
    let witness = Witness::begin(stage.client(), alarms, &mut tasks);
    let checked = Rc::new(Cell::new(CheckCounts::default()));
    tasks.spawn_local(check_statuses(witness.clone(), windows.clone(), alarms.clone(), Rc::clone(&checked)));
    let (supervised, supervisor_alarms) = (Arc::clone(stage), alarms.clone());
    tasks.spawn(async move {
        loop {
            if let Err(error) = supervised.supervise(&supervisor_alarms) {
                log(&format!("cannot supervise a controller: {error:#}"));
            }
            sleep(Duration::from_secs(1)).await;
        }
    });

    let mut random = StdRng::seed_from_u64(seed);
    let load = Load::new(stage, &witness);
    let mut faults = Faults::new(stage, &witness, &windows, alarms, seed);
    load.begin(&mut random).await?;
    // After the setup, however long it took: a run without faults would check nothing.
    let begun = Instant::now();
    let mut checks = Vec::new();
    while begun.elapsed() < time && alarms.count() < MAX_ERRORS {
        let until = Instant::now() + Duration::from_secs(random.random_range(STORM));
        // Memory over a long time is visible only in a controller that is not restarted.
        let spares = begun.elapsed() > time / 2;
        let broken = load.during(faults.run(until, spares), &mut random).await?;
        stage.recover().await?;
        let right = settle(stage, alarms).await?;
        if right.is_some() {
            windows.close_all();
        }
        checks.push(Check { right });
        let (members, applications) = witness.census();
        let outcome = right
            .map_or("not converged".to_owned(), |time| format!("converged in {:.1} s", time.as_secs_f64()));
        log(&format!(
            "{} {outcome}: {members} objects, {applications} Applications, {} changes, {} statuses, {} errors; {}",
            alarms.clock(),
            load.made(),
            witness.publications(),
            alarms.count(),
            broken.join(", ")
        ));
    }
    // The last statuses are checked with a delay.
    sleep(Duration::from_secs(25)).await;
    Ok(Report {
        seed,
        time: begun.elapsed(),
        changes: load.made(),
        faults: faults.count().clone(),
        checks,
        publications: witness.publications(),
        checked: checked.get(),
        writes: stage.writes(),
        lists: stage.lists(),
        runs: stage.runs(),
        failed_starts: stage.failed_starts(),
        wrong: alarms.all(),
    })
}
