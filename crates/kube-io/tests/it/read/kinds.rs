//! Kinds that come and go.

use anyhow::{Context as _, Result, ensure};
use bellwether_engine::{GroupKind, Served};
use bellwether_kube_io::read::RestMapper;
use bellwether_testkit::{Fault, FaultProxy, Requests, StatusCode, eventually, shared};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, PostParams},
};
use serde_json::json;

use super::{SOON, Stage};

/// Widgets of a group, in these versions.
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

impl Stage {
    fn definitions(&self) -> Api<CustomResourceDefinition> {
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

    /// The next news is of widgets: what they are served as, and a list of these.
    async fn tells_widgets(&mut self, version: &str, names: &[&str]) -> Result<()> {
        self.tells(&[&format!("widgets: served as {version}/widgets")]).await?;
        self.tells_all_widgets(names).await
    }

    /// They are served in another way, because their definition was changed. That ends watches, so that they may be listed
    /// once more before.
    async fn tells_at_last(&mut self, version: &str) -> Result<()> {
        let expected = format!("widgets: served as {version}/widgets");
        loop {
            let told = self.told().await.with_context(|| format!("nothing came instead of: {expected}"))?;
            if told == expected {
                return Ok(());
            }
            let is_list = ["listing", "as it is", "listed"].iter().any(|it| told.ends_with(it));
            ensure!(is_list, "told: {told}; expected: {expected}");
        }
    }

    async fn tells_all_widgets(&mut self, names: &[&str]) -> Result<()> {
        self.tells(&["widgets: listing"]).await?;
        for name in names {
            let expected = format!("widgets: {}/{name} as it is", self.namespace);
            self.tells(&[&expected]).await?;
        }
        self.tells(&["widgets: listed"]).await
    }
}

#[tokio::test]
async fn a_kind_may_come_and_go_and_come_back() -> Result<()> {
    let group = "comes.example.com";
    let mut stage = Stage::set("kinds").await?;
    stage.follow("widgets", group, "Widget");
    stage.tells(&["widgets: not served"]).await?;

    stage.cluster.install(&[widgets(group, &["v1"])?]).await?;
    stage.tells_widgets("v1", &[]).await?;
    stage.create_widget(group, "a").await?;
    let (there, gone) =
        (format!("widgets: {}/a as it is", stage.namespace), format!("widgets: {}/a gone", stage.namespace));
    stage.tells(&[&there]).await?;

    stage.definitions().delete(&format!("widgets.{group}"), &DeleteParams::default()).await?;
    // Whether the object is told to be gone before its kind is, is up to the API server.
    let mut told = stage.told().await?;
    if told == gone {
        told = stage.told().await?;
    }
    assert_eq!(told, "widgets: not served");

    eventually(SOON, "the definition is gone", async || {
        Ok(stage.definitions().get_opt(&format!("widgets.{group}")).await?.is_none())
    })
    .await?;
    stage.cluster.install(&[widgets(group, &["v1"])?]).await?;
    stage.tells_widgets("v1", &[]).await?;
    stage.create_widget(group, "b").await?;
    let there = format!("widgets: {}/b as it is", stage.namespace);
    stage.tells(&[&there]).await
}

#[tokio::test]
async fn a_better_version_is_followed() -> Result<()> {
    let group = "grows.example.com";
    let mut stage = Stage::set("kinds").await?;
    stage.cluster.install(&[widgets(group, &["v1"])?]).await?;
    stage.create_widget(group, "a").await?;
    stage.follow("widgets", group, "Widget");
    // The kind may have come after the first look.
    let first = stage.told().await?;
    if first == "widgets: not served" {
        stage.tells_widgets("v1", &["a"]).await?;
    } else {
        assert_eq!(first, "widgets: served as v1/widgets");
        let there = format!("widgets: {}/a as it is", stage.namespace);
        stage.tells(&["widgets: listing", &there, "widgets: listed"]).await?;
    }
    stage.cluster.install(&[widgets(group, &["v1", "v2"])?]).await?;
    stage.tells_at_last("v2").await?;
    stage.tells_all_widgets(&["a"]).await
}

#[tokio::test]
async fn another_version_is_told_even_if_it_is_not_followed() -> Result<()> {
    let group = "worse.example.com";
    let mut stage = Stage::set("kinds").await?;
    stage.follow("widgets", group, "Widget");
    stage.tells(&["widgets: not served"]).await?;
    stage.cluster.install(&[widgets(group, &["v1"])?]).await?;
    stage.tells_widgets("v1", &[]).await?;
    stage.cluster.install(&[widgets(group, &["v1", "v1beta1"])?]).await?;
    let versions = || {
        stage
            .reader
            .rest_mapper()
            .served(&GroupKind::new(group, "Widget"))
            .map(|served| served.versions.len())
    };
    eventually(SOON, "there are two versions", async || Ok(versions() == Some(2))).await?;
    stage.tells_at_last("v1").await
}

#[tokio::test]
async fn new_kinds_are_found_without_the_right_to_watch_definitions() -> Result<()> {
    let group = "quiet.example.com";
    let cluster = shared::cluster().await?;
    let mut stage = Stage::set_for(cluster, &cluster.user("reader-of-nothing")?, "kinds", |_| {}).await?;
    stage.follow("widgets", group, "Widget");
    stage.tells(&["widgets: not served"]).await?;
    cluster.install(&[widgets(group, &["v1"])?]).await?;
    stage.tells(&["widgets: served as v1/widgets", "widgets: forbidden: widgets"]).await
}

async fn served(rest_mapper: &RestMapper, group: &str, kind: &str) -> Result<Served> {
    let kind = GroupKind::new(group, kind);
    eventually(SOON, "the kind is known", async || Ok(rest_mapper.served(&kind).is_some())).await?;
    rest_mapper.served(&kind).context("it is known")
}

#[tokio::test]
async fn the_inventory_says_how_kinds_are_served() -> Result<()> {
    let stage = Stage::set("kinds").await?;
    let rest_mapper = stage.reader.rest_mapper();
    let of = |plural: &str, namespaced, has_status| Served {
        version: "v1".into(),
        versions: ["v1".into()].into(),
        plural: plural.into(),
        namespaced,
        has_status,
    };
    assert_eq!(served(rest_mapper, "apps", "Deployment").await?, of("deployments", true, true));
    assert_eq!(served(rest_mapper, "", "ConfigMap").await?, of("configmaps", true, false));
    assert_eq!(served(rest_mapper, "", "Namespace").await?, of("namespaces", false, true));
    assert_eq!(served(rest_mapper, "", "Pod").await?, of("pods", true, true), "nor is it a part of a node");
    assert_eq!(rest_mapper.served(&GroupKind::new("example.com", "Nothing")), None);
    Ok(())
}

#[tokio::test]
async fn a_server_that_cannot_tell_everything_at_once_is_asked_bit_by_bit() -> Result<()> {
    let kinds =
        [("", "Pod"), ("", "Namespace"), ("apps", "Deployment"), ("autoscaling", "HorizontalPodAutoscaler")];
    let stage = Stage::set("kinds").await?;
    let mut expected = Vec::new();
    for (group, kind) in kinds {
        expected.push(served(stage.reader.rest_mapper(), group, kind).await?);
    }
    assert_eq!(stage.proxy.count(&Requests::all().path("/apis/apps/v1")), 0);

    // The first reader looks again whenever a CustomResourceDefinition changes; it must not meet these faults.
    let proxy = FaultProxy::before(stage.cluster).await?;
    let cannot = Fault::Answer { status: StatusCode::NOT_ACCEPTABLE, retry_after: None };
    let (core, named) = (Requests::all().path("/api").times(1), Requests::all().path("/apis").times(1));
    let _faults = (proxy.inject(core, cannot), proxy.inject(named, cannot));
    let client = stage.cluster.admin().via(proxy.address()).client().await?;
    let (tell, _news) = tokio::sync::mpsc::channel(1);
    let settings = bellwether_kube_io::read::Settings { looks_every: SOON * 10, ..super::quick() };
    let reader = bellwether_kube_io::read::Reader::<u8>::start(client, settings, tell);
    let mut found = Vec::new();
    for (group, kind) in kinds {
        found.push(served(reader.rest_mapper(), group, kind).await?);
    }
    assert_eq!(found, expected);
    assert!(proxy.count(&Requests::all().path("/apis/apps/v1")) > 0);
    Ok(())
}
