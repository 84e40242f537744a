//! Split brain: two leaders for a moment, because the first one is paused within a write.

use std::time::{Duration, Instant};

use anyhow::Result;
use bellwether_testkit::{Fault, FaultProxy, Requests, StatusCode, Verb, eventually};
use futures::FutureExt as _;

use super::{SHOP, STATUS, Stage, TIMEOUT, in_lines};
use crate::controller::Controller;

/// How long the proxy delays a write: longer than a failover takes.
const SLOWLY: Duration = Duration::from_secs(30);

async fn leads(controller: &Controller) -> Result<bool> {
    Ok(controller.metric("bellwether_leader").await? == 1)
}

/// The leader is paused within a write for so long that another one leads. Its late write fails with a 409
/// conflict. After it resumes, it notices that it has lost the Lease, and writes nothing.
pub(super) async fn the_leader_stands_still_and_goes_on() -> Result<()> {
    let stage = Stage::set("leaders").await?;
    stage.shop().await?;
    let first = stage.launch(&[])?;
    eventually(TIMEOUT, "the first leads", async || leads(&first).await).await?;
    stage.says(SHOP, (2, 1)).await?;
    stage.fence().await?;
    let other_way = FaultProxy::before(stage.cluster).await?;
    let second = stage.launch_via(&other_way, &[])?;
    second.is_ready().await?;
    assert!(!leads(&second).await?);

    let late = stage.proxy.inject(Requests::of(Verb::Patch, STATUS).times(1), Fault::Delay(SLOWLY));
    stage.land.is_ready("db", true).await?;
    late.struck(1).await;
    first.program.pause()?;
    let since = Instant::now();
    stage.land.deployment("mail", SHOP).await?;
    stage.recovers("leader frozen within a write, from then on", since, (3, 2)).await?;
    assert!(leads(&second).await?);
    let was_overtaken = late.done(1).now_or_never().is_none();
    late.done(1).await;
    let requests = stage.proxy.requests();
    let answers: Vec<_> = requests.iter().filter(|asked| asked.struck).map(|asked| asked.status).collect();
    assert!(!was_overtaken || answers == [Some(StatusCode::CONFLICT)], "{answers:?}");

    // The first one resumes, and sees all changes.
    stage.proxy.forget();
    first.program.resume()?;
    let read = first.metric("bellwether_objects_decoded_total").await?;
    stage.land.is_ready("mail", true).await?;
    stage.says(SHOP, (3, 3)).await?;
    stage.slow_fence().await?;
    eventually(TIMEOUT, "the first has seen it too", async || {
        Ok(!leads(&first).await? && first.metric("bellwether_objects_decoded_total").await? >= read + 3)
    })
    .await?;
    let of_leases = Requests::writes().resource("leases.coordination.k8s.io");
    let writes = stage.proxy.count(&Requests::writes()) - stage.proxy.count(&of_leases);
    assert_eq!(writes, 0, "{}", in_lines(&stage.proxy.requests()));
    first.program.kill();
    stage.ends_well(second, 0).await
}
