//! Control planes that the tests of one binary share: each test in a namespace of its own, none of them breaking it.

use anyhow::{Result, anyhow};
use tokio::sync::OnceCell;

use crate::cluster::{Cluster, ClusterBuilder};

/// One cluster for all callers in this process. It is started at the first call and goes with the process.
async fn start_once(
    cell: &'static OnceCell<Result<Cluster>>,
    wish: ClusterBuilder,
) -> Result<&'static Cluster> {
    // The failure is kept too: the hundredth test must not wait for the hundredth failing start.
    let started = cell.get_or_init(|| wish.start()).await;
    started.as_ref().map_err(|error| anyhow!("the shared cluster did not start: {error:#}"))
}

/// An API server and its etcd.
pub async fn cluster() -> Result<&'static Cluster> {
    static CLUSTER: OnceCell<Result<Cluster>> = OnceCell::const_new();
    start_once(&CLUSTER, Cluster::builder().name("shared")).await
}

/// The whole of it: controllers, scheduler and two nodes, so that Deployments roll out and garbage is collected.
pub async fn cluster_with_nodes() -> Result<&'static Cluster> {
    static CLUSTER: OnceCell<Result<Cluster>> = OnceCell::const_new();
    start_once(&CLUSTER, Cluster::builder().name("shared-with-nodes").nodes(2)).await
}
