//! kstatus, the library of cli-utils that Flux, Helm and others use to wait for objects.
//!
//! Order of evaluation: generic fields; rules for the kind ([`kinds`]); condition `Ready`. Otherwise an
//! object is Current.

mod kinds;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use bellwether_model::{ConditionStatus, Object};
use jiff::Timestamp;
use serde::Serialize;

use super::go::{self, Typed};

/// The result of kstatus for an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Assessment {
    /// One of the statuses for existing objects.
    pub status: Status,
    /// The message, or the error if the status is Unknown.
    pub message: Cow<'static, str>,
    /// `Reconciling` if InProgress, `Stalled` if Failed, else empty.
    pub conditions: Vec<KstatusCondition>,
}

/// The statuses of kstatus, without `NotFound`: the object exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Status {
    /// Matches its spec.
    Current,
    /// The spec is being applied.
    InProgress,
    /// An error that the controller does not resolve by itself.
    Failed,
    /// Has a deletion timestamp.
    Terminating,
    /// kstatus returned an error.
    Unknown,
}

/// An abnormal-true condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KstatusCondition {
    /// `Reconciling` or `Stalled`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Always True.
    pub status: ConditionStatus,
    /// CamelCase.
    pub reason: Cow<'static, str>,
    /// Usually the message of the assessment.
    pub message: Cow<'static, str>,
}

/// Evaluates an object as kstatus does.
///
/// kstatus returns an error if the generation is not a number or a condition is malformed. Its clients then
/// show `Unknown`, so this returns `Unknown` with the text of the error.
pub fn assess(object: &Object<'_>, now: Timestamp) -> Assessment {
    compute(object, now).unwrap_or_else(|error| Assessment::new(Status::Unknown, error))
}

fn compute(object: &Object<'_>, now: Timestamp) -> go::Result<Assessment> {
    if let Some(assessment) = common(object)? {
        return Ok(assessment);
    }
    if let Some(assessment) = kinds::evaluate(object, now)? {
        return Ok(assessment);
    }
    Ok(ready_condition(object)?.unwrap_or_else(|| Assessment::current("Resource is current")))
}

/// Deletion, generation, and the conditions `Reconciling` and `Stalled`.
fn common(object: &Object<'_>) -> go::Result<Option<Assessment>> {
    let deleted = go::nested_text(object, "metadata.deletionTimestamp")
        .map_err(looking_up("metadata.deletionTimestamp"))?;
    if deleted.is_some_and(|deleted| !deleted.is_empty()) {
        return Ok(Some(Assessment::new(Status::Terminating, "Resource scheduled for deletion")));
    }
    if let Some(generation) = generation(object)?
        && let Some(observed) = observed_generation(object)?
        && observed != generation
    {
        let kind = object.kind();
        return Ok(Some(Assessment::in_progress(
            "LatestGenerationNotObserved",
            format!("{kind} generation is {generation}, but latest observed generation is {observed}"),
        )));
    }
    // Objects may set these conditions themselves.
    let own = go::conditions(Typed::new(object))?.into_iter().filter(go::GoCondition::is_true).find_map(
        |condition| {
            let (reason, message) = (condition.reason.to_owned(), condition.message.to_owned());
            match condition.kind {
                "Reconciling" => Some(Assessment::in_progress(reason, message)),
                "Stalled" => Some(Assessment::failed(reason, message)),
                _ => None,
            }
        },
    );
    Ok(own)
}

fn generation(object: &Object<'_>) -> go::Result<Option<i64>> {
    go::nested_int(object, "metadata.generation").map_err(looking_up("metadata.generation"))
}

fn observed_generation(object: &Object<'_>) -> go::Result<Option<i64>> {
    go::nested_int(object, "status.observedGeneration").map_err(looking_up("status.observedGeneration"))
}

fn looking_up(path: &'static str) -> impl FnOnce(String) -> String {
    move |error| format!("looking up {path} from resource: {error}")
}

/// By condition `Ready`, for kinds without a rule.
fn ready_condition(object: &Object<'_>) -> go::Result<Option<Assessment>> {
    let conditions = go::conditions(Typed::new(object))?;
    let verdict = conditions.into_iter().filter(|condition| condition.kind == "Ready").find_map(|ready| {
        match ready.status {
            "True" => Some(Assessment::current("Resource is Ready")),
            "False" | "Unknown" => {
                Some(Assessment::in_progress(ready.reason.to_owned(), ready.message.to_owned()))
            }
            _ => None,
        }
    });
    Ok(verdict)
}

impl Assessment {
    fn new(status: Status, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, message: message.into(), conditions: Vec::new() }
    }

    fn current(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Status::Current, message)
    }

    fn in_progress(reason: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Status::InProgress, message).because("Reconciling", reason)
    }

    fn failed(reason: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Status::Failed, message).because("Stalled", reason)
    }

    /// Adds a condition with the same message.
    fn because(mut self, kind: &'static str, reason: impl Into<Cow<'static, str>>) -> Self {
        let (reason, message) = (reason.into(), self.message.clone());
        self.conditions.push(KstatusCondition { kind, status: ConditionStatus::True, reason, message });
        self
    }
}
