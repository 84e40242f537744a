//! `'%s has %d'.format([name, count])`.

use std::iter;

use super::{Function, convert::text_of, no_such_overload};
use crate::{
    stop::{Fuel, Outcome, Stop},
    types::Types,
    value::Val,
};

pub(super) const FUNCTIONS: &[Function] =
    &[Function::method("format", &[Types::TEXT, Types::LIST], Types::TEXT, format)];

/// The default number of decimals.
const USUAL_PRECISION: usize = 6;

fn format<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::Text(text), Val::List(values)] = arguments else {
        return Err(no_such_overload("format", arguments));
    };
    fuel.burn_bytes(text.len())?;
    let mut made = String::new();
    let mut values = values.iter().enumerate();
    let mut used = 0;
    let mut rest: &str = text;
    while let Some((before, clause)) = rest.split_once('%') {
        made.push_str(before);
        if let Some(after) = clause.strip_prefix('%') {
            made.push('%');
            rest = after;
            continue;
        }
        let Some((index, value)) = values.next() else {
            return Err(Stop::error(format!("index {used} out of range")));
        };
        used = index + 1;
        rest = fill(fuel, &mut made, clause, &value)?;
    }
    made.push_str(rest);
    Ok(Val::text(made))
}

/// Formats a value by its clause, and returns the rest of the template.
fn fill<'t, 'v>(
    fuel: &mut Fuel,
    made: &mut String,
    clause: &'t str,
    value: &Val<'v>,
) -> Result<&'t str, Stop<'v>> {
    // The cost of formatting a number, however short it is.
    fuel.burn(8)?;
    let (precision, clause) = precision(clause)?;
    let mut chars = clause.chars();
    match chars.next() {
        Some('s') => string(fuel, made, value)?,
        Some('d') => decimal(fuel, made, value)?,
        Some('f') => fixed(fuel, made, value, precision)?,
        Some('e') => scientific(fuel, made, value, precision)?,
        Some('b') => binary(fuel, made, value)?,
        Some('x') => hexadecimal(fuel, made, value, false)?,
        Some('X') => hexadecimal(fuel, made, value, true)?,
        Some('o') => octal(fuel, made, value)?,
        Some(other) => {
            return Err(Stop::error(format!(
                "could not parse formatting clause: unrecognized formatting clause \"{other}\""
            )));
        }
        None => return Err(Stop::error("unexpected end of string")),
    }
    Ok(chars.as_str())
}

/// Parses a precision such as `.3`.
fn precision<'v>(clause: &str) -> Result<(usize, &str), Stop<'v>> {
    let Some(after) = clause.strip_prefix('.') else {
        return Ok((USUAL_PRECISION, clause));
    };
    let end = after.find(|char: char| !char.is_ascii_digit()).unwrap_or(after.len());
    let (digits, rest) = after.split_at(end);
    match digits.parse() {
        Ok(precision) => Ok((precision, rest)),
        Err(_) => {
            Err(Stop::error("could not parse formatting clause: error while converting precision to integer"))
        }
    }
}

/// `%s`: any value.
fn string<'v>(fuel: &mut Fuel, made: &mut String, value: &Val<'v>) -> Result<(), Stop<'v>> {
    match value {
        Val::Text(text) => push(fuel, made, text),
        Val::Bytes(bytes) => {
            fuel.burn_bytes(bytes.len())?;
            push(fuel, made, &String::from_utf8_lossy(bytes))
        }
        Val::Null => push(fuel, made, "null"),
        Val::Double(number) => push(fuel, made, &plain(*number)),
        Val::Type(own) => push(fuel, made, own.name()),
        Val::List(list) => {
            push(fuel, made, "[")?;
            for (index, entry) in list.iter().enumerate() {
                fuel.burn(1)?;
                push(fuel, made, if index == 0 { "" } else { ", " })?;
                string(fuel, made, &entry)?;
            }
            push(fuel, made, "]")
        }
        Val::Map(fields) => {
            let mut written = Vec::new();
            for (key, field) in fields.iter() {
                fuel.burn(1)?;
                let (mut name, mut text) = (String::new(), String::new());
                string(fuel, &mut name, &key)?;
                string(fuel, &mut text, &field)?;
                written.push((name, text));
            }
            // Sorted, so that the same map always gives the same string.
            written.sort_by(|(left, _), (right, _)| left.cmp(right));
            let fields: Vec<_> = written.iter().map(|(name, text)| format!("{name}: {text}")).collect();
            push(fuel, made, &format!("{{{}}}", fields.join(", ")))
        }
        other => match text_of(other) {
            Some(text) => push(fuel, made, &text),
            None => Err(misfit(
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                 durations, and timestamps",
                other,
            )),
        },
    }
}

