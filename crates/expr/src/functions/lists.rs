//! Functions of lists.

use std::{cmp::Ordering, collections::HashSet};

use super::{Function, maths, no_such_overload, optionals::some};
use crate::{
    compare::{equal, order},
    stop::{Fuel, Outcome, Stop},
    types::Types,
    value::{List, Val},
};

const L: Types = Types::LIST;
const I: Types = Types::INT;

/// The types that have an order.
const ORDERED: Types = Types::NUMBER
    .or(Types::BOOL)
    .or(Types::TEXT)
    .or(Types::BYTES)
    .or(Types::TIMESTAMP)
    .or(Types::DURATION)
    .or(Types::QUANTITY);

pub(super) const FUNCTIONS: &[Function] = &[
    Function::method("sum", &[L], Types::NUMBER.or(Types::DURATION), sum),
    Function::method("min", &[L], ORDERED, min),
    Function::method("max", &[L], ORDERED, max),
    Function::method("isSorted", &[L], Types::BOOL, is_sorted),
    Function::method("indexOf", &[L, Types::ANY], I, index_of),
    Function::method("lastIndexOf", &[L, Types::ANY], I, last_index_of),
    Function::method("slice", &[L, I, I], L, slice),
    Function::method("flatten", &[L], L, flatten),
    Function::method("flatten", &[L, I], L, flatten),
    Function::method("distinct", &[L], L, distinct),
    Function::method("sort", &[L], L, sort),
    Function::method("reverse", &[L], L, reverse),
    Function::method("first", &[L], Types::OPTIONAL, first),
    Function::method("last", &[L], Types::OPTIONAL, last),
    Function::global("lists.range", &[I], L, range),
];

/// The sum of numbers or durations; 0 for an empty list.
fn sum<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::List(list)] = arguments else {
        return Err(no_such_overload("sum", arguments));
    };
    fuel.burn(list.len())?;
    let mut entries = list.iter();
    let mut sum = match entries.next() {
        None => return Ok(Val::Int(0)),
        Some(first @ (Val::Int(_) | Val::Uint(_) | Val::Double(_) | Val::Duration(_))) => first,
        Some(other) => return Err(no_such_overload("sum", &[other])),
    };
    for entry in entries {
        sum = maths::add(fuel, &sum, &entry)?;
    }
    Ok(sum)
}

fn min<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    extreme(fuel, arguments, "min", Ordering::Less)
}

fn max<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    extreme(fuel, arguments, "max", Ordering::Greater)
}

/// The first of the smallest or greatest entries.
fn extreme<'v>(fuel: &mut Fuel, arguments: &[Val<'v>], name: &str, beyond: Ordering) -> Outcome<'v> {
    let [Val::List(list)] = arguments else {
        return Err(no_such_overload(name, arguments));
    };
    let mut entries = list.iter();
    let Some(mut best) = entries.next() else {
        return Err(Stop::error(format!("{name} called on empty list")));
    };
    if !ORDERED.meets(Types::of(best.type_of())) {
        return Err(no_such_overload(name, &[best]));
    }
    for entry in entries {
        fuel.burn(1)?;
        if order(fuel, &entry, &best)? == Some(beyond) {
            best = entry;
        }
    }
    Ok(best)
}

fn is_sorted<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::List(list)] = arguments else {
        return Err(no_such_overload("isSorted", arguments));
    };
    let mut entries = list.iter();
    let Some(mut before) = entries.next() else {
        return Ok(Val::Bool(true));
    };
    if !ORDERED.meets(Types::of(before.type_of())) {
        return Err(no_such_overload("isSorted", &[before]));
    }
    for entry in entries {
        fuel.burn(1)?;
        if order(fuel, &before, &entry)? == Some(Ordering::Greater) {
            return Ok(Val::Bool(false));
        }
        before = entry;
    }
    Ok(Val::Bool(true))
}

fn index_of<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::List(list), wanted] => search(fuel, list.iter().enumerate(), wanted),
        _ => Err(no_such_overload("indexOf", arguments)),
    }
}

fn last_index_of<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::List(list), wanted] => search(fuel, list.iter().enumerate().rev(), wanted),
        _ => Err(no_such_overload("lastIndexOf", arguments)),
    }
}

/// The index of the first equal entry; -1 if there is none.
fn search<'v>(
    fuel: &mut Fuel,
    entries: impl Iterator<Item = (usize, Val<'v>)>,
    wanted: &Val<'v>,
) -> Outcome<'v> {
    for (index, entry) in entries {
        fuel.burn(1)?;
        if equal(fuel, &entry, wanted)? {
            return Ok(Val::Int(i64::try_from(index).unwrap_or(i64::MAX)));
        }
    }
    Ok(Val::Int(-1))
}

