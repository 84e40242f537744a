//! Rules as data: a list of clauses, the first match decides.
//!
//! Enough for most kinds of operators. If no clause matches, the generic rules or a default state apply.

use std::borrow::Cow;

use bellwether_model::{ConditionStatus, Plan, State, Value, text::capitalised};

use crate::{
    generation,
    generic::{self, suspension},
    read::{Condition, Reader},
    reasons,
    verdict::Verdict,
};

/// If `when` matches, the object is in `state`.
pub(crate) struct BuiltinClause {
    pub(crate) when: When,
    pub(crate) state: State,
    /// Replaces the message of the match, if not empty.
    message: &'static str,
    /// Whether a `Suspended` object blocks only after a failure: nothing of it should run.
    nothing_runs: bool,
    /// A field that must have this value, too.
    only_if: Option<(&'static str, &'static str)>,
}

/// The clause without further conditions.
const fn clause(when: When, state: State) -> BuiltinClause {
    BuiltinClause { when, state, message: "", nothing_runs: false, only_if: None }
}

impl BuiltinClause {
    pub(super) const fn message(mut self, message: &'static str) -> Self {
        self.message = message;
        self
    }

    pub(super) const fn nothing_runs(mut self) -> Self {
        self.nothing_runs = true;
        self
    }

    pub(super) const fn only_if(mut self, path: &'static str, value: &'static str) -> Self {
        self.only_if = Some((path, value));
        self
    }

    fn evaluate(&self, o: &Reader<'_>) -> Option<Verdict> {
        let verdict = self.when.evaluate(o, self.state)?;
        if let Some((path, wanted)) = self.only_if
            && o.at(path).value().and_then(word).is_none_or(|word| word != wanted)
        {
            return None;
        }
        let verdict = match self.message {
            "" => verdict,
            message => Verdict::new(self.state, verdict.reason, message),
        };
        let blocks = match verdict.state {
            State::Suspended if self.nothing_runs => suspension::has_failed(o),
            State::Suspended => suspension::is_unavailable(o, &verdict, self.suspends_by_spec()),
            _ => false,
        };
        Some(verdict.blocks(blocks))
    }

    /// Whether a user suspends the object by the field of the spec that this reads.
    fn suspends_by_spec(&self) -> bool {
        self.state == State::Suspended
            && matches!(self.when, When::Flag(path, _) if path.starts_with("spec."))
    }

    fn description(&self) -> String {
        match self.only_if {
            Some((path, value)) => format!("{} and `{path}` is `{value}`", self.when.description()),
            None => self.when.description(),
        }
    }

    /// Adds the fields that this reads to the plan.
    pub(super) fn extend(&self, plan: Plan) -> Plan {
        let plan = self.when.extend(plan);
        match self.only_if {
            Some((path, _)) => plan.with(path),
            None => plan,
        }
    }
}

