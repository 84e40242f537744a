//! `BindingPolicy`: which objects are followed in which clusters.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    duration::Duration,
    schema::{self, rule},
};

/// Which clusters, which objects, and what to do with the state that they report.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bellwether.dev",
    version = "v1alpha1",
    kind = "BindingPolicy",
    plural = "bindingpolicies",
    doc = "A BindingPolicy binds workload objects to clusters, and says how the state that those clusters report of them \
           comes back: combined by StatusCollectors, or merged into the object's own status. It observes; any tool may \
           deliver the objects.",
    status = "BindingPolicyStatus",
    derive = "PartialEq",
    shortname = "bwbp",
    category = "bellwether",
    printcolumn(
        name = "Objects",
        type_ = "integer",
        json_path = ".status.objects",
        description = "How many objects are bound"
    ),
    printcolumn(
        name = "Clusters",
        type_ = "integer",
        json_path = ".status.clusters",
        description = "How many clusters they are bound to"
    ),
    printcolumn(
        name = "Collectors",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"CollectorsAvailable\")].status",
        description = "Whether all of its StatusCollectors exist and are valid"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct BindingPolicySpec {
    /// Which clusters, by the labels of the inventory. One of the selectors must match; without any, no cluster does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::label_selectors")]
    pub cluster_selectors: Vec<LabelSelector>,

    /// Which objects, and what to do with their state. An object is bound if one of the clauses matches it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub downsync: Vec<DownsyncClause>,

    /// A cluster that has not been heard from for this long is stale: what it reported no longer counts as ready. 120s by
    /// default.
    #[serde(default = "two_minutes")]
    #[schemars(schema_with = "some_time")]
    pub staleness_threshold: Duration,

    /// How long the addresses and listeners of a stale cluster stay in the merged status of a Gateway; 600s by default.
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

/// A duration of more than nothing.
fn some_time(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = Duration::json_schema(generator);
    if let Some(rules) = schema.get_mut("x-kubernetes-validations").and_then(Value::as_array_mut) {
        rules.push(rule(
            "self.matches('[1-9]')",
            "stalenessThreshold must be longer than nothing, or every cluster is stale: write it like 120s",
        ));
    }
    schema
}

fn two_minutes() -> Duration {
    Duration::from_secs(120)
}

fn ten_minutes() -> Duration {
    Duration::from_secs(600)
}

/// Objects, and what to do with their state. An object matches if every field that is given matches it.
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
    "a clause must not match every object there is: narrow it with apiGroup, resources, namespaces, namespaceSelectors, \
     objectNames or objectSelectors, other than '*' and empty selectors",
), rule(
    "self.wantAggregatedReportedState || (has(self.wantMultiWECReportedState) && self.wantMultiWECReportedState) || \
     ((!has(self.merge) || size(self.merge) == 0) && (!has(self.conditionTypes) || size(self.conditionTypes) == 0))",
    "merge and conditionTypes say how a status is merged: give them together with wantAggregatedReportedState: true",
)]))]
pub struct DownsyncClause {
    /// The API group of the objects; empty for the core group, `*` or absent for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "group_or_any")]
    pub api_group: Option<String>,

    /// The resources of the objects, such as deployments; `*` or none for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "resources")]
    pub resources: Vec<String>,

    /// The namespaces of the objects; `*` or none for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "namespaces")]
    pub namespaces: Vec<String>,

    /// The labels of the objects' namespaces: one of the selectors must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::label_selectors")]
    pub namespace_selectors: Vec<LabelSelector>,

    /// The names of the objects; `*` or none for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "object_names")]
    pub object_names: Vec<String>,

    /// The labels of the objects: one of the selectors must match.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::label_selectors")]
    pub object_selectors: Vec<LabelSelector>,

    /// Names of the StatusCollectors that combine the state of these objects. One that does not exist is named in the
    /// status.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "collector_names")]
    pub status_collectors: Vec<String>,

