//! Arithmetic operators, and the functions of `math`.

use std::cmp::Ordering;

use super::{Function, no_such_overload, time};
use crate::{
    compare::order,
    stop::{Fuel, Outcome, Stop},
    types::Types,
    value::Val,
};

const D: Types = Types::DOUBLE;
const N: Types = Types::NUMBER;
const WHOLE: Types = Types::INT.or(Types::UINT);

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("math.greatest", &[Types::ANY], N, greatest),
    Function::global("math.least", &[Types::ANY], N, least),
    Function::global("math.ceil", &[D], D, ceil),
    Function::global("math.floor", &[D], D, floor),
    Function::global("math.round", &[D], D, round),
    Function::global("math.trunc", &[D], D, trunc),
    Function::global("math.isNaN", &[D], Types::BOOL, is_nan),
    Function::global("math.isInf", &[D], Types::BOOL, is_inf),
    Function::global("math.isFinite", &[D], Types::BOOL, is_finite),
    Function::global("math.abs", &[N], N, abs),
    Function::global("math.sign", &[N], N, sign),
    Function::global("math.sqrt", &[N], D, sqrt),
    Function::global("math.bitAnd", &[Types::INT, Types::INT], Types::INT, bit_and),
    Function::global("math.bitAnd", &[Types::UINT, Types::UINT], Types::UINT, bit_and),
    Function::global("math.bitOr", &[Types::INT, Types::INT], Types::INT, bit_or),
    Function::global("math.bitOr", &[Types::UINT, Types::UINT], Types::UINT, bit_or),
    Function::global("math.bitXor", &[Types::INT, Types::INT], Types::INT, bit_xor),
    Function::global("math.bitXor", &[Types::UINT, Types::UINT], Types::UINT, bit_xor),
    Function::global("math.bitNot", &[WHOLE], WHOLE, bit_not),
    Function::global("math.bitShiftLeft", &[WHOLE, Types::INT], WHOLE, bit_shift_left),
    Function::global("math.bitShiftRight", &[WHOLE, Types::INT], WHOLE, bit_shift_right),
];

/// Adds numbers and times, and concatenates strings, bytes and lists.
pub(crate) fn add<'v>(fuel: &mut Fuel, left: &Val<'v>, right: &Val<'v>) -> Outcome<'v> {
    match (left, right) {
        (Val::Int(left), Val::Int(right)) => int(left.checked_add(*right)),
        (Val::Uint(left), Val::Uint(right)) => uint(left.checked_add(*right)),
        (Val::Double(left), Val::Double(right)) => Ok(Val::Double(left + right)),
        (Val::Text(left), Val::Text(right)) => {
            fuel.burn_bytes(left.len() + right.len())?;
            Ok(Val::text([&**left, &**right].concat()))
        }
        (Val::Bytes(left), Val::Bytes(right)) => {
            fuel.burn_bytes(left.len() + right.len())?;
            Ok(Val::Bytes([&**left, &**right].concat().into()))
        }
        (Val::List(left), Val::List(right)) => {
            fuel.burn(left.len() + right.len())?;
            Ok(Val::list(left.iter().chain(right.iter()).collect::<Vec<_>>()))
        }
        (Val::Duration(left), Val::Duration(right)) => time::length(left.checked_add(*right)),
        (Val::Timestamp(moment), Val::Duration(length)) | (Val::Duration(length), Val::Timestamp(moment)) => {
            time::moment(moment.checked_add(*length).ok())
        }
        _ => Err(no_overload("+", left, right)),
    }
}

/// Subtracts numbers and times.
pub(crate) fn subtract<'v>(_: &mut Fuel, left: &Val<'v>, right: &Val<'v>) -> Outcome<'v> {
    match (left, right) {
        (Val::Int(left), Val::Int(right)) => int(left.checked_sub(*right)),
        (Val::Uint(left), Val::Uint(right)) => uint(left.checked_sub(*right)),
        (Val::Double(left), Val::Double(right)) => Ok(Val::Double(left - right)),
        (Val::Duration(left), Val::Duration(right)) => time::length(left.checked_sub(*right)),
        (Val::Timestamp(moment), Val::Duration(length)) => time::moment(moment.checked_sub(*length).ok()),
        (Val::Timestamp(left), Val::Timestamp(right)) => time::length(Some(left.duration_since(*right))),
        _ => Err(no_overload("-", left, right)),
    }
}

