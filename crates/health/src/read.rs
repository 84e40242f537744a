//! How rules read an object: every look at a field can leave a trace.

use bellwether_model::{ConditionStatus, Map, Object, Value};
use jiff::Timestamp;

use crate::evidence::Trace;

/// A place in an object: the object itself, or an entry of one of its lists.
///
/// What is absent, or of a type that it should not have, reads as nothing: a rule decides what nothing means.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'o> {
    value: Option<&'o Value<'o>>,
    trail: Option<Trail<'o>>,
    now: Timestamp,
}

/// The way to a place, and where looks at it are written down.
#[derive(Clone, Debug)]
struct Trail<'o> {
    path: String,
    trace: &'o Trace,
}

impl<'o> Reader<'o> {
    pub(crate) fn new(object: &'o Object<'o>, now: Timestamp, trace: Option<&'o Trace>) -> Self {
        let trail = trace.map(|trace| Trail { path: String::new(), trace });
        Self { value: Some(object.fields()), trail, now }
    }

    /// The time of the verdict.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// The place at the end of a path.
    pub(crate) fn at(&self, path: &str) -> Self {
        Self {
            value: self.value.and_then(|value| value.at(path)),
            trail: self.trail.as_ref().map(|trail| trail.to(path)),
            now: self.now,
        }
    }

    /// What is here. A look.
    pub(crate) fn value(&self) -> Option<&'o Value<'o>> {
        if let Some(trail) = &self.trail {
            trail.trace.note(trail.path.clone(), self.value);
        }
        self.value
    }

    /// Writes down a look that somebody else took.
    pub(crate) fn note(&self, path: impl FnOnce() -> String, value: Option<&Value<'_>>) {
        if let Some(trail) = &self.trail {
            trail.trace.note(path(), value);
        }
    }

    /// Whether the field is there and not null.
    pub(crate) fn has(&self, path: &str) -> bool {
        !matches!(self.at(path).value(), None | Some(Value::Null))
    }

    /// The text of a field; empty if there is none.
    pub(crate) fn text(&self, path: &str) -> &'o str {
        self.at(path).value().and_then(Value::as_text).unwrap_or_default()
    }

    /// Whether the field is `true`.
    pub(crate) fn flag(&self, path: &str) -> bool {
        self.at(path).value().and_then(Value::as_bool).unwrap_or_default()
    }

    /// The whole number in a field, also where it was written as text.
    pub(crate) fn int(&self, path: &str) -> Option<i64> {
        match self.at(path).value()? {
            Value::Int(number) => Some(*number),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// The counter in a field. Kubernetes leaves out counters that are zero.
    pub(crate) fn count(&self, path: &str) -> i64 {
        self.int(path).unwrap_or(0).max(0)
    }

    /// The value of a label; empty if there is none.
    pub(crate) fn label(&self, name: &str) -> &'o str {
        self.at("metadata.labels").named(name)
    }

    /// The value of an annotation; empty if there is none.
    pub(crate) fn annotation(&self, name: &str) -> &'o str {
        self.at("metadata.annotations").named(name)
    }

    /// The text of a field whose name may have dots.
    fn named(&self, name: &str) -> &'o str {
        let place = Self {
            value: self.value.and_then(|value| value.get(name)),
            trail: self.trail.as_ref().map(|trail| trail.to(name)),
            now: self.now,
        };
        place.value().and_then(Value::as_text).unwrap_or_default()
    }

    /// The time in a field.
    pub(crate) fn time(&self, path: &str) -> Option<Timestamp> {
        self.at(path).value()?.as_text()?.parse().ok()
    }

    /// The entries of a list.
    pub(crate) fn items(&self, path: &str) -> impl Iterator<Item = Self> + use<'o> {
        let list = self.at(path);
        let entries = list.value.and_then(Value::as_list);
        if entries.is_none_or(<[_]>::is_empty) {
            list.value();
        }
        entries.unwrap_or_default().iter().enumerate().map(move |(index, entry)| Self {
            value: Some(entry),
            trail: list.trail.as_ref().map(|trail| trail.entry(index, entry)),
            now: list.now,
        })
    }

    /// Whether it is a map. Not a look.
    pub(crate) fn is_map(&self) -> bool {
        matches!(self.value, Some(Value::Map(_)))
    }

    /// Whether it is text. Not a look.
    pub(crate) fn is_text(&self) -> bool {
        self.value.is_some_and(|value| value.as_text().is_some())
    }

    /// The fields of a map by their names, whatever their order in the text. Of a field that is given twice, the last counts.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'o str, Self)> + use<'o> {
        let map = self.value.and_then(Value::as_map);
        let mut fields: Vec<_> = map.into_iter().flat_map(Map::iter).rev().collect();
        fields.sort_by_key(|(name, _)| *name);
        fields.dedup_by_key(|(name, _)| *name);
        let place = self.clone();
        fields.into_iter().map(move |(name, value)| {
            let trail = place.trail.as_ref().map(|trail| trail.to(name));
            (name, Self { value: Some(value), trail, now: place.now })
        })
    }

    /// The maps in a list, or in a map that has nothing else.
    pub(crate) fn entries(&self) -> Vec<Self> {
        let maps: Vec<Self> = match self.value {
            Some(Value::List(list)) => {
                let entry = |(index, entry)| Self {
                    value: Some(entry),
                    trail: self.trail.as_ref().map(|trail| trail.entry(index, entry)),
                    now: self.now,
                };
                list.iter().enumerate().map(entry).collect()
            }
            _ => self.fields().map(|(_, field)| field).collect(),
        };
        if maps.iter().all(Self::is_map) { maps } else { Vec::new() }
    }

    /// The condition of this type, in `status.conditions`.
    pub(crate) fn condition(&self, kind: &str) -> Option<Condition<'o>> {
        let found = self.conditions_at("status.conditions").find(|condition| condition.kind == kind);
        match (&found, &self.trail) {
            (Some(found), _) => found.look(),
            (None, Some(trail)) => {
                trail.trace.note(trail.to(&format!("status.conditions[{kind}]")).path, None);
            }
            (None, None) => {}
        }
        found
    }

    /// The conditions in a list. Looking at the list is not yet looking at its conditions: [`Condition::look`] is.
    pub(crate) fn conditions_at(&self, path: &str) -> impl Iterator<Item = Condition<'o>> + use<'o> {
        let list = self.at(path);
        let entries = list.value.and_then(Value::as_list).unwrap_or_default();
        entries.iter().enumerate().filter_map(move |(index, entry)| {
            let kind = entry.get("type").and_then(Value::as_text).unwrap_or_default();
            entry.as_map()?;
            let trail = list.trail.as_ref().map(|trail| trail.entry(index, entry));
            Some(Condition { kind, place: Self { value: Some(entry), trail, now: list.now } })
        })
    }
}

