//! Clusters in Secrets: added, relabelled, rotated, unusable, removed.

use bellwether_testkit::{Cluster as ControlPlane, rule};
use k8s_openapi::api::core::v1::ServiceAccount;

use super::*;

#[tokio::test]
async fn a_cluster_comes_changes_and_goes() -> Result<()> {
    let east = ControlPlane::start().await?;
    let fixture = InventoryFixture::start("comes", &["east"]).await?;
    create_namespace(&east, &fixture.namespace).await?;
    create_map(&east, &fixture.namespace, "one").await?;
    assert!(fixture.cluster("east").is_none());

    let begun = Timestamp::now();
    fixture.register("east", json!({ "tier": "edge" }), &east.admin().kubeconfig()).await?;
    let uid = uid_of(&east).await?;
    fixture
        .cluster_is("east", "read, with labels", |status| {
            status.uid.as_deref() == Some(&*uid)
                && status.last_heard.is_some_and(|heard| heard >= begun)
                && status.metadata.labels.get("tier").is_some_and(|tier| tier == "edge")
                && status.kinds.served.contains_key(&GroupKind::new("apps", "Deployment"))
        })
        .await?;
    fixture.objects_are(1).await?;
    let lists = fixture.metric("bellwether_lists_total");

    // kubectl keeps the content of the Secret in an annotation.
    let patch = json!({ "metadata": {
        "labels": { "tier": "core" },
        "annotations": {
            "owner": "team-a",
            "kubectl.kubernetes.io/last-applied-configuration": "the whole Secret",
        },
    } });
    fixture.secrets.patch("east", &PatchParams::default(), &Patch::Merge(patch)).await?;
    fixture
        .cluster_is("east", "relabelled", |status| {
            status.metadata.labels["tier"] == "core" && status.metadata.annotations.len() == 1
        })
        .await?;
    assert_eq!(
        fixture.cluster("east").and_then(|status| status.uid).as_deref(),
        Some(&*uid),
        "not added again"
    );
    assert_eq!(fixture.metric("bellwether_lists_total"), lists);

    fixture.forget("east").await?;
    eventually(TIMEOUT, "the cluster is gone", async || Ok(fixture.cluster("east").is_none())).await?;
    fixture.objects_are(1).await.context("its feeds stay until their users release them")?;
    create_map(&east, &fixture.namespace, "two").await?;

    fixture.register("east", json!({}), &east.admin().kubeconfig()).await?;
    fixture.is_read("east").await?;
    fixture.objects_are(2).await
}

/// The tokens of a deleted service account are rejected.
#[tokio::test]
async fn rotated_credentials_disturb_nothing() -> Result<()> {
    let east = ControlPlane::start().await?;
    let fixture = InventoryFixture::start("rotates", &["east"]).await?;
    create_namespace(&east, &fixture.namespace).await?;
    create_map(&east, &fixture.namespace, "one").await?;
    let mut users = Vec::new();
    for name in ["first", "second"] {
        let user = east.service_account(&fixture.namespace, name).await?;
        let rules = vec![
            rule(&["get", "list", "watch"], "", &["namespaces", "configmaps"]),
            rule(&["list", "watch"], "apiextensions.k8s.io", &["customresourcedefinitions"]),
        ];
        east.grant(&user, None, rules).await?;
        users.push(user);
    }
    let [first, second] = &users[..] else { unreachable!() };
    fixture.register("east", json!({}), &first.kubeconfig()).await?;
    fixture.is_read("east").await?;
    fixture.objects_are(1).await?;
    let before = fixture.cluster("east").map(|status| status.uid);
    let watches = fixture.metric("bellwether_watches_total").context("watches are counted")?;

    // Not accepted by the cluster: the previous one stays.
    let stranger = first.kubeconfig().replace("\"token\":\"", "\"token\":\"x");
    fixture.register("east", json!({}), &stranger).await?;
    create_map(&east, &fixture.namespace, "two").await?;
    fixture.objects_are(2).await?;

    fixture.register("east", json!({}), &second.kubeconfig()).await?;
    eventually(TIMEOUT, "the watches are opened with the new token", async || {
        Ok(fixture.metric("bellwether_watches_total").is_some_and(|now| now > watches))
    })
    .await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(east.admin().client().await?, &fixture.namespace);
    accounts.delete("first", &DeleteParams::default()).await?;
    create_map(&east, &fixture.namespace, "three").await?;
    fixture.objects_are(3).await?;
    let begun = Timestamp::now();
    fixture
        .cluster_is("east", "still read", |status| status.last_heard.is_some_and(|heard| heard > begun))
        .await?;
    assert_eq!(fixture.cluster("east").map(|status| status.uid), before);
    assert_eq!(fixture.metric("bellwether_relists_total"), Some(0.0), "no kind is listed again");
    Ok(())
}

#[tokio::test]
async fn an_unusable_secret_harms_no_other_cluster() -> Result<()> {
    let fixture = InventoryFixture::start("unusable", &["east"]).await?;
    create_map(fixture.hub, &fixture.namespace, "one").await?;
    let kubeconfig = fixture.hub.admin().kubeconfig();
    let with_exec = kubeconfig
        .replace("\"client-certificate-data\":", "\"exec\":{\"command\":\"x\"},\"client-certificate-data\":");
    assert_ne!(with_exec, kubeconfig);
    fixture.register("empty", json!({}), "").await?;
    fixture.register("rubbish", json!({}), "\u{0}{[").await?;
    fixture.register("exec", json!({}), &with_exec).await?;
    fixture.register("east", json!({}), &kubeconfig).await?;
    fixture.is_read("east").await?;
    fixture.objects_are(1).await?;
    for name in ["empty", "rubbish", "exec"] {
        fixture.cluster_is(name, "known, and not connected", |status| status.last_heard.is_none()).await?;
    }

    // Corrected.
    fixture.register("exec", json!({}), &kubeconfig).await?;
    fixture.is_read("exec").await?;
    // A name that no cluster may have.
    fixture.register("empty", json!({}), &kubeconfig).await?;
    let patch = json!({ "metadata": { "labels": { "bellwether.dev/cluster": "Not_A_Name" } } });
    fixture.is_read("empty").await?;
    fixture.secrets.patch("empty", &PatchParams::default(), &Patch::Merge(patch)).await?;
    eventually(TIMEOUT, "the cluster is gone", async || Ok(fixture.cluster("empty").is_none())).await?;
    assert!(fixture.cluster("Not_A_Name").is_none());
    Ok(())
}
