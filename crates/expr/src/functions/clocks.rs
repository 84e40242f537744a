//! Calendar fields of timestamps, and durations in hours, minutes, seconds and milliseconds.

use std::sync::LazyLock;

use jiff::{
    civil::DateTime,
    tz::{Offset, TimeZone, TimeZoneDatabase},
};

use super::{Function, invalid_text, no_such_overload, time::offset};
use crate::{
    stop::{Fuel, Outcome, Stop},
    types::Types,
    value::Val,
};

const M: Types = Types::TIMESTAMP;
const L: Types = Types::DURATION;
const Z: Types = Types::TEXT;
const I: Types = Types::INT;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::method("getFullYear", &[M], I, year),
    Function::method("getFullYear", &[M, Z], I, year),
    Function::method("getMonth", &[M], I, month),
    Function::method("getMonth", &[M, Z], I, month),
    Function::method("getDate", &[M], I, date),
    Function::method("getDate", &[M, Z], I, date),
    Function::method("getDayOfMonth", &[M], I, day_of_month),
    Function::method("getDayOfMonth", &[M, Z], I, day_of_month),
    Function::method("getDayOfWeek", &[M], I, day_of_week),
    Function::method("getDayOfWeek", &[M, Z], I, day_of_week),
    Function::method("getDayOfYear", &[M], I, day_of_year),
    Function::method("getDayOfYear", &[M, Z], I, day_of_year),
    Function::method("getHours", &[M.or(L)], I, hours),
    Function::method("getHours", &[M, Z], I, hours),
    Function::method("getMinutes", &[M.or(L)], I, minutes),
    Function::method("getMinutes", &[M, Z], I, minutes),
    Function::method("getSeconds", &[M.or(L)], I, whole_seconds),
    Function::method("getSeconds", &[M, Z], I, whole_seconds),
    Function::method("getMilliseconds", &[M.or(L)], I, milliseconds),
    Function::method("getMilliseconds", &[M, Z], I, milliseconds),
];

/// The time zones of the build. Those of the machine may differ or be missing.
static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

fn year<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    local(fuel, "getFullYear", arguments).map(|local| Val::Int(local.year().into()))
}

/// Counted from 0.
fn month<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    local(fuel, "getMonth", arguments).map(|local| Val::Int(i64::from(local.month()) - 1))
}

/// Counted from 1.
fn date<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    local(fuel, "getDate", arguments).map(|local| Val::Int(local.day().into()))
}

/// Counted from 0.
fn day_of_month<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    local(fuel, "getDayOfMonth", arguments).map(|local| Val::Int(i64::from(local.day()) - 1))
}

/// Counted from 0 for Sunday.
fn day_of_week<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    local(fuel, "getDayOfWeek", arguments)
        .map(|local| Val::Int(local.weekday().to_sunday_zero_offset().into()))
}

/// Counted from 0.
fn day_of_year<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    local(fuel, "getDayOfYear", arguments).map(|local| Val::Int(i64::from(local.day_of_year()) - 1))
}

fn hours<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Duration(length)] => Ok(Val::Int(length.as_hours())),
        _ => local(fuel, "getHours", arguments).map(|local| Val::Int(local.hour().into())),
    }
}

fn minutes<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Duration(length)] => Ok(Val::Int(length.as_mins())),
        _ => local(fuel, "getMinutes", arguments).map(|local| Val::Int(local.minute().into())),
    }
}

fn whole_seconds<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Duration(length)] => Ok(Val::Int(length.as_secs())),
        _ => local(fuel, "getSeconds", arguments).map(|local| Val::Int(local.second().into())),
    }
}

fn milliseconds<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Duration(length)] => Ok(Val::Int(i64::try_from(length.as_millis()).unwrap_or(i64::MAX))),
        _ => local(fuel, "getMilliseconds", arguments).map(|local| Val::Int(local.millisecond().into())),
    }
}

/// The civil time at a timestamp, in the given zone or in UTC.
fn local<'v>(fuel: &mut Fuel, name: &str, arguments: &[Val<'v>]) -> Result<DateTime, Stop<'v>> {
    match arguments {
        [Val::Timestamp(moment)] => Ok(Offset::UTC.to_datetime(*moment)),
        [Val::Timestamp(moment), Val::Text(zone)] => {
            // For the lookup of the zone and of its offset.
            fuel.burn(8 + zone.len() / 16)?;
            match zone_of(zone) {
                Some(zone) => Ok(zone.to_datetime(*moment)),
                None => Err(invalid_text(zone, "a time zone (Europe/Berlin, +02:00)")),
            }
        }
        _ => Err(no_such_overload(name, arguments)),
    }
}

/// A time zone by name or by offset.
fn zone_of(zone: &str) -> Option<TimeZone> {
    if zone.is_empty() || zone == "UTC" {
        return Some(TimeZone::UTC);
    }
    if !zone.contains(':') {
        return ZONES.get(zone).ok();
    }
    offset(zone).map(TimeZone::fixed)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use crate::functions::testing::evaluated;

    #[rstest]
    #[case("getFullYear()", "2009")]
    #[case("getMonth()", "1")]
    #[case("getDate()", "13")]
    #[case("getDayOfMonth()", "12")]
    #[case("getDayOfWeek()", "5")]
    #[case("getDayOfYear()", "43")]
    #[case("getHours()", "23")]
    #[case("getMinutes()", "31")]
    #[case("getSeconds()", "20")]
    #[case("getMilliseconds()", "123")]
    #[case("getDate('Australia/Sydney')", "14")]
    #[case("getMinutes('Asia/Kathmandu')", "16")]
    #[case("getHours('America/New_York')", "18")]
    #[case("getHours('02:00')", "1")]
    #[case("getHours('+05:30')", "5")]
    #[case("getHours('5:5')", "4")]
    #[case("getHours('-09:30')", "14")]
    #[case("getSeconds('-00:00')", "20")]
    #[case("getDayOfWeek('UTC')", "5")]
    #[case("getDayOfWeek('')", "5")]
    #[case("getHours('Local')", "error: 'Local' is not a time zone (Europe/Berlin, +02:00)")]
    #[case("getHours('Mars/Phobos')", "error: 'Mars/Phobos' is not a time zone (Europe/Berlin, +02:00)")]
    #[case("getHours('+24:00')", "error: '+24:00' is not a time zone (Europe/Berlin, +02:00)")]
    #[case("getHours('+01:60')", "error: '+01:60' is not a time zone (Europe/Berlin, +02:00)")]
    fn clocks(#[case] call: &str, #[case] expected: &str) {
        assert_eq!(evaluated(&format!("timestamp('2009-02-13T23:31:20.123456789Z').{call}")), expected);
    }

    #[rstest]
    #[case("getHours()", "-2")]
    #[case("getMinutes()", "-166")]
    #[case("getSeconds()", "-10000")]
    #[case("getMilliseconds()", "-10000500")]
    #[case(
        "getHours('UTC')",
        "error: no such overload: getHours(duration, string), expected (timestamp, string)"
    )]
    fn counted(#[case] call: &str, #[case] expected: &str) {
        assert_eq!(evaluated(&format!("duration('-10000.5s').{call}")), expected);
    }
}
