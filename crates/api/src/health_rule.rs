//! `HealthRule`: how to tell the health of a kind.

use bellwether_model::State;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::schema::{self, rule};

/// The kind that the rule is for, and the rule in one of its three forms.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bellwether.dev",
    version = "v1alpha1",
    kind = "HealthRule",
    doc = "A HealthRule tells the health of the objects of a kind. It goes before every rule that Bellwether has of its \
           own. It is written as CEL clauses, as Flux's health expressions, or as Argo CD's Lua script.",
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
        description = "The kind that it judges"
    ),
    printcolumn(
        name = "Valid",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Valid\")].status",
        description = "Whether the rule is in force"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Valid\")].message",
        priority = 1,
        description = "What is wrong with the rule, and where"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "[has(self.cel), has(self.expressions), has(self.lua)].filter(given, given).size() == 1",
    "a HealthRule has exactly one form: give one of cel, expressions and lua",
)]))]
pub struct HealthRuleSpec {
    /// The kind whose objects the rule judges.
    #[serde(rename = "for")]
    pub for_: JudgedKind,

    /// CEL clauses: the first whose `when` is true decides. A field that is missing makes a `when` not yet true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub cel: Option<Vec<CelClause>>,

    /// Three CEL expressions, as in Flux's `healthCheckExprs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expressions: Option<FluxExpressions>,

    /// A health script of Argo CD, as it is: Lua that returns a table with status and message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 65536))]
    pub lua: Option<String>,
}

/// The kind that a rule is for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JudgedKind {
    /// The kind's API group; left out for the core group.
    #[serde(default)]
    #[schemars(schema_with = "schema::group")]
    pub group: String,

    /// The kind's version; left out for every version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::version_or_any")]
    pub version: Option<String>,

    /// The kind, or `*` for every kind of the group.
    #[schemars(schema_with = "schema::kind_or_any")]
    pub kind: String,
}

/// One clause of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CelClause {
    /// A CEL expression that is true when the clause applies. In scope are `self` and its fields, such as `status`.
    #[schemars(length(min = 1, max = 8192))]
    pub when: String,

    /// The state of the object then: Ready, InProgress, Failed, Suspended, Terminating or Unknown.
    #[schemars(schema_with = "state_of_what_is_there")]
    pub state: State,

    /// One word for programs: why the object is in that state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024), extend("x-kubernetes-validations" = [rule(
        "self.matches('^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$')",
        "reason must be one word such as WidgetBroken: letters, digits, '_', ',' and ':', beginning with a letter",
    )]))]
    pub reason: Option<String>,

    /// A CEL expression that gives the message for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8192))]
    pub message: Option<String>,
}

/// Any state but Missing: what a rule judges is there.
fn state_of_what_is_there(_: &mut SchemaGenerator) -> Schema {
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

/// Flux's three expressions.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FluxExpressions {
    /// True when the object is ready.
    #[schemars(length(min = 1, max = 8192))]
    pub current: String,

    /// True while the object is on its way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8192))]
    pub in_progress: Option<String>,

    /// True when the object has failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8192))]
    pub failed: Option<String>,
}

/// Whether the rule is in force.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealthRuleStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Valid: the rule can be understood and is in force; its message has the place of a mistake.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
