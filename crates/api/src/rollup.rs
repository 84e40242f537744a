//! `Rollup`: the aggregated conditions of the components of an umbrella operator.

use bellwether_model::{ConditionStatus, State};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    application::LastEvent,
    duration::Duration,
    schema::{self, rule},
};

/// The component objects, and how their operator conditions are aggregated.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bellwether.dev",
    version = "v1alpha1",
    kind = "Rollup",
    doc = "A Rollup aggregates the conditions Available, Progressing and Degraded of component objects anywhere in the \
           cluster, and reports the worst of each in its own conditions.",
    status = "RollupStatus",
    derive = "PartialEq",
    shortname = "bwru",
    category = "bellwether",
    printcolumn(
        name = "Health",
        type_ = "string",
        json_path = ".status.health",
        description = "Healthy, Warning or Error"
    ),
    printcolumn(
        name = "State",
        type_ = "string",
        json_path = ".status.state",
        description = "Ready, InProgress, Failed, Missing or Unknown, as in an Application"
    ),
    printcolumn(
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status",
        description = "Whether every component is available"
    ),
    printcolumn(
        name = "Progressing",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Progressing\")].status",
        description = "Whether a component is progressing"
    ),
    printcolumn(
        name = "Degraded",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Degraded\")].status",
        description = "Whether a component is degraded"
    ),
    printcolumn(
        name = "Meaning",
        type_ = "string",
        json_path = ".status.meaning",
        priority = 1,
        description = "What the three conditions mean together"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct RollupSpec {
    /// The component objects. An entry names one object, or selects any number of objects by label.
    #[schemars(length(min = 1, max = 128), extend("x-kubernetes-list-type" = "atomic"))]
    pub components: Vec<RollupComponent>,

    /// How the condition Progressing is aggregated. Matrix: False if a component is stuck (not available, not
    /// progressing, degraded), else True if any is True. AnyTrue: True if any is True. WorstIsFalse: False if
    /// any is False. Defaults to Matrix.
    #[serde(default)]
    pub progressing: ProgressingPolicy,

    /// Whether to aggregate the condition Upgradeable as well: False if any component reports False. Defaults
    /// to false.
    #[serde(default)]
    pub upgradeable: bool,

    /// How long a component must be unhealthy before the Rollup reports it. The Rollup reports a recovery at
    /// once. Defaults to 0s.
    #[serde(default = "no_time")]
    pub degraded_after: Duration,
}

impl Default for RollupSpec {
    fn default() -> Self {
        Self {
            components: Vec::new(),
            progressing: ProgressingPolicy::default(),
            upgradeable: false,
            degraded_after: no_time(),
        }
    }
}

fn no_time() -> Duration {
    Duration::from_secs(0)
}

/// Component objects, by exactly one of `name` and `selector`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "has(self.name) != has(self.selector)",
    "set exactly one of name and selector",
)]))]
pub struct RollupComponent {
    /// The API group of the component. Defaults to the core group.
    #[serde(default)]
    #[schemars(schema_with = "schema::group")]
    pub group: String,

    /// The kind of the component.
    #[schemars(schema_with = "schema::kind")]
    pub kind: String,

    /// The namespace of the component. If it is not set, `name` is a cluster-scoped object, and `selector`
    /// selects in all namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::namespace")]
    pub namespace: Option<String>,

    /// The name of the component. The object must exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_name")]
    pub name: Option<String>,

    /// Selects the components by label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::listed_label_selector")]
    pub selector: Option<LabelSelector>,
}

/// How the condition Progressing is aggregated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProgressingPolicy {
    /// False if a component is stuck (not available, not progressing, degraded), else True if any is True.
    #[default]
    Matrix,
    /// True if any component is True.
    AnyTrue,
    /// False if any component is False.
    WorstIsFalse,
}

/// The aggregated state of the components.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollupStatus {
    /// The metadata.generation that this status was computed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The three conditions as one state: Failed, Missing, InProgress or Unknown; Ready if all three are good.
    /// Missing: a component does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::group_state")]
    pub state: Option<State>,

    /// The aggregated conditions Available, Progressing and Degraded, and Upgradeable if spec.upgradeable is
    /// true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// What the three conditions mean together, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub meaning: Option<String>,

    /// The summary of the conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<RollupHealth>,

    /// The components, those that decide the conditions first. The list may be truncated; componentCount
    /// counts all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "atomic"))]
    pub components: Vec<RollupComponentStatus>,

    /// The number of components.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub component_count: Option<i32>,

    /// The last change of the state, as Events have reported it. No Event is recorded in the first ten seconds
    /// of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_event: Option<LastEvent>,
}

/// A summary of the conditions. Error: not available, or degraded. Warning: progressing, or a condition is
/// Unknown. Healthy: otherwise.
// The CRD has this description for the field `health`: an optional enum loses the one of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RollupHealth {
    /// Available, not progressing, not degraded.
    Healthy,
    /// Progressing, or a condition is Unknown.
    Warning,
    /// Not available, or degraded.
    Error,
}

/// The conditions of one component.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RollupComponentStatus {
    /// The API group of the component; empty for the core group.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub group: String,

    /// The kind of the component.
    #[schemars(length(max = 63))]
    pub kind: String,

    /// The namespace of the component; absent for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,

    /// The name of the component.
    #[schemars(length(max = 253))]
    pub name: String,

    /// The status of its condition Available.
    pub available: ConditionStatus,

    /// The status of its condition Progressing.
    pub progressing: ConditionStatus,

    /// The status of its condition Degraded.
    pub degraded: ConditionStatus,

    /// The status of its condition Upgradeable, if spec.upgradeable is true and the component reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::condition_status")]
    pub upgradeable: Option<ConditionStatus>,

    /// The reason for the conditions, as one word in CamelCase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub reason: Option<String>,

    /// The reason for the conditions, in a sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,

    /// When the component entered this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,

    /// Why the component does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence: Option<ComponentPresence>,
}

/// Why the component does not exist. Missing: the cluster has no object of this name. NotServed: the API
/// server does not serve the kind. Absent if the component exists, or if its kind cannot be read.
// The CRD has this description for the field `presence`: an optional enum loses the one of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ComponentPresence {
    /// The cluster has no object of this name.
    Missing,
    /// The API server does not serve the kind.
    NotServed,
}
