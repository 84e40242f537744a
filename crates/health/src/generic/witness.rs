//! What contradicts a good condition or phase, at any depth of the status.
//!
//! A condition such as `Ready` is written by one controller at one moment. An error text, a counter of failures
//! or a failed part beside it says that the object does not work as a whole.

use bellwether_model::{State, Value};

use super::{
    conditions::Conditions,
    phase::{self, FLAGS, NAMES, NOT_CURRENT},
    words::{meaning, words},
};
use crate::{generation, read::Reader, reasons, verdict::Verdict};

/// Lists in a status that are not parts: its own conditions, and histories.
pub(super) const NOT_PARTS: &[&str] = &["conditions", "history", "events", "revisions", "attempts"];

/// Bounds the time for one object.
const MAX_FIELDS: usize = 10_000;
const MAX_DEPTH: usize = 8;
/// In larger maps, fields are not compared with each other.
const MAX_SIBLINGS: usize = 100;

/// Last word of the name of a text in which only failures are written, with one of [`FAILURES`] in the name:
/// `lastError`, `failureReason`, `errorDescription`.
const TEXTS: &[&str] = &[
    "cause",
    "description",
    "detail",
    "details",
    "err",
    "error",
    "errors",
    "failure",
    "failures",
    "message",
    "msg",
    "reason",
    "text",
];

/// Words in the names of texts about failures.
const FAILURES: &[&str] = &["err", "error", "errors", "failure", "failures"];

/// Words in the names of counters and lists of failures: `failedTasksCount`, `numberOfFailures`.
const FAILED: &[&str] = &["crashed", "errors", "failed", "failing", "failures", "unhealthy"];

/// Words in names that are about the handling of failures, or about when they were.
const NOT_FAILURES: &[&str] = &[
    "allow",
    "allowed",
    "at",
    "backoff",
    "code",
    "domain",
    "domains",
    "generation",
    "history",
    "ignore",
    "ignored",
    "last",
    "limit",
    "max",
    "min",
    "no",
    "not",
    "on",
    "policy",
    "previous",
    "previously",
    "retries",
    "revision",
    "seconds",
    "threshold",
    "time",
    "timestamp",
    "transition",
    "version",
];

/// Last words of flags that are true if the object fails.
const BAD_FLAGS: &[&str] = &[
    "blocked",
    "broken",
    "conflict",
    "crashed",
    "degraded",
    "error",
    "errored",
    "errors",
    "failed",
    "failing",
    "failure",
    "invalid",
    "stalled",
    "unhealthy",
    "unreachable",
];

/// First word of a counter that reaches the counter without it: `readyMembers` of `members`.
const DONE: &[&str] = &["available", "healthy", "ready"];

/// First word of a field with the current value, beside one with the desired value.
const CURRENT: &[&str] = &["actual", "current", "observed"];

/// A contradiction: `Failed` or `InProgress`, and what says so.
struct Contradiction {
    state: State,
    message: String,
}

/// The verdict instead of `Ready`, if the status or a label contradicts it.
pub(crate) fn contradiction(o: &Reader<'_>) -> Option<Verdict> {
    let conditions = Conditions::of(o);
    if let Some(verdict) = conditions.unknown_failure() {
        return Some(verdict);
    }
    let status = o.at("status");
    let mut search = Search::new(o);
    let found = search.map(&status, 0).or_else(|| label(o));
    if search.fields > MAX_FIELDS && found.as_ref().is_none_or(|found| found.state != State::Failed) {
        let message = format!("too many fields in status, only the first {MAX_FIELDS} are evaluated");
        return Some(Verdict::unknown(reasons::TOO_MANY_STATUS_ENTRIES, message));
    }
    let found = found?;
    let reason =
        if found.state == State::Failed { reasons::FAILURE_REPORTED } else { reasons::PARTS_NOT_READY };
    Some(Verdict::new(found.state, reason, found.message))
}

/// A failure reported by a condition of unknown polarity, for an object about which nothing else is known.
pub(crate) fn failure(o: &Reader<'_>) -> Option<Verdict> {
    Conditions::of(o).unknown_failure()
}

/// Some operators write a state into a label.
fn label(o: &Reader<'_>) -> Option<Contradiction> {
    o.at("metadata.labels").fields().find_map(|(name, value)| {
        let own = name.rsplit('/').next().unwrap_or(name);
        let text = value.raw().and_then(Value::as_text)?;
        let failed = names_a_state(&words(own)) && meaning(text) == Some(State::Failed);
        failed.then(|| found(State::Failed, &value, format!("label {name}={text}")))
    })
}

/// Whether a counter of what is ready is lower than the counter of all, at any depth. Not for replicas: during a
/// rollout, more exist than are wanted.
pub(crate) fn is_short(o: &Reader<'_>) -> bool {
    let mut search = Search::new(o);
    search.map(&o.at("status"), 0);
    search.short
}

