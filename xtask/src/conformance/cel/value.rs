//! The values of the suite, tagged with their types, because JSON has fewer types than CEL.

use std::{fmt, str::FromStr};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Deserializer, de::Error};

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Tagged {
    Null,
    Bool(bool),
    #[serde(deserialize_with = "parsed")]
    Int(i64),
    #[serde(deserialize_with = "parsed")]
    Uint(u64),
    #[serde(deserialize_with = "parsed")]
    Double(f64),
    String(String),
    #[serde(deserialize_with = "bytes")]
    Bytes(Vec<u8>),
    List(Vec<Self>),
    Map(Vec<(Self, Self)>),
    /// A type, by its name.
    Type(String),
    #[serde(deserialize_with = "parsed")]
    Timestamp(Timestamp),
    #[serde(deserialize_with = "duration")]
    Duration(SignedDuration),
    /// A value that cannot be represented here, by the name of its type.
    Message(String),
}

/// Stricter than CEL: 1 and 1u differ. NaN equals NaN, and the order of a map does not matter.
impl PartialEq for Tagged {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(one), Self::Bool(other)) => one == other,
            (Self::Int(one), Self::Int(other)) => one == other,
            (Self::Uint(one), Self::Uint(other)) => one == other,
            (Self::Double(one), Self::Double(other)) => one == other || (one.is_nan() && other.is_nan()),
            (Self::Bytes(one), Self::Bytes(other)) => one == other,
            (Self::List(one), Self::List(other)) => one == other,
            (Self::Map(one), Self::Map(other)) => {
                one.len() == other.len() && one.iter().all(|field| other.contains(field))
            }
            (Self::Timestamp(one), Self::Timestamp(other)) => one == other,
            (Self::Duration(one), Self::Duration(other)) => one == other,
            (Self::String(one), Self::String(other))
            | (Self::Type(one), Self::Type(other))
            | (Self::Message(one), Self::Message(other)) => one == other,
            _ => false,
        }
    }
}

/// Similar to CEL literals.
impl fmt::Display for Tagged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(truth) => write!(f, "{truth}"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Uint(number) => write!(f, "{number}u"),
            Self::Double(number) => write!(f, "{number:?}"),
            Self::String(text) => write!(f, "{text:?}"),
            Self::Bytes(bytes) => write!(f, "b\"{}\"", bytes.escape_ascii()),
            Self::List(entries) => {
                f.write_str("[")?;
                for (index, entry) in entries.iter().enumerate() {
                    write!(f, "{}{entry}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("]")
            }
            Self::Map(fields) => {
                f.write_str("{")?;
                for (index, (key, value)) in fields.iter().enumerate() {
                    write!(f, "{}{key}: {value}", if index == 0 { "" } else { ", " })?;
                }
                f.write_str("}")
            }
            Self::Type(name) => f.write_str(name),
            Self::Timestamp(moment) => write!(f, "timestamp(\"{moment}\")"),
            Self::Duration(length) => write!(f, "duration({length:?})"),
            Self::Message(name) => write!(f, "a value of type {name}"),
        }
    }
}

/// Values are strings where JSON would round them or has no literal.
fn parsed<'de, D: Deserializer<'de>, T: FromStr<Err: fmt::Display>>(text: D) -> Result<T, D::Error> {
    String::deserialize(text)?.parse().map_err(D::Error::custom)
}

fn bytes<'de, D: Deserializer<'de>>(text: D) -> Result<Vec<u8>, D::Error> {
    STANDARD.decode(String::deserialize(text)?).map_err(D::Error::custom)
}

