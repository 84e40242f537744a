//! A look at a cluster, without following it.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use bellwether_engine::{FeedEvent, GroupKind, Lens, NamespacedName, Unreadable};
use bellwether_health::user::UserRules;
use bellwether_kube_io::read::{ClusterSnapshot, Settings};
use bellwether_testkit::{Kubectl, rule, shared};
use rstest::rstest;

/// What a list tells, in a few words.
fn told(news: &[FeedEvent]) -> Vec<String> {
    let word = |news: &FeedEvent| match news {
        FeedEvent::Served(served) => format!("served as {}", served.plural),
        FeedEvent::ListStarted => "listing".to_owned(),
        FeedEvent::Applied(name, _) => name.name.to_string(),
        FeedEvent::ListCompleted => "listed".to_owned(),
        FeedEvent::Unreadable(why) => why.to_string(),
        FeedEvent::Deleted(_) | FeedEvent::Restored => "what no list tells".to_owned(),
    };
    news.iter().map(word).collect()
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
async fn kinds_have_the_names_that_kubectl_knows(#[case] word: &str, #[case] kind: &str) -> Result<()> {
    let client = shared::cluster().await?.admin().client().await?;
    let glance = ClusterSnapshot::at(client, Settings::default()).await.map_err(anyhow::Error::msg)?;
    ensure!(glance.kind(word)?.to_string() == kind);
    Ok(())
}

#[tokio::test]
async fn all_objects_of_a_namespace_however_many_answers_that_takes() -> Result<()> {
    let cluster = shared::cluster().await?;
    let namespace = cluster.namespace("glance").await?;
    let kubectl = Kubectl::new(cluster.admin())?.in_namespace(&namespace);
    for name in ["a", "b", "c"] {
        kubectl.ok(&["create", "secret", "generic", name]).await?;
    }
    let settings = Settings { namespace: Some(namespace.clone()), page_size: 2, ..Settings::default() };
    let glance =
        ClusterSnapshot::at(cluster.admin().client().await?, settings).await.map_err(anyhow::Error::msg)?;
    let secrets = GroupKind::new("", "Secret");
    let news = glance.list(&secrets, lens(&secrets)).await.map_err(anyhow::Error::msg)?;
    ensure!(told(&news) == ["served as secrets", "listing", "a", "b", "c", "listed"], "{:?}", told(&news));

    let widgets = GroupKind::new("acme.io", "Widget");
    let news = glance.list(&widgets, lens(&widgets)).await.map_err(anyhow::Error::msg)?;
    ensure!(told(&news) == ["the cluster does not serve it"], "{:?}", told(&news));

    let got =
        glance.get(&secrets, &NamespacedName::new(&namespace, "a")).await.map_err(anyhow::Error::msg)?;
    let got: serde_json::Value = serde_json::from_slice(&got.context("it is there")?)?;
    ensure!(got["metadata"]["name"] == "a");
    let nothing =
        glance.get(&secrets, &NamespacedName::new(&namespace, "x")).await.map_err(anyhow::Error::msg)?;
    ensure!(nothing.is_none());
    Ok(())
}

#[tokio::test]
async fn what_may_not_be_read_is_said() -> Result<()> {
    let cluster = shared::cluster().await?;
    let namespace = cluster.namespace("glance").await?;
    let user = cluster.user("glancer")?;
    let _granted = cluster.grant(&user, Some(&namespace), vec![rule(&["list"], "", &["configmaps"])]).await?;
    let settings = Settings { namespace: Some(namespace), ..Settings::default() };
    let glance = ClusterSnapshot::at(user.client().await?, settings).await.map_err(anyhow::Error::msg)?;
    for (name, readable) in [("ConfigMap", true), ("Secret", false)] {
        let kind = GroupKind::new("", name);
        let news = glance.list(&kind, lens(&kind)).await.map_err(anyhow::Error::msg)?;
        let is_forbidden = matches!(news.last(), Some(FeedEvent::Unreadable(Unreadable::Forbidden { .. })));
        ensure!(is_forbidden != readable, "{name}: {:?}", told(&news));
    }
    Ok(())
}
