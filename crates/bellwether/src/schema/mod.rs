//! Validates an object of `bellwether.dev` against the schema of its kind, as the API server does.
//!
//! The tests use the same table of objects as the tests of the CRDs on a real API server.

mod cel;
mod metadata;
mod prepare;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::LazyLock};

use bellwether_api::{GROUP, VERSION, crds};
pub(crate) use bellwether_model::name::{MAX_NAME, NAME_RULE, is_name};
use bellwether_model::{Object, Plan, Value};
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps as Schema, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use regex::Regex;

use self::metadata::METADATA;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FieldError {
    /// The path of the field, such as `spec.cel[0].state`.
    pub(crate) field: String,
    pub(crate) message: String,
}

pub(crate) struct KindSchema {
    schema: Schema,
    /// Whether the kind has a status subresource: the API server then drops the status that a user writes.
    drops_status: bool,
}

/// Built once: generating the CRDs is slow.
static SCHEMAS: LazyLock<BTreeMap<String, KindSchema>> = LazyLock::new(|| {
    let of = |crd: CustomResourceDefinition| {
        let version = crd.spec.versions.into_iter().next()?;
        let drops_status = version.subresources.is_some_and(|parts| parts.status.is_some());
        let schema = version.schema?.open_api_v3_schema?;
        Some((crd.spec.names.kind, KindSchema { schema, drops_status }))
    };
    crds().into_iter().filter_map(of).collect()
});

impl KindSchema {
    /// `None` if `bellwether.dev` has no such kind.
    pub(crate) fn of(kind: &str) -> Option<&'static Self> {
        SCHEMAS.get(kind)
    }

    pub(crate) fn kinds() -> Vec<&'static str> {
        SCHEMAS.keys().map(String::as_str).collect()
    }

    pub(crate) fn check(&self, object: &Value<'_>) -> Vec<FieldError> {
        let mut check = Check { errors: Vec::new() };
        let object = prepare::without_nulls(object, if self.drops_status { Some("status") } else { None });
        let object = prepare::with_defaults(&self.schema, object);
        check.fields(&self.schema, &object, "", &["apiVersion", "kind", "metadata"]);
        if let Some(metadata) = object.get("metadata") {
            check.value(&METADATA, metadata, "metadata");
        }
        if check.errors.is_empty() {
            check.rules(&self.schema, &object, "");
        }
        check.errors
    }
}

/// The errors for which the API server would reject the creation of an object.
pub(crate) fn errors_in(manifest: &serde_json::Value) -> Vec<FieldError> {
    let json = manifest.to_string();
    let in_kind = |message: String| vec![FieldError { field: "kind".to_owned(), message }];
    let object = match Object::from_json(json.as_bytes(), &Plan::whole()) {
        Ok(object) => object,
        Err(error) => return in_kind(error.to_string()),
    };
    let Some(schema) = KindSchema::of(object.kind()) else { return in_kind(unknown_kind(object.kind())) };
    let mut errors = schema.check(object.fields());
    errors.extend(error_in_head(&object));
    errors
}

pub(crate) fn unknown_kind(kind: &str) -> String {
    not_one_of(&format!("unknown kind {kind:?} in {GROUP}"), kind, &KindSchema::kinds())
}

/// Checks apiVersion and metadata.name, which the schema of a kind does not cover.
pub(crate) fn error_in_head(object: &Object<'_>) -> Option<FieldError> {
    let error = |field: &str, message: String| Some(FieldError { field: field.to_owned(), message });
    match object.at("metadata.name") {
        _ if object.version() != VERSION => error("apiVersion", format!("must be {GROUP}/{VERSION}")),
        None | Some(Value::Null) => error("metadata.name", "required".to_owned()),
        Some(Value::Text(name)) if is_name(name) => None,
        Some(Value::Text(name)) if name.len() > MAX_NAME => {
            error("metadata.name", format!("must have at most {MAX_NAME} characters, has {}", name.len()))
        }
        Some(Value::Text(name)) => error("metadata.name", format!("invalid name {name:?}: {NAME_RULE}")),
        Some(_) => error("metadata.name", "must be a string: write it in quotes".to_owned()),
    }
}

