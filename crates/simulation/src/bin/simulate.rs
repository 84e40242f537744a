//! Runs the controller in simulated clusters with faults, one seed after another.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Result, bail};
use bellwether_engine::planted::{Bug, plant};
use bellwether_simulation::{
    Plan,
    history::{DIRECTORY, History, stored},
    search::{Limits, run_plan, search},
    shrink, story,
};
use clap::Parser;

/// A run spends most of its time allocating and freeing small objects.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Run the controller in simulated clusters with faults, one seed after another
#[derive(Debug, Parser)]
struct Arguments {
    /// Maximum number of runs
    #[arg(long, default_value_t = u64::MAX)]
    runs: u64,
    /// Stop after this many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// First seed (default: derived from the clock)
    #[arg(long)]
    first: Option<u64>,
    /// Run one seed and print its events, of a minimised plan if it fails
    #[arg(long, conflicts_with_all = ["runs", "seconds", "first"])]
    seed: Option<u64>,
    /// With --seed: do not minimise the plan
    #[arg(long, requires = "seed")]
    whole: bool,
    /// With --seed: store the minimised plan of a seed that fails as a history
    #[arg(long, value_name = "FILE", requires = "seed", conflicts_with = "whole")]
    store: Option<PathBuf>,
    /// Run a stored history and print its events
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "seconds", "first", "seed"])]
    history: Option<PathBuf>,
    /// Number of threads (default: all cores)
    #[arg(long)]
    threads: Option<usize>,
    /// Switch on one planted bug after another; fail if one is not found within this number of runs
    #[arg(long, value_name = "RUNS", conflicts_with_all = ["runs", "seconds", "seed", "history"])]
    planted: Option<u64>,
    /// With --planted: only the bug of this name. With --seed or --history: run with this bug
    #[arg(long, value_name = "NAME", conflicts_with = "store", value_parser = bug)]
    bug: Option<Bug>,
}

impl Arguments {
    /// The clock makes it unlikely that two runs without `--first` share seeds.
    fn first(&self) -> u64 {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.first.unwrap_or(clock.as_secs() << 24)
    }

    fn threads(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.threads.unwrap_or_else(cores)
    }
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Returns whether all runs pass.
fn run(arguments: &Arguments) -> Result<bool> {
    plant(arguments.bug);
    match (&arguments.history, arguments.seed, arguments.planted) {
        (Some(file), ..) => {
            let History { shows, plan } = History::read(file)?;
            say(&format!("{}: {shows}\n", file.display()));
            Ok(print_run(&plan))
        }
        (None, Some(seed), _) => match &arguments.store {
            Some(file) => store(seed, file),
            None => Ok(print_seed(seed, arguments.whole)),
        },
        (None, None, Some(runs)) => Ok(find_planted(runs, arguments)),
        (None, None, None) => Ok(run_stored()? && explore(arguments)),
    }
}

fn bug(name: &str) -> std::result::Result<Bug, String> {
    let mut bugs = Bug::ALL.into_iter();
    bugs.find(|bug| format!("{bug:?}") == name).ok_or_else(|| format!("unknown planted bug {name}"))
}

fn run_stored() -> Result<bool> {
    let histories = stored(Path::new(DIRECTORY))?;
    for (file, history) in &histories {
        if let Err(failure) = history.run() {
            let (plan, violation) = *failure;
            say(&format!("{} fails: {violation}\n", file.display()));
            return Ok(print_run(&plan));
        }
    }
    say(&format!("{} stored histories pass", histories.len()));
    Ok(true)
}

fn explore(arguments: &Arguments) -> bool {
    let first = arguments.first();
    let begun = Instant::now();
    let limits = Limits {
        first,
        runs: arguments.runs,
        until: arguments.seconds.map(|seconds| begun + Duration::from_secs(seconds)),
        threads: arguments.threads(),
        bug: None,
    };
    let result = search(limits);
    let seconds = begun.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let rate = result.runs as f64 / seconds;
    say(&format!(
        "{} runs from seed {first} in {seconds:.0} s ({rate:.0}/s): {} events, {} writes, correct at most {} s after \
         the last fault",
        result.runs,
        result.events,
        result.writes,
        result.longest / 1000,
    ));
    result.wrong.is_none_or(|(seed, violation)| {
        say(&format!("seed {seed} fails: {violation}\n"));
        print_seed(seed, false)
    })
}

/// Returns whether every planted bug is found.
fn find_planted(runs: u64, arguments: &Arguments) -> bool {
    let (first, threads) = (arguments.first(), arguments.threads());
    let mut all = true;
    say(&format!("{:<24} {:>6}  violation", "planted bug", "runs"));
    let is_wanted = |bug: &Bug| arguments.bug.is_none_or(|only| only == *bug);
    for bug in Bug::ALL.into_iter().filter(is_wanted) {
        let result = search(Limits { first, runs, until: None, threads, bug: Some(bug) });
        let found = result.wrong.as_ref().map(|(seed, violation)| {
            format!("seed {seed}: {}", violation.lines().next().unwrap_or_default())
        });
        all &= found.is_some();
        let found = found.as_deref().unwrap_or("not found");
        say(&format!("{:<24} {:>6}  {found}", format!("{bug:?}"), result.runs));
    }
    all
}

/// Prints the run of a seed. If it fails, minimises its plan first unless `whole`. Returns whether it passes.
fn print_seed(seed: u64, whole: bool) -> bool {
    let plan = Plan::new(seed);
    if whole || run_plan(&plan).is_ok() {
        return print_run(&plan);
    }
    print_run(&shrink(&plan));
    say(&format!(
        "\nTo keep it as a regression test: cargo xtask simulate --seed {seed} --store \
         crates/simulation/histories/NAME.json"
    ));
    false
}

/// Prints a plan and the events of its run. Returns whether it passes.
fn print_run(plan: &Plan) -> bool {
    say(&plan.to_string());
    for line in story(plan) {
        say(&line);
    }
    run_plan(plan).is_ok()
}

/// Stores the minimised plan of a seed that fails.
fn store(seed: u64, file: &Path) -> Result<bool> {
    let plan = Plan::new(seed);
    if run_plan(&plan).is_ok() {
        bail!("seed {seed} does not fail: nothing to store");
    }
    let plan = shrink(&plan);
    let shows = run_plan(&plan).err().unwrap_or_default();
    History { shows, plan }.write(file)?;
    say(&format!("stored seed {seed}; run it with: cargo xtask simulate --history {}", file.display()));
    Ok(true)
}

#[expect(clippy::print_stdout, reason = "the output of this program")]
fn say(line: &str) {
    println!("{line}");
}
