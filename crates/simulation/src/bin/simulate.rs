//! Runs the controller against a cluster in memory, over and over, with everything going wrong that can.

use std::{
    process::ExitCode,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use bellwether_engine::planted::Bug;
use bellwether_simulation::{
    Plan,
    hunt::{Limits, hunt, try_out},
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
    /// On so many threads; on all cores if it is not given
    #[arg(long)]
    threads: Option<usize>,
    /// Switch on one bug after the other, and see that each is found within so many runs
    #[arg(long, value_name = "RUNS", conflicts_with_all = ["runs", "seconds", "seed"])]
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
    let arguments = Arguments::parse();
    if let Some(seed) = arguments.seed {
        return tell(&Plan::new(seed), arguments.whole);
    }
    if let Some(runs) = arguments.planted {
        return find_planted(runs, &arguments);
    }
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
    match hunt.wrong {
        None => ExitCode::SUCCESS,
        Some((seed, wrong)) => {
            say(&format!("seed {seed} goes wrong: {wrong}\n"));
            tell(&Plan::new(seed), false)
        }
    }
}

/// Switches on one bug after the other, and says how soon each is found.
fn find_planted(runs: u64, arguments: &Arguments) -> ExitCode {
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
    if all { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tells what happens by a plan, made as short as it can be if it goes wrong.
fn tell(plan: &Plan, whole: bool) -> ExitCode {
    let is_wrong = try_out(plan).is_err();
    let plan = if is_wrong && !whole { shrink(plan) } else { plan.clone() };
    say(&plan.to_string());
    for line in story(&plan) {
        say(&line);
    }
    if is_wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn say(line: &str) {
    println!("{line}");
}
