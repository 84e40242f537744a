//! Whether a controller has observed the latest generation of an object.

use crate::{
    read::{Condition, Reader},
    reasons,
    verdict::Verdict,
};

/// The verdict if `status.observedGeneration` is older than `metadata.generation`, or absent.
///
/// Only for kinds whose controllers always set `observedGeneration`.
pub(crate) fn behind(o: &Reader<'_>) -> Option<Verdict> {
    let generation = o.int("metadata.generation")?;
    let observed = o.int("status.observedGeneration").unwrap_or(0);
    (observed < generation).then(|| not_observed(generation, observed))
}

/// The verdict if `status.observedGeneration` is set and older than `metadata.generation`.
pub(crate) fn reported_behind(o: &Reader<'_>) -> Option<Verdict> {
    let generation = o.int("metadata.generation")?;
    let observed = o.int("status.observedGeneration")?;
    (observed < generation).then(|| not_observed(generation, observed))
}

/// The verdict if the `observedGeneration` of a condition is older than `metadata.generation`.
pub(crate) fn stale(o: &Reader<'_>, condition: &Condition<'_>) -> Option<Verdict> {
    let observed = condition.observed_generation()?;
    let generation = o.int("metadata.generation")?;
    (observed < generation).then(|| {
        Verdict::in_progress(
            reasons::LATEST_GENERATION_NOT_OBSERVED,
            format!("condition {}: observed generation {observed}, want {generation}", condition.kind),
        )
    })
}

fn not_observed(generation: i64, observed: i64) -> Verdict {
    let message = match observed {
        0 => format!("generation {generation} not observed yet"),
        observed => format!("observed generation {observed}, want {generation}"),
    };
    Verdict::in_progress(reasons::LATEST_GENERATION_NOT_OBSERVED, message)
}
