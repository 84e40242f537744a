//! Pauses between attempts.

use std::time::Duration;

use rand::Rng;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffLimits {
    /// The upper bound of the first pause. It doubles with each further failure.
    pub first: Duration,
    /// The upper bound of all pauses.
    pub longest: Duration,
}

impl Default for BackoffLimits {
    fn default() -> Self {
        Self { first: Duration::from_millis(100), longest: Duration::from_secs(30) }
    }
}

/// Exponential backoff with full jitter. The first retry is immediate. The jitter spreads clients that failed
/// at the same moment.
#[derive(Debug)]
pub struct Backoff {
    limits: BackoffLimits,
    failures: u32,
}

impl Backoff {
    pub fn new(limits: BackoffLimits) -> Self {
        Self { limits, failures: 0 }
    }

    /// The number of failures in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    pub fn reset(&mut self) {
        self.failures = 0;
    }

    fn pause(&mut self, random: &mut impl Rng) -> Duration {
        let before = self.failures;
        self.failures = before.saturating_add(1);
        let Some(doublings) = before.checked_sub(1) else { return Duration::ZERO };
        let factor = 2_u32.saturating_pow(doublings);
        let upper = self.limits.first.saturating_mul(factor).min(self.limits.longest);
        upper.mul_f64(random.random())
    }

    /// Counts a failure and returns the pause before the next attempt.
    pub fn next_delay(&mut self, retry_after: Option<Duration>, random: &mut impl Rng) -> Duration {
        match retry_after {
            Some(retry_after) => self.pause_at_least(retry_after, random),
            None => self.pause(random),
        }
    }

    /// `Retry-After`, capped at the longest pause, plus up to 25 % of jitter.
    fn pause_at_least(&mut self, retry_after: Duration, random: &mut impl Rng) -> Duration {
        self.failures = self.failures.saturating_add(1);
        retry_after.min(self.limits.longest).mul_f64(1.0 + random.random::<f64>() / 4.0)
    }
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng as _, rngs::StdRng};
    use rstest::rstest;

    use super::*;

    const LIMITS: BackoffLimits =
        BackoffLimits { first: Duration::from_millis(100), longest: Duration::from_secs(30) };

    /// The longest of 1,000 pauses after this many failures.
    fn longest(failures: u32) -> Duration {
        let mut random = StdRng::seed_from_u64(1);
        let draw = |_| Backoff { limits: LIMITS, failures }.pause(&mut random);
        (0..1000).map(draw).max().unwrap_or_default()
    }

    #[rstest]
    #[case(0, 0)]
    #[case(1, 100)]
    #[case(2, 200)]
    #[case(5, 1_600)]
    #[case(9, 25_600)]
    #[case(10, 30_000)]
    #[case(u32::MAX, 30_000)]
    fn pauses_grow_up_to_a_limit(#[case] failures: u32, #[case] milliseconds: u64) {
        let limit = Duration::from_millis(milliseconds);
        assert!(longest(failures) <= limit);
        assert!(longest(failures) >= limit.mul_f64(0.9), "the whole range is used");
    }

    #[test]
    fn no_retry_comes_before_retry_after() {
        let mut random = StdRng::seed_from_u64(1);
        let mut backoff = Backoff::new(LIMITS);
        for _ in 0..1000 {
            let pause = backoff.pause_at_least(Duration::from_secs(4), &mut random);
            assert!((Duration::from_secs(4)..=Duration::from_secs(5)).contains(&pause), "{pause:?}");
            let pause = backoff.pause_at_least(Duration::from_hours(1), &mut random);
            assert!(pause <= LIMITS.longest.mul_f64(1.25), "{pause:?}");
        }
    }

    #[test]
    fn after_a_reset_the_first_retry_is_immediate() {
        let mut random = StdRng::seed_from_u64(1);
        let mut backoff = Backoff::new(LIMITS);
        let _ = backoff.pause(&mut random);
        let _ = backoff.pause(&mut random);
        assert_eq!(backoff.failures(), 2);
        backoff.reset();
        assert_eq!(backoff.pause(&mut random), Duration::ZERO);
    }
}
