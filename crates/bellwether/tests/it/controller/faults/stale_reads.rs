//! Stale reads: an API server that lags behind the others.

use std::time::Instant;

use anyhow::Result;
use bellwether_testkit::{Fault, Requests, StatusCode, Verb};

use super::{MEMBERS, OWN, SHOP, Stage, namespace_actions::DEPLOYMENTS, observer::version};

/// The requests that a lagging API server answers from its cache.
fn reads() -> Requests {
    Requests::all().verb(Verb::Get).verb(Verb::List).verb(Verb::Watch)
}

/// Stale lists show `web` ready and `db` not deleted. The reflector keeps the newer state.
#[tokio::test]
async fn lists_go_back() -> Result<()> {
    let stage = Stage::set("past").await?;
    let controller = stage.looked_after_shop().await?;
    let resource_version = version(&stage.land.get(DEPLOYMENTS, "db").await?);
    stage.land.is_ready("web", false).await?;
    stage.land.delete(DEPLOYMENTS, "db").await?;
    stage.says(SHOP, (1, 0)).await?;
    let said = stage.observer.statuses(SHOP).len();

    // After five stale lists and a minute the reflector accepts them, because the cluster may have been
    // restored from a backup. Three are not enough.
    let past = Fault::Past { resource_version };
    let past = stage.proxy.inject(Requests::of(Verb::List, MEMBERS).times(3), past);
    let expired = Fault::ErrorEvent(StatusCode::GONE);
    let _expired = stage.proxy.inject(Requests::of(Verb::Watch, MEMBERS).times(1), expired);
    stage.proxy.cut_all().await;
    past.done(3).await;
    assert_eq!(stage.observer.statuses(SHOP).len(), said, "nothing of it is believed");
    let since = Instant::now();
    stage.land.is_ready("web", true).await?;
    stage.recovers("older API server: lists", since, (1, 1)).await?;
    stage.ends_well(controller, 8).await
}

/// Watches that start at a lagging API server are silent until it has caught up. The reflector needs no
/// relist.
#[tokio::test]
async fn watches_go_back() -> Result<()> {
    let stage = Stage::set("past-watch").await?;
    let controller = stage.looked_after_shop().await?;
    let resource_version = version(&stage.land.get(DEPLOYMENTS, "db").await?);
    stage.land.is_ready("db", true).await?;
    stage.says(SHOP, (2, 2)).await?;
    let past = stage.proxy.inject(reads(), Fault::Past { resource_version });
    stage.proxy.cut_all().await;
    past.struck(4).await;
    stage.land.is_ready("web", false).await?;
    let since = Instant::now();
    past.lift();
    stage.recovers("older API server: watches", since, (2, 1)).await?;
    assert_eq!((stage.count(Verb::List, MEMBERS), stage.count(Verb::List, OWN)), (1, 1));
    stage.ends_well(controller, 8).await
}

/// A controller that has just started has no newer state to compare with. Its writes from stale Applications
/// fail with a 409 conflict, so it does not overwrite a status that it has not seen.
#[tokio::test]
async fn applications_go_back_right_after_a_restart() -> Result<()> {
    let stage = Stage::set("past-restart").await?;
    let controller = stage.looked_after_shop().await?;
    let resource_version = version(&stage.land.get(DEPLOYMENTS, "db").await?);
    stage.land.is_ready("db", true).await?;
    stage.says(SHOP, (2, 2)).await?;
    controller.program.kill();
    let past = stage.proxy.inject(reads().resource(OWN), Fault::Past { resource_version });
    let controller = stage.controller().await?;
    past.done(2).await;
    assert_eq!(
        stage.observer.reasons(SHOP),
        ["ComponentsNotReady", "ComponentsReady"],
        "all is said already"
    );
    let since = Instant::now();
    past.lift();
    stage.land.is_ready("web", false).await?;
    stage.recovers("older API server: Applications, after a restart", since, (2, 1)).await?;
    stage.ends_well(controller, 12).await
}

/// Lists are consistent, but the watches after them start at a lagging API server.
#[tokio::test]
async fn watches_go_back_right_after_a_restart() -> Result<()> {
    let stage = Stage::set("past-restart").await?;
    let controller = stage.looked_after_shop().await?;
    let resource_version = version(&stage.land.get(DEPLOYMENTS, "db").await?);
    stage.land.is_ready("db", true).await?;
    stage.says(SHOP, (2, 2)).await?;
    controller.program.kill();
    let past = stage.proxy.inject(Requests::all().verb(Verb::Watch), Fault::Past { resource_version });
    let controller = stage.controller().await?;
    past.done(4).await;
    stage.land.is_ready("web", false).await?;
    let since = Instant::now();
    past.lift();
    stage.recovers("older API server: watches, after a restart", since, (2, 1)).await?;
    stage.ends_well(controller, 10).await
}
