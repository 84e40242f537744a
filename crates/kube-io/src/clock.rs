//! The clocks that this side of the engine has.

use bellwether_engine::Now;
use jiff::Timestamp;
use tokio::time::Instant;

/// What the time is.
pub(crate) fn now() -> Now {
    Now { time: Timestamp::now(), instant: Instant::now().into_std() }
}
