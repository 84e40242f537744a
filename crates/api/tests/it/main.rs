//! The kinds on a real API server: what it accepts, what it refuses and why, and how they look through kubectl.

mod kubectl;
mod validation;

use std::time::Duration;

use anyhow::{Context as _, Result};
use bellwether_testkit::{Cluster, eventually, shared};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
};
use tokio::sync::OnceCell;

/// The shared cluster, with the CRDs installed and served.
async fn cluster() -> Result<&'static Cluster> {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let cluster = shared::cluster().await?;
    INSTALLED.get_or_try_init(async || install(&cluster.admin().client().await?).await).await?;
    Ok(cluster)
}

async fn install(client: &Client) -> Result<()> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    for crd in bellwether_api::crds() {
        let name = crd.metadata.name.clone().context("a CRD without name")?;
        api.patch(&name, &PatchParams::apply("test"), &Patch::Apply(&crd)).await?;
        eventually(Duration::from_secs(30), "the kind is served", async || {
            let path = format!(
                "/apis/{}/{}/{}",
                bellwether_api::GROUP,
                bellwether_api::VERSION,
                crd.spec.names.plural
            );
            client.request::<serde_json::Value>(http::Request::get(path).body(Vec::new())?).await?;
            Ok(true)
        })
        .await?;
    }
    Ok(())
}
