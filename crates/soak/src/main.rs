//! Random load and random faults on a real control plane for some minutes. It fails if anything that was published was wrong.
//!
//! The command line has the controller's program, for how many minutes, the seed, and where to leave the logs of the
//! controllers if something was wrong.
//!
//! - What happens: `cast` has the objects, `rules` the rules that come and go, and `load` changes them all. `stage` is the
//!   control plane, `replica` a controller on it, and `faults` breaks everything.
//! - What is true: the oracle of the simulation says it of an Application from scratch, by objects of these control planes.
//! - What was published: `watch` sees it, `witness` writes down in the `chronicle` how the members were, `trouble` says how
//!   late a controller may be, and `judge` compares, by a `statement` for each kind. `verdict` does when all is quiet.
//! - What is told of it: `alarm` at once, `report` in the end.

mod alarm;
mod cast;
mod chronicle;
mod faults;
mod judge;
mod load;
mod replica;
mod report;
mod rules;
mod stage;
mod statement;
mod trouble;
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
    alarm::{Alarms, say},
    faults::Faults,
    judge::{Judged, judge},
    load::Load,
    report::{Check, Report},
    stage::Stage,
    trouble::Troubles,
    verdict::settle,
    witness::Witness,
};

/// Things change and break for so many seconds before all has to be right.
const STORM: std::ops::Range<u64> = 20..45;

/// After so much that was wrong, there is no use in going on.
const ENOUGH: usize = 25;

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let mut arguments = env::args_os().skip(1);
    let program = PathBuf::from(arguments.next().context("where is the controller?")?);
    let mut number = |what: &'static str| -> Result<u64> {
        let argument = arguments.next().context(what)?;
        argument.to_string_lossy().parse().context(what)
    };
    let minutes = number("for how many minutes?")?;
    let seed = number("with which seed?")?;
    let logs = PathBuf::from(arguments.next().context("where shall the logs be left?")?);

    let alarms = Alarms::default();
    say(&format!("setting the stage, seed {seed}"));
    let stage = Arc::new(Stage::set_up(&program).await?);
    // The witness and all who ask it share this thread; the proxies and the connections have the others.
    let soak = Box::pin(soak(&stage, &alarms, Duration::from_secs(60 * minutes), seed));
    let report = LocalSet::new().run_until(soak).await;
    if report.is_err() || alarms.count() > 0 {
        stage.save_logs(&logs)?;
        say(&format!("what the controllers said is in {}", logs.display()));
    }
    let report = report?;
    writeln!(stdout(), "{}", report.table()?)?;
    Ok(if report.wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn soak(stage: &Arc<Stage>, alarms: &Alarms, time: Duration, seed: u64) -> Result<Report> {
    let troubles = Troubles::default();
    // They end with this.
    let mut tasks = JoinSet::new();
    let witness = Witness::begin(stage.client(), alarms, &mut tasks);
    let judged = Rc::new(Cell::new(Judged::default()));
    tasks.spawn_local(judge(witness.clone(), troubles.clone(), alarms.clone(), Rc::clone(&judged)));
    let (looked_after, voice) = (Arc::clone(stage), alarms.clone());
    tasks.spawn(async move {
        loop {
            if let Err(error) = looked_after.look_after(&voice) {
                say(&format!("a controller cannot be looked after: {error:#}"));
            }
            sleep(Duration::from_secs(1)).await;
        }
    });

    let mut random = StdRng::seed_from_u64(seed);
    let load = Load::new(stage, &witness);
    let mut faults = Faults::new(stage, &witness, &troubles, alarms, seed);
    load.begin(&mut random).await?;
    // However long that took: a run without a storm would check nothing.
    let begun = Instant::now();
    let mut checks = Vec::new();
    while begun.elapsed() < time && alarms.count() < ENOUGH {
        let until = Instant::now() + Duration::from_secs(random.random_range(STORM));
        // How much a controller needs in the long run is seen only if it has one.
        let spares = begun.elapsed() > time / 2;
        let broken = load.during(faults.run(until, spares), &mut random).await?;
        stage.mend().await?;
        let right = settle(stage, alarms).await?;
        if right.is_some() {
            troubles.are_over();
        }
        checks.push(Check { right });
        let (members, applications) = witness.census();
        let said =
            right.map_or("never right".to_owned(), |time| format!("right after {:.1} s", time.as_secs_f64()));
        say(&format!(
            "{} {said}: {members} objects, {applications} Applications, {} changes, {} statuses, {} wrong; {}",
            alarms.clock(),
            load.made(),
            witness.publications(),
            alarms.count(),
            broken.join(", ")
        ));
    }
    // What was published last is judged too.
    sleep(Duration::from_secs(25)).await;
    Ok(Report {
        seed,
        time: begun.elapsed(),
        changes: load.made(),
        faults: faults.count().clone(),
        checks,
        publications: witness.publications(),
        judged: judged.get(),
        writes: stage.writes(),
        lists: stage.lists(),
        lives: stage.lives(),
        gave_up: stage.gave_up(),
        wrong: alarms.all(),
    })
}
