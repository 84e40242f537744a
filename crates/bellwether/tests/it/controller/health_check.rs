//! Health-check Pods (`spec.healthCheck`): creation, replacement, deletion, readiness of the Application.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result};
use bellwether_testkit::eventually;
use serde_json::{Value, json};

use super::{Story, TIMEOUT, application, condition, config, text};

/// No scheduler handles these Pods: the tests write their status.
fn template(image: &str) -> Value {
    json!({ "template": { "spec": {
        "schedulerName": "nobody",
        "containers": [{ "name": "check", "image": image, "readinessProbe": { "tcpSocket": { "port": 80 } } }],
    } } })
}

/// The names of the health-check Pods.
async fn pods(story: &Story) -> Result<BTreeSet<String>> {
    let pods = story.get("pods").await?;
    let items = pods["items"].as_array().context("no list")?;
    Ok(items.iter().map(|pod| text(&pod["metadata"]["name"])).collect())
}

/// Waits until exactly one Pod exists that is not `before`, and returns its name.
async fn next_pod(story: &Story, before: Option<&str>) -> Result<String> {
    let mut found = String::new();
    eventually(TIMEOUT, "there is one other Pod", async || {
        let pods = pods(story).await?;
        found = pods.first().cloned().unwrap_or_default();
        Ok(pods.len() == 1 && Some(found.as_str()) != before)
    })
    .await?;
    Ok(found)
}

async fn say(story: &Story, pod: &str, ready: &str) -> Result<()> {
    let condition =
        json!({ "type": "Ready", "status": ready, "reason": "Tried", "message": format!("said {ready}") });
    story.report(&format!("pod/{pod}"), json!({ "phase": "Running", "conditions": [condition] })).await
}

/// Health Check Pods; Health Status Reporting.
#[tokio::test]
async fn from_beginning_to_end() -> Result<()> {
    let story = Story::begin("check").await?;
    story.apply(&config("settings", "shop", None)).await?;
    story.apply(&application("shop", "shop", "")).await?;
    // Without a health check, `status.ready` is Unknown.
    let status =
        story.status("shop", "it is ready", |status| condition(status, "Ready")["status"] == "True").await?;
    assert_eq!(status["ready"], "Unknown");

    // The name has the hash of the template, and the Application owns the Pod.
    story.patch("application/shop", json!({ "spec": { "healthCheck": template("check:1") } })).await?;
    let first = next_pod(&story, None).await?;
    assert!(first.starts_with("shop-"), "{first}");
    story.owners_are(&format!("pod/{first}"), &["shop"]).await?;
    // Without a Ready condition of the Pod, `status.ready` is Unknown.
    let unknown =
        |status: &Value| status["ready"] == "Unknown" && condition(status, "Ready")["status"] == "Unknown";
    story.status("shop", "nobody knows", unknown).await?;

    // The Ready condition of the Pod decides that of the Application.
    for (ready, reason) in
        [("True", "ComponentsReady"), ("False", "ComponentsNotReady"), ("True", "ComponentsReady")]
    {
        say(&story, &first, ready).await?;
        story.ready_is("shop", reason).await?;
        story.status("shop", ready, |status| status["ready"] == ready).await?;
    }

    // After a change of the template, the controller replaces the Pod.
    story.patch("application/shop", json!({ "spec": { "healthCheck": template("check:2") } })).await?;
    let second = next_pod(&story, Some(&first)).await?;

    // The API server rejects a template: the previous Pod stays, and HealthCheckValid has the error.
    let mut wrong = template("check:3");
    wrong["template"]["spec"]["restartPolicy"] = json!("Sometimes");
    story.patch("application/shop", json!({ "spec": { "healthCheck": wrong } })).await?;
    let invalid = |status: &Value| condition(status, "HealthCheckValid")["status"] == "False";
    let status = story.status("shop", "the template is invalid", invalid).await?;
    let message = text(&condition(&status, "HealthCheckValid")["message"]);
    assert!(message.contains("restartPolicy"), "{message}");
    assert_eq!(pods(&story).await?, BTreeSet::from([second.clone()]));
    let right = json!({ "spec": { "healthCheck": { "template": { "spec": { "restartPolicy": null } } } } });
    story.patch("application/shop", right).await?;
    let third = next_pod(&story, Some(&second)).await?;

    // The controller recreates a deleted Pod and a completed one under the same name.
    let uid = async || anyhow::Ok(text(&story.get(&format!("pod/{third}")).await?["metadata"]["uid"]));
    let mut last = uid().await?;
    story.kubectl(&format!("delete pod {third} --grace-period=0 --force")).await?;
    eventually(TIMEOUT, "it is made again", async || Ok(uid().await? != last)).await?;
    last = uid().await?;
    story.report(&format!("pod/{third}"), json!({ "phase": "Succeeded" })).await?;
    eventually(TIMEOUT, "it is made once more", async || Ok(uid().await? != last)).await?;

    // Without a health check, the controller deletes the Pod.
    story.patch("application/shop", json!({ "spec": { "healthCheck": null } })).await?;
    story.is_gone(&format!("pod/{third}")).await?;
    let gone =
        |status: &Value| status["ready"] == "Unknown" && condition(status, "HealthCheckValid").is_null();
    story.status("shop", "there is no health check", gone).await?;
    Ok(())
}

#[tokio::test]
async fn it_goes_with_its_application() -> Result<()> {
    let story = Story::begin("check-goes").await?;
    story.apply(&application("shop", "shop", "")).await?;
    story.patch("application/shop", json!({ "spec": { "healthCheck": template("check:1") } })).await?;
    let pod = next_pod(&story, None).await?;
    story.kubectl("delete application shop").await?;
    story.is_gone(&format!("pod/{pod}")).await
}
