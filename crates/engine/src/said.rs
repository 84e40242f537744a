//! Conditions as Kubernetes has them.

use crate::planted::Bug;
use bellwether_api::ConditionStatus;
use bellwether_conditions::{Condition, Statement};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition as Written, Time};

/// Our conditions among those that are stored: what others wrote keeps its place. Where one has turned, `since` says when.
pub(crate) fn conditions<'a>(
    stored: &[Written],
    own: &[&str],
    statements: impl IntoIterator<Item = (&'a str, Option<Statement>)>,
    generation: i64,
    since: impl Fn(&str, ConditionStatus) -> Timestamp,
) -> Vec<Written> {
    let next = |(kind, statement): (&str, Option<Statement>)| {
        let statement = statement?;
        let before = stored.iter().find(|condition| condition.type_ == kind).map(read);
        let since = since(kind, statement.status);
        Some(write(Condition::next(before.as_ref(), kind, statement, Some(generation), since)))
    };
    let ours: Vec<_> = statements.into_iter().filter_map(next).collect();
    let is_own = |kind: &str| own.contains(&kind);
    let stored = if Bug::DropForeignConditions.is_planted() { &[] } else { stored };
    bellwether_conditions::put_in_place(stored, ours, |condition| &condition.type_, is_own)
}

/// The status of a condition, if there is one of that type.
pub(crate) fn status(conditions: &[Written], kind: &str) -> Option<ConditionStatus> {
    conditions.iter().find(|condition| condition.type_ == kind).map(status_of)
}

/// What a condition says, if there is one of that type and it speaks of that generation.
pub(crate) fn again(conditions: &[Written], kind: &str, generation: i64) -> Option<Statement> {
    let is_it =
        |condition: &&Written| condition.type_ == kind && condition.observed_generation == Some(generation);
    let condition = read(conditions.iter().find(is_it)?);
    Some(Statement::new(condition.status, condition.reason, condition.message))
}

/// The time as Kubernetes keeps it.
pub(crate) fn whole_seconds(time: Timestamp) -> Option<Timestamp> {
    Timestamp::from_second(time.as_second()).ok()
}

fn read(written: &Written) -> Condition {
    Condition {
        kind: written.type_.clone(),
        status: status_of(written),
        reason: written.reason.clone(),
        message: written.message.clone(),
        last_transition_time: written.last_transition_time.0,
        observed_generation: written.observed_generation,
    }
}

fn status_of(written: &Written) -> ConditionStatus {
    match written.status.as_str() {
        "True" => ConditionStatus::True,
        "False" => ConditionStatus::False,
        _ => ConditionStatus::Unknown,
    }
}

fn write(condition: Condition) -> Written {
    Written {
        type_: condition.kind,
        status: match condition.status {
            ConditionStatus::True => "True",
            ConditionStatus::False => "False",
            ConditionStatus::Unknown => "Unknown",
        }
        .to_owned(),
        reason: condition.reason,
        message: condition.message,
        last_transition_time: Time(condition.last_transition_time),
        observed_generation: condition.observed_generation,
    }
}
