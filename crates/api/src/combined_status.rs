//! `CombinedStatus`: the combined state of one object in many clusters.

use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::schema;

/// The namespace of the CombinedStatuses for cluster-scoped objects.
pub const REPORT_NAMESPACE: &str = "bellwether-report";

/// The labels of a CombinedStatus.
pub mod combined_status_labels {
    /// The API group of the workload object.
    pub const API_GROUP: &str = "status.bellwether.dev/api-group";
    /// The resource of the workload object, such as deployments.
    pub const RESOURCE: &str = "status.bellwether.dev/resource";
    /// The namespace of the workload object.
    pub const NAMESPACE: &str = "status.bellwether.dev/namespace";
    /// The name of the workload object.
    pub const NAME: &str = "status.bellwether.dev/name";
    /// The BindingPolicy that binds the workload object.
    pub const BINDING_POLICY: &str = "status.bellwether.dev/binding-policy";
}

/// The results of the StatusCollectors of one BindingPolicy for one workload object.
///
/// The fields are at the top level, beside `metadata`: the whole object is status and has no spec.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bellwether.dev",
    version = "v1alpha1",
    kind = "CombinedStatus",
    plural = "combinedstatuses",
    doc = "A CombinedStatus holds the results of the StatusCollectors of one BindingPolicy for one workload object in all \
           clusters that it is bound to. Bellwether writes it.",
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
        description = "The BindingPolicy that binds the workload object"
    ),
    printcolumn(
        name = "Clusters",
        type_ = "integer",
        json_path = ".clusters.bound",
        description = "The number of clusters that the object is bound to"
    ),
    printcolumn(
        name = "Reporting",
        type_ = "integer",
        json_path = ".clusters.reporting",
        description = "The number of clusters that report the object"
    ),
    printcolumn(
        name = "Stale",
        type_ = "integer",
        json_path = ".clusters.stale",
        description = "The number of stale clusters"
    ),
    printcolumn(
        name = "Missing",
        type_ = "integer",
        json_path = ".clusters.missing",
        description = "The number of clusters without the object"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct CombinedStatusFields {
    /// One result for each StatusCollector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1024), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"]
    ))]
    pub results: Vec<CombinedResult>,

    /// The number of clusters that the results cover.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clusters: Option<ClusterCounts>,
}

/// The number of clusters that an object is bound to, by what they report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterCounts {
    /// Clusters that the object is bound to.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub bound: i32,
    /// Clusters that report the object.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub reporting: i32,
    /// Clusters that are stale: Bellwether has received nothing from them for the stalenessThreshold of the
    /// policy.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub stale: i32,
    /// Clusters that do not have the object.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub missing: i32,
    /// The first of the clusters that do not report the object: stale ones, then those without it, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_NOT_REPORTING), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"]
    ))]
    pub not_reporting: Vec<NotReporting>,
}

/// The maximum number of clusters in `clusters.notReporting`.
pub const MAX_NOT_REPORTING: usize = 16;

/// A cluster that does not report an object that is bound to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotReporting {
    /// The name of the cluster.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,

    /// Stale or Missing.
    pub reason: NotReportingReason,
}

/// Why a cluster does not report an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum NotReportingReason {
    /// Bellwether has received nothing from the cluster for the stalenessThreshold of the policy, or cannot
    /// read the kind there.
    Stale,
    /// The cluster does not have the object.
    Missing,
}

/// The result of one StatusCollector: a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CombinedResult {
    /// The name of the StatusCollector.
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

    /// The number of rows before the limit of the StatusCollector.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub total_rows: i64,

    /// Whether rows were dropped because of the limit, or because the object would be too large.
    #[serde(default)]
    pub truncated: bool,

    /// The number of rows that are left out because an expression failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub failed_rows: i64,

    /// Errors of rows that could not be evaluated: at most ten, or one for each column with errors if those are
    /// more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), extend("x-kubernetes-list-type" = "atomic"))]
    pub row_errors: Vec<RowError>,

    /// Values that could not be combined: at least one for each column with errors.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), extend("x-kubernetes-list-type" = "atomic"))]
    pub aggregation_errors: Vec<AggregationError>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// A row of a result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResultRow {
    /// The values, in the order of columnNames.
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub columns: Vec<TypedValue>,
}

/// A typed value. Only the field for its type is set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TypedValue {
    /// The type of the value: String, Number, Bool, Null, Object or Array.
    #[serde(rename = "type")]
    pub type_: ValueType,

    /// The value, if type is String.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string: Option<String>,

    /// The value, if type is Number: the JSON number as a string, so that no digit is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), regex(pattern = r"^-?(0|[1-9][0-9]*)([.][0-9]+)?([eE][+-]?[0-9]+)?$"))]
    pub number: Option<String>,

    /// The value, if type is Bool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bool: Option<bool>,

    /// The value, if type is Object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::any_object")]
    pub object: Option<Json>,

    /// The value, if type is Array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_array")]
    pub array: Option<Json>,
}

/// The type of a [`TypedValue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ValueType {
    /// A string.
    String,
    /// A number.
    Number,
    /// True or false.
    Bool,
    /// The value is missing or null.
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
    /// The cluster of the row.
    #[schemars(length(max = 253))]
    pub cluster: String,

    /// The column whose expression failed; empty for the filter.
    #[serde(default)]
    #[schemars(length(max = 63))]
    pub column: String,

    /// The error.
    #[schemars(length(max = 1024))]
    pub error: String,
}

/// Values that could not be combined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AggregationError {
    /// The column whose values could not be combined.
    #[schemars(length(max = 63))]
    pub column: String,

    /// The error.
    #[schemars(length(max = 1024))]
    pub error: String,
}
