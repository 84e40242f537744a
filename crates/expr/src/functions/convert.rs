//! Conversions between types, and `size`.

use std::str;

use super::{Function, invalid_text, no_such_overload};
use crate::{
    stop::{Fuel, Outcome, Stop},
    types::Types,
    value::Val,
};

const SIZED: Types = Types::TEXT.or(Types::BYTES).or(Types::LIST).or(Types::MAP);
const PRINTABLE: Types = Types::TEXT
    .or(Types::BOOL)
    .or(Types::NUMBER)
    .or(Types::BYTES)
    .or(Types::TIMESTAMP)
    .or(Types::DURATION)
    .or(Types::QUANTITY);

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("size", &[SIZED], Types::INT, size),
    Function::method("size", &[SIZED], Types::INT, size),
    Function::global(
        "int",
        &[Types::NUMBER.or(Types::TEXT).or(Types::TIMESTAMP).or(Types::DURATION)],
        Types::INT,
        int,
    ),
    Function::global("uint", &[Types::NUMBER.or(Types::TEXT)], Types::UINT, uint),
    Function::global("double", &[Types::NUMBER.or(Types::TEXT)], Types::DOUBLE, double),
    Function::global("string", &[PRINTABLE], Types::TEXT, string),
    Function::global("bytes", &[Types::BYTES.or(Types::TEXT)], Types::BYTES, bytes),
    Function::global("bool", &[Types::BOOL.or(Types::TEXT)], Types::BOOL, bool),
    Function::global("type", &[Types::ANY], Types::TYPE, type_of),
    Function::global("dyn", &[Types::ANY], Types::ANY, itself),
];

/// The value of `string(x)`; `None` for null, types and collections, and for bytes that are not UTF-8.
pub(crate) fn text_of(value: &Val<'_>) -> Option<String> {
    Some(match value {
        Val::Bool(truth) => truth.to_string(),
        Val::Int(number) => number.to_string(),
        Val::Uint(number) => number.to_string(),
        Val::Double(number) => shortest(*number),
        Val::Text(text) => text.to_string(),
        Val::Bytes(bytes) => str::from_utf8(bytes).ok()?.to_owned(),
        Val::Timestamp(moment) => moment.to_string(),
        Val::Duration(length) => super::time::seconds(*length),
        Val::Quantity(quantity) => quantity.to_string(),
        Val::Null | Val::List(_) | Val::Map(_) | Val::Type(_) | Val::Optional(_) => return None,
    })
}

/// The shortest decimal that parses to the same double, with an exponent where Go uses one.
fn shortest(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => number.to_string(),
    }
}

/// The number of characters, bytes, entries or fields.
fn size<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let size = match arguments {
        [Val::Text(text)] => {
            fuel.burn_bytes(text.len())?;
            text.chars().count()
        }
        [Val::Bytes(bytes)] => bytes.len(),
        [Val::List(list)] => list.len(),
        [Val::Map(fields)] => fields.len(),
        _ => return Err(no_such_overload("size", arguments)),
    };
    Ok(Val::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

fn int<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let number = match arguments {
        [Val::Int(number)] => Some(*number),
        [Val::Uint(number)] => i64::try_from(*number).ok(),
        [Val::Double(number)] => whole_signed(*number),
        [Val::Text(text)] => {
            fuel.burn_bytes(text.len())?;
            return text.parse().map(Val::Int).map_err(|_| invalid_text(text, "an int"));
        }
        [Val::Timestamp(moment)] => Some(moment.as_second()),
        [Val::Duration(length)] => i64::try_from(length.as_nanos()).ok(),
        _ => return Err(no_such_overload("int", arguments)),
    };
    number.map(Val::Int).ok_or_else(|| Stop::error("integer overflow"))
}

