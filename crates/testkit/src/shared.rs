//! Control planes that all tests of one binary share. Each test uses its own namespace and must not break the
//! cluster.

use anyhow::{Result, anyhow};
use tokio::sync::OnceCell;

use crate::cluster::{Cluster, ClusterBuilder};

/// Starts the cluster at the first call. It ends with the process.
async fn start_once(
    cell: &'static OnceCell<Result<Cluster>>,
    builder: ClusterBuilder,
) -> Result<&'static Cluster> {
    // An error is kept too: after a failed start the other tests fail at once.
    let started = cell.get_or_init(|| builder.start()).await;
    started.as_ref().map_err(|error| anyhow!("the shared cluster did not start: {error:#}"))
}

/// Only etcd and an API server.
pub async fn cluster() -> Result<&'static Cluster> {
    static CLUSTER: OnceCell<Result<Cluster>> = OnceCell::const_new();
    start_once(&CLUSTER, Cluster::builder().name("shared")).await
}

/// With controller manager, scheduler and two nodes: Deployments roll out, and garbage collection works.
pub async fn cluster_with_nodes() -> Result<&'static Cluster> {
    static CLUSTER: OnceCell<Result<Cluster>> = OnceCell::const_new();
    start_once(&CLUSTER, Cluster::builder().name("shared-with-nodes").nodes(2)).await
}
