//! The input of a query: one object in one cluster.

use std::borrow::Cow;

use bellwether_expr::{Absent, Input, Path, Val};
use bellwether_model::{State, Value};

/// The variables of a row. `Value::Null` where there is nothing.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// The cluster: name, labels, annotations, uid.
    pub inventory: &'a Value<'a>,
    /// The object in the hub.
    pub obj: &'a Value<'a>,
    /// The object in the cluster, with its status.
    pub returned: &'a Value<'a>,
    /// What is known of the object in the cluster, and how current that is.
    pub propagation: &'a Value<'a>,
}

/// In the order of [`Scope::row`](bellwether_expr::Scope::row).
impl Input for Row<'_> {
    fn read<'v>(&'v self, _: usize, path: &Path, passed: &mut usize) -> Result<Val<'v>, Absent> {
        let variable = match path.root() {
            0 => self.inventory,
            1 => self.obj,
            2 => self.returned,
            _ => self.propagation,
        };
        path.find(variable, passed).map(Val::from)
    }
}

/// The variable `returned` of an object in a cluster: its spec, its status, and its metadata without managed
/// fields.
pub fn returned(object: &Value<'_>) -> Value<'static> {
    let metadata = object.get("metadata").map(|metadata| match metadata {
        Value::Map(fields) => {
            let fields = fields.iter().filter(|(name, _)| *name != "managedFields");
            Value::Map(fields.map(|(name, value)| (Cow::Owned(name.to_owned()), value.to_static())).collect())
        }
        other => other.to_static(),
    });
    let part = |name: &'static str| Some((name, object.get(name)?.to_static()));
    let fields = [metadata.map(|metadata| ("metadata", metadata)), part("spec"), part("status")];
    Value::Map(fields.into_iter().flatten().map(|(name, value)| (Cow::Borrowed(name), value)).collect())
}

/// What the variable `propagation` is made from.
#[derive(Clone, Debug)]
pub struct Propagation {
    /// Whether the object exists in the cluster; `None` if that is not known.
    pub found: Option<bool>,
    pub stale: bool,
    pub health: State,
    pub progress: Option<u8>,
    pub observed_generation: Option<i64>,
    /// See [`last_status_update`].
    pub last_update: Option<String>,
}

impl Propagation {
    pub fn variable(self) -> Value<'static> {
        let fields = [
            ("found", self.found.map_or(Value::Null, Value::Bool)),
            ("stale", Value::Bool(self.stale)),
            ("health", Value::Text(self.health.name().into())),
            ("progress", self.progress.map_or(Value::Null, |progress| Value::Int(progress.into()))),
            ("observedGeneration", self.observed_generation.map_or(Value::Null, Value::Int)),
            (
                "lastReturnedUpdateTimestamp",
                self.last_update.map_or(Value::Null, |time| Value::Text(time.into())),
            ),
        ];
        Value::Map(fields.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

/// When the status of an object was written last, by the managed fields; of a kind without a status subresource,
/// when the object was. RFC 3339 in UTC sorts like the time.
pub fn last_status_update(object: &Value<'_>) -> Option<String> {
    let writes = object.at("metadata.managedFields").and_then(Value::as_list).unwrap_or_default();
    let time = |write: &Value<'_>| write.get("time").and_then(Value::as_text).map(str::to_owned);
    let is_status = |write: &&Value<'_>| write.get("subresource").and_then(Value::as_text) == Some("status");
    let of_status = writes.iter().filter(is_status).filter_map(time).max();
    of_status.or_else(|| writes.iter().filter_map(time).max())
}

#[cfg(test)]
mod tests {
    use bellwether_model::{Object, Plan};
    use serde_json::json;

    use super::*;

    #[test]
    fn the_object_in_a_cluster_has_three_parts() {
        let object = r#"{
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}, "status": {"ready": true},
            "metadata": {"name": "web", "managedFields": [{"manager": "kubectl"}]}
        }"#;
        let object = Object::from_json(object.as_bytes(), &Plan::all_of(&[])).unwrap();
        assert_eq!(
            json!(returned(object.fields())),
            json!({"metadata": {"name": "web"}, "status": {"ready": true}})
        );
        assert_eq!(json!(returned(&Value::Null)), json!({}));
    }
}
