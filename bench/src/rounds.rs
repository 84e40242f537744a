//! Timing code that takes microseconds, and code that takes longer.

use std::{
    fs,
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

/// As many as a median needs; `cargo xtask bench` runs the program several times.
const ROUNDS: usize = 5;

/// Long enough that reading the clock does not matter, short enough that a disturbance spoils only a few rounds.
const ROUND: Duration = Duration::from_millis(40);

/// The time of one run in nanoseconds: the median of several rounds of many runs.
pub fn median<T>(mut run: impl FnMut() -> T) -> u128 {
    let runs = runs_in_a_round(&mut run);
    let mut times: Vec<_> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..runs {
                black_box(run());
            }
            start.elapsed().as_nanos() / u128::from(runs)
        })
        .collect();
    times.sort_unstable();
    times[ROUNDS / 2]
}

/// Warms up on the way.
fn runs_in_a_round<T>(run: &mut impl FnMut() -> T) -> u64 {
    let start = Instant::now();
    let mut runs = 0;
    while start.elapsed() < ROUND {
        black_box(run());
        runs += 1;
    }
    runs
}

/// How long this thread has worked since it began. What else the machine does is not in it, so that code which takes long
/// need not be run again and again to find a quiet moment.
pub fn worked() -> Result<Duration> {
    let times = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = times.split_whitespace().next().context("the system does not count the time of threads")?;
    Ok(Duration::from_nanos(nanos.parse()?))
}
