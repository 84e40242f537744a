//! StatusCollectors as the first draft of the kind had them, which the API server rejects: a bare expression as
//! `select`, the name in the spec, and a spec without an object around it.

use bellwether_api::{GROUP, VERSION};
use bellwether_model::Object;
use bellwether_sql::last_field;
use serde_json::{Map, Value as Json, json};

use crate::schema::{FieldError, is_name};

pub(crate) const KIND: &str = "StatusCollector";

/// The fields of a spec.
const FIELDS: [&str; 6] = ["filter", "groupBy", "combinedFields", "select", "orderBy", "limit"];

/// A StatusCollector as its author means it.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) name: String,
    /// The whole object.
    pub(crate) manifest: Json,
    /// What the API server would reject or drop.
    pub(crate) slips: Vec<FieldError>,
    /// Whether the fields of the spec are at the top of the document.
    pub(crate) is_bare: bool,
}

/// The apiVersion and kind of a document that is the spec of a StatusCollector without an object around it.
pub(crate) fn kind_of_bare(document: &Object<'_>) -> Option<(&'static str, &'static str)> {
    let fields = document.fields().as_map()?;
    let is_known = |name: &str| name == "name" || FIELDS.contains(&name);
    let has_columns = ["select", "groupBy", "combinedFields"].iter().any(|field| fields.get(field).is_some());
    // The version is that of the group, and is not checked in a bare document.
    (has_columns && fields.iter().all(|(name, _)| is_known(name)))
        .then_some(("bellwether.dev/v1alpha1", KIND))
}

impl Written {
    pub(crate) fn of(object: &Object<'_>) -> Self {
        let document = serde_json::to_value(object.fields()).unwrap_or_default();
        let mut fields = match document {
            Json::Object(fields) => fields,
            _ => Map::new(),
        };
        let is_bare = !fields.contains_key("spec") && FIELDS.iter().any(|field| fields.contains_key(*field));
        let mut slips = Vec::new();
        let mut slip = |field: &str, message: String| {
            let field = if is_bare { field.to_owned() } else { format!("spec.{field}") };
            slips.push(FieldError { field, message });
        };
        let mut spec = if is_bare {
            let known: Vec<_> = FIELDS.iter().chain(&["name"]).copied().collect();
            known.iter().filter_map(|field| Some(((*field).to_owned(), fields.remove(*field)?))).collect()
        } else {
            match fields.remove("spec") {
                Some(Json::Object(spec)) => spec,
                // The schema reports it.
                Some(other) => {
                    fields.insert("spec".to_owned(), other);
                    return Self {
                        name: object.name().to_owned(),
                        manifest: Json::Object(fields),
                        slips,
                        is_bare,
                    };
                }
                None => Map::new(),
            }
        };
        let inner_name = spec.remove("name");
        if let Some(name) = &inner_name {
            let legal = legal_name(name.as_str().unwrap_or_default());
            let becomes = if Some(&*legal) == name.as_str() { String::new() } else { format!(" as {legal}") };
            slip("name", format!("unknown field \"name\": move it to metadata.name{becomes}"));
        }
        if let Some(select) = spec.get_mut("select")
            && let Some(columns) = as_columns(select)
        {
            slip("select", "must be a list of columns, each with name and def".to_owned());
            *select = columns;
        }
        let mut metadata = match fields.remove("metadata") {
            Some(Json::Object(metadata)) => metadata,
            _ => Map::new(),
        };
        if let (None, Some(name)) = (metadata.get("name"), inner_name) {
            metadata.insert("name".to_owned(), legal_name(name.as_str().unwrap_or_default()).into());
        }
        if is_bare {
            let message = "required: write apiVersion, kind, metadata and spec".to_owned();
            slips.insert(0, FieldError { field: "apiVersion".to_owned(), message });
            fields = Map::new();
            fields.insert("apiVersion".to_owned(), format!("{GROUP}/{VERSION}").into());
            fields.insert("kind".to_owned(), KIND.into());
        }
        let name = metadata.get("name").and_then(Json::as_str).unwrap_or_default().to_owned();
        fields.insert("metadata".to_owned(), metadata.into());
        fields.insert("spec".to_owned(), spec.into());
        Self { name, manifest: Json::Object(fields), slips, is_bare }
    }

    pub(crate) fn spec(&self) -> &Json {
        &self.manifest["spec"]
    }
}

/// A name that the API server accepts: `numWECs` becomes `num-wecs`.
fn legal_name(name: &str) -> String {
    if is_name(name) {
        return name.to_owned();
    }
    let mut legal = String::new();
    let mut was_lower = false;
    for char in name.chars() {
        if char.is_ascii_uppercase() && was_lower {
            legal.push('-');
        }
        was_lower = char.is_ascii_lowercase() || char.is_ascii_digit();
        legal.push(if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '-' });
    }
    let legal = legal.trim_matches('-');
    if legal.is_empty() { "collector".to_owned() } else { legal.to_owned() }
}

/// The columns of a `select` that has a bare expression, or a list with one; None if it has neither.
fn as_columns(select: &Json) -> Option<Json> {
    let is_bare = |entry: &Json| match entry {
        Json::String(_) => true,
        Json::Object(fields) => fields.contains_key("op"),
        _ => false,
    };
    let mut names = Vec::new();
    let mut column = |entry: &Json| {
        let path = entry.as_str().or_else(|| entry.get("path")?.as_str()).unwrap_or_default();
        let name = last_field(path).unwrap_or("value").to_owned();
        let others = (2..).map(|number| format!("{name}_{number}"));
        let name =
            [name.clone()].into_iter().chain(others).find(|name| !names.contains(name)).unwrap_or(name);
        names.push(name.clone());
        json!({ "name": name, "def": entry })
    };
    match select {
        Json::Array(entries) if entries.iter().any(is_bare) => {
            let columns =
                entries.iter().map(|entry| if is_bare(entry) { column(entry) } else { entry.clone() });
            Some(columns.collect())
        }
        one if is_bare(one) => Some(Json::Array(vec![column(one)])),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("numWECs", "num-wecs")]
    #[case("availableReplicasHistogram", "available-replicas-histogram")]
    #[case("pod-phase", "pod-phase")]
    #[case("Sad Ones!", "sad-ones")]
    #[case("", "collector")]
    fn names(#[case] name: &str, #[case] expected: &str) {
        assert_eq!(legal_name(name), expected);
    }

    #[rstest]
    #[case(json!({"op": "Path", "path": "$.inventory.name"}), json!([{"name": "name", "def": {"op": "Path", "path": "$.inventory.name"}}]))]
    #[case(json!("inventory.name"), json!([{"name": "name", "def": "inventory.name"}]))]
    #[case(json!(["1 + 1", "a.x", "b.x"]), json!([{"name": "value", "def": "1 + 1"}, {"name": "x", "def": "a.x"}, {"name": "x_2", "def": "b.x"}]))]
    #[case(json!([{"name": "x", "def": "a"}]), Json::Null)]
    #[case(json!(5), Json::Null)]
    fn columns(#[case] select: Json, #[case] expected: Json) {
        assert_eq!(as_columns(&select).unwrap_or_default(), expected);
    }
}
