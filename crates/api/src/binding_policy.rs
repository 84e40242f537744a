//! `BindingPolicy`: which objects are bound to which clusters.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    duration::Duration,
    schema::{self, rule},
};

/// The clusters, the objects, and how their reported state is combined.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bellwether.dev",
    version = "v1alpha1",
    kind = "BindingPolicy",
    plural = "bindingpolicies",
    doc = "A BindingPolicy binds workload objects to clusters, and defines how their state in those clusters is reported: \
           combined by StatusCollectors, or merged into the status of the object. It only observes; any tool may deliver \
           the objects.",
    status = "BindingPolicyStatus",
    derive = "PartialEq",
    shortname = "bwbp",
    category = "bellwether",
    printcolumn(
        name = "Objects",
        type_ = "integer",
        json_path = ".status.objects",
        description = "The number of bound objects"
    ),
    printcolumn(
        name = "Clusters",
        type_ = "integer",
        json_path = ".status.clusters",
        description = "The number of clusters that they are bound to"
    ),
    printcolumn(
        name = "Collectors",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"CollectorsAvailable\")].status",
        description = "Whether all StatusCollectors in the spec exist and are valid"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct BindingPolicySpec {
    /// Selects clusters by their labels in the inventory. A cluster must match at least one selector.
    /// Defaults to no cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::label_selectors")]
    pub cluster_selectors: Vec<LabelSelector>,

    /// Selects objects, and defines how their state is reported. An object is bound if at least one clause
    /// matches it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub downsync: Vec<DownsyncClause>,

    /// A cluster is stale if Bellwether has received nothing from it for this long. Objects in a stale
    /// cluster do not count as ready. Defaults to 120s.
    #[serde(default = "two_minutes")]
    #[schemars(schema_with = "positive_duration")]
    pub staleness_threshold: Duration,

    /// How long the addresses and listeners of a stale cluster stay in the merged status of a Gateway.
    /// Defaults to 600s.
    #[serde(default = "ten_minutes")]
    pub stale_address_grace: Duration,
}

impl Default for BindingPolicySpec {
    fn default() -> Self {
        Self {
            cluster_selectors: Vec::new(),
            downsync: Vec::new(),
            staleness_threshold: two_minutes(),
            stale_address_grace: ten_minutes(),
        }
    }
}

/// A duration greater than zero.
fn positive_duration(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = Duration::json_schema(generator);
    if let Some(rules) = schema.get_mut("x-kubernetes-validations").and_then(Value::as_array_mut) {
        rules.push(rule("self.matches('[1-9]')", "must be greater than 0s: write a duration such as 120s"));
    }
    schema
}

fn two_minutes() -> Duration {
    Duration::from_secs(120)
}

fn ten_minutes() -> Duration {
    Duration::from_secs(600)
}

/// Objects, and how their state is reported. A clause matches an object if every field that is set matches
/// it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "(has(self.apiGroup) && self.apiGroup != '*') \
     || (has(self.resources) && size(self.resources) > 0 && !('*' in self.resources)) \
     || (has(self.namespaces) && size(self.namespaces) > 0 && !('*' in self.namespaces)) \
     || (has(self.objectNames) && size(self.objectNames) > 0 && !('*' in self.objectNames)) \
     || (has(self.namespaceSelectors) && size(self.namespaceSelectors) > 0 && self.namespaceSelectors.all(selector, \
         (has(selector.matchLabels) && size(selector.matchLabels) > 0) \
         || (has(selector.matchExpressions) && size(selector.matchExpressions) > 0))) \
     || (has(self.objectSelectors) && size(self.objectSelectors) > 0 && self.objectSelectors.all(selector, \
         (has(selector.matchLabels) && size(selector.matchLabels) > 0) \
         || (has(selector.matchExpressions) && size(selector.matchExpressions) > 0)))",
    "the clause matches every object: narrow it with apiGroup, resources, namespaces, namespaceSelectors, \
     objectNames or objectSelectors, other than '*' and empty selectors",
), rule(
    "self.wantAggregatedReportedState || (has(self.wantMultiWECReportedState) && self.wantMultiWECReportedState) || \
     ((!has(self.merge) || size(self.merge) == 0) && (!has(self.conditionTypes) || size(self.conditionTypes) == 0))",
    "merge and conditionTypes need wantAggregatedReportedState: set it to true, or remove them",
)]))]
pub struct DownsyncClause {
    /// The API group of the objects: empty for the core group, `*` for any group. Defaults to any group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "group_or_any")]
    pub api_group: Option<String>,

    /// The resources of the objects, such as deployments, or `*`. Defaults to any resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "resources")]
    pub resources: Vec<String>,

    /// The namespaces of the objects, or `*`. Defaults to any namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "namespaces")]
    pub namespaces: Vec<String>,

