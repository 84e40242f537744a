//! Deployment: rollout, crash loop, missing image, progress deadline, quota, minReadySeconds, pause.

use anyhow::{Context as _, Result};
use serde_json::json;

use super::{LifecycleFixture, pod};

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
      schedulerName: no-scheduler
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
    let mut fixture = LifecycleFixture::new("deployment").await?;
    let web = "deployment/web";
    fixture.accepted("accepted", DEPLOYMENT).await?;
    fixture.apply(DEPLOYMENT).await?;
    fixture.is("Pods pending", web, "InProgress ReplicasNotReady 0%").await?;
    let pods = fixture.waiting(3).await?;
    let first = pods.first().context("no Pod")?;
    fixture.bind(first).await?;
    fixture.is("one Pod ready", web, "InProgress ReplicasNotReady 33%").await?;
    fixture.bind_all(2).await?;
    fixture.is("all Pods ready", web, "Ready").await?;

    fixture.report(first, pod::crash_loop(4)).await?;
    fixture.is("a container crashes", web, "InProgress ReplicasNotReady 66%").await?;
    fixture.is("its Pod", first, "Failed CrashLoopBackOff").await?;
    fixture.kubectl(&format!("delete {first}")).await?;
    fixture.bind_all(1).await?;
    fixture.is("Pod deleted, its replacement ready", web, "Ready").await?;

    fixture.kubectl("set image deployment/web server=shop/web:tpyo").await?;
    fixture.is("image does not exist", web, "InProgress RollingOut 33% 1 of 3").await?;
    let broken = fixture.next_pod().await?;
    fixture.report(&broken, pod::image_pull_back_off("shop/web:tpyo")).await?;
    fixture.is("its first Pod", &broken, "Failed ImagePullBackOff").await?;
    fixture.patch(web, json!({ "spec": { "progressDeadlineSeconds": 1 } })).await?;
    fixture.is("progress deadline exceeded", web, "Failed ProgressDeadlineExceeded").await?;
    fixture.apply(DEPLOYMENT).await?;
    fixture.is("repaired", web, "Ready").await?;

    fixture
        .patch(web, json!({ "spec": { "strategy": { "rollingUpdate": { "maxSurge": "100%" } } } }))
        .await?;
    fixture.kubectl("set image deployment/web server=shop/web:2").await?;
    fixture.waiting(3).await?;
    fixture.is("maxSurge 100%, new Pods pending", web, "InProgress ").await?;
    fixture.bind_all(3).await?;
    fixture.is("new Pods ready, old ones deleted", web, "Ready").await?;

    fixture.apply(QUOTA).await?;
    fixture.kubectl("wait --for=jsonpath={.status.used.pods}=3 resourcequota/few --timeout=5m").await?;
    fixture.kubectl("scale deployment/web --replicas=5").await?;
    fixture.is("scaled beyond its quota", web, "Failed").await?;
    fixture.kubectl("delete resourcequota/few").await?;
    fixture.kubectl("scale deployment/web --replicas=4").await?;
    fixture.is("without the quota", web, "InProgress ReplicasNotReady 75%").await?;
    fixture.bind_all(1).await?;
    fixture.is("fourth Pod ready", web, "Ready").await?;

    fixture.patch(web, json!({ "spec": { "minReadySeconds": 300 } })).await?;
    fixture.is("minReadySeconds of 5 minutes", web, "InProgress ReplicasNotAvailable").await?;
    fixture.patch(web, json!({ "spec": { "minReadySeconds": 0 } })).await?;
    fixture.is("minReadySeconds of 0", web, "Ready").await?;

    fixture.kubectl("rollout pause deployment/web").await?;
    fixture.kubectl("set image deployment/web server=shop/web:3").await?;
    fixture.is("paused and changed", web, "Suspended").await?;
    fixture.kubectl("scale deployment/web --replicas=0").await?;
    fixture.kubectl("rollout resume deployment/web").await?;
    fixture.is("scaled to 0 and resumed", web, "Ready").await?;

    fixture.kubectl("delete --wait=false deployment/web").await?;
    fixture.is("deleted", web, "Terminating").await?;
    fixture.release(web).await?;
    fixture.is_gone("finalizer removed", web).await?;
    fixture.end("deployment");
    Ok(())
}
