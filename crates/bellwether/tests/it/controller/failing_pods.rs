//! Workloads of every kind whose Pods fail: CrashLoopBackOff, ImagePullBackOff, Unschedulable, and a readiness
//! probe that fails.

use std::time::Instant;

use anyhow::Result;
use bellwether_testkit::{TIMEOUT, eventually};
use serde_json::{Value, json};

use super::{ControllerFixture, faults::recovered, text};

/// The end of a workload's manifest. No scheduler and no kubelet knows its Pods: the test reports their status.
const TEMPLATE: &str = "
  template:
    metadata: {labels: {run: work}}
    spec: {schedulerName: none, containers: [{name: server, image: 'shop/work:1'}]";

/// When the Pods stopped being ready: long ago, so that no test has to wait.
pub(super) const LONG_AGO: &str = "2026-01-01T10:00:00Z";

#[tokio::test]
async fn a_deployment() -> Result<()> {
    fails_for_its_pods("apps", "Deployment", "selector: {matchLabels: {run: work}}", "}").await
}

#[tokio::test]
async fn a_stateful_set() -> Result<()> {
    let spec = "serviceName: work\n  selector: {matchLabels: {run: work}}";
    fails_for_its_pods("apps", "StatefulSet", spec, "}").await
}

#[tokio::test]
async fn a_daemon_set() -> Result<()> {
    fails_for_its_pods("apps", "DaemonSet", "selector: {matchLabels: {run: work}}", "}").await
}

#[tokio::test]
async fn a_job() -> Result<()> {
    fails_for_its_pods("batch", "Job", "backoffLimit: 100", ", restartPolicy: OnFailure}").await
}

async fn fails_for_its_pods(group: &str, kind: &str, spec: &str, end: &str) -> Result<()> {
    let fixture = ControllerFixture::new(&format!("failing-{}", kind.to_lowercase())).await?;
    fixture
        .apply(&format!(
            "
apiVersion: bellwether.dev/v1alpha1
kind: Application
metadata: {{name: shop}}
spec:
  selector: {{matchLabels: {{app: shop}}}}
  componentKinds: [{{group: {group}, kind: {kind}}}]
---
apiVersion: {group}/v1
kind: {kind}
metadata: {{name: work, labels: {{app: shop}}}}
spec:
  {spec}{TEMPLATE}{end}
"
        ))
        .await?;
    for reason in ["ImagePullBackOff", "CrashLoopBackOff"] {
        report(&fixture, &waiting(reason)).await?;
        becomes(&fixture, "Failed", reason, Some(reason)).await?;
    }
    let unscheduled = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes are available",
        "lastTransitionTime": LONG_AGO,
    });
    let nowhere = json!({"phase": "Pending", "conditions": [unscheduled], "containerStatuses": null});
    report(&fixture, &nowhere).await?;
    becomes(&fixture, "Failed", "Unschedulable", Some("Unschedulable")).await?;

    // The probe may succeed at any time.
    let running = json!({"running": {"startedAt": LONG_AGO}});
    let unready =
        json!({"phase": "Running", "conditions": [not_ready()], "containerStatuses": [container(&running)]});
    report(&fixture, &unready).await?;
    let own = fixture.status("shop", "InProgress", |status| status["state"] == "InProgress").await?;
    becomes(&fixture, "InProgress", &text(&own["reason"]), Some("PodNotReady")).await?;

    let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO});
    let phase = if kind == "Job" { "Succeeded" } else { "Running" };
    report(&fixture, &json!({"phase": phase, "conditions": [ready], "containerStatuses": null})).await?;
    let status = fixture.status("shop", "Ready", |status| status["state"] == "Ready").await?;
    assert!(status["reason"].is_null() && status["objects"][0]["cause"].is_null(), "{status:#}");
    Ok(())
}

/// The status of a Pod whose container waits, since long ago.
pub(super) fn waiting(reason: &str) -> Value {
    json!({"phase": "Pending", "conditions": [not_ready()], "containerStatuses": [container(
        &json!({"waiting": {"reason": reason, "message": "back-off"}})
    )]})
}

fn not_ready() -> Value {
    json!({"type": "Ready", "status": "False", "reason": "ContainersNotReady", "lastTransitionTime": LONG_AGO})
}

fn container(state: &Value) -> Value {
    json!({
        "name": "server", "image": "shop/work:1", "imageID": "", "ready": false, "restartCount": 3, "state": state,
    })
}

/// Reports the status of all Pods, as soon as there is one.
async fn report(fixture: &ControllerFixture, status: &Value) -> Result<()> {
    let mut names = Vec::new();
    eventually(TIMEOUT, "there are Pods", async || {
        let pods = fixture.get("pods").await?;
        let items = pods["items"].as_array().into_iter().flatten();
        names = items.map(|pod| text(&pod["metadata"]["name"])).collect();
        Ok(!names.is_empty())
    })
    .await?;
    for name in names {
        report_pod(fixture, &name, status).await?;
    }
    Ok(())
}

pub(super) async fn report_pod(fixture: &ControllerFixture, name: &str, status: &Value) -> Result<()> {
    fixture.report(&format!("pod/{name}"), status.clone()).await
}

/// Waits for the state and reason of the Application, and for the reason of the Pod that is its cause.
pub(super) async fn becomes(
    fixture: &ControllerFixture,
    state: &str,
    reason: &str,
    cause: Option<&str>,
) -> Result<()> {
    let is_so = |status: &Value| {
        status["state"] == state
            && status["reason"] == reason
            && status["objects"][0]["cause"]["reason"].as_str() == cause
    };
    let status = fixture.status("shop", &format!("{state} {reason}"), is_so).await?;
    let member = &status["objects"][0];
    assert_eq!(member["status"], state, "{status:#}");
    assert_eq!(member["cause"]["kind"], "Pod", "{status:#}");
    Ok(())
}

/// Records, for `cargo xtask faults`, when an Application had this state.
pub(super) fn recorded(kind: &str, failure: &str, state: &str, since: Instant) -> Result<()> {
    recovered(&format!("{kind}, {failure}: {state}"), since, Instant::now())
}
