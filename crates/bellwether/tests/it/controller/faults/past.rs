//! An API server that is behind the others: it shows the past.

use std::time::Instant;

use anyhow::Result;
use bellwether_testkit::{Fault, Requests, StatusCode, Verb};

use super::{MEMBERS, OWN, SHOP, Stage, land::DEPLOYMENTS, witness::version};

/// All that a replica answers from what it has.
fn reads() -> Requests {
    Requests::all().verb(Verb::Get).verb(Verb::List).verb(Verb::Watch)
}

/// What was known before is not forgotten because somebody has not heard of it yet: `web` was not ready once, and another
/// object is gone by now.
#[tokio::test]
async fn lists_go_back() -> Result<()> {
    let stage = Stage::set("past").await?;
    let controller = stage.looked_after_shop().await?;
    let resource_version = version(&stage.land.get(DEPLOYMENTS, "db").await?);
    stage.land.is_ready("web", false).await?;
    stage.land.delete(DEPLOYMENTS, "db").await?;
    stage.says(SHOP, (1, 0)).await?;
    let said = stage.witness.statuses(SHOP).len();

    // It is believed in the end, as whoever restores a cluster wants it; three times are not the end.
    let past = Fault::Past { resource_version };
    let past = stage.proxy.inject(Requests::of(Verb::List, MEMBERS).times(3), past);
    let expired = Fault::ErrorEvent(StatusCode::GONE);
    let _expired = stage.proxy.inject(Requests::of(Verb::Watch, MEMBERS).times(1), expired);
    stage.proxy.cut_all().await;
    past.done(3).await;
    assert_eq!(stage.witness.statuses(SHOP).len(), said, "nothing of it is believed");
    let since = Instant::now();
    stage.land.is_ready("web", true).await?;
    stage.recovers("older API server: lists", since, (1, 1)).await?;
    stage.ends_well(controller, 8).await
}

/// Watches that begin at a replica which does not know yet what we know: they are silent until it does.
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

/// One who has just been started cannot compare. What the others have written since then keeps its old news of Applications
/// from doing harm: it is not allowed to overwrite what it has not seen.
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
    assert_eq!(stage.witness.reasons(SHOP), ["ComponentsNotReady", "ComponentsReady"], "all is said already");
    let since = Instant::now();
    past.lift();
    stage.land.is_ready("web", false).await?;
    stage.recovers("older API server: Applications, after a restart", since, (2, 1)).await?;
    stage.ends_well(controller, 12).await
}

/// Lists are consistent, but the watches after them begin at a replica that is behind.
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
