//! What the time is, and whether somebody has set the clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// What the time is.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// By the clock on the wall, which people put forward and back.
    pub time: Timestamp,
    /// How long it has been since some beginning, by a clock that only goes forward: the same beginning for all that is
    /// compared.
    pub passed: Duration,
}

/// Clocks that agree to this are left alone: they drift, and are kept right by little steps.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(1);

/// Compares the two clocks.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// What both said when the one on the wall was last known to be set.
    reference: Option<Now>,
}

impl Clock {
    /// It is now. Gives back by how much the clock on the wall was set since it was last asked, if it was.
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
    fn a_clock_that_is_set_is_told_from_time_that_passes() {
        let (mut clock, mut now) =
            (Clock::default(), Now { time: Timestamp::UNIX_EPOCH, passed: Duration::ZERO });
        let mut after = |passed: u64, wall_elapsed: i64| {
            now.passed += Duration::from_secs(passed);
            now.time += SignedDuration::from_secs(wall_elapsed);
            clock.advance(now).map(|by| by.as_secs())
        };
        assert_eq!(after(0, 0), None, "it has to begin somewhere");
        assert_eq!(after(3600, 3600), None);
        assert_eq!(after(10, 3610), Some(3600));
        assert_eq!(after(10, 10), None, "it is told once");
        assert_eq!(after(10, -3590), Some(-3600));
        assert_eq!(after(60, 61), None, "clocks drift");
        assert_eq!(after(60, 61), Some(2), "but not for ever");
    }
}
