//! Probes: `/readyz/applications/NAMESPACE/NAME`, `/readyz/rollups/NAME` and `--readiness-rollup`.

use anyhow::Result;
use bellwether_testkit::{Cluster, Fault, FaultProxy, Requests, Verb, eventually, rule};
use serde_json::{Value, json};

use super::{
    Controller, Story, TIMEOUT, application, condition, config, operator_conditions, rollup,
    shared_controller, widgets,
};

/// Available, Progressing and Degraded of a healthy, idle component.
const HEALTHY: [&str; 3] = ["True", "False", "False"];

/// Whether the conditions of a probe equal those of the published status.
fn agrees(said: &Value, status: &Value) -> bool {
    let conditions = said["conditions"].as_array().into_iter().flatten();
    conditions.clone().next().is_some()
        && conditions.clone().all(|said| {
            let written = condition(status, said["type"].as_str().unwrap_or_default());
            ["type", "status", "reason", "message"].iter().all(|field| said[field] == written[field])
        })
}

#[tokio::test]
async fn an_application_comes_is_ready_and_goes() -> Result<()> {
    let (cluster, controller) = shared_controller().await?;
    let story = Story::within(cluster, "probes").await?;
    let path = format!("/readyz/applications/{}/shop", story.namespace);
    let named = json!({"apiGroup": "bellwether.dev", "kind": "Application", "namespace": story.namespace,
        "name": "shop", "healthy": false,
        "message": format!("Application {}/shop not found", story.namespace)});
    assert_eq!(controller.probe(&path).await?, (404, named.clone()));

    story.apply(&application("shop", "shop", "  components: {mine: {kind: ConfigMap}}")).await?;
    let said = controller.probed(&path, 503, |said| said["state"] == "Missing").await?;
    assert_eq!((&said["healthy"], &said["conditions"][0]["type"]), (&json!(false), &json!("Ready")));
    assert_eq!(said["conditions"][0]["message"], "ConfigMap/mine: not found");
    assert!(said.get("meaning").is_none(), "{said:#}");

    story.apply(&config("mine", "shop", None)).await?;
    story.ready_is("shop", "ComponentsReady").await?;
    let said = controller.probed(&path, 200, |_| true).await?;
    assert_eq!((&said["healthy"], &said["state"]), (&json!(true), &json!("Ready")));
    let status = story.get("application/shop").await?["status"].take();
    assert!(agrees(&said, &status), "{said:#} and {status:#}");
    assert_eq!(said["since"], condition(&status, "Ready")["lastTransitionTime"]);

    story.kubectl("delete configmap mine").await?;
    controller.probed(&path, 503, |said| said["state"] == "Missing").await?;
    story.kubectl("delete application shop").await?;
    assert_eq!(controller.probed(&path, 404, |_| true).await?, named);
    Ok(())
}

