//! Random load and random faults on a real control plane. Fails if any published status was wrong.
//!
//! Arguments: the controller's binary, the duration in minutes, the seed, and the directory for the logs of
//! the controllers (written only after an error).
//!
//! - Load and faults: `objects` defines the objects, `below` what is below them, `rules` the HealthRules, and
//!   `load` changes them. `environment` is the control plane, `replica` one controller, and `faults` injects
//!   faults.
//! - Expected statuses: the oracle of the simulation computes them from the objects in the cluster.
//! - Checks: `watch` and `observer` observe all changes and record them in the `history`. `status_checks`
//!   compares each published status, as a `statement` for each kind, with the states that the controller may
//!   have seen; `fault_windows` says how stale those may be. `final_check` checks everything after the faults
//!   are lifted.
//! - Output: `alarm` prints errors at once, `report` prints the table at the end.

mod alarm;
mod below;
mod environment;
mod fault_windows;
mod faults;
mod final_check;
mod history;
mod load;
mod objects;
mod observer;
mod replica;
mod report;
mod rules;
mod statement;
mod status_checks;
mod watch;

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
    environment::Environment,
    fault_windows::FaultWindows,
    faults::Faults,
    final_check::settle,
    load::Load,
    observer::Observer,
    report::{Check, Report},
    status_checks::{CheckCounts, check_statuses},
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
    let environment = Arc::new(Environment::set_up(&program).await?);
    // The observer and its readers share this thread: the oracle's objects are not Send. Proxies use the
    // other threads.
    let soak = Box::pin(soak(&environment, &alarms, Duration::from_secs(60 * minutes), seed));
    let report = LocalSet::new().run_until(soak).await;
    if report.is_err() || alarms.count() > 0 {
        environment.save_logs(&logs)?;
        log(&format!("logs of the controllers: {}", logs.display()));
    }
    let report = report?;
    writeln!(stdout(), "{}", report.table()?)?;
    Ok(if report.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn soak(environment: &Arc<Environment>, alarms: &Alarms, time: Duration, seed: u64) -> Result<Report> {
    let windows = FaultWindows::default();
    // Aborts the tasks when it is dropped.
    let mut tasks = JoinSet::new();
    let observer = Observer::begin(environment.client(), alarms, &mut tasks);
    let checked = Rc::new(Cell::new(CheckCounts::default()));
    tasks.spawn_local(check_statuses(
        observer.clone(),
        Arc::clone(environment),
        windows.clone(),
        alarms.clone(),
        Rc::clone(&checked),
    ));
    let (supervised, supervisor_alarms) = (Arc::clone(environment), alarms.clone());
    tasks.spawn(async move {
        loop {
            if let Err(error) = supervised.supervise(&supervisor_alarms) {
                log(&format!("cannot supervise a controller: {error:#}"));
            }
            sleep(Duration::from_secs(1)).await;
        }
    });

    let mut random = StdRng::seed_from_u64(seed);
    let load = Load::new(environment, &observer);
    let mut faults = Faults::new(environment, &observer, &windows, alarms, seed);
    load.begin(&mut random).await?;
    // After the setup, however long it took: a run without faults would check nothing.
    let begun = Instant::now();
    let mut checks = Vec::new();
    while begun.elapsed() < time && alarms.count() < MAX_ERRORS {
        let until = Instant::now() + Duration::from_secs(random.random_range(STORM));
        // Memory over a long time is visible only in a controller that is not restarted.
        let spares = begun.elapsed() > time / 2;
        let broken = load.during(faults.run(until, spares), &mut random).await?;
        environment.recover().await?;
        let right = settle(environment, &observer, &windows, alarms).await?;
        if right.is_some() {
            windows.close_all();
        }
        checks.push(Check { right });
        let (members, applications) = observer.object_counts();
        let outcome = right
            .map_or("not converged".to_owned(), |time| format!("converged in {:.1} s", time.as_secs_f64()));
        log(&format!(
            "{} {outcome}: {members} objects, {applications} Applications, {} changes, {} statuses, {} errors; {}",
            alarms.clock(),
            load.made(),
            observer.publications(),
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
        publications: observer.publications(),
        checked: checked.get(),
        writes: environment.writes(),
        lists: environment.lists(),
        runs: environment.runs(),
        failed_starts: environment.failed_starts(),
        wrong: alarms.all(),
    })
}
