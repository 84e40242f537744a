//! Kinds: CRDs installed and deleted, 403 for one kind, cluster-scoped kinds, versions not served.

use std::time::Instant;

use anyhow::Result;
use bellwether_testkit::{Cluster, FaultProxy, eventually, rule};
use serde_json::{Value, json};

use super::{Controller, ControllerFixture, TIMEOUT, application, condition, config, text, widgets};

fn widget(group: &str) -> String {
    format!("apiVersion: {group}/v1\nkind: Widget\nmetadata: {{name: one, labels: {{app: shop}}}}\n")
}

/// Garbage Collection: the controller discovers a kind when its CRD is installed.
#[tokio::test]
async fn a_kind_that_comes_goes_and_comes_again() -> Result<()> {
    let fixture = ControllerFixture::new("crd").await?;
    let group = format!("{}.example.com", fixture.namespace);
    let more = format!("  components: {{one: {{group: {group}, kind: Widget}}}}");
    fixture.apply(&config("settings", "shop", None)).await?;
    fixture.apply(&application("shop", "shop", &more)).await?;
    let not_served = |status: &Value| {
        condition(status, "Resolved")["reason"] == "NotServed"
            && condition(status, "Ready")["status"] == "False"
    };
    let status = fixture.status("shop", "the kind is not served", not_served).await?;
    let message = text(&condition(&status, "Resolved")["message"]);
    assert_eq!(
        message,
        format!(
            "Widget.{group}: kind not served by the cluster; check the group and kind, and that the CRD is installed"
        )
    );
    assert_eq!(status["objectCounts"]["ready"], 1, "the rest goes on");

    for _ in 0..2 {
        fixture.apply(&widgets(&group, "status: {}")).await?;
        let missing = |status: &Value| condition(status, "Resolved")["status"] == "True";
        fixture.status("shop", "the kind is served", missing).await?;
        fixture.apply(&widget(&group)).await?;
        fixture.status("shop", "the widget is there", |status| status["installed"] == json!(["one"])).await?;
        let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        fixture.report(&format!("widget.{group}/one"), ready).await?;
        fixture.ready_is("shop", "ComponentsReady").await?;
        fixture.kubectl(&format!("delete crd widgets.{group}")).await?;
        fixture.status("shop", "the kind is gone", not_served).await?;
    }
    Ok(())
}

/// Members live in the namespace of their Application, so cluster-scoped kinds cannot be members.
#[tokio::test]
async fn a_kind_without_namespaces_is_refused() -> Result<()> {
    let fixture = ControllerFixture::new("scope").await?;
    fixture.apply(&config("settings", "shop", None)).await?;
    let manifest =
        application("shop", "shop", "").replace("[{kind: ConfigMap}]", "[{kind: ConfigMap}, {kind: Node}]");
    fixture.apply(&manifest).await?;
    let refused = |status: &Value| condition(status, "Resolved")["reason"] == "ClusterScoped";
    let status = fixture.status("shop", "Nodes are refused", refused).await?;
    assert_eq!(condition(&status, "Ready")["status"], "Unknown");
    assert_eq!(status["objectCounts"]["total"], 1);
    Ok(())
}

#[tokio::test]
async fn a_version_that_is_not_served_is_reported() -> Result<()> {
    let fixture = ControllerFixture::new("version").await?;
    let more = "  components: {web: {group: apps, version: v1beta1, kind: Deployment}}";
    fixture.apply(&application("shop", "shop", more)).await?;
    let refused = |status: &Value| condition(status, "Resolved")["reason"] == "VersionNotServed";
    let status = fixture.status("shop", "there is no such version", refused).await?;
    let message = text(&condition(&status, "Resolved")["message"]);
    assert_eq!(message, "Deployment.apps: version v1beta1 not served, only v1");
    Ok(())
}

