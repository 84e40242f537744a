//! CronJob: scheduled, running, failed, suspended.

use anyhow::Result;
use serde_json::json;

use super::{Story, pod};

/// Runs once a year, so never during the test.
fn cron_job(name: &str) -> String {
    format!(
        "
apiVersion: batch/v1
kind: CronJob
metadata: {{name: {name}, finalizers: [example.com/hold]}}
spec:
  schedule: '0 0 1 1 *'
  jobTemplate:
    spec:
      backoffLimit: 0
      template:
        spec:
          schedulerName: the-story
          restartPolicy: Never
          containers: [{{name: server, image: 'shop/{name}:1'}}]
"
    )
}

#[tokio::test]
async fn cron_jobs() -> Result<()> {
    let mut story = Story::begin("cron-job").await?;
    // The controller starts a missed run at once.
    let long_ago = json!({ "lastScheduleTime": "2020-01-01T00:00:00Z" });
    let report = "cronjob/report";
    story.accepted("accepted", &cron_job("report")).await?;
    story.apply(&cron_job("report")).await?;
    story.is("created", report, "Ready Scheduled").await?;
    story.report(report, long_ago.clone()).await?;
    let run = story.next_pod().await?;
    story.is("run started", report, "Ready Running").await?;
    story.bind(&run).await?;
    story.is("run completed", report, "Ready Scheduled 100% last run").await?;
    story.kubectl("delete --wait=false cronjob/report").await?;
    story.is("deleted", report, "Terminating").await?;
    story.release(report).await?;
    story.is_gone("finalizer removed", report).await?;

    let bill = "cronjob/bill";
    story.apply(&cron_job("bill")).await?;
    story.report(bill, long_ago).await?;
    let run = story.next_pod().await?;
    story.report(&run, pod::failed(3)).await?;
    story.is("another one, run failed", bill, "Failed").await?;
    story.patch(bill, json!({ "spec": { "suspend": true } })).await?;
    story.is("suspended", bill, "Ready Suspended").await?;
    story.end("cron_jobs");
    Ok(())
}
