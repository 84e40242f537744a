//! The object and the row of the tables, and how the tests print values.

use bellwether_expr::{Absence, Fuel, Input, Program, Scope, Stop, Val, Variables};
use bellwether_model::{Object, Plan, Value};

/// An object with values of every type.
pub(crate) const WIDGET: &str = r#"{
  "apiVersion": "acme.io/v1", "kind": "Widget",
  "metadata": {"name": "wheel", "generation": 4, "labels": {"app.kubernetes.io/name": "wheel", "tier": "gold"}},
  "spec": {
    "replicas": 5, "ratio": 0.5, "paused": false, "parts": ["hub", "rim", "spoke"], "sizes": [3, 1, 2],
    "limits": {"memory": "250Mi", "cpu": "100m"}, "empty": {}, "none": [], "nothing": null, "holes": [1, null]
  },
  "status": {
    "phase": "Up", "ready": 5, "observed": "4", "largest": 9223372036854775807, "beyond": 18446744073709551615,
    "conditions": [{"type": "Ready", "status": "True"}, {"type": "Stalled", "status": "False", "reason": "Fine"}]
  }
}"#;

/// A row: an object in one cluster. What the cluster returned differs from the copy of the hub.
pub(crate) const ROW: [&str; 4] = [
    r#"{"name": "north", "uid": "u-1", "labels": {"region": "eu"}, "annotations": {}}"#,
    r#"{"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 3}, "status": {"phase": "of the hub"}}"#,
    r#"{"metadata": {"name": "web"}, "spec": {"replicas": 2}, "status": {"phase": "Up", "availableReplicas": 2}}"#,
    r#"{"found": true, "stale": false, "health": "Ready", "observedGeneration": null}"#,
];

pub(crate) fn object(json: &str) -> Object<'_> {
    Object::from_json(json.as_bytes(), &Plan::whole()).expect("the object of the test")
}

/// The value of a CEL expression on the widget, as text.
pub(crate) fn of_widget(text: &str, absence: Absence) -> String {
    let widget = object(WIDGET);
    match Program::cel(text, &Scope::object(absence)) {
        Ok(program) => result(&program, &widget),
        Err(compile_error) => format!("mistake: {compile_error}"),
    }
}

/// The value of a program on the row, as text.
pub(crate) fn of_row(program: &Program) -> String {
    let columns = ROW.map(object);
    let values = columns.iter().map(|column| Some(Val::from(column.fields()))).collect();
    result(program, &Variables(values))
}

/// The value of a program on an input, or why there is none.
pub(crate) fn result(program: &Program, input: &dyn Input) -> String {
    match program.evaluate(input, &mut Fuel::default()) {
        Ok(value) => shown(&value),
        Err(stop @ Stop::Missing(_)) => format!("missing: {}", program.describe(&stop)),
        Err(stop @ Stop::Error(_)) => format!("error: {}", program.describe(&stop)),
        Err(Stop::TooExpensive) => "too expensive".to_owned(),
    }
}

/// A value with its type: `1`, `1u` and `1.0` differ.
pub(crate) fn shown(value: &Val<'_>) -> String {
    let written = || match value.to_value() {
        Some(Value::Text(text)) => text.into_owned(),
        other => format!("{other:?}"),
    };
    match value {
        Val::Null => "null".to_owned(),
        Val::Bool(truth) => truth.to_string(),
        Val::Int(number) => number.to_string(),
        Val::Uint(number) => format!("{number}u"),
        Val::Double(number) => format!("{number:?}"),
        Val::Text(text) => format!("{:?}", &**text),
        Val::Bytes(bytes) => format!("b{:?}", bytes.escape_ascii().to_string()),
        Val::List(list) => format!("[{}]", joined(list.iter().map(|entry| shown(&entry)))),
        Val::Map(fields) => {
            let fields = fields.iter().map(|(key, field)| format!("{}: {}", shown(&key), shown(&field)));
            format!("{{{}}}", joined(fields))
        }
        Val::Timestamp(_) => format!("timestamp {}", written()),
        Val::Duration(_) => format!("duration {}", written()),
        Val::Quantity(_) => format!("quantity {}", written()),
        Val::Type(own) => format!("type {}", own.name()),
        Val::Optional(None) => "none".to_owned(),
        Val::Optional(Some(inner)) => format!("some({})", shown(inner)),
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}
