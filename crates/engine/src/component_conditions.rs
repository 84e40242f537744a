//! The conditions that operators report by convention: Available, Progressing, Degraded and Upgradeable.

use bellwether_conditions::{Reported, Source};
use bellwether_health::generation;
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
    /// Only the four types, in the order of the object. Of duplicates, the first counts; with different status,
    /// it is Unknown.
    pub conditions: Box<[ComponentCondition]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComponentCondition {
    pub type_: &'static str,
    /// Whether another condition of this type has another status. The status is Unknown, then.
    pub contradicted: bool,
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
    // Go programs write zero for an unset generation.
    let is_set = |generation: &i64| *generation > 0;
    let observed = object.at("status").and_then(generation::observed).filter(is_set);
    let conditions = object.at("status.conditions").and_then(Value::as_list).unwrap_or_default();
    let condition = |condition: &Value<'_>| {
        let text = |field: &str| condition.get(field).and_then(Value::as_text).unwrap_or_default().trim();
        let short = |text: &str| {
            let mut text = text.to_owned();
            shorten(&mut text, MAX_MESSAGE);
            text.into_boxed_str()
        };
        let type_ = TYPES.into_iter().find(|type_| *type_ == text("type"))?;
        let contradicted = conditions.iter().any(|other| {
            let other_type = other.get("type").and_then(Value::as_text).map(str::trim);
            other_type == Some(type_) && read_status(other) != read_status(condition)
        });
        let status = if contradicted { ConditionStatus::Unknown } else { read_status(condition) };
        // The message reports an invalid status, so that the author of the operator finds it.
        let problem = match condition.get("status") {
            Some(Value::Bool(_)) => None,
            written => match written.and_then(Value::as_text).unwrap_or_default() {
                "True" | "False" | "Unknown" => None,
                "" => Some("status required: True, False or Unknown".to_owned()),
                other => Some(format!("invalid status {other:?}: must be True, False or Unknown")),
            },
        };
        let message = match (problem, text("message")) {
            (None, message) => short(message),
            (Some(problem), "") => short(&problem),
            (Some(problem), message) => short(&format!("{problem}: {message}")),
        };
        Some(ComponentCondition {
            type_,
            contradicted,
            status,
            reason: short(text("reason")),
            message,
            since: text("lastTransitionTime").parse().ok(),
            observed_generation: generation::observed(condition).filter(is_set).or(observed),
        })
    };
    ComponentConditions {
        generation: object.at("metadata.generation").and_then(generation::number),
        created: object
            .at("metadata.creationTimestamp")
            .and_then(Value::as_text)
            .and_then(|t| t.parse().ok()),
        conditions: conditions.iter().filter_map(condition).collect(),
    }
}

fn read_status(condition: &Value<'_>) -> ConditionStatus {
    ConditionStatus::read(condition.get("status"))
}