    /// Where such an object is bound to exactly one cluster: write that cluster's status into the object's own.
    #[serde(default)]
    pub want_singleton_reported_state: bool,

    /// Merge the status of such an object in all its clusters into the object's own.
    #[serde(default)]
    pub want_aggregated_reported_state: bool,

    /// KubeStellar's name for wantAggregatedReportedState: either of them asks for it.
    #[serde(rename = "wantMultiWECReportedState", default, skip_serializing_if = "Option::is_none")]
    pub want_multi_wec_reported_state: Option<bool>,

    /// For policies that come from KubeStellar. It has no effect here, because Bellwether delivers nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create_only: Option<bool>,

    /// Condition types that are merged although no cluster reports them yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "condition_types")]
    pub condition_types: Vec<String>,

    /// How single fields are merged, where that differs from what the object's kind suggests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["path"]
    ))]
    pub merge: Vec<FieldMerge>,
}

/// How one field of the status is merged over clusters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FieldMerge {
    /// The field, such as status.availableReplicas.
    #[schemars(length(max = 256), extend("x-kubernetes-validations" = [rule(
        "self.matches('^status([.][A-Za-z_][-A-Za-z0-9_]*)+$')",
        "path must be a field below status, such as status.availableReplicas",
    )]))]
    pub path: String,

    /// What becomes of its values: Sum, Min, Max, And, Or, Union, or First in the order of the clusters' names.
    pub op: MergeOperation,
}

/// What becomes of one field's values in many clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MergeOperation {
    /// Their sum.
    Sum,
    /// The least.
    Min,
    /// The greatest.
    Max,
    /// True if all are.
    And,
    /// True if any is.
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
            "apiGroup must be the name of an API group such as apps, without a version; '' for the core group, or '*'",
        )],
    })
}

fn resources(_: &mut SchemaGenerator) -> Schema {
    let rule = rule(
        "self == '*' || !format.dns1035Label().validate(self).hasValue()",
        "this is no resource: write it in lower case and in the plural, such as deployments, or '*'",
    );
    set_of(&rule, 256, 63)
}

fn namespaces(_: &mut SchemaGenerator) -> Schema {
    let rule = rule(
        "self == '*' || !format.dns1123Label().validate(self).hasValue()",
        "this is no name of a namespace: use lower-case letters, digits and '-', beginning and ending with a letter or \
         digit, or '*'",
    );
    set_of(&rule, 256, 63)
}

fn object_names(_: &mut SchemaGenerator) -> Schema {
    set_of(&any_name(), 256, schema::NAME_LENGTH)
}

/// An object may match every clause: a CombinedStatus has room for all of their collectors.
fn collector_names(_: &mut SchemaGenerator) -> Schema {
    set_of(&any_name(), 32, schema::NAME_LENGTH)
}

fn any_name() -> Value {
    rule(
        &schema::is_object_name("self"),
        "this is no name of an object: it must not be empty, and have no '/', '%' and control characters",
    )
}

fn condition_types(_: &mut SchemaGenerator) -> Schema {
    let rule = rule(
        "!format.qualifiedName().validate(self).hasValue()",
        "this is no type of a condition: write it in CamelCase, such as Ready, after an optional DNS prefix and '/'",
    );
    set_of(&rule, 32, 316)
}

/// A list of words, none of them twice, each of which must pass a rule.
fn set_of(rule: &Value, max_items: u32, max_length: u32) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": max_items,
        "x-kubernetes-list-type": "set",
        "items": { "type": "string", "maxLength": max_length, "x-kubernetes-validations": [rule] },
    })
}

/// What is bound, and what is not as asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BindingPolicyStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// How many objects are bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub objects: Option<i32>,

    /// How many clusters they are bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub clusters: Option<i32>,

    /// CollectorsAvailable: every StatusCollector that is named exists and is valid. SingletonsApply: every object whose
    /// single status is asked for is bound to exactly one cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
