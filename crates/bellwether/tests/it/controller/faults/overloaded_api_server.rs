//! 429 with Retry-After, and 5xx for many requests: an overloaded API server.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{Fault, Injected, Requests, StatusCode, Verb};
use rstest::rstest;

use super::{MEMBERS, SHOP, STATUS, Stage, recovered, write_kinds::Work};

/// The Retry-After of the injected 429.
const WISH: Duration = Duration::from_secs(3);

const BUSY: Fault = Fault::Answer { status: StatusCode::TOO_MANY_REQUESTS, retry_after: Some(WISH) };

impl Stage<'_> {
    /// Checks that the controller waited for Retry-After before it repeated the request.
    fn was_patient(&self) -> Result<()> {
        let asked = self.proxy.requests();
        let struck = asked.iter().position(|asked| asked.struck).context("none was struck")?;
        let (struck, later) = (&asked[struck], &asked[struck + 1..]);
        let again =
            later.iter().find(|asked| asked.call == struck.call).context("it was never asked again")?;
        let waited = again.at.duration_since(struck.at).unsigned_abs();
        ensure!(waited >= WISH, "it came back after {waited:?}");
        Ok(())
    }
}

/// The watch restarts after Retry-After, without a relist.
#[tokio::test]
async fn watches_are_too_many() -> Result<()> {
    let stage = Stage::set("busy-watch").await?;
    let controller = stage.looked_after_shop().await?;
    stage.proxy.forget();
    let busy = stage.proxy.inject(Requests::of(Verb::Watch, MEMBERS).times(1), BUSY);
    stage.proxy.cut_all().await;
    busy.struck(1).await;
    let since = Instant::now();
    stage.land.is_ready("db", true).await?;
    stage.recovers("429 for a watch, of 3 s", since, (2, 2)).await?;
    stage.was_patient()?;
    assert_eq!(stage.count(Verb::List, MEMBERS), 0, "nothing was lost");
    stage.ends_well(controller, 2).await
}

#[rstest]
#[case::lists("429 for a list, of 3 s", Requests::of(Verb::List, MEMBERS))]
#[case::discovery("429 for discovery, of 3 s", Requests::all().path("/api"))]
#[tokio::test]
async fn questions_at_the_start_are_too_many(#[case] name: &str, #[case] questions: Requests) -> Result<()> {
    let stage = Stage::set("busy-start").await?;
    stage.shop().await?;
    let busy = stage.proxy.inject(questions.times(1), BUSY);
    let controller = stage.launch(&["--leader-elect=false"])?;
    busy.struck(1).await;
    let since = Instant::now();
    stage.recovers(name, since, (2, 1)).await?;
    stage.was_patient()?;
    stage.ends_well(controller, 5).await
}

#[tokio::test]
async fn statuses_are_too_many() -> Result<()> {
    let stage = Stage::set("busy-status").await?;
    let controller = stage.looked_after_shop().await?;
    stage.proxy.forget();
    let busy = stage.proxy.inject(Requests::of(Verb::Patch, STATUS).times(1), BUSY);
    let since = Instant::now();
    stage.land.is_ready("db", true).await?;
    busy.struck(1).await;
    stage.recovers("429 for a status, of 3 s", since, (2, 2)).await?;
    stage.was_patient()?;
    stage.ends_well(controller, 2).await
}

/// The controller writes the status at once, and the owner reference after Retry-After.
#[tokio::test]
async fn changes_of_owners_are_too_many() -> Result<()> {
    let stage = Stage::set("busy-owners").await?;
    let controller = stage.looked_after_shop().await?;
    stage.proxy.forget();
    let busy = stage.proxy.inject(Requests::of(Verb::Patch, MEMBERS).times(1), BUSY);
    let since = Instant::now();
    stage.land.deployment("mail", SHOP).await?;
    busy.struck(1).await;
    let at = stage.is_owned("mail").await?;
    recovered("429 for owners, of 3 s", since, at)?;
    stage.says(SHOP, (3, 1)).await?;
    stage.was_patient()?;
    stage.ends_well(controller, 3).await
}

/// The controller retries the dry run of the health-check Pod after Retry-After.
#[tokio::test]
async fn pods_are_too_many() -> Result<()> {
    let stage = Stage::set("busy-pod").await?;
    let struck = stage.struck(Work::PodTried, BUSY).await?;
    let since = Instant::now();
    let at = stage.is_done(Work::PodTried).await?;
    recovered("429 for a Pod, of 3 s", since, at)?;
    stage.was_patient()?;
    stage.ends_well(struck.controller, 20).await?;
    stage.is_done_once(Work::PodTried)
}

fn storm(stage: &Stage<'_>, requests: Requests) -> Injected {
    stage
        .proxy
        .inject(requests, Fault::Answer { status: StatusCode::INTERNAL_SERVER_ERROR, retry_after: None })
}

fn reads() -> Requests {
    Requests::all().verb(Verb::Get).verb(Verb::List).verb(Verb::Watch)
}

/// 5xx while the watches run: the published status stays, and the controller catches up without a relist.
#[rstest]
#[case::of_reads("5xx for all reads", reads(), 20)]
#[case::of_writes("5xx for all writes", Requests::writes(), 4)]
#[case::of_everything("5xx for everything", Requests::all(), 20)]
#[tokio::test]
async fn a_storm_of_errors(
    #[case] name: &str,
    #[case] requests: Requests,
    #[case] strikes: usize,
) -> Result<()> {
    let stage = Stage::set("storm").await?;
    let controller = stage.looked_after_shop().await?;
    let said = stage.observer.statuses(SHOP).len();
    let storm = storm(&stage, requests);
    stage.proxy.cut_all().await;
    stage.land.deployment("mail", SHOP).await?;
    for name in ["db", "mail"] {
        stage.land.is_ready(name, true).await?;
    }
    storm.struck(strikes).await;
    assert_eq!(stage.observer.statuses(SHOP).len(), said, "nothing is known, and nothing is said");
    let since = Instant::now();
    storm.lift();
    stage.recovers(name, since, (3, 3)).await?;
    assert_eq!(stage.count(Verb::List, MEMBERS), 1, "nothing was lost");
    stage.is_owned("mail").await?;
    stage.ends_well(controller, 30).await
}

/// 5xx at startup, before discovery has succeeded.
#[tokio::test]
async fn a_storm_of_errors_over_discovery() -> Result<()> {
    let stage = Stage::set("storm-start").await?;
    stage.shop().await?;
    let storm = storm(&stage, Requests::all().path("/api"));
    let controller = stage.launch(&["--leader-elect=false"])?;
    storm.struck(6).await;
    assert!(stage.observer.statuses(SHOP).is_empty());
    let since = Instant::now();
    storm.lift();
    stage.recovers("5xx for discovery at the start", since, (2, 1)).await?;
    stage.ends_well(controller, 5).await
}
