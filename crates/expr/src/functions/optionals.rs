//! Optional values.

use std::rc::Rc;

use super::{Function, no_such_overload};
use crate::{
    stop::{Fuel, Outcome, Stop},
    types::Types,
    value::Val,
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("optional.of", &[Types::ANY], Types::OPTIONAL, of),
    Function::global("optional.none", &[], Types::OPTIONAL, none),
    Function::global("optional.ofNonZeroValue", &[Types::ANY], Types::OPTIONAL, of_non_zero),
    Function::method("hasValue", &[Types::OPTIONAL], Types::BOOL, has_value),
    Function::method("value", &[Types::OPTIONAL], Types::ANY, value),
    Function::method("or", &[Types::OPTIONAL, Types::OPTIONAL], Types::OPTIONAL, or),
    Function::method("orValue", &[Types::OPTIONAL, Types::ANY], Types::ANY, or_value),
    Function::global("optional.unwrap", &[Types::LIST], Types::LIST, unwrapped),
    Function::method("unwrapOpt", &[Types::LIST], Types::LIST, unwrapped),
];

fn of<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [value] => Ok(some(value)),
        _ => Err(no_such_overload("optional.of", arguments)),
    }
}

// All functions have one signature, even those that cannot fail.
#[expect(clippy::unnecessary_wraps)]
fn none<'v>(_: &mut Fuel, _: &[Val<'v>]) -> Outcome<'v> {
    Ok(Val::Optional(None))
}

fn of_non_zero<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [value] if is_zero(value) => Ok(Val::Optional(None)),
        [value] => Ok(some(value)),
        _ => Err(no_such_overload("optional.ofNonZeroValue", arguments)),
    }
}

fn has_value<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Optional(value)] => Ok(Val::Bool(value.is_some())),
        _ => Err(no_such_overload("hasValue", arguments)),
    }
}

fn value<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Optional(Some(value))] => Ok((**value).clone()),
        [Val::Optional(None)] => Err(Stop::error("optional.none() dereference")),
        _ => Err(no_such_overload("value", arguments)),
    }
}

fn or<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Optional(None), other @ Val::Optional(_)] => Ok(other.clone()),
        [own @ Val::Optional(Some(_)), Val::Optional(_)] => Ok(own.clone()),
        _ => Err(no_such_overload("or", arguments)),
    }
}

fn or_value<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Optional(Some(value)), _] => Ok((**value).clone()),
        [Val::Optional(None), other] => Ok(other.clone()),
        _ => Err(no_such_overload("orValue", arguments)),
    }
}

/// The values of the entries that have one.
fn unwrapped<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::List(list)] = arguments else {
        return Err(no_such_overload("optional.unwrap", arguments));
    };
    fuel.burn(list.len())?;
    let mut values = Vec::new();
    for entry in list.iter() {
        match entry {
            Val::Optional(Some(value)) => values.push((*value).clone()),
            Val::Optional(None) => {}
            other => return Err(no_such_overload("optional.unwrap", &[other])),
        }
    }
    Ok(Val::list(values))
}

pub(super) fn some<'v>(value: &Val<'v>) -> Val<'v> {
    Val::Optional(Some(Rc::new(value.clone())))
}

/// Whether a value is the zero value of its type, as in Go.
fn is_zero(value: &Val<'_>) -> bool {
    match value {
        Val::Null => true,
        Val::Bool(truth) => !truth,
        Val::Int(number) => *number == 0,
        Val::Uint(number) => *number == 0,
        Val::Double(number) => *number == 0.0,
        Val::Text(text) => text.is_empty(),
        Val::Bytes(bytes) => bytes.is_empty(),
        Val::List(list) => list.is_empty(),
        Val::Map(fields) => fields.is_empty(),
        Val::Duration(length) => length.is_zero(),
        // Go's zero time is the start of year 1.
        Val::Timestamp(moment) => *moment == super::time::FIRST,
        Val::Quantity(_) | Val::Type(_) | Val::Optional(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use crate::functions::testing::evaluated;

    #[rstest]
    #[case("optional.of(1)", "some 1")]
    #[case("optional.of(null)", "some null")]
    #[case("optional.none()", "none")]
    #[case("optional.ofNonZeroValue(1)", "some 1")]
    #[case("optional.ofNonZeroValue(optional.none())", "some none")]
    #[case("optional.of(1).hasValue()", "true")]
    #[case("optional.none().hasValue()", "false")]
    #[case("optional.of(1).value()", "1")]
    #[case("optional.none().value()", "error: optional.none() dereference")]
    #[case("optional.none().or(optional.of(2))", "some 2")]
    #[case("optional.of(1).or(optional.of(2))", "some 1")]
    #[case("optional.none().orValue(3)", "3")]
    #[case("optional.of(1).orValue(3)", "1")]
    #[case("optional.unwrap([optional.of(1), optional.none(), optional.of('a')])", "[1, 'a']")]
    #[case("[optional.none()].unwrapOpt()", "[]")]
    #[case("[1].unwrapOpt()", "error: no such overload: optional.unwrap(int)")]
    fn functions(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    fn zero_values_are_none(
        #[values(
            "0",
            "0u",
            "0.0",
            "-0.0",
            "''",
            "b''",
            "[]",
            "{}",
            "false",
            "null",
            "duration('0s')",
            "timestamp('0001-01-01T00:00:00Z')"
        )]
        zero: &str,
    ) {
        assert_eq!(evaluated(&format!("optional.ofNonZeroValue({zero})")), "none");
    }
}
