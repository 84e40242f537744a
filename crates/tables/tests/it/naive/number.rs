//! Numbers as fractions with one denominator, large enough for every double and every quantity.

use std::{fmt::Write as _, sync::LazyLock};

use num_bigint::BigInt;
use regex::Regex;

/// 10^9 * 2^1074.
static DENOMINATOR: LazyLock<BigInt> = LazyLock::new(|| BigInt::from(1_000_000_000) << 1074);

/// The numerator.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number(BigInt);

pub(super) enum NotANumber {
    Other,
    TooLarge,
}

impl Number {
    pub(super) fn whole(number: impl Into<BigInt>) -> Self {
        Self(number.into() * &*DENOMINATOR)
    }

    pub(super) fn double(double: f64) -> Option<Self> {
        if !double.is_finite() {
            return None;
        }
        #[expect(clippy::cast_possible_truncation)]
        if double.fract() == 0.0 && double.abs() < 1e18 {
            return Some(Self::whole(double as i64));
        }
        // Every double is an integer divided by 2^1074, and its mantissa has 53 bits.
        let mantissa = (0..=1074 + 52).find_map(|power| {
            let scaled = double.abs() * 2_f64.powi(power / 2) * 2_f64.powi(power - power / 2);
            (scaled.fract() == 0.0).then_some((scaled, power))
        });
        let (mantissa, power) = mantissa.unwrap();
        let digits: BigInt = format!("{mantissa:.0}").parse().unwrap();
        let scaled = (digits * &*DENOMINATOR) >> power;
        Some(Self(if double < 0.0 { -scaled } else { scaled }))
    }

    /// A number or a quantity.
    pub(super) fn text(text: &str) -> Result<Self, NotANumber> {
        static FORM: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"^([+-]?)([0-9]*)[.]?([0-9]*)(|[eE][+-]?[0-9]+|[numkMGTPE]|[KMGTPE]i)$").unwrap()
        });
        let Some(parts) = FORM.captures(text) else { return Err(NotANumber::Other) };
        let (digits, decimals) = (format!("{}{}", &parts[2], &parts[3]), parts[3].len());
        if digits.is_empty() {
            return Err(NotANumber::Other);
        }
        let is_plain = parts[4].len() != 1 && !parts[4].ends_with('i');
        let double = || text.parse().ok().and_then(Self::double).ok_or(NotANumber::TooLarge);
        let exponent: i64 = match &parts[4] {
            "n" => -9,
            "u" => -6,
            "m" => -3,
            "k" => 3,
            "M" => 6,
            "G" => 9,
            "T" => 12,
            "P" => 15,
            "E" => 18,
            exponent if is_plain && !exponent.is_empty() => exponent[1..].parse().unwrap_or(i64::MAX / 2),
            _ => 0,
        };
        let binary = match parts[4].strip_suffix('i') {
            Some(unit) => 10 * (1 + "KMGTPE".find(unit).unwrap()),
            None => 0,
        };
        let digits: BigInt = digits.parse().unwrap();
        let places = i64::try_from(decimals).unwrap() - exponent;
        if places.abs() > 2000 {
            return if is_plain { double() } else { Err(NotANumber::TooLarge) };
        }
        // In billionths, rounded up.
        let power = |places: i64| BigInt::from(10).pow(u32::try_from(places.max(0)).unwrap());
        let (over, under) = ((digits * power(9 - places)) << binary, power(places - 9));
        let mut billionths = (&over + &under - BigInt::from(1)) / &under;
        if is_plain && &billionths * &under != over {
            return double();
        }
        if binary > 0 {
            billionths = billionths.min(BigInt::from(i64::MAX) * 1_000_000_000);
        }
        if billionths >= BigInt::from(10).pow(30) {
            return if is_plain { double() } else { Err(NotANumber::TooLarge) };
        }
        let number: BigInt = billionths << 1074;
        Ok(Self(if &parts[1] == "-" { -number } else { number }))
    }

    /// Whether the number is a multiple of a billionth below 10^21.
    pub(super) fn is_exact(&self) -> bool {
        let billionths: BigInt = &self.0 >> 1074;
        &billionths << 1074 == self.0 && billionths.magnitude() < BigInt::from(10).pow(30).magnitude()
    }

    /// The sum with all its digits; if `exact` is false, the nearest double. `None` beyond its range.
    pub(super) fn sum(numbers: &[Self], exact: bool) -> Option<(Self, String)> {
        let sum = Self(numbers.iter().map(|number| &number.0).sum());
        if exact {
            let text = digits(&(&sum.0 >> 1074), 9);
            return Some((sum, text));
        }
        nearest(&sum.0, &DENOMINATOR)
    }

    pub(super) fn mean(numbers: &[Self], exact: bool) -> Option<(Self, String)> {
        let sum: BigInt = numbers.iter().map(|number| &number.0).sum();
        let count = BigInt::from(numbers.len());
        let billionths: BigInt = &sum >> 1074;
        if exact && &billionths / &count * &count == billionths {
            let mean = billionths / count;
            let text = digits(&mean, 9);
            return Some((Self(mean << 1074), text));
        }
        nearest(&sum, &(&*DENOMINATOR * count))
    }

    pub(super) fn shown(&self) -> String {
        if self.is_exact() {
            return digits(&(&self.0 >> 1074), 9);
        }
        nearest(&self.0, &DENOMINATOR).unwrap().1
    }
}

/// The double nearest to a fraction. The parser of the standard library rounds correctly.
fn nearest(over: &BigInt, under: &BigInt) -> Option<(Number, String)> {
    const DIGITS: usize = 1200;
    let scaled = over * BigInt::from(10).pow(1200);
    let quotient = &scaled / under;
    let mut text = digits(&quotient, DIGITS);
    if &quotient * under != scaled {
        // Not the middle between two doubles, but a little more.
        if !text.contains('.') {
            text.push('.');
        }
        let decimals = text.len() - text.find('.').unwrap() - 1;
        write!(text, "{:0>width$}", 1, width = DIGITS + 1 - decimals).unwrap();
        if over < &BigInt::from(0) && !text.starts_with('-') {
            text.insert(0, '-');
        }
    }
    let double: f64 = text.parse().unwrap();
    let number = Number::double(double)?;
    let text = if number.is_exact() { digits(&(&number.0 >> 1074), 9) } else { format!("{double:?}") };
    Some((number, text))
}

/// An integer with a decimal point before the last digits, without zeros at the end.
fn digits(number: &BigInt, decimals: usize) -> String {
    let text = format!("{:0>width$}", number.magnitude().to_string(), width = decimals + 1);
    let (whole, fraction) = text.split_at(text.len() - decimals);
    let sign = if number < &BigInt::from(0) { "-" } else { "" };
    format!("{sign}{whole}.{fraction}").trim_end_matches('0').trim_end_matches('.').to_owned()
}
