//! Seeds for documents of any format: first the head of the document, then its objects one by one.

use std::{borrow::Cow, fmt};

use bellwether_model::{Object, ObjectSeed, Plan};
use serde::de::{
    DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer,
};

/// The type of a value, and the result of decoding it if it is a map.
pub(super) enum Value<'de, T> {
    Map(T),
    List,
    Text(Cow<'de, str>),
    Null,
    Truth,
    Number,
}

impl<T> Value<'_, T> {
    /// The map, or an error for any other type.
    pub(super) fn map(self) -> Result<T, String> {
        let other = match self {
            Self::Map(map) => return Ok(map),
            Self::List => "a list",
            Self::Text(_) => "a string",
            Self::Null => "null",
            Self::Truth => "a boolean",
            Self::Number => "a number",
        };
        Err(format!("not a Kubernetes object: expected a map, found {other}"))
    }
}

/// Decodes a map.
pub(super) trait DecodeMap<'de> {
    type Output;

    fn read<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Output, A::Error>;
}

/// Decodes any value, to its end.
#[derive(Clone, Copy)]
pub(super) struct Any<M>(pub(super) M);

impl<'de, M: DecodeMap<'de>> DeserializeSeed<'de> for Any<M> {
    type Value = Value<'de, M::Output>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, M: DecodeMap<'de>> Visitor<'de> for Any<M> {
    type Value = Value<'de, M::Output>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self::Value, A::Error> {
        self.0.read(fields).map(Value::Map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        while entries.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::List)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Value::Truth)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Value::Number)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Value::Number)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Value::Number)
    }
}

/// Decodes a map into an object.
#[derive(Clone, Copy)]
struct DecodeObject<'p>(&'p Plan);

impl<'de> DecodeMap<'de> for DecodeObject<'_> {
    type Output = Object<'de>;

    fn read<A: MapAccess<'de>>(self, fields: A) -> Result<Object<'de>, A::Error> {
        ObjectSeed(self.0).deserialize(MapAccessDeserializer::new(fields))
    }
}

/// The head of a document. The items of a typed list such as a PodList have no kind of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Head<'t> {
    pub(super) api_version: Cow<'t, str>,
    pub(super) kind: Cow<'t, str>,
    /// Whether the field `items` is a list.
    pub(super) items: bool,
}

impl Head<'_> {
    /// Whether the document is a list of objects.
    pub(super) fn is_list(&self) -> bool {
        self.items && self.kind.ends_with("List")
    }

    /// The kind of the items of a typed list; empty for a `v1 List`, whose items are of any kind.
    fn kind_of_items(&self) -> &str {
        self.kind.strip_suffix("List").unwrap_or_default()
    }

    /// An item of this list, with its kind.
    pub(super) fn item<'i>(&'i self, item: Object<'i>) -> Object<'i> {
        if item.kind().is_empty() && !self.kind_of_items().is_empty() {
            item.of_kind(self.api_version.as_ref(), self.kind_of_items())
        } else {
            item
        }
    }
}

/// Decodes the head of a document and skips the rest.
#[derive(Clone, Copy)]
pub(super) struct DecodeHead;

impl<'de> DecodeMap<'de> for DecodeHead {
    type Output = Head<'de>;

    fn read<A: MapAccess<'de>>(self, mut fields: A) -> Result<Head<'de>, A::Error> {
        let mut head = Head::default();
        while let Some(key) = fields.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "apiVersion" => head.api_version = text(fields.next_value_seed(Any(SkipMap))?),
                "kind" => head.kind = text(fields.next_value_seed(Any(SkipMap))?),
                "items" => {
                    head.items = matches!(fields.next_value_seed(Any(SkipMap))?, Value::List | Value::Null);
                }
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(head)
    }
}

fn text<T>(value: Value<'_, T>) -> Cow<'_, str> {
    match value {
        Value::Text(text) => text,
        _ => Cow::Borrowed(""),
    }
}

/// Skips a map.
#[derive(Clone, Copy)]
struct SkipMap;

impl<'de> DecodeMap<'de> for SkipMap {
    type Output = ();

    fn read<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Passes each object of a document to `take` before it decodes the next.
pub(super) struct Objects<'p, F> {
    pub(super) plan: &'p Plan,
    /// Whether the document is a list of objects.
    pub(super) list: bool,
    pub(super) take: F,
}

impl<'de, F: FnMut(Result<Object<'de>, String>)> DecodeMap<'de> for Objects<'_, F> {
    type Output = ();

    fn read<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        if !self.list {
            let object = DecodeObject(self.plan).read(fields)?;
            (self.take)(Ok(object));
            return Ok(());
        }
        while let Some(key) = fields.next_key::<Cow<'de, str>>()? {
            if key == "items" {
                fields.next_value_seed(Items { plan: self.plan, take: &mut self.take })?;
            } else {
                fields.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// Passes each item of a list to `take`.
pub(super) struct Items<'p, F> {
    pub(super) plan: &'p Plan,
    pub(super) take: F,
}

impl<'de, F: FnMut(Result<Object<'de>, String>)> DeserializeSeed<'de> for Items<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, F: FnMut(Result<Object<'de>, String>)> Visitor<'de> for Items<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of objects")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element_seed(Any(DecodeObject(self.plan)))? {
            (self.take)(item.map());
        }
        Ok(())
    }
}
