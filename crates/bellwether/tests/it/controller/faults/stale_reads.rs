//! Stale reads: an API server that lags behind the others.

use std::time::Instant;

use anyhow::Result;
use bellwether_testkit::{Fault, Requests, StatusCode, Verb};

use super::{FaultFixture, MEMBERS, OWN, SHOP, namespace_actions::DEPLOYMENTS, observer::version};

/// The requests that a lagging API server answers from its cache.
fn reads() -> Requests {
    Requests::all().verb(Verb::Get).verb(Verb::List).verb(Verb::Watch)
}

/// Stale lists show `web` ready and `db` not deleted. The reflector keeps the newer state.
#[tokio::test]
async fn lists_go_back() -> Result<()> {
    let fixture = FaultFixture::new("past").await?;
    let controller = fixture.controlled_shop().await?;
    let resource_version = version(&fixture.namespace.get(DEPLOYMENTS, "db").await?);
    fixture.namespace.set_ready("web", false).await?;
    fixture.namespace.delete(DEPLOYMENTS, "db").await?;
    fixture.counts_are(SHOP, (1, 0)).await?;
    let before = fixture.observer.statuses(SHOP).len();

    // After five stale lists and a minute the reflector accepts them, because the cluster may have been
    // restored from a backup. Three are not enough.
    let past = Fault::Past { resource_version };
    let past = fixture.proxy.inject(Requests::of(Verb::List, MEMBERS).times(3), past);
    let expired = Fault::ErrorEvent(StatusCode::GONE);
    let _expired = fixture.proxy.inject(Requests::of(Verb::Watch, MEMBERS).times(1), expired);
    fixture.proxy.cut_all().await;
    past.done(3).await;
    assert_eq!(fixture.observer.statuses(SHOP).len(), before, "stale lists change no status");
    let since = Instant::now();
    fixture.namespace.set_ready("web", true).await?;
    fixture.recovers("older API server: lists", since, (1, 1)).await?;
    fixture.check_invariants(controller, 8).await
}

/// Watches that start at a lagging API server are silent until it has caught up. The reflector needs no
/// relist.
#[tokio::test]
async fn watches_go_back() -> Result<()> {
    let fixture = FaultFixture::new("past-watch").await?;
    let controller = fixture.controlled_shop().await?;
    let resource_version = version(&fixture.namespace.get(DEPLOYMENTS, "db").await?);
    fixture.namespace.set_ready("db", true).await?;
    fixture.counts_are(SHOP, (2, 2)).await?;
    // Lists stay consistent: two that go back mean that the cluster was restored from a backup.
    let lagging = Requests::all().verb(Verb::Get).verb(Verb::Watch);
    let past = fixture.proxy.inject(lagging, Fault::Past { resource_version });
    fixture.proxy.cut_all().await;
    past.struck(4).await;
    fixture.namespace.set_ready("web", false).await?;
    let since = Instant::now();
    past.lift();
    fixture.recovers("older API server: watches", since, (2, 1)).await?;
    assert_eq!((fixture.count(Verb::List, MEMBERS), fixture.count(Verb::List, OWN)), (1, 1));
    fixture.check_invariants(controller, 8).await
}

/// A controller that has just started has no newer state to compare with. Its writes from stale Applications
/// fail with a 409 conflict, so it does not overwrite a status that it has not seen.
#[tokio::test]
async fn applications_go_back_right_after_a_restart() -> Result<()> {
    let fixture = FaultFixture::new("past-restart").await?;
    let controller = fixture.controlled_shop().await?;
    let resource_version = version(&fixture.namespace.get(DEPLOYMENTS, "db").await?);
    fixture.namespace.set_ready("db", true).await?;
    fixture.counts_are(SHOP, (2, 2)).await?;
    controller.program.kill();
    let past = fixture.proxy.inject(reads().resource(OWN), Fault::Past { resource_version });
    let controller = fixture.controller().await?;
    past.done(2).await;
    assert_eq!(
        fixture.observer.reasons(SHOP),
        ["ComponentsInProgress", "ComponentsReady"],
        "the controller wrote no status"
    );
    let since = Instant::now();
    past.lift();
    fixture.namespace.set_ready("web", false).await?;
    fixture.recovers("older API server: Applications, after a restart", since, (2, 1)).await?;
    fixture.check_invariants(controller, 12).await
}

/// Lists are consistent, but the watches after them start at a lagging API server.
#[tokio::test]
async fn watches_go_back_right_after_a_restart() -> Result<()> {
    let fixture = FaultFixture::new("past-restart").await?;
    let controller = fixture.controlled_shop().await?;
    let resource_version = version(&fixture.namespace.get(DEPLOYMENTS, "db").await?);
    fixture.namespace.set_ready("db", true).await?;
    fixture.counts_are(SHOP, (2, 2)).await?;
    controller.program.kill();
    let past = fixture.proxy.inject(Requests::all().verb(Verb::Watch), Fault::Past { resource_version });
    let controller = fixture.controller().await?;
    past.done(4).await;
    fixture.namespace.set_ready("web", false).await?;
    let since = Instant::now();
    past.lift();
    fixture.recovers("older API server: watches, after a restart", since, (2, 1)).await?;
    fixture.check_invariants(controller, 10).await
}
