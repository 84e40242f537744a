//! Broken connections: a watch cut within a line, half-open connections, and 410 Gone.

use std::time::Instant;

use anyhow::Result;
use bellwether_testkit::{Fault, Requests, StatusCode, Verb};
use rstest::rstest;
use serde_json::json;

use super::{MEMBERS, OWN, SHOP, STATUS, Stage, namespace_actions::APPLICATIONS, recovered};

/// The next watch repeats the truncated event, without a relist.
#[tokio::test]
async fn a_watch_is_closed_within_a_line() -> Result<()> {
    let stage = Stage::set("torn").await?;
    let controller = stage.looked_after_shop().await?;
    let fault =
        stage.proxy.inject(Requests::of(Verb::Watch, MEMBERS).times(1), Fault::CutMidLine { after_lines: 0 });
    stage.proxy.cut_all().await;
    fault.struck(1).await;

    let since = Instant::now();
    stage.land.is_ready("db", true).await?;
    stage.recovers("watch closed within a line", since, (2, 2)).await?;
    assert_eq!(stage.count(Verb::List, MEMBERS), 1, "nothing was lost");
    stage.ends_well(controller, 6).await
}

/// The same for the watch of Applications, within the event of a new Application.
#[tokio::test]
async fn the_watch_of_applications_is_closed_within_a_line() -> Result<()> {
    let stage = Stage::set("torn-own").await?;
    let controller = stage.looked_after_shop().await?;
    stage.land.deployment("late", "late").await?;
    let fault =
        stage.proxy.inject(Requests::of(Verb::Watch, OWN).times(1), Fault::CutMidLine { after_lines: 0 });
    stage.proxy.cut_all().await;
    fault.struck(1).await;

    let since = Instant::now();
    stage.land.application("late", json!({})).await?;
    let at = stage.says("late", (1, 0)).await?;
    recovered("watch of Applications closed within a line", since, at)?;
    assert_eq!(stage.count(Verb::List, OWN), 1, "nothing was lost");
    stage.ends_well(controller, 7).await
}

/// A half-open watch: the controller sees the change when the connection ends. `clock::silence_is_noticed`
/// tests the idle timeout.
#[tokio::test]
async fn a_watch_falls_silent() -> Result<()> {
    let stage = Stage::set("silent-watch").await?;
    let controller = stage.looked_after_shop().await?;
    let fault =
        stage.proxy.inject(Requests::of(Verb::Watch, MEMBERS).times(1), Fault::HalfOpen { after_lines: 0 });
    stage.proxy.cut_all().await;
    fault.struck(1).await;
    stage.land.is_ready("db", true).await?;

    let since = Instant::now();
    stage.proxy.cut_all().await;
    stage.recovers("half-open watch, from its reset", since, (2, 2)).await?;
    assert_eq!(stage.count(Verb::List, MEMBERS), 1, "nothing was lost");
    stage.ends_well(controller, 6).await
}

/// The reflector repeats a list without a response after a minute. The controller writes no status before
/// that.
pub(super) async fn a_list_falls_silent() -> Result<()> {
    let stage = Stage::set("silent-list").await?;
    stage.shop().await?;
    stage.land.is_ready("db", true).await?;
    let lists = Requests::of(Verb::List, MEMBERS).times(1);
    let fault = stage.proxy.inject(lists, Fault::HalfOpen { after_lines: 0 });
    let controller = stage.launch(&["--leader-elect=false"])?;
    fault.struck(1).await;
    let since = Instant::now();
    assert!(stage.observer.statuses(SHOP).is_empty());
    stage.recovers("half-open list", since, (2, 2)).await?;
    assert_eq!(stage.observer.statuses(SHOP).len(), 1);
    stage.ends_well(controller, 5).await
}

/// The controller retries a write that never arrives.
pub(super) async fn a_write_falls_silent() -> Result<()> {
    let stage = Stage::set("silent-write").await?;
    let controller = stage.looked_after_shop().await?;
    let writes = Requests::of(Verb::Patch, STATUS).times(1);
    let fault = stage.proxy.inject(writes, Fault::HalfOpen { after_lines: 0 });
    let since = Instant::now();
    stage.land.is_ready("db", true).await?;
    fault.struck(1).await;
    stage.recovers("half-open write", since, (2, 2)).await?;
    stage.ends_well(controller, 6).await
}

/// After 410 Gone, a relist finds the changes that the watch has missed.
#[rstest]
#[case::while_it_watches("410 Gone in a watch", Fault::ErrorEvent(StatusCode::GONE))]
#[case::at_once("410 Gone as the answer", Fault::Answer { status: StatusCode::GONE, retry_after: None })]
#[tokio::test]
async fn a_version_has_expired(#[case] name: &str, #[case] gone: Fault) -> Result<()> {
    let stage = Stage::set("gone").await?;
    let controller = stage.looked_after_shop().await?;
    let deaf = stage.deaf_to(&[MEMBERS]).await;
    stage.land.deployment("mail", SHOP).await?;
    for name in ["db", "mail"] {
        stage.land.is_ready(name, true).await?;
    }

    let expired = stage.proxy.inject(Requests::of(Verb::Watch, MEMBERS).times(1), gone);
    let since = Instant::now();
    deaf.end(&stage.proxy).await;
    expired.struck(1).await;
    stage.recovers(name, since, (3, 3)).await?;
    stage.is_owned("mail").await?;
    assert_eq!(stage.count(Verb::List, MEMBERS), 2);
    stage.ends_well(controller, 8).await
}

/// The same for Applications: one was created and one deleted in between.
#[tokio::test]
async fn a_version_of_applications_has_expired() -> Result<()> {
    let stage = Stage::set("gone-own").await?;
    let controller = stage.looked_after_shop().await?;
    stage.land.deployment("late", "late").await?;
    let deaf = stage.deaf_to(&[OWN]).await;
    stage.land.application("late", json!({})).await?;
    stage.land.delete(APPLICATIONS, SHOP).await?;
    stage.land.is_ready("db", true).await?;

    let expired = Fault::ErrorEvent(StatusCode::GONE);
    let expired = stage.proxy.inject(Requests::of(Verb::Watch, OWN).times(1), expired);
    let since = Instant::now();
    deaf.end(&stage.proxy).await;
    expired.struck(1).await;
    let at = stage.says("late", (1, 0)).await?;
    recovered("410 Gone for Applications", since, at)?;
    assert_eq!(stage.count(Verb::List, OWN), 2);
    stage.ends_well(controller, 8).await
}
