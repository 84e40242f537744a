//! The conditions that operators report by convention: Available, Progressing, Degraded and Upgradeable.

use bellwether_conditions::{Reported, Source};
use bellwether_model::{ConditionStatus, Object, Value, text::shorten};
use jiff::Timestamp;

use crate::{
    condition_types::{AVAILABLE, DEGRADED, PROGRESSING, UPGRADEABLE},
    planted::Bug,
};

const TYPES: [&str; 4] = [AVAILABLE, PROGRESSING, DEGRADED, UPGRADEABLE];

/// In bytes. Reasons and messages are cut to this before they are stored.
const MAX_MESSAGE: usize = 1024;

/// What a Rollup keeps of the conditions of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentConditions {
    pub generation: Option<i64>,
    pub created: Option<Timestamp>,
    /// Only the four types, in the order of the object. Of duplicates, the first counts.
    pub conditions: Box<[ComponentCondition]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentCondition {
    pub type_: &'static str,
    pub status: ConditionStatus,
    /// Empty if missing.
    pub reason: Box<str>,
    /// Empty if missing.
    pub message: Box<str>,
    pub since: Option<Timestamp>,
    /// The condition's own `observedGeneration`, or else that of the status.
    pub observed_generation: Option<i64>,
}

impl ComponentConditions {
    /// Passes them as a [`Source`] of conditions.
    pub(crate) fn with_source<T>(&self, read: impl FnOnce(&Source<'_>) -> T) -> T {
        let reported: Vec<_> = self.conditions.iter().map(ComponentCondition::reported).collect();
        read(&Source {
            conditions: &reported,
            generation: self.generation.filter(|_| !Bug::AcceptStaleCondition.is_planted()),
            created: self.created,
            unreachable: false,
        })
    }
}

impl ComponentCondition {
    fn reported(&self) -> Reported<'_> {
        Reported {
            type_: self.type_,
            status: self.status.name(),
            reason: &self.reason,
            message: &self.message,
            last_transition_time: self.since,
            observed_generation: self.observed_generation,
        }
    }
}

pub(crate) fn read(object: &Object<'_>) -> ComponentConditions {
    let int = |path: &str| object.at(path).and_then(Value::as_int);
    // Go programs write zero for an unset generation.
    let is_set = |generation: &i64| *generation > 0;
    let observed = int("status.observedGeneration").filter(is_set);
    let conditions = object.at("status.conditions").and_then(Value::as_list).unwrap_or_default();
    let condition = |condition: &Value<'_>| {
        let text = |field: &str| condition.get(field).and_then(Value::as_text).unwrap_or_default().trim();
        let short = |text: &str| {
            let mut text = text.to_owned();
            shorten(&mut text, MAX_MESSAGE);
            text.into_boxed_str()
        };
        let status = ConditionStatus::of(text("status"));
        // The message reports an invalid status, so that the author of the operator finds it.
        let problem = match text("status") {
            written if written == status.name() => None,
            "" => Some("status required: True, False or Unknown".to_owned()),
            other => Some(format!("invalid status {other:?}: must be True, False or Unknown")),
        };
        let message = match (problem, text("message")) {
            (None, message) => short(message),
            (Some(problem), "") => short(&problem),
            (Some(problem), message) => short(&format!("{problem}: {message}")),
        };
        Some(ComponentCondition {
            type_: TYPES.into_iter().find(|type_| *type_ == text("type"))?,
            status,
            reason: short(text("reason")),
            message,
            since: text("lastTransitionTime").parse().ok(),
            observed_generation: condition
                .get("observedGeneration")
                .and_then(Value::as_int)
                .filter(is_set)
                .or(observed),
        })
    };
    ComponentConditions {
        generation: int("metadata.generation"),
        created: object
            .at("metadata.creationTimestamp")
            .and_then(Value::as_text)
            .and_then(|t| t.parse().ok()),
        conditions: conditions.iter().filter_map(condition).collect(),
    }
}
