//! What was made, as JSON can tell it.

use bellwether_model::Value;

use crate::{functions, value::Val};

impl Val<'_> {
    /// As a value that JSON can tell, bytes, times and quantities as their text; none for types, and for maps whose keys are
    /// not texts.
    pub fn to_value(&self) -> Option<Value<'static>> {
        Some(match self {
            Self::Null | Self::Optional(None) => Value::Null,
            Self::Bool(truth) => Value::Bool(*truth),
            Self::Int(number) => Value::Int(*number),
            Self::Uint(number) => {
                // A number beyond the signed ones keeps its size rather than its last digits.
                #[expect(clippy::cast_precision_loss)]
                i64::try_from(*number).map_or(Value::Float(*number as f64), Value::Int)
            }
            Self::Double(number) => Value::Float(*number),
            Self::Text(text) => Value::Text(text.to_string().into()),
            Self::List(list) => {
                Value::List(list.iter().map(|entry| entry.to_value()).collect::<Option<_>>()?)
            }
            Self::Map(fields) => Value::Map(
                fields
                    .iter()
                    .map(|(key, value)| match key {
                        Self::Text(key) => Some((key.to_string().into(), value.to_value()?)),
                        _ => None,
                    })
                    .collect::<Option<_>>()?,
            ),
            Self::Optional(Some(value)) => value.to_value()?,
            Self::Bytes(_) | Self::Timestamp(_) | Self::Duration(_) | Self::Quantity(_) => {
                Value::Text(functions::text_of(self)?.into())
            }
            Self::Type(_) => return None,
        })
    }
}
