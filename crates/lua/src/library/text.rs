//! `string`, except for patterns.

use mlua::{LuaString, MultiValue, Result, Value};

use super::{
    base,
    call::{Call, Native, error},
    number,
};
use crate::failure::Resource;

pub(super) const FUNCTIONS: &[(&str, Native)] = &[
    ("byte", byte),
    ("char", char),
    ("format", format),
    ("len", len),
    ("lower", |call| map(call, <[u8]>::to_ascii_lowercase)),
    ("rep", rep),
    ("reverse", |call| map(call, |text| text.iter().rev().copied().collect())),
    ("sub", sub),
    ("upper", |call| map(call, <[u8]>::to_ascii_uppercase)),
];

/// The most results of a function: Lua's stack has a million slots.
const MAX_RESULTS: usize = 250_000;

/// The byte range of two positions, which count from 1, or from the end if they are negative.
fn range(length: usize, first: i64, last: i64) -> std::ops::Range<usize> {
    let length = i64::try_from(length).unwrap_or(i64::MAX);
    let first = if first < 0 { (length + 1).saturating_add(first).max(1) } else { first.max(1) };
    let last = if last < 0 { (length + 1).saturating_add(last) } else { last.min(length) };
    if first > last {
        return 0..0;
    }
    usize::try_from(first - 1).unwrap_or(0)..usize::try_from(last).unwrap_or(0)
}

fn map(call: &mut Call<'_>, f: impl Fn(&[u8]) -> Vec<u8>) -> Result<MultiValue> {
    let text = call.text(1)?;
    let text = text.as_bytes();
    call.meter().need(call.lua, 2 * text.len())?;
    let text = call.make_text(&f(&text))?;
    call.one(text)
}

fn byte(call: &mut Call<'_>) -> Result<MultiValue> {
    let text = call.text(1)?;
    let text = text.as_bytes();
    let first = call.integer_or(2, 1)?;
    let part = range(text.len(), first, call.integer_or(3, first)?);
    if part.len() > MAX_RESULTS {
        return Err(error("string slice too long"));
    }
    call.meter().charge(part.len())?;
    Ok(text[part].iter().map(|byte| Value::Integer(i64::from(*byte))).collect())
}

fn char(call: &mut Call<'_>) -> Result<MultiValue> {
    let mut text = Vec::with_capacity(call.count());
    for index in 1..=call.count() {
        text.push(u8::try_from(call.integer(index)?).map_err(|_| call.bad(index, "value out of range"))?);
    }
    let text = call.make_text(&text)?;
    call.one(text)
}

fn len(call: &mut Call<'_>) -> Result<MultiValue> {
    call.one(call.text(1)?.as_bytes().len())
}

fn rep(call: &mut Call<'_>) -> Result<MultiValue> {
    let text = call.text(1)?;
    let count = usize::try_from(call.integer(2)?.max(0)).unwrap_or(usize::MAX);
    let separator = call.text_or_nil(3)?;
    let text = text.as_bytes();
    let separator = separator.as_ref().map(LuaString::as_bytes);
    let separator = separator.as_deref().unwrap_or_default();
    if count == 0 || text.is_empty() && separator.is_empty() {
        return call.one("");
    }
    let total = (text.len() + separator.len()).checked_mul(count);
    let total = total.ok_or_else(|| call.meter().end(Resource::Memory))?;
    call.meter().need(call.lua, total.saturating_mul(2))?;
    let unit = [&text, separator].concat();
    let mut repeated = unit.repeat(count);
    repeated.truncate(total - separator.len());
    let repeated = call.make_text(&repeated)?;
    call.one(repeated)
}

fn sub(call: &mut Call<'_>) -> Result<MultiValue> {
    let text = call.text(1)?;
    let text = text.as_bytes();
    let part = range(text.len(), call.integer(2)?, call.integer_or(3, -1)?);
    let part = call.make_text(&text[part])?;
    call.one(part)
}

/// Lua's own `format`, with converted arguments: strings without addresses, and integers where it requires
/// them.
fn format(call: &mut Call<'_>) -> Result<MultiValue> {
    let template = call.text(1)?;
    let template_bytes = template.as_bytes();
    call.meter().charge(template_bytes.len())?;
    let mut arguments = vec![Value::String(template.clone())];
    let mut bytes = template_bytes.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            continue;
        }
        let conversion = bytes.find(|byte| !b"-+ #0123456789.".contains(byte)).unwrap_or(b'%');
        if conversion == b'%' {
            continue;
        }
        let index = arguments.len() + 1;
        let argument = call.given(index).map_err(|_| call.bad(index, "no value"))?;
        arguments.push(match conversion {
            b's' => Value::String(base::text_of(call, &argument)?),
            b'd' | b'i' | b'o' | b'u' | b'x' | b'X' | b'c' => number::whole_argument(&call.number(index)?),
            b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => call.number(index)?,
            b'q' => argument,
            other => {
                return Err(error(format!("invalid conversion '%{}' to 'format'", char::from(other))));
            }
        });
    }
    let size = arguments.iter().filter_map(Value::as_string).map(|text| text.as_bytes().len()).sum::<usize>();
    call.meter().charge_bytes(size)?;
    call.shared.original.format.call(MultiValue::from_vec(arguments))
}
