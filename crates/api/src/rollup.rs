//! `Rollup`: the component objects under an umbrella operator.

use bellwether_model::ConditionStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    duration::Duration,
    schema::{self, rule},
};

/// The component objects whose operator conditions are rolled up, and how.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bellwether.dev",
    version = "v1alpha1",
    kind = "Rollup",
    doc = "A Rollup says in its conditions Available, Progressing and Degraded the worst of what a set of component \
           objects, anywhere in the cluster, say in theirs.",
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
        name = "Available",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Available\")].status",
        description = "Whether every component works"
    ),
    printcolumn(
        name = "Progressing",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Progressing\")].status",
        description = "Whether a component is being changed"
    ),
    printcolumn(
        name = "Degraded",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Degraded\")].status",
        description = "Whether a component works below its capacity"
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
    /// The component objects: one by its name, or any number by their labels.
    #[schemars(length(min = 1, max = 128), extend("x-kubernetes-list-type" = "atomic"))]
    pub components: Vec<RollupComponent>,

    /// How Progressing is rolled up. Matrix (the default): False if a component is stuck (not available, not progressing, degraded),
    /// else True if any is. AnyTrue: True if any is. WorstIsFalse: False if any is.
    #[serde(default)]
    pub progressing: ProgressingPolicy,

    /// Whether the condition Upgradeable is rolled up too: False if any component says so. By default it is not.
    #[serde(default)]
    pub upgradeable: bool,

    /// How long a component must be bad before the Rollup says so; 0s by default. Recovery is always said at once.
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

/// Component objects: exactly one of `name` and `selector` says which.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "has(self.name) != has(self.selector)",
    "a component needs exactly one of name and selector: name for one object, selector for any number of them",
)]))]
pub struct RollupComponent {
    /// The API group of the component's kind; left out for the core group.
    #[serde(default)]
    #[schemars(schema_with = "schema::group")]
    pub group: String,

    /// The component's kind.
    #[schemars(schema_with = "schema::kind")]
    pub kind: String,

    /// The component's namespace. Left out, it is a cluster-scoped object, or objects of any namespace where a selector
    /// is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::namespace")]
    pub namespace: Option<String>,

    /// The name of the one object that is the component. It must exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_name")]
    pub name: Option<String>,

    /// The labels of the objects that are components.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::listed_label_selector")]
    pub selector: Option<LabelSelector>,
}

/// How the condition Progressing is rolled up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProgressingPolicy {
    /// False if a component is stuck and needs a human, else True if any is progressing.
    #[default]
    Matrix,
    /// True if any is.
    AnyTrue,
    /// False if any is.
    WorstIsFalse,
}

/// The rolled-up state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RollupStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Available, Progressing and Degraded of the components together, and Upgradeable where it is asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// What the three conditions mean together, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub meaning: Option<String>,

    /// The shortest answer. Error: not available, or degraded. Warning: progressing, or something is unknown. Healthy:
    /// everything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<RollupHealth>,

    /// The components, those that decide first. The list may be cut; componentCount never is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend("x-kubernetes-list-type" = "atomic"))]
    pub components: Vec<RollupComponentStatus>,

    /// How many components there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub component_count: Option<i32>,
}

/// The shortest answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RollupHealth {
    /// Available, not degraded, at rest, and all of it known.
    Healthy,
    /// Progressing, or something is unknown.
    Warning,
    /// Not available, or degraded.
    Error,
}

/// What one component says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RollupComponentStatus {
    /// The API group of its kind; empty for the core group.
    #[serde(default)]
    #[schemars(length(max = 253))]
    pub group: String,

    /// Its kind.
    #[schemars(length(max = 63))]
    pub kind: String,

    /// Its namespace; absent for a cluster-scoped object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub namespace: Option<String>,

    /// Its name.
    #[schemars(length(max = 253))]
    pub name: String,

    /// The status of its condition Available.
    pub available: ConditionStatus,

    /// The status of its condition Progressing.
    pub progressing: ConditionStatus,

    /// The status of its condition Degraded.
    pub degraded: ConditionStatus,

    /// The status of its condition Upgradeable, where that is rolled up and reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upgradeable: Option<ConditionStatus>,

    /// One word for programs: why it is in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub reason: Option<String>,

    /// The same for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1024))]
    pub message: Option<String>,

    /// Since when it has been in this state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,

    /// Why it does not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence: Option<ComponentPresence>,
}

/// Why the component does not exist. Missing: the cluster has no object of this name. NotServed: the cluster does not serve
/// the kind. Absent for a component that exists, or that may exist because its kind cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ComponentPresence {
    /// The cluster has no object of this name.
    Missing,
    /// The cluster does not serve the kind.
    NotServed,
}
