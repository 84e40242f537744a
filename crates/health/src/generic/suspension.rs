//! What suspends an object, and whether it counts against its group while it is suspended.

use bellwether_model::{State, Value};

use super::{
    phase::{self, SUSPENDING},
    polarity, replicas, reported, witness,
    words::{is_halted, meaning, words},
};
use crate::{
    read::{Condition, Reader},
    reasons,
    verdict::Verdict,
};

/// Flags in the spec that are true if nothing of the object should run.
const OFF: &[&str] = &[
    "disable",
    "disabled",
    "halt",
    "halted",
    "hibernate",
    "hibernated",
    "inactive",
    "pause",
    "paused",
    "shutdown",
    "stop",
    "stopped",
    "suspend",
    "suspended",
];

/// Flags in the spec that are false if nothing of the object should run.
const ON: &[&str] = &["activated", "active", "enable", "enabled", "run", "running", "start", "started"];

/// Texts in the spec that name the wanted state.
const WANTED_STATES: &[&str] =
    &["desiredState", "desiredStatus", "powerState", "runState", "runStrategy", "state", "targetState"];

/// Whether the spec says that nothing of the object should run, so that a phase such as `Stopped` is intended.
pub(super) fn is_wanted(o: &Reader<'_>) -> bool {
    if SUSPENDING.iter().any(|field| o.flag(field)) {
        return true;
    }
    // Whole names: `tlsEnabled` and `debugMode` are about something else.
    let wanted = o.at("spec").fields().find(|(name, field)| match field.raw() {
        Some(Value::Bool(true)) => OFF.contains(name),
        Some(Value::Bool(false)) => ON.contains(name),
        Some(Value::Int(0)) => matches!(*name, "instances" | "replicas" | "size"),
        Some(Value::Text(text)) if WANTED_STATES.contains(name) => {
            text.eq_ignore_ascii_case("off") || tells_suspension(text)
        }
        _ => false,
    });
    wanted.is_some_and(|(_, field)| field.value().is_some())
}

/// The state of an object that reports that it is stopped, with the message that it gives.
pub(super) fn of_stopped(o: &Reader<'_>, reason: &str, message: &str) -> State {
    if [reason, message].into_iter().any(|text| meaning(text) == Some(State::Failed)) {
        State::Failed
    } else if is_wanted(o) {
        State::Suspended
    } else {
        State::InProgress
    }
}

/// Whether a suspended object of which nothing should run had failed before, or contradicts itself.
pub(crate) fn has_failed(o: &Reader<'_>) -> bool {
    failure(o).is_some_and(|failed| {
        let words = words(&failed.reason);
        // What should not run need not exist: `VMINotExists`.
        !words.ends_with(&["not".to_owned(), "exists".to_owned()])
    })
}

/// What a suspended object reports as failed or contradictory.
fn failure(o: &Reader<'_>) -> Option<Verdict> {
    let failed = |verdict: &Verdict| verdict.state == State::Failed;
    reported(o).filter(failed).or_else(|| witness::contradiction(o).filter(failed)).or_else(|| {
        let contradicted = o.contradicted(polarity::is_known)?;
        Some(Verdict::unknown(reasons::CONTRADICTORY_CONDITIONS, contradicted.message_or_reason()))
    })
}

/// Whether what runs of a suspended object is not available. `suspended` is the verdict on it, `by_spec` whether a
/// field of the spec suspends it: then its phase says how far it was.
pub(crate) fn is_unavailable(o: &Reader<'_>, suspended: &Verdict, by_spec: bool) -> bool {
    if failure(o).is_some() {
        return true;
    }
    if phase::runs_to_completion(o) || words(&suspended.reason).iter().any(|word| rests(word)) {
        return false;
    }
    let conditions: Vec<_> = ["Ready", "Available"].iter().filter_map(|kind| o.condition(kind)).collect();
    let by_suspension = |condition: &Condition<'_>| {
        let reason = condition.reason();
        tells_suspension(reason) || (!reason.is_empty() && reason == suspended.reason)
    };
    if conditions.iter().any(|condition| !condition.is_true() && !by_suspension(condition)) {
        return true;
    }
    let in_progress = || reported(o).is_some_and(|verdict| verdict.state == State::InProgress);
    match replicas::are_ready(o) {
        Some(false) => true,
        None if by_spec && conditions.is_empty() && in_progress() => true,
        _ => witness::is_short(o),
    }
}

/// Whether nothing of an object in this state should run.
pub(super) fn rests(word: &str) -> bool {
    word.starts_with("hibernat") || matches!(word, "parked" | "shelved" | "sleeping") || is_halted(word)
}

/// Whether a reason or a wanted state names a suspension.
fn tells_suspension(text: &str) -> bool {
    meaning(text) == Some(State::Suspended) || (is_halted(text) && meaning(text) != Some(State::Failed))
}
