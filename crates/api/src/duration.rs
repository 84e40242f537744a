//! Durations as users write them.

use std::{borrow::Cow, fmt, str::FromStr, time};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::schema::rule;

/// A duration such as `0s`, `90s`, `1.5h` or `1h30m`. It serializes to the text that it was parsed from.
///
/// It is not negative and cannot overflow. The type in `kube` panics on text with too large a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Duration {
    text: String,
    value: time::Duration,
}

/// Text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidDuration(String);

impl Duration {
    /// A duration of whole seconds.
    pub fn from_secs(seconds: u32) -> Self {
        Self { text: format!("{seconds}s"), value: time::Duration::from_secs(seconds.into()) }
    }

    /// The parsed value.
    pub fn value(&self) -> time::Duration {
        self.value
    }
}

impl FromStr for Duration {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let value = parse(text).ok_or_else(|| InvalidDuration(text.to_owned()))?;
        Ok(Self { text: text.to_owned(), value })
    }
}

impl TryFrom<String> for Duration {
    type Error = InvalidDuration;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Duration> for String {
    fn from(duration: Duration) -> Self {
        duration.text
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl fmt::Display for InvalidDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers = self.0.split(|c: char| !c.is_ascii_digit() && c != '.');
        let is_large = |number: &str| number.split('.').next().is_some_and(|whole| whole.len() > MOST_DIGITS);
        if numbers.any(is_large) {
            write!(formatter, "duration {:?} is too large: {TOO_LARGE}", self.0)
        } else {
            write!(formatter, "invalid duration {:?}: {WAY_OUT}", self.0)
        }
    }
}

impl std::error::Error for InvalidDuration {}

/// Adds up numbers with units. `None` for empty text and for anything else.
fn parse(text: &str) -> Option<time::Duration> {
    let mut rest = text;
    let mut total: u128 = 0;
    while !rest.is_empty() || text.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let unit_length = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_length);
        total = total.checked_add(nanoseconds(number, unit)?)?;
        rest = after;
    }
    let seconds = u64::try_from(total / 1_000_000_000).ok()?;
    let nanoseconds = u32::try_from(total % 1_000_000_000).ok()?;
    Some(time::Duration::new(seconds, nanoseconds))
}

fn nanoseconds(number: &str, unit: &str) -> Option<u128> {
    let unit: u128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3_600 * 1_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let within = |digits: &str| (1..=MOST_DIGITS).contains(&digits.len());
    if !within(whole) || !within(fraction) {
        return None;
    }
    let scale = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    Some(whole.parse::<u128>().ok()? * unit + fraction.parse::<u128>().ok()? * unit / scale)
}

/// The most digits before and after a point.
const MOST_DIGITS: usize = 9;

const WAY_OUT: &str = "write 90s, 5m or 1h30m";
const TOO_LARGE: &str = "a number has at most 9 digits";

/// What [`parse`] accepts matches this pattern, and does not match [`LARGE`].
const PATTERN: &str = "^([0-9]+([.][0-9]{1,9})?(ns|us|µs|μs|ms|s|m|h))+$";
const LARGE: &str = "(^|[a-zµμ])[0-9]{10}";

impl JsonSchema for Duration {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "maxLength": 64,
            "x-kubernetes-validations": [
                rule(&format!("self.matches('{PATTERN}')"), &format!("invalid duration: {WAY_OUT}")),
                rule(&format!("!self.matches('{LARGE}')"), &format!("too large: {TOO_LARGE}")),
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_serialize_as_written() {
        for (text, milliseconds) in [
            ("0s", 0),
            ("90s", 90_000),
            ("1h30m", 5_400_000),
            ("1.5h", 5_400_000),
            ("0.5s", 500),
            ("1500us", 1),
            ("2000µs", 2),
            ("1m0.250s", 60_250),
            ("999999999h", 999_999_999 * 3_600_000),
        ] {
            let duration: Duration = text.parse().unwrap();
            assert_eq!(duration.value().as_millis(), milliseconds, "{text}");
            assert_eq!(duration.to_string(), text);
        }
    }

    #[test]
    fn invalid_durations_are_rejected() {
        for text in [
            "",
            "0",
            "5",
            "s",
            "5 s",
            "-5s",
            "1d",
            "1.s",
            ".5s",
            "1..5s",
            "9999999999h",
            "5sm",
            "two minutes",
        ] {
            assert!(text.parse::<Duration>().is_err(), "{text}");
        }
    }

    #[test]
    fn errors_say_what_to_write() {
        for (text, expected) in [
            ("-5s", "invalid duration \"-5s\": write 90s, 5m or 1h30m"),
            ("0.1234567890s", "invalid duration \"0.1234567890s\": write 90s, 5m or 1h30m"),
            ("99999999999999h", "duration \"99999999999999h\" is too large: a number has at most 9 digits"),
            ("1h1234567890s", "duration \"1h1234567890s\" is too large: a number has at most 9 digits"),
        ] {
            assert_eq!(text.parse::<Duration>().unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn a_long_sum_does_not_overflow() {
        let text = "999999999h".repeat(1_000);
        assert!(text.parse::<Duration>().is_ok());
    }
}