pub(crate) fn multiply<'v>(_: &mut Fuel, left: &Val<'v>, right: &Val<'v>) -> Outcome<'v> {
    match (left, right) {
        (Val::Int(left), Val::Int(right)) => int(left.checked_mul(*right)),
        (Val::Uint(left), Val::Uint(right)) => uint(left.checked_mul(*right)),
        (Val::Double(left), Val::Double(right)) => Ok(Val::Double(left * right)),
        _ => Err(no_overload("*", left, right)),
    }
}

/// Integer division truncates toward zero.
pub(crate) fn divide<'v>(_: &mut Fuel, left: &Val<'v>, right: &Val<'v>) -> Outcome<'v> {
    match (left, right) {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => Err(Stop::error("division by zero")),
        (Val::Int(left), Val::Int(right)) => int(left.checked_div(*right)),
        (Val::Uint(left), Val::Uint(right)) => uint(left.checked_div(*right)),
        (Val::Double(left), Val::Double(right)) => Ok(Val::Double(left / right)),
        _ => Err(no_overload("/", left, right)),
    }
}

/// The result has the sign of the dividend.
pub(crate) fn modulo<'v>(_: &mut Fuel, left: &Val<'v>, right: &Val<'v>) -> Outcome<'v> {
    match (left, right) {
        (Val::Int(_), Val::Int(0)) | (Val::Uint(_), Val::Uint(0)) => Err(Stop::error("modulus by zero")),
        (Val::Int(left), Val::Int(right)) => int(left.checked_rem(*right)),
        (Val::Uint(left), Val::Uint(right)) => uint(left.checked_rem(*right)),
        _ => Err(no_overload("%", left, right)),
    }
}

pub(crate) fn negate<'v>(value: &Val<'v>) -> Outcome<'v> {
    match value {
        Val::Int(number) => int(number.checked_neg()),
        Val::Double(number) => Ok(Val::Double(-number)),
        Val::Duration(length) => time::length(length.checked_neg()),
        other => Err(Stop::error(format!("no such overload: -{}", other.type_of()))),
    }
}

fn int<'v>(number: Option<i64>) -> Outcome<'v> {
    number.map(Val::Int).ok_or_else(|| Stop::error("integer overflow"))
}

fn uint<'v>(number: Option<u64>) -> Outcome<'v> {
    number.map(Val::Uint).ok_or_else(|| Stop::error("unsigned integer overflow"))
}

fn no_overload<'v>(operator: &str, left: &Val<'v>, right: &Val<'v>) -> Stop<'v> {
    Stop::error(format!("no such overload: {} {operator} {}", left.type_of(), right.type_of()))
}

fn greatest<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    extreme(fuel, arguments, "math.greatest", Ordering::Greater)
}

fn least<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    extreme(fuel, arguments, "math.least", Ordering::Less)
}

/// The first of the smallest or greatest numbers. A single number is its own extreme.
fn extreme<'v>(fuel: &mut Fuel, arguments: &[Val<'v>], name: &str, beyond: Ordering) -> Outcome<'v> {
    let list = match arguments {
        [number @ (Val::Int(_) | Val::Uint(_) | Val::Double(_))] => return Ok(number.clone()),
        [Val::List(list)] => list,
        _ => return Err(no_such_overload(name, arguments)),
    };
    let mut best: Option<Val<'v>> = None;
    for number in list.iter() {
        fuel.burn(1)?;
        if !matches!(number, Val::Int(_) | Val::Uint(_) | Val::Double(_)) {
            return Err(no_such_overload(name, &[number]));
        }
        best = match best {
            None => Some(number),
            Some(best) => match order(fuel, &number, &best)? {
                None => return Err(Stop::error("NaN values cannot be ordered")),
                Some(ordering) if ordering == beyond => Some(number),
                Some(_) => Some(best),
            },
        };
    }
    best.ok_or_else(|| Stop::error(format!("{name}(list) argument must not be empty")))
}

fn ceil<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    double("math.ceil", arguments).map(|number| Val::Double(number.ceil()))
}

fn floor<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    double("math.floor", arguments).map(|number| Val::Double(number.floor()))
}

/// Half-way cases round away from zero.
fn round<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    double("math.round", arguments).map(|number| Val::Double(number.round()))
}

fn trunc<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    double("math.trunc", arguments).map(|number| Val::Double(number.trunc()))
}

fn is_nan<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    double("math.isNaN", arguments).map(|number| Val::Bool(number.is_nan()))
}

fn is_inf<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    double("math.isInf", arguments).map(|number| Val::Bool(number.is_infinite()))
}

fn is_finite<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    double("math.isFinite", arguments).map(|number| Val::Bool(number.is_finite()))
}

