//! What the API server would say of one of our own objects: its fields against the schema of its kind.
//!
//! The table of good and bad objects that real API servers are tested with is the test of this, too.

mod cel;
mod prepare;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, sync::LazyLock};

use bellwether_api::{VERSION, crds};
use bellwether_model::{Object, Plan, Value};
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps as Schema, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use regex::Regex;

/// What is wrong with a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// The field: `spec.cel[0].state`.
    pub(crate) field: String,
    /// What is wrong with it.
    pub(crate) text: String,
}

/// The schema of one of our kinds.
pub(crate) struct KindSchema {
    schema: Schema,
    /// Whether the API server keeps the status apart, and drops it from what a user writes.
    drops_status: bool,
}

/// Made once: putting the CRDs together takes a while.
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
    /// The schema of a kind; none if it is not one of ours.
    pub(crate) fn of(kind: &str) -> Option<&'static Self> {
        SCHEMAS.get(kind)
    }

    /// The names of our kinds.
    pub(crate) fn kinds() -> Vec<&'static str> {
        SCHEMAS.keys().map(String::as_str).collect()
    }

    /// All that is wrong with an object.
    pub(crate) fn check(&self, object: &Value<'_>) -> Vec<Fault> {
        let mut check = Check { faults: Vec::new() };
        let object = prepare::without_nulls(object, if self.drops_status { Some("status") } else { None });
        let object = prepare::with_defaults(&self.schema, object);
        check.fields(&self.schema, &object, "", &["apiVersion", "kind", "metadata"]);
        if check.faults.is_empty() {
            check.rules(&self.schema, &object, "");
        }
        check.faults
    }
}

/// What the API server would say of one of our own objects that is about to be created.
pub(crate) fn faults_in(manifest: &serde_json::Value) -> Vec<Fault> {
    let json = manifest.to_string();
    let no_object = |text: String| vec![Fault { field: "kind".to_owned(), text }];
    let object = match Object::from_json(json.as_bytes(), &Plan::whole()) {
        Ok(object) => object,
        Err(error) => return no_object(error.to_string()),
    };
    let Some(schema) = KindSchema::of(object.kind()) else {
        return no_object(format!("there is no kind {:?}", object.kind()));
    };
    let mut faults = schema.check(object.fields());
    faults.extend(wrong_with_head(&object));
    faults
}

/// What the schema of a kind does not speak of.
pub(crate) fn wrong_with_head(object: &Object<'_>) -> Option<Fault> {
    let fault = |field: &str, text: &str| Some(Fault { field: field.to_owned(), text: text.to_owned() });
    match object.at("metadata.name") {
        _ if object.version() != VERSION => fault("apiVersion", "it must be bellwether.dev/v1alpha1"),
        None | Some(Value::Null) => fault("metadata.name", "it is missing"),
        Some(Value::Text(name)) if is_name(name) => None,
        Some(Value::Text(name)) if name.len() > LONGEST_NAME => {
            fault("metadata.name", "a name has at most 253 characters")
        }
        Some(Value::Text(_)) => fault(
            "metadata.name",
            "a name has lower-case letters, digits, '-' and '.', and a letter or digit at its beginning, at its end and \
             around every '.'",
        ),
        Some(_) => fault("metadata.name", "it must be text: write it in quotes"),
    }
}

/// The longest name that an object can have.
const LONGEST_NAME: usize = 253;

/// Whether an object of ours can have this name.
pub(crate) fn is_name(name: &str) -> bool {
    let is_legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(is_legal) && !part.starts_with('-') && !part.ends_with('-')
    };
    name.len() <= LONGEST_NAME && name.split('.').all(is_part)
}

struct Check {
    faults: Vec<Fault>,
}

impl Check {
    fn fault(&mut self, field: &str, text: String) {
        self.faults.push(Fault { field: field.to_owned(), text });
    }

