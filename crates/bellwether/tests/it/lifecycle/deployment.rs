//! Deployment: rollout, crash loop, missing image, progress deadline, quota, minReadySeconds, pause.

use anyhow::{Context as _, Result};
use serde_json::json;

use super::{Story, pod};

const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, finalizers: [example.com/hold]}
spec:
  replicas: 3
  progressDeadlineSeconds: 600
  selector: {matchLabels: {app: web}}
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}
  template:
    metadata: {labels: {app: web}}
    spec:
      schedulerName: the-story
      containers: [{name: server, image: 'shop/web:1'}]
";

const QUOTA: &str = "
apiVersion: v1
kind: ResourceQuota
metadata: {name: few}
spec: {hard: {pods: 3}}
";

#[tokio::test]
async fn deployment() -> Result<()> {
    let mut story = Story::begin("deployment").await?;
    let web = "deployment/web";
    story.accepted("accepted", DEPLOYMENT).await?;
    story.apply(DEPLOYMENT).await?;
    story.is("Pods pending", web, "InProgress ReplicasNotReady 0%").await?;
    let pods = story.waiting(3).await?;
    let first = pods.first().context("no Pod")?;
    story.bind(first).await?;
    story.is("one Pod ready", web, "InProgress ReplicasNotReady 33%").await?;
    story.bind_all(2).await?;
    story.is("all Pods ready", web, "Ready").await?;

    story.report(first, pod::crash_loop(4)).await?;
    story.is("a container crashes", web, "InProgress ReplicasNotReady 66%").await?;
    story.is("its Pod", first, "Failed CrashLoopBackOff").await?;
    story.kubectl(&format!("delete {first}")).await?;
    story.bind_all(1).await?;
    story.is("Pod deleted, its replacement ready", web, "Ready").await?;

    story.kubectl("set image deployment/web server=shop/web:tpyo").await?;
    story.is("image does not exist", web, "InProgress RollingOut 100% 1 of 3").await?;
    let broken = story.next_pod().await?;
    story.report(&broken, pod::image_pull_back_off("shop/web:tpyo")).await?;
    story.is("its first Pod", &broken, "Failed ImagePullBackOff").await?;
    story.patch(web, json!({ "spec": { "progressDeadlineSeconds": 1 } })).await?;
    story.is("progress deadline exceeded", web, "Failed ProgressDeadlineExceeded").await?;
    story.apply(DEPLOYMENT).await?;
    story.is("repaired", web, "Ready").await?;

    story.patch(web, json!({ "spec": { "strategy": { "rollingUpdate": { "maxSurge": "100%" } } } })).await?;
    story.kubectl("set image deployment/web server=shop/web:2").await?;
    story.waiting(3).await?;
    story.is("maxSurge 100%, new Pods pending", web, "InProgress ").await?;
    story.bind_all(3).await?;
    story.is("new Pods ready, old ones deleted", web, "Ready").await?;

    story.apply(QUOTA).await?;
    story.kubectl("wait --for=jsonpath={.status.used.pods}=3 resourcequota/few --timeout=5m").await?;
    story.kubectl("scale deployment/web --replicas=5").await?;
    story.is("scaled beyond its quota", web, "Failed").await?;
    story.kubectl("delete resourcequota/few").await?;
    story.kubectl("scale deployment/web --replicas=4").await?;
    story.is("without the quota", web, "InProgress ReplicasNotReady 75%").await?;
    story.bind_all(1).await?;
    story.is("fourth Pod ready", web, "Ready").await?;

    story.patch(web, json!({ "spec": { "minReadySeconds": 300 } })).await?;
    story.is("minReadySeconds of 5 minutes", web, "InProgress ReplicasNotAvailable").await?;
    story.patch(web, json!({ "spec": { "minReadySeconds": 0 } })).await?;
    story.is("minReadySeconds of 0", web, "Ready").await?;

    story.kubectl("rollout pause deployment/web").await?;
    story.kubectl("set image deployment/web server=shop/web:3").await?;
    story.is("paused and changed", web, "Suspended").await?;
    story.kubectl("scale deployment/web --replicas=0").await?;
    story.kubectl("rollout resume deployment/web").await?;
    story.is("scaled to 0 and resumed", web, "Ready").await?;

    story.kubectl("delete --wait=false deployment/web").await?;
    story.is("deleted", web, "Terminating").await?;
    story.release(web).await?;
    story.is_gone("finalizer removed", web).await?;
    story.end("deployment");
    Ok(())
}