fn double<'v>(name: &str, arguments: &[Val<'v>]) -> Result<f64, Stop<'v>> {
    match arguments {
        [Val::Double(number)] => Ok(*number),
        _ => Err(no_such_overload(name, arguments)),
    }
}

fn abs<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Int(number)] => int(number.checked_abs()),
        [Val::Uint(number)] => Ok(Val::Uint(*number)),
        [Val::Double(number)] => Ok(Val::Double(number.abs())),
        _ => Err(no_such_overload("math.abs", arguments)),
    }
}

fn sign<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Int(number)] => Ok(Val::Int(number.signum())),
        [Val::Uint(number)] => Ok(Val::Uint((*number).min(1))),
        // Both zeros give 0.0.
        [Val::Double(0.0)] => Ok(Val::Double(0.0)),
        [Val::Double(number)] => Ok(Val::Double(number.signum())),
        _ => Err(no_such_overload("math.sign", arguments)),
    }
}

#[expect(clippy::cast_precision_loss)]
fn sqrt<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let number = match arguments {
        [Val::Int(number)] => *number as f64,
        [Val::Uint(number)] => *number as f64,
        [Val::Double(number)] => *number,
        _ => return Err(no_such_overload("math.sqrt", arguments)),
    };
    Ok(Val::Double(number.sqrt()))
}

fn bit_and<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Int(left), Val::Int(right)] => Ok(Val::Int(left & right)),
        [Val::Uint(left), Val::Uint(right)] => Ok(Val::Uint(left & right)),
        _ => Err(no_such_overload("math.bitAnd", arguments)),
    }
}

fn bit_or<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Int(left), Val::Int(right)] => Ok(Val::Int(left | right)),
        [Val::Uint(left), Val::Uint(right)] => Ok(Val::Uint(left | right)),
        _ => Err(no_such_overload("math.bitOr", arguments)),
    }
}

fn bit_xor<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Int(left), Val::Int(right)] => Ok(Val::Int(left ^ right)),
        [Val::Uint(left), Val::Uint(right)] => Ok(Val::Uint(left ^ right)),
        _ => Err(no_such_overload("math.bitXor", arguments)),
    }
}

fn bit_not<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Int(number)] => Ok(Val::Int(!number)),
        [Val::Uint(number)] => Ok(Val::Uint(!number)),
        _ => Err(no_such_overload("math.bitNot", arguments)),
    }
}

fn bit_shift_left<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    shift("math.bitShiftLeft", arguments, u64::checked_shl)
}

/// A logical shift: the sign bit moves like any other.
fn bit_shift_right<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    shift("math.bitShiftRight", arguments, u64::checked_shr)
}

