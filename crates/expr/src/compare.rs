//! Equality and order of values.

use std::cmp::Ordering;

use crate::{
    stop::{Fuel, Stop},
    value::Val,
};

/// Compares numbers by value across int, uint and double. Values of other types are equal only to values of
/// the same type.
pub(crate) fn equal<'v>(fuel: &mut Fuel, left: &Val<'v>, right: &Val<'v>) -> Result<bool, Stop<'v>> {
    Ok(match (left, right) {
        (Val::Null, Val::Null) => true,
        (Val::Bool(left), Val::Bool(right)) => left == right,
        (Val::Text(left), Val::Text(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            fuel.burn_bytes(left.len())?;
            **left == **right
        }
        (Val::Bytes(left), Val::Bytes(right)) => {
            fuel.burn_bytes(left.len())?;
            left == right
        }
        (Val::List(left), Val::List(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            for (left, right) in left.iter().zip(right.iter()) {
                fuel.burn(1)?;
                if !equal(fuel, &left, &right)? {
                    return Ok(false);
                }
            }
            true
        }
        (Val::Map(left), Val::Map(right)) => {
            if left.len() != right.len() {
                return Ok(false);
            }
            for (key, value) in left.iter() {
                match find(fuel, right, &key)? {
                    Some(other) if equal(fuel, &value, &other)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        (Val::Timestamp(left), Val::Timestamp(right)) => left == right,
        (Val::Duration(left), Val::Duration(right)) => left == right,
        (Val::Type(left), Val::Type(right)) => left == right,
        (Val::Quantity(left), Val::Quantity(right)) => left == right,
        (Val::Optional(left), Val::Optional(right)) => match (left, right) {
            (Some(left), Some(right)) => equal(fuel, left, right)?,
            (left, right) => left.is_none() && right.is_none(),
        },
        _ => matches!(numbers(left, right), Numbers::Ordered(Ordering::Equal)),
    })
}

/// The order of two values; `None` if one of them is `NaN`. It is an error if their types have no order.
pub(crate) fn order<'v>(
    fuel: &mut Fuel,
    left: &Val<'v>,
    right: &Val<'v>,
) -> Result<Option<Ordering>, Stop<'v>> {
    Ok(Some(match (left, right) {
        (Val::Bool(left), Val::Bool(right)) => left.cmp(right),
        (Val::Text(left), Val::Text(right)) => {
            fuel.burn_bytes(left.len().min(right.len()))?;
            (**left).cmp(&**right)
        }
        (Val::Bytes(left), Val::Bytes(right)) => {
            fuel.burn_bytes(left.len().min(right.len()))?;
            left.cmp(right)
        }
        (Val::Timestamp(left), Val::Timestamp(right)) => left.cmp(right),
        (Val::Duration(left), Val::Duration(right)) => left.cmp(right),
        (Val::Quantity(left), Val::Quantity(right)) => left.cmp(right),
        _ => match numbers(left, right) {
            Numbers::Ordered(ordering) => ordering,
            Numbers::Unordered => return Ok(None),
            Numbers::Neither => {
                return Err(Stop::error(format!("cannot order {} and {}", left.type_of(), right.type_of())));
            }
        },
    }))
}

/// Looks a key of any type up. Numbers with the same value are the same key.
pub(crate) fn find<'v>(
    fuel: &mut Fuel,
    fields: &crate::value::Fields<'v>,
    key: &Val<'v>,
) -> Result<Option<Val<'v>>, Stop<'v>> {
    fuel.burn(1 + fields.len() / 16)?;
    if let Val::Text(name) = key {
        return Ok(fields.get(name));
    }
    for (own, value) in fields.iter() {
        if own.type_of() != crate::types::Type::Text && equal(fuel, &own, key)? {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

enum Numbers {
    Ordered(Ordering),
    /// One of the two is `NaN`.
    Unordered,
    /// One of the two is not a number.
    Neither,
}

fn numbers(left: &Val<'_>, right: &Val<'_>) -> Numbers {
    let ordering = match (left, right) {
        (Val::Int(left), Val::Int(right)) => Some(left.cmp(right)),
        (Val::Uint(left), Val::Uint(right)) => Some(left.cmp(right)),
        (Val::Double(left), Val::Double(right)) => left.partial_cmp(right),
        (Val::Int(left), Val::Uint(right)) => Some(i128::from(*left).cmp(&i128::from(*right))),
        (Val::Uint(left), Val::Int(right)) => Some(i128::from(*left).cmp(&i128::from(*right))),
        (Val::Int(left), Val::Double(right)) => whole_and_double(i128::from(*left), *right),
        (Val::Uint(left), Val::Double(right)) => whole_and_double(i128::from(*left), *right),
        (Val::Double(left), Val::Int(right)) => {
            whole_and_double(i128::from(*right), *left).map(Ordering::reverse)
        }
        (Val::Double(left), Val::Uint(right)) => {
            whole_and_double(i128::from(*right), *left).map(Ordering::reverse)
        }
        _ => return Numbers::Neither,
    };
    ordering.map_or(Numbers::Unordered, Numbers::Ordered)
}

/// Exact where a conversion would round: 2^53 + 1 is not 2^53 as a double.
fn whole_and_double(whole: i128, double: f64) -> Option<Ordering> {
    const BEYOND: f64 = 1.0e30;
    if double.is_nan() {
        return None;
    }
    if double >= BEYOND {
        return Some(Ordering::Less);
    }
    if double <= -BEYOND {
        return Some(Ordering::Greater);
    }
    // Within the bounds, the integer part fits an `i128`.
    #[expect(clippy::cast_possible_truncation)]
    let floor = double.floor() as i128;
    Some(whole.cmp(&floor).then(if double.fract() == 0.0 { Ordering::Equal } else { Ordering::Less }))
}
