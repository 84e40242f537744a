//! Quantities of Kubernetes: `250Mi`, `100m`, `1.5`. They are exact, and formatted as the API server does.

use std::{cmp::Ordering, error, fmt, str::FromStr};

/// A quantity: a decimal number in steps of a billionth, and its format.
#[derive(Clone, Debug)]
pub struct Quantity {
    /// All significant digits. The last one is not zero, unless the number is.
    digits: i128,
    /// The power of ten of the last digit, from `FINEST` on.
    scale: i32,
    form: Form,
}

/// The format of a quantity. It is that of its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Powers of a thousand: `5M`.
    Decimal,
    /// Powers of 1024: `5Mi`.
    Binary,
    /// An exponent: `5e6`.
    Exponent,
}

/// Why a string is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityError {
    /// It does not start with a number.
    Number,
    /// What follows the number is not a unit.
    Unit,
    /// It has too many digits, or its exponent is too large.
    Digits,
}

const DECIMAL_UNITS: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];

/// The binary units and their powers of two.
const BINARY_UNITS: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// The finest scale, a billionth. Finer numbers round away from zero, so that a small request is never zero.
const FINEST: i32 = -9;

/// The coarsest scale, beyond the range of a double.
const COARSEST: i32 = 1000;

impl Quantity {
    /// Zero.
    pub const ZERO: Self = Self { digits: 0, scale: 0, form: Form::Decimal };

    /// Moves trailing zeros into the scale, so that equal numbers have equal fields.
    fn new(mut digits: i128, mut scale: i32, form: Form) -> Self {
        if digits == 0 {
            return Self { form, ..Self::ZERO };
        }
        while digits % 10 == 0 {
            digits /= 10;
            scale += 1;
        }
        Self { digits, scale, form }
    }

    /// Whether the quantity is zero.
    pub fn is_zero(&self) -> bool {
        self.digits == 0
    }

    /// -1, 0 or 1.
    pub fn signum(&self) -> i64 {
        match self.digits.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// The sum; `None` on overflow. It has the format of `self`, or of `other` if `self` is zero.
    pub fn checked_add(&self, other: &Self) -> Option<Self> {
        if self.is_zero() {
            return Some(other.clone());
        }
        if other.is_zero() {
            return Some(self.clone());
        }
        let scale = self.scale.min(other.scale);
        let sum = self.at_scale(scale)?.checked_add(other.at_scale(scale)?)?;
        Some(Self::new(sum, scale, self.form))
    }

    /// The difference; `None` on overflow.
    pub fn checked_sub(&self, other: &Self) -> Option<Self> {
        let negative = Self { digits: other.digits.checked_neg()?, ..other.clone() };
        self.checked_add(&negative)
    }

    /// The quantity as an integer; `None` if it has a fraction or does not fit.
    pub fn to_i64(&self) -> Option<i64> {
        i64::try_from(self.at_scale(0)?).ok()
    }

    /// The quantity in billionths, which is exact; `None` if it does not fit.
    pub fn to_billionths(&self) -> Option<i128> {
        self.at_scale(FINEST)
    }

    /// The nearest double.
    pub fn to_f64(&self) -> f64 {
        // Such a string always parses. The parser rounds correctly, arithmetic would not.
        format!("{}e{}", self.digits, self.scale).parse().unwrap_or_default()
    }

    /// The digits at a scale that is not coarser than its own.
    fn at_scale(&self, scale: i32) -> Option<i128> {
        let zeros = u32::try_from(self.scale.checked_sub(scale)?).ok()?;
        self.digits.checked_mul(10_i128.checked_pow(zeros)?)
    }

    /// The number and its binary unit. `None` for other formats, for fractions, and below 1Ki.
    fn in_binary_units(&self) -> Option<(i128, &'static str)> {
        let mut number =
            self.at_scale(0).filter(|number| self.form == Form::Binary && number.unsigned_abs() >= 1024)?;
        let mut unit = "";
        for (larger, _) in BINARY_UNITS {
            if number % 1024 != 0 {
                break;
            }
            number /= 1024;
            unit = larger;
        }
        Some((number, unit))
    }
}

impl From<i64> for Quantity {
    fn from(number: i64) -> Self {
        Self::new(number.into(), 0, Form::Decimal)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, rest) = split_digits(unsigned);
        let (fraction, unit) = rest.strip_prefix('.').map_or(("", rest), split_digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(QuantityError::Number);
        }
        let quantity = if let Some((_, exponent)) = DECIMAL_UNITS.iter().find(|(own, _)| *own == unit) {
            decimal(whole, fraction, *exponent, Form::Decimal)
        } else if let Some((_, power)) = BINARY_UNITS.iter().find(|(own, _)| *own == unit) {
            binary(whole, fraction, *power)
        } else {
            let exponent = unit.strip_prefix(['e', 'E']).ok_or(QuantityError::Unit)?;
            let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if digits.is_empty() || !split_digits(digits).1.is_empty() {
                return Err(QuantityError::Unit);
            }
            let exponent: i16 = exponent.parse().map_err(|_| QuantityError::Digits)?;
            decimal(whole, fraction, exponent.into(), Form::Exponent)
        };
        quantity
            .map(|quantity| Self {
                digits: if negative { -quantity.digits } else { quantity.digits },
                ..quantity
            })
            .ok_or(QuantityError::Digits)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len()))
}

