//! Measures time.

use std::{
    fs,
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};

/// Enough for a median; `cargo xtask bench` runs the program several times.
const ROUNDS: usize = 5;

/// Long enough that reading the clock is negligible, short enough that a disturbance affects only a few
/// rounds.
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

/// Also warms up the caches.
fn runs_in_a_round<T>(run: &mut impl FnMut() -> T) -> u64 {
    let start = Instant::now();
    let mut runs = 0;
    while start.elapsed() < ROUND {
        black_box(run());
        runs += 1;
    }
    runs
}

/// The CPU time of this thread. Other processes do not affect it, so slow code need not be repeated.
pub fn cpu_time() -> Result<Duration> {
    let times = fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanos = times.split_whitespace().next().context("/proc/thread-self/schedstat is empty")?;
    Ok(Duration::from_nanos(nanos.parse()?))
}
