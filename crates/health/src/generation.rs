//! Whether a controller has seen the newest generation of an object.

use crate::{
    read::{Condition, Reader},
    verdict::Verdict,
};

/// The verdict if the controller has not seen the newest generation of its object.
///
/// An object that was never observed is behind too, where this is asked: only for kinds whose controllers do report it.
pub(crate) fn behind(o: &Reader<'_>) -> Option<Verdict> {
    let generation = o.int("metadata.generation")?;
    let observed = o.int("status.observedGeneration").unwrap_or(0);
    (observed < generation).then(|| not_observed(generation, observed))
}

/// The verdict if the controller says which generation it has seen, and it is not the newest.
pub(crate) fn reported_behind(o: &Reader<'_>) -> Option<Verdict> {
    let generation = o.int("metadata.generation")?;
    let observed = o.int("status.observedGeneration")?;
    (observed < generation).then(|| not_observed(generation, observed))
}

/// The verdict if the condition speaks of a generation that is not the newest.
pub(crate) fn stale(o: &Reader<'_>, condition: &Condition<'_>) -> Option<Verdict> {
    let observed = condition.observed_generation()?;
    let generation = o.int("metadata.generation")?;
    (observed < generation).then(|| {
        Verdict::in_progress(
            REASON,
            format!("condition {} speaks of generation {observed}, not yet of {generation}", condition.kind),
        )
    })
}

const REASON: &str = "LatestGenerationNotObserved";

fn not_observed(generation: i64, observed: i64) -> Verdict {
    let message = match observed {
        0 => "the controller has not seen it yet".to_owned(),
        observed => format!("the controller has seen generation {observed}, not yet {generation}"),
    };
    Verdict::in_progress(REASON, message)
}