/// Format: seconds, a dot, and nine digits of nanoseconds.
fn duration<'de, D: Deserializer<'de>>(text: D) -> Result<SignedDuration, D::Error> {
    let text = String::deserialize(text)?;
    let (sign, length): (i32, _) = match text.strip_prefix('-') {
        Some(length) => (-1, length),
        None => (1, text.as_str()),
    };
    let (seconds, nanos) =
        length.split_once('.').ok_or_else(|| D::Error::custom(format!("{text} has no nanoseconds")))?;
    let seconds: i64 = seconds.parse().map_err(D::Error::custom)?;
    let nanos: i32 = nanos.parse().map_err(D::Error::custom)?;
    Ok(SignedDuration::new(i64::from(sign) * seconds, sign * nanos))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use super::*;

    fn read(value: &Json) -> Tagged {
        Tagged::deserialize(value).unwrap()
    }

    #[rstest]
    #[case(json!("null"), "null")]
    #[case(json!({"bool": true}), "true")]
    #[case(json!({"int": "-9223372036854775808"}), "-9223372036854775808")]
    #[case(json!({"uint": "18446744073709551615"}), "18446744073709551615u")]
    #[case(json!({"double": "1"}), "1.0")]
    #[case(json!({"double": "NaN"}), "NaN")]
    #[case(json!({"double": "-inf"}), "-inf")]
    #[case(json!({"double": "1e+100"}), "1e100")]
    #[case(json!({"string": "a\"b"}), r#""a\"b""#)]
    #[case(json!({"bytes": "YQD/"}), r#"b"a\x00\xff""#)]
    #[case(json!({"list": [{"int": "1"}, "null"]}), "[1, null]")]
    #[case(json!({"map": [[{"string": "a"}, {"int": "1"}], [{"bool": true}, {"list": []}]]}), r#"{"a": 1, true: []}"#)]
    #[case(json!({"type": "int"}), "int")]
    #[case(json!({"timestamp": "0001-01-01T00:00:00.5Z"}), r#"timestamp("0001-01-01T00:00:00.5Z")"#)]
    #[case(json!({"duration": "123.000000321"}), "duration(2m 3s 321ns)")]
    #[case(json!({"duration": "-0.500000000"}), "duration(500ms ago)")]
    #[case(json!({"message": "example.Thing"}), "a value of type example.Thing")]
    fn tagged_values_are_parsed(#[case] json: Json, #[case] shown: &str) {
        assert_eq!(read(&json).to_string(), shown);
    }

    #[rstest]
    #[case(json!({"int": "1.5"}))]
    #[case(json!({"int": 1}))]
    #[case(json!({"uint": "-1"}))]
    #[case(json!({"bytes": "?"}))]
    #[case(json!({"duration": "1"}))]
    #[case(json!({"duration": "1.5s"}))]
    #[case(json!({"timestamp": "yesterday"}))]
    #[case(json!({"optional": {"int": "1"}}))]
    fn invalid_values_are_rejected(#[case] json: Json) {
        assert!(Tagged::deserialize(&json).is_err(), "{json}");
    }

    #[rstest]
    #[case(json!({"double": "NaN"}), json!({"double": "NaN"}), true)]
    #[case(json!({"double": "NaN"}), json!({"double": "0"}), false)]
    #[case(json!({"double": "0"}), json!({"double": "-0"}), true)]
    #[case(json!({"int": "1"}), json!({"uint": "1"}), false)]
    #[case(json!({"int": "1"}), json!({"double": "1"}), false)]
    #[case(json!({"string": "int"}), json!({"type": "int"}), false)]
    #[case(json!({"list": [{"int": "1"}, {"int": "2"}]}), json!({"list": [{"int": "2"}, {"int": "1"}]}), false)]
    #[case(
        json!({"map": [[{"int": "1"}, "null"], [{"int": "2"}, {"double": "NaN"}]]}),
        json!({"map": [[{"int": "2"}, {"double": "NaN"}], [{"int": "1"}, "null"]]}),
        true
    )]
    #[case(
        json!({"map": [[{"int": "1"}, "null"], [{"int": "2"}, "null"]]}),
        json!({"map": [[{"int": "1"}, "null"]]}),
        false
    )]
    fn equality_is_strict_about_types(#[case] one: Json, #[case] other: Json, #[case] same: bool) {
        assert_eq!(read(&one) == read(&other), same);
        assert_eq!(read(&other) == read(&one), same);
    }
}
