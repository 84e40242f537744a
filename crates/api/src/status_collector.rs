//! `StatusCollector`: how to combine the state of one object over many clusters.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    expression::Expression,
    schema::{self, rule},
};

/// A query over the clusters that an object is bound to, with one row for each: like an SQL SELECT.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bellwether.dev",
    version = "v1alpha1",
    kind = "StatusCollector",
    doc = "A StatusCollector says how to combine what many clusters report of one object, in the manner of an SQL SELECT. \
           BindingPolicies name the collectors that they use; the answers appear in CombinedStatus objects.",
    status = "StatusCollectorStatus",
    derive = "PartialEq",
    shortname = "bwsc",
    category = "bellwether",
    printcolumn(
        name = "Valid",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Valid\")].status",
        description = "Whether its expressions can be understood"
    ),
    printcolumn(
        name = "Limit",
        type_ = "integer",
        json_path = ".spec.limit",
        description = "The most rows of its answer"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Valid\")].message",
        priority = 1,
        description = "What is wrong with the collector, and where"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule(
        "!has(self.select) || size(self.select) == 0 || !has(self.groupBy) || size(self.groupBy) == 0",
        "select excludes groupBy: give select to list clusters one by one, or groupBy and combinedFields to combine them",
    ),
    rule(
        "!has(self.select) || size(self.select) == 0 || !has(self.combinedFields) || size(self.combinedFields) == 0",
        "select excludes combinedFields: give select to list clusters one by one, or groupBy and combinedFields to \
         combine them",
    ),
    rule(
        "(has(self.select) && size(self.select) > 0) || (has(self.groupBy) && size(self.groupBy) > 0) || \
         (has(self.combinedFields) && size(self.combinedFields) > 0)",
        "a collector needs columns: give select to list clusters one by one, or groupBy and combinedFields to combine \
         them",
    ),
    rule(
        "!has(self.groupBy) || !has(self.combinedFields) || \
         self.groupBy.all(group, !self.combinedFields.exists(field, field.name == group.name))",
        "two columns have the same name: name the fields of groupBy and combinedFields differently",
    ),
    rule(
        "!has(self.orderBy) || self.orderBy.all(order, \
         (has(self.select) && self.select.exists(column, column.name == order.column)) || \
         (has(self.groupBy) && self.groupBy.exists(column, column.name == order.column)) || \
         (has(self.combinedFields) && self.combinedFields.exists(column, column.name == order.column)))",
        "orderBy names a column that is not there: use the name of a field of select, groupBy or combinedFields",
    ),
]))]
pub struct StatusCollectorSpec {
    /// Which rows count, like WHERE: a CEL string, or a tree of operations. Null is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Expression>,

    /// How rows are grouped before they are combined, like GROUP BY. Each name is also a column of the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"]
    ))]
    pub group_by: Vec<NamedExpression>,

    /// What is computed over each group. Without groupBy, all rows are one group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"]
    ))]
    pub combined_fields: Vec<CombinedField>,

    /// The columns of an answer with one row for each cluster. It excludes groupBy and combinedFields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"]
    ))]
    pub select: Vec<NamedExpression>,

    /// The order of the rows; by the groupBy values, then by cluster, where it is not given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["column"]
    ))]
    pub order_by: Vec<OrderBy>,

    /// The most rows of the answer: 20 by default, 1000 at most. The rest is cut after ordering, and the answer says so.
    #[serde(default = "default_limit")]
    #[schemars(range(min = 1, max = 1000))]
    pub limit: i64,
}

impl Default for StatusCollectorSpec {
    fn default() -> Self {
        Self {
            filter: None,
            group_by: Vec::new(),
            combined_fields: Vec::new(),
            select: Vec::new(),
            order_by: Vec::new(),
            limit: default_limit(),
        }
    }
}

fn default_limit() -> i64 {
    20
}

/// A column, and where its values come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("required" = ["name", "def"]))]
pub struct NamedExpression {
    /// The column's name.
    #[schemars(schema_with = "column_name")]
    pub name: String,

    /// The column's value in a row: a CEL string, or a tree of operations.
    // Required, and yet optional here: a server-side apply can store a null as nothing, and one such object must not
    // make all of them unreadable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub def: Option<Expression>,
}

/// A column that is computed over the rows of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CombinedField {
    /// The column's name.
    #[schemars(schema_with = "column_name")]
    pub name: String,

    /// What is computed: COUNT, SUM, AVG, MIN or MAX.
    #[serde(rename = "type")]
    pub type_: Aggregator,

    /// What it is computed of: a CEL string, or a tree of operations. COUNT without it counts rows; with it, and for all
    /// others, nulls are passed over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Expression>,
}

/// How the values of a group become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Aggregator {
    /// How many there are.
    Count,
    /// Their sum.
    Sum,
    /// Their mean.
    Avg,
    /// The least of them.
    Min,
    /// The greatest of them.
    Max,
}

/// A column to order by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OrderBy {
    /// The column's name.
    #[schemars(schema_with = "column_name")]
    pub column: String,

    /// From the greatest to the least.
    #[serde(default)]
    pub descending: bool,
}

fn column_name(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "string",
        "maxLength": 63,
        "x-kubernetes-validations": [rule(
            "self.matches('^[^\\\\s\\\\pC]([^\\\\pC]*[^\\\\s\\\\pC])?$')",
            "this is no name of a column: use 1 to 63 characters, without spaces at its ends",
        )],
    })
}

/// Whether the collector can be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusCollectorStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Valid: every expression can be understood.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// What is wrong with the expressions, each with its exact place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 1024)), extend("x-kubernetes-list-type" = "atomic"))]
    pub errors: Vec<String>,
}