fn uint<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let number = match arguments {
        [Val::Int(number)] => u64::try_from(*number).ok(),
        [Val::Uint(number)] => Some(*number),
        [Val::Double(number)] => whole_unsigned(*number),
        [Val::Text(text)] => {
            fuel.burn_bytes(text.len())?;
            // A `uint` has no sign.
            let digits = if text.starts_with('+') { "" } else { &**text };
            return digits.parse().map(Val::Uint).map_err(|_| invalid_text(text, "a uint"));
        }
        _ => return Err(no_such_overload("uint", arguments)),
    };
    number.map(Val::Uint).ok_or_else(|| Stop::error("unsigned integer overflow"))
}

/// Truncates, if the result fits. Both limits are excluded because they are not exact as doubles.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
fn whole_signed(number: f64) -> Option<i64> {
    (number > i64::MIN as f64 && number < i64::MAX as f64).then_some(number as i64)
}

/// Truncates, if the result fits. As a double, `u64::MAX` is already out of range.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
fn whole_unsigned(number: f64) -> Option<u64> {
    (number >= 0.0 && number < u64::MAX as f64).then_some(number as u64)
}

#[expect(clippy::cast_precision_loss)]
fn double<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::Double(match arguments {
        [Val::Int(number)] => *number as f64,
        [Val::Uint(number)] => *number as f64,
        [Val::Double(number)] => *number,
        [Val::Text(text)] => {
            fuel.burn_bytes(text.len())?;
            match text.parse::<f64>() {
                // Only `inf` is infinite. Digits that overflow are an error.
                Ok(number) if number.is_finite() || !text.contains(|char: char| char.is_ascii_digit()) => {
                    number
                }
                _ => return Err(invalid_text(text, "a double")),
            }
        }
        _ => return Err(no_such_overload("double", arguments)),
    }))
}

fn string<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Text(text)] => Ok(Val::Text(text.clone())),
        [Val::Bytes(bytes)] => {
            fuel.burn_bytes(bytes.len())?;
            str::from_utf8(bytes)
                .map(Val::text)
                .map_err(|_| Stop::error("invalid UTF-8 in bytes, cannot convert to string"))
        }
        [value] => text_of(value).map(Val::text).ok_or_else(|| no_such_overload("string", arguments)),
        _ => Err(no_such_overload("string", arguments)),
    }
}

fn bytes<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Bytes(bytes)] => Ok(Val::Bytes(bytes.clone())),
        [Val::Text(text)] => {
            fuel.burn_bytes(text.len())?;
            Ok(Val::Bytes(text.as_bytes().into()))
        }
        _ => Err(no_such_overload("bytes", arguments)),
    }
}

fn bool<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Bool(truth)] => Ok(Val::Bool(*truth)),
        [Val::Text(text)] => match &**text {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Val::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Val::Bool(false)),
            _ => Err(invalid_text(text, "a bool")),
        },
        _ => Err(no_such_overload("bool", arguments)),
    }
}

fn type_of<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [value] => Ok(Val::Type(value.type_of())),
        _ => Err(no_such_overload("type", arguments)),
    }
}

