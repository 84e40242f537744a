//! What the API server does before validation: it drops nulls and sets defaults.

use std::borrow::Cow;

use bellwether_model::{Map, Value};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps as Schema, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// Drops null fields, and one more field at the top level.
pub(super) fn without_nulls<'a>(value: &Value<'a>, dropped: Option<&str>) -> Value<'a> {
    match value {
        Value::Map(map) => {
            let stays =
                |(name, value): &(&str, &Value<'_>)| !matches!(value, Value::Null) && dropped != Some(*name);
            let fields = map.iter().filter(stays);
            Value::Map(
                fields.map(|(name, value)| (name.to_owned().into(), without_nulls(value, None))).collect(),
            )
        }
        Value::List(list) => Value::List(list.iter().map(|value| without_nulls(value, None)).collect()),
        other => other.clone(),
    }
}

/// Sets the defaults of the schema.
pub(super) fn with_defaults<'a>(schema: &Schema, value: Value<'a>) -> Value<'a> {
    match value {
        Value::Map(map) => {
            let known = |name: &str| {
                let known = schema.properties.as_ref().and_then(|properties| properties.get(name));
                known.or(match &schema.additional_properties {
                    Some(JSONSchemaPropsOrBool::Schema(schema)) => Some(schema),
                    _ => None,
                })
            };
            let mut fields: Vec<(Cow<'a, str>, Value<'a>)> = Vec::new();
            for (name, value) in map.iter() {
                let value = match known(name) {
                    Some(schema) => with_defaults(schema, value.clone()),
                    None => value.clone(),
                };
                fields.push((name.to_owned().into(), value));
            }
            for (name, schema) in schema.properties.iter().flatten() {
                if let Some(default) = schema.default.as_ref().filter(|_| map.get(name).is_none()) {
                    fields.push((name.clone().into(), with_defaults(schema, of_json(&default.0))));
                }
            }
            Value::Map(fields.into_iter().collect::<Map<'_>>())
        }
        Value::List(list) => match &schema.items {
            Some(JSONSchemaPropsOrArray::Schema(schema)) => {
                Value::List(list.into_iter().map(|value| with_defaults(schema, value)).collect())
            }
            _ => Value::List(list),
        },
        other => other,
    }
}

fn of_json(json: &serde_json::Value) -> Value<'static> {
    match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(truth) => Value::Bool(*truth),
        serde_json::Value::Number(number) => {
            number.as_i64().map(Value::Int).or_else(|| number.as_f64().map(Value::Float)).unwrap_or_default()
        }
        serde_json::Value::String(text) => Value::Text(text.clone().into()),
        serde_json::Value::Array(list) => Value::List(list.iter().map(of_json).collect()),
        serde_json::Value::Object(map) => {
            Value::Map(map.iter().map(|(name, value)| (name.clone().into(), of_json(value))).collect())
        }
    }
}
