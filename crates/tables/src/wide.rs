//! Sums of floating-point numbers without rounding.

use crate::number::{BILLION, parts};

/// Enough for all bits from the least to the greatest double, the sum of 2^40 of them, and a sign.
const WORDS: usize = 34;

/// The words of a sum times a billion: one more above, and one below for the fraction after a division.
const PRODUCT: usize = WORDS + 2;

/// The exponent of the lowest bit.
const LOWEST: i32 = -1074;

/// A sum of doubles in two's complement. Every double is an integer multiple of 2^-1074, so the sum is exact,
/// and a number that was added can be subtracted again in any order.
#[derive(Clone, Debug)]
pub(crate) struct WideSum([u64; WORDS]);

impl WideSum {
    pub(crate) const ZERO: Self = Self([0; WORDS]);

    pub(crate) fn add(&mut self, number: f64) {
        self.change(number, number.is_sign_negative());
    }

    pub(crate) fn subtract(&mut self, number: f64) {
        self.change(number, !number.is_sign_negative());
    }

    fn change(&mut self, number: f64, subtract: bool) {
        let (mantissa, exponent) = parts(number);
        let shift = usize::try_from(exponent - LOWEST).unwrap_or_default();
        let [low, high] = split(u128::from(mantissa) << (shift % 64));
        let mut carry = false;
        for (place, word) in self.0.iter_mut().enumerate().skip(shift / 64) {
            let change = match place - shift / 64 {
                0 => low,
                1 => high,
                _ if !carry => break,
                _ => 0,
            };
            (*word, carry) =
                if subtract { word.borrowing_sub(change, carry) } else { word.carrying_add(change, carry) };
        }
    }

    /// The double that is nearest to the sum of this and an exact number, divided by `count`. The last bit is
    /// even if two are equally near. `None` beyond the range of doubles.
    pub(crate) fn mean(&self, billionths: i128, count: u64) -> Option<f64> {
        let mut sum = self.times_a_billion();
        add_at_one(&mut sum, billionths);
        let negative = sum[PRODUCT - 1] >> 63 == 1;
        if negative {
            negate(&mut sum);
        }
        let rest = divide(&mut sum, u128::from(count) * BILLION.unsigned_abs());
        let magnitude = nearest(&sum, rest)?;
        Some(if negative && magnitude != 0.0 { -magnitude } else { magnitude })
    }

    fn times_a_billion(&self) -> [u64; PRODUCT] {
        let sign = if self.0[WORDS - 1] >> 63 == 1 { u64::MAX } else { 0 };
        let mut product = [sign; PRODUCT];
        product[0] = 0;
        product[1..=WORDS].copy_from_slice(&self.0);
        let mut carry = 0;
        for word in &mut product {
            // The bits that leave the last word are copies of the sign.
            [*word, carry] = split(u128::from(*word) * BILLION.unsigned_abs() + u128::from(carry));
        }
        product
    }
}

fn split(wide: u128) -> [u64; 2] {
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    [wide as u64, (wide >> 64) as u64]
}

/// Adds an integer: its lowest bit has the place of 2^0.
fn add_at_one(sum: &mut [u64; PRODUCT], number: i128) {
    /// 2^0 is bit 1074, above the word for fractions.
    const PLACE: usize = 1 + 1074 / 64;
    const SHIFT: u32 = 1074 % 64;
    let [low, high] = split(number.cast_unsigned());
    let sign = if number < 0 { u64::MAX } else { 0 };
    let mut carry = false;
    let mut below = 0;
    for (place, word) in sum.iter_mut().skip(PLACE).enumerate() {
        let digits = match place {
            0 => low,
            1 => high,
            _ => sign,
        };
        let shifted = digits << SHIFT | below >> (64 - SHIFT);
        below = digits;
        (*word, carry) = word.carrying_add(shifted, carry);
    }
}

fn negate(words: &mut [u64; PRODUCT]) {
    let mut carry = true;
    for word in words {
        (*word, carry) = (!*word).carrying_add(0, carry);
    }
}

/// Divides by a number below 2^94 and returns whether something is left. The quotient has at least 98 bits, or
/// all of them if it has fewer.
fn divide(words: &mut [u64; PRODUCT], divisor: u128) -> bool {
    /// Enough words: the top one may have a single bit.
    const PRECISION: usize = 4;
    let Some(top) = words.iter().rposition(|word| *word != 0) else { return false };
    let (below, divided) = words[..=top].split_at_mut((top + 1).saturating_sub(PRECISION));
    let mut rest: u128 = 0;
    for word in divided.iter_mut().rev() {
        let mut quotient = 0;
        for half in [*word >> 32, *word & 0xffff_ffff] {
            // `rest` is below the divisor, so this does not overflow.
            rest = rest << 32 | u128::from(half);
            let [digit, _] = split(rest / divisor);
            rest %= divisor;
            quotient = quotient << 32 | digit;
        }
        *word = quotient;
    }
    let mut is_more = rest != 0;
    for word in below {
        is_more |= *word != 0;
        *word = 0;
    }
    is_more
}

/// The double that is nearest to these words, the lowest of which is a fraction. `is_more` stands for anything
/// below the lowest bit.
fn nearest(words: &[u64; PRODUCT], is_more: bool) -> Option<f64> {
    /// The bits of a mantissa, the implied one included.
    const BITS: usize = 53;
    let Some(top) = words.iter().rposition(|word| *word != 0) else { return Some(0.0) };
    let length = top * 64 + 64 - words[top].leading_zeros() as usize;
    let dropped = length.saturating_sub(BITS).max(64);
    let bit = |at: usize| words[at / 64] >> (at % 64) & 1;
    let mut mantissa = (dropped..length).rev().fold(0, |mantissa, at| mantissa << 1 | bit(at));
    let is_half = bit(dropped - 1) == 1;
    if is_half && (mantissa & 1 == 1 || is_more || (0..dropped - 1).any(|at| bit(at) == 1)) {
        mantissa += 1;
    }
    // Numbers below 2^-1022 have no implied bit, and the least exponent.
    let exponent = if length < 64 + BITS { 0 } else { dropped as u64 - 63 };
    if exponent >= 0x7ff {
        return None;
    }
    let implied = if exponent == 0 { 0 } else { 1 << 52 };
    // A mantissa with one bit more adds one to the exponent.
    Some(f64::from_bits((exponent << 52) + mantissa - implied)).filter(|number| number.is_finite())
}