    /// Selects the namespaces of the objects by label. A namespace must match at least one selector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::label_selectors")]
    pub namespace_selectors: Vec<LabelSelector>,

    /// The names of the objects, or `*`. Defaults to any name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "object_names")]
    pub object_names: Vec<String>,

    /// Selects the objects by label. An object must match at least one selector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::label_selectors")]
    pub object_selectors: Vec<LabelSelector>,

    /// Names of the StatusCollectors that combine the state of these objects. The condition
    /// CollectorsAvailable names those that do not exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "collector_names")]
    pub status_collectors: Vec<String>,

    /// Whether to copy the status from the cluster to the object, if the object is bound to exactly one
    /// cluster. Defaults to false.
    #[serde(default)]
    pub want_singleton_reported_state: bool,

    /// Whether to merge the statuses from all clusters into the status of the object. Defaults to false.
    #[serde(default)]
    pub want_aggregated_reported_state: bool,

    /// The name of wantAggregatedReportedState in KubeStellar. Setting either of them to true has the same
    /// effect.
    #[serde(rename = "wantMultiWECReportedState", default, skip_serializing_if = "Option::is_none")]
    pub want_multi_wec_reported_state: Option<bool>,

    /// Accepted for compatibility with KubeStellar. No effect: Bellwether does not deliver objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_only: Option<bool>,

    /// Condition types to merge even if no cluster reports them yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "condition_types")]
    pub condition_types: Vec<String>,

    /// How to merge single fields of the status. Defaults to the rules for the kind of the object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["path"]
    ))]
    pub merge: Vec<FieldMerge>,
}

/// How to merge one field of the status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldMerge {
    /// The path of the field, such as status.availableReplicas.
    #[schemars(length(max = 256), extend("x-kubernetes-validations" = [rule(
        "self.matches('^status([.][A-Za-z_][-A-Za-z0-9_]*)+$')",
        "invalid path: use a field below status, such as status.availableReplicas",
    )]))]
    pub path: String,

    /// The operation on the values: Sum, Min, Max, And, Or, Union, or First in the order of cluster names.
    pub op: MergeOperation,
}

/// How to merge the values of one field in many clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MergeOperation {
    /// The sum of the values.
    Sum,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
    /// True if all values are true.
    And,
    /// True if any value is true.
    Or,
    /// The elements of all lists.
    Union,
    /// The value of the first cluster by name.
    First,
}

fn group_or_any(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "maxLength": schema::NAME_LENGTH,
        "x-kubernetes-validations": [rule(
            &format!("self == '' || self == '*' || ({})", schema::IS_GROUP),
            "invalid API group: use a name such as apps without a version, '' for the core group, or '*'",
        )],
    })
}

fn resources(_: &mut SchemaGenerator) -> Schema {
    let rule = rule(
        "self == '*' || !format.dns1035Label().validate(self).hasValue()",
        "invalid resource: use the plural in lower case, such as deployments, or '*'",
    );
    set_of(&rule, 256, 63)
}

fn namespaces(_: &mut SchemaGenerator) -> Schema {
    let rule = rule(
        "self == '*' || !format.dns1123Label().validate(self).hasValue()",
        "invalid namespace: use lower-case letters, digits and '-', starting and ending with a letter or digit, or '*'",
    );
    set_of(&rule, 256, 63)
}

fn object_names(_: &mut SchemaGenerator) -> Schema {
    set_of(&any_name(), 256, schema::NAME_LENGTH)
}

/// An object may match every clause, and a CombinedStatus has room for the collectors of all clauses.
fn collector_names(_: &mut SchemaGenerator) -> Schema {
    set_of(&any_name(), 32, schema::NAME_LENGTH)
}

fn any_name() -> Value {
    rule(
        &schema::is_object_name("self"),
        "invalid name: use at least one character, without '/', '%' and control characters",
    )
}

fn condition_types(_: &mut SchemaGenerator) -> Schema {
    let rule = rule(
        "!format.qualifiedName().validate(self).hasValue()",
        "invalid condition type: use CamelCase such as Ready, after an optional DNS prefix and '/'",
    );
    set_of(&rule, 32, 316)
}

/// A set of strings, each checked by a rule.
fn set_of(rule: &Value, max_items: u32, max_length: u32) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": max_items,
        "x-kubernetes-list-type": "set",
        "items": { "type": "string", "maxLength": max_length, "x-kubernetes-validations": [rule] },
    })
}

/// The observed state of the policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BindingPolicyStatus {
    /// The metadata.generation that this status was computed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The number of bound objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub objects: Option<i32>,

    /// The number of clusters that they are bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub clusters: Option<i32>,

    /// Resolved: every kind can be read, in the hub and in the clusters. CollectorsAvailable: every
    /// StatusCollector in the spec exists and is valid. SingletonsApply: every object with
    /// wantSingletonReportedState is bound to exactly one cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
