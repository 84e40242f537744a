//! The monotonic and the wall clock.

use std::{sync::LazyLock, time::Duration};

use bellwether_engine::Now;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The zero of [`Now::passed`] in this process.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

pub(crate) fn now() -> Now {
    Now { time: Timestamp::now(), passed: START.elapsed() }
}

/// The wall-clock time of a [`Now::passed`], by the wall clock as it is set now.
pub(crate) fn time_of(passed: Duration) -> Timestamp {
    let now = now();
    let ago = SignedDuration::try_from(now.passed.saturating_sub(passed)).unwrap_or(SignedDuration::MAX);
    now.time.checked_sub(ago).unwrap_or(Timestamp::MIN)
}
