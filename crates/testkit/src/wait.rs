//! Waits for a condition to become true.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep, timeout_at};

/// How long tests wait for something before they fail. On an idle machine it takes seconds. On a busy one,
/// with the control planes of other tests, it may take a hundred times as long.
pub const TIMEOUT: Duration = Duration::from_mins(5);

/// The pause between two checks is a tenth of the time that has passed, but at least this long.
const MIN_PAUSE: Duration = Duration::from_millis(50);
/// The upper limit of that pause. It must not be much shorter: a check often runs kubectl, and many tests
/// wait.
const MAX_PAUSE: Duration = Duration::from_secs(1);

/// Polls `holds` until it returns true. An error counts as false; if time runs out, the last error is
/// reported.
pub async fn eventually(
    within: Duration,
    what: &str,
    mut holds: impl AsyncFnMut() -> Result<bool>,
) -> Result<()> {
    let begin = Instant::now();
    let deadline = begin + within;
    let mut last_error = String::new();
    loop {
        // A frozen API server never answers.
        match timeout_at(deadline, holds()).await {
            Ok(Ok(true)) => return Ok(()),
            Ok(Ok(false)) => last_error.clear(),
            Ok(Err(error)) => last_error = format!("; last error: {error:#}"),
            Err(_) => last_error.push_str("; the last check was not completed"),
        }
        let pause = (begin.elapsed() / 10).clamp(MIN_PAUSE, MAX_PAUSE);
        // No time is left for another check.
        if Instant::now() + pause >= deadline {
            bail!("timed out after {} s waiting until {what}{last_error}", within.as_secs());
        }
        sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_polls_until_the_condition_holds() {
        let mut checks = 0;
        let waited = eventually(Duration::from_secs(5), "the Pod is ready", async || {
            checks += 1;
            if checks == 1 {
                bail!("not found");
            }
            Ok(checks == 3)
        });
        waited.await.unwrap();
        assert_eq!(checks, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_timeout_reports_the_last_error() {
        let never = eventually(Duration::from_secs(5), "the Pod is ready", async || bail!("not found")).await;
        assert_eq!(
            never.unwrap_err().to_string(),
            "timed out after 5 s waiting until the Pod is ready; last error: not found"
        );
        let silent =
            eventually(Duration::from_secs(5), "the Pod is ready", async || std::future::pending().await);
        assert!(
            silent
                .await
                .unwrap_err()
                .to_string()
                .ends_with("until the Pod is ready; the last check was not completed")
        );
    }
}
