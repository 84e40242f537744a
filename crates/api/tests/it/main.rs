//! The kinds on a real API server: what it accepts, what it refuses and why, and how they look through kubectl.

mod kubectl;
mod validation;

use anyhow::Result;
use bellwether_testkit::{Cluster, shared};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::sync::OnceCell;

/// The shared cluster, with the CRDs installed and served.
async fn cluster() -> Result<&'static Cluster> {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let cluster = shared::cluster().await?;
    INSTALLED.get_or_try_init(async || cluster.install(&bellwether_api::crds()).await).await?;
    Ok(cluster)
}

/// How a Rust type reads an object and writes it again.
fn round_trip<K: DeserializeOwned + Serialize>(object: &Value) -> Result<Value> {
    Ok(serde_json::to_value(K::deserialize(object)?)?)
}