/// Shifts by 64 or more give 0.
fn shift<'v>(name: &str, arguments: &[Val<'v>], moved: fn(u64, u32) -> Option<u64>) -> Outcome<'v> {
    let [number, Val::Int(by)] = arguments else {
        return Err(no_such_overload(name, arguments));
    };
    if *by < 0 {
        return Err(Stop::error(format!("{name}() negative offset: {by}")));
    }
    let by = u32::try_from(*by).unwrap_or(u32::MAX);
    match number {
        Val::Int(number) => Ok(Val::Int(moved(number.cast_unsigned(), by).unwrap_or(0).cast_signed())),
        Val::Uint(number) => Ok(Val::Uint(moved(*number, by).unwrap_or(0))),
        _ => Err(no_such_overload(name, arguments)),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use crate::functions::testing::evaluated;

    #[rstest]
    #[case("9223372036854775807 + 1", "error: integer overflow")]
    #[case("-9223372036854775808 - 1", "error: integer overflow")]
    #[case("5000000000 * 5000000000", "error: integer overflow")]
    #[case("-9223372036854775808 / -1", "error: integer overflow")]
    #[case("-9223372036854775808 % -1", "error: integer overflow")]
    #[case("-(-9223372036854775808)", "error: integer overflow")]
    #[case("1u - 2u", "error: unsigned integer overflow")]
    #[case("18446744073709551615u + 1u", "error: unsigned integer overflow")]
    #[case("7 / 0", "error: division by zero")]
    #[case("7u / 0u", "error: division by zero")]
    #[case("7 % 0", "error: modulus by zero")]
    #[case("-7 / 2", "-3")]
    #[case("-7 % 2", "-1")]
    #[case("7.0 / 0.0", "inf")]
    #[case("-(1.5)", "-1.5")]
    #[case("dyn(1) + 1u", "error: no such overload: int + uint")]
    #[case("dyn(1) * 1.0", "error: no such overload: int * double")]
    #[case("-dyn(1u)", "error: no such overload: -uint")]
    #[case("'a' + 'é'", "'aé'")]
    #[case("b'a' + b'b'", "b'ab'")]
    #[case("[1] + ['a'] + []", "[1, 'a']")]
    fn operators(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("timestamp('2009-02-13T23:00:00Z') + duration('240s')", "2009-02-13T23:04:00Z")]
    #[case("duration('2m') + timestamp('2009-02-13T23:01:00Z')", "2009-02-13T23:03:00Z")]
    #[case("timestamp('2009-02-13T23:10:00Z') - duration('600s')", "2009-02-13T23:00:00Z")]
    #[case("timestamp('2009-02-13T23:31:00Z') - timestamp('2009-02-13T23:29:00Z')", "120s")]
    #[case("duration('600s') + duration('50ms')", "600.05s")]
    #[case("duration('1s') - duration('2s')", "-1s")]
    #[case("-duration('1.5s')", "-1.5s")]
    #[case("timestamp('0001-01-01T00:00:00Z') - duration('1ns')", "error: timestamp overflow")]
    #[case("timestamp('9999-12-30T00:00:00Z') + duration('100h')", "error: timestamp overflow")]
    #[case(
        "timestamp('9999-12-30T00:00:00Z') - timestamp('0001-01-01T00:00:00Z')",
        "error: duration overflow"
    )]
    #[case("duration('2562047h') + duration('1h')", "error: duration overflow")]
    fn times(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("math.greatest(1)", "1")]
    #[case("math.greatest(1, 2.5, 2u)", "2.5")]
    #[case("math.greatest(3, 3.0)", "3")]
    #[case("math.least([3, -1, 2])", "-1")]
    #[case("math.least(dyn([]))", "error: math.least(list) argument must not be empty")]
    #[case("math.greatest(dyn('a'))", "error: no such overload: math.greatest(string)")]
    #[case("math.greatest(dyn([1, 'a']))", "error: no such overload: math.greatest(string)")]
    #[case("math.greatest(1.0, double('nan'))", "error: NaN values cannot be ordered")]
    fn extremes(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("math.ceil(1.2)", "2.0")]
    #[case("math.ceil(-1.2)", "-1.0")]
    #[case("math.floor(-1.2)", "-2.0")]
    #[case("math.round(1.5)", "2.0")]
    #[case("math.round(2.5)", "3.0")]
    #[case("math.round(-1.5)", "-2.0")]
    #[case("math.trunc(-1.9)", "-1.0")]
    #[case("math.abs(-1)", "1")]
    #[case("math.abs(1u)", "1u")]
    #[case("math.abs(-1.5)", "1.5")]
    #[case("math.abs(-9223372036854775808)", "error: integer overflow")]
    #[case("math.sign(-3)", "-1")]
    #[case("math.sign(3u)", "1u")]
    #[case("math.sign(0u)", "0u")]
    #[case("math.sign(-0.0)", "0.0")]
    #[case("math.sign(-0.5)", "-1.0")]
    #[case("math.sign(double('nan'))", "NaN")]
    #[case("math.isNaN(double('nan'))", "true")]
    #[case("math.isInf(double('-inf'))", "true")]
    #[case("math.isFinite(double('inf'))", "false")]
    #[case("math.isFinite(1.0)", "true")]
    #[case("math.sqrt(81)", "9.0")]
    #[case("math.sqrt(2u)", "1.4142135623730951")]
    #[case("math.sqrt(-1.0)", "NaN")]
    fn functions(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("math.bitAnd(3, 5)", "1")]
    #[case("math.bitOr(1u, 2u)", "3u")]
    #[case("math.bitXor(3, 5)", "6")]
    #[case("math.bitNot(1)", "-2")]
    #[case("math.bitNot(0u)", "18446744073709551615u")]
    #[case("math.bitShiftLeft(1, 2)", "4")]
    #[case("math.bitShiftLeft(1, 63)", "-9223372036854775808")]
    #[case("math.bitShiftLeft(1, 200)", "0")]
    #[case("math.bitShiftLeft(-1, 1)", "-2")]
    #[case("math.bitShiftRight(-1024, 3)", "2305843009213693824")]
    #[case("math.bitShiftRight(1024u, 2)", "256u")]
    #[case("math.bitShiftRight(1, 64)", "0")]
    #[case("math.bitShiftLeft(1u, -1)", "error: math.bitShiftLeft() negative offset: -1")]
    #[case("math.bitAnd(dyn(1), 1u)", "error: no such overload: math.bitAnd(int, uint)")]
    fn bits(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }
}
