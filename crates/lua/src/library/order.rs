//! Iteration over tables in a fixed order.
//!
//! Lua's own order differs from run to run. Here the list part comes first, then numbers, strings and
//! booleans, each sorted.

use std::{cmp::Ordering, rc::Rc};

use mlua::{Lua, MultiValue, Result, Table, Value};

use super::call::{Call, error};
use crate::shared::{Shared, Walk};

/// Adds `next`, `pairs` and `ipairs`.
pub(super) fn open(lua: &Lua, shared: &Rc<Shared>, globals: &Table) -> Result<()> {
    let function = shared.function(lua, "next", next)?;
    globals.raw_set("next", &function)?;
    let pairs = shared.function(lua, "pairs", move |call| {
        let table = call.table(1)?;
        Ok(MultiValue::from_vec(vec![Value::Function(function.clone()), Value::Table(table), Value::Nil]))
    })?;
    globals.raw_set("pairs", pairs)?;
    let step = shared.function(lua, "ipairs", step)?;
    let ipairs = shared.function(lua, "ipairs", move |call| {
        let list = call.table(1)?;
        Ok(MultiValue::from_vec(vec![Value::Function(step.clone()), Value::Table(list), Value::Integer(0)]))
    })?;
    globals.raw_set("ipairs", ipairs)
}

/// The next entry of a list, without metamethods, as in Lua 5.1.
fn step(call: &mut Call<'_>) -> Result<MultiValue> {
    let index = call.integer(2)?.wrapping_add(1);
    match call.table(1)?.raw_get(index)? {
        Value::Nil => call.one(Value::Nil),
        value => Ok(MultiValue::from_vec(vec![Value::Integer(index), value])),
    }
}

fn next(call: &mut Call<'_>) -> Result<MultiValue> {
    let table = call.table(1)?;
    let key = call.any(2);
    let known = call.shared.walks.borrow().get(&table.to_pointer()).cloned();
    let walk = match known {
        Some(walk) if !key.is_nil() => walk,
        // A new iteration sees the current keys.
        _ => {
            let walk = Rc::new(Walk::new(call, &table)?);
            call.shared.walks.borrow_mut().insert(table.to_pointer(), Rc::clone(&walk));
            walk
        }
    };
    let mut place = walk.after(call, &key)?;
    while let Some(key) = walk.key(place)? {
        let value: Value = table.raw_get(&key)?;
        if !value.is_nil() {
            return Ok(MultiValue::from_vec(vec![key, value]));
        }
        // Removed since the iteration started.
        call.meter().charge(1)?;
        place += 1;
    }
    call.one(Value::Nil)
}

impl Walk {
    fn new(call: &Call<'_>, table: &Table) -> Result<Self> {
        let list = i64::try_from(table.raw_len()).unwrap_or(i64::MAX);
        let mut others = Vec::new();
        let (mut addresses, mut bytes) = (0, 0);
        table.for_each(|key: Value, _: Value| {
            call.meter().charge(2)?;
            match key {
                Value::Integer(index) if (1..=list).contains(&index) => return Ok(()),
                Value::Integer(_) | Value::Number(_) | Value::Boolean(_) => {}
                Value::String(ref text) => bytes += text.as_bytes().len(),
                _ => addresses += 1,
            }
            others.push(key);
            Ok(())
        })?;
        if addresses > 1 {
            return Err(error(
                "cannot iterate over a table with several table or function keys: their order is undefined",
            ));
        }
        let rounds = others.len().checked_ilog2().unwrap_or(0) as usize;
        call.meter().charge(others.len() * rounds)?;
        call.meter().charge_bytes(bytes * rounds)?;
        others.sort_by(by_key);
        let others = call.lua.create_sequence_from(others)?;
        Ok(Self { list, others })
    }

    /// The key at a position, counted from 1.
    fn key(&self, place: i64) -> Result<Option<Value>> {
        if place <= self.list {
            return Ok(Some(Value::Integer(place)));
        }
        let key: Value = self.others.raw_get(place - self.list)?;
        Ok((!key.is_nil()).then_some(key))
    }

    /// The position behind a key.
    fn after(&self, call: &Call<'_>, key: &Value) -> Result<i64> {
        match key {
            Value::Nil => return Ok(1),
            Value::Integer(index) if (1..=self.list).contains(index) => return Ok(index + 1),
            _ => {}
        }
        let (mut low, mut high) = (1, i64::try_from(self.others.raw_len()).unwrap_or(i64::MAX));
        while low <= high {
            let middle = low + (high - low) / 2;
            let candidate: Value = self.others.raw_get(middle)?;
            if let (Value::String(one), Value::String(other)) = (&candidate, key) {
                call.meter().charge_bytes(one.as_bytes().len().min(other.as_bytes().len()))?;
            }
            match by_key(&candidate, key) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle - 1,
                Ordering::Equal => return Ok(self.list + middle + 1),
            }
        }
        Err(error("invalid key to 'next'"))
    }
}

/// The order of keys. At most one of them is not a number, string or boolean.
fn by_key(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Integer(one), Value::Integer(other)) => one.cmp(other),
        (Value::Integer(_) | Value::Number(_), Value::Integer(_) | Value::Number(_)) => {
            // Keys that are the same integer and float would be the same key.
            float(one).total_cmp(&float(other)).then_with(|| rank(one).cmp(&rank(other)))
        }
        (Value::String(one), Value::String(other)) => one.as_bytes().cmp(&other.as_bytes()),
        (Value::Boolean(one), Value::Boolean(other)) => one.cmp(other),
        _ => rank(one).cmp(&rank(other)),
    }
}

#[expect(clippy::cast_precision_loss, reason = "where it matters, the rank decides")]
fn float(number: &Value) -> f64 {
    match number {
        Value::Integer(number) => *number as f64,
        Value::Number(number) => *number,
        _ => f64::NAN,
    }
}

fn rank(key: &Value) -> u8 {
    match key {
        Value::Integer(_) => 0,
        Value::Number(_) => 1,
        Value::String(_) => 2,
        Value::Boolean(_) => 3,
        _ => 4,
    }
}
