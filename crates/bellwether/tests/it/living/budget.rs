//! PodDisruptionBudgets: what the disruption controller counts.

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

/// How many Pods a Job wants to have, a budget cannot find out.
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
async fn budget() -> Result<()> {
    let mut story = Story::begin("budget").await?;
    let web = "poddisruptionbudget/web";
    story.accepted("accepted", BUDGET).await?;
    story.apply(BUDGET).await?;
    story.is("there is no Pod", web, "InProgress TooFewPods 0%").await?;
    story.apply(DEPLOYMENT).await?;
    let pods = story.waiting(3).await?;
    let [first, second, third] = pods.as_slice() else { bail!("not three Pods") };
    story.bind(first).await?;
    story.is("one Pod runs", web, "InProgress TooFewPods 50%").await?;
    story.bind(second).await?;
    story.is("two run", web, "Ready EnoughPods 100% 2 Pods healthy, 2 needed").await?;
    story.bind(third).await?;
    story.is("three run", web, "Ready EnoughPods 100% 3 Pods healthy, 2 needed").await?;
    story.report(first, pod::crash_loop(4)).await?;
    story.is("one crashes", web, "Ready EnoughPods 100% 2 Pods healthy, 2 needed").await?;
    story.patch(web, json!({ "spec": { "minAvailable": 3 } })).await?;
    story.is("three are wanted", web, "InProgress TooFewPods 66%").await?;
    story.patch(web, json!({ "spec": { "minAvailable": 0 } })).await?;
    story.is("none is wanted", web, "Ready").await?;
    story.kubectl("delete --wait=false poddisruptionbudget/web").await?;
    story.is("deleted", web, "Terminating").await?;
    story.release(web).await?;
    story.is_gone("its finalizer has gone", web).await?;

    story.apply(UNCOUNTABLE).await?;
    story.is("another, for the Pods of a Job", "poddisruptionbudget/import", "Failed").await?;
    story.end("budget");
    Ok(())
}
