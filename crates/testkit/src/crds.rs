//! Installs CRDs.

use anyhow::{Context as _, Result};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{Patch, PatchParams},
};

use crate::{
    cluster::Cluster,
    wait::{TIMEOUT, eventually},
};

impl Cluster {
    /// Applies CRDs and waits until all their versions are served.
    pub async fn install(&self, crds: &[CustomResourceDefinition]) -> Result<()> {
        let client = self.admin().client().await?;
        let api: Api<CustomResourceDefinition> = Api::all(client.clone());
        let apply = PatchParams::apply("bellwether-testkit").force();
        for crd in crds {
            let name = crd.metadata.name.as_deref().context("a CRD has no name")?;
            api.patch(name, &apply, &Patch::Apply(crd)).await?;
        }
        for crd in crds {
            let served = crd.spec.versions.iter().filter(|version| version.served);
            for version in served {
                let path = format!("/apis/{}/{}/{}", crd.spec.group, version.name, crd.spec.names.plural);
                eventually(TIMEOUT, &format!("{path} is served"), async || {
                    let request = http::Request::get(path.as_str()).body(Vec::new())?;
                    client.request::<serde_json::Value>(request).await?;
                    Ok(true)
                })
                .await?;
            }
        }
        Ok(())
    }
}
