//! Every Event that the controller writes about a group, through install, rollout, failure and repair.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{Cluster, app_k8s_io};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Controller, ControllerFixture, TIMEOUT, condition, events, eventually, text};

/// The group is applied first, so that its component is missing at first.
const MANIFEST: [&str; 3] = [
    "
apiVersion: bellwether.dev/v1alpha1
kind: Application
metadata: {name: ours}
spec:
  selector: {matchLabels: {app: shop}}
  components: {web: {group: apps, kind: Deployment}}
",
    "
apiVersion: app.k8s.io/v1beta1
kind: Application
metadata: {name: theirs}
spec:
  selector: {matchLabels: {app: shop}}
  componentKinds: [{group: apps, kind: Deployment}]
",
    "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: shop}}
spec:
  replicas: 3
  selector: {matchLabels: {run: web}}
  template:
    metadata: {labels: {run: web}}
    spec: {containers: [{name: server, image: 'shop/web:1'}]}
",
];

const OURS: &str = "bellwether.dev/v1alpha1/ours";
const THEIRS: &str = "app.k8s.io/v1beta1/theirs";
/// Longer than the first ten seconds of a group.
const GRACE: SignedDuration = SignedDuration::from_secs(11);

/// In place of the controller of Deployments: the cluster has none, so that each step is seen alone.
async fn report(fixture: &ControllerFixture, generation: u8, updated: u8, failure: bool) -> Result<()> {
    let (status, reason) =
        if failure { ("False", "ProgressDeadlineExceeded") } else { ("True", "NewReplicaSetAvailable") };
    let condition =
        |type_: &str, status: &str, reason: &str| json!({"type": type_, "status": status, "reason": reason});
    let conditions = [
        condition("Available", "True", "MinimumReplicasAvailable"),
        condition("Progressing", status, reason),
    ];
    let status = json!({"observedGeneration": generation, "replicas": 3, "updatedReplicas": updated,
        "readyReplicas": 3, "availableReplicas": 3, "conditions": conditions});
    fixture.report("deployment/web", status).await
}

/// Waits until both Applications have the status of the condition Ready.
async fn ready_is(fixture: &ControllerFixture, status: &str) -> Result<()> {
    for application in ["applications.bellwether.dev/ours", "applications.app.k8s.io/theirs"] {
        eventually(TIMEOUT, &format!("{application}: Ready is {status}"), async || {
            let status_now = fixture.get(application).await?["status"].take();
            Ok(condition(&status_now, "Ready")["status"] == status)
        })
        .await?;
    }
    Ok(())
}

/// Waits until these are all Events of both Applications.
async fn are(fixture: &ControllerFixture, ours: &[&str], theirs: &[&str]) -> Result<()> {
    for (object, expected) in [(OURS, ours), (THEIRS, theirs)] {
        let mut last = Vec::new();
        eventually(TIMEOUT, &format!("the Events of {object}"), async || {
            last = events(&fixture.kubectl, object).await?;
            ensure!(last.len() <= expected.len(), "too many Events of {object}: {last:#?}");
            Ok(last == expected)
        })
        .await
        .with_context(|| format!("the last were {last:#?}, want {expected:#?}"))?;
    }
    Ok(())
}

/// Applies the manifest and lets the Deployment become ready. Returns false if that took so long that it is a
/// change by itself.
async fn install(fixture: &ControllerFixture) -> Result<bool> {
    for part in MANIFEST {
        fixture.apply(part).await?;
    }
    report(fixture, 1, 3, false).await?;
    ready_is(fixture, "True").await?;
    let ours = fixture.get("applications.bellwether.dev/ours").await?;
    let theirs = fixture.get("applications.app.k8s.io/theirs").await?;
    let times = [
        (&ours["status"]["lastEvent"]["time"], &ours),
        (&condition(&theirs["status"], "Ready")["lastTransitionTime"], &theirs),
    ];
    let mut is_early = true;
    for (time, object) in times {
        let created: Timestamp = text(&object["metadata"]["creationTimestamp"]).parse()?;
        let ready: Timestamp = text(time).parse()?;
        is_early &= ready.duration_since(created) < SignedDuration::from_secs(10);
        let age = Timestamp::now().duration_since(created);
        sleep(Duration::try_from(GRACE - age).unwrap_or_default()).await;
    }
    Ok(is_early)
}

#[tokio::test]
async fn from_install_to_repair() -> Result<()> {
    let cluster = Cluster::builder().name("events").start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    cluster.install(&[app_k8s_io()?]).await?;
    let controller = Controller::start(cluster.admin(), &["--leader-elect=false"]).await?;
    let mut attempts = 0..5;
    let fixture = loop {
        let attempt =
            attempts.next().context("the machine is too slow for the first ten seconds of a group")?;
        let fixture = ControllerFixture::in_cluster(&cluster, &format!("events-{attempt}")).await?;
        if install(&fixture).await? {
            break fixture;
        }
    };
    are(&fixture, &[], &[]).await?;

    // A rollout: the API server increments the generation, then the status follows.
    let image = json!([{"name": "server", "image": "shop/web:2"}]);
    fixture.patch("deployment/web", json!({"spec": {"template": {"spec": {"containers": image}}}})).await?;
    ready_is(&fixture, "False").await?;
    report(&fixture, 2, 1, false).await?;
    report(&fixture, 2, 3, false).await?;
    ready_is(&fixture, "True").await?;
    let mut ours = vec![
        "Normal InProgress Deployment/web: observed generation 1, want 2",
        "Normal Ready All components ready",
    ];
    let mut theirs = vec!["Normal InProgress 1 components not ready", "Normal Ready all components ready"];
    are(&fixture, &ours, &theirs).await?;

    // It fails in the middle of the next one.
    report(&fixture, 2, 1, false).await?;
    ready_is(&fixture, "False").await?;
    report(&fixture, 2, 1, true).await?;
    let failure = "Warning Failed Deployment/web: ProgressDeadlineExceeded: 1 of 3 replicas updated, 3 ready";
    ours.extend(["Normal InProgress Deployment/web: 1 of 3 replicas updated", failure]);
    theirs.extend(["Normal InProgress 1 components not ready", failure]);
    are(&fixture, &ours, &theirs).await?;

    // A restarted controller repeats nothing.
    controller.program.stop().await?;
    let _controller = Controller::start(cluster.admin(), &["--leader-elect=false"]).await?;
    report(&fixture, 2, 3, false).await?;
    ours.push("Normal Ready All components ready");
    theirs.push("Normal Ready all components ready");
    are(&fixture, &ours, &theirs).await?;
    let stalled = |object: Value| condition(&object["status"], "Stalled")["status"].clone();
    assert_eq!(stalled(fixture.get("applications.app.k8s.io/theirs").await?), "False");
    Ok(())
}
