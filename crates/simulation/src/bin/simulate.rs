//! Runs the controller against a cluster in memory, over and over, with everything going wrong that can.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::{Result, bail};
use bellwether_engine::planted::Bug;
use bellwether_simulation::{
    Plan,
    history::{DIRECTORY, History, stored},
    search::{Limits, hunt, try_out},
    shrink, story,
};
use clap::Parser;

/// Most of a run is making and dropping small objects.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs the controller against a cluster in memory, over and over, with everything going wrong that can
#[derive(Debug, Parser)]
struct Arguments {
    /// Run so often at most
    #[arg(long, default_value_t = u64::MAX)]
    runs: u64,
    /// Stop after so many seconds
    #[arg(long)]
    seconds: Option<u64>,
    /// Begin with this seed; another one every time if it is not given
    #[arg(long)]
    first: Option<u64>,
    /// Run this one seed, and tell its story
    #[arg(long, conflicts_with_all = ["runs", "seconds", "first"])]
    seed: Option<u64>,
    /// With a seed: tell the story as it is, however long
    #[arg(long, requires = "seed")]
    whole: bool,
    /// With a seed that goes wrong: store its history in this file, so that it is run from now on
    #[arg(long, value_name = "FILE", requires = "seed", conflicts_with = "whole")]
    store: Option<PathBuf>,
    /// Run the history of this file, and tell its story
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "seconds", "first", "seed"])]
    history: Option<PathBuf>,
    /// On so many threads; on all cores if it is not given
    #[arg(long)]
    threads: Option<usize>,
    /// Switch on one bug after the other, and see that each is found within so many runs
    #[arg(long, value_name = "RUNS", conflicts_with_all = ["runs", "seconds", "seed", "history"])]
    planted: Option<u64>,
}

impl Arguments {
    /// The first seed: one that nobody has tried, if none is given.
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

/// Gives whether all is well.
fn run(arguments: &Arguments) -> Result<bool> {
    match (&arguments.history, arguments.seed, arguments.planted) {
        (Some(file), ..) => {
            let History { shows, plan } = History::read(file)?;
            say(&format!("{}: {shows}\n", file.display()));
            Ok(tell(&plan))
        }
        (None, Some(seed), _) => match &arguments.store {
            Some(file) => store(seed, file),
            None => Ok(tell_seed(seed, arguments.whole)),
        },
        (None, None, Some(runs)) => Ok(find_planted(runs, arguments)),
        (None, None, None) => Ok(run_stored()? && explore(arguments)),
    }
}

/// Runs the histories of this repository.
fn run_stored() -> Result<bool> {
    let histories = stored(Path::new(DIRECTORY))?;
    for (file, history) in &histories {
        if let Err(wrong) = history.run() {
            say(&format!("{} goes wrong: {}\n", file.display(), wrong.1));
            return Ok(tell(&wrong.0));
        }
    }
    say(&format!("{} stored histories: all is well", histories.len()));
    Ok(true)
}

/// Runs one seed after the other.
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
    let hunt = hunt(limits);
    let seconds = begun.elapsed().as_secs_f64();
    #[expect(clippy::cast_precision_loss, reason = "it is for people")]
    let rate = hunt.runs as f64 / seconds;
    say(&format!(
        "{} runs from seed {first} in {seconds:.0} s ({rate:.0} a second): {} happenings, {} writes, right again after \
         {} s at most",
        hunt.runs,
        hunt.happenings,
        hunt.writes,
        hunt.longest / 1000,
    ));
    hunt.wrong.is_none_or(|(seed, wrong)| {
        say(&format!("seed {seed} goes wrong: {wrong}\n"));
        tell_seed(seed, false)
    })
}

/// Switches on one bug after the other, and says how soon each is found.
fn find_planted(runs: u64, arguments: &Arguments) -> bool {
    let (first, threads) = (arguments.first(), arguments.threads());
    let mut all = true;
    say(&format!("{:<24} {:>6}  what went wrong", "planted", "runs"));
    for bug in Bug::ALL {
        let hunt = hunt(Limits { first, runs, until: None, threads, bug: Some(bug) });
        let wrong =
            hunt.wrong.as_ref().map_or("nothing", |(_, wrong)| wrong.lines().next().unwrap_or_default());
        say(&format!("{:<24} {:>6}  {wrong}", format!("{bug:?}"), hunt.runs));
        all &= hunt.wrong.is_some();
    }
    all
}

/// Tells what happens by a seed, made as short as it can be if it goes wrong. Gives whether all is well.
fn tell_seed(seed: u64, whole: bool) -> bool {
    let plan = Plan::new(seed);
    if whole || try_out(&plan).is_ok() {
        return tell(&plan);
    }
    tell(&shrink(&plan));
    say(&format!(
        "\nTo run this history from now on, store it: cargo xtask simulate --seed {seed} --store \
         crates/simulation/histories/NAME.json"
    ));
    false
}

/// Tells what happens by a plan. Gives whether all is well.
fn tell(plan: &Plan) -> bool {
    say(&plan.to_string());
    for line in story(plan) {
        say(&line);
    }
    try_out(plan).is_ok()
}

/// Stores what happens by a seed that goes wrong.
fn store(seed: u64, file: &Path) -> Result<bool> {
    let plan = Plan::new(seed);
    if try_out(&plan).is_ok() {
        bail!("nothing is stored: seed {seed} does not go wrong");
    }
    let plan = shrink(&plan);
    let shows = try_out(&plan).err().unwrap_or_default();
    History { shows, plan }.write(file)?;
    say(&format!("{} shows seed {seed}: cargo xtask simulate --history {0}", file.display()));
    Ok(true)
}

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn say(line: &str) {
    println!("{line}");
}
