//! Numbers: exact in steps of a billionth where that is possible, otherwise floating-point.

use std::{cmp::Ordering, fmt};

use bellwether_expr::{Quantity, QuantityError};

/// The billionths of one.
pub(crate) const BILLION: i128 = 1_000_000_000;

/// Exact numbers are smaller: then an `i128` holds the sum of more than 10^8 of them.
const EXACT_BELOW: i128 = 1_000_000_000_000_000_000_000;

/// A finite number.
///
/// A number that comes from a row and is a multiple of a billionth below 10^21 is always `Exact`, whatever its
/// type was: `1`, `1.0` and `1000m` are one value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Number {
    /// Billionths.
    Exact(i128),
    /// Any other number.
    Double(f64),
}

/// Why a string is not a number that can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotANumber {
    Other,
    TooLarge,
}

impl Number {
    /// `None` for infinity and `NaN`.
    pub(crate) fn from_f64(number: f64) -> Option<Self> {
        /// A double is a multiple of a billionth if it is a multiple of 2^-9.
        const PARTS: f64 = 512.0;
        const BILLIONTHS_OF_A_PART: i128 = BILLION / 512;
        let parts = number * PARTS;
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
        if number.abs() < EXACT_BELOW as f64 && parts.fract() == 0.0 {
            return Some(Self::Exact(parts as i128 * BILLIONTHS_OF_A_PART));
        }
        number.is_finite().then_some(Self::Double(number))
    }

    /// Reads a number or a quantity of Kubernetes, such as `250Mi`.
    pub(crate) fn from_text(text: &str) -> Result<Self, NotANumber> {
        if !text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.')) {
            return Err(NotANumber::Other);
        }
        if let Ok(number) = text.parse::<i64>() {
            return Ok(Self::from(number));
        }
        // `parse` also accepts `inf` and `NaN`.
        let is_plain = text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E'));
        if is_plain && let Ok(double) = text.parse() {
            let exact = if has_at_most_nine_decimals(text) { text.parse().ok() } else { None };
            let exact = exact.and_then(|quantity| Self::from_quantity(&quantity));
            return exact.or_else(|| Self::from_f64(double)).ok_or(NotANumber::TooLarge);
        }
        match text.parse() {
            Ok(quantity) => Self::from_quantity(&quantity).ok_or(NotANumber::TooLarge),
            Err(QuantityError::Digits) => Err(NotANumber::TooLarge),
            Err(QuantityError::Number | QuantityError::Unit) => Err(NotANumber::Other),
        }
    }

    /// `None` if it is too large to be exact.
    fn from_quantity(quantity: &Quantity) -> Option<Self> {
        let billionths = quantity.to_billionths()?;
        (billionths.unsigned_abs() < (EXACT_BELOW * BILLION).unsigned_abs())
            .then_some(Self::Exact(billionths))
    }

    /// As a number of JSON; `None` beyond its range.
    pub(crate) fn to_json(self) -> Option<serde_json::Number> {
        match self {
            Self::Exact(billionths) if billionths % BILLION == 0 => {
                let whole = billionths / BILLION;
                i64::try_from(whole)
                    .map(serde_json::Number::from)
                    .or_else(|_| u64::try_from(whole).map(serde_json::Number::from))
                    .ok()
                    .or_else(|| serde_json::Number::from_f64(self.to_string().parse().ok()?))
            }
            Self::Exact(_) => serde_json::Number::from_f64(self.to_string().parse().ok()?),
            Self::Double(number) => serde_json::Number::from_f64(number),
        }
    }
}

/// Whether a plain number loses nothing as a quantity. Zeros at the end do not count.
fn has_at_most_nine_decimals(text: &str) -> bool {
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, exponent.parse::<i64>().unwrap_or(0)),
        None => (text, 0),
    };
    let decimals = match digits.split_once('.') {
        Some((_, fraction)) => fraction.trim_end_matches('0').len(),
        None => 0,
    };
    let zeros = if decimals == 0 {
        let whole = digits.split('.').next().unwrap_or_default();
        whole.len() - whole.trim_end_matches('0').len()
    } else {
        0
    };
    let size = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
    size(decimals).saturating_sub(size(zeros)).saturating_sub(exponent) <= 9
}

impl From<i64> for Number {
    fn from(number: i64) -> Self {
        Self::Exact(i128::from(number) * BILLION)
    }
}

impl From<u64> for Number {
    fn from(number: u64) -> Self {
        Self::Exact(i128::from(number) * BILLION)
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Number {}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Exact(left), Self::Exact(right)) => left.cmp(right),
            // Neither is `NaN` or -0.
            (Self::Double(left), Self::Double(right)) => left.total_cmp(right),
            (Self::Exact(left), Self::Double(right)) => exact_and_double(*left, *right),
            (Self::Double(left), Self::Exact(right)) => exact_and_double(*right, *left).reverse(),
        }
    }
}

/// Compares without rounding.
fn exact_and_double(billionths: i128, double: f64) -> Ordering {
    /// More than an `i128` of billionths can hold.
    const BEYOND: f64 = 1.0e30;
    if double < 0.0 {
        return exact_and_double(billionths.saturating_neg(), -double).reverse();
    }
    if double >= BEYOND {
        return Ordering::Less;
    }
    let floor = double.floor();
    #[expect(clippy::cast_possible_truncation)]
    let whole = floor as i128;
    billionths.div_euclid(BILLION).cmp(&whole).then_with(|| {
        // The difference is exact, because the double is not negative.
        let (theirs, is_more) = billionths_of(double - floor);
        billionths.rem_euclid(BILLION).cmp(&theirs).then(if is_more {
            Ordering::Less
        } else {
            Ordering::Equal
        })
    })
}

/// The billionths of a fraction from 0 to 1, rounded down, and whether something is left.
fn billionths_of(fraction: f64) -> (i128, bool) {
    let (mantissa, exponent) = parts(fraction);
    let product = i128::from(mantissa) * BILLION;
    match u32::try_from(-exponent) {
        Ok(power) if power > 120 => (0, product != 0),
        Ok(power) => (product >> power, product & ((1 << power) - 1) != 0),
        // Only for 0: all other fractions have a negative exponent.
        Err(_) => (0, false),
    }
}

/// A double without its sign as a product: the first times two to the power of the second.
pub(crate) fn parts(double: f64) -> (u64, i32) {
    const MANTISSA: u32 = 52;
    let bits = double.to_bits();
    let mantissa = bits & ((1 << MANTISSA) - 1);
    let exponent = i32::try_from(bits >> MANTISSA & 0x7ff).unwrap_or_default();
    // Numbers below 2^-1022 have no implied bit.
    if exponent == 0 { (mantissa, -1074) } else { (mantissa | 1 << MANTISSA, exponent - 1075) }
}

/// A number of JSON, with all digits.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(billionths) => {
                let sign = if *billionths < 0 { "-" } else { "" };
                let billionths = billionths.unsigned_abs();
                let (whole, rest) =
                    (billionths / BILLION.unsigned_abs(), billionths % BILLION.unsigned_abs());
                write!(f, "{sign}{whole}")?;
                if rest == 0 {
                    return Ok(());
                }
                let rest = format!("{rest:09}");
                write!(f, ".{}", rest.trim_end_matches('0'))
            }
            // With an exponent where there would be many zeros.
            Self::Double(number) => write!(f, "{number:?}"),
        }
    }
}