/// A Rollup has a path of its own, and with `--readiness-rollup` it also decides `/readyz`.
#[tokio::test]
async fn a_rollup_is_probed_and_may_speak_for_all() -> Result<()> {
    let cluster = Cluster::builder().name("probes-rollup").start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let story = Story::within(&cluster, "probes").await?;
    let group = "shop.example.com";
    story.apply(&widgets(group, "status: {}")).await?;
    story.kubectl(&format!("wait --for=condition=Established crd/widgets.{group} --timeout=5m")).await?;
    let alone = Controller::start(cluster.admin(), &[]).await?;
    let speaks = Controller::launch(cluster.admin(), &["--readiness-rollup", "all"])?;
    let path = "/readyz/rollups/all";

    let absent = json!({"apiGroup": "bellwether.dev", "kind": "Rollup", "name": "all", "healthy": false,
        "message": "Rollup all not found"});
    assert_eq!(alone.probe(path).await?, (404, absent.clone()));
    let is_absent = |said: &Value| *said == absent;
    speaks.probed("/readyz", 503, is_absent).await?;
    speaks.probed(path, 404, is_absent).await?;

    // The Rollup exists before its components.
    story.apply(&rollup("all", group, &story.namespace, &["one", "two"], false)).await?;
    for (controller, path) in [(&alone, path), (&speaks, path), (&speaks, "/readyz")] {
        let said = controller.probed(path, 503, |said| said["state"] == "Missing").await?;
        assert_eq!(condition(&said, "Available")["status"], "False", "{said:#}");
    }
    for name in ["one", "two"] {
        let widget = format!("apiVersion: {group}/v1\nkind: Widget\nmetadata: {{name: {name}}}\n");
        story.apply(&widget).await?;
        story.report(&format!("widget/{name}"), json!({"conditions": operator_conditions(HEALTHY)})).await?;
    }
    let said = alone.probed(path, 200, |_| true).await?;
    assert_eq!(said["meaning"], "Component is 100% healthy and the Operator is idle");
    assert_eq!((&said["healthy"], &said["state"]), (&json!(true), &json!("Ready")));
    speaks.probed("/readyz", 200, |_| true).await?;
    let mut status = Value::Null;
    eventually(TIMEOUT, "it is written", async || {
        status = story.get("rollup/all").await?["status"].take();
        Ok(status["health"] == "Healthy")
    })
    .await?;
    let said = alone.probed(path, 200, |said| agrees(said, &status)).await?;
    assert_eq!(said["meaning"], status["meaning"]);

    // One component reports Progressing=True: the probe responds 503.
    let at_work = json!({"conditions": operator_conditions(["True", "True", "False"])});
    story.report("widget/two", at_work).await?;
    let said = speaks.probed("/readyz", 503, |said| said["state"] == "InProgress").await?;
    assert_eq!(said["meaning"], "Component is functional but, either upgrading or healing");
    alone.probed(path, 503, |other| other["conditions"] == said["conditions"]).await?;
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
    let story = Story::within(&cluster, "probes").await?;
    story.apply(&application("shop", "shop", "")).await?;
    story.apply(&config("mine", "shop", None)).await?;
    let proxy = FaultProxy::before(&cluster).await?;
    let silence =
        |resource| proxy.inject(Requests::of(Verb::List, resource), Fault::HalfOpen { after_lines: 0 });
    let (applications, configs) = (silence("applications.bellwether.dev"), silence("configmaps"));
    let access = cluster.admin().via(proxy.address());
    let controller = Controller::launch(&access, &["--leader-elect=false"])?;
    let path = format!("/readyz/applications/{}/shop", story.namespace);
    let not_listed = |kind: &str| format!("initial list of {kind} not complete");

    // Before Applications are listed, it is unknown whether this one exists.
    let of_applications = not_listed("Application.bellwether.dev");
    let said = controller.probed(&path, 503, |said| said["message"] == *of_applications).await?;
    assert_eq!(said["healthy"], false);
    assert_eq!(controller.get("/readyz").await?.0, 503);
    applications.lift();
    proxy.cut_all().await;
    controller.probed(&path, 503, |said| said["message"] == *not_listed("ConfigMap")).await?;
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
    let story = Story::within(&cluster, "probes").await?;
    story.apply(&application("shop", "shop", "")).await?;
    story.apply(&config("mine", "shop", None)).await?;
    let user = cluster.user("controller")?;
    let read = ["get", "list", "watch"];
    let _rules = cluster.grant(&user, None, vec![rule(&read, "bellwether.dev", &["healthrules"])]).await?;
    let controller = Controller::start(&user, &["--leader-elect=false"]).await?;
    let path = format!("/readyz/applications/{}/shop", story.namespace);
    let (code, said) = controller.probe(&path).await?;
    assert_eq!(code, 503, "{said}");
    assert_eq!(
        said["message"],
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
    let (here, there) = (Story::within(&cluster, "here").await?, Story::within(&cluster, "there").await?);
    for story in [&here, &there] {
        story.apply(&application("shop", "shop", "")).await?;
        story.apply(&config("mine", "shop", None)).await?;
    }
    let arguments = ["--leader-elect=false", "--watch-namespace", &here.namespace];
    let controller = Controller::start(cluster.admin(), &arguments).await?;
    let path = |story: &Story| format!("/readyz/applications/{}/shop", story.namespace);
    controller.probed(&path(&here), 200, |_| true).await?;
    let (code, said) = controller.probe(&path(&there)).await?;
    assert_eq!(code, 404);
    let sentence = format!(
        "Application {}/shop is not managed: this controller runs with --watch-namespace {}",
        there.namespace, here.namespace
    );
    assert_eq!(said["message"], *sentence);
    let (code, said) = controller.probe("/readyz/rollups/all").await?;
    let sentence =
        format!("Rollup all is not managed: this controller runs with --watch-namespace {}", here.namespace);
    assert_eq!((code, &said["message"]), (404, &json!(sentence)));
    Ok(())
}
