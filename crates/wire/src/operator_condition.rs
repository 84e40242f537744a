//! OLM's OperatorCondition, in which an operator tells whether it may be upgraded now: what is to stand there, and how it
//! gets there.
//!
//! OLM asks before it upgrades an operator, and only `Upgradeable` False stands in its way. Since version 2 of that API,
//! operators write into the spec, and OLM itself copies it into the status. It grants an operator `get`, `update` and
//! `patch` on its own OperatorCondition, so that nobody can watch it: it is looked at before it is written.

use std::fmt;

use bellwether_conditions::{Condition, Statement, put_in_place};
use bellwether_engine::{GroupStatus, condition_types::UPGRADEABLE, reasons::operator_condition as reasons};
use bellwether_model::ConditionStatus;
use http::{Request, StatusCode, response::Parts};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{api_error::ApiError, read_error::ReadError, verb::Verb};

/// How often it is tried where others write at the same moment.
const TRIES: u8 = 5;

/// An OperatorCondition, by where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorCondition {
    /// Its namespace, which is the operator's.
    pub namespace: String,
    /// Its name, which is that of the operator's ClusterServiceVersion.
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

    /// What went wrong, and the way out if anybody knows.
    pub fn explain(&self, trouble: &ReadError) -> String {
        match trouble {
            ReadError::Forbidden { .. } => format!(
                "Bellwether may not get and patch it: grant it the verbs get and patch on operatorconditions in the API group \
                 operators.coreos.com in namespace {}, as OLM does for the service accounts of an operator",
                self.namespace
            ),
            ReadError::NotFound { .. } => {
                "there is none: see that OLM is installed, and that --olm-operator-condition names what \
                                       it calls the operator's ClusterServiceVersion"
                    .to_owned()
            }
            other => other.to_string(),
        }
    }
}

/// What OLM is to be told, by what is known of a Rollup. Nothing as long as nobody can tell: what was said before stays.
pub fn upgradeable(insight: &GroupStatus, rollup: &str) -> Option<Statement> {
    match insight {
        GroupStatus::Unknown(_) | GroupStatus::Silent { .. } => None,
        GroupStatus::NotFound => Some(Statement::new(
            ConditionStatus::Unknown,
            reasons::ROLLUP_NOT_FOUND,
            format!("There is no Rollup {rollup}: create it, or name another one with --olm-rollup"),
        )),
        GroupStatus::Known(summary) => Some(summary.condition(UPGRADEABLE).cloned().unwrap_or_else(|| {
            Statement::new(
                ConditionStatus::Unknown,
                reasons::UPGRADEABLE_NOT_ENABLED,
                format!("Rollup {rollup} does not roll up Upgradeable: set its spec.upgradeable to true"),
            )
        })),
    }
}

/// How an attempt ended that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpkeepOutcome {
    /// It says what it should, and did so before.
    Unchanged,
    /// It does now.
    Written,
}

/// One attempt to have an OperatorCondition say what it should: look, compare, write, and look again where somebody else
/// was quicker.
#[derive(Clone, Debug)]
pub struct Upkeep {
    place: OperatorCondition,
    wanted: Statement,
    next: UpkeepStep,
    tries_left: u8,
}

#[derive(Clone, Debug)]
enum UpkeepStep {
    Look,
    Write(Value),
}

/// What is read of an OperatorCondition. What others wrote is kept as it is.
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

impl Upkeep {
    /// So that this one says this.
    pub fn new(place: OperatorCondition, wanted: Statement) -> Self {
        Self { place, wanted, next: UpkeepStep::Look, tries_left: TRIES }
    }

    /// What to ask next.
    pub fn request(&self) -> Result<Request<Vec<u8>>, ReadError> {
        let path = self.place.path();
        let request = match &self.next {
            UpkeepStep::Look => Verb::Get.request(&path, Vec::new()),
            UpkeepStep::Write(change) => Verb::MergePatch.request(&path, change.to_string().into_bytes()),
        };
        request.map_err(|error| ReadError::rejected(format!("no request can be made of it: {error}")))
    }

    /// Takes in the answer. Gives how it ended; if it has not, there is more to ask.
    pub fn answered(
        &mut self,
        parts: &Parts,
        body: &[u8],
        now: Timestamp,
    ) -> Option<Result<UpkeepOutcome, ReadError>> {
        let is_write = matches!(self.next, UpkeepStep::Write(_));
        if let Err(error) = ApiError::check(parts, body) {
            if is_write && error.code == StatusCode::CONFLICT && self.tries_left > 0 {
                self.next = UpkeepStep::Look;
                return None;
            }
            return Some(Err(error.into()));
        }
        if is_write {
            return Some(Ok(UpkeepOutcome::Written));
        }
        let Ok(stored) = serde_json::from_slice::<StoredOperatorCondition>(body) else {
            return Some(Err(ReadError::rejected("what the API server answers is no OperatorCondition")));
        };
        let conditions = stored.spec.conditions.unwrap_or_default();
        let Some(conditions) = put_right(&conditions, &self.wanted, now) else {
            return Some(Ok(UpkeepOutcome::Unchanged));
        };
        self.tries_left = self.tries_left.saturating_sub(1);
        self.next = UpkeepStep::Write(json!({
            "metadata": { "resourceVersion": stored.metadata.resource_version },
            "spec": { "conditions": conditions },
        }));
        None
    }
}

/// The conditions with what is wanted among them; nothing if they say it already. What others wrote stays as and where it
/// is, and so does the time of the last transition as long as the status does.
fn put_right(stored: &[Value], wanted: &Statement, now: Timestamp) -> Option<Vec<Value>> {
    // As Kubernetes allows it: in its limits, and in whole seconds.
    let next = Condition::next(None, UPGRADEABLE, wanted.clone(), None, now);
    let status = next.status.name();
    let before = stored.iter().find(|condition| kind(condition) == UPGRADEABLE);
    let has_status = |condition: &&Value| condition["status"] == status;
    let is_so = |condition: &Value| {
        has_status(&condition) && condition["reason"] == *next.reason && condition["message"] == *next.message
    };
    if before.is_some_and(is_so) {
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
    Some(put_in_place(stored, [ours], kind, |kind| kind == UPGRADEABLE))
}

fn kind(condition: &Value) -> &str {
    condition["type"].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests;
