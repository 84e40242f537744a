//! Values during an evaluation: borrowed from the input, or created by the expression.

use std::{fmt, ops::Deref, rc::Rc};

use bellwether_model::{Map, Value};
use jiff::{SignedDuration, Timestamp};

use crate::{quantity::Quantity, types::Type};

/// A value of CEL.
#[derive(Clone, Debug, Default)]
pub enum Val<'v> {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A signed integer. Every integer in an object is one, as in Kubernetes.
    Int(i64),
    /// An unsigned integer. Objects contain none.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// A string.
    Text(Text<'v>),
    /// Bytes. Objects contain none.
    Bytes(Rc<[u8]>),
    /// A list with entries of any type.
    List(List<'v>),
    /// A map.
    Map(Fields<'v>),
    /// A point in time. In objects it is a string.
    Timestamp(Timestamp),
    /// A length of time. In objects it is a string.
    Duration(SignedDuration),
    /// A type: the value of `type(x)` or of a type name.
    Type(Type),
    /// A quantity of Kubernetes, such as `250Mi`. In objects it is a string or a number.
    Quantity(Rc<Quantity>),
    /// A value or none, for example the value of `a.?b`.
    Optional(Option<Rc<Val<'v>>>),
}

/// A string.
#[derive(Clone, Debug)]
pub enum Text<'v> {
    /// Borrowed from the object or from the expression.
    Read(&'v str),
    /// Created by the evaluation.
    Made(Rc<str>),
}

/// The entries of a list.
#[derive(Clone, Debug)]
pub enum List<'v> {
    /// Borrowed from the object or from the expression.
    Read(&'v [Value<'v>]),
    /// Created by the evaluation.
    Made(Rc<Made<Val<'v>>>),
}

/// The fields of a map.
#[derive(Clone, Debug)]
pub enum Fields<'v> {
    /// Borrowed from the object or from the expression.
    Read(&'v Map<'v>),
    /// Created by the evaluation. Keys are strings, integers or bools without duplicates.
    Made(Rc<Made<(Val<'v>, Val<'v>)>>),
}

/// Entries that an evaluation created.
#[derive(Debug)]
pub struct Made<T> {
    entries: Vec<T>,
    /// The nesting depth of created values, this one included.
    depth: usize,
}

impl Val<'_> {
    /// Creates a string.
    pub fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(Text::Made(text.into()))
    }

    /// Creates a list.
    pub fn list(entries: impl Into<Vec<Self>>) -> Self {
        let entries = entries.into();
        let depth = 1 + entries.iter().map(Self::depth).max().unwrap_or(0);
        Self::List(List::Made(Rc::new(Made { entries, depth })))
    }

    /// Creates a map. Keys must be distinct.
    pub fn map(fields: Vec<(Self, Self)>) -> Self {
        let depth = 1 + fields.iter().map(|(_, value)| value.depth()).max().unwrap_or(0);
        Self::Map(Fields::Made(Rc::new(Made { entries: fields, depth })))
    }

    /// The nesting depth of created values, this one included. Borrowed values do not count: the decoder
    /// limits their depth.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::List(List::Made(made)) => made.depth,
            Self::Map(Fields::Made(made)) => made.depth,
            Self::Optional(Some(value)) => 1 + value.depth(),
            _ => 0,
        }
    }

    /// The type of the value.
    pub fn type_of(&self) -> Type {
        match self {
            Self::Null => Type::Null,
            Self::Bool(_) => Type::Bool,
            Self::Int(_) => Type::Int,
            Self::Uint(_) => Type::Uint,
            Self::Double(_) => Type::Double,
            Self::Text(_) => Type::Text,
            Self::Bytes(_) => Type::Bytes,
            Self::List(_) => Type::List,
            Self::Map(_) => Type::Map,
            Self::Timestamp(_) => Type::Timestamp,
            Self::Duration(_) => Type::Duration,
            Self::Type(_) => Type::Type,
            Self::Quantity(_) => Type::Quantity,
            Self::Optional(_) => Type::Optional,
        }
    }
}

impl<'v> From<&'v Value<'v>> for Val<'v> {
    #[inline]
    fn from(value: &'v Value<'v>) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(truth) => Self::Bool(*truth),
            Value::Int(number) => Self::Int(*number),
            Value::Float(number) => Self::Double(*number),
            Value::Text(text) => Self::Text(Text::Read(text)),
            Value::List(list) => Self::List(List::Read(list)),
            Value::Map(map) => Self::Map(Fields::Read(map)),
        }
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Read(text) => text,
            Self::Made(text) => text,
        }
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl<'v> List<'v> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        match self {
            Self::Read(list) => list.len(),
            Self::Made(made) => made.entries.len(),
        }
    }

    /// Whether the list has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The entry at an index, counted from 0.
    pub fn get(&self, index: usize) -> Option<Val<'v>> {
        match self {
            Self::Read(list) => list.get(index).map(Val::from),
            Self::Made(made) => made.entries.get(index).cloned(),
        }
    }

    /// The entries in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Val<'v>> + ExactSizeIterator {
        // Every index is within the list.
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }
}

impl<'v> Fields<'v> {
    /// The number of fields.
    pub fn len(&self) -> usize {
        match self {
            Self::Read(map) => map.len(),
            Self::Made(made) => made.entries.len(),
        }
    }

    /// Whether the map has no fields.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a field with a string as key.
    pub fn get(&self, name: &str) -> Option<Val<'v>> {
        match self {
            Self::Read(map) => map.get(name).map(Val::from),
            Self::Made(made) => made
                .entries
                .iter()
                .find(|(key, _)| matches!(key, Val::Text(key) if **key == *name))
                .map(|(_, value)| value.clone()),
        }
    }

    /// The keys and values, in the order of the object or of their creation.
    pub fn iter(&self) -> impl Iterator<Item = (Val<'v>, Val<'v>)> {
        let (read, made) = match self {
            Self::Read(map) => (Some(*map), None),
            Self::Made(fields) => (None, Some(Rc::clone(fields))),
        };
        let read = read
            .into_iter()
            .flat_map(|map| map.iter().map(|(key, value)| (Val::Text(Text::Read(key)), Val::from(value))));
        let made = made.into_iter().flat_map(|fields| {
            (0..fields.entries.len()).filter_map(move |index| fields.entries.get(index).cloned())
        });
        read.chain(made)
    }
}
