//! Probes: `/readyz/applications/NAMESPACE/NAME`, `/readyz/rollups/NAME` and `--readiness-rollup`.

use anyhow::Result;
use bellwether_testkit::{Cluster, Fault, FaultProxy, Requests, Verb, eventually, rule};
use serde_json::{Value, json};

use super::{
    Controller, ControllerFixture, TIMEOUT, application, condition, config, operator_conditions, rollup,
    shared_controller, widgets,
};

/// Available, Progressing and Degraded of a healthy, idle component.
const HEALTHY: [&str; 3] = ["True", "False", "False"];

/// Whether the conditions of a probe equal those of the published status.
fn agrees(body: &Value, status: &Value) -> bool {
    let conditions = body["conditions"].as_array().into_iter().flatten();
    conditions.clone().next().is_some()
        && conditions.clone().all(|probed| {
            let written = condition(status, probed["type"].as_str().unwrap_or_default());
            ["type", "status", "reason", "message"].iter().all(|field| probed[field] == written[field])
        })
}

#[tokio::test]
async fn an_application_comes_is_ready_and_goes() -> Result<()> {
    let (cluster, controller) = shared_controller().await?;
    let fixture = ControllerFixture::in_cluster(cluster, "probes").await?;
    let path = format!("/readyz/applications/{}/shop", fixture.namespace);
    let named = json!({"apiGroup": "bellwether.dev", "kind": "Application", "namespace": fixture.namespace,
        "name": "shop", "healthy": false,
        "message": format!("Application {}/shop not found", fixture.namespace)});
    assert_eq!(controller.probe(&path).await?, (404, named.clone()));

    fixture.apply(&application("shop", "shop", "  components: {mine: {kind: ConfigMap}}")).await?;
    let body = controller.probed(&path, 503, |body| body["state"] == "Missing").await?;
    assert_eq!((&body["healthy"], &body["conditions"][0]["type"]), (&json!(false), &json!("Ready")));
    assert_eq!(body["conditions"][0]["message"], "ConfigMap/mine: not found");
    assert!(body.get("meaning").is_none(), "{body:#}");

    fixture.apply(&config("mine", "shop", None)).await?;
    fixture.ready_is("shop", "ComponentsReady").await?;
    let body = controller.probed(&path, 200, |_| true).await?;
    assert_eq!((&body["healthy"], &body["state"]), (&json!(true), &json!("Ready")));
    let status = fixture.get("application/shop").await?["status"].take();
    assert!(agrees(&body, &status), "{body:#} and {status:#}");
    assert_eq!(body["since"], condition(&status, "Ready")["lastTransitionTime"]);

    fixture.kubectl("delete configmap mine").await?;
    controller.probed(&path, 503, |body| body["state"] == "Missing").await?;
    fixture.kubectl("delete application shop").await?;
    assert_eq!(controller.probed(&path, 404, |_| true).await?, named);
    Ok(())
}

/// A Rollup has a path of its own, and with `--readiness-rollup` it also decides `/readyz`.
#[tokio::test]
async fn a_rollup_is_probed_and_may_speak_for_all() -> Result<()> {
    let cluster = Cluster::builder().name("probes-rollup").start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let fixture = ControllerFixture::in_cluster(&cluster, "probes").await?;
    let group = "shop.example.com";
    fixture.apply(&widgets(group, "status: {}")).await?;
    fixture.kubectl(&format!("wait --for=condition=Established crd/widgets.{group} --timeout=5m")).await?;
    let alone = Controller::start(cluster.admin(), &[]).await?;
    let speaks = Controller::launch(cluster.admin(), &["--readiness-rollup", "all"])?;
    let path = "/readyz/rollups/all";

    let absent = json!({"apiGroup": "bellwether.dev", "kind": "Rollup", "name": "all", "healthy": false,
        "message": "Rollup all not found"});
    assert_eq!(alone.probe(path).await?, (404, absent.clone()));
    let is_absent = |body: &Value| *body == absent;
    speaks.probed("/readyz", 503, is_absent).await?;
    speaks.probed(path, 404, is_absent).await?;

    // The Rollup exists before its components.
    fixture.apply(&rollup("all", group, &fixture.namespace, &["one", "two"], false)).await?;
    for (controller, path) in [(&alone, path), (&speaks, path), (&speaks, "/readyz")] {
        let body = controller.probed(path, 503, |body| body["state"] == "Missing").await?;
        assert_eq!(condition(&body, "Available")["status"], "False", "{body:#}");
    }
    for name in ["one", "two"] {
        let widget = format!("apiVersion: {group}/v1\nkind: Widget\nmetadata: {{name: {name}}}\n");
        fixture.apply(&widget).await?;
        fixture
            .report(&format!("widget/{name}"), json!({"conditions": operator_conditions(HEALTHY)}))
            .await?;
    }
    let body = alone.probed(path, 200, |_| true).await?;
    assert_eq!(body["meaning"], "Component is 100% healthy and the Operator is idle");
    assert_eq!((&body["healthy"], &body["state"]), (&json!(true), &json!("Ready")));
    speaks.probed("/readyz", 200, |_| true).await?;
    let mut status = Value::Null;
    eventually(TIMEOUT, "it is written", async || {
        status = fixture.get("rollup/all").await?["status"].take();
        Ok(status["health"] == "Healthy")
    })
    .await?;
    let body = alone.probed(path, 200, |body| agrees(body, &status)).await?;
    assert_eq!(body["meaning"], status["meaning"]);

    // One component reports Progressing=True: the probe responds 503.
    let at_work = json!({"conditions": operator_conditions(["True", "True", "False"])});
    fixture.report("widget/two", at_work).await?;
    let body = speaks.probed("/readyz", 503, |body| body["state"] == "InProgress").await?;
    assert_eq!(body["meaning"], "Component is functional but, either upgrading or healing");
    alone.probed(path, 503, |other| other["conditions"] == body["conditions"]).await?;
    // `/readyz` without `--readiness-rollup`, and `/healthz`, are about the process only.
    assert_eq!(alone.get("/readyz").await?, (200, "ok\n".to_owned()));
    assert_eq!(speaks.get("/healthz").await?, (200, "ok\n".to_owned()));
    Ok(())
}

