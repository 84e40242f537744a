//! Access of rules to the fields of an object. Each read can be recorded as evidence.

use std::cell::Cell;

use bellwether_model::{ConditionStatus, Map, Object, Value};
use jiff::Timestamp;

use crate::{evidence::Trace, reasons};

/// A position in an object: the object itself, a field or a list entry.
///
/// An absent field and a field of the wrong type read the same. The rule decides what that means.
#[derive(Clone, Debug)]
pub(crate) struct Reader<'o> {
    value: Option<&'o Value<'o>>,
    trail: Option<Trail<'o>>,
    now: Timestamp,
    contradicted: &'o Contradicted,
}

/// Whether a rule has read a condition that another of its type contradicts.
#[derive(Debug, Default)]
pub(crate) struct Contradicted(Cell<bool>);

/// The path of a position, and the trace that records reads of it.
#[derive(Clone, Debug)]
struct Trail<'o> {
    path: String,
    trace: &'o Trace,
}

impl<'o> Reader<'o> {
    pub(crate) fn new(
        object: &'o Object<'o>,
        now: Timestamp,
        trace: Option<&'o Trace>,
        contradicted: &'o Contradicted,
    ) -> Self {
        let trail = trace.map(|trace| Trail { path: String::new(), trace });
        Self { value: Some(object.fields()), trail, now, contradicted }
    }

    /// A position in the same object.
    fn to(&self, value: Option<&'o Value<'o>>, trail: Option<Trail<'o>>) -> Self {
        Self { value, trail, now: self.now, contradicted: self.contradicted }
    }

    /// The time of evaluation.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// The same position, evaluated at another time.
    pub(crate) fn as_of(&self, now: Timestamp) -> Self {
        Self { now, ..self.clone() }
    }

    pub(crate) fn at(&self, path: &str) -> Self {
        self.to(self.value.and_then(|value| value.at(path)), self.trail.as_ref().map(|trail| trail.to(path)))
    }

    /// The value. Recorded as evidence.
    pub(crate) fn value(&self) -> Option<&'o Value<'o>> {
        if let Some(trail) = &self.trail {
            trail.trace.record(trail.path.clone(), self.value);
        }
        self.value
    }

    /// Records a read that did not go through this reader.
    pub(crate) fn record(&self, path: impl FnOnce() -> String, value: Option<&Value<'_>>) {
        if let Some(trail) = &self.trail {
            trail.trace.record(path(), value);
        }
    }

    /// Whether the field exists and is not null.
    pub(crate) fn has(&self, path: &str) -> bool {
        !matches!(self.at(path).value(), None | Some(Value::Null))
    }