/// `%d`: numbers.
fn decimal<'v>(fuel: &mut Fuel, made: &mut String, value: &Val<'v>) -> Result<(), Stop<'v>> {
    match value {
        Val::Int(number) => push(fuel, made, &number.to_string()),
        Val::Uint(number) => push(fuel, made, &number.to_string()),
        Val::Double(number) => push(fuel, made, &plain(*number)),
        other => Err(misfit("decimal clause can only be used on ints, uints, and doubles", other)),
    }
}

/// `%f`: numbers with a fixed number of decimals.
fn fixed<'v>(fuel: &mut Fuel, made: &mut String, value: &Val<'v>, precision: usize) -> Result<(), Stop<'v>> {
    let Some(number) = double(value) else {
        return Err(misfit("fixed-point clause can only be used on ints, uints, and doubles", value));
    };
    if !number.is_finite() {
        return push(fuel, made, &plain(number));
    }
    fuel.burn_bytes(precision)?;
    let (known, zeros) = known_digits(precision);
    push(fuel, made, &format!("{number:.known$}"))?;
    made.extend(iter::repeat_n('0', zeros));
    Ok(())
}

/// `%e`: numbers in scientific notation.
fn scientific<'v>(
    fuel: &mut Fuel,
    made: &mut String,
    value: &Val<'v>,
    precision: usize,
) -> Result<(), Stop<'v>> {
    let Some(number) = double(value) else {
        return Err(misfit("scientific clause can only be used on ints, uints, and doubles", value));
    };
    if !number.is_finite() {
        return push(fuel, made, &plain(number));
    }
    fuel.burn_bytes(precision)?;
    let (known, zeros) = known_digits(precision);
    let written = format!("{number:.known$e}");
    let (digits, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    push(fuel, made, digits)?;
    made.extend(iter::repeat_n('0', zeros));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    push(fuel, made, &format!("e{sign}{exponent:0>2}"))
}

/// `%b`: integers and bools.
fn binary<'v>(fuel: &mut Fuel, made: &mut String, value: &Val<'v>) -> Result<(), Stop<'v>> {
    match value {
        Val::Bool(truth) => push(fuel, made, if *truth { "1" } else { "0" }),
        Val::Int(number) => push(fuel, made, &format!("{}{:b}", sign(*number), number.unsigned_abs())),
        Val::Uint(number) => push(fuel, made, &format!("{number:b}")),
        other => Err(misfit("only ints, uints, and bools can be formatted as binary", other)),
    }
}

/// `%o`: integers.
fn octal<'v>(fuel: &mut Fuel, made: &mut String, value: &Val<'v>) -> Result<(), Stop<'v>> {
    match value {
        Val::Int(number) => push(fuel, made, &format!("{}{:o}", sign(*number), number.unsigned_abs())),
        Val::Uint(number) => push(fuel, made, &format!("{number:o}")),
        other => Err(misfit("octal clause can only be used on ints and uints", other)),
    }
}

/// `%x` and `%X`: integers, and the bytes of strings.
fn hexadecimal<'v>(fuel: &mut Fuel, made: &mut String, value: &Val<'v>, upper: bool) -> Result<(), Stop<'v>> {
    let mut digits = String::new();
    let bytes = match value {
        Val::Int(number) => {
            digits = format!("{}{:x}", sign(*number), number.unsigned_abs());
            &[]
        }
        Val::Uint(number) => {
            digits = format!("{number:x}");
            &[]
        }
        Val::Text(text) => text.as_bytes(),
        Val::Bytes(bytes) => &**bytes,
        other => return Err(misfit("only ints, uints, bytes, and strings can be formatted as hex", other)),
    };
    fuel.burn_bytes(2 * bytes.len())?;
    for byte in bytes {
        let halves = [byte >> 4, byte & 15].map(|half| char::from_digit(half.into(), 16).unwrap_or_default());
        digits.extend(halves);
    }
    if upper {
        digits.make_ascii_uppercase();
    }
    push(fuel, made, &digits)
}

fn push<'v>(fuel: &mut Fuel, made: &mut String, text: &str) -> Result<(), Stop<'v>> {
    fuel.burn_bytes(text.len())?;
    made.push_str(text);
    Ok(())
}

/// Splits a precision into digits to format and zeros to append: no double has more than `MOST` decimals.
fn known_digits(precision: usize) -> (usize, usize) {
    const MOST: usize = 1100;
    (precision.min(MOST), precision.saturating_sub(MOST))
}

