//! The global functions.

use mlua::{LuaString, MultiValue, Result, Value};

use super::call::{Call, Native, error};
use crate::{failure, object::type_name};

pub(super) const FUNCTIONS: &[(&str, Native)] = &[
    ("collectgarbage", collectgarbage),
    ("pcall", pcall),
    // There is no output.
    ("print", |_| Ok(MultiValue::new())),
    ("select", select),
    ("setmetatable", setmetatable),
    ("tonumber", tonumber),
    ("tostring", tostring),
    ("xpcall", xpcall),
];

/// The collector is off.
fn collectgarbage(call: &mut Call<'_>) -> Result<MultiValue> {
    call.one(0)
}

fn select(call: &mut Call<'_>) -> Result<MultiValue> {
    let others = i64::try_from(call.count()).unwrap_or(i64::MAX) - 1;
    if matches!(call.any(1), Value::String(sign) if sign == "#") {
        return call.one(others);
    }
    let index = call.integer(1)?;
    let skipped = if index < 0 { others + index } else { index.min(others + 1) - 1 };
    let skipped = usize::try_from(skipped).map_err(|_| call.bad(1, "index out of range"))?;
    Ok(call.arguments.drain(1..).skip(skipped).collect())
}

/// Rejects `__gc`: Lua would call it when the state is dropped, where nothing meters it.
fn setmetatable(call: &mut Call<'_>) -> Result<MultiValue> {
    let table = call.table(1)?;
    match call.given(2).map_err(|_| call.bad(2, "nil or table expected"))? {
        Value::Nil => {}
        Value::Table(metatable) if metatable.raw_get::<Value>("__gc")?.is_nil() => {}
        Value::Table(_) => return Err(error("__gc is not supported in a metatable")),
        _ => return Err(call.bad(2, "nil or table expected")),
    }
    call.shared.original.setmetatable.call((table, call.any(2)))
}

fn tonumber(call: &mut Call<'_>) -> Result<MultiValue> {
    if call.any(2).is_nil() {
        let number = call.as_number(&call.given(1)?)?;
        return call.one(number);
    }
    let base = call.integer(2)?;
    let text = call.text(1)?;
    let base = u32::try_from(base).ok().filter(|base| (2..=36).contains(base));
    let base = base.ok_or_else(|| call.bad(2, "base out of range"))?;
    call.meter().charge_bytes(text.as_bytes().len())?;
    call.one(digits(&text, base))
}

/// An integer in a given base. It wraps around on overflow, as in Lua.
fn digits(text: &LuaString, base: u32) -> Option<i64> {
    let text = text.as_bytes();
    let text = text.trim_ascii();
    let (negative, text) = text.strip_prefix(b"-").map_or((false, text), |text| (true, text));
    let number = text.iter().try_fold(0_i64, |number, letter| {
        let digit = char::from(*letter).to_digit(base)?;
        Some(number.wrapping_mul(i64::from(base)).wrapping_add(i64::from(digit)))
    });
    let number = number.filter(|_| !text.is_empty())?;
    Some(if negative { number.wrapping_neg() } else { number })
}

fn tostring(call: &mut Call<'_>) -> Result<MultiValue> {
    let value = call.given(1)?;
    let text = text_of(call, &value)?;
    call.one(text)
}

/// The result of `tostring`: integral floats without a decimal point, and no real addresses.
pub(super) fn text_of(call: &Call<'_>, value: &Value) -> Result<LuaString> {
    match value {
        Value::Error(error) => call.lua.create_string(failure::root_text(error)),
        Value::Table(_) | Value::Function(_) => text_of_reference(call, value),
        other => match call.as_text(other)? {
            Some(text) => Ok(text),
            None => call.shared.original.tostring.call(other),
        },
    }
}

/// The string of a table or function. Its address differs from run to run, so a number replaces it.
fn text_of_reference(call: &Call<'_>, value: &Value) -> Result<LuaString> {
    if let Value::Table(metatable) = call.shared.original.getmetatable.call(value)?
        && let Value::Function(method) = metatable.raw_get("__tostring")?
    {
        let text = call.invoke(&method, MultiValue::from_vec(vec![value.clone()]))?;
        let text = call.as_text(text.front().unwrap_or(&Value::Nil))?;
        return text.ok_or_else(|| error("'__tostring' must return a string"));
    }
    let number = call.shared.address(value.to_pointer());
    call.lua.create_string(format!("{}: 0x{number:08x}", type_name(value)))
}

fn pcall(call: &mut Call<'_>) -> Result<MultiValue> {
    call.given(1)?;
    let arguments = MultiValue::from_vec(std::mem::take(&mut call.arguments));
    attempt(call, arguments)
}

/// The handler runs after the stack is unwound. Without `debug`, a script cannot tell the difference.
fn xpcall(call: &mut Call<'_>) -> Result<MultiValue> {
    let handler = call.function(2)?;
    call.arguments.remove(1);
    let arguments = MultiValue::from_vec(std::mem::take(&mut call.arguments));
    let mut results = attempt(call, arguments)?;
    if results.front() == Some(&Value::Boolean(false)) {
        results.pop_front();
        results = call.invoke(&handler, results)?;
        results.push_front(Value::Boolean(false));
    }
    Ok(results)
}

/// Calls a function and catches what it raises, except for the end of the budget.
fn attempt(call: &Call<'_>, mut arguments: MultiValue) -> Result<MultiValue> {
    let function = arguments.pop_front().unwrap_or_default();
    let thrown = match call.shared.call(call.lua, function, arguments)? {
        Ok(mut results) => {
            results.push_front(Value::Boolean(true));
            return Ok(results);
        }
        // To the script, native errors are strings.
        Err(Value::Error(error)) => Value::String(call.lua.create_string(failure::root_text(&error))?),
        Err(thrown) => thrown,
    };
    Ok(MultiValue::from_vec(vec![Value::Boolean(false), thrown]))
}
