//! Any JSON decodes as with a naive decoder that parses everything and then drops what the plan does not
//! keep.

use bellwether_model::{Object, ObjectSeed, Plan};
use proptest::{collection::vec, prelude::*, sample::select};
use serde::de::DeserializeSeed as _;
use serde_json::{Map, Value as Json, json};

/// Field names of plans and objects, few enough to match often.
const NAMES: &[&str] =
    &["apiVersion", "metadata", "name", "spec", "status", "conditions", "type", "größe", ""];

/// The fields that every plan keeps.
const IDENTITY: &[&str] = &[
    "apiVersion",
    "kind",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "metadata.generation",
    "metadata.creationTimestamp",
    "metadata.deletionTimestamp",
    "metadata.deletionGracePeriodSeconds",
    "metadata.finalizers",
    "status.observedGeneration",
];

/// The part of a value that these paths keep.
fn keep(value: &Json, paths: &[Vec<&str>]) -> Json {
    match value {
        Json::Array(_) if paths.is_empty() => json!([]),
        Json::Array(list) => list.iter().map(|entry| keep(entry, paths)).collect(),
        Json::Object(map) => {
            let mut kept = Map::new();
            for (name, value) in map {
                let below: Vec<_> = paths
                    .iter()
                    .filter(|path| path[0] == name && name != "*")
                    .map(|path| path[1..].to_vec())
                    .collect();
                if below.iter().any(Vec::is_empty) {
                    kept.insert(name.clone(), all(value));
                } else if !below.is_empty() || paths.iter().any(|path| path[0] == "*") {
                    kept.insert(name.clone(), keep(value, &below));
                }
            }
            Json::Object(kept)
        }
        scalar => all(scalar),
    }
}

/// The whole value. Numbers beyond 64 bits are approximate.
fn all(value: &Json) -> Json {
    match value {
        Json::Array(list) => list.iter().map(all).collect(),
        Json::Object(map) => map.iter().map(|(name, value)| (name.clone(), all(value))).collect(),
        Json::Number(number) if !number.is_i64() => json!(number.as_f64()),
        other => other.clone(),
    }
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![4 => select(NAMES).prop_map(str::to_owned), 1 => any::<String>()]
}

fn any_json() -> impl Strategy<Value = Json> {
    let scalar = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        (-100..100).prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        any::<String>().prop_map(Json::from),
        "[ -~\\n\"\\\\]{0,40}".prop_map(Json::from),
    ];
    scalar.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Json::from),
            vec((any_name(), inner), 0..6).prop_map(|fields| Json::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_object() -> impl Strategy<Value = Json> {
    vec((any_name(), any_json()), 0..6).prop_map(|fields| Json::Object(fields.into_iter().collect()))
}

fn any_paths() -> impl Strategy<Value = Vec<String>> {
    let name = select(NAMES);
    let path = (vec(name, 1..4), prop::bool::weighted(0.3)).prop_map(|(names, outline)| {
        let star = if outline { ".*" } else { "" };
        format!("{}{star}", names.join("."))
    });
    vec(path, 0..5)
}

proptest! {
    #[test]
    fn decodes_what_the_plan_keeps(object in any_object(), paths in any_paths(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) };
        let text = text.unwrap();
        let paths: Vec<_> = paths.iter().map(String::as_str).collect();
        let plan = Plan::identity().with_all(&paths);
        let read = Object::from_json(text.as_bytes(), &plan).unwrap();

        let all_paths: Vec<_> = IDENTITY.iter().chain(&paths).map(|path| path.split('.').collect()).collect();
        let expected = keep(&serde_json::from_str(&text).unwrap(), &all_paths);
        prop_assert_eq!(serde_json::to_value(read.fields()).unwrap(), expected);

        // Any other deserializer gives the same.
        let mut reader = serde_json::Deserializer::from_str(&text);
        prop_assert_eq!(&ObjectSeed(&plan).deserialize(&mut reader).unwrap(), &read);
        prop_assert_eq!(read.to_static(), read);
    }

    #[test]
    fn truncated_json_is_an_error(object in any_object(), cut: prop::sample::Index) {
        let text = serde_json::to_vec(&object).unwrap();
        let part = &text[..cut.index(text.len())];
        prop_assert!(Object::from_json(part, &Plan::identity()).is_err());
        prop_assert!(Object::from_json(part, &Plan::everything()).is_err());
    }

    #[test]
    fn accepts_exactly_valid_json(object in any_object(), at: prop::sample::Index, byte: u8) {
        let mut text = serde_json::to_vec(&object).unwrap();
        let at = at.index(text.len());
        text[at] = byte;
        // This plan drops none of the names, so all of the text is parsed.
        let read = Object::from_json(&text, &Plan::everything());
        let valid = serde_json::from_slice::<Map<String, Json>>(&text);
        prop_assert_eq!(read.is_ok(), valid.is_ok(), "{}", String::from_utf8_lossy(&text));
    }

    #[test]
    fn no_input_panics(bytes: Vec<u8>) {
        let _ = Object::from_json(&bytes, &Plan::identity());
        let _ = Object::from_json(&[b"{\"a\":", &*bytes, b"}"].concat(), &Plan::everything());
    }
}
