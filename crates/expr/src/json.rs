//! Conversion into JSON values.

use bellwether_model::Value;

use crate::{functions, value::Val};

impl Val<'_> {
    /// Converts into a value of JSON. Bytes, times and quantities become strings. `None` for types, and for
    /// maps with keys that are not strings.
    pub fn to_value(&self) -> Option<Value<'static>> {
        Some(match self {
            Self::Null | Self::Optional(None) => Value::Null,
            Self::Bool(truth) => Value::Bool(*truth),
            Self::Int(number) => Value::Int(*number),
            Self::Uint(number) => {
                // Beyond `i64`, a double keeps the magnitude but not the last digits.
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
