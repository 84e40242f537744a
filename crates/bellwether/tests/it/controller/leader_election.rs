//! Leader election: standby, failover by release and by expiry of the Lease; probes; errors at startup.

use anyhow::Result;
use bellwether_testkit::{Cluster, eventually};

use super::{Controller, ControllerFixture, TIMEOUT, application, config};

async fn leads(controller: &Controller) -> Result<bool> {
    Ok(controller.metric("bellwether_leader").await? == 1)
}

/// The standby watches everything, writes nothing, and takes over when the leader stops.
#[tokio::test]
async fn the_standby_takes_over() -> Result<()> {
    let cluster = Cluster::builder().name("leading").start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let fixture = ControllerFixture::in_cluster(&cluster, "leading").await?;
    let first = Controller::start(cluster.admin(), &[]).await?;
    eventually(TIMEOUT, "the first leads", async || leads(&first).await).await?;
    let second = Controller::start(cluster.admin(), &[]).await?;
    assert!(!leads(&second).await?);
    fixture.apply(&application("shop", "shop", "")).await?;
    fixture.ready_is("shop", "NoComponents").await?;
    // Three kinds of bellwether.dev, the Application of app.k8s.io, and ConfigMaps.
    eventually(TIMEOUT, "the second knows it too", async || {
        Ok(second.metric("bellwether_kinds_watched").await? == 8)
    })
    .await?;

    assert_eq!(second.get("/healthz").await?, (200, "ok\n".to_owned()));
    assert_eq!(second.get("/nowhere").await?.0, 404);

    let (_, metrics) = second.get("/metrics").await?;
    assert!(!metrics.contains("bellwether_writes_total{"), "the standby writes nothing: {metrics}");

    // A standby that stops leaves the Lease alone, and does not log that it released it.
    let standby = Controller::start(cluster.admin(), &[]).await?;
    let ended = standby.program.stop().await?;
    assert!(
        ended.success() && !standby.program.log().contains("released lease"),
        "{}",
        standby.program.log()
    );
    assert!(leads(&first).await?);

    // A leader that stops releases the Lease.
    let ended = first.program.stop().await?;
    assert!(ended.success() && first.program.log().contains("released lease"), "{}", first.program.log());
    eventually(TIMEOUT, "the second leads", async || leads(&second).await).await?;
    fixture.apply(&config("mine", "shop", Some("shop"))).await?;
    fixture.ready_is("shop", "ComponentsReady").await?;

    // After the leader is killed, the next one leads as soon as the Lease has expired.
    let third = Controller::start(cluster.admin(), &[]).await?;
    second.program.kill();
    eventually(TIMEOUT, "the third leads", async || leads(&third).await).await?;
    fixture.kubectl("delete configmap mine").await?;
    fixture.ready_is("shop", "NoComponents").await?;
    Ok(())
}

/// Each error is one line, with the place and the way out.
#[tokio::test]
async fn startup_errors_are_reported() -> Result<()> {
    let nowhere = crate::run(&["controller", "--kubeconfig", "/nowhere/config"]);
    assert_eq!(nowhere.code, Some(1), "{nowhere}");
    assert_eq!(nowhere.stderr.lines().count(), 1, "{nowhere}");
    assert!(nowhere.stderr.contains("cannot read kubeconfig /nowhere/config: no such file"), "{nowhere}");
    let level = crate::run(&["controller", "--log", "lots=of=noise"]);
    assert!(level.stderr.contains("Set a level such as info or debug"), "{level}");
    Ok(())
}
