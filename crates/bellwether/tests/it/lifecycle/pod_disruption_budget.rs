//! PodDisruptionBudget: healthy Pods as the disruption controller counts them.

use anyhow::{Result, bail};
use serde_json::json;

use super::{LifecycleFixture, pod};

const BUDGET: &str = "
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, finalizers: [example.com/hold]}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
";

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      schedulerName: no-scheduler
      containers: [{name: server, image: 'shop/web:1'}]
";

/// The disruption controller cannot find the scale of a Job.
const UNCOUNTABLE: &str = "
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: import}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: import}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: import}
spec:
  template:
    metadata: {labels: {app: import}}
    spec:
      schedulerName: no-scheduler
      restartPolicy: Never
      containers: [{name: server, image: 'shop/import:1'}]
";

#[tokio::test]
async fn pod_disruption_budget() -> Result<()> {
    let mut fixture = LifecycleFixture::new("budget").await?;
    let web = "poddisruptionbudget/web";
    fixture.accepted("accepted", BUDGET).await?;
    fixture.apply(BUDGET).await?;
    fixture.is("no Pods", web, "InProgress TooFewPods 0%").await?;
    fixture.apply(DEPLOYMENT).await?;
    let pods = fixture.waiting(3).await?;
    let [first, second, third] = pods.as_slice() else { bail!("not three Pods") };
    fixture.bind(first).await?;
    fixture.is("one Pod ready", web, "InProgress TooFewPods 50%").await?;
    fixture.bind(second).await?;
    fixture.is("two Pods ready", web, "Ready EnoughPods 100% 2 Pods healthy").await?;
    fixture.bind(third).await?;
    fixture.is("three Pods ready", web, "Ready EnoughPods 100% 3 Pods healthy").await?;
    fixture.report(first, pod::crash_loop(4)).await?;
    fixture.is("one Pod in CrashLoopBackOff", web, "Ready EnoughPods 100% 2 Pods healthy").await?;
    fixture.patch(web, json!({ "spec": { "minAvailable": 3 } })).await?;
    fixture.is("minAvailable 3", web, "InProgress TooFewPods 66%").await?;
    fixture.patch(web, json!({ "spec": { "minAvailable": 0 } })).await?;
    fixture.is("minAvailable 0", web, "Ready").await?;
    fixture.kubectl("delete --wait=false poddisruptionbudget/web").await?;
    fixture.is("deleted", web, "Terminating").await?;
    fixture.release(web).await?;
    fixture.is_gone("finalizer removed", web).await?;

    fixture.apply(UNCOUNTABLE).await?;
    fixture.is("another one, for the Pods of a Job", "poddisruptionbudget/import", "Failed").await?;
    fixture.end("pod_disruption_budget");
    Ok(())
}
