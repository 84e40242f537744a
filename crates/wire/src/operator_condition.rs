//! The condition `Upgradeable` in OLM's OperatorCondition.
//!
//! OLM does not upgrade an operator while `Upgradeable` is False. Since version v2 of the API, operators
//! write conditions into the spec, and OLM copies them into the status. OLM grants an operator `get`,
//! `update` and `patch` on its own OperatorCondition, but not `watch`: each write is preceded by a read.

use std::fmt;

use bellwether_conditions::{Condition, Statement, put_in_place};
use bellwether_engine::{GroupStatus, condition_types::UPGRADEABLE, reasons::operator_condition as reasons};
use bellwether_model::ConditionStatus;
use http::{Request, StatusCode, response::Parts};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{api_error::ApiError, read_error::ReadError, verb::Verb};

/// The attempts on conflicts with other writers.
const TRIES: u8 = 5;

/// The name of an OperatorCondition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorCondition {
    /// The namespace of the operator.
    pub namespace: String,
    /// The name of the operator's ClusterServiceVersion.
    pub name: String,
}

impl fmt::Display for OperatorCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OperatorCondition {}/{}", self.namespace, self.name)
    }
}

impl OperatorCondition {
    fn path(&self) -> String {
        let Self { namespace, name } = self;
        format!("/apis/operators.coreos.com/v2/namespaces/{namespace}/operatorconditions/{name}")
    }

    /// The error message, with the way out where it is known.
    pub fn explain(&self, error: &ReadError) -> String {
        match error {
            ReadError::Forbidden { .. } => format!(
                "cannot get or patch operatorconditions in namespace {namespace}: forbidden. Grant Bellwether the verbs \
                 get and patch on operatorconditions in the API group operators.coreos.com, as OLM does for the service \
                 accounts of an operator",
                namespace = self.namespace
            ),
            ReadError::NotFound { .. } => format!(
                "OperatorCondition {} not found in namespace {}. Check that OLM is installed, and that \
                 --olm-operator-condition names the operator's ClusterServiceVersion",
                self.name, self.namespace
            ),
            other => other.to_string(),
        }
    }
}

/// `Upgradeable` for OLM, from the status of a Rollup. `None` while that is unknown: the condition stays as
/// it is.
pub fn upgradeable(status: &GroupStatus, rollup: &str) -> Option<Statement> {
    match status {
        GroupStatus::Unknown(_) | GroupStatus::Silent { .. } => None,
        GroupStatus::NotFound => Some(Statement::new(
            ConditionStatus::Unknown,
            reasons::ROLLUP_NOT_FOUND,
            format!("Rollup/{rollup} not found. Create it, or set --olm-rollup to another Rollup."),
        )),
        GroupStatus::Known(summary) => Some(summary.condition(UPGRADEABLE).cloned().unwrap_or_else(|| {
            Statement::new(
                ConditionStatus::Unknown,
                reasons::UPGRADEABLE_NOT_ENABLED,
                format!("Rollup/{rollup} does not report Upgradeable. Set its spec.upgradeable to true."),
            )
        })),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpgradeableUpdateOutcome {
    Unchanged,
    Written,
}

/// One attempt to set `Upgradeable`: read, compare, write; on a conflict, read again.
#[derive(Clone, Debug)]
pub struct UpgradeableUpdate {
    target: OperatorCondition,
    wanted: Statement,
    next: UpgradeableUpdateStep,
    tries_left: u8,
}

#[derive(Clone, Debug)]
enum UpgradeableUpdateStep {
    Read,
    Write(Value),
}

/// Conditions are kept as JSON, so that those of other writers are written back unchanged.
#[derive(Deserialize)]
struct StoredOperatorCondition {
    metadata: OperatorConditionMetadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OperatorConditionMetadata {
    resource_version: Box<str>,
}

#[derive(Default, Deserialize)]
struct Spec {
    #[serde(default)]
    conditions: Option<Vec<Value>>,
}

impl UpgradeableUpdate {
    pub fn new(target: OperatorCondition, wanted: Statement) -> Self {
        Self { target, wanted, next: UpgradeableUpdateStep::Read, tries_left: TRIES }
    }

    pub fn request(&self) -> Result<Request<Vec<u8>>, ReadError> {
        let path = self.target.path();
        let request = match &self.next {
            UpgradeableUpdateStep::Read => Verb::Get.request(&path, Vec::new()),
            UpgradeableUpdateStep::Write(write) => {
                Verb::MergePatch.request(&path, write.to_string().into_bytes())
            }
        };
        request.map_err(|error| ReadError::rejected(format!("cannot build the request: {error}")))
    }

    /// Returns the result, or `None` if another request follows.
    pub fn answered(
        &mut self,
        parts: &Parts,
        body: &[u8],
        now: Timestamp,
    ) -> Option<Result<UpgradeableUpdateOutcome, ReadError>> {
        let is_write = matches!(self.next, UpgradeableUpdateStep::Write(_));
        if let Err(error) = ApiError::check(parts, body) {
            if is_write && error.code == StatusCode::CONFLICT && self.tries_left > 0 {
                self.next = UpgradeableUpdateStep::Read;
                return None;
            }
            return Some(Err(error.into()));
        }
        if is_write {
            return Some(Ok(UpgradeableUpdateOutcome::Written));
        }
        let Ok(stored) = serde_json::from_slice::<StoredOperatorCondition>(body) else {
            return Some(Err(ReadError::rejected("the response is not an OperatorCondition")));
        };
        let conditions = stored.spec.conditions.unwrap_or_default();
        let Some(conditions) = update_conditions(&conditions, &self.wanted, now) else {
            return Some(Ok(UpgradeableUpdateOutcome::Unchanged));
        };
        self.tries_left = self.tries_left.saturating_sub(1);
        self.next = UpgradeableUpdateStep::Write(json!({
            "metadata": { "resourceVersion": stored.metadata.resource_version },
            "spec": { "conditions": conditions },
        }));
        None
    }
}

/// The conditions with `wanted` among them; `None` if nothing changes. Conditions of other writers keep their
/// content and place. `lastTransitionTime` changes only with the status.
fn update_conditions(stored: &[Value], wanted: &Statement, now: Timestamp) -> Option<Vec<Value>> {
    // Within the limits of Kubernetes, and with times in whole seconds.
    let next = Condition::next(None, UPGRADEABLE, wanted.clone(), None, now);
    let status = next.status.name();
    let before = stored.iter().find(|condition| type_of(condition) == UPGRADEABLE);
    let has_status = |condition: &&Value| condition["status"] == status;
    let is_unchanged = |condition: &Value| {
        has_status(&condition) && condition["reason"] == *next.reason && condition["message"] == *next.message
    };
    if before.is_some_and(is_unchanged) {
        return None;
    }
    let since = before.filter(has_status).and_then(|condition| condition["lastTransitionTime"].as_str());
    let since = since.map_or_else(|| next.last_transition_time.to_string(), str::to_owned);
    let ours = json!({
        "type": UPGRADEABLE,
        "status": status,
        "reason": next.reason,
        "message": next.message,
        "lastTransitionTime": since,
    });
    Some(put_in_place(stored, [ours], type_of, |type_| type_ == UPGRADEABLE))
}

fn type_of(condition: &Value) -> &str {
    condition["type"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
