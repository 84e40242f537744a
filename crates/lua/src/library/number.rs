//! `math`, and arithmetic with strings.

use mlua::{MultiValue, Result, Value};

use super::call::{Call, Native, error, truncated};
use crate::object::{self, type_name};

pub(super) const FUNCTIONS: &[(&str, Native)] = &[
    ("abs", |call| map(call, i64::wrapping_abs, f64::abs)),
    ("acos", |call| float(call, f64::acos)),
    ("asin", |call| float(call, f64::asin)),
    ("atan", |call| float(call, f64::atan)),
    ("atan2", |call| floats(call, f64::atan2)),
    ("ceil", |call| round(call, f64::ceil)),
    ("cos", |call| float(call, f64::cos)),
    ("deg", |call| float(call, f64::to_degrees)),
    ("exp", |call| float(call, f64::exp)),
    ("floor", |call| round(call, f64::floor)),
    ("fmod", fmod),
    ("log", log),
    ("log10", |call| float(call, f64::log10)),
    ("max", |call| extreme(call, less)),
    ("min", |call| extreme(call, |best, next| less(next, best))),
    ("mod", fmod),
    ("modf", modf),
    ("pow", |call| floats(call, f64::powf)),
    ("rad", |call| float(call, f64::to_radians)),
    ("sin", |call| float(call, f64::sin)),
    ("sqrt", |call| float(call, f64::sqrt)),
    ("tan", |call| float(call, f64::tan)),
    ("tointeger", tointeger),
    ("type", kind),
];

/// The metamethods of strings: numeric strings work in arithmetic.
pub(super) const OF_TEXTS: &[(&str, Native)] = &[
    ("__add", |call| calculate(call, i64::checked_add, |one, other| one + other)),
    ("__sub", |call| calculate(call, i64::checked_sub, |one, other| one - other)),
    ("__mul", |call| calculate(call, i64::checked_mul, |one, other| one * other)),
    ("__div", |call| calculate(call, |_, _| None, |one, other| one / other)),
    ("__mod", |call| calculate(call, floored_rest, |one, other| one - (one / other).floor() * other)),
    ("__pow", |call| calculate(call, |_, _| None, f64::powf)),
    ("__idiv", |call| calculate(call, |_, _| None, |one, other| (one / other).floor())),
    ("__unm", |call| calculate(call, |one, _| one.checked_neg(), |one, _| -one)),
];

fn float(call: &mut Call<'_>, f: impl Fn(f64) -> f64) -> Result<MultiValue> {
    call.one(f(call.float(1)?))
}

fn floats(call: &mut Call<'_>, f: impl Fn(f64, f64) -> f64) -> Result<MultiValue> {
    call.one(f(call.float(1)?, call.float(2)?))
}

fn map(call: &mut Call<'_>, whole: impl Fn(i64) -> i64, float: impl Fn(f64) -> f64) -> Result<MultiValue> {
    match call.number(1)? {
        Value::Integer(number) => call.one(whole(number)),
        _ => call.one(float(call.float(1)?)),
    }
}

fn round(call: &mut Call<'_>, f: impl Fn(f64) -> f64) -> Result<MultiValue> {
    match call.number(1)? {
        Value::Integer(number) => call.one(number),
        _ => call.one(object::number_of(f(call.float(1)?))),
    }
}

fn fmod(call: &mut Call<'_>) -> Result<MultiValue> {
    match (call.number(1)?, call.number(2)?) {
        (Value::Integer(_), Value::Integer(0)) => Err(call.bad(2, "zero")),
        (Value::Integer(one), Value::Integer(other)) => call.one(one.wrapping_rem(other)),
        _ => floats(call, |one, other| one % other),
    }
}

fn modf(call: &mut Call<'_>) -> Result<MultiValue> {
    let number = call.float(1)?;
    let rest = if number.is_infinite() { 0.0 } else { number.fract() };
    Ok(MultiValue::from_vec(vec![object::number_of(number.trunc()), Value::Number(rest)]))
}

fn log(call: &mut Call<'_>) -> Result<MultiValue> {
    if call.any(2).is_nil() { float(call, f64::ln) } else { floats(call, f64::log) }
}

fn extreme(call: &mut Call<'_>, better: impl Fn(&Value, &Value) -> bool) -> Result<MultiValue> {
    let mut best = call.number(1)?;
    for index in 2..=call.count() {
        let next = call.number(index)?;
        if better(&best, &next) {
            best = next;
        }
    }
    call.one(best)
}

#[expect(clippy::cast_precision_loss, reason = "large integers compare with fractions as floats")]
pub(super) fn less(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Integer(one), Value::Integer(other)) => one < other,
        (Value::Integer(one), Value::Number(other)) => (*one as f64) < *other,
        (Value::Number(one), Value::Integer(other)) => *one < *other as f64,
        (Value::Number(one), Value::Number(other)) => one < other,
        _ => false,
    }
}

fn tointeger(call: &mut Call<'_>) -> Result<MultiValue> {
    let whole = match call.as_number(&call.given(1)?)? {
        Some(Value::Integer(number)) => Some(number),
        Some(Value::Number(number)) => object::whole(number),
        _ => None,
    };
    call.one(whole)
}

fn kind(call: &mut Call<'_>) -> Result<MultiValue> {
    call.one(match call.given(1)? {
        Value::Integer(_) => Some("integer"),
        Value::Number(_) => Some("float"),
        _ => None,
    })
}

/// Arithmetic with at least one string. Integers become floats on overflow, as in Lua 5.1.
fn calculate(
    call: &mut Call<'_>,
    whole: impl Fn(i64, i64) -> Option<i64>,
    float: impl Fn(f64, f64) -> f64,
) -> Result<MultiValue> {
    let operands = [call.any(1), call.any(2)];
    for operand in &operands {
        if call.as_number(operand)?.is_none() {
            return Err(error(format!("attempt to perform arithmetic on a {} value", type_name(operand))));
        }
    }
    if let (Value::Integer(one), Value::Integer(other)) = (call.number(1)?, call.number(2)?)
        && let Some(result) = whole(one, other)
    {
        return call.one(result);
    }
    let result = float(call.float(1)?, call.float(2)?);
    call.one(object::number_of(result))
}

fn floored_rest(one: i64, other: i64) -> Option<i64> {
    let rest = one.checked_rem(other)?;
    Some(if rest != 0 && (rest < 0) != (other < 0) { rest + other } else { rest })
}

/// Truncates a number, for the conversions of `string.format` that require integers.
pub(super) fn whole_argument(number: &Value) -> Value {
    Value::Integer(truncated(number))
}
