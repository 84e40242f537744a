//! How long to wait before the next attempt.

use std::time::Duration;

use rand::Rng;

/// How long to wait between attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackoffLimits {
    /// The first pause is no longer than this; each of the next may be twice as long as the one before,
    pub first: Duration,
    /// but no longer than this.
    pub longest: Duration,
}

impl Default for BackoffLimits {
    fn default() -> Self {
        Self { first: Duration::from_millis(100), longest: Duration::from_secs(30) }
    }
}

/// The pauses between attempts that fail: none before the second attempt, then longer and longer ones. Each is drawn from
/// all that are allowed, so that those who failed together do not come back together.
#[derive(Debug)]
pub struct Backoff {
    pauses: BackoffLimits,
    failures: u32,
}

impl Backoff {
    /// One that has not failed yet.
    pub fn new(pauses: BackoffLimits) -> Self {
        Self { pauses, failures: 0 }
    }

    /// How many attempts have failed in a row.
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// All is well again.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// An attempt has failed: how long to wait before the next.
    fn pause(&mut self, random: &mut impl Rng) -> Duration {
        let before = self.failures;
        self.failures = before.saturating_add(1);
        let Some(doublings) = before.checked_sub(1) else { return Duration::ZERO };
        let factor = 2_u32.saturating_pow(doublings);
        let most = self.pauses.first.saturating_mul(factor).min(self.pauses.longest);
        most.mul_f64(random.random())
    }

    /// An attempt has failed: how long to wait before the next, which the server may have said.
    pub fn pause_or_as_asked(&mut self, wish: Option<Duration>, random: &mut impl Rng) -> Duration {
        match wish {
            Some(wish) => self.pause_as_asked(wish, random),
            None => self.pause(random),
        }
    }

    /// An attempt has failed, and the server says when to come back: not before that, unless it asks for too much, and
    /// not all at the same moment.
    fn pause_as_asked(&mut self, wish: Duration, random: &mut impl Rng) -> Duration {
        self.failures = self.failures.saturating_add(1);
        wish.min(self.pauses.longest).mul_f64(1.0 + random.random::<f64>() / 4.0)
    }
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng as _, rngs::StdRng};
    use rstest::rstest;

    use super::*;

    const PAUSES: BackoffLimits =
        BackoffLimits { first: Duration::from_millis(100), longest: Duration::from_secs(30) };

    /// The longest of many pauses after so many failures.
    fn longest(failures: u32) -> Duration {
        let mut random = StdRng::seed_from_u64(1);
        let draw = |_| Backoff { pauses: PAUSES, failures }.pause(&mut random);
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
    fn the_server_is_not_asked_before_it_wishes() {
        let mut random = StdRng::seed_from_u64(1);
        let mut backoff = Backoff::new(PAUSES);
        for _ in 0..1000 {
            let pause = backoff.pause_as_asked(Duration::from_secs(4), &mut random);
            assert!((Duration::from_secs(4)..=Duration::from_secs(5)).contains(&pause), "{pause:?}");
            let pause = backoff.pause_as_asked(Duration::from_hours(1), &mut random);
            assert!(pause <= PAUSES.longest.mul_f64(1.25), "{pause:?}");
        }
    }

    #[test]
    fn after_a_reset_the_first_attempt_is_at_once() {
        let mut random = StdRng::seed_from_u64(1);
        let mut backoff = Backoff::new(PAUSES);
        let _ = backoff.pause(&mut random);
        let _ = backoff.pause(&mut random);
        assert_eq!(backoff.failures(), 2);
        backoff.reset();
        assert_eq!(backoff.pause(&mut random), Duration::ZERO);
    }
}
