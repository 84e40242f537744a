//! `StatusCollector`: how to combine the state of one object in many clusters.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    expression::Expression,
    schema::{self, rule},
};

/// A query like an SQL SELECT. Its input has one row for each cluster that the object is bound to.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "bellwether.dev",
    version = "v1alpha1",
    kind = "StatusCollector",
    doc = "A StatusCollector combines the state of one object in many clusters, like an SQL SELECT. BindingPolicies \
           name the collectors that they use. Bellwether writes the results to CombinedStatus objects.",
    status = "StatusCollectorStatus",
    derive = "PartialEq",
    shortname = "bwsc",
    category = "bellwether",
    printcolumn(
        name = "Valid",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Valid\")].status",
        description = "Whether all expressions are valid"
    ),
    printcolumn(
        name = "Limit",
        type_ = "integer",
        json_path = ".spec.limit",
        description = "The maximum number of rows in a result"
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Valid\")].message",
        priority = 1,
        description = "The errors in the collector"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule(
        "!has(self.select) || size(self.select) == 0 || !has(self.groupBy) || size(self.groupBy) == 0",
        "set either select or groupBy: select lists clusters one by one, groupBy and combinedFields combine them",
    ),
    rule(
        "!has(self.select) || size(self.select) == 0 || !has(self.combinedFields) || size(self.combinedFields) == 0",
        "set either select or combinedFields: select lists clusters one by one, groupBy and combinedFields combine them",
    ),
    rule(
        "(has(self.select) && size(self.select) > 0) || (has(self.groupBy) && size(self.groupBy) > 0) || \
         (has(self.combinedFields) && size(self.combinedFields) > 0)",
        "set select to list clusters one by one, or groupBy or combinedFields to combine them",
    ),
    rule(
        "!has(self.groupBy) || !has(self.combinedFields) || \
         self.groupBy.all(group, !self.combinedFields.exists(field, field.name == group.name))",
        "duplicate column: use different names in groupBy and combinedFields",
    ),
    rule(
        "!has(self.orderBy) || self.orderBy.all(order, \
         (has(self.select) && self.select.exists(column, column.name == order.column)) || \
         (has(self.groupBy) && self.groupBy.exists(column, column.name == order.column)) || \
         (has(self.combinedFields) && self.combinedFields.exists(column, column.name == order.column)))",
        "unknown column in orderBy: use the name of a column in select, groupBy or combinedFields",
    ),
]))]
pub struct StatusCollectorSpec {
    /// Which rows count, like WHERE: a CEL string or a tree of operations. Null counts as false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<Expression>,

    /// How to group rows before they are combined, like GROUP BY. Each entry is also a column of the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"]
    ))]
    pub group_by: Vec<NamedExpression>,

    /// The columns that are computed over each group. Without groupBy, all rows are one group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"]
    ))]
    pub combined_fields: Vec<CombinedField>,

    /// The columns of a result with one row for each cluster. Not allowed with groupBy or combinedFields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"]
    ))]
    pub select: Vec<NamedExpression>,

    /// The order of the rows. Defaults to the values of groupBy, then the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["column"]
    ))]
    pub order_by: Vec<OrderBy>,

    /// The maximum number of rows in the result. Rows beyond it are dropped after ordering, and `truncated`
    /// is set. Defaults to 20; at most 1000.
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

/// A column and the expression for its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("required" = ["name", "def"]))]
pub struct NamedExpression {
    /// The name of the column.
    #[schemars(schema_with = "column_name")]
    pub name: String,

    /// The value in a row: a CEL string or a tree of operations.
    // Required by the schema but optional here: server-side apply stores a null as an absent field, and
    // decoding must not fail for all collectors because of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub def: Option<Expression>,
}

/// A column that is computed over the rows of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CombinedField {
    /// The name of the column.
    #[schemars(schema_with = "column_name")]
    pub name: String,

    /// The aggregate function: COUNT, SUM, AVG, MIN or MAX.
    #[serde(rename = "type")]
    pub type_: Aggregator,

    /// The argument of the function: a CEL string or a tree of operations. Nulls are ignored. Optional for
    /// COUNT, which counts rows without it; required for all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Expression>,
}

/// An aggregate function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Aggregator {
    /// The number of rows, or of values that are not null.
    Count,
    /// The sum of the values.
    Sum,
    /// The arithmetic mean of the values.
    Avg,
    /// The least value.
    Min,
    /// The greatest value.
    Max,
}

/// A column to order by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OrderBy {
    /// The name of the column.
    #[schemars(schema_with = "column_name")]
    pub column: String,

    /// Whether to sort from the greatest to the least value. Defaults to false.
    #[serde(default)]
    pub descending: bool,
}

fn column_name(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "string",
        "maxLength": 63,
        "x-kubernetes-validations": [rule(
            "self.matches('^[^\\\\s\\\\pC]([^\\\\pC]*[^\\\\s\\\\pC])?$')",
            "invalid column name: use 1 to 63 characters, without spaces at the start or end",
        )],
    })
}

/// The observed state of the collector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusCollectorStatus {
    /// The metadata.generation that this status was computed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// Valid: every expression compiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,

    /// The errors in the expressions, each with its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(max = 1024)), extend("x-kubernetes-list-type" = "atomic"))]
    pub errors: Vec<String>,
}
