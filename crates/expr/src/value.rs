//! Values while an expression is evaluated: what the object has, borrowed, and what the expression makes.

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
    /// A whole number. Every whole number of an object is one, as in Kubernetes.
    Int(i64),
    /// A whole number that was made unsigned: `1u`, `uint(1)`.
    Uint(u64),
    /// Any other number.
    Double(f64),
    /// Text.
    Text(Text<'v>),
    /// Bytes.
    Bytes(Rc<[u8]>),
    /// A list.
    List(List<'v>),
    /// A map.
    Map(Fields<'v>),
    /// A moment.
    Timestamp(Timestamp),
    /// A length of time.
    Duration(SignedDuration),
    /// The type of a value.
    Type(Type),
    /// A quantity of Kubernetes: `250Mi`.
    Quantity(Rc<Quantity>),
    /// What may be there.
    Optional(Option<Rc<Val<'v>>>),
}

/// Text: a part of the object or of the expression, or made while it was evaluated.
#[derive(Clone, Debug)]
pub enum Text<'v> {
    /// Read.
    Read(&'v str),
    /// Made.
    Made(Rc<str>),
}

/// A list: a part of the object, or made while the expression was evaluated.
#[derive(Clone, Debug)]
pub enum List<'v> {
    /// Read.
    Read(&'v [Value<'v>]),
    /// Made.
    Made(Rc<Made<Val<'v>>>),
}

/// The fields of a map: a part of the object, or made while the expression was evaluated.
#[derive(Clone, Debug)]
pub enum Fields<'v> {
    /// Read.
    Read(&'v Map<'v>),
    /// Made: keys are texts, whole numbers or truth values, each once.
    Made(Rc<Made<(Val<'v>, Val<'v>)>>),
}

/// What was made while an expression was evaluated.
#[derive(Debug)]
pub struct Made<T> {
    entries: Vec<T>,
    /// How many values that were made are in each other, at most.
    depth: usize,
}

impl Val<'_> {
    /// Text that was made.
    pub fn text(text: impl Into<Rc<str>>) -> Self {
        Self::Text(Text::Made(text.into()))
    }

    /// A list that was made.
    pub fn list(entries: impl Into<Vec<Self>>) -> Self {
        let entries = entries.into();
        let depth = 1 + entries.iter().map(Self::depth).max().unwrap_or(0);
        Self::List(List::Made(Rc::new(Made { entries, depth })))
    }

    /// A map that was made. Each key is given once.
    pub fn map(fields: Vec<(Self, Self)>) -> Self {
        let depth = 1 + fields.iter().map(|(_, value)| value.depth()).max().unwrap_or(0);
        Self::Map(Fields::Made(Rc::new(Made { entries: fields, depth })))
    }

    /// How many values that were made are in each other, this one included. What was read is not counted: whoever read it
    /// saw to its depth.
    pub(crate) fn depth(&self) -> usize {
        match self {
            Self::List(List::Made(made)) => made.depth,
            Self::Map(Fields::Made(made)) => made.depth,
            Self::Optional(Some(value)) => 1 + value.depth(),
            _ => 0,
        }
    }

    /// Its type.
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
    /// How many entries there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Read(list) => list.len(),
            Self::Made(made) => made.entries.len(),
        }
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An entry.
    pub fn get(&self, index: usize) -> Option<Val<'v>> {
        match self {
            Self::Read(list) => list.get(index).map(Val::from),
            Self::Made(made) => made.entries.get(index).cloned(),
        }
    }

    /// The entries.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Val<'v>> + ExactSizeIterator {
        // An index is always in the list.
        (0..self.len()).map(|index| self.get(index).unwrap_or_default())
    }
}

impl<'v> Fields<'v> {
    /// How many fields there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Read(map) => map.len(),
            Self::Made(made) => made.entries.len(),
        }
    }

    /// Whether there is no field.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a field whose name is text.
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

    /// The fields: names and values.
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
