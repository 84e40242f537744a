//! API discovery: CustomResourceDefinitions created, deleted and changed; served versions; unaggregated
//! discovery.

use anyhow::{Context as _, Result, ensure};
use bellwether_engine::{GroupKind, ServedResource};
use bellwether_kube_io::read::RestMapper;
use bellwether_testkit::{Fault, FaultProxy, Requests, StatusCode, eventually, shared};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams},
};
use serde_json::json;

use super::{ReaderFixture, SOON};

/// A CRD with these versions.
fn widgets(group: &str, versions: &[&str]) -> Result<CustomResourceDefinition> {
    let version = |(index, version): (usize, &&str)| {
        json!({
            "name": version, "served": true, "storage": index == 0, "subresources": { "status": {} },
            "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } },
        })
    };
    let versions: Vec<_> = versions.iter().enumerate().map(version).collect();
    Ok(serde_json::from_value(json!({
        "metadata": { "name": format!("widgets.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced", "versions": versions,
            "names": { "plural": "widgets", "singular": "widget", "kind": "Widget" },
        },
    }))?)
}

impl ReaderFixture {
    fn crds(&self) -> Api<CustomResourceDefinition> {
        Api::all(self.maps.clone().into_client())
    }

    fn widgets(&self, group: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", "Widget"));
        Api::namespaced_with(self.maps.clone().into_client(), &self.namespace, &resource)
    }

    async fn create_widget(&self, group: &str, name: &str) -> Result<()> {
        let widget =
            json!({ "apiVersion": format!("{group}/v1"), "kind": "Widget", "metadata": { "name": name } });
        self.widgets(group).create(&PostParams::default(), &serde_json::from_value(widget)?).await?;
        Ok(())
    }

    /// Expects that widgets are served in this version, and a list of these.
    async fn expect_widgets(&mut self, version: &str, names: &[&str]) -> Result<()> {
        self.expect_events(&[&format!("widgets: served as {version}/widgets")]).await?;
        self.expect_widget_list(names).await
    }

    /// Expects that widgets are served in this version after a change of the CRD. The change ends watches, so
    /// that a relist may come before.
    async fn expect_served(&mut self, version: &str) -> Result<()> {
        let expected = format!("widgets: served as {version}/widgets");
        loop {
            let event = self.next_event().await.with_context(|| format!("no event; expected: {expected}"))?;
            if event == expected {
                return Ok(());
            }
            let is_list = ["listing", "applied", "listed"].iter().any(|end| event.ends_with(end));
            ensure!(is_list, "event: {event}; expected: {expected}");
        }
    }

    async fn expect_widget_list(&mut self, names: &[&str]) -> Result<()> {
        self.expect_events(&["widgets: listing"]).await?;
        for name in names {
            let expected = format!("widgets: {}/{name} applied", self.namespace);
            self.expect_events(&[&expected]).await?;
        }
        self.expect_events(&["widgets: listed"]).await
    }
}

#[tokio::test]
async fn a_crd_is_created_deleted_and_created_again() -> Result<()> {
    let group = "comes.example.com";
    let mut fixture = ReaderFixture::new("discovery").await?;
    fixture.watch("widgets", group, "Widget");
    fixture.expect_events(&["widgets: not served"]).await?;

    fixture.cluster.install(&[widgets(group, &["v1"])?]).await?;
    fixture.expect_widgets("v1", &[]).await?;
    fixture.create_widget(group, "a").await?;
    let (applied, deleted) = (
        format!("widgets: {}/a applied", fixture.namespace),
        format!("widgets: {}/a deleted", fixture.namespace),
    );
    fixture.expect_events(&[&applied]).await?;

    fixture.crds().delete(&format!("widgets.{group}"), &DeleteParams::default()).await?;
    // The API server may report the deletion of the object before.
    let mut event = fixture.next_event().await?;
    if event == deleted {
        event = fixture.next_event().await?;
    }
    assert_eq!(event, "widgets: not served");

    eventually(SOON, "the CRD is deleted", async || {
        Ok(fixture.crds().get_opt(&format!("widgets.{group}")).await?.is_none())
    })
    .await?;
    fixture.cluster.install(&[widgets(group, &["v1"])?]).await?;
    fixture.expect_widgets("v1", &[]).await?;
    fixture.create_widget(group, "b").await?;
    let applied = format!("widgets: {}/b applied", fixture.namespace);
    fixture.expect_events(&[&applied]).await
}

#[tokio::test]
async fn a_preferred_version_leads_to_a_relist() -> Result<()> {
    let group = "grows.example.com";
    let mut fixture = ReaderFixture::new("discovery").await?;
    fixture.cluster.install(&[widgets(group, &["v1"])?]).await?;
    fixture.create_widget(group, "a").await?;
    fixture.watch("widgets", group, "Widget");
    // The first discovery may have come before the CRD.
    let first = fixture.next_event().await?;
    if first == "widgets: not served" {
        fixture.expect_widgets("v1", &["a"]).await?;
    } else {
        assert_eq!(first, "widgets: served as v1/widgets");
        let applied = format!("widgets: {}/a applied", fixture.namespace);
        fixture.expect_events(&["widgets: listing", &applied, "widgets: listed"]).await?;
    }
    fixture.cluster.install(&[widgets(group, &["v1", "v2"])?]).await?;
    fixture.expect_served("v2").await?;
    fixture.expect_widget_list(&["a"]).await
}

#[tokio::test]
async fn another_version_is_reported_even_if_it_is_not_preferred() -> Result<()> {
    let group = "worse.example.com";
    let mut fixture = ReaderFixture::new("discovery").await?;
    fixture.watch("widgets", group, "Widget");
    fixture.expect_events(&["widgets: not served"]).await?;
    fixture.cluster.install(&[widgets(group, &["v1"])?]).await?;
    fixture.expect_widgets("v1", &[]).await?;
    fixture.cluster.install(&[widgets(group, &["v1", "v1beta1"])?]).await?;
    let versions = || {
        fixture
            .reader
            .rest_mapper()
            .served(&GroupKind::new(group, "Widget"))
            .map(|served| served.versions.len())
    };
    eventually(SOON, "two versions are served", async || Ok(versions() == Some(2))).await?;
    fixture.expect_served("v1").await
}

#[tokio::test]
async fn new_kinds_are_found_without_permission_to_watch_crds() -> Result<()> {
    let group = "quiet.example.com";
    let cluster = shared::cluster().await?;
    let mut fixture =
        ReaderFixture::for_user(cluster, &cluster.user("reader-of-nothing")?, "discovery", |_| {}).await?;
    fixture.watch("widgets", group, "Widget");
    fixture.expect_events(&["widgets: not served"]).await?;
    cluster.install(&[widgets(group, &["v1"])?]).await?;
    fixture.expect_events(&["widgets: served as v1/widgets", "widgets: forbidden: widgets"]).await
}

async fn served(rest_mapper: &RestMapper, group: &str, kind: &str) -> Result<ServedResource> {
    let kind = GroupKind::new(group, kind);
    eventually(SOON, "the kind is known", async || Ok(rest_mapper.served(&kind).is_some())).await?;
    rest_mapper.served(&kind).context("it is known")
}

#[tokio::test]
async fn the_rest_mapper_maps_kinds_to_resources() -> Result<()> {
    let fixture = ReaderFixture::new("discovery").await?;
    let rest_mapper = fixture.reader.rest_mapper();
    let of = |plural: &str, namespaced, has_status| ServedResource {
        version: "v1".into(),
        versions: ["v1".into()].into(),
        plural: plural.into(),
        namespaced,
        has_status,
    };
    assert_eq!(served(rest_mapper, "apps", "Deployment").await?, of("deployments", true, true));
    assert_eq!(served(rest_mapper, "", "ConfigMap").await?, of("configmaps", true, false));
    assert_eq!(served(rest_mapper, "", "Namespace").await?, of("namespaces", false, true));
    assert_eq!(served(rest_mapper, "", "Pod").await?, of("pods", true, true), "not a subresource");
    assert_eq!(rest_mapper.served(&GroupKind::new("example.com", "Nothing")), None);
    Ok(())
}

#[tokio::test]
async fn discovery_works_without_aggregation() -> Result<()> {
    let kinds =
        [("", "Pod"), ("", "Namespace"), ("apps", "Deployment"), ("autoscaling", "HorizontalPodAutoscaler")];
    let fixture = ReaderFixture::new("discovery").await?;
    let mut expected = Vec::new();
    for (group, kind) in kinds {
        expected.push(served(fixture.reader.rest_mapper(), group, kind).await?);
    }
    assert_eq!(fixture.proxy.count(&Requests::all().path("/apis/apps/v1")), 0);

    // The first reader runs discovery whenever a CRD changes; it must not meet these faults.
    let proxy = FaultProxy::before(fixture.cluster).await?;
    let not_acceptable = Fault::Answer { status: StatusCode::NOT_ACCEPTABLE, retry_after: None };
    let (core, named) = (Requests::all().path("/api").times(1), Requests::all().path("/apis").times(1));
    let _faults = (proxy.inject(core, not_acceptable), proxy.inject(named, not_acceptable));
    let client = fixture.cluster.admin().via(proxy.address()).client().await?;
    let (sender, _events) = tokio::sync::mpsc::channel(1);
    let settings =
        bellwether_kube_io::read::ReaderSettings { discovery_interval: SOON * 10, ..super::quick() };
    let reader = bellwether_kube_io::read::Reader::<u8>::start(client, settings, sender);
    let mut found = Vec::new();
    for (group, kind) in kinds {
        found.push(served(reader.rest_mapper(), group, kind).await?);
    }
    assert_eq!(found, expected);
    assert!(proxy.count(&Requests::all().path("/apis/apps/v1")) > 0);
    Ok(())
}