/// The entries of a half-open range.
fn slice<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::List(list), Val::Int(start), Val::Int(end)] = arguments else {
        return Err(no_such_overload("slice", arguments));
    };
    let (Ok(first), Ok(beyond)) = (usize::try_from(*start), usize::try_from(*end)) else {
        return Err(Stop::error(format!("cannot slice({start}, {end}), negative indexes not supported")));
    };
    if first > beyond {
        return Err(Stop::error(format!(
            "cannot slice({start}, {end}), start index must be less than or equal to end index"
        )));
    }
    if beyond > list.len() {
        return Err(Stop::error(format!("cannot slice({start}, {end}), list is length {}", list.len())));
    }
    let length = beyond - first;
    fuel.burn(length)?;
    Ok(match list {
        List::Read(entries) => Val::List(List::Read(entries.get(first..beyond).unwrap_or_default())),
        List::Made(_) => Val::list(list.iter().skip(first).take(length).collect::<Vec<_>>()),
    })
}

/// Flattens nested lists, one level deep or as deep as given.
fn flatten<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let (list, depth) = match arguments {
        [Val::List(list)] => (list, 1),
        [Val::List(list), Val::Int(depth)] => (list, *depth),
        _ => return Err(no_such_overload("flatten", arguments)),
    };
    if depth < 0 {
        return Err(Stop::error("level must be non-negative"));
    }
    let mut flat = Vec::new();
    flatten_into(fuel, &mut flat, list, depth)?;
    Ok(Val::list(flat))
}

fn flatten_into<'v>(
    fuel: &mut Fuel,
    flat: &mut Vec<Val<'v>>,
    list: &List<'v>,
    depth: i64,
) -> Result<(), Stop<'v>> {
    for entry in list.iter() {
        fuel.burn(1)?;
        match entry {
            Val::List(inner) if depth > 0 => flatten_into(fuel, flat, &inner, depth - 1)?,
            entry => flat.push(entry),
        }
    }
    Ok(())
}

/// Removes duplicates, and keeps the first of each.
fn distinct<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::List(list)] = arguments else {
        return Err(no_such_overload("distinct", arguments));
    };
    fuel.burn(list.len())?;
    let entries: Vec<_> = list.iter().collect();
    // Strings, the usual case, are hashed. All other values are compared one by one.
    let mut texts = HashSet::new();
    let mut others: Vec<&Val<'v>> = Vec::new();
    let mut kept = Vec::new();
    'entries: for entry in &entries {
        if let Val::Text(text) = entry {
            fuel.burn_bytes(text.len())?;
            if !texts.insert(&**text) {
                continue;
            }
        } else {
            for other in &others {
                fuel.burn(1)?;
                if equal(fuel, other, entry)? {
                    continue 'entries;
                }
            }
            others.push(entry);
        }
        kept.push(entry.clone());
    }
    Ok(Val::list(kept))
}

fn sort<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::List(list)] = arguments else {
        return Err(no_such_overload("sort", arguments));
    };
    fuel.burn(list.len())?;
    sort_by(fuel, list.iter().map(|entry| (entry.clone(), entry)).collect())
}

/// A stable sort by keys of one type.
pub(crate) fn sort_by<'v>(fuel: &mut Fuel, mut entries: Vec<(Val<'v>, Val<'v>)>) -> Outcome<'v> {
    let Some((first, _)) = entries.first() else {
        return Ok(Val::list([]));
    };
    let one_type = first.type_of();
    if !ORDERED.meets(Types::of(one_type)) {
        return Err(Stop::error("list elements must be comparable"));
    }
    // Pays for the whole sort in advance: a comparison cannot stop it.
    let rounds = entries.len().ilog2() as usize + 1;
    for (key, _) in &entries {
        if key.type_of() != one_type {
            return Err(Stop::error("list elements must have the same type"));
        }
        let bytes = match key {
            Val::Double(number) if number.is_nan() => {
                return Err(Stop::error("NaN values cannot be ordered"));
            }
            Val::Text(text) => text.len(),
            Val::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        fuel.burn(rounds)?;
        fuel.burn_bytes(bytes.saturating_mul(rounds))?;
    }
    let paid = &mut Fuel::new(u64::MAX);
    entries
        .sort_by(|(left, _), (right, _)| order(paid, left, right).ok().flatten().unwrap_or(Ordering::Equal));
    Ok(Val::list(entries.into_iter().map(|(_, value)| value).collect::<Vec<_>>()))
}

fn reverse<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::List(list)] = arguments else {
        return Err(no_such_overload("reverse", arguments));
    };
    fuel.burn(list.len())?;
    Ok(Val::list(list.iter().rev().collect::<Vec<_>>()))
}

fn first<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::List(list)] => Ok(list.get(0).map_or(Val::Optional(None), |entry| some(&entry))),
        _ => Err(no_such_overload("first", arguments)),
    }
}

fn last<'v>(_: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::List(list)] => Ok(list.iter().next_back().map_or(Val::Optional(None), |entry| some(&entry))),
        _ => Err(no_such_overload("last", arguments)),
    }
}