/// A number with a power of ten; `None` if it has too many digits.
fn decimal(whole: &str, fraction: &str, exponent: i32, form: Form) -> Option<Quantity> {
    let digits = [whole, fraction].concat();
    let kept = digits.trim_end_matches('0');
    let dropped = i32::try_from(digits.len() - kept.len()).ok()?;
    let scale = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?.checked_add(dropped)?;
    if scale > COARSEST {
        return None;
    }
    let too_fine = usize::try_from(FINEST.saturating_sub(scale)).unwrap_or(0);
    // The last digit is not zero, so whatever is cut off rounds up.
    let up = i128::from(too_fine > 0 && !kept.is_empty());
    let kept = kept.get(..kept.len().saturating_sub(too_fine))?.trim_start_matches('0');
    let number: i128 = if kept.is_empty() { 0 } else { kept.parse().ok()? };
    Some(Quantity::new(number.checked_add(up)?, scale.max(FINEST), form))
}

/// A number with a binary unit; `None` if it has too many digits.
fn binary(whole: &str, fraction: &str, power: u32) -> Option<Quantity> {
    /// A fraction of this many digits times any unit does not overflow.
    const MAX_DIGITS: usize = 20;
    const BILLIONTHS: i128 = 1_000_000_000;
    /// Kubernetes caps binary quantities at the largest `i64`.
    const GREATEST: i128 = i64::MAX as i128 * BILLIONTHS;
    let unit = 1_i128 << power;
    let whole = whole.trim_start_matches('0');
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().unwrap_or(i128::MAX) };
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > MAX_DIGITS {
        return None;
    }
    let count: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let parts = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    // Neither product nor quotient overflows. What is finer than a billionth rounds up.
    let rest = if parts <= BILLIONTHS {
        count * (BILLIONTHS / parts) * unit
    } else {
        let parts = parts / BILLIONTHS;
        (count * unit + parts - 1) / parts
    };
    let number = whole.saturating_mul(unit).saturating_mul(BILLIONTHS).saturating_add(rest).min(GREATEST);
    let form = if number < BILLIONTHS && number > 0 { Form::Decimal } else { Form::Binary };
    Some(Quantity::new(number, FINEST, form))
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        (self.digits, self.scale) == (other.digits, other.scale)
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.signum().cmp(&other.signum());
        if signs != Ordering::Equal || self.is_zero() {
            return signs;
        }
        // With first digits of the same power, digits compare like strings.
        let (own, others) = (self.digits.unsigned_abs().to_string(), other.digits.unsigned_abs().to_string());
        let power =
            |digits: &str, scale: i32| i64::from(scale) + i64::try_from(digits.len()).unwrap_or(i64::MAX);
        let sizes = power(&own, self.scale).cmp(&power(&others, other.scale)).then_with(|| own.cmp(&others));
        if self.digits < 0 { sizes.reverse() } else { sizes }
    }
}

/// As Kubernetes formats it: with the largest unit that needs no fraction.
impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((number, unit)) = self.in_binary_units() {
            return write!(f, "{number}{unit}");
        }
        let mut exponent = self.scale - self.scale.rem_euclid(3);
        if self.form != Form::Exponent {
            exponent = exponent.min(18);
        }
        let zeros = usize::try_from(self.scale - exponent).unwrap_or(0);
        write!(f, "{}{:0<zeros$}", self.digits, "")?;
        if self.form == Form::Exponent && exponent != 0 {
            return write!(f, "e{exponent}");
        }
        let unit = DECIMAL_UNITS.iter().find(|(_, own)| *own == exponent);
        f.write_str(unit.map_or("", |(unit, _)| unit))
    }
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Number => "must start with a number",
            Self::Unit => {
                "the unit must be one of n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei, or an exponent such as e3"
            }
            Self::Digits => "too many digits",
        })
    }
}

