//! Phases: `status.phase` and similar fields, errors and boolean flags in the status.

use bellwether_model::{State, Value, text::capitalised};

use super::{
    words::{meaning, words},
    worst_by,
};
use crate::{read::Reader, reasons, verdict::Verdict};

/// Last word of the name of a phase field: `phase`, `currentState`, `jobStatus`.
pub(crate) const NAMES: &[&str] = &["phase", "state", "status", "health", "stage", "compliant"];

/// First word of the name of a field that is not about the current state.
pub(crate) const NOT_CURRENT: &[&str] =
    &["desired", "expected", "initial", "old", "original", "previous", "target"];

/// Fields with an error. Empty or absent without one.
pub(crate) const ERRORS: &[&str] =
    &["error", "errMsg", "errorMessage", "errorReason", "failureMessage", "failureReason"];

/// Boolean fields that are true if the object is healthy.
pub(crate) const FLAGS: &[&str] = &["ready", "healthy", "isReady", "readyToUse", "success", "valid"];

/// Fields with a message for the phase.
const MESSAGES: &[&str] = &["message", "reason", "errorMessage", "error", "failureMessage"];

/// Last word of the name of a kind that runs to completion.
pub(crate) const COMPLETING_KINDS: &str = "backup build download experiment job migration operation order restore run task test trial upload workflow";

/// Phases of such a kind before completion.
pub(crate) const NOT_COMPLETE: &str = "accepted active available ready running started";

/// Whether objects of this kind run to completion. For them, `Running` is `InProgress`.
pub(crate) fn runs_to_completion(o: &Reader<'_>) -> bool {
    words(o.text("kind"))
        .last()
        .is_some_and(|last| COMPLETING_KINDS.split_whitespace().any(|word| word == last))
}

/// An error first, then the worst phase, then a flag.
pub(crate) fn evaluate(o: &Reader<'_>, status: &Reader<'_>) -> Option<Verdict> {
    error(status).or_else(|| phase(o, status)).or_else(|| flag(status))
}

pub(crate) fn error(status: &Reader<'_>) -> Option<Verdict> {
    let error = ERRORS.iter().find_map(|field| {
        let found = status.at(field);
        match found.value()? {
            Value::Text(text) if !text.trim().is_empty() => Some(text.to_string()),
            Value::Map(_) => Some(found.text("message").to_owned()).filter(|message| !message.is_empty()),
            _ => None,
        }
    })?;
    Some(Verdict::failed(reasons::ERROR, error))
}

/// The worst of all phase fields.
fn phase(o: &Reader<'_>, status: &Reader<'_>) -> Option<Verdict> {
    let completes = runs_to_completion(o);
    let fields = status.fields().filter(|(name, field)| {
        let words = words(name);
        let names_a_state = words.last().is_some_and(|last| NAMES.contains(&last.as_str()));
        let is_current = words.first().is_none_or(|first| !NOT_CURRENT.contains(&first.as_str()));
        names_a_state && is_current && field.is_text()
    });
    let found = fields.filter_map(|(_, field)| {
        let word = field.value()?.as_text()?;
        let state = match meaning(word)? {
            State::Ready
                if completes
                    && NOT_COMPLETE.split_whitespace().any(|early| word.eq_ignore_ascii_case(early)) =>
            {
                State::InProgress
            }
            state => state,
        };
        Some((state, word))
    });
    let (state, word) = worst_by(found, |(state, _)| *state)?;
    Some(Verdict::new(state, capitalised(word), with_message(status, word)))
}

fn flag(status: &Reader<'_>) -> Option<Verdict> {
    let (name, holds) =
        FLAGS.iter().find_map(|name| Some((*name, status.at(name).value().and_then(Value::as_bool)?)))?;
    let text = format!("{name}={holds}");
    Some(match (name, holds) {
        ("healthy", false) => Verdict::failed(reasons::UNHEALTHY, with_message(status, &text)),
        ("valid", false) => Verdict::failed(reasons::INVALID, with_message(status, &text)),
        ("valid", true) => return None,
        (_, true) => Verdict::ready(reasons::READY, text),
        (_, false) => Verdict::in_progress(reasons::NOT_READY, with_message(status, &text)),
    })
}

fn with_message(status: &Reader<'_>, word: &str) -> String {
    let message = MESSAGES.iter().map(|field| status.text(field).trim()).find(|message| !message.is_empty());
    match message {
        Some(message) if message != word => format!("{word}: {message}"),
        _ => word.to_owned(),
    }
}

/// The usual fields by which users suspend an object.
pub(crate) fn suspended(o: &Reader<'_>) -> Option<Verdict> {
    let field = ["spec.suspend", "spec.suspended", "spec.paused", "spec.pause"]
        .into_iter()
        .find(|field| o.flag(field))?;
    Some(Verdict::new(State::Suspended, reasons::SUSPENDED, format!("{field}=true")))
}