/// The integers from 0 to `size` - 1.
fn range<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    let [Val::Int(size)] = arguments else {
        return Err(no_such_overload("lists.range", arguments));
    };
    let Ok(steps) = usize::try_from(*size) else {
        return Err(Stop::error(format!("lists.range: size must be non-negative, got {size}")));
    };
    fuel.burn(steps)?;
    Ok(Val::list((0..*size).map(Val::Int).collect::<Vec<_>>()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use crate::functions::testing::evaluated;

    #[rstest]
    #[case("[1, 3].sum()", "4")]
    #[case("[1.0, 3.0].sum()", "4.0")]
    #[case("[1u, 3u].sum()", "4u")]
    #[case("[duration('1m'), duration('1s')].sum()", "61s")]
    #[case("[].sum()", "0")]
    #[case("[9223372036854775807, 1].sum()", "error: integer overflow")]
    #[case("[1, 3.0].sum()", "error: no such overload: int + double")]
    #[case("['a', 'b'].sum()", "error: no such overload: sum(string)")]
    #[case("[3, 1, 2].min()", "1")]
    #[case("[3, 1, 2].max()", "3")]
    #[case("[3, 1u, 2.5].min()", "1u")]
    #[case("['b', 'a'].max()", "'b'")]
    #[case("[true, false].min()", "false")]
    #[case("[].min()", "error: min called on empty list")]
    #[case("[].max()", "error: max called on empty list")]
    #[case("[1, 'a'].max()", "error: cannot order string and int")]
    #[case("[{}].max()", "error: no such overload: max(map)")]
    fn extremes(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("[1, 2, 2].isSorted()", "true")]
    #[case("[2.0, 1.0].isSorted()", "false")]
    #[case("[].isSorted()", "true")]
    #[case("[[1]].isSorted()", "error: no such overload: isSorted(list)")]
    #[case("[1, 2, 2, 3].indexOf(2)", "1")]
    #[case("[1, 2, 2, 3].lastIndexOf(2)", "2")]
    #[case("[1.0].indexOf(1)", "0")]
    #[case("['a'].indexOf('b')", "-1")]
    #[case("[].indexOf('b')", "-1")]
    fn searched(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("[1, 2, 3, 4].slice(1, 3)", "[2, 3]")]
    #[case("[1, 2, 3, 4].slice(4, 4)", "[]")]
    #[case(
        "[1, 2].slice(3, 0)",
        "error: cannot slice(3, 0), start index must be less than or equal to end index"
    )]
    #[case("[1, 2].slice(0, 3)", "error: cannot slice(0, 3), list is length 2")]
    #[case("[1, 2].slice(-1, 1)", "error: cannot slice(-1, 1), negative indexes not supported")]
    #[case("dyn([1, [2, [3, [4]]]]).flatten()", "[1, 2, [3, [4]]]")]
    #[case("dyn([1, [2, [3, [4]]]]).flatten(2)", "[1, 2, 3, [4]]")]
    #[case("dyn([1, [2]]).flatten(0)", "[1, [2]]")]
    #[case("[].flatten()", "[]")]
    #[case("[1].flatten(-1)", "error: level must be non-negative")]
    #[case("[1, 2, 3].reverse()", "[3, 2, 1]")]
    #[case("lists.range(3)", "[0, 1, 2]")]
    #[case("lists.range(0)", "[]")]
    #[case("lists.range(-1)", "error: lists.range: size must be non-negative, got -1")]
    #[case("lists.range(1000000000000)", "too expensive")]
    #[case("[1, 2].first()", "some 1")]
    #[case("[1, 2].last()", "some 2")]
    #[case("[].first()", "none")]
    #[case("[].last()", "none")]
    fn parts(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("[1, 2, 2u, 3.0, 3, 1].distinct()", "[1, 2, 3.0]")]
    #[case("['b', 'a', 'b', 1, 'a'].distinct()", "['b', 'a', 1]")]
    #[case("[[1], [1.0], [2]].distinct()", "[[1], [2]]")]
    #[case("[].distinct()", "[]")]
    #[case("[4, 3, 2, 1].sort()", "[1, 2, 3, 4]")]
    #[case("['d', 'a', 'c'].sort()", "['a', 'c', 'd']")]
    #[case("[2.0, double('-inf'), -0.5].sort()", "[-inf, -0.5, 2.0]")]
    #[case("[duration('1m'), duration('2s')].sort()", "[2s, 60s]")]
    #[case("[quantity('1Gi'), quantity('1G')].sort()", "[1G, 1Gi]")]
    #[case("[].sort()", "[]")]
    #[case("['a', 3].sort()", "error: list elements must have the same type")]
    #[case("[1, 2u].sort()", "error: list elements must have the same type")]
    #[case("[null].sort()", "error: list elements must be comparable")]
    #[case("[1.0, double('nan')].sort()", "error: NaN values cannot be ordered")]
    #[case("['ab', 'b', 'aa', 'c'].sortBy(e, e.size())", "['b', 'c', 'ab', 'aa']")]
    fn ordered(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }
}