impl error::Error for QuantityError {}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert_eq, proptest};
    use rstest::rstest;

    use super::{Quantity, QuantityError};

    fn quantity(text: &str) -> Quantity {
        text.parse().unwrap()
    }

    #[rstest]
    #[case("0", "0")]
    #[case("0Ki", "0")]
    #[case("-0.0", "0")]
    #[case("100m", "100m")]
    #[case("0.1", "100m")]
    #[case("1.5", "1500m")]
    #[case("3.", "3")]
    #[case(".5", "500m")]
    #[case("+1", "1")]
    #[case("007", "7")]
    #[case("1000", "1k")]
    #[case("1024", "1024")]
    #[case("123450", "123450")]
    #[case("1000k", "1M")]
    #[case("12.34", "12340m")]
    #[case("0.0001", "100u")]
    #[case("1n", "1n")]
    #[case("5E", "5E")]
    #[case("1000E", "1000E")]
    #[case("-1.5", "-1500m")]
    #[case("1e3", "1e3")]
    #[case("1E3", "1e3")]
    #[case("1e+4", "10e3")]
    #[case("1e-3", "1e-3")]
    #[case("12e0", "12")]
    #[case("1e1000", "10e999")]
    #[case("1Ki", "1Ki")]
    #[case("0.5Ki", "512")]
    #[case("0.3Ki", "307200m")]
    #[case("0.0001Ki", "102400u")]
    #[case("1024Ki", "1Mi")]
    #[case("1025Mi", "1025Mi")]
    #[case("1.5Gi", "1536Mi")]
    #[case("-2Gi", "-2Gi")]
    fn written(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(quantity(text).to_string(), expected);
    }

    /// As in Kubernetes: a request that is too fine becomes the finest possible one.
    #[rstest]
    #[case("0.0000000001", "1n")]
    #[case("1.00000000001", "1000000001n")]
    #[case("-0.0000000001", "-1n")]
    #[case("1.1e-9", "2e-9")]
    #[case("1e-30000", "1e-9")]
    #[case("1.0000000001Gi", "1073741824107374183n")]
    #[case("0.00000000000000000001Ei", "11529216n")]
    fn rounded(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(quantity(text).to_string(), expected);
    }

    #[rstest]
    #[case("8Ei", "9223372036854775807")]
    #[case("-8Ei", "-9223372036854775807")]
    #[case("99999999999999999999999999999999999999999999999999Ki", "9223372036854775807")]
    #[case("7Ei", "7Ei")]
    fn capped(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(quantity(text).to_string(), expected);
    }

    #[rstest]
    #[case("", QuantityError::Number)]
    #[case("-", QuantityError::Number)]
    #[case(".", QuantityError::Number)]
    #[case("Mi", QuantityError::Number)]
    #[case("Three", QuantityError::Number)]
    #[case(" 1", QuantityError::Number)]
    #[case("--1", QuantityError::Number)]
    #[case("1,3G", QuantityError::Unit)]
    #[case("1 Gi", QuantityError::Unit)]
    #[case("200K", QuantityError::Unit)]
    #[case("1KiB", QuantityError::Unit)]
    #[case("1i", QuantityError::Unit)]
    #[case("5e", QuantityError::Unit)]
    #[case("5e+", QuantityError::Unit)]
    #[case("5e3m", QuantityError::Unit)]
    #[case("1.2.3", QuantityError::Unit)]
    #[case("1\u{0661}", QuantityError::Unit)]
    #[case("1e1001", QuantityError::Digits)]
    #[case("1e99999", QuantityError::Digits)]
    #[case("1234567890123456789012345678901234567891", QuantityError::Digits)]
    #[case("0.123456789012345678901Ki", QuantityError::Digits)]
    fn refused(#[case] text: &str, #[case] expected: QuantityError) {
        assert_eq!(text.parse::<Quantity>(), Err(expected));
    }

    #[test]
    fn zeros_do_not_count_as_digits() {
        let zeros = "0".repeat(100);
        assert_eq!(quantity(&format!("{zeros}1.5{zeros}")), quantity("1.5"));
        assert_eq!(quantity(&format!("1{zeros}")), quantity("1e100"));
        assert_eq!(quantity(&format!("1{zeros}")).to_string(), format!("1{}E", &zeros[18..]));
        assert_eq!(format!("1{}", zeros.repeat(1000)).parse::<Quantity>(), Err(QuantityError::Digits));
    }

    #[rstest]
    #[case("200M", "0.2G")]
    #[case("1", "1000m")]
    #[case("1Ki", "1024")]
    #[case("1e3", "1k")]
    #[case("0", "0Mi")]
    fn equal(#[case] left: &str, #[case] right: &str) {
        assert_eq!(quantity(left), quantity(right));
        assert_eq!(quantity(left).cmp(&quantity(right)), std::cmp::Ordering::Equal);
    }

    #[test]
    fn in_order() {
        let ordered = [
            "-1e30", "-1Gi", "-1G", "-2", "-1.5", "-1n", "0", "1n", "999u", "1m", "0.99", "1", "1.5", "999",
            "1k", "1Ki", "50M", "50Mi", "1E", "1Ei", "1e30", "1e300",
        ];
        assert!(ordered.map(quantity).windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[rstest]
    #[case("1Gi", "1Gi", "2Gi")]
    #[case("1Gi", "1G", "2073741824")]
    #[case("1G", "1Gi", "2073741824")]
    #[case("512Mi", "512M", "1024288Ki")]
    #[case("0", "1Gi", "1Gi")]
    #[case("1Gi", "0", "1Gi")]
    #[case("100m", "0.9", "1")]
    #[case("1e3", "1Ki", "2024")]
    #[case("1", "-1", "0")]
    fn added(#[case] left: &str, #[case] right: &str, #[case] expected: &str) {
        assert_eq!(quantity(left).checked_add(&quantity(right)).unwrap().to_string(), expected);
    }

    #[rstest]
    #[case("50k", "20k", "30k")]
    #[case("0", "1Gi", "-1Gi")]
    #[case("1Gi", "1Mi", "1023Mi")]
    fn subtracted(#[case] left: &str, #[case] right: &str, #[case] expected: &str) {
        assert_eq!(quantity(left).checked_sub(&quantity(right)).unwrap().to_string(), expected);
    }

    #[test]
    fn overflow() {
        assert_eq!(quantity("1e300").checked_add(&quantity("1")), None);
        assert_eq!(quantity("1e40").checked_sub(&quantity("1n")), None);
        assert_eq!(quantity("1e300").checked_add(&quantity("1e300")), Some(quantity("2e300")));
    }

    #[rstest]
    #[case("50k", Some(50_000), 50_000.0)]
    #[case("1000m", Some(1), 1.0)]
    #[case("1.5Gi", Some(1_610_612_736), 1_610_612_736.0)]
    #[case("100m", None, 0.1)]
    #[case("-0.3", None, -0.3)]
    #[case("10E", None, 1e19)]
    #[case("1e300", None, 1e300)]
    #[case("1e1000", None, f64::INFINITY)]
    fn numbers(#[case] text: &str, #[case] whole: Option<i64>, #[case] double: f64) {
        assert_eq!(quantity(text).to_i64(), whole);
        assert!((quantity(text).to_f64().to_bits()) == double.to_bits());
    }

    #[rstest]
    #[case("1n", Some(1))]
    #[case("-1.5", Some(-1_500_000_000))]
    #[case("1Ki", Some(1_024_000_000_000))]
    #[case("0", Some(0))]
    #[case("170141183460469231731687303715884105727n", Some(i128::MAX))]
    #[case("1e30", None)]
    fn billionths(#[case] text: &str, #[case] expected: Option<i128>) {
        assert_eq!(quantity(text).to_billionths(), expected);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[-+]?[0-9.]{0,45}[eEinumkKMGTP]{0,3}[-+]?[0-9]{0,6}") {
            if let Ok(quantity) = text.parse::<Quantity>() {
                prop_assert_eq!(quantity.to_string().parse::<Quantity>(), Ok(quantity));
            }
        }

        #[test]
        fn whole_numbers_come_back(number: i64) {
            prop_assert_eq!(Quantity::from(number).to_i64(), Some(number));
            prop_assert_eq!(number.to_string().parse(), Ok(Quantity::from(number)));
        }

        /// All quantities are multiples of a billionth.
        #[test]
        fn calculated_as_billionths(left in -1_000_000_000_000_i64.., right: i64, scale in 0_u32..9) {
            let of = |billionths: i128| format!("{billionths}n").parse::<Quantity>().unwrap();
            let right = i128::from(right) * 10_i128.pow(scale);
            let left = i128::from(left);
            prop_assert_eq!(of(left).cmp(&of(right)), left.cmp(&right));
            prop_assert_eq!(of(left).checked_add(&of(right)), Some(of(left + right)));
            prop_assert_eq!(of(left).checked_sub(&of(right)), Some(of(left - right)));
        }
    }
}
