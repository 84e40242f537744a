//! Decodes the envelopes of objects: watch events and list pages.
//!
//! An item that is not a JSON object decodes to `None`, so that it does not hide the items around it.

use std::{borrow::Cow, fmt};

use bellwether_model::{DecodeError, Object, ObjectSeed, Plan, read_json};
use serde::{
    Deserialize,
    de::{
        DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor,
        value::MapAccessDeserializer,
    },
};

#[derive(Debug, PartialEq)]
pub struct RawEvent<'a> {
    /// The event type: `ADDED`, `ERROR`.
    pub type_: Cow<'a, str>,
    /// A `Status` for an error; an object with only a resourceVersion for a bookmark.
    pub object: Option<Object<'a>>,
}

/// Decodes a watch event. The plan must include the fields of errors: the event type may follow the object.
pub fn event<'a>(json: &'a [u8], plan: &Plan) -> Result<RawEvent<'a>, DecodeError> {
    read_json(json, EventSeed(plan))
}

#[derive(Debug, PartialEq)]
pub struct Page<T> {
    /// The resourceVersion of the list.
    pub resource_version: String,
    /// The continue token, if another page follows.
    pub continue_token: Option<String>,
    pub items: Vec<T>,
}

/// Decodes a list page. `make` converts each item before the next one is decoded, so that only one object is
/// in memory.
pub fn page<T>(
    json: &[u8],
    plan: &Plan,
    make: impl Fn(Option<Object<'_>>) -> T,
) -> Result<Page<T>, DecodeError> {
    read_json(json, PageSeed { plan, make: &make })
}

/// Decodes one item of a list; `None` if it is not a JSON object.
pub fn item<'a>(json: &'a [u8], plan: &Plan) -> Result<Option<Object<'a>>, DecodeError> {
    read_json(json, MaybeObject(plan))
}

#[derive(Clone, Copy)]
struct EventSeed<'p>(&'p Plan);

impl<'de> DeserializeSeed<'de> for EventSeed<'_> {
    type Value = RawEvent<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<RawEvent<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for EventSeed<'_> {
    type Value = RawEvent<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a watch event")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<RawEvent<'de>, A::Error> {
        let mut event = RawEvent { type_: Cow::Borrowed(""), object: None };
        while let Some(BorrowedText(field)) = fields.next_key()? {
            match &*field {
                "type" => event.type_ = fields.next_value::<BorrowedText<'de>>()?.0,
                "object" => event.object = fields.next_value_seed(MaybeObject(self.0))?,
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        Ok(event)
    }
}

/// Borrowed if the string has no escapes.
#[derive(Deserialize)]
struct BorrowedText<'a>(#[serde(borrow)] Cow<'a, str>);

struct PageSeed<'p, F> {
    plan: &'p Plan,
    make: &'p F,
}

impl<F> Clone for PageSeed<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F> Copy for PageSeed<'_, F> {}

impl<'de, T, F: Fn(Option<Object<'de>>) -> T> DeserializeSeed<'de> for PageSeed<'_, F> {
    type Value = Page<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Page<T>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T, F: Fn(Option<Object<'de>>) -> T> Visitor<'de> for PageSeed<'_, F> {
    type Value = Page<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Page<T>, A::Error> {
        let mut head = ListMetadata::default();
        let mut items = Vec::new();
        while let Some(BorrowedText(field)) = fields.next_key()? {
            match &*field {
                "metadata" => head = fields.next_value()?,
                "items" => items = fields.next_value_seed(Items(self))?,
                _ => drop(fields.next_value::<IgnoredAny>()?),
            }
        }
        let rest = head.rest.filter(|rest| !rest.is_empty());
        Ok(Page { resource_version: head.version.unwrap_or_default(), continue_token: rest, items })
    }
}

#[derive(Default, Deserialize)]
struct ListMetadata {
    #[serde(rename = "resourceVersion")]
    version: Option<String>,
    #[serde(rename = "continue")]
    rest: Option<String>,
}

struct Items<'p, F>(PageSeed<'p, F>);

impl<'de, T, F: Fn(Option<Object<'de>>) -> T> DeserializeSeed<'de> for Items<'_, F> {
    type Value = Vec<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T, F: Fn(Option<Object<'de>>) -> T> Visitor<'de> for Items<'_, F> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the items of a list")
    }

    /// Go encodes a nil slice as `null`.
    fn visit_unit<E>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
        let mut decoded = Vec::new();
        while let Some(item) = items.next_element_seed(MaybeObject(self.0.plan))? {
            decoded.push((self.0.make)(item));
        }
        Ok(decoded)
    }
}

/// Decodes to `None` if the value is not a JSON object.
#[derive(Clone, Copy)]
struct MaybeObject<'p>(&'p Plan);