impl Trail<'_> {
    fn to(&self, path: &str) -> Self {
        let gap = if self.path.is_empty() { "" } else { "." };
        Self { path: format!("{}{gap}{path}", self.path), trace: self.trace }
    }

    fn entry(&self, index: usize, entry: &Value<'_>) -> Self {
        let name = ["name", "type"].iter().find_map(|key| entry.get(key)?.as_text());
        let path = match name {
            Some(name) => format!("{}[{name}]", self.path),
            None => format!("{}[{index}]", self.path),
        };
        Self { path, trace: self.trace }
    }
}

/// A condition of an object.
#[derive(Clone, Debug)]
pub(crate) struct Condition<'o> {
    /// Its type.
    pub(crate) kind: &'o str,
    place: Reader<'o>,
}

impl<'o> Condition<'o> {
    /// Writes down that a rule considered it.
    pub(crate) fn look(&self) {
        self.place.value();
    }

    /// Whether it holds. Whatever is neither true nor false is unknown.
    pub(crate) fn status(&self) -> ConditionStatus {
        match self.raw("status") {
            Some(Value::Text(text)) if text.eq_ignore_ascii_case("true") => ConditionStatus::True,
            Some(Value::Text(text)) if text.eq_ignore_ascii_case("false") => ConditionStatus::False,
            Some(Value::Bool(true)) => ConditionStatus::True,
            Some(Value::Bool(false)) => ConditionStatus::False,
            _ => ConditionStatus::Unknown,
        }
    }

    pub(crate) fn is_true(&self) -> bool {
        self.status() == ConditionStatus::True
    }

    pub(crate) fn is_false(&self) -> bool {
        self.status() == ConditionStatus::False
    }

    /// Its reason; empty if it gives none.
    pub(crate) fn reason(&self) -> &'o str {
        self.raw("reason").and_then(Value::as_text).unwrap_or_default()
    }

    /// Its message; empty if it gives none.
    pub(crate) fn message(&self) -> &'o str {
        self.raw("message").and_then(Value::as_text).unwrap_or_default()
    }

    /// Since when its status is what it is.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.raw("lastTransitionTime")?.as_text()?.parse().ok()
    }

    /// The generation that it speaks of.
    pub(crate) fn observed_generation(&self) -> Option<i64> {
        match self.raw("observedGeneration")? {
            Value::Int(number) => Some(*number),
            Value::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// Whether it says that its being false is an error. Cluster API, and what follows it, rates conditions that are false.
    pub(crate) fn is_severe(&self) -> bool {
        self.is_false() && self.raw("severity").and_then(Value::as_text) == Some("Error")
    }

    /// Whether it says that its being false is no error.
    pub(crate) fn is_mild(&self) -> bool {
        self.is_false() && matches!(self.raw("severity").and_then(Value::as_text), Some("Warning" | "Info"))
    }

    /// What it says to a person: its message, else its reason, else its status.
    pub(crate) fn says(&self) -> String {
        [self.message(), self.reason()]
            .into_iter()
            .map(str::trim)
            .find(|text| !text.is_empty())
            .map_or_else(|| format!("{} is {:?}", self.kind, self.status()), str::to_owned)
    }

    /// Its reason, else its type.
    pub(crate) fn reason_or_type(&self) -> &'o str {
        match self.reason().trim() {
            "" => self.kind,
            reason => reason,
        }
    }

    fn raw(&self, field: &str) -> Option<&'o Value<'o>> {
        self.place.value.and_then(|value| value.get(field))
    }
}