    fn value(&mut self, schema: &Schema, value: &Value<'_>, field: &str) {
        if schema.x_kubernetes_preserve_unknown_fields == Some(true) && schema.type_.is_none() {
            return;
        }
        if let Some(wanted) = schema.type_.as_deref()
            && !is_a(value, wanted)
        {
            return self.fault(field, format!("it must be {}, not {}", in_words(wanted), kind_of(value)));
        }
        let before = self.faults.len();
        match value {
            Value::Text(text) => self.text(schema, text, field),
            Value::Int(number) => self.number(schema, *number, field),
            Value::List(list) => self.list(schema, list, field),
            Value::Map(_) => self.fields(schema, value, field, &[]),
            Value::Null | Value::Bool(_) | Value::Float(_) => {}
        }
        // What is said of the whole makes sense only where its parts are right.
        if self.faults.len() == before {
            self.rules(schema, value, field);
        }
    }

    fn fields(&mut self, schema: &Schema, value: &Value<'_>, field: &str, also: &[&str]) {
        let Value::Map(map) = value else { return };
        let length = i64::try_from(map.len()).unwrap_or(i64::MAX);
        if let Some(most) = schema.max_properties.filter(|most| length > *most) {
            self.fault(field, format!("it has {length} entries, more than {most}"));
        }
        let under = |name: &str| if field.is_empty() { name.to_owned() } else { format!("{field}.{name}") };
        for required in schema.required.iter().flatten() {
            if matches!(map.get(required), None | Some(Value::Null)) {
                self.fault(&under(required), "it is missing".to_owned());
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
                    let known: Vec<_> = known.collect();
                    self.fault(
                        &under(name),
                        format!("there is no such field; there is {}", known.join(", ")),
                    );
                }
            }
        }
    }

    fn list(&mut self, schema: &Schema, list: &[Value<'_>], field: &str) {
        let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
        if let Some(most) = schema.max_items.filter(|most| length > *most) {
            self.fault(field, format!("it has {length} entries, more than {most}"));
        }
        if let Some(least) = schema.min_items.filter(|least| length < *least) {
            self.fault(field, format!("it has {length} entries, fewer than {least}"));
        }
        if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
            for (index, entry) in list.iter().enumerate() {
                self.value(schema, entry, &format!("{field}[{index}]"));
            }
        }
        self.uniqueness(schema, list, field);
    }

    /// In a set, and in a list that stands for a map, nothing is there twice.
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
                let what = keys.map_or_else(
                    || "it is".to_owned(),
                    |keys| format!("an entry with the same {} is", keys.join(" and ")),
                );
                self.fault(
                    &format!("{field}[{index}]"),
                    format!("{what} at {field}[{first}] already: leave one of the two out"),
                );
            }
        }
    }

    fn text(&mut self, schema: &Schema, text: &str, field: &str) {
        let length = i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(most) = schema.max_length.filter(|most| length > *most) {
            self.fault(field, format!("it has {length} characters, more than {most}"));
        }
        if schema.min_length.is_some_and(|least| length < least) {
            self.fault(field, "it is empty".to_owned());
        }
        if let Some(words) = &schema.enum_ {
            let words: Vec<_> = words.iter().filter_map(|word| word.0.as_str()).collect();
            if !words.contains(&text) {
                self.fault(field, format!("`{text}` is none of {}", words.join(", ")));
            }
        }
        if let Some(pattern) = &schema.pattern
            && Regex::new(pattern).is_ok_and(|regex| !regex.is_match(text))
        {
            self.fault(field, format!("`{text}` does not match {pattern}"));
        }
        if schema.format.as_deref() == Some("date-time") && text.parse::<Timestamp>().is_err() {
            self.fault(field, format!("`{text}` is no time: write it like 2026-11-14T12:00:00Z"));
        }
    }

    // The bounds of our schemas are small whole numbers.
    #[expect(clippy::cast_precision_loss)]
    fn number(&mut self, schema: &Schema, number: i64, field: &str) {
        if let Some(least) = schema.minimum.filter(|least| (number as f64) < *least) {
            self.fault(field, format!("{number} is less than {least}"));
        }
        if let Some(most) = schema.maximum.filter(|most| (number as f64) > *most) {
            self.fault(field, format!("{number} is more than {most}"));
        }
        if schema.format.as_deref() == Some("int32") && i32::try_from(number).is_err() {
            self.fault(field, format!("{number} is too large a number"));
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

fn in_words(wanted: &str) -> &str {
    match wanted {
        "string" => "text",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        "array" => "a list",
        "object" => "a map",
        other => other,
    }
}

fn kind_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Int(_) | Value::Float(_) => "a number",
        Value::Text(_) => "text",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
    }
}
