//! `table`.

use mlua::{MultiValue, Result, Table, Value};

use super::{
    call::{Call, Native, error},
    sort,
};
use crate::object::type_name;

pub(super) const FUNCTIONS: &[(&str, Native)] = &[
    ("concat", concat),
    ("getn", getn),
    ("insert", insert),
    ("maxn", maxn),
    ("move", move_entries),
    ("pack", pack),
    ("remove", remove),
    ("sort", sort::sort),
    ("unpack", unpack),
];

/// The most results of a function: Lua's stack has a million slots.
const MAX_RESULTS: i64 = 250_000;

/// The length of a list. Scripts can forge it: a table with a few fields may have the length 2⁶². Loops pay
/// before they start.
fn length(table: &Table) -> i64 {
    i64::try_from(table.raw_len()).unwrap_or(i64::MAX)
}

fn pay_for_range(call: &Call<'_>, first: i64, last: i64) -> Result<()> {
    let count = i128::from(last) - i128::from(first) + 1;
    call.meter().charge(usize::try_from(count.max(0)).unwrap_or(usize::MAX).saturating_mul(2))
}

fn concat(call: &mut Call<'_>) -> Result<MultiValue> {
    let table = call.table(1)?;
    let separator = call.text_or_nil(2)?;
    let separator = separator.as_ref().map(mlua::LuaString::as_bytes);
    let separator = separator.as_deref().unwrap_or_default();
    let (first, last) = (call.integer_or(3, 1)?, call.integer_or(4, length(&table))?);
    pay_for_range(call, first, last)?;
    let mut joined = Vec::new();
    for index in first..=last {
        let value: Value = table.raw_get(index)?;
        let Some(text) = call.as_text(&value)? else {
            let kind = type_name(&value);
            return Err(error(format!("invalid value (a {kind}) at index {index} in table for 'concat'")));
        };
        let text = text.as_bytes();
        call.meter().need(call.lua, joined.len() + separator.len() + text.len())?;
        joined.extend_from_slice(&text);
        if index < last {
            joined.extend_from_slice(separator);
        }
    }
    let joined = call.make_text(&joined)?;
    call.one(joined)
}

fn getn(call: &mut Call<'_>) -> Result<MultiValue> {
    call.one(length(&call.table(1)?))
}

fn maxn(call: &mut Call<'_>) -> Result<MultiValue> {
    let mut largest = Value::Integer(0);
    call.table(1)?.for_each(|key: Value, _: Value| {
        call.meter().charge(2)?;
        if super::number::less(&largest, &key) {
            largest = key;
        }
        Ok(())
    })?;
    call.one(largest)
}

fn insert(call: &mut Call<'_>) -> Result<MultiValue> {
    let table = call.table(1)?;
    let end = length(&table).checked_add(1).ok_or_else(|| error("the table is full"))?;
    match call.count() {
        2 => table.raw_set(end, call.any(2))?,
        3 => {
            let position = call.integer(2)?;
            if !(1..=end).contains(&position) {
                return Err(call.bad(2, "position out of bounds"));
            }
            pay_for_range(call, position, end)?;
            table.raw_insert(position, call.any(3))?;
        }
        _ => return Err(error("wrong number of arguments to 'insert'")),
    }
    Ok(MultiValue::new())
}

fn remove(call: &mut Call<'_>) -> Result<MultiValue> {
    let table = call.table(1)?;
    let size = length(&table);
    let position = call.integer_or(2, size)?;
    if size == 0 && (position == 0 || position == 1) || position == size.saturating_add(1) {
        let value: Value = table.raw_get(position)?;
        table.raw_set(position, Value::Nil)?;
        return call.one(value);
    }
    if !(1..=size).contains(&position) {
        return Err(call.bad(2, "position out of bounds"));
    }
    pay_for_range(call, position, size)?;
    let value: Value = table.raw_get(position)?;
    table.raw_remove(position)?;
    call.one(value)
}

fn move_entries(call: &mut Call<'_>) -> Result<MultiValue> {
    let from = call.table(1)?;
    let (first, last, target) = (call.integer(2)?, call.integer(3)?, call.integer(4)?);
    let to = if call.any(5).is_nil() { from.clone() } else { call.table(5)? };
    pay_for_range(call, first, last)?;
    if first <= last {
        // The range is paid for, so it is short. It may still end at `i64::MAX`.
        let shift = i128::from(target) - i128::from(first);
        if i64::try_from(i128::from(last) + shift).is_err() {
            return Err(call.bad(4, "destination wrap around"));
        }
        let move_one = |index: i64| {
            let place = i64::try_from(i128::from(index) + shift).unwrap_or(i64::MAX);
            to.raw_set(place, from.raw_get::<Value>(index)?)
        };
        // Copy in the direction that does not overwrite unread entries.
        if target > first && target <= last {
            (first..=last).rev().try_for_each(move_one)?;
        } else {
            (first..=last).try_for_each(move_one)?;
        }
    }
    call.one(to)
}

fn pack(call: &mut Call<'_>) -> Result<MultiValue> {
    let count = call.count();
    let table = call.lua.create_table_with_capacity(count, 1)?;
    for (index, value) in std::mem::take(&mut call.arguments).into_iter().enumerate() {
        table.raw_set(index + 1, value)?;
    }
    table.raw_set("n", count)?;
    call.one(table)
}

fn unpack(call: &mut Call<'_>) -> Result<MultiValue> {
    let table = call.table(1)?;
    let (first, last) = (call.integer_or(2, 1)?, call.integer_or(3, length(&table))?);
    if i128::from(last) - i128::from(first) >= i128::from(MAX_RESULTS) {
        return Err(error("too many results to unpack"));
    }
    pay_for_range(call, first, last)?;
    (first..=last).map(|index| table.raw_get(index)).collect()
}