impl<'de> DeserializeSeed<'de> for MaybeObject<'_> {
    type Value = Option<Object<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MaybeObject<'_> {
    type Value = Option<Object<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        ObjectSeed(self.0).deserialize(MapAccessDeserializer::new(fields)).map(Some)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        while entries.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use rand::{Rng as _, SeedableRng as _, rngs::StdRng};
    use rstest::rstest;

    use super::*;

    fn plan() -> Plan {
        Plan::identity().with("metadata.resourceVersion").with("code")
    }

    /// An event as `TYPE name resourceVersion-or-code`.
    fn summary(json: &str) -> Option<String> {
        let event = event(json.as_bytes(), &plan()).ok()?;
        let object = event.object.map(|object| {
            let value = object.at("metadata.resourceVersion").or(object.at("code"));
            format!("{} {}", object.name(), value.map(ToString::to_string).unwrap_or_default())
        });
        Some(format!("{} {}", event.type_, object.as_deref().unwrap_or("nothing")))
    }

    #[rstest]
    #[case::added(
        r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"7"}}}"#,
        "ADDED a 7"
    )]
    #[case::type_last(
        r#"{"object":{"metadata":{"name":"a","resourceVersion":"7"}},"type":"DELETED"}"#,
        "DELETED a 7"
    )]
    #[case::error(r#"{"type":"ERROR","object":{"kind":"Status","code":410}}"#, "ERROR  410")]
    #[case::error_last(r#"{"object":{"kind":"Status","code":410},"type":"ERROR"}"#, "ERROR  410")]
    #[case::bookmark(r#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"8"}}}"#, "BOOKMARK  8")]
    #[case::unknown_fields(r#"{"a":[{}],"type":"ADDED","object":{},"b":null}"#, "ADDED  ")]
    #[case::escapes(r#"{"ty\u0070e":"ADD\u0045D","object":{"metadata":{"name":"\u0061"}}}"#, "ADDED a ")]
    #[case::no_object(r#"{"type":"ADDED"}"#, "ADDED nothing")]
    #[case::null(r#"{"type":"ADDED","object":null}"#, "ADDED nothing")]
    #[case::a_number(r#"{"type":"ADDED","object":-1.5}"#, "ADDED nothing")]
    #[case::a_list(r#"{"type":"ADDED","object":[{"metadata":{"name":"a"}}]}"#, "ADDED nothing")]
    #[case::text(r#"{"type":"ADDED","object":"\u0061"}"#, "ADDED nothing")]
    #[case::a_status_alone(r#"{"kind":"Status","code":500}"#, " nothing")]
    fn events_are_decoded_in_any_field_order(#[case] json: &str, #[case] expected: &str) {
        assert_eq!(summary(json).as_deref(), Some(expected));
    }

    #[rstest]
    fn malformed_events_are_errors(
        #[values("", "5", "[]", "null", "{", r#"{"type":"ADDED","object":{"#, r#"{"type":5}"#, "{}{}")] json: &str,
    ) {
        assert_eq!(summary(json), None);
    }

    fn names(json: &str) -> Option<Page<String>> {
        let name =
            |object: Option<Object<'_>>| object.map_or("none".to_owned(), |object| object.name().to_owned());
        page(json.as_bytes(), &plan(), name).ok()
    }

    fn list(version: &str, rest: Option<&str>, items: &[&str]) -> Page<String> {
        let items = items.iter().map(|&item| item.to_owned()).collect();
        Page { resource_version: version.to_owned(), continue_token: rest.map(str::to_owned), items }
    }

    #[rstest]
    #[case::two(
        r#"{"kind":"PodList","metadata":{"resourceVersion":"7","continue":"next"},"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}]}"#,
        list("7", Some("next"), &["a", "b"])
    )]
    #[case::head_last(
        r#"{"items":[{"metadata":{"name":"a"}}],"metadata":{"resourceVersion":"7","continue":""}}"#,
        list("7", None, &["a"])
    )]
    #[case::some_items_are_not_objects(
        r#"{"metadata":{"resourceVersion":"7"},"items":[1,{"metadata":{"name":"a"}},null,"x",[[]],true]}"#,
        list("7", None, &["none", "a", "none", "none", "none", "none"])
    )]
    #[case::empty(r#"{"metadata":{"resourceVersion":"7"},"items":[]}"#, list("7", None, &[]))]
    #[case::null(r#"{"metadata":{"resourceVersion":"7"},"items":null}"#, list("7", None, &[]))]
    #[case::no_resource_version(r#"{"metadata":{},"items":null}"#, list("", None, &[]))]
    fn pages_are_decoded(#[case] json: &str, #[case] expected: Page<String>) {
        assert_eq!(names(json), Some(expected));
    }

    #[rstest]
    fn incomplete_pages_are_errors(
        #[values("", "[]", r#"{"items":{}}"#, r#"{"items":[{"metadata":{"name":"a"}}"#)] json: &str,
    ) {
        assert_eq!(names(json), None);
    }

    /// Random changes to a valid event: decoding must not panic, and must accept what is still a valid event.
    #[test]
    fn no_bytes_make_decoding_panic() {
        let valid =
            br#"{"type":"ADDED","object":{"metadata":{"name":"a","labels":{"b":"\u00e4"}},"items":[{}]}}"#;
        let mut random = StdRng::seed_from_u64(7);
        for _ in 0..20_000 {
            let mut bytes = valid.to_vec();
            for _ in 0..random.random_range(1..4) {
                let at = random.random_range(0..bytes.len());
                match random.random_range(0..3) {
                    0 => bytes[at] = random.random(),
                    1 => bytes.truncate(at + 1),
                    _ => bytes.insert(at, b"{}[]\",:0"[random.random_range(0..8)]),
                }
            }
            let is_json =
                serde_json::from_slice::<serde_json::Value>(&bytes).is_ok_and(|json| json.is_object());
            let is_event = event(&bytes, &plan()).is_ok();
            assert!(is_event || !is_json || !bytes.starts_with(br#"{"type":"ADDED","object""#));
            let _ = page(&bytes, &plan(), |_| ());
        }
    }
}
