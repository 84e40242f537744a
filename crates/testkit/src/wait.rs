//! Waiting for what a cluster does in its own time.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep};

/// Asks again and again until the answer is yes. An error counts as "not yet"; the last one is told if time runs out.
pub async fn eventually(
    within: Duration,
    what: &str,
    mut holds: impl AsyncFnMut() -> Result<bool>,
) -> Result<()> {
    let deadline = Instant::now() + within;
    loop {
        let last = holds().await;
        if matches!(last, Ok(true)) {
            return Ok(());
        }
        if Instant::now() > deadline {
            let why =
                last.err().map(|error| format!("; the last look failed: {error:#}")).unwrap_or_default();
            bail!("it did not come true within {} s that {what}{why}", within.as_secs());
        }
        sleep(Duration::from_millis(50)).await;
    }
}
