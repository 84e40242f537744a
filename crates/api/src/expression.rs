//! Expressions as users write them: a CEL string or a tree.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An expression over one row of the input table: a CEL string or a tree of operations.
///
/// The API server does not validate it: a structural schema can describe neither a value of two types nor a
/// recursive tree. The status of the object reports errors and their places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Expression(pub Value);

impl Expression {
    /// A CEL expression.
    pub fn cel(text: impl Into<String>) -> Self {
        Self(Value::String(text.into()))
    }

    /// A tree for the value at a path such as `$.status.phase`.
    pub fn path(path: &str) -> Self {
        Self(json!({ "op": "Path", "path": path }))
    }

    /// A tree for an operation on other expressions.
    pub fn operation(op: &str, args: impl IntoIterator<Item = Self>) -> Self {
        let args: Vec<Value> = args.into_iter().map(|arg| arg.0).collect();
        Self(json!({ "op": op, "args": args }))
    }
}

impl JsonSchema for Expression {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Expression".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
    }
}
