//! Job: suspended, completed, failed.

use anyhow::{Context as _, Result};
use serde_json::json;

use super::{Story, pod};

/// A Job whose Pods the test binds to nodes.
fn job(name: &str, spec: &str) -> String {
    format!(
        "
apiVersion: batch/v1
kind: Job
metadata: {{name: {name}, finalizers: [example.com/hold]}}
spec:
  {{{spec}, template: {{spec: {{
    schedulerName: the-story, restartPolicy: Never, containers: [{{name: server, image: 'shop/import:1'}}],
  }}}}}}
"
    )
}

#[tokio::test]
async fn completed_job() -> Result<()> {
    let mut story = Story::begin("job").await?;
    let import = "job/import";
    let manifest = job("import", "completions: 3, parallelism: 2, suspend: true");
    story.accepted("accepted", &manifest).await?;
    story.apply(&manifest).await?;
    story.is("created suspended", import, "Suspended").await?;
    story.patch(import, json!({ "spec": { "suspend": false } })).await?;
    let pods = story.waiting(2).await?;
    story
        .is("resumed, and its Pods wait for nodes", import, "InProgress Running 0% 0 of 3 completed, 2")
        .await?;
    story.bind(pods.first().context("no Pod")?).await?;
    story.is("first Pod completed", import, "InProgress Running 33% 1 of 3 completed, 2").await?;
    story.bind_all(2).await?;
    story.is("all Pods completed", import, "Ready").await?;
    story.kubectl("delete --wait=false job/import").await?;
    story.is("deleted", import, "Terminating").await?;
    story.release(import).await?;
    story.is_gone("finalizer removed", import).await?;

    story.apply(&job("queue", "parallelism: 2").replace("the-story", "default-scheduler")).await?;
    story
        .is("one without a number of completions, whose Pods are done when one is", "job/queue", "Ready")
        .await?;
    story.end("completed_job");
    Ok(())
}

#[tokio::test]
async fn failed_job() -> Result<()> {
    let mut story = Story::begin("failing-job").await?;
    let import = "job/import";
    story.apply(&job("import", "backoffLimit: 1")).await?;
    let first = story.next_pod().await?;
    story.is("Pod pending", import, "InProgress Running 0% 0 of 1 completed, 1").await?;
    story.report(&first, pod::failed(3)).await?;
    story.is("Pod failed", &first, "Failed").await?;
    let second = story.next_pod().await?;
    let replaced = "InProgress Running 0% 0 of 1 completed, 1 active, 1 failed";
    story.is("replacement pending", import, replaced).await?;
    story.report(&second, pod::failed(3)).await?;
    story
        .is("replacement failed", import, "Failed BackoffLimitExceeded 0% 0 of 1 completed, 2 failed")
        .await?;

    story.apply(&job("late", "activeDeadlineSeconds: 1")).await?;
    story
        .is(
            "another that may take a second",
            "job/late",
            "Failed DeadlineExceeded 0% 0 of 1 completed, 1 failed",
        )
        .await?;
    story.end("failed_job");
    Ok(())
}
