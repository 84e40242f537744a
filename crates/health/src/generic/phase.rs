//! One word for the whole state: `status.phase` and its like, and what else a status says outright.

use bellwether_model::{State, Value, text::capitalised};

use super::{
    words::{meaning, words},
    worst_by,
};
use crate::{read::Reader, verdict::Verdict};

/// The last word in the name of a field that holds one word for the state: `phase`, `currentState`, `jobStatus`.
pub(crate) const NAMES: &[&str] = &["phase", "state", "status", "health", "stage", "compliant"];

/// The first word in the name of a field that does not speak of now.
pub(crate) const NOT_NOW: &[&str] =
    &["desired", "expected", "initial", "old", "original", "previous", "target"];

/// Fields that hold an error, when there is one.
pub(crate) const ERRORS: &[&str] =
    &["error", "errMsg", "errorMessage", "errorReason", "failureMessage", "failureReason"];

/// Fields that are true when all is well.
pub(crate) const FLAGS: &[&str] = &["ready", "healthy", "isReady", "readyToUse", "success", "valid"];

/// Fields that say in a sentence why.
const MESSAGES: &[&str] = &["message", "reason", "errorMessage", "error", "failureMessage"];

/// The last word in the name of a kind whose objects run to an end.
pub(crate) const RUNS_TO_AN_END: &str = "backup build download experiment job migration operation order restore run task test trial upload workflow";

/// What such objects may be long before they are done.
pub(crate) const NOT_DONE: &str = "accepted active available ready running started";

/// Whether the object is of a kind that runs to an end: for it, running is being under way.
pub(crate) fn runs_to_an_end(o: &Reader<'_>) -> bool {
    words(o.text("kind"))
        .last()
        .is_some_and(|last| RUNS_TO_AN_END.split_whitespace().any(|word| word == last))
}

/// What the words of a status say: an error first, then the worst of its phases, then its flags.
pub(crate) fn judge(o: &Reader<'_>, status: &Reader<'_>) -> Option<Verdict> {
    error(status).or_else(|| phase(o, status)).or_else(|| flag(status))
}

/// The error that a status admits.
pub(crate) fn error(status: &Reader<'_>) -> Option<Verdict> {
    let error = ERRORS.iter().find_map(|field| {
        let found = status.at(field);
        match found.value()? {
            Value::Text(text) if !text.trim().is_empty() => Some(text.to_string()),
            Value::Map(_) => Some(found.text("message").to_owned()).filter(|message| !message.is_empty()),
            _ => None,
        }
    })?;
    Some(Verdict::failed("Error", error))
}

/// The worst of the words.
fn phase(o: &Reader<'_>, status: &Reader<'_>) -> Option<Verdict> {
    let ends = runs_to_an_end(o);
    let fields = status.fields().filter(|(name, field)| {
        let words = words(name);
        let names_a_state = words.last().is_some_and(|last| NAMES.contains(&last.as_str()));
        let of_now = words.first().is_none_or(|first| !NOT_NOW.contains(&first.as_str()));
        names_a_state && of_now && field.is_text()
    });
    let said = fields.filter_map(|(_, field)| {
        let word = field.value()?.as_text()?;
        let state = match meaning(word)? {
            State::Ready
                if ends && NOT_DONE.split_whitespace().any(|early| word.eq_ignore_ascii_case(early)) =>
            {
                State::InProgress
            }
            state => state,
        };
        Some((state, word))
    });
    let (state, word) = worst_by(said, |(state, _)| *state)?;
    Some(Verdict::new(state, capitalised(word), sentence(status, word)))
}

fn flag(status: &Reader<'_>) -> Option<Verdict> {
    let (name, holds) =
        FLAGS.iter().find_map(|name| Some((*name, status.at(name).value().and_then(Value::as_bool)?)))?;
    let said = format!("its status has {name}: {holds}");
    Some(match (name, holds) {
        ("healthy", false) => Verdict::failed("Unhealthy", sentence(status, &said)),
        ("valid", false) => Verdict::failed("Invalid", sentence(status, &said)),
        ("valid", true) => return None,
        (_, true) => Verdict::ready("Ready", said),
        (_, false) => Verdict::in_progress("NotReady", sentence(status, &said)),
    })
}

fn sentence(status: &Reader<'_>, word: &str) -> String {
    let message = MESSAGES.iter().map(|field| status.text(field).trim()).find(|message| !message.is_empty());
    match message {
        Some(message) if message != word => format!("{word}: {message}"),
        _ => word.to_owned(),
    }
}

/// Whether somebody stopped it on purpose, where most kinds say so.
pub(crate) fn stopped(o: &Reader<'_>) -> Option<Verdict> {
    let field = ["spec.suspend", "spec.suspended", "spec.paused", "spec.pause"]
        .into_iter()
        .find(|field| o.flag(field))?;
    Some(Verdict::new(State::Suspended, "Suspended", format!("{field} is true")))
}
