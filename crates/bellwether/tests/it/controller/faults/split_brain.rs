//! Split brain: two leaders for a moment, because the first one is paused within a write.

use std::time::{Duration, Instant};

use anyhow::Result;
use bellwether_testkit::{Fault, FaultProxy, Requests, StatusCode, Verb, eventually};
use futures::FutureExt as _;

use super::{FaultFixture, SHOP, STATUS, TIMEOUT, in_lines};
use crate::controller::Controller;

/// How long the proxy delays a write: longer than a failover takes.
const SLOWLY: Duration = Duration::from_secs(30);

async fn leads(controller: &Controller) -> Result<bool> {
    Ok(controller.metric("bellwether_leader").await? == 1)
}

/// The leader is paused within a write for so long that another one leads. Its late write fails with a 409
/// conflict. After it resumes, it notices that it has lost the Lease, and writes nothing.
pub(super) async fn the_leader_stands_still_and_goes_on() -> Result<()> {
    let fixture = FaultFixture::new("leaders").await?;
    fixture.shop().await?;
    let first = fixture.launch(&[])?;
    eventually(TIMEOUT, "the first leads", async || leads(&first).await).await?;
    fixture.counts_are(SHOP, (2, 1)).await?;
    fixture.fence().await?;
    let other_way = FaultProxy::before(fixture.cluster).await?;
    let second = fixture.launch_via(&other_way, &[])?;
    second.is_ready().await?;
    assert!(!leads(&second).await?);

    let late = fixture.proxy.inject(Requests::of(Verb::Patch, STATUS).times(1), Fault::Delay(SLOWLY));
    fixture.namespace.set_ready("db", true).await?;
    late.struck(1).await;
    first.program.pause()?;
    let since = Instant::now();
    fixture.namespace.deployment("mail", SHOP).await?;
    fixture.recovers("leader frozen within a write, from then on", since, (3, 2)).await?;
    assert!(leads(&second).await?);
    let was_overtaken = late.done(1).now_or_never().is_none();
    late.done(1).await;
    let requests = fixture.proxy.requests();
    let answers: Vec<_> = requests.iter().filter(|asked| asked.struck).map(|asked| asked.status).collect();
    assert!(!was_overtaken || answers == [Some(StatusCode::CONFLICT)], "{answers:?}");

    // The first one resumes, and sees all changes.
    fixture.proxy.forget();
    first.program.resume()?;
    let read = first.metric("bellwether_objects_decoded_total").await?;
    fixture.namespace.set_ready("mail", true).await?;
    fixture.counts_are(SHOP, (3, 3)).await?;
    fixture.slow_fence().await?;
    eventually(TIMEOUT, "the first has seen it too", async || {
        Ok(!leads(&first).await? && first.metric("bellwether_objects_decoded_total").await? >= read + 3)
    })
    .await?;
    let of_leases = Requests::writes().resource("leases.coordination.k8s.io");
    let writes = fixture.proxy.count(&Requests::writes()) - fixture.proxy.count(&of_leases);
    assert_eq!(writes, 0, "{}", in_lines(&fixture.proxy.requests()));
    first.program.kill();
    fixture.check_invariants(second, 0).await
}
