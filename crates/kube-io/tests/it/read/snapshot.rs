//! ClusterSnapshot: kinds by the names of kubectl, lists in pages, 403, get.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use bellwether_engine::{FeedEvent, GroupKind, Lens, NamespacedName, Unreadable};
use bellwether_health::user::UserRules;
use bellwether_kube_io::read::{ClusterSnapshot, ReaderSettings};
use bellwether_testkit::{Kubectl, rule, shared};
use rstest::rstest;

fn summary(events: &[FeedEvent]) -> Vec<String> {
    let word = |event: &FeedEvent| match event {
        FeedEvent::Served(served) => format!("served as {}", served.plural),
        FeedEvent::ListStarted => "listing".to_owned(),
        FeedEvent::Applied(name, _) => name.name.to_string(),
        FeedEvent::ListCompleted => "listed".to_owned(),
        FeedEvent::Unreadable(why) => why.to_string(),
        FeedEvent::Deleted(_) | FeedEvent::Restored => "not part of a list".to_owned(),
    };
    events.iter().map(word).collect()
}

fn lens(kind: &GroupKind) -> Arc<Lens> {
    Arc::new(Lens::new(kind, Arc::new(UserRules::default())))
}

#[rstest]
#[case("deploy", "Deployment.apps")]
#[case("Deployment", "Deployment.apps")]
#[case("deployments.apps", "Deployment.apps")]
#[case("deployments.v1.apps", "Deployment.apps")]
#[case("po", "Pod")]
#[case("services", "Service")]
#[case("netpol", "NetworkPolicy.networking.k8s.io")]
#[case("events", "Event")]
#[case("events.events.k8s.io", "Event.events.k8s.io")]
#[tokio::test]
async fn kinds_are_found_by_the_names_of_kubectl(#[case] word: &str, #[case] kind: &str) -> Result<()> {
    let client = shared::cluster().await?.admin().client().await?;
    let snapshot =
        ClusterSnapshot::at(client, ReaderSettings::default()).await.map_err(anyhow::Error::msg)?;
    ensure!(snapshot.kind(word)?.to_string() == kind);
    Ok(())
}

#[tokio::test]
async fn a_list_contains_the_objects_of_all_pages() -> Result<()> {
    let cluster = shared::cluster().await?;
    let namespace = cluster.namespace("snapshot").await?;
    let kubectl = Kubectl::new(cluster.admin())?.in_namespace(&namespace);
    for name in ["a", "b", "c"] {
        kubectl.ok(&["create", "secret", "generic", name]).await?;
    }
    let settings =
        ReaderSettings { namespace: Some(namespace.clone()), page_size: 2, ..ReaderSettings::default() };
    let snapshot =
        ClusterSnapshot::at(cluster.admin().client().await?, settings).await.map_err(anyhow::Error::msg)?;
    let secrets = GroupKind::new("", "Secret");
    let events = snapshot.list(&secrets, lens(&secrets)).await.map_err(anyhow::Error::msg)?;
    ensure!(
        summary(&events) == ["served as secrets", "listing", "a", "b", "c", "listed"],
        "{:?}",
        summary(&events)
    );

    let widgets = GroupKind::new("acme.io", "Widget");
    let events = snapshot.list(&widgets, lens(&widgets)).await.map_err(anyhow::Error::msg)?;
    ensure!(summary(&events) == ["kind not served by the cluster"], "{:?}", summary(&events));

    let got =
        snapshot.get(&secrets, &NamespacedName::new(&namespace, "a")).await.map_err(anyhow::Error::msg)?;
    let got: serde_json::Value = serde_json::from_slice(&got.context("the object exists")?)?;
    ensure!(got["metadata"]["name"] == "a" && got["data"].is_null(), "metadata only");
    let nothing =
        snapshot.get(&secrets, &NamespacedName::new(&namespace, "x")).await.map_err(anyhow::Error::msg)?;
    ensure!(nothing.is_none());
    Ok(())
}

#[tokio::test]
async fn a_403_is_reported() -> Result<()> {
    let cluster = shared::cluster().await?;
    let namespace = cluster.namespace("snapshot").await?;
    let user = cluster.user("snapshotr")?;
    let _granted = cluster.grant(&user, Some(&namespace), vec![rule(&["list"], "", &["configmaps"])]).await?;
    let settings = ReaderSettings { namespace: Some(namespace), ..ReaderSettings::default() };
    let snapshot = ClusterSnapshot::at(user.client().await?, settings).await.map_err(anyhow::Error::msg)?;
    for (name, readable) in [("ConfigMap", true), ("Secret", false)] {
        let kind = GroupKind::new("", name);
        let events = snapshot.list(&kind, lens(&kind)).await.map_err(anyhow::Error::msg)?;
        let is_forbidden = matches!(events.last(), Some(FeedEvent::Unreadable(Unreadable::Forbidden { .. })));
        ensure!(is_forbidden != readable, "{name}: {:?}", summary(&events));
    }
    Ok(())
}
