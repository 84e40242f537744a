//! Runs many plans on all cores, and stops at the first that goes wrong.

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

use crate::{Tally, Violation, plan::Plan, run};

/// How far to go.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The first seed; the others follow it.
    pub first: u64,
    /// So many runs at most.
    pub runs: u64,
    /// Not longer than this.
    pub until: Option<Instant>,
    /// On so many threads.
    pub threads: usize,
    /// A bug that is to be found.
    pub bug: Option<Bug>,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct SearchResult {
    /// How many runs there were.
    pub runs: u64,
    /// What happened in all of them.
    pub happenings: u64,
    /// How many writes were made.
    pub writes: u64,
    /// The longest time from the end of all faults until everything was right, in milliseconds by the clock of its run.
    pub longest: u64,
    /// A seed that went wrong, and how.
    pub wrong: Option<(u64, String)>,
}

/// Runs one plan, and counts a panic as wrong.
pub fn try_out(plan: &Plan) -> Result<Tally, String> {
    caught(|| run(plan))
}

/// What comes of a run. A panic is wrong, too.
pub(crate) fn caught(run: impl FnOnce() -> Result<Tally, Violation>) -> Result<Tally, String> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(result) => result.map_err(|wrong| wrong.to_string()),
        Err(panic) => {
            let words = panic.downcast_ref::<String>().map(String::as_str);
            let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("it panics: {}", words.unwrap_or("without words")))
        }
    }
}

/// Runs until the limits are reached or something goes wrong.
pub fn hunt(limits: Limits) -> SearchResult {
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
                    match try_out(&Plan::new(seed)) {
                        Ok(tally) => {
                            own.happenings += tally.happenings;
                            own.writes += tally.writes;
                            own.longest = own.longest.max(tally.until_right);
                        }
                        Err(wrong) => {
                            own.wrong = Some((seed, wrong));
                            stop.store(true, Ordering::Relaxed);
                        }
                    }
                }
                let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                total.runs += own.runs;
                total.happenings += own.happenings;
                total.writes += own.writes;
                total.longest = total.longest.max(own.longest);
                // The same seed, whichever thread is quicker.
                total.wrong = [total.wrong.take(), own.wrong].into_iter().flatten().min();
            });
        }
    });
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}