/// A number without an exponent.
fn plain(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    number.to_string()
}

#[expect(clippy::cast_precision_loss)]
fn double(value: &Val<'_>) -> Option<f64> {
    match value {
        Val::Int(number) => Some(*number as f64),
        Val::Uint(number) => Some(*number as f64),
        Val::Double(number) => Some(*number),
        _ => None,
    }
}

fn sign(number: i64) -> &'static str {
    if number < 0 { "-" } else { "" }
}

fn misfit<'v>(clause: &str, value: &Val<'_>) -> Stop<'v> {
    Stop::error(format!("error during formatting: {clause}, was given {}", value.type_of().name()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use crate::functions::testing::evaluated;

    #[rstest]
    #[case("'%s and %s'.format(['a', b'b'])", "'a and b'")]
    #[case("'100%%'.format([])", "'100%'")]
    #[case("'%s %s %s'.format([1, 1u, 2.5])", "'1 1 2.5'")]
    #[case("'%s %s'.format([true, null])", "'true null'")]
    #[case("'%s %s'.format([1e30, 1e-7])", "'1000000000000000000000000000000 0.0000001'")]
    #[case("'%s %s %s'.format([double('inf'), double('-inf'), double('nan')])", "'Infinity -Infinity NaN'")]
    #[case("'%s'.format([type('')])", "'string'")]
    #[case("'%s'.format([timestamp('2023-02-03T23:31:20+00:00')])", "'2023-02-03T23:31:20Z'")]
    #[case("'%s'.format([duration('1h45m47s')])", "'6347s'")]
    #[case("'%s'.format([quantity('1024Ki')])", "'1Mi'")]
    #[case("'%s'.format([[1, 'a', [2.5]]])", "'[1, a, [2.5]]'")]
    #[case("'%s'.format([{'b': 1, 'a': [true], 3: null}])", "'{3: null, a: [true], b: 1}'")]
    #[case("'%s'.format([{}])", "'{}'")]
    #[case("'%s'.format([[]])", "'[]'")]
    #[case(
        "'%s'.format([optional.none()])",
        "error: error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, \
         maps, lists, types, durations, and timestamps, was given optional_type"
    )]
    fn strings(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("'%d %d %d'.format([-3, 3u, 3.5])", "'-3 3 3.5'")]
    #[case("'%f'.format([3.14])", "'3.140000'")]
    #[case("'%.0f %.0f %.1f'.format([2.5, 3.5, 0.25])", "'2 4 0.2'")]
    #[case("'%.3f'.format([-2])", "'-2.000'")]
    #[case("'%f'.format([double('inf')])", "'Infinity'")]
    #[case("'%e'.format([2.71828])", "'2.718280e+00'")]
    #[case("'%.2e %.0e'.format([1234567u, 0.000000016])", "'1.23e+06 2e-08'")]
    #[case("'%e'.format([1e100])", "'1.000000e+100'")]
    #[case("'%b %b %b %b'.format([5, -5, 5u, true])", "'101 -101 101 1'")]
    #[case("'%o %o'.format([30, -30])", "'36 -36'")]
    #[case("'%x %X %x'.format([26, 26u, -26])", "'1a 1A -1a'")]
    #[case("'%x %X'.format(['Hé', b'\\xff'])", "'48c3a9 FF'")]
    #[case(
        "'%d'.format(['a'])",
        "error: error during formatting: decimal clause can only be used on ints, uints, and doubles, was given string"
    )]
    #[case(
        "'%b'.format([1.0])",
        "error: error during formatting: only ints, uints, and bools can be formatted as binary, was given double"
    )]
    fn numbers(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("'%'.format([1])", "error: unexpected end of string")]
    #[case("'%s %s'.format([1])", "error: index 1 out of range")]
    #[case("'%s'.format([1, 2])", "'1'")]
    #[case(
        "'%y'.format([1])",
        "error: could not parse formatting clause: unrecognized formatting clause \"y\""
    )]
    #[case(
        "'%é'.format([1])",
        "error: could not parse formatting clause: unrecognized formatting clause \"é\""
    )]
    #[case(
        "'%.'.format([1])",
        "error: could not parse formatting clause: error while converting precision to integer"
    )]
    #[case("'%.3'.format([1])", "error: unexpected end of string")]
    #[case(
        "'%.99999999999999999999f'.format([1])",
        "error: could not parse formatting clause: error while converting precision to integer"
    )]
    #[case("'%.999999999f'.format([1])", "too expensive")]
    #[case("'%.100000f'.format([1]).size()", "100002")]
    #[case("'%.100000e'.format([1]).size()", "100006")]
    fn clauses(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }
}