/// Before the first list, the probe responds neither 200 nor 404.
#[tokio::test]
async fn what_is_not_known_yet_is_waited_for() -> Result<()> {
    let cluster = Cluster::builder().name("probes").start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let fixture = ControllerFixture::in_cluster(&cluster, "probes").await?;
    fixture.apply(&application("shop", "shop", "")).await?;
    fixture.apply(&config("mine", "shop", None)).await?;
    let proxy = FaultProxy::before(&cluster).await?;
    let silence =
        |resource| proxy.inject(Requests::of(Verb::List, resource), Fault::HalfOpen { after_lines: 0 });
    let (applications, configs) = (silence("applications.bellwether.dev"), silence("configmaps"));
    let access = cluster.admin().via(proxy.address());
    let controller = Controller::launch(&access, &["--leader-elect=false"])?;
    let path = format!("/readyz/applications/{}/shop", fixture.namespace);
    let not_listed = |kind: &str| format!("initial list of {kind} not complete");

    // Before Applications are listed, it is unknown whether this one exists.
    let of_applications = not_listed("Application.bellwether.dev");
    let body = controller.probed(&path, 503, |body| body["message"] == *of_applications).await?;
    assert_eq!(body["healthy"], false);
    assert_eq!(controller.get("/readyz").await?.0, 503);
    applications.lift();
    proxy.cut_all().await;
    controller.probed(&path, 503, |body| body["message"] == *not_listed("ConfigMap")).await?;
    configs.lift();
    proxy.cut_all().await;
    let before = controller.probed(&path, 200, |_| true).await?;
    assert_eq!(before["state"], "Ready");
    Ok(())
}

/// A 403 on the list of Applications: the probe responds 503 and not 404, because the Application may exist.
#[tokio::test]
async fn what_may_not_be_read_may_be_there() -> Result<()> {
    let cluster = Cluster::builder().name("probes-rights").start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let fixture = ControllerFixture::in_cluster(&cluster, "probes").await?;
    fixture.apply(&application("shop", "shop", "")).await?;
    fixture.apply(&config("mine", "shop", None)).await?;
    let user = cluster.user("controller")?;
    let read = ["get", "list", "watch"];
    let _rules = cluster.grant(&user, None, vec![rule(&read, "bellwether.dev", &["healthrules"])]).await?;
    let controller = Controller::start(&user, &["--leader-elect=false"]).await?;
    let path = format!("/readyz/applications/{}/shop", fixture.namespace);
    let (code, body) = controller.probe(&path).await?;
    assert_eq!(code, 503, "{body}");
    assert_eq!(
        body["message"],
        "cannot list applications: forbidden. Grant Bellwether the verbs get, list and watch on applications in the \
         API group bellwether.dev"
    );
    Ok(())
}

/// A group in another namespace than that of `--watch-namespace` is not managed. The probe does not say that
/// it does not exist.
#[tokio::test]
async fn of_other_namespaces_nothing_is_denied() -> Result<()> {
    let cluster = Cluster::builder().name("probes-namespace").start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let (here, there) = (
        ControllerFixture::in_cluster(&cluster, "here").await?,
        ControllerFixture::in_cluster(&cluster, "there").await?,
    );
    for fixture in [&here, &there] {
        fixture.apply(&application("shop", "shop", "")).await?;
        fixture.apply(&config("mine", "shop", None)).await?;
    }
    let arguments = ["--leader-elect=false", "--watch-namespace", &here.namespace];
    let controller = Controller::start(cluster.admin(), &arguments).await?;
    let path = |fixture: &ControllerFixture| format!("/readyz/applications/{}/shop", fixture.namespace);
    controller.probed(&path(&here), 200, |_| true).await?;
    let (code, body) = controller.probe(&path(&there)).await?;
    assert_eq!(code, 404);
    let sentence = format!(
        "Application {}/shop is not managed: this controller runs with --watch-namespace {}",
        there.namespace, here.namespace
    );
    assert_eq!(body["message"], *sentence);
    let (code, body) = controller.probe("/readyz/rollups/all").await?;
    let sentence =
        format!("Rollup all is not managed: this controller runs with --watch-namespace {}", here.namespace);
    assert_eq!((code, &body["message"]), (404, &json!(sentence)));
    Ok(())
}
