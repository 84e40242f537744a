//! Parallel map over all cores, in order.

use std::{
    num::NonZero,
    panic::resume_unwind,
    thread::{Builder, available_parallelism, scope},
};

/// Below this number of pieces, threads cost more than they save.
const WORTH_IT: usize = 64;

/// The stack size in bytes of a parser thread, so that the maximum depth does not depend on the caller.
const STACK: usize = 8 << 20;

pub(super) fn map<W: Sync, R: Send>(work: &[W], each: impl Fn(&W) -> R + Sync) -> Vec<R> {
    let threads = if work.len() < WORTH_IT { 1 } else { available_parallelism().map_or(1, NonZero::get) };
    let share = |part: &[W]| part.iter().map(&each).collect::<Vec<_>>();
    scope(|scope| {
        let workers: Vec<_> = work
            .chunks(work.len().div_ceil(threads).max(1))
            .map(|part| (part, Builder::new().stack_size(STACK).spawn_scoped(scope, || share(part))))
            .collect();
        let results = workers.into_iter().flat_map(|(part, worker)| match worker {
            Ok(worker) => worker.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // The thread could not be started: do its share here.
            Err(_) => share(part),
        });
        results.collect()
    })
}
