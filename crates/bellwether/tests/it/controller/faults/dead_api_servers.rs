//! API server and etcd: killed, restarted, and frozen.

use std::time::Instant;

use anyhow::Result;
use bellwether_testkit::{Cluster, Part, Verb, eventually};

use super::{FaultFixture, MEMBERS, TIMEOUT};

pub(super) async fn cluster(name: &str) -> Result<Cluster> {
    let cluster = Cluster::builder().name(name).start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    Ok(cluster)
}

/// The API server dies right after a change that the controller may or may not have seen, and returns with
/// its data.
#[tokio::test]
async fn the_api_server_is_killed() -> Result<()> {
    let cluster = cluster("killed").await?;
    let fixture = FaultFixture::in_cluster(&cluster, "killed").await?;
    let controller = fixture.controlled_shop().await?;
    fixture.namespace.set_ready("db", true).await?;
    cluster.kill_part(Part::ApiServer)?;
    cluster.start_part(Part::ApiServer).await?;
    let since = Instant::now();
    fixture.recovers("API server killed, from its return", since, (2, 2)).await?;
    let since = Instant::now();
    fixture.namespace.set_ready("web", false).await?;
    fixture.recovers("API server killed, from a change after its return", since, (2, 1)).await?;
    fixture.check_invariants(controller, 30).await
}

#[tokio::test]
async fn the_store_is_killed() -> Result<()> {
    let cluster = cluster("storeless").await?;
    let fixture = FaultFixture::in_cluster(&cluster, "storeless").await?;
    let controller = fixture.controlled_shop().await?;
    fixture.namespace.set_ready("db", true).await?;
    cluster.kill_part(Part::Etcd)?;
    cluster.start_part(Part::Etcd).await?;
    let since = Instant::now();
    fixture.recovers("etcd killed, from its return", since, (2, 2)).await?;
    let since = Instant::now();
    fixture.namespace.set_ready("web", false).await?;
    fixture.recovers("etcd killed, from a change after its return", since, (2, 1)).await?;
    fixture.check_invariants(controller, 30).await
}

/// The API server keeps its connections open, and responds neither on them nor on new ones.
#[tokio::test]
async fn the_api_server_stands_still() -> Result<()> {
    let cluster = cluster("frozen").await?;
    let fixture = FaultFixture::in_cluster(&cluster, "frozen").await?;
    let controller = fixture.controlled_shop().await?;
    cluster.pause_part(Part::ApiServer)?;
    fixture.proxy.forget();
    fixture.proxy.cut_all().await;
    let watches = async || Ok(fixture.count(Verb::Watch, MEMBERS) > 0);
    eventually(TIMEOUT, "the controller wants to watch", watches).await?;
    cluster.resume_part(Part::ApiServer)?;
    let since = Instant::now();
    fixture.namespace.set_ready("db", true).await?;
    fixture.recovers("API server frozen, from a change after its return", since, (2, 2)).await?;
    fixture.check_invariants(controller, 30).await
}
