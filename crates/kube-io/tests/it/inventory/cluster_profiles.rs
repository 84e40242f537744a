//! Clusters in ClusterProfiles, with an exec plugin.

use std::{fs, path::Path};

use bellwether_kube_io::inventory::AccessProviders;
use bellwether_testkit::rule;
use k8s_openapi::{
    api::core::v1::ServiceAccount,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Client,
    api::{ApiResource, DynamicObject},
    core::GroupVersionKind,
};
use tempfile::TempDir;

use super::*;

/// The parts of the CRD of cluster-inventory-api that matter here.
fn crd() -> Result<CustomResourceDefinition> {
    let open = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let schema = json!({ "type": "object", "properties": { "spec": open, "status": open } });
    Ok(serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "clusterprofiles.multicluster.x-k8s.io",
            "annotations": { "api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/4322" },
        },
        "spec": {
            "group": "multicluster.x-k8s.io",
            "scope": "Namespaced",
            "names": { "kind": "ClusterProfile", "plural": "clusterprofiles", "singular": "clusterprofile" },
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    }))?)
}

fn profiles(client: Client, namespace: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("multicluster.x-k8s.io", "v1alpha1", "ClusterProfile");
    let resource = ApiResource::from_gvk_with_plural(&kind, "clusterprofiles");
    Api::namespaced_with(client, namespace, &resource)
}

async fn offer(
    profiles: &Api<DynamicObject>,
    name: &str,
    labels: Value,
    provider: &str,
    access: &Access,
) -> Result<()> {
    let profile = json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1",
        "kind": "ClusterProfile",
        "metadata": { "name": name, "labels": labels },
        "spec": { "clusterManager": { "name": "test" } },
    });
    profiles.create(&PostParams::default(), &serde_json::from_value(profile)?).await?;
    let kubeconfig: Value = serde_json::from_str(&access.kubeconfig())?;
    let offered = json!({ "name": provider, "cluster": kubeconfig["clusters"][0]["cluster"] });
    let status = Patch::Merge(json!({ "status": { "accessProviders": [offered] } }));
    profiles.patch_status(name, &PatchParams::default(), &status).await?;
    Ok(())
}

/// The exec plugin prints this file.
fn write_credential(file: &Path, access: &Access, seconds: i64) -> Result<()> {
    let kubeconfig: Value = serde_json::from_str(&access.kubeconfig())?;
    let expires = Timestamp::now() + jiff::SignedDuration::from_secs(seconds);
    let token = &kubeconfig["users"][0]["user"]["token"];
    let credential = json!({ "status": { "token": token, "expirationTimestamp": expires.to_string() } });
    Ok(fs::write(file, credential.to_string())?)
}

#[tokio::test]
async fn clusters_come_with_the_crd_and_go_with_it() -> Result<()> {
    let hub = shared::cluster().await?;
    let directory = TempDir::new()?;
    let credential = directory.path().join("credential.json");
    let file = directory.path().join("providers.json");
    let exec = json!({ "command": "cat", "args": [credential] });
    fs::write(&file, json!({ "providers": [{ "name": "cat", "execConfig": exec }] }).to_string())?;
    let providers = AccessProviders::read(&file)?;
    let fixture = InventoryFixture::with_settings("profiles", &["east"], |settings| {
        settings.access_providers = Some(providers);
    })
    .await?;
    create_map(hub, &fixture.namespace, "one").await?;
    let mut users = Vec::new();
    for name in ["first", "second"] {
        let user = hub.service_account(&fixture.namespace, name).await?;
        let rules = vec![
            rule(&["get", "list", "watch"], "", &["namespaces", "configmaps"]),
            rule(&["list", "watch"], "apiextensions.k8s.io", &["customresourcedefinitions"]),
        ];
        hub.grant(&user, None, rules).await?;
        users.push(user);
    }
    let [first, second] = &users[..] else { unreachable!() };
    write_credential(&credential, first, 15)?;

    hub.install(&[crd()?]).await?;
    let profiles = profiles(hub.admin().client().await?, &fixture.namespace);
    offer(&profiles, "east", json!({ "tier": "edge" }), "cat", hub.admin()).await?;
    offer(&profiles, "west", json!({}), "unknown", hub.admin()).await?;
    fixture.is_read("east").await?;
    fixture.objects_are(1).await?;
    fixture.cluster_is("west", "known, and not connected", |status| status.last_heard.is_none()).await?;
    assert_eq!(fixture.cluster("east").context("read")?.metadata.labels["tier"], "edge");

    // The credential expires. The token of the first one is rejected from then on.
    write_credential(&credential, second, 3600)?;
    let accounts: Api<ServiceAccount> = Api::namespaced(hub.admin().client().await?, &fixture.namespace);
    accounts.delete("first", &DeleteParams::default()).await?;
    create_map(hub, &fixture.namespace, "two").await?;
    fixture.objects_are(2).await?;
    let relabel = Patch::Merge(json!({ "metadata": { "labels": { "tier": "core" } } }));
    profiles.patch("east", &PatchParams::default(), &relabel).await?;
    fixture.cluster_is("east", "relabelled", |status| status.metadata.labels["tier"] == "core").await?;
    let expired = Timestamp::now() + jiff::SignedDuration::from_secs(30);
    fixture
        .cluster_is("east", "heard from with the second token", |status| {
            status.last_heard.is_some_and(|heard| heard > expired)
        })
        .await?;

    // Of two clusters with one name, the one of the Secret counts.
    fixture.register("east", json!({ "from": "secret" }), &hub.admin().kubeconfig()).await?;
    fixture
        .cluster_is("east", "from the Secret", |status| status.metadata.labels.contains_key("from"))
        .await?;
    fixture.forget("east").await?;
    fixture
        .cluster_is("east", "from the ClusterProfile", |status| status.metadata.labels.contains_key("tier"))
        .await?;

    let crds: Api<CustomResourceDefinition> = Api::all(hub.admin().client().await?);
    crds.delete("clusterprofiles.multicluster.x-k8s.io", &DeleteParams::default()).await?;
    eventually(TIMEOUT, "the clusters are gone", async || {
        Ok(fixture.cluster("east").is_none() && fixture.cluster("west").is_none())
    })
    .await
}
