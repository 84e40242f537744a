//! kstatus, the library of cli-utils that Flux, Helm and others wait with.
//!
//! What all objects have in common is looked at first; then what is particular to a kind ([`kinds`]); then a condition
//! `Ready`. An object that says nothing is Current.

mod kinds;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use bellwether_model::{ConditionStatus, Object};
use jiff::Timestamp;
use serde::Serialize;

use super::go::{self, Typed};

/// What kstatus says of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Assessment {
    /// The status.
    pub status: Status,
    /// Why.
    pub message: Cow<'static, str>,
    /// The condition that the object should have: `Reconciling` while it is in progress, `Stalled` if it has failed, else
    /// none.
    pub conditions: Vec<Condition>,
}

/// The words of kstatus for the state of an object that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Status {
    /// It is as its specification wants it.
    Current,
    /// It is on its way there.
    InProgress,
    /// It will not get there.
    Failed,
    /// It is being deleted.
    Terminating,
    /// kstatus cannot read it; the message says why.
    Unknown,
}

/// A condition that is true when something is not normal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// Its type: `Reconciling` or `Stalled`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Always true: a condition that is not is not there.
    pub status: ConditionStatus,
    /// Why, in one word.
    pub reason: Cow<'static, str>,
    /// Why.
    pub message: Cow<'static, str>,
}

/// Says what kstatus says of an object.
///
/// kstatus gives up on an object whose generation is no number or whose conditions are malformed. What waits with it then
/// shows `Unknown`, so that is what this gives, with the text of the error.
pub fn assess(object: &Object<'_>, now: Timestamp) -> Assessment {
    compute(object, now).unwrap_or_else(|error| Assessment::new(Status::Unknown, error))
}

fn compute(object: &Object<'_>, now: Timestamp) -> go::Result<Assessment> {
    if let Some(assessment) = common(object)? {
        return Ok(assessment);
    }
    if let Some(assessment) = kinds::judge(object, now)? {
        return Ok(assessment);
    }
    Ok(ready_condition(object)?.unwrap_or_else(|| Assessment::current("Resource is current")))
}

/// What all objects have in common.
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
    // The object may already have the conditions that this would give it.
    let own = go::conditions(Typed::new(object))?.into_iter().filter(go::Condition::is_true).find_map(
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

/// What a condition `Ready` says, for kinds that nobody knows.
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

    /// With a condition of this type that says the same.
    fn because(mut self, kind: &'static str, reason: impl Into<Cow<'static, str>>) -> Self {
        let (reason, message) = (reason.into(), self.message.clone());
        self.conditions.push(Condition { kind, status: ConditionStatus::True, reason, message });
        self
    }
}