/// A 403 for one kind affects only that kind, and the condition names the missing permission. After the
/// grant, the Application recovers.
#[tokio::test]
async fn rights_for_one_kind() -> Result<()> {
    let cluster = Cluster::builder().name("rights").start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let user = cluster.user("controller")?;
    let read = ["get", "list", "watch"];
    let base = vec![
        rule(&["*"], "bellwether.dev", &["*"]),
        rule(&["*"], "events.k8s.io", &["events"]),
        rule(&read, "apiextensions.k8s.io", &["customresourcedefinitions"]),
        rule(&["get", "list", "watch", "patch"], "", &["configmaps"]),
    ];
    let _base = cluster.grant(&user, None, base).await?;
    let fixture = ControllerFixture::in_cluster(&cluster, "rights").await?;
    let manifest = application("shop", "shop", "")
        .replace("[{kind: ConfigMap}]", "[{kind: ConfigMap}, {kind: Service}]");
    fixture.apply(&config("settings", "shop", Some("shop"))).await?;
    fixture.apply(&manifest).await?;
    let proxy = FaultProxy::before(&cluster).await?;
    let _controller = Controller::start(&user.via(proxy.address()), &["--leader-elect=false"]).await?;

    let forbidden = |status: &Value| condition(status, "Resolved")["reason"] == "Forbidden";
    let status = fixture.status("shop", "Services may not be read", forbidden).await?;
    let message = text(&condition(&status, "Resolved")["message"]);
    assert_eq!(message, "Service: forbidden; grant get, list and watch on services");
    assert_eq!(condition(&status, "Ready")["reason"], "ComponentsUnknown");
    assert_eq!(status["objectCounts"]["ready"], 1);
    fixture.owners_are("configmap/settings", &["shop"]).await?;

    let services = || vec![rule(&read, "", &["services"])];
    let grant = cluster.grant(&user, None, services()).await?;
    fixture.ready_is("shop", "ComponentsReady").await?;
    fixture.kubectl("create service clusterip web --tcp=80").await?;
    fixture.kubectl("label service web app=shop --overwrite").await?;
    fixture.status("shop", "the Service is ready", |status| status["componentsReady"] == "2/2").await?;

    // The API server checks RBAC when a watch starts. After the 403, the status has the last known state.
    grant.revoke().await?;
    let mut cut: Option<Instant> = None;
    eventually(TIMEOUT, "the right is gone", async || {
        // The controller takes some seconds to report the 403. Another cut must not interrupt it.
        if cut.is_none_or(|cut| cut.elapsed() > TIMEOUT / 4) {
            proxy.cut_all().await;
            cut = Some(Instant::now());
        }
        let status = fixture.get("application/shop").await?["status"].take();
        Ok(forbidden(&status) && status["objectCounts"]["unknown"] == 1)
    })
    .await?;
    let status = fixture.get("application/shop").await?["status"].take();
    let message = text(&status["objects"][0]["message"]);
    assert!(message.starts_with("forbidden; last seen Ready: "), "{message}");
    let _grant = cluster.grant(&user, None, services()).await?;
    fixture.ready_is("shop", "ComponentsReady").await.map(drop)
}

/// With `--watch-namespace`, a Role is enough: the controller works without cluster-scoped permissions, if it
/// may do without HealthRules.
#[tokio::test]
async fn a_role_is_enough_for_one_namespace() -> Result<()> {
    let cluster = Cluster::builder().name("role").start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let (here, elsewhere) = (
        ControllerFixture::in_cluster(&cluster, "here").await?,
        ControllerFixture::in_cluster(&cluster, "elsewhere").await?,
    );
    let user = cluster.user("controller")?;
    let rights = vec![
        rule(&["*"], "bellwether.dev", &["*"]),
        rule(&["get", "list", "watch", "patch"], "", &["configmaps"]),
        rule(&["get", "create", "update"], "coordination.k8s.io", &["leases"]),
    ];
    let _role = cluster.grant(&user, Some(&here.namespace), rights).await?;
    for fixture in [&here, &elsewhere] {
        fixture.apply(&application("shop", "shop", "")).await?;
        fixture.apply(&config("mine", "shop", Some("shop"))).await?;
    }
    let namespace = here.namespace.as_str();
    let arguments = ["--watch-namespace", namespace, "--namespace", namespace];
    let controller = Controller::start(&user, &arguments).await?;
    let unknown = |status: &Value| condition(status, "Ready")["reason"] == "ComponentsUnknown";
    let status = here.status("shop", "rules cannot be read", unknown).await?;
    let resolved = condition(&status, "Resolved");
    let message = resolved["message"].as_str().unwrap_or_default();
    assert_eq!(
        (&resolved["reason"], message),
        (
            &json!("RulesUnreadable"),
            "HealthRule.bellwether.dev: forbidden; grant get, list and watch on healthrules.bellwether.dev, or start \
             Bellwether with --without-health-rules"
        )
    );
    drop(controller);
    let arguments = [&arguments[..], &["--without-health-rules"]].concat();
    let _controller = Controller::start(&user, &arguments).await?;
    here.ready_is("shop", "ComponentsReady").await?;
    here.owners_are("configmap/mine", &["shop"]).await?;
    assert!(elsewhere.get("application/shop").await?["status"].is_null());
    Ok(())
}
