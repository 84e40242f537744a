//! The kinds on a real API server: what it accepts, what it refuses and why, and how they look through kubectl.

mod kubectl;
mod validation;

use anyhow::Result;
use bellwether_testkit::{Cluster, shared};
use tokio::sync::OnceCell;

/// The shared cluster, with the CRDs installed and served.
async fn cluster() -> Result<&'static Cluster> {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let cluster = shared::cluster().await?;
    INSTALLED.get_or_try_init(async || cluster.install(&bellwether_api::crds()).await).await?;
    Ok(cluster)
}
