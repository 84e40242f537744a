//! Timestamps and durations: conversions from strings and integers.

use std::ops::RangeInclusive;

use jiff::{SignedDuration, Timestamp, civil::DateTime, tz::Offset};

use super::{Function, invalid_text, no_such_overload};
use crate::{
    stop::{Fuel, Outcome, Stop},
    types::Types,
    value::Val,
};

const M: Types = Types::TIMESTAMP;
const I: Types = Types::INT;
const L: Types = Types::DURATION;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("timestamp", &[Types::TEXT.or(I).or(M)], M, timestamp),
    Function::global("duration", &[Types::TEXT.or(L)], L, duration),
];

/// The earliest timestamp of CEL.
pub(super) const FIRST: Timestamp = Timestamp::constant(-62_135_596_800, 0);

/// The range of a duration: as many nanoseconds as an `i64` holds, about 292 years.
const LENGTHS: RangeInclusive<SignedDuration> =
    SignedDuration::from_nanos(i64::MIN)..=SignedDuration::from_nanos(i64::MAX);

/// Checks the range of a timestamp.
pub(super) fn moment<'v>(moment: Option<Timestamp>) -> Outcome<'v> {
    moment
        .filter(|moment| *moment >= FIRST)
        .map(Val::Timestamp)
        .ok_or_else(|| Stop::error("timestamp overflow"))
}

/// Checks the range of a duration.
pub(super) fn length<'v>(length: Option<SignedDuration>) -> Outcome<'v> {
    length
        .filter(|length| LENGTHS.contains(length))
        .map(Val::Duration)
        .ok_or_else(|| Stop::error("duration overflow"))
}

/// A duration in seconds: `90s`, `-0.5s`.
pub(super) fn seconds(length: SignedDuration) -> String {
    let sign = if length.is_negative() { "-" } else { "" };
    let fraction = format!(".{:09}", length.subsec_nanos().unsigned_abs());
    format!(
        "{sign}{}{}s",
        length.as_secs().unsigned_abs(),
        fraction.trim_end_matches('0').trim_end_matches('.')
    )
}

/// Certificates that never expire end on the last day of 9999, which is partly beyond `Timestamp::MAX`. Such
/// timestamps become the maximum.
fn last(local: DateTime) -> Option<Timestamp> {
    (local.year() == 9999).then_some(Timestamp::MAX)
}

fn timestamp<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Timestamp(own)] => Ok(Val::Timestamp(*own)),
        [Val::Int(seconds)] => moment(Timestamp::from_second(*seconds).ok()),
        [Val::Text(text)] => {
            fuel.burn_bytes(text.len())?;
            match civil(text) {
                Some((local, offset)) => moment(offset.to_timestamp(local).ok().or_else(|| last(local))),
                None => Err(invalid_text(text, "a timestamp (2006-01-02T15:04:05Z)")),
            }
        }
        _ => Err(no_such_overload("timestamp", arguments)),
    }
}

/// Parses RFC 3339, and no other format.
fn civil(text: &str) -> Option<(DateTime, Offset)> {
    let (date_time, rest) = text.split_at_checked(19)?;
    let bytes = date_time.as_bytes();
    for (place, separator) in [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')] {
        if *bytes.get(place)? != separator {
            return None;
        }
    }
    let (nanoseconds, zone) = match rest.strip_prefix('.') {
        None => (0, rest),
        Some(fraction) => {
            let end = fraction.find(|char: char| !char.is_ascii_digit())?;
            let (digits, zone) = fraction.split_at(end);
            // Digits beyond nanoseconds are dropped.
            let digits = digits.get(..9).unwrap_or(digits);
            (number(&format!("{digits:0<9}")).filter(|_| !digits.is_empty())?, zone)
        }
    };
    let local = DateTime::new(
        i16::try_from(number(date_time.get(..4)?)?).ok()?,
        two_digits(date_time, 5)?,
        two_digits(date_time, 8)?,
        two_digits(date_time, 11)?,
        two_digits(date_time, 14)?,
        two_digits(date_time, 17)?,
        nanoseconds,
    );
    Some((local.ok()?, offset_of(zone)?))
}

/// `Z` or an offset such as `+02:00`.
fn offset_of(zone: &str) -> Option<Offset> {
    if zone == "Z" {
        return Some(Offset::UTC);
    }
    let complete = zone.len() == 6 && zone.starts_with(['+', '-']) && zone.as_bytes().get(3) == Some(&b':');
    if complete { offset(zone) } else { None }
}

/// Hours and minutes with an optional sign.
pub(super) fn offset(text: &str) -> Option<Offset> {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (-1, unsigned),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let (hours, minutes) = unsigned.split_once(':')?;
    let hours = number(hours).filter(|hours| *hours < 24)?;
    let minutes = number(minutes).filter(|minutes| *minutes < 60)?;
    Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}

fn two_digits(text: &str, at: usize) -> Option<i8> {
    i8::try_from(number(text.get(at..at + 2)?)?).ok()
}

/// An unsigned number.
fn number(digits: &str) -> Option<i32> {
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

fn duration<'v>(fuel: &mut Fuel, arguments: &[Val<'v>]) -> Outcome<'v> {
    match arguments {
        [Val::Duration(own)] => Ok(Val::Duration(*own)),
        [Val::Text(text)] => {
            // A duration may have many parts.
            fuel.burn(text.len() / 4)?;
            match nanoseconds(text) {
                Some(nanoseconds) => length(duration_of(nanoseconds)),
                None => Err(invalid_text(text, "a duration (1h30m5s)")),
            }
        }
        _ => Err(no_such_overload("duration", arguments)),
    }
}

