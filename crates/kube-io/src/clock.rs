//! The clocks of this process.

use std::{sync::LazyLock, time::Duration};

use bellwether_engine::Now;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// From where [`Now::passed`] counts, for everything in this process.
static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// What the time is.
pub(crate) fn now() -> Now {
    Now { time: Timestamp::now(), passed: BEGUN.elapsed() }
}

/// What clocks on the wall said when so much time had passed, by the clock as it is set now.
pub(crate) fn time_of(passed: Duration) -> Timestamp {
    let now = now();
    let ago = SignedDuration::try_from(now.passed.saturating_sub(passed)).unwrap_or(SignedDuration::MAX);
    now.time.checked_sub(ago).unwrap_or(Timestamp::MIN)
}
