//! PodDisruptionBudget: healthy Pods as the disruption controller counts them.

use anyhow::{Result, bail};
use serde_json::json;

use super::{Story, pod};

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
      schedulerName: the-story
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
      schedulerName: the-story
      restartPolicy: Never
      containers: [{name: server, image: 'shop/import:1'}]
";

#[tokio::test]
async fn pod_disruption_budget() -> Result<()> {
    let mut story = Story::begin("budget").await?;
    let web = "poddisruptionbudget/web";
    story.accepted("accepted", BUDGET).await?;
    story.apply(BUDGET).await?;
    story.is("no Pods", web, "InProgress TooFewPods 0%").await?;
    story.apply(DEPLOYMENT).await?;
    let pods = story.waiting(3).await?;
    let [first, second, third] = pods.as_slice() else { bail!("not three Pods") };
    story.bind(first).await?;
    story.is("one Pod ready", web, "InProgress TooFewPods 50%").await?;
    story.bind(second).await?;
    story.is("two Pods ready", web, "Ready EnoughPods 100% 2 Pods healthy").await?;
    story.bind(third).await?;
    story.is("three Pods ready", web, "Ready EnoughPods 100% 3 Pods healthy").await?;
    story.report(first, pod::crash_loop(4)).await?;
    story.is("one Pod in CrashLoopBackOff", web, "Ready EnoughPods 100% 2 Pods healthy").await?;
    story.patch(web, json!({ "spec": { "minAvailable": 3 } })).await?;
    story.is("minAvailable 3", web, "InProgress TooFewPods 66%").await?;
    story.patch(web, json!({ "spec": { "minAvailable": 0 } })).await?;
    story.is("minAvailable 0", web, "Ready").await?;
    story.kubectl("delete --wait=false poddisruptionbudget/web").await?;
    story.is("deleted", web, "Terminating").await?;
    story.release(web).await?;
    story.is_gone("finalizer removed", web).await?;

    story.apply(UNCOUNTABLE).await?;
    story.is("another one, for the Pods of a Job", "poddisruptionbudget/import", "Failed").await?;
    story.end("pod_disruption_budget");
    Ok(())
}
