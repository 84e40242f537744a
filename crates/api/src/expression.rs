//! Expressions as users write them: CEL text, or a tree.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// An expression over one row of the input table: a CEL string, or a tree of operations.
///
/// It is kept as it was written. Whether it means anything is said in the status of the object that carries it, with the
/// exact place of a mistake, because a structural schema can describe neither a value of two types nor a tree that
/// contains itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Expression(pub Value);

impl Expression {
    /// An expression in CEL.
    pub fn cel(text: impl Into<String>) -> Self {
        Self(Value::String(text.into()))
    }

    /// The value at a path such as `$.status.phase`, as a tree.
    pub fn path(path: &str) -> Self {
        Self(json!({ "op": "Path", "path": path }))
    }

    /// An operation on other expressions, as a tree.
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
