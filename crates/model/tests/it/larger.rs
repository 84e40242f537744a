//! Objects inside other JSON: watch events and lists.

use std::fmt;

use bellwether_model::{Object, ObjectSeed, Plan, read_json};
use rstest::rstest;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// A watch event.
#[derive(Clone, Copy)]
struct Event<'p>(&'p Plan);

impl<'de> DeserializeSeed<'de> for Event<'_> {
    type Value = (String, Object<'de>);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Event<'_> {
    type Value = (String, Object<'de>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let (mut kind, mut object) = (None, None);
        while let Some(field) = fields.next_key::<String>()? {
            match field.as_str() {
                "type" => kind = Some(fields.next_value()?),
                "object" => object = Some(fields.next_value_seed(ObjectSeed(self.0))?),
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        kind.zip(object).ok_or_else(|| A::Error::custom("incomplete event"))
    }
}

/// A list of objects.
#[derive(Clone, Copy)]
struct List<'p>(&'p Plan);

impl<'de> DeserializeSeed<'de> for List<'_> {
    type Value = Vec<Object<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for List<'_> {
    type Value = Vec<Object<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(field) = fields.next_key::<&str>()? {
            if field == "items" {
                items = fields.next_value_seed(self)?;
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(items)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = entries.next_element_seed(ObjectSeed(self.0))? {
            items.push(item);
        }
        Ok(items)
    }
}

const POD: &str =
    r#"{"kind":"Pod","metadata":{"name":"web","managedFields":[{"a":"}"}]},"status":{"phase":"Running"}}"#;

#[rstest]
#[case::as_sent(format!("{{\"type\":\"MODIFIED\",\"object\":{POD}}}\n"))]
#[case::object_first(format!("{{\"object\":{POD},\"type\":\"MODIFIED\"}}"))]
#[case::unknown_fields(format!("{{\"more\":[{POD}],\"type\":\"MODIFIED\",\"object\":{POD},\"most\":1}}"))]
#[case::white_space(format!("\r\n{{ \"type\" : \"MODI\\u0046IED\" ,\n\t\"object\" : {POD} }} "))]
fn events(#[case] json: String) {
    let plan = Plan::identity().with("status.phase");
    let (kind, object) = read_json(json.as_bytes(), Event(&plan)).unwrap();
    assert_eq!(kind, "MODIFIED");
    assert_eq!(object, Object::from_json(POD.as_bytes(), &plan).unwrap());
    assert_eq!((object.name(), object.at("status.phase").unwrap().as_text()), ("web", Some("Running")));
}

#[rstest]
#[case::cut(r#"{"type":"ADDED","object":{"kind":"Po"#, "EOF while parsing a string at line 1 column 36")]
#[case::half(r#"{"type":"ADDED"}"#, "incomplete event at line 1 column 16")]
#[case::no_object(r#"{"type":"ADDED","object":[1]}"#, "expected a map, found a list at line 1 column 29")]
#[case::two(r#"{"type":"A","object":{}}{"type":"A","object":{}}"#, "trailing characters at line 1 column 25")]
fn broken_events(#[case] json: &str, #[case] what: &str) {
    let error = read_json(json.as_bytes(), Event(&Plan::identity())).unwrap_err().to_string();
    assert_eq!(error, format!("not a Kubernetes object: {what}"));
}

#[test]
fn lists() {
    let json =
        format!(r#"{{"kind":"PodList","items":[{POD}, {POD},{{"kind":"Other"}}],"metadata":{{"a":[1]}}}}"#);
    let plan = Plan::identity();
    let objects = read_json(json.as_bytes(), List(&plan)).unwrap();
    let kinds: Vec<_> = objects.iter().map(Object::kind).collect();
    assert_eq!(kinds, ["Pod", "Pod", "Other"]);
    assert_eq!(objects[1], Object::from_json(POD.as_bytes(), &plan).unwrap());
}
