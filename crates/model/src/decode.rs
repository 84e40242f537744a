//! Decodes objects from JSON in one pass.

use std::{borrow::Cow, fmt};

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::{
    json,
    object::Object,
    plan::{Node, Plan},
    value::{Map, Value},
};

/// The maximum depth of kept values; deeper ones become null. No API nests half as deep, and recursion over a
/// value cannot overflow the stack.
const DEEPEST: usize = 64;

/// The input is not a JSON object.
#[derive(Debug)]
pub struct DecodeError(serde_json::Error);

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a Kubernetes object: {}", self.0)
    }
}

impl std::error::Error for DecodeError {}

impl<'a> Object<'a> {
    /// Decodes the fields in the plan from the JSON of one object.
    pub fn from_json(json: &'a [u8], plan: &Plan) -> Result<Self, DecodeError> {
        read_json(json, ObjectSeed(plan))
    }
}

/// Decodes JSON that contains objects, such as a list or a watch event.
///
/// On invalid JSON the seed runs a second time, with serde_json, to find the place of the error.
pub fn read_json<'a, S>(json: &'a [u8], seed: S) -> Result<S::Value, DecodeError>
where
    S: DeserializeSeed<'a> + Copy,
{
    if let Ok(text) = str::from_utf8(json)
        && let Ok(value) = json::read(text, seed)
    {
        return Ok(value);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(json);
    let value = seed.deserialize(&mut deserializer).map_err(DecodeError)?;
    deserializer.end().map_err(DecodeError)?;
    Ok(value)
}

/// Decodes an object inside other JSON, such as a watch event or the items of a list.
#[derive(Clone, Copy, Debug)]
pub struct ObjectSeed<'p>(
    /// The fields to keep.
    pub &'p Plan,
);

impl<'de> DeserializeSeed<'de> for ObjectSeed<'_> {
    type Value = Object<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Object<'de>, D::Error> {
        let mut fields = Value::Null;
        deserializer.deserialize_any(Keep { node: &self.0.root, depth: 0, into: &mut fields })?;
        match fields {
            Value::Map(_) => Ok(Object { fields }),
            other => Err(D::Error::custom(format_args!("expected a map, found {}", type_name(&other)))),
        }
    }
}

fn type_name(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Int(_) | Value::Float(_) => "a number",
        Value::Text(_) => "a string",
        Value::List(_) => "a list",
        Value::Map(_) => "a map",
    }
}

/// Decodes what a node of the plan keeps of one value, directly into its place: moving a decoded value is
/// slower.
struct Keep<'p, 'v, 'de> {
    node: &'p Node,
    depth: usize,
    into: &'v mut Value<'de>,
}

impl<'de> DeserializeSeed<'de> for Keep<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth >= DEEPEST {
            // Skipping does not recurse.
            return deserializer.deserialize_ignored_any(IgnoredAny).map(|_| ());
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keep<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        *self.into = Value::Null;
        Ok(())
    }

    fn visit_bool<E>(self, truth: bool) -> Result<(), E> {
        *self.into = Value::Bool(truth);
        Ok(())
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        *self.into = Value::Int(number);
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers beyond 64 bits are approximate in JSON")]
    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        *self.into = i64::try_from(number).map_or(Value::Float(number as f64), Value::Int);
        Ok(())
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        *self.into = Value::Float(number);
        Ok(())
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<(), E> {
        *self.into = Value::Text(Cow::Borrowed(text));
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        *self.into = Value::Text(Cow::Owned(text.to_owned()));
        Ok(())
    }

    fn visit_string<E>(self, text: String) -> Result<(), E> {
        *self.into = Value::Text(Cow::Owned(text));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let mut list = Vec::new();
        if self.node.keeps_nothing() {
            while entries.next_element::<IgnoredAny>()?.is_some() {}
        } else {
            loop {
                let into = list.push_mut(Value::Null);
                let entry = Keep { node: self.node, depth: self.depth + 1, into };
                if entries.next_element_seed(entry)?.is_none() {
                    break;
                }
            }
            // The last entry was not set.
            list.pop();
        }
        *self.into = Value::List(list);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let mut map = Map::default();
        while let Some(kept) = fields.next_key_seed(Field { node: self.node, of: &mut map })? {
            match kept {
                Some((node, into)) => fields.next_value_seed(Keep { node, depth: self.depth + 1, into })?,
                None => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        *self.into = Value::Map(map);
        Ok(())
    }
}

/// Decodes the name of a field. Returns the node and the place for its value if the field is kept.
struct Field<'p, 'v, 'de> {
    node: &'p Node,
    of: &'v mut Map<'de>,
}

impl<'de, 'p, 'v> DeserializeSeed<'de> for Field<'p, 'v, 'de> {
    type Value = Option<(&'p Node, &'v mut Value<'de>)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de, 'p, 'v> Visitor<'de> for Field<'p, 'v, 'de> {
    type Value = Option<(&'p Node, &'v mut Value<'de>)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Self::Value, E> {
        Ok(self.node.of(key).map(|node| (node, self.of.place(Cow::Borrowed(key)))))
    }

    fn visit_str<E>(self, key: &str) -> Result<Self::Value, E> {
        Ok(self.node.of(key).map(|node| (node, self.of.place(Cow::Owned(key.to_owned())))))
    }
}
