//! Rules for any kind: they interpret the usual conditions, phases and counters of operators.
//!
//! Order of evaluation, first match: suspended in the spec; observed generation; suspended in the status; `Stalled`
//! and `Reconciling`; `Ready`; the worst of the phase, the other known conditions, and the conditions of parts such as parents
//! and listeners; replica counters. An object with a spec and no status is `InProgress`.

pub(crate) mod conditions;
mod intent;
pub(crate) mod phase;
pub(crate) mod polarity;
pub(crate) mod replicas;
mod status;
pub(crate) mod suspension;
pub(crate) mod witness;
pub(crate) mod words;

use bellwether_model::State;

use crate::{
    generation,
    read::Reader,
    reasons,
    verdict::{Rule, Verdict},
};

/// The fields that the generic rules read.
pub(crate) const READS: &[&str] = &[
    "metadata.labels",
    "spec.*",
    "spec.updateStrategy.paused",
    "spec.updateStrategy.rollingUpdate.paused",
    "status",
];

/// `None` if nothing in the object is recognized.
pub(crate) fn evaluate(o: &Reader<'_>) -> Option<Verdict> {
    // Before the generation: controllers do not observe suspended objects.
    if let Some(verdict) = suspension::by_spec(o) {
        return Some(verdict.by(&Rule::generic("suspended")));
    }
    if let Some(verdict) = generation::reported_behind(o).or_else(|| generation::evaluated_behind(o)) {
        return Some(verdict.by(&Rule::generic("generation")));
    }
    // After it: the user may have resumed the object.
    if let Some(verdict) = suspension::by_status(o) {
        return Some(verdict.by(&Rule::generic("suspended")));
    }
    let verdict = status::evaluate(o)?;
    let blocks = verdict.state == State::Suspended && suspension::is_unavailable(o, &verdict, false);
    Some(verdict.blocks(blocks))
}

/// `InProgress` without a status, with an empty one, or with an empty list of conditions.
pub(crate) fn unreported(o: &Reader<'_>) -> Option<Verdict> {
    let status = o.at("status");
    let verdict = if !o.has("status") || (status.is_map() && status.fields().next().is_none()) {
        // Without a spec, an unknown kind of the core group may be data, such as a ConfigMap.
        let is_reconciled = o.text("apiVersion").contains('/') || o.at("spec").fields().next().is_some();
        is_reconciled.then(Verdict::not_observed)
    } else {
        let is_empty = o.at("status.conditions").value()?.as_list()?.is_empty();
        is_empty.then(|| Verdict::in_progress(reasons::NOT_OBSERVED, "no conditions reported yet"))
    };
    Some(verdict?.by(&Rule::generic("unreported")))
}

/// The words of a phrase that have a meaning in phases, reasons or condition types, in lower case.
///
/// For statistics about the rules.
pub fn known_words(phrase: &str) -> Vec<String> {
    let is_known = |word: &String| words::is_known(word) || polarity::of(word).is_some();
    words::words(phrase).into_iter().filter(is_known).collect()
}
