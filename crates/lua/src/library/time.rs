//! `os`, which has only the time of the run, in UTC.

use jiff::{Timestamp, Zoned, civil, fmt::strtime, tz::TimeZone};
use mlua::{MultiValue, Result, Table, Value};

use super::call::{Call, Native, error, truncated};

pub(super) const FUNCTIONS: &[(&str, Native)] = &[("date", date), ("time", time)];

/// The conversions of `os.date` that are made of others.
const COMPOSED: [(u8, &str); 4] =
    [(b'c', "%a %b %e %H:%M:%S %Y"), (b'x', "%m/%d/%y"), (b'X', "%H:%M:%S"), (b'r', "%I:%M:%S %p")];

/// The other conversions of `os.date`.
const KNOWN: &[u8] = b"aAbBCdDeFgGhHIjmMnprRStTuUVwWyYzZ";

fn time(call: &mut Call<'_>) -> Result<MultiValue> {
    if call.any(1).is_nil() {
        return call.one(call.shared.now.as_second());
    }
    let table = call.table(1)?;
    let field = |name: &str, default: Option<i64>| field(call, &table, name, default);
    let (year, month, day) = (field("year", None)?, field("month", None)?, field("day", None)?);
    let (hour, minute, second) = (field("hour", Some(12))?, field("min", Some(0))?, field("sec", Some(0))?);
    let seconds = seconds(year, month, day, hour, minute, second);
    let seconds = seconds.ok_or_else(|| error("time result cannot be represented"))?;
    call.one(seconds)
}

fn field(call: &Call<'_>, table: &Table, name: &str, default: Option<i64>) -> Result<i64> {
    let value: Value = table.raw_get(name)?;
    match (call.as_number(&value)?, default) {
        (Some(number), _) => Ok(truncated(&number)),
        (None, Some(default)) if value.is_nil() => Ok(default),
        (None, _) if value.is_nil() => Err(error(format!("field '{name}' missing in date table"))),
        (None, _) => Err(error(format!("field '{name}' is not an integer"))),
    }
}

/// Seconds since 1970. Fields may be out of range: month 14 is the February of the next year, and day 0 the
/// last day of the previous month.
fn seconds(year: i64, month: i64, day: i64, hour: i64, minute: i64, second: i64) -> Option<i64> {
    let months = month.checked_sub(1)?;
    let year = i16::try_from(year.checked_add(months.div_euclid(12))?).ok()?;
    let month = i8::try_from(months.rem_euclid(12) + 1).ok()?;
    let first = civil::Date::new(year, month, 1).ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
    let days = day.checked_sub(1)?.checked_mul(86_400)?;
    let clock = hour.checked_mul(3_600)?.checked_add(minute.checked_mul(60)?)?.checked_add(second)?;
    first.checked_add(days)?.checked_add(clock)
}

fn date(call: &mut Call<'_>) -> Result<MultiValue> {
    let template = call.text_or_nil(1)?;
    let template = template.as_ref().map(mlua::LuaString::as_bytes);
    let template = template.as_deref().unwrap_or(b"%c");
    // Local time is UTC, so `!` has no effect.
    let template = template.strip_prefix(b"!").unwrap_or(template);
    let at = match call.any(2) {
        Value::Nil => call.shared.now,
        _ => Timestamp::from_second(call.integer(2)?)
            .map_err(|_| error("date result cannot be represented in this installation"))?,
    };
    let at = at.to_zoned(TimeZone::UTC);
    if template.starts_with(b"*t") {
        let table = parts(call, &at)?;
        return call.one(table);
    }
    call.meter().charge(template.len().saturating_mul(8))?;
    call.meter().need(call.lua, template.len().saturating_mul(16))?;
    let text = written(&at, template)?;
    let text = call.make_text(&text)?;
    call.one(text)
}

fn parts(call: &Call<'_>, at: &Zoned) -> Result<Table> {
    let table = call.lua.create_table()?;
    table.raw_set("year", at.year())?;
    table.raw_set("month", at.month())?;
    table.raw_set("day", at.day())?;
    table.raw_set("hour", at.hour())?;
    table.raw_set("min", at.minute())?;
    table.raw_set("sec", at.second())?;
    table.raw_set("wday", at.weekday().to_sunday_one_offset())?;
    table.raw_set("yday", at.day_of_year())?;
    table.raw_set("isdst", false)?;
    Ok(table)
}

fn written(at: &Zoned, template: &[u8]) -> Result<Vec<u8>> {
    let mut text = Vec::with_capacity(template.len());
    let mut bytes = template.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            text.push(byte);
            continue;
        }
        let conversion = bytes.next();
        let unknown = || {
            let letter = conversion.map(char::from).map(String::from).unwrap_or_default();
            error(format!("invalid conversion specifier '%{letter}'"))
        };
        let composed = COMPOSED.into_iter().find(|(letter, _)| Some(*letter) == conversion);
        match (conversion, composed) {
            (Some(b'%'), _) => text.push(b'%'),
            (_, Some((_, composed))) => text.extend(converted(at, composed)?),
            (Some(letter), _) if KNOWN.contains(&letter) => {
                text.extend(converted(at, &format!("%{}", char::from(letter)))?);
            }
            _ => return Err(unknown()),
        }
    }
    Ok(text)
}

fn converted(at: &Zoned, template: &str) -> Result<Vec<u8>> {
    let text = strtime::format(template, at);
    text.map(String::into_bytes).map_err(|_| error(format!("cannot format the time as '{template}'")))
}
