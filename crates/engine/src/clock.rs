//! Tells a wall clock that was set from time that passed, by comparing it with a monotonic clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Wall clock. It can be set forward and back.
    pub time: Timestamp,
    /// Monotonic clock: time since an arbitrary start, which is the same for all values that are compared.
    pub passed: Duration,
}

/// Smaller differences are clock drift or NTP adjustments.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// Both clocks when the wall clock was first read or last found to be set.
    reference: Option<Now>,
}

impl Clock {
    /// Returns by how much the wall clock was set since the last call, if it was.
    pub(crate) fn advance(&mut self, now: Now) -> Option<SignedDuration> {
        let reference = *self.reference.get_or_insert(now);
        let wall_elapsed = reference.time.duration_until(now.time);
        let passed = SignedDuration::try_from(now.passed.saturating_sub(reference.passed)).ok()?;
        let by = wall_elapsed.checked_sub(passed)?;
        (by.abs() > TOLERANCE).then(|| {
            self.reference = Some(now);
            by
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_is_detected() {
        let (mut clock, mut now) =
            (Clock::default(), Now { time: Timestamp::UNIX_EPOCH, passed: Duration::ZERO });
        let mut after = |passed: u64, wall_elapsed: i64| {
            now.passed += Duration::from_secs(passed);
            now.time += SignedDuration::from_secs(wall_elapsed);
            clock.advance(now).map(|by| by.as_secs())
        };
        assert_eq!(after(0, 0), None, "the first call sets the reference");
        assert_eq!(after(3600, 3600), None);
        assert_eq!(after(10, 3610), Some(3600));
        assert_eq!(after(10, 10), None, "reported once");
        assert_eq!(after(10, -3590), Some(-3600));
        assert_eq!(after(60, 61), None, "clocks drift");
        assert_eq!(after(60, 61), Some(2), "but not for ever");
    }
}
