//! What the spec of an object says about whether it should run.

use bellwether_model::{State, Value};

use super::words::{meaning, tells_suspension};
use crate::read::Reader;

/// Fields by which users suspend an object or its rollout.
pub(crate) const SUSPENDING: &[&str] = &[
    "spec.suspend",
    "spec.suspended",
    "spec.paused",
    "spec.pause",
    "spec.updateStrategy.paused",
    "spec.updateStrategy.rollingUpdate.paused",
];

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
fn is_off(o: &Reader<'_>) -> bool {
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
    } else if is_off(o) {
        State::Suspended
    } else {
        State::InProgress
    }
}
