//! The kinds on a real API server: which objects it accepts and rejects, and what kubectl prints.

mod kubectl;
mod validation;

use anyhow::Result;
use bellwether_testkit::{Cluster, shared};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::sync::OnceCell;

/// The shared cluster, with the CRDs installed.
async fn cluster() -> Result<&'static Cluster> {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let cluster = shared::cluster().await?;
    INSTALLED.get_or_try_init(async || cluster.install(&bellwether_api::crds()).await).await?;
    Ok(cluster)
}

/// Decodes an object into a Rust type and encodes it again.
fn round_trip<K: DeserializeOwned + Serialize>(object: &Value) -> Result<Value> {
    Ok(serde_json::to_value(K::deserialize(object)?)?)
}
