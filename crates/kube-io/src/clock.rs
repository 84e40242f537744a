//! The clocks of this process.

use std::sync::LazyLock;

use bellwether_engine::Now;
use jiff::Timestamp;
use tokio::time::Instant;

/// From where [`Now::passed`] counts, for everything in this process.
static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// What the time is.
pub(crate) fn now() -> Now {
    Now { time: Timestamp::now(), passed: BEGUN.elapsed() }
}