/// By counters of what is ready beside counters of all, where nothing else is known: `readyMembers` of `members`.
pub(crate) fn counters(o: &Reader<'_>) -> Option<Verdict> {
    let mut search = Search::new(o);
    match search.map(&o.at("status"), 0) {
        Some(found) if found.state == State::InProgress => {
            Some(Verdict::in_progress(reasons::PARTS_NOT_READY, found.message))
        }
        None if search.reached > 0 => Some(Verdict::ready(reasons::PARTS_READY, "all counters as wanted")),
        _ => None,
    }
}

fn found(state: State, place: &Reader<'_>, message: String) -> Contradiction {
    place.value();
    Contradiction { state, message }
}

struct Search<'r, 'o> {
    o: &'r Reader<'o>,
    fields: usize,
    /// The number of counters that have the wanted value.
    reached: usize,
    /// Whether a counter other than one of replicas is too low.
    short: bool,
    /// Whether the kind runs to completion: then failed attempts may precede success.
    completes: bool,
}

impl<'r, 'o> Search<'r, 'o> {
    fn new(o: &'r Reader<'o>) -> Self {
        Self { o, fields: 0, reached: 0, short: false, completes: phase::runs_to_completion(o) }
    }

    /// The worst in a map: the first failure, else the first part that is not ready.
    fn map(&mut self, map: &Reader<'_>, depth: usize) -> Option<Contradiction> {
        let fields: Vec<_> = map.fields().collect();
        let siblings = if fields.len() > MAX_SIBLINGS { &[] } else { fields.as_slice() };
        let mut worst: Option<Contradiction> = None;
        for (name, field) in &fields {
            self.fields += 1;
            if self.fields > MAX_FIELDS || depth > MAX_DEPTH {
                break;
            }
            let contradiction =
                self.field(map, name, field, depth).or_else(|| match beside(siblings, name, field)? {
                    Beside::Different(message) => Some(found(State::InProgress, field, message)),
                    Beside::Short(message) => {
                        self.short |= !name.ends_with("Replicas");
                        Some(found(State::InProgress, field, message))
                    }
                    Beside::Reached => {
                        self.reached += 1;
                        None
                    }
                });
            match contradiction {
                Some(failure) if failure.state == State::Failed => return Some(failure),
                other => worst = worst.or(other),
            }
        }
        worst
    }

    fn field(
        &mut self,
        map: &Reader<'_>,
        name: &str,
        field: &Reader<'_>,
        depth: usize,
    ) -> Option<Contradiction> {
        let words = words(name);
        let counts = !self.completes && counts_failures(&words);
        let nested = depth > 0;
        match field.raw()? {
            Value::Text(text) if is_error(&words) => {
                (!phase::is_harmless(text)).then(|| found(State::Failed, field, format!("{name}: {text}")))
            }
            // Phases and flags of the status itself are evaluated before.
            Value::Text(text) if nested && names_a_state(&words) => {
                let state =
                    meaning(text).filter(|state| matches!(state, State::Failed | State::InProgress))?;
                Some(found(state, field, format!("{}{name}: {text}", title(map))))
            }
            Value::Text(text) => {
                let (some, all) = text.split_once('/')?;
                let (some, all): (i64, i64) = (some.trim().parse().ok()?, all.trim().parse().ok()?);
                let is_ready = words.iter().any(|word| DONE.contains(&word.as_str()));
                self.short |= is_ready && some < all;
                (is_ready && some < all).then(|| found(State::InProgress, field, format!("{name}: {text}")))
            }
            Value::Bool(true) if is_bad_flag(&words) => {
                Some(found(State::Failed, field, format!("{}{name}=true", title(map))))
            }
            Value::Bool(false) if nested && FLAGS.contains(&name) => {
                let (state, _) = phase::of_false_flag(name);
                Some(found(state, field, format!("{}{name}=false", title(map))))
            }
            value if counts && let Some(count) = counter(value).filter(|count| *count > 0) => {
                Some(found(State::Failed, field, format!("{}{name}: {count}", title(map))))
            }
            Value::List(list) if !list.is_empty() && (counts || is_error(&words)) => {
                Some(found(State::Failed, field, format!("{name}: {}", first_text(&list[0]))))
            }
            Value::Map(_)
                if is_error(&words)
                    && let Some(text) = phase::text_of_error(field) =>
            {
                Some(found(State::Failed, field, format!("{name}: {text}")))
            }
            Value::List(_) if name == "conditions" => nested.then(|| self.conditions(map)).flatten(),
            Value::List(_) | Value::Map(_) if is_history(name, &words) => None,
            Value::Map(_) => self.map(field, depth + 1),
            Value::List(_) => self.list(field, depth + 1),
            _ => None,
        }
    }

