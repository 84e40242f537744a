//! StatefulSet: ordered start, partitioned rollout, missing image, OnDelete, scaling, minReadySeconds.

use anyhow::Result;
use serde_json::json;

use super::{LifecycleFixture, pod};

const STATEFUL_SET: &str = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, finalizers: [example.com/hold]}
spec:
  replicas: 3
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      schedulerName: no-scheduler
      containers: [{name: server, image: 'shop/db:1'}]
";

#[tokio::test]
async fn stateful_set() -> Result<()> {
    let mut fixture = LifecycleFixture::new("stateful-set").await?;
    let db = "statefulset/db";
    fixture.accepted("accepted", STATEFUL_SET).await?;
    fixture.apply(STATEFUL_SET).await?;
    fixture.is("first Pod pending", db, "InProgress ReplicasNotReady 0%").await?;
    fixture.bind_all(1).await?;
    fixture.is("first Pod ready, second pending", db, "InProgress ReplicasNotReady 33%").await?;
    fixture.bind_all(1).await?;
    fixture.is("second Pod ready, third pending", db, "InProgress ReplicasNotReady 66%").await?;
    fixture.bind_all(1).await?;
    fixture.is("all Pods ready", db, "Ready").await?;

    // The finalizer of the old Pod holds the rollout.
    fixture.hold("pod/db-2").await?;
    let partition = json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 2 } } } });
    fixture.patch(db, partition).await?;
    fixture.kubectl("set image statefulset/db server=shop/db:2").await?;
    fixture.is("new image with partition 2", db, "InProgress RollingOut 66%").await?;
    fixture.release("pod/db-2").await?;
    let updated = fixture.next_pod().await?;
    fixture.is("old Pod removed", db, "InProgress ReplicasNotReady 66%").await?;
    fixture.bind(&updated).await?;
    fixture.is("new Pod ready", db, "Ready").await?;

    fixture.hold("pod/db-1").await?;
    fixture
        .patch(db, json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 0 } } } }))
        .await?;
    fixture.is("new image without partition", db, "InProgress RollingOut 33%").await?;
    fixture.release("pod/db-1").await?;
    fixture.bind_all(1).await?;
    let last = fixture.next_pod().await?;
    fixture.is("two Pods updated", db, "InProgress ReplicasNotReady 66%").await?;
    fixture.bind(&last).await?;
    fixture.is("three Pods updated", db, "Ready").await?;

    fixture.kubectl("set image statefulset/db server=shop/db:tpyo").await?;
    fixture.is("image does not exist", db, "InProgress ReplicasNotReady 33%").await?;
    fixture.waiting(1).await?;
    fixture.report("pod/db-2", pod::image_pull_back_off("shop/db:tpyo")).await?;
    fixture.is("its Pod", "pod/db-2", "Failed ImagePullBackOff").await?;
    fixture.kubectl("set image statefulset/db server=shop/db:2").await?;
    // Kubernetes does not replace a broken Pod: a user must delete it.
    fixture.is("image corrected", db, "InProgress ReplicasNotReady 66%").await?;
    fixture.kubectl("delete pod/db-2").await?;
    fixture.bind_all(1).await?;
    fixture.is("repaired", db, "Ready").await?;

    let on_delete = json!({ "spec": { "updateStrategy": { "type": "OnDelete", "rollingUpdate": null } } });
    fixture.patch(db, on_delete).await?;
    fixture.kubectl("set image statefulset/db server=shop/db:3").await?;
    fixture.is("new image with OnDelete", db, "Ready").await?;
    fixture.kubectl("delete pod/db-0").await?;
    fixture.is("first Pod deleted", db, "InProgress ReplicasNotReady 66%").await?;
    fixture.bind_all(1).await?;
    fixture.is("first Pod ready with the new image", db, "Ready").await?;

    fixture.hold("pod/db-2").await?;
    fixture.kubectl("scale statefulset/db --replicas=1").await?;
    fixture.is("scaled to 1", db, "InProgress ScalingDown").await?;
    fixture.release("pod/db-2").await?;
    fixture.is("other Pods removed", db, "Ready").await?;
    fixture.patch(db, json!({ "spec": { "minReadySeconds": 300 } })).await?;
    fixture.is("minReadySeconds of 5 minutes", db, "InProgress ReplicasNotAvailable").await?;
    fixture.patch(db, json!({ "spec": { "minReadySeconds": 0 } })).await?;
    fixture.is("minReadySeconds of 0", db, "Ready").await?;
    fixture.report("pod/db-0", pod::crash_loop(4)).await?;
    fixture.is("CrashLoopBackOff", db, "InProgress ReplicasNotReady 0%").await?;
    fixture.kubectl("scale statefulset/db --replicas=0").await?;
    fixture.is("scaled to 0", db, "Ready").await?;

    fixture.kubectl("delete --wait=false statefulset/db").await?;
    fixture.is("deleted", db, "Terminating").await?;
    fixture.release(db).await?;
    fixture.is_gone("finalizer removed", db).await?;
    fixture.end("stateful_set");
    Ok(())
}