fn itself<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [value] => Ok(value.clone()),
        _ => Err(no_such_overload("dyn", arguments)),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use crate::functions::testing::evaluated;

    #[rstest]
    #[case("size('hé日')", "3")]
    #[case("'😀'.size()", "1")]
    #[case("size(b'h\\xc3\\xa9')", "3")]
    #[case("[1, 2].size() + size({'a': 1})", "3")]
    #[case("size(dyn(1))", "error: no such overload: size(int)")]
    fn sizes(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("int('-42')", "-42")]
    #[case("int('+42')", "42")]
    #[case("int('4.2')", "error: '4.2' is not an int")]
    #[case("int('9223372036854775808')", "error: '9223372036854775808' is not an int")]
    #[case("int(7u)", "7")]
    #[case("int(9223372036854775808u)", "error: integer overflow")]
    #[case("int(-1.9)", "-1")]
    #[case("int(9223372036854775807.0)", "error: integer overflow")]
    #[case("int(-9223372036854775808.0)", "error: integer overflow")]
    #[case("int(9223372036854774784.0)", "9223372036854774784")]
    #[case("int(double('NaN'))", "error: integer overflow")]
    #[case("int(timestamp('2009-02-13T23:31:30.9Z'))", "1234567890")]
    #[case("int(duration('1.5s'))", "1500000000")]
    #[case("int(dyn([]))", "error: no such overload: int(list)")]
    fn signed(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("uint('42')", "42u")]
    #[case("uint('+42')", "error: '+42' is not a uint")]
    #[case("uint('-1')", "error: '-1' is not a uint")]
    #[case("uint(-1)", "error: unsigned integer overflow")]
    #[case("uint(3.9)", "3u")]
    #[case("uint(-0.5)", "error: unsigned integer overflow")]
    #[case("uint(18446744073709551616.0)", "error: unsigned integer overflow")]
    #[case("uint(18446744073709549568.0)", "18446744073709549568u")]
    fn unsigned(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("double('1e3')", "1000.0")]
    #[case("double('.5')", "0.5")]
    #[case("double('Infinity')", "inf")]
    #[case("double('-inf')", "-inf")]
    #[case("double('nan')", "NaN")]
    #[case("double('1e400')", "error: '1e400' is not a double")]
    #[case("double(' 1')", "error: ' 1' is not a double")]
    #[case("double('')", "error: '' is not a double")]
    #[case("double(3)", "3.0")]
    #[case("double(3u)", "3.0")]
    fn fractional(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("string(-7)", "'-7'")]
    #[case("string(7u)", "'7'")]
    #[case("string(true)", "'true'")]
    #[case("string(1.0)", "'1'")]
    #[case("string(-4.5e-3)", "'-0.0045'")]
    #[case("string(0.0001)", "'0.0001'")]
    #[case("string(0.00001)", "'1e-05'")]
    #[case("string(123456.5)", "'123456.5'")]
    #[case("string(999999.0)", "'999999'")]
    #[case("string(1000000.0)", "'1e+06'")]
    #[case("string(1234567.5)", "'1.2345675e+06'")]
    #[case("string(6.02214e23)", "'6.02214e+23'")]
    #[case("string(double('inf'))", "'+Inf'")]
    #[case("string(double('-inf'))", "'-Inf'")]
    #[case("string(double('nan'))", "'NaN'")]
    #[case("string(b'h\\xc3\\xa9')", "'hé'")]
    #[case("string(b'\\xff')", "error: invalid UTF-8 in bytes, cannot convert to string")]
    #[case("string(timestamp('2009-02-13T23:31:30.120Z'))", "'2009-02-13T23:31:30.12Z'")]
    #[case("string(timestamp('2009-02-13T23:31:30+02:00'))", "'2009-02-13T21:31:30Z'")]
    #[case("string(duration('1h1.5s'))", "'3601.5s'")]
    #[case("string(quantity('1.5Gi'))", "'1536Mi'")]
    #[case("string(dyn(null))", "error: no such overload: string(null)")]
    fn printed(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("bytes('hé')", "b'h\\xc3\\xa9'")]
    #[case("bytes(b'a')", "b'a'")]
    #[case("bool('True')", "true")]
    #[case("bool('0')", "false")]
    #[case("bool('yes')", "error: 'yes' is not a bool")]
    #[case("bool('tRuE')", "error: 'tRuE' is not a bool")]
    #[case("type(1u)", "uint")]
    #[case("type(type(1))", "type")]
    #[case("type(null)", "null_type")]
    #[case("type(duration('1s')) == google.protobuf.Duration", "true")]
    #[case("dyn([1])", "[1]")]
    fn others(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[test]
    fn long_text_is_cut_in_an_error() {
        let error = evaluated(&format!("int('{}')", "é".repeat(1000)));
        assert_eq!(error, format!("error: '{}…' is not an int", "é".repeat(40)));
    }
}
