//! `table.sort`.
//!
//! Lua's own quicksort picks pivots by the clock: equal entries change places from run to run, and an
//! inconsistent comparison function may raise an error or not. This merge sort is stable, and ends for any
//! comparison function.

use mlua::{Function, MultiValue, Result, Value};

use super::{
    call::{Call, error},
    number,
};
use crate::object::type_name;

pub(super) fn sort(call: &mut Call<'_>) -> Result<MultiValue> {
    let table = call.table(1)?;
    let order = match call.any(2) {
        Value::Nil => None,
        _ => Some(call.function(2)?),
    };
    let count = table.raw_len();
    call.meter().charge(count.saturating_mul(2))?;
    call.meter().need(call.lua, count.saturating_mul(2 * size_of::<Value>()))?;
    let mut entries = Vec::with_capacity(count);
    for index in 1..=count {
        entries.push(table.raw_get::<Value>(index)?);
    }
    let mut sorter = Sorter { call, order, by_operator: None };
    for (index, entry) in sorter.sorted(entries)?.into_iter().enumerate() {
        table.raw_set(index + 1, entry)?;
    }
    Ok(MultiValue::new())
}

struct Sorter<'c, 'a> {
    call: &'c Call<'a>,
    order: Option<Function>,
    /// Lua's operator `<` as a function, for tables with a metatable. Created on first use.
    by_operator: Option<Function>,
}

impl Sorter<'_, '_> {
    fn sorted(&mut self, mut entries: Vec<Value>) -> Result<Vec<Value>> {
        if entries.len() < 2 {
            return Ok(entries);
        }
        let right = entries.split_off(entries.len() / 2);
        let mut right = self.sorted(right)?.into_iter().peekable();
        let mut left = self.sorted(entries)?.into_iter().peekable();
        let mut merged = Vec::with_capacity(left.len() + right.len());
        while let (Some(one), Some(other)) = (left.peek(), right.peek()) {
            let from = if self.less(other, one)? { &mut right } else { &mut left };
            merged.extend(from.next());
        }
        merged.extend(left);
        merged.extend(right);
        Ok(merged)
    }

    fn less(&mut self, one: &Value, other: &Value) -> Result<bool> {
        self.call.meter().charge(4)?;
        if let Some(order) = &self.order {
            let verdict = self.call.invoke(order, pair(one, other))?;
            return Ok(verdict.front().is_some_and(truthy));
        }
        match (one, other) {
            (Value::Integer(_) | Value::Number(_), Value::Integer(_) | Value::Number(_)) => {
                Ok(number::less(one, other))
            }
            (Value::String(one), Value::String(other)) => {
                let (one, other) = (one.as_bytes(), other.as_bytes());
                self.call.meter().charge_bytes(one.len().min(other.len()))?;
                Ok(one < other)
            }
            (Value::Table(_), Value::Table(_)) => {
                let operator = match &self.by_operator {
                    Some(operator) => operator.clone(),
                    None => {
                        self.call.lua.load("local one, other = ... return one < other").into_function()?
                    }
                };
                self.by_operator = Some(operator.clone());
                let verdict = self.call.invoke(&operator, pair(one, other))?;
                Ok(verdict.front().is_some_and(truthy))
            }
            _ => Err(error(match (type_name(one), type_name(other)) {
                (one, other) if one == other => format!("attempt to compare two {one} values"),
                (one, other) => format!("attempt to compare {one} with {other}"),
            })),
        }
    }
}

fn pair(one: &Value, other: &Value) -> MultiValue {
    MultiValue::from_vec(vec![one.clone(), other.clone()])
}

fn truthy(value: &Value) -> bool {
    !matches!(value, Value::Nil | Value::Boolean(false))
}
