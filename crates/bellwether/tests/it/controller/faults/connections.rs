//! Broken connections: a watch cut within a line, half-open connections, and 410 Gone.

use std::time::Instant;

use anyhow::Result;
use bellwether_testkit::{Fault, Requests, StatusCode, Verb};
use rstest::rstest;
use serde_json::json;

use super::{
    super::{condition, text},
    FaultFixture, MEMBERS, OWN, SHOP, STATUS,
    namespace_actions::APPLICATIONS,
    recovered,
};

/// The next watch repeats the truncated event, without a relist.
#[tokio::test]
async fn a_watch_is_closed_within_a_line() -> Result<()> {
    let fixture = FaultFixture::new("torn").await?;
    let controller = fixture.controlled_shop().await?;
    let fault = fixture
        .proxy
        .inject(Requests::of(Verb::Watch, MEMBERS).times(1), Fault::CutMidLine { after_lines: 0 });
    fixture.proxy.cut_all().await;
    fault.struck(1).await;

    let since = Instant::now();
    fixture.namespace.set_ready("db", true).await?;
    fixture.recovers("watch closed within a line", since, (2, 2)).await?;
    assert_eq!(fixture.count(Verb::List, MEMBERS), 1, "nothing was lost");
    fixture.check_invariants(controller, 6).await
}

/// The same for the watch of Applications, within the event of a new Application.
#[tokio::test]
async fn the_watch_of_applications_is_closed_within_a_line() -> Result<()> {
    let fixture = FaultFixture::new("torn-own").await?;
    let controller = fixture.controlled_shop().await?;
    fixture.namespace.deployment("late", "late").await?;
    let fault =
        fixture.proxy.inject(Requests::of(Verb::Watch, OWN).times(1), Fault::CutMidLine { after_lines: 0 });
    fixture.proxy.cut_all().await;
    fault.struck(1).await;

    let since = Instant::now();
    fixture.namespace.application("late", json!({})).await?;
    let at = fixture.counts_are("late", (1, 0)).await?;
    recovered("watch of Applications closed within a line", since, at)?;
    assert_eq!(fixture.count(Verb::List, OWN), 1, "nothing was lost");
    fixture.check_invariants(controller, 7).await
}

/// A half-open watch: the controller sees the change when the connection ends. `clock::silence_is_noticed`
/// tests the idle timeout.
#[tokio::test]
async fn a_watch_falls_silent() -> Result<()> {
    let fixture = FaultFixture::new("silent-watch").await?;
    let controller = fixture.controlled_shop().await?;
    let fault =
        fixture.proxy.inject(Requests::of(Verb::Watch, MEMBERS).times(1), Fault::HalfOpen { after_lines: 0 });
    fixture.proxy.cut_all().await;
    fault.struck(1).await;
    fixture.namespace.set_ready("db", true).await?;

    let since = Instant::now();
    fixture.proxy.cut_all().await;
    fixture.recovers("half-open watch, from its reset", since, (2, 2)).await?;
    assert_eq!(fixture.count(Verb::List, MEMBERS), 1, "nothing was lost");
    fixture.check_invariants(controller, 6).await
}

/// The reflector repeats a list without a response after a minute. Until then, the controller reports that the kind
/// cannot be read: other kinds must not wait for it.
pub(super) async fn a_list_falls_silent() -> Result<()> {
    let fixture = FaultFixture::new("silent-list").await?;
    fixture.shop().await?;
    fixture.namespace.set_ready("db", true).await?;
    let lists = Requests::of(Verb::List, MEMBERS).times(1);
    let fault = fixture.proxy.inject(lists, Fault::HalfOpen { after_lines: 0 });
    let controller = fixture.launch(&["--leader-elect=false"])?;
    fault.struck(1).await;
    let since = Instant::now();
    assert!(fixture.observer.statuses(SHOP).is_empty());
    fixture.recovers("half-open list", since, (2, 2)).await?;
    let statuses = fixture.observer.statuses(SHOP);
    let resolved =
        statuses.iter().map(|revision| text(&condition(&revision.object["status"], "Resolved")["reason"]));
    assert_eq!(resolved.collect::<Vec<_>>(), ["NotReadable", "AllKindsResolved"]);
    fixture.check_invariants(controller, 6).await
}

/// The controller retries a write that never arrives.
pub(super) async fn a_write_falls_silent() -> Result<()> {
    let fixture = FaultFixture::new("silent-write").await?;
    let controller = fixture.controlled_shop().await?;
    let writes = Requests::of(Verb::Patch, STATUS).times(1);
    let fault = fixture.proxy.inject(writes, Fault::HalfOpen { after_lines: 0 });
    let since = Instant::now();
    fixture.namespace.set_ready("db", true).await?;
    fault.struck(1).await;
    fixture.recovers("half-open write", since, (2, 2)).await?;
    fixture.check_invariants(controller, 6).await
}

/// After 410 Gone, a relist finds the changes that the watch has missed.
#[rstest]
#[case::while_it_watches("410 Gone in a watch", Fault::ErrorEvent(StatusCode::GONE))]
#[case::at_once("410 Gone as the answer", Fault::Answer { status: StatusCode::GONE, retry_after: None })]
#[tokio::test]
async fn a_version_has_expired(#[case] name: &str, #[case] gone: Fault) -> Result<()> {
    let fixture = FaultFixture::new("gone").await?;
    let controller = fixture.controlled_shop().await?;
    let held = fixture.hold_watch_events(&[MEMBERS]).await;
    fixture.namespace.deployment("mail", SHOP).await?;
    for name in ["db", "mail"] {
        fixture.namespace.set_ready(name, true).await?;
    }

    let expired = fixture.proxy.inject(Requests::of(Verb::Watch, MEMBERS).times(1), gone);
    let since = Instant::now();
    held.discard(&fixture.proxy).await;
    expired.struck(1).await;
    fixture.recovers(name, since, (3, 3)).await?;
    fixture.is_owned("mail").await?;
    assert_eq!(fixture.count(Verb::List, MEMBERS), 2);
    fixture.check_invariants(controller, 8).await
}

/// The same for Applications: one was created and one deleted in between.
#[tokio::test]
async fn a_version_of_applications_has_expired() -> Result<()> {
    let fixture = FaultFixture::new("gone-own").await?;
    let controller = fixture.controlled_shop().await?;
    fixture.namespace.deployment("late", "late").await?;
    let held = fixture.hold_watch_events(&[OWN]).await;
    fixture.namespace.application("late", json!({})).await?;
    fixture.namespace.delete(APPLICATIONS, SHOP).await?;
    fixture.namespace.set_ready("db", true).await?;

    let expired = Fault::ErrorEvent(StatusCode::GONE);
    let expired = fixture.proxy.inject(Requests::of(Verb::Watch, OWN).times(1), expired);
    let since = Instant::now();
    held.discard(&fixture.proxy).await;
    expired.struck(1).await;
    let at = fixture.counts_are("late", (1, 0)).await?;
    recovered("410 Gone for Applications", since, at)?;
    assert_eq!(fixture.count(Verb::List, OWN), 2);
    fixture.check_invariants(controller, 8).await
}
