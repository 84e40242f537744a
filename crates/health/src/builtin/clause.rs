//! Rules as data: clauses, of which the first that holds decides.
//!
//! Most kinds of most operators need no more. What the clauses leave open is left to the generic rules.

use bellwether_model::{ConditionStatus, Plan, State, Value, text::capitalised};

use crate::{
    generation, generic,
    read::{Condition, Reader},
    verdict::Verdict,
};

/// If something holds, the object is in this state.
pub(crate) struct Clause {
    pub(crate) when: When,
    pub(crate) state: State,
    /// Why, where the field alone does not say.
    why: &'static str,
}

impl Clause {
    /// The same, with what it tells people.
    pub(super) const fn because(mut self, why: &'static str) -> Self {
        self.why = why;
        self
    }

    fn judge(&self, o: &Reader<'_>) -> Option<Verdict> {
        let verdict = self.when.holds(o, self.state)?;
        Some(if self.why.is_empty() { verdict } else { Verdict::new(self.state, verdict.reason, self.why) })
    }
}

/// What a clause asks.
pub(crate) enum When {
    /// A condition has a status.
    Condition(&'static str, ConditionStatus),
    /// A condition has a status for one of these reasons.
    ConditionFor(&'static str, ConditionStatus, &'static [&'static str]),
    /// There is no condition of this type.
    NoCondition(&'static str),
    /// A field is one of these words, or numbers.
    Is(&'static str, &'static [&'static str]),
    /// A field has this truth value.
    Flag(&'static str, bool),
    /// A field is there, and is not empty.
    Has(&'static str),
    /// A field is not there, or is empty.
    Lacks(&'static str),
    /// A counter is below another.
    Fewer(&'static str, &'static str),
    /// A counter is above zero.
    Some(&'static str),
    /// Some entry of a list or a map has a field that is one of these words, or numbers, or truth values.
    PartIs(&'static str, &'static str, &'static [&'static str]),
    /// Some entry of a list or a map has this field, and it is not empty.
    PartHas(&'static str, &'static str),
    /// A label is one of these words.
    Label(&'static str, &'static [&'static str]),
    /// A field has the generation that was seen, and it is not the newest.
    Behind(&'static str),
}

/// A condition has this status.
pub(super) const fn condition(kind: &'static str, status: ConditionStatus, state: State) -> Clause {
    Clause { when: When::Condition(kind, status), state, why: "" }
}

/// A condition has this status for one of these reasons.
pub(super) const fn condition_for(
    kind: &'static str,
    status: ConditionStatus,
    reasons: &'static [&'static str],
    state: State,
) -> Clause {
    Clause { when: When::ConditionFor(kind, status, reasons), state, why: "" }
}

/// There is no condition of this type.
pub(super) const fn no_condition(kind: &'static str, state: State) -> Clause {
    Clause { when: When::NoCondition(kind), state, why: "" }
}

/// A field is one of these words, or numbers.
pub(super) const fn is(path: &'static str, words: &'static [&'static str], state: State) -> Clause {
    Clause { when: When::Is(path, words), state, why: "" }
}

/// A field has this truth value.
pub(super) const fn flag(path: &'static str, truth: bool, state: State) -> Clause {
    Clause { when: When::Flag(path, truth), state, why: "" }
}

/// A field is there, and is not empty.
pub(super) const fn has(path: &'static str, state: State) -> Clause {
    Clause { when: When::Has(path), state, why: "" }
}

/// A field is not there, or is empty.
pub(super) const fn lacks(path: &'static str, state: State) -> Clause {
    Clause { when: When::Lacks(path), state, why: "" }
}

/// A counter is below another.
pub(super) const fn fewer(have: &'static str, want: &'static str, state: State) -> Clause {
    Clause { when: When::Fewer(have, want), state, why: "" }
}

/// A counter is above zero.
pub(super) const fn some(path: &'static str, state: State) -> Clause {
    Clause { when: When::Some(path), state, why: "" }
}

/// Some entry of a list or a map has a field that is one of these words.
pub(super) const fn part_is(
    list: &'static str,
    field: &'static str,
    words: &'static [&'static str],
    state: State,
) -> Clause {
    Clause { when: When::PartIs(list, field, words), state, why: "" }
}

/// Some entry of a list or a map has this field, and it is not empty.
pub(super) const fn part_has(list: &'static str, field: &'static str, state: State) -> Clause {
    Clause { when: When::PartHas(list, field), state, why: "" }
}

/// A field has the generation that was seen, and it is not the newest.
pub(super) const fn behind(path: &'static str, state: State) -> Clause {
    Clause { when: When::Behind(path), state, why: "" }
}

/// A label is one of these words.
pub(super) const fn label_is(label: &'static str, words: &'static [&'static str], state: State) -> Clause {
    Clause { when: When::Label(label, words), state, why: "" }
}

/// What is said if no clause holds.
#[derive(Clone, Copy)]
pub(crate) enum Otherwise {
    /// What the generic rules say.
    Generic,
    /// It is in this state.
    Is(State),
}

/// What the clauses say. A generation that was not observed goes before all of them.
pub(super) fn judge(clauses: &[Clause], otherwise: Otherwise, o: &Reader<'_>) -> Verdict {
    if let Some(behind) = generation::reported_behind(o) {
        return behind;
    }
    if let Some(stale) = o.condition("Ready").and_then(|ready| generation::stale(o, &ready)) {
        return stale;
    }
    if let Some(verdict) = clauses.iter().find_map(|clause| clause.judge(o)) {
        return verdict;
    }
    let generic = match otherwise {
        Otherwise::Generic => generic::judge(o).or_else(|| generic::unreported(o)),
        Otherwise::Is(_) => None,
    };
    if let Some(verdict) = generic {
        return verdict;
    }
    match otherwise {
        Otherwise::Is(State::Ready) => Verdict::ready("NothingWrong", "nothing in its status says otherwise"),
        Otherwise::Is(state) if state != State::InProgress => {
            Verdict::new(state, "NotRecognised", "its status says nothing that is known")
        }
        _ => match word_on_the_way(clauses, o) {
            Some(word) => by_word(o, State::InProgress, &word),
            None => Verdict::in_progress("NoStatusYet", "nobody has reported on it yet"),
        },
    }
}

/// What a field says that a clause asks for, though it is none of the words that the clause knows.
fn word_on_the_way(clauses: &[Clause], o: &Reader<'_>) -> Option<String> {
    clauses.iter().find_map(|clause| match clause.when {
        When::Is(path, _) => word(o.at(path).value()?).filter(|word| !word.is_empty()),
        _ => None,
    })
}

/// The clauses as sentences.
pub(super) fn in_words(clauses: &[Clause], otherwise: Otherwise) -> String {
    let mut sentences: Vec<String> =
        clauses.iter().map(|clause| format!("{:?} when {}.", clause.state, clause.when.in_words())).collect();
    sentences.push(match otherwise {
        Otherwise::Generic => "Otherwise what the generic rules say.".to_owned(),
        Otherwise::Is(state) => format!("Otherwise {state:?}."),
    });
    sentences.join(" ")
}

impl When {
    fn in_words(&self) -> String {
        match self {
            Self::Condition(kind, status) => format!("`{kind}` is {status:?}"),
            Self::ConditionFor(kind, status, reasons) => {
                format!("`{kind}` is {status:?} because of {}", any_of(reasons))
            }
            Self::NoCondition(kind) => format!("there is no condition `{kind}`"),
            Self::Is(path, words) => format!("`{path}` is {}", any_of(words)),
            Self::Flag(path, truth) => format!("`{path}` is {truth}"),
            Self::Has(path) => format!("there is a `{path}`"),
            Self::Lacks(path) => format!("there is no `{path}`"),
            Self::Fewer(have, want) => format!("`{have}` is below `{want}`"),
            Self::Some(path) => format!("`{path}` is above 0"),
            Self::PartIs(list, field, words) => format!("`{field}` of some `{list}` is {}", any_of(words)),
            Self::PartHas(list, field) => format!("some `{list}` has `{field}`"),
            Self::Behind(path) => format!("`{path}` is behind `metadata.generation`"),
            Self::Label(label, words) => format!("label `{label}` is {}", any_of(words)),
        }
    }

    /// The plan, with what this reads.
    pub(super) fn extend(&self, plan: Plan) -> Plan {
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

    fn holds(&self, o: &Reader<'_>, state: State) -> Option<Verdict> {
        match self {
            Self::Condition(kind, status) => {
                let condition = o.condition(kind).filter(|condition| condition.status() == *status)?;
                Some(by_condition(o, state, &condition))
            }
            Self::ConditionFor(kind, status, reasons) => {
                let condition = o.condition(kind)?;
                let meant = condition.status() == *status && reasons.contains(&condition.reason());
                meant.then(|| by_condition(o, state, &condition))
            }
            Self::NoCondition(kind) => o
                .condition(kind)
                .is_none()
                .then(|| Verdict::new(state, "NoStatusYet", format!("it has no condition {kind} yet"))),
            Self::Is(path, words) => {
                let word = word(o.at(path).value()?)?;
                words.contains(&word.as_str()).then(|| by_word(o, state, &word))
            }
            Self::Flag(path, truth) => (o.at(path).value().and_then(Value::as_bool) == Some(*truth))
                .then(|| by_field(o, state, path, &truth.to_string())),
            Self::Has(path) => is_full(o.at(path).value()).then(|| by_field(o, state, path, &text(o, path))),
            Self::Lacks(path) => (!is_full(o.at(path).value()))
                .then(|| Verdict::new(state, "NoStatusYet", format!("it has no {path} yet"))),
            Self::Fewer(one, other) => {
                let (have, want) = (o.count(one), o.int(other)?);
                (have < want).then(|| {
                    let field = one.rsplit('.').next().unwrap_or(one);
                    Verdict::new(state, "TooFew", format!("{field}: {have} of {want}")).progress(have, want)
                })
            }
            Self::Some(path) => {
                (o.count(path) > 0).then(|| by_field(o, state, path, &o.count(path).to_string()))
            }
            Self::PartHas(list, field) => o.at(list).entries().into_iter().find_map(|part| {
                let found = part.at(field);
                is_full(found.value()).then(|| by_field(o, state, field, &text(&part, field)))
            }),
            Self::Behind(path) => {
                let (seen, newest) = (o.int(path)?, o.int("metadata.generation")?);
                (seen < newest).then(|| {
                    let message = format!("the controller has seen generation {seen}, not yet {newest}");
                    Verdict::new(state, "LatestGenerationNotObserved", message)
                })
            }
            Self::Label(label, words) => {
                let value = o.label(label);
                words
                    .contains(&value)
                    .then(|| Verdict::new(state, value.to_owned(), format!("label {label}: {value}")))
            }
            Self::PartIs(list, field, words) => o.at(list).entries().into_iter().find_map(|part| {
                let word = word(part.at(field).value()?)?;
                words.contains(&word.as_str()).then(|| {
                    let reason = ["reason", "message"].map(|field| part.text(field));
                    let why = reason.into_iter().find(|text| !text.is_empty()).unwrap_or(&word);
                    let verdict = Verdict::new(state, capitalised(&word), why.to_owned());
                    match PART_NAMES.iter().map(|field| part.text(field)).find(|name| !name.is_empty()) {
                        Some(name) => verdict.about(name),
                        None => verdict,
                    }
                })
            }),
        }
    }
}

fn any_of(words: &[&str]) -> String {
    let words: Vec<_> = words
        .iter()
        .map(|word| if word.is_empty() { "empty".to_owned() } else { format!("`{word}`") })
        .collect();
    words.join(" or ")
}

fn by_condition(o: &Reader<'_>, state: State, condition: &Condition<'_>) -> Verdict {
    generation::stale(o, condition).unwrap_or_else(|| {
        Verdict::new(state, condition.reason_or_type().to_owned(), condition.says()).since(condition.since())
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

/// Where the entries of lists have their names.
const PART_NAMES: &[&str] = &["name", "clusterName", "domain", "branch", "id"];

fn by_field(o: &Reader<'_>, state: State, path: &str, value: &str) -> Verdict {
    let field = path.rsplit('.').next().unwrap_or(path);
    let message = match o.text("status.message").trim() {
        // An error speaks for itself.
        _ if field == "message" || field.to_lowercase().starts_with("err") => value.to_owned(),
        "" => format!("{path}: {value}"),
        message => message.to_owned(),
    };
    let reason = if field == "message" { "Error".to_owned() } else { capitalised(field) };
    Verdict::new(state, reason, message)
}

/// The value of a field where it is short enough to be told.
fn text(o: &Reader<'_>, path: &str) -> String {
    match o.at(path).value() {
        Some(Value::Map(_) | Value::List(_)) | None => "there is one".to_owned(),
        Some(value) => value.to_string(),
    }
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
