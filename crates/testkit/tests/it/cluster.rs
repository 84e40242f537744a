//! Control planes start, work, fail and recover.

use std::time::Duration;

use anyhow::{Context, Result};
use bellwether_testkit::{Cluster, Part, eventually, rule, shared};
use futures::future::try_join_all;
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{ConfigMap, Namespace, Pod},
};
use kube::{
    Api,
    api::{DeleteParams, ListParams, PostParams},
};
use serde_json::json;

const SOON: Duration = bellwether_testkit::TIMEOUT;

fn config_map(name: &str, value: &str) -> Result<ConfigMap> {
    Ok(serde_json::from_value(json!({ "metadata": { "name": name }, "data": { "key": value } }))?)
}

fn deployment(replicas: i32) -> Result<Deployment> {
    Ok(serde_json::from_value(json!({
        "metadata": { "name": "web" },
        "spec": {
            "replicas": replicas,
            "selector": { "matchLabels": { "app": "web" } },
            "template": {
                "metadata": { "labels": { "app": "web" } },
                "spec": { "containers": [{ "name": "web", "image": "web:1" }] },
            },
        },
    }))?)
}

async fn available(deployments: &Api<Deployment>, replicas: i32) -> Result<bool> {
    let status = deployments.get("web").await?.status.context("no status yet")?;
    Ok(status.available_replicas == Some(replicas))
}

#[tokio::test]
async fn concurrent_clusters_are_independent() -> Result<()> {
    let clusters =
        try_join_all(["east", "west", "north"].map(|name| Cluster::builder().name(name).start())).await?;
    let mut identities = Vec::new();
    for cluster in &clusters {
        let client = cluster.admin().client().await?;
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
        maps.create(&PostParams::default(), &config_map("who", cluster.name())?).await?;
        let system: Namespace = Api::all(client).get("kube-system").await?;
        identities.push(system.metadata.uid.context("the namespace has no uid")?);
    }
    for cluster in &clusters {
        let maps: Api<ConfigMap> = Api::namespaced(cluster.admin().client().await?, "default");
        let data = maps.get("who").await?.data.context("the ConfigMap has no data")?;
        assert_eq!(data["key"], cluster.name());
    }
    identities.sort();
    identities.dedup();
    assert_eq!(identities.len(), 3, "the cluster identities differ");
    Ok(())
}

#[tokio::test]
async fn a_deployment_becomes_available_and_is_garbage_collected() -> Result<()> {
    let cluster = shared::cluster_with_nodes().await?;
    let namespace = cluster.namespace("rollout").await?;
    let client = cluster.admin().client().await?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    deployments.create(&PostParams::default(), &deployment(3)?).await?;
    eventually(SOON, "the Deployment is available", async || available(&deployments, 3).await).await?;

    deployments.delete("web", &DeleteParams::background()).await?;
    let sets: Api<ReplicaSet> = Api::namespaced(client.clone(), &namespace);
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    eventually(SOON, "its ReplicaSet and Pods are gone", async || {
        let everything = ListParams::default();
        Ok(sets.list(&everything).await?.items.is_empty() && pods.list(&everything).await?.items.is_empty())
    })
    .await
}

