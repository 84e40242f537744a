//! Phases: `status.phase` and similar fields, errors and boolean flags in the status.

use bellwether_model::{State, Value, text::capitalised};

use super::{
    intent,
    words::{is_halted, meaning, words},
};
use crate::{
    read::Reader,
    reasons,
    verdict::{Verdict, worst, worst_by},
};

/// Last word of the name of a phase field: `phase`, `currentState`, `jobStatus`.
pub(crate) const NAMES: &[&str] = &["phase", "state", "status", "health", "stage", "compliant"];

/// First word of the name of a field that is not about the current state.
pub(crate) const NOT_CURRENT: &[&str] =
    &["desired", "expected", "initial", "old", "original", "previous", "target"];

/// Fields with an error. Empty or absent without one.
pub(crate) const ERRORS: &[&str] =
    &["error", "errMsg", "errorMessage", "errorReason", "failureMessage", "failureReason"];

/// Texts of such fields without an error. In lower case.
const HARMLESS: &[&str] = &[
    "",
    "-",
    "0",
    "<nil>",
    "false",
    "n/a",
    "nil",
    "no error",
    "no errors",
    "noerror",
    "none",
    "null",
    "ok",
    "success",
];

/// Whether a text in a field for errors means that there is none.
pub(crate) fn is_harmless(text: &str) -> bool {
    HARMLESS.contains(&text.trim().to_lowercase().as_str())
}

/// Boolean fields that are true if the object is healthy.
pub(crate) const FLAGS: &[&str] = &["ready", "healthy", "isReady", "readyToUse", "success", "valid"];

/// Fields with a message for the phase.
const MESSAGES: &[&str] = &["message", "reason", "errorMessage", "error", "failureMessage"];

/// Last word of the name of a kind that runs to completion.
pub(crate) const COMPLETING_KINDS: &str = "backup build download experiment job migration operation order restore run task test trial upload workflow";

/// Phases of such a kind before completion.
pub(crate) const NOT_COMPLETE: &str = "accepted active available ready running started";

/// Phases on the way to a good one: alone they mean `InProgress`.
pub(crate) const STEPS: &str = "accepted assigned started validated";

/// Whether a `Ready` verdict by a phase is about a step.
pub(super) fn is_step(verdict: &Verdict) -> bool {
    verdict.state == State::Ready && is_step_word(&verdict.reason)
}

fn is_step_word(word: &str) -> bool {
    STEPS.split_whitespace().any(|step| word.eq_ignore_ascii_case(step))
}

/// Whether objects of this kind run to completion. For them, `Running` is `InProgress`.
pub(crate) fn runs_to_completion(o: &Reader<'_>) -> bool {
    words(o.text("kind"))
        .last()
        .is_some_and(|last| COMPLETING_KINDS.split_whitespace().any(|word| word == last))
}

/// An error first, then the worst phase. A flag decides without a phase or beside a step, and contradicts a good
/// phase.
pub(crate) fn evaluate(o: &Reader<'_>, status: &Reader<'_>) -> Option<Verdict> {
    error(status).or_else(|| match phase(o, status) {
        Some(phase) if phase.state != State::Ready => Some(phase),
        Some(phase) if is_step(&phase) => flag(status).or(Some(phase)),
        Some(phase) => flag(status).filter(|flag| flag.state != State::Ready).or(Some(phase)),
        None => flag(status),
    })
}

pub(crate) fn error(status: &Reader<'_>) -> Option<Verdict> {
    let error = ERRORS.iter().find_map(|field| {
        let found = status.at(field);
        match found.value()? {
            Value::Text(text) if !is_harmless(text) => Some(text.to_string()),
            Value::Map(_) => text_of_error(&found).map(str::to_owned),
            _ => None,
        }
    })?;
    Some(Verdict::failed(reasons::ERROR, error))
}

/// What an error that is a map says, if it is one.
pub(super) fn text_of_error<'o>(error: &Reader<'o>) -> Option<&'o str> {
    ["message", "reason"].into_iter().map(|field| error.text(field)).find(|text| !is_harmless(text))
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
    let found = fields.filter_map(|(name, field)| {
        let word = field.value()?.as_text()?;
        let known = meaning_of_phase(word);
        if is_halted(word) && !matches!(known, Some(State::Failed | State::Suspended | State::Terminating)) {
            return Some((intent::of_stopped(o, "", &with_message(status, word)), word));
        }
        let state = match known? {
            // `stageStatus: success` beside `stage: deployment` says how far it is.
            State::Ready if names_a_step(status, name) => State::InProgress,
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
    let found: Vec<_> = found.collect();
    let worst = worst_by(found.iter().copied(), |(state, _)| *state)?;
    // Of good phases, one that is not a step.
    let better = found.into_iter().find(|(state, word)| *state == State::Ready && !is_step_word(word));
    let (state, word) = better.filter(|_| worst.0 == State::Ready).unwrap_or(worst);
    Some(Verdict::new(state, capitalised(word), with_message(status, word)))
}

/// A phase may be a sentence about what is wrong, and `NotFound` is about an object that is created yet.
fn meaning_of_phase(phase: &str) -> Option<State> {
    let words = words(phase);
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    match meaning(phase) {
        Some(State::Failed) if words == ["not", "found"] => Some(State::InProgress),
        None if words.len() > 3 && (has("not") || has("cannot") || phase.contains("already exists")) => {
            Some(State::Failed)
        }
        state => state,
    }
}

/// Whether a field is about the step that another field names.
fn names_a_step(status: &Reader<'_>, name: &str) -> bool {
    // Bounds the time for one object.
    const MAX_FIELDS: usize = 100;
    if status.raw().and_then(Value::as_map).is_none_or(|status| status.len() > MAX_FIELDS) {
        return false;
    }
    let of = ["Status", "State"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or_default();
    let step = status.at(of).raw().and_then(Value::as_text).unwrap_or_default();
    !of.is_empty() && !step.is_empty() && meaning(step) != Some(State::Ready)
}

/// The worst of all flags.
fn flag(status: &Reader<'_>) -> Option<Verdict> {
    let flags = FLAGS.iter().filter_map(|name| {
        let holds = status.at(name).value().and_then(Value::as_bool)?;
        let text = format!("{name}={holds}");
        Some(match (*name, holds) {
            ("valid", true) => return None,
            (_, true) => Verdict::ready(reasons::READY, text),
            (_, false) => {
                let (state, reason) = of_false_flag(name);
                Verdict::new(state, reason, with_message(status, &text))
            }
        })
    });
    worst(flags)
}

/// The state and reason of an object or a part of it whose flag of this name is false.
pub(super) fn of_false_flag(name: &str) -> (State, &'static str) {
    match name {
        "healthy" => (State::Failed, reasons::UNHEALTHY),
        "valid" => (State::Failed, reasons::INVALID),
        _ => (State::InProgress, reasons::NOT_READY),
    }
}

fn with_message(status: &Reader<'_>, word: &str) -> String {
    let message = MESSAGES.iter().map(|field| status.text(field).trim()).find(|message| !message.is_empty());
    match message {
        Some(message) if message != word => format!("{word}: {message}"),
        _ => word.to_owned(),
    }
}
