//! Job: suspended, completed, failed.

use anyhow::{Context as _, Result};
use serde_json::json;

use super::{LifecycleFixture, pod};

/// A Job whose Pods the test binds to nodes.
fn job(name: &str, spec: &str) -> String {
    format!(
        "
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, finalizers: [example.com/hold]}}
spec:
  {{{spec}, template: {{spec: {{
    schedulerName: no-scheduler, restartPolicy: Never, containers: [{{name: server, image: 'shop/import:1'}}],
  }}}}}}
"
    )
}

#[tokio::test]
async fn completed_job() -> Result<()> {
    let mut fixture = LifecycleFixture::new("job").await?;
    let import = "job/import";
    let manifest = job("import", "completions: 3, parallelism: 2, suspend: true");
    fixture.accepted("accepted", &manifest).await?;
    fixture.apply(&manifest).await?;
    fixture.is("created suspended", import, "Suspended").await?;
    fixture.patch(import, json!({ "spec": { "suspend": false } })).await?;
    let pods = fixture.waiting(2).await?;
    fixture
        .is("resumed, and its Pods wait for nodes", import, "InProgress Running 0% 0 of 3 completed, 2")
        .await?;
    fixture.bind(pods.first().context("no Pod")?).await?;
    fixture.is("first Pod completed", import, "InProgress Running 33% 1 of 3 completed, 2").await?;
    fixture.bind_all(2).await?;
    fixture.is("all Pods completed", import, "Ready").await?;
    fixture.kubectl("delete --wait=false job/import").await?;
    fixture.is("deleted", import, "Terminating").await?;
    fixture.release(import).await?;
    fixture.is_gone("finalizer removed", import).await?;

    fixture.apply(&job("queue", "parallelism: 2").replace("no-scheduler", "default-scheduler")).await?;
    fixture
        .is("one without a number of completions, whose Pods are done when one is", "job/queue", "Ready")
        .await?;
    fixture.end("completed_job");
    Ok(())
}

#[tokio::test]
async fn failed_job() -> Result<()> {
    let mut fixture = LifecycleFixture::new("failing-job").await?;
    let import = "job/import";
    fixture.apply(&job("import", "backoffLimit: 1")).await?;
    let first = fixture.next_pod().await?;
    fixture.is("Pod pending", import, "InProgress Running 0% 0 of 1 completed, 1").await?;
    fixture.report(&first, pod::failed(3)).await?;
    fixture.is("Pod failed", &first, "Failed").await?;
    let second = fixture.next_pod().await?;
    let replaced = "InProgress Running 0% 0 of 1 completed, 1 active, 1 failed";
    fixture.is("replacement pending", import, replaced).await?;
    fixture.report(&second, pod::failed(3)).await?;
    fixture
        .is("replacement failed", import, "Failed BackoffLimitExceeded 0% 0 of 1 completed, 2 failed")
        .await?;

    fixture.apply(&job("late", "activeDeadlineSeconds: 1")).await?;
    fixture
        .is(
            "another that may take a second",
            "job/late",
            "Failed DeadlineExceeded 0% 0 of 1 completed, 1 failed",
        )
        .await?;
    fixture.end("failed_job");
    Ok(())
}
