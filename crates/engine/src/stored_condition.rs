//! Conditions as stored in etcd, by any controller.

use bellwether_api::ConditionStatus;
use bellwether_conditions::{Condition, Statement};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition as MetaCondition, Time};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::planted::Bug;

/// Of each condition that we write, in bytes.
pub(crate) const MESSAGE_BUDGET: usize = 1024;

/// A replica with a slower clock must not correct the times of the one before it.
const MAX_CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(1);

/// Reason and times are optional in some APIs. Unknown fields are preserved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredCondition {
    #[serde(rename = "type")]
    pub(crate) type_: Box<str>,
    status: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last_update_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_transition_time: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) observed_generation: Option<i64>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// Which optional fields our conditions have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConditionShape {
    /// `observedGeneration`.
    Generation,
    /// `lastUpdateTime`: when status, reason or message last changed.
    UpdateTime,
}

impl StoredCondition {
    pub(crate) fn status(&self) -> ConditionStatus {
        ConditionStatus::of(&self.status)
    }

    fn statement(&self) -> Statement {
        let condition = read(self);
        Statement::new(condition.status, condition.reason, condition.message)
    }

    /// Status, reason and message.
    fn content(&self) -> (&str, Option<&str>, Option<&str>) {
        (&self.status, self.reason.as_deref(), self.message.as_deref())
    }
}

/// Merges our statements into the stored conditions; those of other controllers keep their place. `since` is
/// the time for a new transition.
pub(crate) fn conditions<'a>(
    stored: &[StoredCondition],
    (own, shape): (&[&str], ConditionShape),
    statements: impl IntoIterator<Item = (&'a str, Option<Statement>)>,
    generation: i64,
    now: Timestamp,
    since: impl Fn(&str, ConditionStatus) -> Timestamp,
) -> Vec<StoredCondition> {
    let next = |(type_, statement): (&str, Option<Statement>)| {
        let statement = statement?;
        // A stored condition without a time, or with one that cannot be, counts as a new transition.
        let has_time = |condition: &&StoredCondition| {
            let time = condition.last_transition_time.as_ref();
            *condition.type_ == *type_ && time.is_some_and(|time| is_possible(time.0, now))
        };
        let stored = stored.iter().find(has_time);
        let (before, mut since) = (stored.map(read), since(type_, statement.status));
        if let Some(before) = before.as_ref().filter(|_| Bug::KeepTransitionTime.is_planted()) {
            since = before.last_transition_time;
        }
        let generation = Some(generation).filter(|_| shape == ConditionShape::Generation);
        let next = Condition::next(before.as_ref(), type_, statement, generation, since);
        let mut written = write(next);
        if shape == ConditionShape::UpdateTime {
            let is_same = |stored: &&StoredCondition| stored.content() == written.content();
            let before = stored.filter(is_same).and_then(|stored| stored.last_update_time.clone());
            written.last_update_time = before.or_else(|| whole_seconds(now).map(Time));
        }
        Some(written)
    };
    let ours: Vec<_> = statements.into_iter().filter_map(next).collect();
    let is_bellwether = |type_: &str| own.contains(&type_);
    let stored = if Bug::DropForeignConditions.is_planted() { &[] } else { stored };
    bellwether_conditions::put_in_place(stored, ours, |condition| &condition.type_, is_bellwether)
}

pub(crate) fn find<'c>(conditions: &'c [StoredCondition], type_: &str) -> Option<&'c StoredCondition> {
    conditions.iter().find(|condition| *condition.type_ == *type_)
}

pub(crate) fn status(conditions: &[StoredCondition], type_: &str) -> Option<ConditionStatus> {
    find(conditions, type_).map(StoredCondition::status)
}

pub(crate) fn statement(conditions: &[StoredCondition], type_: &str) -> Option<Statement> {
    find(conditions, type_).map(StoredCondition::statement)
}

/// Only if it describes this generation.
pub(crate) fn statement_for_generation(
    conditions: &[StoredCondition],
    type_: &str,
    generation: i64,
) -> Option<Statement> {
    let is_current = |condition: &&StoredCondition| {
        *condition.type_ == *type_ && condition.observed_generation == Some(generation)
    };
    conditions.iter().find(is_current).map(StoredCondition::statement)
}

/// Whether a stored time can be true: it is not in the future, apart from clock skew between replicas.
pub(crate) fn is_possible(time: Timestamp, now: Timestamp) -> bool {
    now.duration_until(time) <= MAX_CLOCK_SKEW
}

/// As Kubernetes stores times.
pub(crate) fn whole_seconds(time: Timestamp) -> Option<Timestamp> {
    Timestamp::from_second(time.as_second()).ok()
}

fn read(stored: &StoredCondition) -> Condition {
    let text = |text: &Option<Box<str>>| text.as_deref().unwrap_or_default().to_owned();
    Condition {
        type_: stored.type_.to_string(),
        status: stored.status(),
        reason: text(&stored.reason),
        message: text(&stored.message),
        last_transition_time: stored
            .last_transition_time
            .as_ref()
            .map_or(Timestamp::UNIX_EPOCH, |time| time.0),
        observed_generation: stored.observed_generation,
    }
}

fn write(condition: Condition) -> StoredCondition {
    StoredCondition {
        type_: condition.type_.into(),
        status: condition.status.name().into(),
        reason: Some(condition.reason.into()),
        message: Some(condition.message.into()),
        last_update_time: None,
        last_transition_time: Some(Time(condition.last_transition_time)),
        observed_generation: condition.observed_generation,
        others: Map::new(),
    }
}

/// API servers reject conditions of our own kinds that lack one of these fields.
impl From<StoredCondition> for MetaCondition {
    fn from(stored: StoredCondition) -> Self {
        let text = |text: Option<Box<str>>| text.unwrap_or_default().into_string();
        Self {
            type_: stored.type_.into_string(),
            status: stored.status.into_string(),
            reason: text(stored.reason),
            message: text(stored.message),
            last_transition_time: stored.last_transition_time.unwrap_or(Time(Timestamp::UNIX_EPOCH)),
            observed_generation: stored.observed_generation,
        }
    }
}
