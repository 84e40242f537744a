//! Lists as sets: neither order nor duplicates count.

use super::{Function, no_such_overload};
use crate::{
    compare::equal,
    stop::{Fuel, Outcome, Stop},
    types::Types,
    value::{List, Val},
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("sets.contains", &[Types::LIST, Types::LIST], Types::BOOL, contains),
    Function::global("sets.equivalent", &[Types::LIST, Types::LIST], Types::BOOL, equivalent),
    Function::global("sets.intersects", &[Types::LIST, Types::LIST], Types::BOOL, intersects),
];

/// Whether the first list contains all entries of the second.
fn contains<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::List(whole), Val::List(part)] => has_all(fuel, whole, part).map(Val::Bool),
        _ => Err(no_such_overload("sets.contains", arguments)),
    }
}

/// Whether each list contains all entries of the other.
fn equivalent<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::List(left), Val::List(right)] => {
            Ok(Val::Bool(has_all(fuel, left, right)? && has_all(fuel, right, left)?))
        }
        _ => Err(no_such_overload("sets.equivalent", arguments)),
    }
}

/// Whether the lists share an entry.
fn intersects<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::List(left), Val::List(right)] = arguments else {
        return Err(no_such_overload("sets.intersects", arguments));
    };
    for entry in left.iter() {
        if has(fuel, right, &entry)? {
            return Ok(Val::Bool(true));
        }
    }
    Ok(Val::Bool(false))
}

fn has_all<'v>(fuel: &mut Fuel, whole: &List<'v>, part: &List<'v>) -> Result<bool, Stop<'v>> {
    for entry in part.iter() {
        if !has(fuel, whole, &entry)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn has<'v>(fuel: &mut Fuel, list: &List<'v>, wanted: &Val<'v>) -> Result<bool, Stop<'v>> {
    fuel.burn(1)?;
    for entry in list.iter() {
        fuel.burn(1)?;
        if equal(fuel, &entry, wanted)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use crate::functions::testing::evaluated;

    #[rstest]
    #[case("sets.contains([1, 2, 3, 4], [2, 3])", "true")]
    #[case("sets.contains([1], [])", "true")]
    #[case("sets.contains([], [1])", "false")]
    #[case("sets.contains([1], [1, 1.0, 1u])", "true")]
    #[case("sets.contains([[1], [2, 3]], [[2, 3.0]])", "true")]
    #[case("sets.equivalent([1, 2, 2], [2u, 1.0])", "true")]
    #[case("sets.equivalent([1, 2], [1])", "false")]
    #[case("sets.equivalent([], [])", "true")]
    #[case("sets.intersects([1, 2], [2, 3])", "true")]
    #[case("sets.intersects([1], [])", "false")]
    #[case("sets.intersects([[1], [2]], [[1, 2], [2]])", "true")]
    #[case("sets.contains(lists.range(3000), lists.range(3000))", "too expensive")]
    fn lists_as_sets(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }
}
