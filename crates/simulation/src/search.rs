//! Runs many plans on several threads, until one fails.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use bellwether_engine::planted::{Bug, plant};

use crate::{RunStats, Violation, plan::Plan, run};

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The first seed. The others are its successors.
    pub first: u64,
    /// Maximum number of runs.
    pub runs: u64,
    pub until: Option<Instant>,
    pub threads: usize,
    /// A planted bug to switch on.
    pub bug: Option<Bug>,
}

#[derive(Clone, Debug, Default)]
pub struct SearchResult {
    pub runs: u64,
    /// Number of events in all runs.
    pub events: u64,
    /// Number of writes in all runs.
    pub writes: u64,
    /// Maximum of [`RunStats::until_right`].
    pub longest: u64,
    /// A seed that failed, and its violation.
    pub wrong: Option<(u64, String)>,
}

/// Runs a plan. A panic is an error, too.
pub fn run_plan(plan: &Plan) -> Result<RunStats, String> {
    caught(|| run(plan))
}

pub(crate) fn caught(run: impl FnOnce() -> Result<RunStats, Violation>) -> Result<RunStats, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|violation| violation.to_string()),
        Err(panic) => {
            let message = panic.downcast_ref::<String>().map(String::as_str);
            let message = message.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("panic: {}", message.unwrap_or("no message")))
        }
    }
}

/// Runs plans until a limit is reached or a run fails.
pub fn search(limits: Limits) -> SearchResult {
    let (next, stop, total) =
        (AtomicU64::new(0), AtomicBool::new(false), Mutex::new(SearchResult::default()));
    thread::scope(|scope| {
        for _ in 0..limits.threads.max(1) {
            scope.spawn(|| {
                plant(limits.bug);
                let mut own = SearchResult::default();
                while !stop.load(Ordering::Relaxed) && limits.until.is_none_or(|until| Instant::now() < until)
                {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= limits.runs {
                        break;
                    }
                    let seed = limits.first.wrapping_add(number);
                    own.runs += 1;
                    match run_plan(&Plan::new(seed)) {
                        Ok(tally) => {
                            own.events += tally.events;
                            own.writes += tally.writes;
                            own.longest = own.longest.max(tally.until_right);
                        }
                        Err(violation) => {
                            own.wrong = Some((seed, violation));
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                }
                let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                total.runs += own.runs;
                total.events += own.events;
                total.writes += own.writes;
                total.longest = total.longest.max(own.longest);
                // The smallest seed, so that the result does not depend on which thread is faster.
                total.wrong = [total.wrong.take(), own.wrong].into_iter().flatten().min();
            });
        }
    });
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}
