//! `string.find`, `match`, `gmatch` and `gsub`.

use std::cell::Cell;

use mlua::{LuaString, MultiValue, Result, Value};

use super::call::{Call, Native, error};
use crate::{
    object::type_name,
    pattern::{Found, Matcher, is_plain},
};

pub(super) const FUNCTIONS: &[(&str, Native)] =
    &[("find", find), ("gfind", gmatch), ("gmatch", gmatch), ("gsub", gsub), ("match", match_once)];

fn find(call: &mut Call<'_>) -> Result<MultiValue> {
    let (text, pattern) = (call.text(1)?, call.text(2)?);
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let Some(start) = start(call, text.len(), 3)? else {
        return call.one(Value::Nil);
    };
    call.meter().charge_bytes(pattern.len())?;
    let plain = !matches!(call.any(4), Value::Nil | Value::Boolean(false));
    if plain || is_plain(&pattern) {
        let Some(at) = find_plain(call, &text[start..], &pattern)? else {
            return call.one(Value::Nil);
        };
        let first = position(start + at + 1);
        return Ok(MultiValue::from_vec(vec![first, position(start + at + pattern.len())]));
    }
    search(call, &text, &pattern, start, true)
}

fn match_once(call: &mut Call<'_>) -> Result<MultiValue> {
    let (text, pattern) = (call.text(1)?, call.text(2)?);
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    match start(call, text.len(), 3)? {
        Some(start) => search(call, &text, &pattern, start, false),
        None => call.one(Value::Nil),
    }
}

/// The offset of a start position, which counts from 1, or from the end if it is negative.
fn start(call: &Call<'_>, length: usize, index: usize) -> Result<Option<usize>> {
    let from = call.integer_or(index, 1)?;
    let start = if from < 0 {
        length.saturating_sub(usize::try_from(from.unsigned_abs()).unwrap_or(usize::MAX))
    } else {
        usize::try_from(from.max(1) - 1).unwrap_or(usize::MAX)
    };
    Ok((start <= length).then_some(start))
}

fn find_plain(call: &Call<'_>, text: &[u8], wanted: &[u8]) -> Result<Option<usize>> {
    let Some(first) = wanted.first() else {
        return Ok(Some(0));
    };
    let mut start = 0;
    while let Some(step) = text[start..].iter().position(|letter| letter == first) {
        call.meter().charge_bytes(step + wanted.len() + 15)?;
        start += step;
        if text[start..].starts_with(wanted) {
            return Ok(Some(start));
        }
        start += 1;
    }
    call.meter().charge_bytes(text.len() - start)?;
    Ok(None)
}

fn search(call: &Call<'_>, text: &[u8], pattern: &[u8], start: usize, positions: bool) -> Result<MultiValue> {
    let (anchored, pattern) = pattern.strip_prefix(b"^").map_or((false, pattern), |pattern| (true, pattern));
    let last = if anchored { start } else { text.len() };
    let mut matcher = Matcher::new(text, pattern, call.meter());
    for start in start..=last {
        if let Some(end) = matcher.at(start)? {
            matcher.settle()?;
            let mut results = MultiValue::new();
            if positions {
                results.extend([position(start + 1), position(end)]);
            }
            let whole = usize::from(!positions);
            results.extend(captures(call, &matcher, start, end, whole)?);
            return Ok(results);
        }
    }
    matcher.settle()?;
    call.one(Value::Nil)
}

/// The captures of a match, at least `least`.
fn captures(
    call: &Call<'_>,
    matcher: &Matcher<'_>,
    start: usize,
    end: usize,
    least: usize,
) -> Result<Vec<Value>> {
    let found = |index| value(call, matcher.capture(index, start, end)?);
    (0..matcher.count().max(least)).map(found).collect()
}

fn value(call: &Call<'_>, found: Found<'_>) -> Result<Value> {
    match found {
        Found::Text(text) => call.make_text(text),
        Found::Position(at) => Ok(position(at)),
    }
}

fn position(at: usize) -> Value {
    Value::Integer(i64::try_from(at).unwrap_or(i64::MAX))
}