/// The condition of a clause.
pub(crate) enum When {
    /// A condition type has this status.
    Condition(&'static str, ConditionStatus),
    /// A condition type has this status and one of these reasons.
    ConditionFor(&'static str, ConditionStatus, &'static [&'static str]),
    /// No condition has this type.
    NoCondition(&'static str),
    /// A string, number or boolean field equals one of these.
    Is(&'static str, &'static [&'static str]),
    /// A boolean field has this value.
    Flag(&'static str, bool),
    /// A field is set and not empty.
    Has(&'static str),
    /// A field is not set, or empty.
    Lacks(&'static str),
    /// The first counter is lower than the second.
    Fewer(&'static str, &'static str),
    /// A counter is greater than 0.
    Some(&'static str),
    /// In any entry of a list or map, a field equals one of these.
    PartIs(&'static str, &'static str, &'static [&'static str]),
    /// In any entry of a list or map, a field is set and not empty.
    PartHas(&'static str, &'static str),
    /// A label has one of these values.
    Label(&'static str, &'static [&'static str]),
    /// A field with an observed generation is older than `metadata.generation`.
    Behind(&'static str),
}

pub(super) const fn condition(kind: &'static str, status: ConditionStatus, state: State) -> BuiltinClause {
    clause(When::Condition(kind, status), state)
}

pub(super) const fn condition_for(
    kind: &'static str,
    status: ConditionStatus,
    reasons: &'static [&'static str],
    state: State,
) -> BuiltinClause {
    clause(When::ConditionFor(kind, status, reasons), state)
}

pub(super) const fn no_condition(kind: &'static str, state: State) -> BuiltinClause {
    clause(When::NoCondition(kind), state)
}

pub(super) const fn is(path: &'static str, words: &'static [&'static str], state: State) -> BuiltinClause {
    clause(When::Is(path, words), state)
}

pub(super) const fn flag(path: &'static str, truth: bool, state: State) -> BuiltinClause {
    clause(When::Flag(path, truth), state)
}

pub(super) const fn has(path: &'static str, state: State) -> BuiltinClause {
    clause(When::Has(path), state)
}

pub(super) const fn lacks(path: &'static str, state: State) -> BuiltinClause {
    clause(When::Lacks(path), state)
}

pub(super) const fn fewer(have: &'static str, want: &'static str, state: State) -> BuiltinClause {
    clause(When::Fewer(have, want), state)
}

pub(super) const fn some(path: &'static str, state: State) -> BuiltinClause {
    clause(When::Some(path), state)
}

pub(super) const fn part_is(
    list: &'static str,
    field: &'static str,
    words: &'static [&'static str],
    state: State,
) -> BuiltinClause {
    clause(When::PartIs(list, field, words), state)
}

pub(super) const fn part_has(list: &'static str, field: &'static str, state: State) -> BuiltinClause {
    clause(When::PartHas(list, field), state)
}

pub(super) const fn behind(path: &'static str, state: State) -> BuiltinClause {
    clause(When::Behind(path), state)
}

pub(super) const fn label_is(
    label: &'static str,
    words: &'static [&'static str],
    state: State,
) -> BuiltinClause {
    clause(When::Label(label, words), state)
}

/// What applies if no clause matches.
#[derive(Clone, Copy)]
pub(crate) enum Otherwise {
    Generic,
    Is(State),
}

/// Clauses by which users suspend the object are evaluated first: controllers do not observe suspended objects. A
/// stale status or a stale condition `Ready` is `InProgress` before any other clause is evaluated.
pub(super) fn evaluate(clauses: &[BuiltinClause], otherwise: Otherwise, o: &Reader<'_>) -> Verdict {
    let mut suspending = clauses.iter().filter(|clause| clause.suspends_by_spec());
    if let Some(suspended) = suspending.find_map(|clause| clause.evaluate(o)) {
        return suspended;
    }
    if let Some(behind) = generation::reported_behind(o) {
        return behind;
    }
    if let Some(stale) = o.condition("Ready").and_then(|ready| generation::stale(o, &ready)) {
        return stale;
    }
    if let Some(verdict) = clauses.iter().find_map(|clause| clause.evaluate(o)) {
        return verdict;
    }
    let generic = match otherwise {
        Otherwise::Generic => generic::evaluate(o).or_else(|| generic::unreported(o)),
        Otherwise::Is(_) => None,
    };
    if let Some(verdict) = generic {
        return verdict;
    }
    match otherwise {
        Otherwise::Is(State::Ready) => Verdict::ready(reasons::NO_ERROR_REPORTED, "no error reported"),
        Otherwise::Is(state) if state != State::InProgress => {
            Verdict::new(state, reasons::UNRECOGNIZED_STATUS, "no known phase or condition in its status")
        }
        _ => match unlisted_word(clauses, o) {
            Some(word) => by_word(o, State::InProgress, &word),
            None => Verdict::not_observed(),
        },
    }
}

/// The value of the first field that a clause compares. No clause lists that value.
fn unlisted_word(clauses: &[BuiltinClause], o: &Reader<'_>) -> Option<String> {
    clauses.iter().find_map(|clause| match clause.when {
        When::Is(path, _) => word(o.at(path).value()?).filter(|word| !word.is_empty()),
        _ => None,
    })
}

/// For the docs. Adjacent clauses with the same state are joined.
pub(super) fn description(clauses: &[BuiltinClause], otherwise: Otherwise) -> String {
    let by_state = clauses.chunk_by(|one, next| one.state == next.state).map(|clauses| {
        let conditions: Vec<_> = clauses.iter().map(BuiltinClause::description).collect();
        format!("`{:?}` if {}", clauses[0].state, conditions.join(", or if "))
    });
    let otherwise = match otherwise {
        Otherwise::Generic => "otherwise the generic rules apply.".to_owned(),
        Otherwise::Is(state) => format!("otherwise `{state:?}`."),
    };
    by_state.chain([otherwise]).collect::<Vec<_>>().join("; ")
}

impl When {
    fn description(&self) -> String {
        match self {
            Self::Condition(kind, status) => format!("condition `{kind}` is {status:?}"),
            Self::ConditionFor(kind, status, reasons) => {
                format!("condition `{kind}` is {status:?} with reason {}", any_of(reasons))
            }
            Self::NoCondition(kind) => format!("condition `{kind}` is absent"),
            Self::Is(path, words) => format!("`{path}` is {}", any_of(words)),
            Self::Flag(path, truth) => format!("`{path}` is {truth}"),
            Self::Has(path) => format!("`{path}` is set"),
            Self::Lacks(path) => format!("`{path}` is not set"),
            Self::Fewer(have, want) => format!("`{have}` is less than `{want}`"),
            Self::Some(path) => format!("`{path}` is greater than 0"),
            Self::PartIs(list, field, words) => {
                format!("any `{list}` has `{field}` {}", any_of(words))
            }
            Self::PartHas(list, field) => format!("any `{list}` has `{field}`"),
            Self::Behind(path) => format!("`{path}` is older than `metadata.generation`"),
            Self::Label(label, words) => format!("label `{label}` is {}", any_of(words)),
        }
    }

    /// Adds the fields that this reads to the plan.
    fn extend(&self, plan: Plan) -> Plan {
        match self {
            Self::Condition(..) | Self::ConditionFor(..) | Self::NoCondition(_) => {
                plan.with("status.conditions")
            }
            Self::Is(path, _)
            | Self::Flag(path, _)
            | Self::Has(path)
            | Self::Lacks(path)
            | Self::Some(path)
            | Self::Behind(path) => plan.with(path),
            Self::Fewer(one, other) => plan.with(one).with(other),
            Self::PartIs(list, ..) | Self::PartHas(list, _) => plan.with(list),
            Self::Label(label, _) => plan.with(&format!("metadata.labels[{label}]")),
        }
    }

    fn evaluate(&self, o: &Reader<'_>, state: State) -> Option<Verdict> {
        match self {
            Self::Condition(kind, status) => {
                let condition = o.condition(kind).filter(|condition| condition.status() == *status)?;
                Some(by_condition(o, state, &condition))
            }
            Self::ConditionFor(kind, status, reasons) => {
                let condition = o.condition(kind)?;
                let matches = condition.status() == *status && reasons.contains(&condition.reason());
                matches.then(|| by_condition(o, state, &condition))
            }
            Self::NoCondition(kind) => o
                .condition(kind)
                .is_none()
                .then(|| Verdict::new(state, not_reported(state, kind), format!("no {kind} condition"))),
            Self::Is(path, words) => {
                let word = word(o.at(path).value()?)?;
                words.contains(&word.as_str()).then(|| by_word(o, state, &word))
            }
            Self::Flag(path, truth) => (o.at(path).value().and_then(Value::as_bool) == Some(*truth))
                .then(|| by_field(o, state, path, Some(truth.to_string()))),
            Self::Has(path) => is_full(o.at(path).value()).then(|| by_field(o, state, path, text(o, path))),
            Self::Lacks(path) => (!is_full(o.at(path).value())).then(|| {
                Verdict::new(state, not_reported(state, last_name(path)), format!("{path} not set"))
            }),
            Self::Fewer(one, other) => {
                let (have, want) = (o.count(one), o.int(other)?);
                (have < want).then(|| {
                    let field = last_name(one);
                    let message = format!("{field} {have}, want {want}");
                    Verdict::new(state, reasons::too_few(field), message).progress(have, want)
                })
            }
            Self::Some(path) => {
                (o.count(path) > 0).then(|| by_field(o, state, path, Some(o.count(path).to_string())))
            }
            Self::PartHas(list, field) => o.at(list).entries().into_iter().find_map(|part| {
                let found = part.at(field);
                is_full(found.value()).then(|| by_field(o, state, field, text(&part, field)))
            }),
            Self::Behind(path) => {
                let (observed, generation) = (o.int(path)?, o.int("metadata.generation")?);
                (observed < generation).then(|| {
                    let message = format!("observed generation {observed}, want {generation}");
                    Verdict::new(state, reasons::LATEST_GENERATION_NOT_OBSERVED, message)
                })
            }
            Self::Label(label, words) => {
                let value = o.label(label);
                words
                    .contains(&value)
                    .then(|| Verdict::new(state, capitalised(value), format!("label {label}={value}")))
            }
            Self::PartIs(list, field, words) => o.at(list).entries().into_iter().find_map(|part| {
                let word = word(part.at(field).value()?)?;
                words.contains(&word.as_str()).then(|| {
                    let texts = ["reason", "message"].map(|field| part.text(field));
                    let message = texts.into_iter().find(|text| !text.is_empty()).unwrap_or(&word);
                    let verdict = Verdict::new(state, capitalised(&word), message.to_owned());
                    match PART_NAMES.iter().map(|field| part.text(field)).find(|name| !name.is_empty()) {
                        Some(name) => verdict.about(name),
                        None => verdict,
                    }
                })
            }),
        }
    }
}

/// For the docs: `A`, `B` or `C`.
fn any_of(words: &[&str]) -> String {
    let quoted: Vec<_> = words
        .iter()
        .map(|word| if word.is_empty() { "empty".to_owned() } else { format!("`{word}`") })
        .collect();
    match quoted.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        _ => quoted.concat(),
    }
}

fn by_condition(o: &Reader<'_>, state: State, condition: &Condition<'_>) -> Verdict {
    generation::stale(o, condition).unwrap_or_else(|| {
        Verdict::new(state, condition.reason_or_type().to_owned(), condition.message_or_reason())
            .since(condition.since())
    })
}

fn by_word(o: &Reader<'_>, state: State, word: &str) -> Verdict {
    let message = ["status.message", "status.reason"].map(|path| o.text(path).trim());
    let message = match message.into_iter().find(|message| !message.is_empty() && *message != word) {
        Some(message) => format!("{word}: {message}"),
        None => word.to_owned(),
    };
    Verdict::new(state, capitalised(word), message)
}

/// Fields that identify the entries of lists, in order of preference.
const PART_NAMES: &[&str] = &["name", "clusterName", "domain", "branch", "id"];

/// `value` is `None` for a list or map without a message.
fn by_field(o: &Reader<'_>, state: State, path: &str, value: Option<String>) -> Verdict {
    let field = last_name(path);
    let is_false = value.as_deref() == Some("false");
    let is_error = field == "message" || field.to_lowercase().starts_with("err");
    let message = match (value, o.text("status.message").trim()) {
        (Some(error), _) if is_error => error,
        (_, message) if !message.is_empty() && !is_error => message.to_owned(),
        (Some(value), _) => format!("{path}={value}"),
        (None, _) => format!("{path} set"),
    };
    let reason = match field {
        "message" => reasons::ERROR.to_owned(),
        "suspend" => reasons::SUSPENDED.to_owned(),
        field if is_false => reasons::not(field),
        field => capitalised(field),
    };
    Verdict::new(state, reason, message)
}

/// A scalar; of a map or the first map in a list, its `message`.
fn text(o: &Reader<'_>, path: &str) -> Option<String> {
    match o.at(path).value()? {
        map @ Value::Map(_) => map.get("message")?.as_text().map(str::to_owned),
        Value::List(list) => list.first()?.get("message")?.as_text().map(str::to_owned),
        value => Some(value.to_string()),
    }
}

/// The reason for a condition or field that is absent.
fn not_reported(state: State, name: &str) -> Cow<'static, str> {
    match state {
        State::InProgress => Cow::Borrowed(reasons::NOT_OBSERVED),
        _ => Cow::Owned(reasons::no(name)),
    }
}

fn last_name(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

fn word(value: &Value<'_>) -> Option<String> {
    matches!(value, Value::Text(_) | Value::Int(_) | Value::Bool(_)).then(|| value.to_string())
}

fn is_full(value: Option<&Value<'_>>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::Text(text)) => !text.is_empty(),
        Some(Value::List(list)) => !list.is_empty(),
        Some(Value::Map(map)) => !map.is_empty(),
        Some(_) => true,
    }
}
