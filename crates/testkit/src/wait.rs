//! Waiting for what a cluster does in its own time.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use tokio::time::{Instant, sleep, timeout_at};

/// Asks again and again until the answer is yes. An error counts as "not yet"; the last one is told if time runs out.
pub async fn eventually(
    within: Duration,
    what: &str,
    mut holds: impl AsyncFnMut() -> Result<bool>,
) -> Result<()> {
    let deadline = Instant::now() + within;
    loop {
        // Whoever is asked may never answer.
        let look = timeout_at(deadline, holds()).await.unwrap_or_else(|_| Err(anyhow!("no answer")));
        if matches!(look, Ok(true)) {
            return Ok(());
        }
        if Instant::now() >= deadline {
            let why =
                look.err().map(|error| format!("; the last look failed: {error:#}")).unwrap_or_default();
            bail!("it did not come true within {} s that {what}{why}", within.as_secs());
        }
        sleep(Duration::from_millis(50)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_asks_until_the_answer_is_yes() {
        let mut looks = 0;
        let waited = eventually(Duration::from_secs(5), "it is so", async || {
            looks += 1;
            if looks == 1 {
                bail!("not even there");
            }
            Ok(looks == 3)
        });
        waited.await.unwrap();
        assert_eq!(looks, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn it_gives_up_in_time_and_says_why() {
        let never = eventually(Duration::from_secs(5), "it is so", async || bail!("no such thing")).await;
        assert_eq!(
            never.unwrap_err().to_string(),
            "it did not come true within 5 s that it is so; the last look failed: no such thing"
        );
        let silent =
            eventually(Duration::from_secs(5), "it is so", async || std::future::pending().await).await;
        assert!(silent.unwrap_err().to_string().ends_with("the last look failed: no answer"));
    }
}
