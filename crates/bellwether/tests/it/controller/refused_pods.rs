//! A ResourceQuota that refuses the Pods of workloads: exceeded quota, FailedCreate.

use std::time::Instant;

use anyhow::Result;
use rstest::rstest;
use serde_json::json;

use super::{ControllerFixture, failing_pods::recorded, text};

/// The controllers of the last three report it only in Events. There are two nodes.
#[rstest]
#[case::deployment(
    "Deployment",
    "replicas: 2, selector: {matchLabels: {run: work}},",
    1,
    "exceeded quota: few"
)]
#[case::stateful_set(
    "StatefulSet",
    "replicas: 2, serviceName: work, selector: {matchLabels: {run: work}},",
    1,
    "1 of 2 replicas ready, 1 not created"
)]
#[case::daemon_set(
    "DaemonSet",
    "selector: {matchLabels: {run: work}},",
    1,
    "1 of 2 Pods ready, 1 not created"
)]
#[case::job("Job", "completions: 2, parallelism: 2,", 0, "0 of 2 completed, no Pod created")]
#[tokio::test]
async fn fail_their_workload_until_the_quota_is_raised(
    #[case] kind: &str,
    #[case] spec: &str,
    #[case] allowed: u32,
    #[case] message: &str,
) -> Result<()> {
    let (group, restart) = match kind {
        "Job" => ("batch", ", restartPolicy: Never"),
        _ => ("apps", ""),
    };
    let fixture = ControllerFixture::new(&format!("quota-{}", kind.to_lowercase())).await?;
    fixture
        .apply(&format!("{{apiVersion: v1, kind: ResourceQuota, metadata: {{name: few}}, spec: {{hard: {{pods: {allowed}}}}}}}"))
        .await?;
    // Before that, the API server refuses every Pod.
    fixture
        .kubectl(&format!(
            "wait --for=jsonpath={{.status.hard.pods}}={allowed} resourcequota/few --timeout=5m"
        ))
        .await?;
    let begin = Instant::now();
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
spec: {{{spec} template: {{
  metadata: {{labels: {{run: work}}}},
  spec: {{containers: [{{name: server, image: 'shop/work:1'}}]{restart}}},
}}}}
"
        ))
        .await?;
    let status = fixture
        .status("shop", "Failed FailedCreate", |status| {
            status["state"] == "Failed" && status["reason"] == "FailedCreate"
        })
        .await?;
    recorded(kind, "quota", "Failed", begin)?;
    let member = &status["objects"][0];
    assert!(text(&member["message"]).contains(message), "{status:#}");
    assert!(member["cause"].is_null(), "{status:#}");

    fixture.patch("resourcequota/few", json!({"spec": {"hard": {"pods": "9"}}})).await?;
    // A change makes its controller try again at once, which waits longer and longer.
    fixture.kubectl(&format!("annotate {kind}/work example.com/quota=raised")).await?;
    let status = fixture.status("shop", "Ready", |status| status["state"] == "Ready").await?;
    assert!(status["reason"].is_null(), "{status:#}");
    Ok(())
}