/// The message, with the nearest known word, or with all of them if none is near.
pub(crate) fn not_one_of(message: &str, word: &str, known: &[&str]) -> String {
    match nearest(word, known) {
        Some(meant) => format!("{message} (did you mean {meant:?}?)"),
        None => format!("{message}: must be one of {}", known.join(", ")),
    }
}

/// The known word with the smallest edit distance, regardless of case. `None` if all are too far away.
pub(crate) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let most = match word.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    let distance = |other: &str| strsim::osa_distance(&word.to_lowercase(), &other.to_lowercase());
    known.iter().copied().min_by_key(|other| distance(other)).filter(|other| distance(other) <= most)
}

struct Check {
    errors: Vec<FieldError>,
}

impl Check {
    fn error(&mut self, field: &str, message: String) {
        self.errors.push(FieldError { field: field.to_owned(), message });
    }

    fn value(&mut self, schema: &Schema, value: &Value<'_>, field: &str) {
        if schema.x_kubernetes_preserve_unknown_fields == Some(true) && schema.type_.is_none() {
            return;
        }
        if let Some(wanted) = schema.type_.as_deref()
            && !is_a(value, wanted)
        {
            let message = match value {
                // Larger integers are decoded as floating-point numbers.
                Value::Float(number) if wanted == "integer" && number.abs() >= 9.2e18 => {
                    format!("must be a 64-bit integer, not {number}")
                }
                Value::Float(number) if wanted == "integer" => format!("must be an integer, not {number}"),
                _ => format!("must be {}, not {}", with_article(wanted), type_of(value)),
            };
            return self.error(field, message);
        }
        let before = self.errors.len();
        match value {
            Value::Text(text) => self.text(schema, text, field),
            Value::Int(number) => self.number(schema, *number, field),
            Value::List(list) => self.list(schema, list, field),
            Value::Map(_) => self.fields(schema, value, field, &[]),
            Value::Null | Value::Bool(_) | Value::Float(_) => {}
        }
        // As on the API server, rules run only on a value that matches its schema.
        if self.errors.len() == before {
            self.rules(schema, value, field);
        }
    }

    fn fields(&mut self, schema: &Schema, value: &Value<'_>, field: &str, also: &[&str]) {
        let Value::Map(map) = value else { return };
        let length = i64::try_from(map.len()).unwrap_or(i64::MAX);
        if let Some(most) = schema.max_properties.filter(|most| length > *most) {
            self.error(field, format!("must have at most {most} entries, has {length}"));
        }
        let under = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
        for required in schema.required.iter().flatten() {
            if matches!(map.get(required), None | Some(Value::Null)) {
                self.error(&under(required), "required".to_owned());
            }
        }
        for (name, value) in map.iter() {
            let known = schema.properties.as_ref().and_then(|properties| properties.get(name));
            match (known, &schema.additional_properties) {
                (Some(schema), _) => self.value(schema, value, &under(name)),
                (None, Some(JSONSchemaPropsOrBool::Schema(schema))) => {
                    self.value(schema, value, &under(name));
                }
                (None, Some(JSONSchemaPropsOrBool::Bool(true))) => {}
                (None, _) if schema.x_kubernetes_preserve_unknown_fields == Some(true) => {}
                (None, _) if also.contains(&name) => {}
                (None, _) => {
                    let known = schema.properties.iter().flatten().map(|(name, _)| name.as_str());
                    let known: Vec<_> = known.chain(also.iter().copied()).collect();
                    self.error(&under(name), not_one_of(&format!("unknown field {name:?}"), name, &known));
                }
            }
        }
    }