fn gmatch(call: &mut Call<'_>) -> Result<MultiValue> {
    let (text, pattern) = (call.text(1)?, call.text(2)?);
    let length = text.as_bytes().len();
    // Beyond the end, there are no matches.
    let next = Cell::new(start(call, length, 3)?.unwrap_or(length + 1));
    let last_end = Cell::new(None);
    let iterator = call.shared.function(call.lua, "gmatch", move |call| {
        let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
        let mut matcher = Matcher::new(&text, &pattern, call.meter());
        for start in next.get()..=text.len() {
            // An empty match directly behind the last one does not count.
            if let Some(end) = matcher.at(start)?
                && last_end.get() != Some(end)
            {
                next.set(end);
                last_end.set(Some(end));
                matcher.settle()?;
                return Ok(captures(call, &matcher, start, end, 1)?.into_iter().collect());
            }
        }
        next.set(text.len() + 1);
        matcher.settle()?;
        call.one(Value::Nil)
    })?;
    call.one(iterator)
}

fn gsub(call: &mut Call<'_>) -> Result<MultiValue> {
    let (text, pattern) = (call.text(1)?, call.text(2)?);
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let with = match call.any(3) {
        with @ (Value::Table(_) | Value::Function(_)) => with,
        with => match call.as_text(&with)? {
            Some(with) => Value::String(with),
            None => return Err(call.expected(3, "string/function/table")),
        },
    };
    let most = call.integer_or(4, i64::MAX)?;
    let (anchored, pattern) =
        pattern.strip_prefix(b"^").map_or((false, &*pattern), |pattern| (true, pattern));
    let mut matcher = Matcher::new(&text, pattern, call.meter());
    let mut result = Vec::new();
    let (mut at, mut last_end, mut count) = (0, None, 0);
    while count < most {
        match matcher.at(at)? {
            Some(end) if last_end != Some(end) => {
                count += 1;
                replace(call, &matcher, &with, &text, (at, end), &mut result)?;
                at = end;
                last_end = Some(end);
            }
            _ => match text.get(at) {
                Some(letter) => {
                    result.push(*letter);
                    at += 1;
                }
                None => break,
            },
        }
        call.meter().need(call.lua, result.len())?;
        if anchored {
            break;
        }
    }
    matcher.settle()?;
    result.extend_from_slice(&text[at..]);
    let result = call.make_text(&result)?;
    Ok(MultiValue::from_vec(vec![result, Value::Integer(count)]))
}

/// Appends the replacement of a match.
fn replace(
    call: &Call<'_>,
    matcher: &Matcher<'_>,
    with: &Value,
    text: &[u8],
    (start, end): (usize, usize),
    result: &mut Vec<u8>,
) -> Result<()> {
    let replacement = match with {
        Value::String(template) => return fill(call, matcher, template, (start, end), result),
        Value::Table(table) => {
            let key = value(call, matcher.capture(0, start, end)?)?;
            table.raw_get(key)?
        }
        Value::Function(function) => {
            let captures = captures(call, matcher, start, end, 1)?;
            let replacement = call.invoke(function, MultiValue::from_vec(captures))?;
            replacement.into_iter().next().unwrap_or_default()
        }
        _ => Value::Nil,
    };
    match &replacement {
        Value::Nil | Value::Boolean(false) => result.extend_from_slice(&text[start..end]),
        other => match call.as_text(other)? {
            Some(replacement) => {
                let replacement = replacement.as_bytes();
                call.meter().need(call.lua, result.len() + replacement.len())?;
                result.extend_from_slice(&replacement);
            }
            None => return Err(error(format!("invalid replacement value (a {})", type_name(other)))),
        },
    }
    Ok(())
}

/// Appends a template: `%1` is the first capture, `%0` the whole match.
fn fill(
    call: &Call<'_>,
    matcher: &Matcher<'_>,
    template: &LuaString,
    (start, end): (usize, usize),
    result: &mut Vec<u8>,
) -> Result<()> {
    let template = template.as_bytes();
    call.meter().charge(template.len() / 4)?;
    let mut letters = template.iter().copied();
    while let Some(letter) = letters.next() {
        if letter != b'%' {
            result.push(letter);
            continue;
        }
        let found = match letters.next() {
            Some(b'%') => Found::Text(b"%"),
            Some(b'0') => matcher.whole(start, end),
            Some(digit @ b'1'..=b'9') => matcher.capture(usize::from(digit - b'1'), start, end)?,
            _ => return Err(error("invalid use of '%' in replacement string")),
        };
        match found {
            Found::Text(text) => {
                call.meter().charge_bytes(text.len())?;
                call.meter().need(call.lua, result.len() + text.len())?;
                result.extend_from_slice(text);
            }
            Found::Position(at) => result.extend_from_slice(at.to_string().as_bytes()),
        }
    }
    Ok(())
}