fn duration_of(nanoseconds: i128) -> Option<SignedDuration> {
    const SECOND: i128 = 1_000_000_000;
    let seconds = i64::try_from(nanoseconds / SECOND).ok()?;
    let rest = i32::try_from(nanoseconds % SECOND).ok()?;
    Some(SignedDuration::new(seconds, rest))
}

/// Parses a duration of Go: `1h30m`, `-1.5s`, `300ms`. Saturates instead of overflowing.
fn nanoseconds(text: &str) -> Option<i128> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if unsigned == "0" {
        return Some(0);
    }
    if unsigned.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    let mut rest = unsigned;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), digits);
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let end = after.find(|char: char| char == '.' || char.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let unit: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        total = total.saturating_add(amount(whole).saturating_mul(unit));
        // Further digits are less than a nanosecond.
        let fraction = fraction.get(..18).unwrap_or(fraction);
        let scale = (0..fraction.len()).fold(1, |scale: i128, _| scale * 10);
        total = total.saturating_add(amount(fraction) * unit / scale);
        rest = after;
    }
    Some(if negative { -total } else { total })
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len()))
}

/// The value of digits: 0 for none, `i128::MAX` for too many.
fn amount(digits: &str) -> i128 {
    if digits.is_empty() { 0 } else { digits.parse().unwrap_or(i128::MAX) }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use crate::functions::testing::evaluated;

    #[rstest]
    #[case("2009-02-13T23:31:30Z", "2009-02-13T23:31:30Z")]
    #[case("2009-02-13T23:31:30+05:30", "2009-02-13T18:01:30Z")]
    #[case("2009-02-13T23:31:30-23:59", "2009-02-14T23:30:30Z")]
    #[case("2009-02-13T23:31:30.1234567899Z", "2009-02-13T23:31:30.123456789Z")]
    #[case("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z")]
    #[case("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z")]
    fn timestamps(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(evaluated(&format!("timestamp('{text}')")), expected);
    }

    #[rstest]
    #[case("2009-02-13")]
    #[case("2009-02-13t23:31:30Z")]
    #[case("2009-02-13T23:31:30z")]
    #[case("2009-02-13T23:31:30002:00")]
    #[case("2009-02-13 23:31:30Z")]
    #[case("2009-02-13T23:31:30")]
    #[case("2009-02-13T23:31Z")]
    #[case("2009-02-13T3:31:30Z")]
    #[case("2009-02-13T23:31:30,5Z")]
    #[case("2009-02-13T23:31:30.Z")]
    #[case("2009-02-13T23:31:60Z")]
    #[case("2009-02-13T24:00:00Z")]
    #[case("2009-02-13T23:31:30+24:00")]
    #[case("2009-02-13T23:31:30+0530")]
    #[case("2009-02-13T23:31:30Zx")]
    #[case("2023-02-29T00:00:00Z")]
    #[case("+009-02-13T23:31:30Z")]
    #[case("2009-02-1éT23:31:30Z")]
    #[case("10000-01-01T00:00:00Z")]
    #[case("")]
    fn invalid_timestamps(#[case] text: &str) {
        let expected = format!("error: '{text}' is not a timestamp (2006-01-02T15:04:05Z)");
        assert_eq!(evaluated(&format!("timestamp('{text}')")), expected);
    }

    #[rstest]
    #[case("timestamp(1234567890)", "2009-02-13T23:31:30Z")]
    #[case("timestamp(timestamp(0))", "1970-01-01T00:00:00Z")]
    #[case("timestamp(-62135596800)", "0001-01-01T00:00:00Z")]
    #[case("timestamp(-62135596801)", "error: timestamp overflow")]
    #[case("timestamp(253402300800)", "error: timestamp overflow")]
    #[case("timestamp('0000-01-01T00:00:00Z')", "error: timestamp overflow")]
    #[case("timestamp('0001-01-01T00:00:00+00:01')", "error: timestamp overflow")]
    #[case("timestamp(9223372036854775807)", "error: timestamp overflow")]
    fn seconds_since_1970(#[case] expression: &str, #[case] expected: &str) {
        assert_eq!(evaluated(expression), expected);
    }

    #[rstest]
    #[case("0", "0s")]
    #[case("-0", "0s")]
    #[case("1h2m3.5s", "3723.5s")]
    #[case("-1.5h", "-5400s")]
    #[case("+90m", "5400s")]
    #[case("100ms", "0.1s")]
    #[case("1us2µs3μs4ns", "0.000006004s")]
    #[case(".5s", "0.5s")]
    #[case("5.s", "5s")]
    #[case("0.1234567899s", "0.123456789s")]
    #[case("0.00000000000000000000000001h", "0s")]
    #[case("1m1m", "120s")]
    #[case("2562047h47m16.854775807s", "9223372036.854775807s")]
    #[case("-2562047h47m16.854775808s", "-9223372036.854775808s")]
    fn durations(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(evaluated(&format!("duration('{text}')")), expected);
    }

    #[rstest]
    #[case("")]
    #[case("-")]
    #[case("1")]
    #[case("s")]
    #[case(".s")]
    #[case("1d")]
    #[case("1 s")]
    #[case("1h-1m")]
    #[case("--1s")]
    #[case("1S")]
    fn invalid_durations(#[case] text: &str) {
        let expected = format!("error: '{text}' is not a duration (1h30m5s)");
        assert_eq!(evaluated(&format!("duration('{text}')")), expected);
    }

    #[rstest]
    #[case("2562047h47m16.854775808s")]
    #[case("320000000000s")]
    #[case("-320000000000s")]
    #[case("999999999999999999999999999999999999999999999999h")]
    fn too_long(#[case] text: &str) {
        assert_eq!(evaluated(&format!("duration('{text}')")), "error: duration overflow");
    }
}
