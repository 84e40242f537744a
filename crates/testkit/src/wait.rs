//! Waiting for what a cluster does in its own time.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use tokio::time::{Instant, sleep, timeout_at};

/// How long tests wait for something before they fail. It takes seconds on an idle machine; on a busy one, with the control
/// planes of other tests beside, it may take a hundred times as long, and the test must not fail because of that.
pub const PATIENCE: Duration = Duration::from_mins(5);

/// The pauses between two looks: at first as short as this,
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// then a tenth of the time that has passed, but never longer than this. A look often runs kubectl, and many tests wait.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Asks again and again until the answer is yes. An error counts as "not yet"; the last one is told if time runs out.
pub async fn eventually(
    within: Duration,
    what: &str,
    mut holds: impl AsyncFnMut() -> Result<bool>,
) -> Result<()> {
    let begin = Instant::now();
    let deadline = begin + within;
    loop {
        // Whoever is asked may never answer.
        let look = timeout_at(deadline, holds()).await.unwrap_or_else(|_| Err(anyhow!("no answer")));
        if matches!(look, Ok(true)) {
            return Ok(());
        }
        let pause = (begin.elapsed() / 10).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
        // Another look would have no time.
        if Instant::now() + pause >= deadline {
            let why =
                look.err().map(|error| format!("; the last look failed: {error:#}")).unwrap_or_default();
            bail!("it did not come true within {} s that {what}{why}", within.as_secs());
        }
        sleep(pause).await;
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
