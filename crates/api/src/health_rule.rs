//! `HealthRule`: how to assess the health of a kind.

use bellwether_model::State;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::schema::{self, rule};

/// The kind that the rule is for, and exactly one of `cel`, `expressions` and `lua`.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bellwether.dev",
    version = "v1alpha1",
    kind = "HealthRule",
    doc = "A HealthRule defines how Bellwether assesses the health of a kind. It takes precedence over all built-in \
           rules. It is written as CEL clauses, as Flux health check expressions, or as an Argo CD health script.",
    status = "HealthRuleStatus",
    derive = "PartialEq",
    shortname = "bwhr",
    category = "bellwether",
    printcolumn(
        name = "Group",
        type_ = "string",
        json_path = ".spec.for.group",
        description = "The API group of the kind"
    ),
    printcolumn(
        name = "Kind",
        type_ = "string",
        json_path = ".spec.for.kind",
        description = "The kind that the rule is for"
    ),
    printcolumn(
        name = "Valid",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Valid\")].status",
        description = "Whether the rule is valid and in use"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Valid\")].message",
        priority = 1,
        description = "The errors in the rule"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "[has(self.cel), has(self.expressions), has(self.lua)].filter(given, given).size() == 1",
    "set exactly one of cel, expressions and lua",
)]))]
pub struct HealthRuleSpec {
    /// The kind that the rule is for. Required.
    #[serde(rename = "for")]
    pub for_: RuleTarget,

    /// CEL clauses. The first clause whose `when` is true decides. A `when` that reads a missing field is not
    /// true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub cel: Option<Vec<CelClause>>,

    /// CEL expressions, as in Flux `healthCheckExprs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expressions: Option<FluxExpressions>,

    /// An Argo CD health script, unchanged: Lua that returns a table with status and message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 65536))]
    pub lua: Option<String>,
}

/// The kind that a rule is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RuleTarget {
    /// The API group of the kind. Defaults to the core group.
    #[serde(default)]
    #[schemars(schema_with = "schema::group")]
    pub group: String,

    /// The API version of the kind. Defaults to every version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::version_or_any")]
    pub version: Option<String>,

    /// The kind, or `*` for every kind of the API group.
    #[schemars(schema_with = "schema::kind_or_any")]
    pub kind: String,
}

/// A clause of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CelClause {
    /// A CEL expression that is true if the clause applies. `self` is the object; its fields, such as
    /// `status`, are variables too.
    #[schemars(length(min = 1, max = 8192))]
    pub when: String,

    /// The state of the object if the clause applies: Ready, InProgress, Failed, Suspended, Terminating or
    /// Unknown.
    #[schemars(schema_with = "state_of_existing_object")]
    pub state: State,

    /// The reason for the state, as one word in CamelCase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), extend("x-kubernetes-validations" = [rule(
        "self.matches('^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$')",
        "invalid reason: use one word such as WidgetBroken, of letters, digits, '_', ',' and ':', starting with a letter",
    )]))]
    pub reason: Option<String>,

    /// A CEL expression that returns the message for people. Fixed text is a CEL string with its own quotes,
    /// such as "'broken'".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8192))]
    pub message: Option<String>,
}

/// Every state except Missing: a rule is evaluated on an object that exists.
fn state_of_existing_object(_: &mut SchemaGenerator) -> Schema {
    let states = [
        State::Ready,
        State::InProgress,
        State::Failed,
        State::Suspended,
        State::Terminating,
        State::Unknown,
    ];
    json_schema!({ "type": "string", "enum": states })
}

/// CEL expressions, as in Flux `healthCheckExprs`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FluxExpressions {
    /// True if the object is ready.
    #[schemars(length(min = 1, max = 8192))]
    pub current: String,

    /// True if the object is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8192))]
    pub in_progress: Option<String>,

    /// True if the object has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8192))]
    pub failed: Option<String>,
}

/// The observed state of the rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthRuleStatus {
    /// The metadata.generation that this status was computed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Valid: the rule compiles and is in use. The message names each error and its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// The spec that was last valid, which stays in force. Only while the current spec is invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any_object")]
    pub last_valid_spec: Option<Box<HealthRuleSpec>>,
}
