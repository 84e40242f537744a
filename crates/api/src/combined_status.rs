//! `CombinedStatus`: the combined state of one object over many clusters.

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::schema;

/// The namespace of the CombinedStatuses of cluster-scoped objects.
pub const REPORT_NAMESPACE: &str = "bellwether-report";

/// The labels of a CombinedStatus, which say what it is about.
pub mod combined_status_labels {
    /// The API group of the workload object.
    pub const API_GROUP: &str = "status.bellwether.dev/api-group";
    /// Its resource, such as deployments.
    pub const RESOURCE: &str = "status.bellwether.dev/resource";
    /// Its namespace.
    pub const NAMESPACE: &str = "status.bellwether.dev/namespace";
    /// Its name.
    pub const NAME: &str = "status.bellwether.dev/name";
    /// The BindingPolicy that asked.
    pub const BINDING_POLICY: &str = "status.bellwether.dev/binding-policy";
}

/// What the StatusCollectors of one BindingPolicy say of one workload object.
///
/// The fields sit at the top of the object, beside `metadata`: all of it is status, and nobody writes a spec.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bellwether.dev",
    version = "v1alpha1",
    kind = "CombinedStatus",
    plural = "combinedstatuses",
    doc = "A CombinedStatus holds what the StatusCollectors of one BindingPolicy say of one workload object in all the \
           clusters that it is bound to. Bellwether writes it; people and programs read it.",
    namespaced,
    no_spec,
    derive = "PartialEq",
    shortname = "bwcs",
    category = "bellwether",
    printcolumn(
        name = "Group",
        type_ = "string",
        json_path = ".metadata.labels['status\\.bellwether\\.dev/api-group']",
        description = "The API group of the workload object"
    ),
    printcolumn(
        name = "Resource",
        type_ = "string",
        json_path = ".metadata.labels['status\\.bellwether\\.dev/resource']",
        description = "The resource of the workload object"
    ),
    printcolumn(
        name = "Object",
        type_ = "string",
        json_path = ".metadata.labels['status\\.bellwether\\.dev/name']",
        description = "The name of the workload object"
    ),
    printcolumn(
        name = "Policy",
        type_ = "string",
        json_path = ".metadata.labels['status\\.bellwether\\.dev/binding-policy']",
        description = "The BindingPolicy that asked"
    ),
    printcolumn(
        name = "Clusters",
        type_ = "integer",
        json_path = ".clusters.bound",
        description = "How many clusters the object is bound to"
    ),
    printcolumn(
        name = "Reporting",
        type_ = "integer",
        json_path = ".clusters.reporting",
        description = "How many of them report it"
    ),
    printcolumn(
        name = "Stale",
        type_ = "integer",
        json_path = ".clusters.stale",
        description = "How many of them have not been heard from"
    ),
    printcolumn(
        name = "Missing",
        type_ = "integer",
        json_path = ".clusters.missing",
        description = "How many of them do not have it"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct CombinedStatusFields {
    /// One answer for each StatusCollector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"]
    ))]
    pub results: Vec<CombinedResult>,

    /// How many clusters the answers are about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<ClusterCounts>,
}

/// How many clusters an object is bound to, and what is known of it there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClusterCounts {
    /// The clusters that the object is bound to.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub bound: i32,
    /// Those that report the object.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub reporting: i32,
    /// Those that have not been heard from for longer than the policy allows.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub stale: i32,
    /// Those that do not have the object.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub missing: i32,
}

/// The answer of one StatusCollector: a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CombinedResult {
    /// The collector's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// The names of the columns, in order.
    #[serde(default)]
    #[schemars(length(max = 64), inner(length(max = 63)), extend("x-kubernetes-list-type" = "atomic"))]
    pub column_names: Vec<String>,

    /// The rows, in order.
    #[serde(default)]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub rows: Vec<ResultRow>,

    /// How many rows there are before the collector's limit.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub total_rows: i64,

    /// Whether rows were cut.
    #[serde(default)]
    pub truncated: bool,

    /// Rows that could not be evaluated: at least one for each column concerned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), extend("x-kubernetes-list-type" = "atomic"))]
    pub row_errors: Vec<RowError>,

    /// Values that could not be combined: at least one for each column concerned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), extend("x-kubernetes-list-type" = "atomic"))]
    pub aggregation_errors: Vec<AggregationError>,
}

/// One row of an answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResultRow {
    /// The values, in the order of the columns' names.
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub columns: Vec<TypedValue>,
}

/// A typed value: the field that goes with the type is set, and no other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TypedValue {
    /// The value's type: String, Number, Bool, Null, Object or Array.
    #[serde(rename = "type")]
    pub type_: ValueType,

    /// The value, if it is a string.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string: Option<String>,

    /// The value, if it is a number: as JSON writes it, so that no digit is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?$"))]
    pub number: Option<String>,

    /// The value, if it is a boolean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bool: Option<bool>,

    /// The value, if it is an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any_object")]
    pub object: Option<Json>,

    /// The value, if it is an array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_array")]
    pub array: Option<Json>,
}

/// The type of a [`TypedValue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ValueType {
    /// Text.
    String,
    /// A number.
    Number,
    /// True or false.
    Bool,
    /// Nothing: the value is missing or null.
    Null,
    /// A JSON object.
    Object,
    /// A JSON array.
    Array,
}

fn any_array(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "atomic",
        "items": { "x-kubernetes-preserve-unknown-fields": true },
    })
}

/// A row that could not be evaluated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RowError {
    /// The cluster whose row it is.
    #[schemars(length(max = 253))]
    pub cluster: String,

    /// The column whose value failed; empty for the filter.
    #[serde(default)]
    #[schemars(length(max = 63))]
    pub column: String,

    /// What failed.
    #[schemars(length(max = 1024))]
    pub error: String,
}

/// Values that could not be combined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AggregationError {
    /// The column.
    #[schemars(length(max = 63))]
    pub column: String,

    /// What failed.
    #[schemars(length(max = 1024))]
    pub error: String,
}