    fn list(&mut self, schema: &Schema, list: &[Value<'_>], field: &str) {
        let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
        if let Some(most) = schema.max_items.filter(|most| length > *most) {
            self.error(field, format!("must have at most {most} entries, has {length}"));
        }
        if let Some(least) = schema.min_items.filter(|least| length < *least) {
            self.error(
                field,
                format!(
                    "must have at least {least} {}, has {length}",
                    if least == 1 { "entry" } else { "entries" }
                ),
            );
        }
        if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
            for (index, entry) in list.iter().enumerate() {
                self.value(schema, entry, &format!("{field}[{index}]"));
            }
        }
        self.uniqueness(schema, list, field);
    }

    /// Checks for duplicates in lists of type `set` and `map`.
    fn uniqueness(&mut self, schema: &Schema, list: &[Value<'_>], field: &str) {
        let keys: Option<&[String]> = match schema.x_kubernetes_list_type.as_deref() {
            Some("set") => None,
            Some("map") => schema.x_kubernetes_list_map_keys.as_deref(),
            _ => return,
        };
        let is_same = |one: &Value<'_>, other: &Value<'_>| match keys {
            None => one == other,
            Some(keys) => keys.iter().all(|key| one.get(key) == other.get(key)),
        };
        for (index, entry) in list.iter().enumerate() {
            if let Some(first) = list.iter().take(index).position(|other| is_same(entry, other)) {
                let same = keys.map(|keys| format!(" (same {})", keys.join(" and "))).unwrap_or_default();
                self.error(&format!("{field}[{index}]"), format!("duplicate of {field}[{first}]{same}"));
            }
        }
    }

    fn text(&mut self, schema: &Schema, text: &str, field: &str) {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(most) = schema.max_length.filter(|most| length > *most) {
            self.error(field, format!("must have at most {most} characters, has {length}"));
        }
        if schema.min_length.is_some_and(|least| length < least) {
            self.error(field, "must not be empty".to_owned());
        }
        if let Some(words) = &schema.enum_ {
            let words: Vec<_> = words.iter().filter_map(|word| word.0.as_str()).collect();
            if !words.contains(&text) {
                self.error(field, not_one_of(&format!("unsupported value {text:?}"), text, &words));
            }
        }
        if let Some(pattern) = &schema.pattern
            && Regex::new(pattern).is_ok_and(|regex| !regex.is_match(text))
        {
            self.error(field, format!("invalid value {text:?}: must match {pattern}"));
        }
        if schema.format.as_deref() == Some("date-time") && text.parse::<Timestamp>().is_err() {
            self.error(field, format!("invalid time {text:?}: use a time such as 2026-11-14T12:00:00Z"));
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "the bounds in our schemas are small integers")]
    fn number(&mut self, schema: &Schema, number: i64, field: &str) {
        if let Some(least) = schema.minimum.filter(|least| (number as f64) < *least) {
            self.error(field, format!("must be at least {least}, not {number}"));
        }
        if let Some(most) = schema.maximum.filter(|most| (number as f64) > *most) {
            self.error(field, format!("must be at most {most}, not {number}"));
        }
        if schema.format.as_deref() == Some("int32") && i32::try_from(number).is_err() {
            self.error(field, format!("must be a 32-bit integer, not {number}"));
        }
    }
}

fn is_a(value: &Value<'_>, wanted: &str) -> bool {
    match value {
        Value::Text(_) => wanted == "string",
        Value::Bool(_) => wanted == "boolean",
        Value::Int(_) => matches!(wanted, "integer" | "number"),
        Value::Float(_) => wanted == "number",
        Value::List(_) => wanted == "array",
        Value::Map(_) => wanted == "object",
        Value::Null => false,
    }
}

fn with_article(wanted: &str) -> &str {
    match wanted {
        "string" => "a string",
        "boolean" => "a boolean",
        "integer" => "an integer",
        "number" => "a number",
        "array" => "a list",
        "object" => "a map",
        other => other,
    }
}

fn type_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Int(_) | Value::Float(_) => "a number",
        Value::Text(_) => "a string",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
    }
}
