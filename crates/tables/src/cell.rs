//! Values of a table: owned, finite, and in a total order.

use std::borrow::Cow;

use bellwether_expr::{Fields, List, Type, Val};
use bellwether_model::Value;
use jiff::Timestamp;

use crate::number::{NotANumber, Number};

/// A value. Equal numbers are equal values, and the fields of maps are sorted.
///
/// The order of the variants is the order of values of different types.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cell {
    #[default]
    Null,
    Bool(bool),
    Number(Number),
    /// A point in time. Only MIN and MAX distinguish it from other strings.
    Moment(Box<Moment>),
    Text(Box<str>),
    List(Box<[Cell]>),
    Map(Box<[(Box<str>, Cell)]>),
}

/// In the order of time; the text decides between different texts for the same point in time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    at: Timestamp,
    pub(crate) text: Box<str>,
}

/// Why a value cannot be in a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotACell {
    /// JSON has no such value.
    Type(Type),
    /// Infinity or `NaN`.
    NotFinite,
    TooLarge,
}

/// The maximum size of a value. An expression can create a list of lists that is far larger than its cost.
pub(crate) const LARGEST: usize = 256 << 10;

impl Cell {
    /// A copy of the value.
    pub(crate) fn new(value: &Val<'_>) -> Result<Self, NotACell> {
        Self::within(value, &mut LARGEST.clone())
    }

    /// Becomes a copy of the value. If it is one already, nothing is allocated.
    pub(crate) fn set(&mut self, value: &Val<'_>) -> Result<(), NotACell> {
        match (&*self, value) {
            (Self::Text(own), Val::Text(text)) if **own == **text => {}
            _ => *self = Self::new(value)?,
        }
        Ok(())
    }

    /// `room` is the number of bytes that are left.
    fn within(value: &Val<'_>, room: &mut usize) -> Result<Self, NotACell> {
        take(room, size_of::<Self>())?;
        Ok(match value {
            Val::Null | Val::Optional(None) => Self::Null,
            Val::Bool(truth) => Self::Bool(*truth),
            Val::Int(number) => Self::Number(Number::from(*number)),
            Val::Uint(number) => Self::Number(Number::from(*number)),
            Val::Double(number) => Self::Number(Number::from_f64(*number).ok_or(NotACell::NotFinite)?),
            Val::Text(text) => {
                take(room, text.len())?;
                Self::Text((**text).into())
            }
            Val::List(list) => Self::list(list, room)?,
            Val::Map(fields) => Self::map(fields, room)?,
            Val::Optional(Some(value)) => Self::within(value, room)?,
            Val::Bytes(bytes) => {
                take(room, bytes.len())?;
                Self::other(value)?
            }
            Val::Timestamp(_) | Val::Duration(_) | Val::Quantity(_) | Val::Type(_) => Self::other(value)?,
        })
    }

    fn list(list: &List<'_>, room: &mut usize) -> Result<Self, NotACell> {
        take(room, list.len() * size_of::<Self>())?;
        Ok(Self::List(list.iter().map(|entry| Self::within(&entry, room)).collect::<Result<_, _>>()?))
    }

    fn map(fields: &Fields<'_>, room: &mut usize) -> Result<Self, NotACell> {
        take(room, fields.len() * size_of::<(Box<str>, Self)>())?;
        let mut sorted: Vec<(Box<str>, Self)> = Vec::with_capacity(fields.len());
        for (key, value) in fields.iter() {
            let Val::Text(key) = key else { return Err(NotACell::Type(Type::Map)) };
            take(room, key.len())?;
            sorted.push(((*key).into(), Self::within(&value, room)?));
        }
        // The last value of a duplicate key counts.
        sorted.reverse();
        sorted.sort_by(|(left, _), (right, _)| left.cmp(right));
        sorted.dedup_by(|(left, _), (right, _)| left == right);
        Ok(Self::Map(sorted.into()))
    }

    /// A value that JSON has as a string.
    fn other(value: &Val<'_>) -> Result<Self, NotACell> {
        match value.to_value() {
            Some(Value::Text(text)) => Ok(Self::Text(text.into_owned().into())),
            _ => Err(NotACell::Type(value.type_of())),
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The value as aggregate functions see it: a string that is a number or a quantity counts as a number,
    /// and a string in the format of RFC 3339 as a point in time.
    pub(crate) fn measured(&self) -> Cow<'_, Self> {
        let Self::Text(text) = self else { return Cow::Borrowed(self) };
        match Number::from_text(text) {
            Ok(number) => Cow::Owned(Self::Number(number)),
            Err(NotANumber::TooLarge) => Cow::Borrowed(self),
            Err(NotANumber::Other) => match moment(text) {
                Some(at) => Cow::Owned(Self::Moment(Box::new(Moment { at, text: text.clone() }))),
                None => Cow::Borrowed(self),
            },
        }
    }

    /// With an article, for messages: `a string`.
    pub(crate) fn one(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a bool",
            Self::Number(_) => "a number",
            Self::Moment(_) | Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

fn take(room: &mut usize, bytes: usize) -> Result<(), NotACell> {
    *room = room.checked_sub(bytes).ok_or(NotACell::TooLarge)?;
    Ok(())
}

/// The point in time, if the text is one in the format of RFC 3339. The parser accepts more than that.
fn moment(text: &str) -> Option<Timestamp> {
    let is_date = |at: usize, byte: u8| match at {
        4 | 7 => byte == b'-',
        10 => matches!(byte, b'T' | b't'),
        13 | 16 => byte == b':',
        _ => byte.is_ascii_digit(),
    };
    let (date, rest) = text.as_bytes().split_at_checked(19)?;
    let fraction = rest.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let is_zone = match &rest[fraction..] {
        [b'Z' | b'z'] => true,
        [b'+' | b'-', zone @ ..] => zone.len() == 5 && zone[2] == b':',
        _ => false,
    };
    let is_moment = is_zone && date.iter().enumerate().all(|(at, byte)| is_date(at, *byte));
    if is_moment { text.parse().ok() } else { None }
}
