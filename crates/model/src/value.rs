//! JSON values that borrow their strings from the input.

use std::{borrow::Cow, fmt};

use serde::{
    Serialize,
    ser::{SerializeMap as _, SerializeSeq as _, Serializer},
};

use crate::plan::{Node, Plan};

/// A JSON value. Strings are borrowed from the input unless they have escapes.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value<'a> {
    /// `null`, or a value beyond the maximum depth.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer that fits into 64 bits.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A string.
    Text(Cow<'a, str>),
    /// An array.
    List(Vec<Value<'a>>),
    /// An object.
    Map(Map<'a>),
}

/// The fields of a JSON object, in the order of the input.
///
/// The last value of a duplicate key counts, as on the API server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map<'a>(Vec<(Cow<'a, str>, Value<'a>)>);

impl<'a> Value<'a> {
    /// The value of a field, if this is a map with that field.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        match self {
            Self::Map(map) => map.get(key),
            _ => None,
        }
    }

    /// The value at a path such as `status.loadBalancer.ingress`. Use [`Self::get`] for field names with a
    /// dot.
    pub fn at(&self, path: &str) -> Option<&Value<'a>> {
        path.split('.').try_fold(self, |value, field| value.get(field))
    }

    /// The string, if this is one.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if this is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The boolean, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The entries, if this is a list.
    pub fn as_list(&self) -> Option<&[Value<'a>]> {
        match self {
            Self::List(list) => Some(list),
            _ => None,
        }
    }

    /// The fields, if this is a map.
    pub fn as_map(&self) -> Option<&Map<'a>> {
        match self {
            Self::Map(map) => Some(map),
            _ => None,
        }
    }

    /// A copy of the fields that a plan keeps: the same as decoding with that plan.
    pub fn kept_by(&self, plan: &Plan) -> Value<'static> {
        self.kept(&plan.root)
    }

    fn kept(&self, node: &Node) -> Value<'static> {
        match self {
            Self::List(_) if node.keeps_nothing() => Value::List(Vec::new()),
            Self::List(list) => Value::List(list.iter().map(|value| value.kept(node)).collect()),
            Self::Map(map) => {
                let kept = map
                    .iter()
                    .filter_map(|(key, value)| Some((Cow::Owned(key.to_owned()), value.kept(node.of(key)?))));
                Value::Map(kept.collect())
            }
            value => value.to_static(),
        }
    }

    /// A copy that borrows nothing.
    pub fn to_static(&self) -> Value<'static> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(truth) => Value::Bool(*truth),
            Self::Int(number) => Value::Int(*number),
            Self::Float(number) => Value::Float(*number),
            Self::Text(text) => Value::Text(Cow::Owned(text.clone().into_owned())),
            Self::List(list) => Value::List(list.iter().map(Value::to_static).collect()),
            Self::Map(map) => Value::Map(
                map.iter().map(|(key, value)| (Cow::Owned(key.to_owned()), value.to_static())).collect(),
            ),
        }
    }
}

impl<'a> Map<'a> {
    /// The value of a field; the last one of a duplicate key.
    #[inline]
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.0.iter().rev().find(|(own, _)| own == key).map(|(_, value)| value)
    }

    /// The fields in the order of the input, duplicates included.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, &Value<'a>)> {
        self.0.iter().map(|(key, value)| (key.as_ref(), value))
    }

    /// The number of fields, duplicates included.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the map has no fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn push(&mut self, key: Cow<'a, str>, value: Value<'a>) {
        *self.place(key) = value;
    }

    /// Adds a field and returns its value for the caller to set.
    #[inline]
    pub(crate) fn place(&mut self, key: Cow<'a, str>) -> &mut Value<'a> {
        if self.0.capacity() == 0 {
            // The most frequent map is a condition: one allocation holds its fields.
            self.0.reserve_exact(8);
        }
        &mut self.0.push_mut((key, Value::Null)).1
    }
}

impl<'a> FromIterator<(Cow<'a, str>, Value<'a>)> for Map<'a> {
    fn from_iter<I: IntoIterator<Item = (Cow<'a, str>, Value<'a>)>>(fields: I) -> Self {
        Self(fields.into_iter().collect())
    }
}

/// A string without quotes, any other value as JSON.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            other => f.write_str(&serde_json::to_string(other).map_err(|_| fmt::Error)?),
        }
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(truth) => serializer.serialize_bool(*truth),
            Self::Int(number) => serializer.serialize_i64(*number),
            Self::Float(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::List(list) => {
                let mut entries = serializer.serialize_seq(Some(list.len()))?;
                for entry in list {
                    entries.serialize_element(entry)?;
                }
                entries.end()
            }
            Self::Map(map) => {
                let mut fields = serializer.serialize_map(Some(map.len()))?;
                for (key, value) in map.iter() {
                    fields.serialize_entry(key, value)?;
                }
                fields.end()
            }
        }
    }
}