    /// Empty if the field is absent or not a string.
    pub(crate) fn text(&self, path: &str) -> &'o str {
        self.at(path).value().and_then(Value::as_text).unwrap_or_default()
    }

    /// False if the field is absent or not a boolean.
    pub(crate) fn flag(&self, path: &str) -> bool {
        self.at(path).value().and_then(Value::as_bool).unwrap_or_default()
    }

    /// An integer, also if written as a string.
    pub(crate) fn int(&self, path: &str) -> Option<i64> {
        number(self.at(path).value()?)
    }

    /// A counter, at least 0. Kubernetes omits counters that are 0.
    pub(crate) fn count(&self, path: &str) -> i64 {
        self.int(path).unwrap_or(0).max(0)
    }

    /// Empty if the label is absent.
    pub(crate) fn label(&self, name: &str) -> &'o str {
        self.at("metadata.labels").named(name)
    }

    /// Empty if the annotation is absent.
    pub(crate) fn annotation(&self, name: &str) -> &'o str {
        self.at("metadata.annotations").named(name)
    }

    /// The text of a field whose name may contain dots.
    fn named(&self, name: &str) -> &'o str {
        let value = self.value.and_then(|value| value.get(name));
        let place = self.to(value, self.trail.as_ref().map(|trail| trail.to(name)));
        place.value().and_then(Value::as_text).unwrap_or_default()
    }

    pub(crate) fn time(&self, path: &str) -> Option<Timestamp> {
        self.at(path).value()?.as_text()?.parse().ok()
    }

    /// The entries of a list. Only an absent or empty list is recorded.
    pub(crate) fn items(&self, path: &str) -> impl Iterator<Item = Self> + use<'o> {
        let list = self.at(path);
        let entries = list.value.and_then(Value::as_list);
        if entries.is_none_or(<[_]>::is_empty) {
            list.value();
        }
        list.elements()
    }

    /// The value. Not recorded.
    pub(crate) fn raw(&self) -> Option<&'o Value<'o>> {
        self.value
    }

    /// Not recorded.
    pub(crate) fn is_map(&self) -> bool {
        matches!(self.value, Some(Value::Map(_)))
    }

    /// Not recorded.
    pub(crate) fn is_text(&self) -> bool {
        self.value.is_some_and(|value| value.as_text().is_some())
    }

    /// The fields of a map, sorted by name. The last of duplicate fields wins. Not recorded.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'o str, Self)> + use<'o> {
        let map = self.value.and_then(Value::as_map);
        let mut fields: Vec<_> = map.into_iter().flat_map(Map::iter).rev().collect();
        fields.sort_by_key(|(name, _)| *name);
        fields.dedup_by_key(|(name, _)| *name);
        let place = self.clone();
        fields.into_iter().map(move |(name, value)| {
            let trail = place.trail.as_ref().map(|trail| trail.to(name));
            (name, place.to(Some(value), trail))
        })
    }

    /// The entries of a list or a map, if all of them are maps; else none.
    pub(crate) fn entries(&self) -> Vec<Self> {
        let maps: Vec<Self> = match self.value {
            Some(Value::List(_)) => self.elements().collect(),
            _ => self.fields().map(|(_, field)| field).collect(),
        };
        if maps.iter().all(Self::is_map) { maps } else { Vec::new() }
    }

    /// The entries of a list, whatever they are. Not recorded.
    pub(crate) fn elements(&self) -> impl Iterator<Item = Self> + use<'o> {
        let place = self.clone();
        let list = self.value.and_then(Value::as_list).unwrap_or_default();
        list.iter().enumerate().map(move |(index, entry)| {
            place.to(Some(entry), place.trail.as_ref().map(|trail| trail.entry(index, entry)))
        })
    }

    /// The condition of this type in `status.conditions`. Recorded, also if absent.
    pub(crate) fn condition(&self, kind: &str) -> Option<Condition<'o>> {
        let mut all = self.conditions_at("status.conditions").filter(|condition| condition.kind == kind);
        let found = all.next().map(|first| {
            let contradicted = all.any(|other| other.status() != first.status());
            Condition { contradicted, ..first }
        });
        if found.as_ref().is_some_and(|found| found.contradicted) {
            self.contradicted.0.set(true);
        }
        match (&found, &self.trail) {
            (Some(found), _) => found.record(),
            (None, Some(trail)) => {
                trail.trace.record(trail.to(&format!("status.conditions[{kind}]")).path, None);
            }
            (None, None) => {}
        }
        found
    }

    /// The first condition in `status.conditions` that `counts` and that another of its type contradicts.
    /// After a rule has read such a condition, each of them counts.
    pub(crate) fn contradicted(&self, counts: impl Fn(&str) -> bool) -> Option<Condition<'o>> {
        // Bounds the time for one object.
        const MOST: usize = 1000;
        let list = self.at("status.conditions").value.and_then(Value::as_list).unwrap_or_default();
        let list = &list[..list.len().min(MOST)];
        let read = |entry: &'o Value<'o>| {
            let kind = entry.get("type").and_then(Value::as_text).unwrap_or_default();
            (kind, ConditionStatus::read(entry.get("status")))
        };
        list.iter().enumerate().find_map(|(index, entry)| {
            let (kind, status) = read(entry);
            let contradicted =
                list[index + 1..].iter().map(read).any(|other| other.0 == kind && other.1 != status);
            (contradicted && (self.contradicted.0.get() || counts(kind))).then(|| self.condition(kind))?
        })
    }

    /// The conditions in a list. Not recorded: call [`Condition::record`] for those that matter.
    pub(crate) fn conditions_at(&self, path: &str) -> impl Iterator<Item = Condition<'o>> + use<'o> {
        let list = self.at(path);
        let entries = list.value.and_then(Value::as_list).unwrap_or_default();
        entries.iter().enumerate().filter_map(move |(index, entry)| {
            let kind = entry.get("type").and_then(Value::as_text).unwrap_or_default();
            entry.as_map()?;
            let trail = list.trail.as_ref().map(|trail| trail.entry(index, entry));
            Some(Condition { kind, contradicted: false, place: list.to(Some(entry), trail) })
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

#[derive(Clone, Debug)]
pub(crate) struct Condition<'o> {
    /// The `type` of the condition.
    pub(crate) kind: &'o str,
    /// Whether the list has another condition of this type with another status.
    pub(crate) contradicted: bool,
    place: Reader<'o>,
}

impl<'o> Condition<'o> {
    /// Records the condition as evidence.
    pub(crate) fn record(&self) {
        self.place.value();
    }

    /// `Unknown` if another condition of this type contradicts it.
    pub(crate) fn status(&self) -> ConditionStatus {
        if self.contradicted { ConditionStatus::Unknown } else { ConditionStatus::read(self.raw("status")) }
    }

    pub(crate) fn is_true(&self) -> bool {
        self.status() == ConditionStatus::True
    }

    pub(crate) fn is_false(&self) -> bool {
        self.status() == ConditionStatus::False
    }

    /// Empty if absent.
    pub(crate) fn reason(&self) -> &'o str {
        self.raw("reason").and_then(Value::as_text).unwrap_or_default()
    }

    /// Empty if absent.
    pub(crate) fn message(&self) -> &'o str {
        self.raw("message").and_then(Value::as_text).unwrap_or_default()
    }

    /// `lastTransitionTime`.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.raw("lastTransitionTime")?.as_text()?.parse().ok()
    }

    pub(crate) fn observed_generation(&self) -> Option<i64> {
        number(self.raw("observedGeneration")?)
    }

    /// False with severity `Error`. Cluster API sets a severity on conditions that are False.
    pub(crate) fn is_severe(&self) -> bool {
        self.is_false() && self.raw("severity").and_then(Value::as_text) == Some("Error")
    }

    /// False with severity `Warning` or `Info`.
    pub(crate) fn is_mild(&self) -> bool {
        self.is_false() && matches!(self.raw("severity").and_then(Value::as_text), Some("Warning" | "Info"))
    }

    /// The message; if empty, the reason; if empty, `Ready=False`.
    pub(crate) fn message_or_reason(&self) -> String {
        self.text().map_or_else(|| self.type_and_status(), str::to_owned)
    }

    /// The same without a final full stop, for use inside a longer message.
    pub(crate) fn quoted(&self) -> String {
        let text = self.message_or_reason();
        match text.strip_suffix('.') {
            Some(rest) if !rest.ends_with('.') => rest.to_owned(),
            _ => text,
        }
    }

    /// `Ready=False: message`; `Ready=False` without message and reason.
    pub(crate) fn summary(&self) -> String {
        match self.text() {
            Some(_) => format!("{}: {}", self.type_and_status(), self.quoted()),
            None => self.type_and_status(),
        }
    }

    fn text(&self) -> Option<&'o str> {
        // The texts of contradicting conditions mislead.
        if self.contradicted {
            return None;
        }
        [self.message(), self.reason()].into_iter().map(str::trim).find(|text| !text.is_empty())
    }

    fn type_and_status(&self) -> String {
        if self.contradicted {
            return format!("two conditions {} with different status", self.kind);
        }
        format!("{}={}", self.kind, self.status().name())
    }

    /// The type if the reason is empty.
    pub(crate) fn reason_or_type(&self) -> &'o str {
        match self.reason().trim() {
            _ if self.contradicted => reasons::CONTRADICTORY_CONDITIONS,
            "" => self.kind,
            reason => reason,
        }
    }

    fn raw(&self, field: &str) -> Option<&'o Value<'o>> {
        self.place.value.and_then(|value| value.get(field))
    }
}

/// An integer, such as a generation, as a number or as a numeric string, as some controllers write it.
pub fn number(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        // Some clients write every number with a fraction. Larger ones are not exact.
        Value::Float(number) if number.fract() == 0.0 && number.abs() < 1e15 =>
        {
            #[expect(clippy::cast_possible_truncation, reason = "an integer that fits an i64")]
            Some(*number as i64)
        }
        Value::Text(text) => text.trim().parse().ok(),
        _ => None,
    }
}