#[tokio::test]
async fn a_user_has_the_granted_rights_and_no_others() -> Result<()> {
    let cluster = shared::cluster().await?;
    let namespace = cluster.namespace("rights").await?;
    let elsewhere = cluster.namespace("rights").await?;
    let users = [cluster.user("alice")?, cluster.service_account(&namespace, "robot").await?];
    for user in users {
        let client = user.client().await?;
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), &namespace);
        let refused = maps.list(&ListParams::default()).await.expect_err("no rights yet");
        assert!(refused.to_string().contains("forbidden"), "{refused}");
        assert!(refused.to_string().contains(user.user()), "{refused}");

        let here = vec![rule(&["list"], "", &["configmaps"])];
        let granted = cluster.grant(&user, Some(&namespace), here.clone()).await?;
        maps.list(&ListParams::default()).await?;
        let write = maps.create(&PostParams::default(), &config_map("new", "")?).await;
        assert!(write.is_err(), "only list was granted");
        let other: Api<ConfigMap> = Api::namespaced(client.clone(), &elsewhere);
        assert!(other.list(&ListParams::default()).await.is_err(), "only one namespace was granted");

        granted.revoke().await?;
        assert!(maps.list(&ListParams::default()).await.is_err(), "the right was revoked");

        cluster.grant(&user, None, here).await?;
        maps.list(&ListParams::default()).await?;
        other.list(&ListParams::default()).await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_killed_part_keeps_its_data() -> Result<()> {
    let cluster = Cluster::start().await?;
    let client = cluster.admin().client().await?;
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.create(&PostParams::default(), &config_map("kept", "through everything")?).await?;
    let data_is_there = async || -> Result<bool> {
        Ok(maps.get("kept").await?.data.is_some_and(|data| data["key"] == "through everything"))
    };

    let before = cluster.process_id(Part::ApiServer).context("the API server is not running")?;
    cluster.kill_part(Part::ApiServer)?;
    assert_eq!(cluster.process_id(Part::ApiServer), None);
    assert!(maps.get("kept").await.is_err(), "the API server is down");
    cluster.start_part(Part::ApiServer).await?;
    assert_ne!(cluster.process_id(Part::ApiServer), Some(before));
    assert!(data_is_there().await?, "after kill -9 of the API server");

    cluster.kill_part(Part::Etcd)?;
    let refused = cluster.pause_part(Part::Etcd).expect_err("etcd is not running");
    assert_eq!(refused.to_string(), "etcd is not running");
    cluster.start_part(Part::Etcd).await?;
    eventually(SOON, "the API server finds its etcd again", data_is_there).await?;

    cluster.stop_part(Part::ApiServer).await?;
    cluster.stop_part(Part::Etcd).await?;
    cluster.start_part(Part::Etcd).await?;
    cluster.start_part(Part::ApiServer).await?;
    assert!(data_is_there().await?, "after SIGTERM of both");
    Ok(())
}

#[tokio::test]
async fn each_part_does_nothing_while_it_is_down() -> Result<()> {
    let cluster = Cluster::builder().nodes(1).start().await?;
    let namespace = cluster.namespace("parts").await?;
    let client = cluster.admin().client().await?;
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), &namespace);
    let pods: Api<Pod> = Api::namespaced(client, &namespace);
    let all_pods = async || anyhow::Ok(pods.list(&ListParams::default()).await?.items);

    cluster.kill_part(Part::ControllerManager)?;
    cluster.stop_part(Part::Scheduler).await?;
    cluster.pause_part(Part::Kwok)?;
    deployments.create(&PostParams::default(), &deployment(1)?).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(all_pods().await?.is_empty(), "the controller manager is down");

    cluster.start_part(Part::ControllerManager).await?;
    eventually(SOON, "the Pod exists", async || Ok(all_pods().await?.len() == 1)).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    assert_eq!(node(&all_pods().await?[0]), None, "the scheduler is down");

    cluster.start_part(Part::Scheduler).await?;
    eventually(SOON, "the Pod has a node", async || Ok(node(&all_pods().await?[0]).is_some())).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!available(&deployments, 1).await?, "kwok is paused");

    cluster.resume_part(Part::Kwok)?;
    eventually(SOON, "the Deployment is available", async || available(&deployments, 1).await).await
}

#[tokio::test]
async fn a_failed_start_names_the_part_that_died() -> Result<()> {
    let cluster = Cluster::start().await?;
    cluster.kill_part(Part::ApiServer)?;
    let (started, killed) = tokio::join!(cluster.start_part(Part::ApiServer), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cluster.kill_part(Part::Etcd)
    });
    killed?;
    let error = started.expect_err("the API server needs etcd").to_string();
    assert!(error.starts_with("etcd of cluster cluster ended:"), "{error}");
    assert!(cluster.log(Part::ApiServer)?.contains("v1."), "the log of the other part is available");
    Ok(())
}

#[tokio::test]
async fn a_paused_api_server_answers_after_it_is_resumed() -> Result<()> {
    let cluster = Cluster::start().await?;
    let namespaces: Api<Namespace> = Api::all(cluster.admin().client().await?);
    namespaces.get("default").await?;
    cluster.pause_part(Part::ApiServer)?;
    let silent = tokio::time::timeout(Duration::from_secs(2), namespaces.get("default")).await;
    assert!(silent.is_err(), "expected a timeout, got {silent:?}");
    cluster.resume_part(Part::ApiServer)?;
    tokio::time::timeout(SOON, namespaces.get("default")).await??;
    Ok(())
}

#[tokio::test]
async fn killing_a_missing_part_is_an_error() -> Result<()> {
    let cluster = shared::cluster().await?;
    let error = cluster.kill_part(Part::Scheduler).expect_err("the cluster has no scheduler");
    assert_eq!(error.to_string(), "cluster shared was started without Scheduler");
    Ok(())
}
