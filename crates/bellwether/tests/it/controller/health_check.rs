//! Health-check Pods (`spec.healthCheck`): creation, replacement, deletion, readiness of the Application.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use bellwether_testkit::eventually;
use serde_json::{Value, json};

use super::{ControllerFixture, TIMEOUT, application, condition, config, text};

/// No scheduler handles these Pods: the tests write their status.
fn template(image: &str) -> Value {
    json!({ "template": { "spec": {
        "schedulerName": "no-scheduler",
        "containers": [{ "name": "check", "image": image, "readinessProbe": { "tcpSocket": { "port": 80 } } }],
    } } })
}

/// The names of the health-check Pods.
async fn pods(fixture: &ControllerFixture) -> Result<BTreeSet<String>> {
    let pods = fixture.get("pods").await?;
    let items = pods["items"].as_array().context("no list")?;
    Ok(items.iter().map(|pod| text(&pod["metadata"]["name"])).collect())
}

/// Waits until exactly one Pod exists that is not `before`, and returns its name.
async fn next_pod(fixture: &ControllerFixture, before: Option<&str>) -> Result<String> {
    let mut found = String::new();
    eventually(TIMEOUT, "there is one other Pod", async || {
        let pods = pods(fixture).await?;
        found = pods.first().cloned().unwrap_or_default();
        Ok(pods.len() == 1 && Some(found.as_str()) != before)
    })
    .await?;
    Ok(found)
}

/// Writes the Ready condition of a Pod, in place of its kubelet.
async fn report_ready(fixture: &ControllerFixture, pod: &str, ready: &str) -> Result<()> {
    let condition = json!({ "type": "Ready", "status": ready, "reason": "Tried", "message": format!("Ready is {ready}") });
    fixture.report(&format!("pod/{pod}"), json!({ "phase": "Running", "conditions": [condition] })).await
}

/// Health Check Pods; Health Status Reporting.
#[tokio::test]
async fn from_beginning_to_end() -> Result<()> {
    let fixture = ControllerFixture::new("check").await?;
    fixture.apply(&config("settings", "shop", None)).await?;
    fixture.apply(&application("shop", "shop", "")).await?;
    // Without a health check, there is no `status.ready`.
    let status = fixture
        .status("shop", "it is ready", |status| condition(status, "Ready")["status"] == "True")
        .await?;
    assert_eq!(status.get("ready"), None);

    // The name has the hash of the template, and the Application owns the Pod.
    fixture.patch("application/shop", json!({ "spec": { "healthCheck": template("check:1") } })).await?;
    let first = next_pod(&fixture, None).await?;
    assert!(first.starts_with("shop-"), "{first}");
    fixture.owners_are(&format!("pod/{first}"), &["shop"]).await?;
    // Without a Ready condition of the Pod, `status.ready` is Unknown.
    let unknown =
        |status: &Value| status["ready"] == "Unknown" && condition(status, "Ready")["status"] == "Unknown";
    fixture.status("shop", "ready is Unknown", unknown).await?;

    // The Ready condition of the Pod decides that of the Application.
    for (ready, reason) in
        [("True", "ComponentsReady"), ("False", "ComponentsInProgress"), ("True", "ComponentsReady")]
    {
        report_ready(&fixture, &first, ready).await?;
        fixture.ready_is("shop", reason).await?;
        fixture.status("shop", ready, |status| status["ready"] == ready).await?;
    }

    // After a change of the template, the controller replaces the Pod.
    fixture.patch("application/shop", json!({ "spec": { "healthCheck": template("check:2") } })).await?;
    let second = next_pod(&fixture, Some(&first)).await?;

    // The API server rejects a template: the previous Pod stays, and HealthCheckValid has the error.
    let mut wrong = template("check:3");
    wrong["template"]["spec"]["restartPolicy"] = json!("Sometimes");
    fixture.patch("application/shop", json!({ "spec": { "healthCheck": wrong } })).await?;
    let invalid = |status: &Value| condition(status, "HealthCheckValid")["status"] == "False";
    let status = fixture.status("shop", "the template is invalid", invalid).await?;
    let message = text(&condition(&status, "HealthCheckValid")["message"]);
    assert!(message.contains("restartPolicy"), "{message}");
    assert_eq!(pods(&fixture).await?, BTreeSet::from([second.clone()]));
    let right = json!({ "spec": { "healthCheck": { "template": { "spec": { "restartPolicy": null } } } } });
    fixture.patch("application/shop", right).await?;
    let third = next_pod(&fixture, Some(&second)).await?;

    // The controller recreates a deleted Pod and a completed one under the same name.
    let uid = async || anyhow::Ok(text(&fixture.get(&format!("pod/{third}")).await?["metadata"]["uid"]));
    let mut last = uid().await?;
    fixture.kubectl(&format!("delete pod {third} --grace-period=0 --force")).await?;
    eventually(TIMEOUT, "it is made again", async || Ok(uid().await? != last)).await?;
    last = uid().await?;
    fixture.report(&format!("pod/{third}"), json!({ "phase": "Succeeded" })).await?;
    eventually(TIMEOUT, "it is made once more", async || Ok(uid().await? != last)).await?;

    // Without a health check, the controller deletes the Pod.
    fixture.patch("application/shop", json!({ "spec": { "healthCheck": null } })).await?;
    fixture.is_gone(&format!("pod/{third}")).await?;
    let gone = |status: &Value| status["ready"].is_null() && condition(status, "HealthCheckValid").is_null();
    fixture.status("shop", "there is no health check", gone).await?;
    Ok(())
}

#[tokio::test]
async fn it_goes_with_its_application() -> Result<()> {
    let fixture = ControllerFixture::new("check-goes").await?;
    fixture.apply(&application("shop", "shop", "")).await?;
    fixture.patch("application/shop", json!({ "spec": { "healthCheck": template("check:1") } })).await?;
    let pod = next_pod(&fixture, None).await?;
    fixture.kubectl("delete application shop").await?;
    fixture.is_gone(&format!("pod/{pod}")).await
}
