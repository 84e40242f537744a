//! CronJob: scheduled, running, failed, suspended.

use anyhow::Result;
use serde_json::json;

use super::{LifecycleFixture, pod};

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
          schedulerName: no-scheduler
          restartPolicy: Never
          containers: [{{name: server, image: 'shop/{name}:1'}}]
"
    )
}

#[tokio::test]
async fn cron_jobs() -> Result<()> {
    let mut fixture = LifecycleFixture::new("cron-job").await?;
    // The controller starts a missed run at once.
    let long_ago = json!({ "lastScheduleTime": "2020-01-01T00:00:00Z" });
    let report = "cronjob/report";
    fixture.accepted("accepted", &cron_job("report")).await?;
    fixture.apply(&cron_job("report")).await?;
    fixture.is("created", report, "Ready Scheduled").await?;
    fixture.report(report, long_ago.clone()).await?;
    let run = fixture.next_pod().await?;
    fixture.is("run started", report, "Ready Running").await?;
    fixture.bind(&run).await?;
    fixture.is("run completed", report, "Ready Scheduled 100% last run").await?;
    fixture.kubectl("delete --wait=false cronjob/report").await?;
    fixture.is("deleted", report, "Terminating").await?;
    fixture.release(report).await?;
    fixture.is_gone("finalizer removed", report).await?;

    let bill = "cronjob/bill";
    fixture.apply(&cron_job("bill")).await?;
    fixture.report(bill, long_ago).await?;
    let run = fixture.next_pod().await?;
    fixture.report(&run, pod::failed(3)).await?;
    fixture.is("another one, run failed", bill, "Failed").await?;
    fixture.patch(bill, json!({ "spec": { "suspend": true } })).await?;
    fixture.is("suspended", bill, "Ready Suspended").await?;
    fixture.end("cron_jobs");
    Ok(())
}
