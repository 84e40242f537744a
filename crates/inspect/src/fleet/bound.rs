//! Collectors over the rows of bound objects that a controller keeps, completed by objects that were read for them.

use std::{collections::BTreeSet, sync::Arc};

use bellwether_engine::{BoundRow, GroupKind, RowVariables};
use bellwether_health::Context;
use bellwether_model::{LAST_APPLIED, Object, State, Value};
use bellwether_tables::{Collector, Row, returned};
use jiff::Timestamp;

use super::{
    Evaluated, Fields, ObjectKey, Shape,
    found::{FoundObject, map, missing, unread},
    rows::{Presence, Rows, row_name},
};

/// Evaluates collectors over rows, as [`tables`](super::tables) does over what was read of clusters. The rows have
/// variables, and are in the order of their keys.
pub fn tables_of_bound(
    rows: &[BoundRow],
    kind: &GroupKind,
    collectors: &[Arc<Collector>],
    shape: Shape,
) -> Vec<Evaluated> {
    let of_objects = rows.chunk_by(|one, next| one.key.object == next.key.object);
    match shape {
        Shape::TableForEachObject => {
            let table = |of_object: &[BoundRow]| {
                let mut table = Rows::new(collectors);
                for row in of_object {
                    add(&mut table, row, &row.key.cluster);
                }
                let object = of_object.first().map(|row| row.key.object.clone());
                table.evaluated(object.map(|name| ObjectKey { kind: kind.clone(), name }))
            };
            of_objects.map(table).collect()
        }
        Shape::OneTable => {
            let is_one = of_objects.count() <= 1;
            let mut table = Rows::new(collectors);
            for row in rows {
                let cluster = &row.key.cluster;
                let name = if is_one { Arc::clone(cluster) } else { row_name(cluster, &row.key.object) };
                add(&mut table, row, &name);
            }
            vec![table.evaluated(None)]
        }
    }
}

fn add(table: &mut Rows, row: &BoundRow, name: &Arc<str>) {
    let Some(variables) = row.variables.as_deref() else { return };
    let RowVariables { inventory, obj, returned, propagation } = variables;
    let presence = match row.found {
        _ if row.stale => Presence::Stale,
        Some(true) => Presence::Reporting,
        _ => Presence::Missing,
    };
    let (obj, returned) = (obj.as_deref().unwrap_or(&Value::Null), returned.as_ref().unwrap_or(&Value::Null));
    table.push((&row.key.cluster, presence), name, &Row { inventory, obj, returned, propagation });
}

/// Reads the fields that collectors read from the JSON of an object.
#[derive(Debug)]
pub struct Completion<'f> {
    pub kind: &'f GroupKind,
    pub fields: &'f Fields,
}

impl Completion<'_> {
    /// The variable `obj`, from the object in the hub. The error says why it is not an object.
    pub fn obj(&self, json: &[u8]) -> Result<Value<'static>, String> {
        Ok(self.found(json)?.fields)
    }

    /// The object in the cluster: the verdict is the one that the controller knows.
    pub fn complete(&self, row: &mut BoundRow, json: Option<&[u8]>) {
        let Some(variables) = row.variables.as_deref_mut() else { return };
        // It was deleted since. The engine will know soon.
        let Some(json) = json else {
            (variables.returned, variables.propagation) = (Some(Value::Null), missing());
            (row.found, row.state, row.progress) = (Some(false), State::Missing, Some(0));
            return;
        };
        match self.found(json) {
            Ok(found) => {
                variables.returned = Some(returned(&found.fields));
                variables.propagation = with_times(&variables.propagation, &found.propagation);
            }
            Err(_) => Self::unread(row),
        }
    }

    /// The cluster did not answer.
    pub fn unread(row: &mut BoundRow) {
        (row.found, row.stale) = (None, true);
        if let Some(variables) = row.variables.as_deref_mut() {
            (variables.returned, variables.propagation) = (Some(Value::Null), unread());
        }
    }

    fn found(&self, json: &[u8]) -> Result<FoundObject, String> {
        let mut plan = self.fields.to_decode();
        // It has the data, which is not requested otherwise.
        if self.kind.holds_data() {
            plan.leave_out(&["metadata", "annotations", LAST_APPLIED]);
        }
        let object = Object::from_json(json, &plan).map_err(|error| error.to_string())?;
        // Of a Secret, only the metadata was requested: its kind is PartialObjectMetadata.
        let version = object.at("apiVersion").and_then(Value::as_text).unwrap_or_default().to_owned();
        let object = object.of_kind(version, &*self.kind.kind);
        Ok(FoundObject::of(&object, &Context::at(Timestamp::now()), &self.fields.to_keep()))
    }
}

/// What depends on fields that the controller may not have kept.
const FROM_FIELDS: [&str; 2] = ["lastReturnedUpdateTimestamp", "observedGeneration"];

fn with_times(known: &Value<'static>, read: &Value<'static>) -> Value<'static> {
    let fields: BTreeSet<&'static str> =
        ["found", "stale", "lastReturnedUpdateTimestamp", "observedGeneration", "health", "progress"].into();
    map(fields.into_iter().map(|field| {
        let from = if FROM_FIELDS.contains(&field) { read } else { known };
        (field, from.get(field).cloned().unwrap_or(Value::Null))
    }))
}

/// Whether every variable is known.
pub fn is_complete(row: &BoundRow) -> bool {
    row.variables.as_deref().is_some_and(|variables| variables.obj.is_some() && variables.returned.is_some())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    #[test]
    fn the_last_applied_configuration_of_a_secret_is_not_read() {
        let json = br#"{"metadata": {"name": "db", "annotations": {"a": "b",
            "kubectl.kubernetes.io/last-applied-configuration": "SECRET"}}}"#;
        for path in [
            "",
            ".metadata",
            ".metadata.annotations",
            ".metadata.annotations['kubectl.kubernetes.io/last-applied-configuration']",
        ] {
            let spec = serde_json::json!({"select": [{"name": "it", "def": format!("obj{path}")}]});
            let collector = Collector::compile(&serde_json::from_value(spec).unwrap()).unwrap();
            let (kind, fields) = (GroupKind::new("", "Secret"), Fields::of([&collector]));
            let obj = Completion { kind: &kind, fields: &fields }.obj(json).unwrap();
            assert!(!format!("{obj:?}").contains("SECRET"), "obj{path}: {obj:?}");
        }
    }

    #[test]
    fn only_what_was_not_kept_comes_from_the_object() {
        let text = |text: &'static str| Value::Text(Cow::Borrowed(text));
        let known = map([("health", text("Ready")), ("observedGeneration", Value::Null)]);
        let read = map([("health", text("Failed")), ("observedGeneration", Value::Int(3))]);
        let both = with_times(&known, &read);
        assert_eq!(both.get("health").and_then(Value::as_text), Some("Ready"));
        assert_eq!(both.get("observedGeneration").and_then(Value::as_int), Some(3));
    }
}