    /// The worst in a list of maps, or of lists of them.
    fn list(&mut self, list: &Reader<'_>, depth: usize) -> Option<Contradiction> {
        let mut worst: Option<Contradiction> = None;
        for entry in list.elements() {
            if self.fields > MAX_FIELDS || depth > MAX_DEPTH {
                break;
            }
            let contradiction = match entry.raw()? {
                Value::Map(_) => self.map(&entry, depth),
                Value::List(_) => {
                    self.fields += 1;
                    self.list(&entry, depth + 1)
                }
                _ => None,
            };
            match contradiction {
                Some(failure) if failure.state == State::Failed => return Some(failure),
                other => worst = worst.or(other),
            }
        }
        worst
    }

    /// A part whose own conditions are not good.
    fn conditions(&self, part: &Reader<'_>) -> Option<Contradiction> {
        let conditions = Conditions::at(self.o, part);
        let verdict = conditions
            .unknown_failure()
            .or_else(|| conditions.stalled())
            .or_else(|| conditions.ready(self.o))
            .or_else(|| conditions.known(self.o))?;
        let contradicts = matches!(verdict.state, State::Failed | State::InProgress | State::Unknown);
        let state = if verdict.state == State::Failed { State::Failed } else { State::InProgress };
        contradicts.then(|| Contradiction { state, message: format!("{}{}", title(part), verdict.message) })
    }
}

/// What a field says beside its siblings.
enum Beside {
    /// A counter has the wanted value.
    Reached,
    /// A current value is not the desired one.
    Different(String),
    /// A counter is too low.
    Short(String),
}

fn beside(fields: &[(&str, Reader<'_>)], name: &str, field: &Reader<'_>) -> Option<Beside> {
    let own = words(name);
    let (first, rest) = own.split_first().filter(|(_, rest)| !rest.is_empty())?;
    let sibling = |matches: &dyn Fn(&[String]) -> bool| {
        fields.iter().find(|(other, _)| *other != name && matches(&words(other)))
    };
    let counted = |name: &str, have: i64, want: i64| {
        if have < want { Beside::Short(format!("{name} {have}, want {want}")) } else { Beside::Reached }
    };
    if ["desired", "expected", "target"].contains(&first.as_str()) {
        let is_current = |words: &[String]| match words.split_first() {
            Some((first, other)) if CURRENT.contains(&first.as_str()) => other == rest,
            _ => words == rest,
        };
        let (current_name, current) = sibling(&is_current)?;
        return match (field.raw()?, current.raw()?) {
            (Value::Text(want), Value::Text(have))
                if !want.is_empty() && !want.eq_ignore_ascii_case(have) =>
            {
                Some(Beside::Different(format!("{current_name} {have:?}, want {want:?}")))
            }
            (want, have) => Some(counted(current_name, counter(have)?, counter(want)?)),
        };
    }
    if !DONE.contains(&first.as_str()) {
        return None;
    }
    let (_, all) = sibling(&|words| words == rest)?;
    Some(counted(name, counter(field.raw()?)?, counter(all.raw()?)?))
}

/// An integer, also if it is written with a fraction.
fn counter(value: &Value<'_>) -> Option<i64> {
    matches!(value, Value::Int(_) | Value::Float(_)).then(|| generation::number(value))?
}

/// `zone north: `, if the part has a name.
fn title(part: &Reader<'_>) -> String {
    match part.raw().and_then(|part| part.get("name")).and_then(Value::as_text) {
        Some(name) if !name.is_empty() => format!("{name}: "),
        _ => String::new(),
    }
}

fn first_text(value: &Value<'_>) -> String {
    let text = ["message", "error", "reason", "name"].iter().find_map(|field| value.get(field)?.as_text());
    text.map_or_else(|| value.to_string(), str::to_owned)
}

fn has(words: &[String], listed: &[&str]) -> bool {
    words.iter().any(|word| listed.contains(&word.as_str()))
}

fn names_a_state(words: &[String]) -> bool {
    words.last().is_some_and(|last| NAMES.contains(&last.as_str()))
        && words.first().is_some_and(|first| !NOT_CURRENT.contains(&first.as_str()) && first != "last")
}

fn is_error(words: &[String]) -> bool {
    has(words, FAILURES)
        && words.last().is_some_and(|last| TEXTS.contains(&last.as_str()))
        && words[0] != "no"
}

fn counts_failures(words: &[String]) -> bool {
    has(words, FAILED) && !has(words, NOT_FAILURES)
}

fn is_bad_flag(words: &[String]) -> bool {
    words.last().is_some_and(|last| BAD_FLAGS.contains(&last.as_str())) && !has(words, NOT_FAILURES)
}

/// Earlier states of the object, which contradict nothing.
fn is_history(name: &str, words: &[String]) -> bool {
    NOT_PARTS.contains(&name)
        || has(words, &["desired", "history", "last", "old", "previous", "target", "template"])
}
