//! CronJobs, and how their runs end.

use anyhow::Result;
use serde_json::json;

use super::{Story, pod};

/// It runs once a year, so that nothing happens by itself.
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
    // As if it had not run since: the controller makes up for the last run at once.
    let long_ago = json!({ "lastScheduleTime": "2020-01-01T00:00:00Z" });
    let report = "cronjob/report";
    story.accepted("accepted", &cron_job("report")).await?;
    story.apply(&cron_job("report")).await?;
    story.is("created", report, "Ready Scheduled").await?;
    story.report(report, long_ago.clone()).await?;
    let run = story.next_pod().await?;
    story.is("its time has come", report, "Ready Running").await?;
    story.bind(&run).await?;
    story.is("its run has completed", report, "Ready Scheduled 100% its last run").await?;
    story.kubectl("delete --wait=false cronjob/report").await?;
    story.is("deleted", report, "Terminating").await?;
    story.release(report).await?;
    story.is_gone("its finalizer has gone", report).await?;

    let bill = "cronjob/bill";
    story.apply(&cron_job("bill")).await?;
    story.report(bill, long_ago).await?;
    let run = story.next_pod().await?;
    story.report(&run, pod::failed(3)).await?;
    story.is("another, whose run has failed", bill, "Failed").await?;
    story.patch(bill, json!({ "spec": { "suspend": true } })).await?;
    story.is("suspended", bill, "Ready Suspended").await?;
    story.end("cron_jobs");
    Ok(())
}
