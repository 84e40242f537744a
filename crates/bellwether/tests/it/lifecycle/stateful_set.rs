//! StatefulSet: ordered start, partitioned rollout, missing image, OnDelete, scaling, minReadySeconds.

use anyhow::Result;
use serde_json::json;

use super::{Story, pod};

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
      schedulerName: the-story
      containers: [{name: server, image: 'shop/db:1'}]
";

#[tokio::test]
async fn stateful_set() -> Result<()> {
    let mut story = Story::begin("stateful-set").await?;
    let db = "statefulset/db";
    story.accepted("accepted", STATEFUL_SET).await?;
    story.apply(STATEFUL_SET).await?;
    story.is("first Pod pending", db, "InProgress ReplicasNotReady 0%").await?;
    story.bind_all(1).await?;
    story.is("first Pod ready, second pending", db, "InProgress ReplicasNotReady 33%").await?;
    story.bind_all(1).await?;
    story.is("second Pod ready, third pending", db, "InProgress ReplicasNotReady 66%").await?;
    story.bind_all(1).await?;
    story.is("all Pods ready", db, "Ready").await?;

    // The finalizer of the old Pod holds the rollout.
    story.hold("pod/db-2").await?;
    let partition = json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 2 } } } });
    story.patch(db, partition).await?;
    story.kubectl("set image statefulset/db server=shop/db:2").await?;
    story.is("new image with partition 2", db, "InProgress RollingOut 100%").await?;
    story.release("pod/db-2").await?;
    let updated = story.next_pod().await?;
    story.is("old Pod removed", db, "InProgress ReplicasNotReady 66%").await?;
    story.bind(&updated).await?;
    story.is("new Pod ready", db, "Ready").await?;

    story.hold("pod/db-1").await?;
    story.patch(db, json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 0 } } } })).await?;
    story.is("new image without partition", db, "InProgress RollingOut 100%").await?;
    story.release("pod/db-1").await?;
    story.bind_all(1).await?;
    let last = story.next_pod().await?;
    story.is("two Pods updated", db, "InProgress ReplicasNotReady 66%").await?;
    story.bind(&last).await?;
    story.is("three Pods updated", db, "Ready").await?;

    story.kubectl("set image statefulset/db server=shop/db:tpyo").await?;
    story.is("image does not exist", db, "InProgress ReplicasNotReady 66%").await?;
    story.waiting(1).await?;
    story.report("pod/db-2", pod::image_pull_back_off("shop/db:tpyo")).await?;
    story.is("its Pod", "pod/db-2", "Failed ImagePullBackOff").await?;
    story.kubectl("set image statefulset/db server=shop/db:2").await?;
    // Kubernetes does not replace a broken Pod: a user must delete it.
    story.is("image corrected", db, "InProgress ReplicasNotReady 66%").await?;
    story.kubectl("delete pod/db-2").await?;
    story.bind_all(1).await?;
    story.is("repaired", db, "Ready").await?;

    let on_delete = json!({ "spec": { "updateStrategy": { "type": "OnDelete", "rollingUpdate": null } } });
    story.patch(db, on_delete).await?;
    story.kubectl("set image statefulset/db server=shop/db:3").await?;
    story.is("new image with OnDelete", db, "Ready").await?;
    story.kubectl("delete pod/db-0").await?;
    story.is("first Pod deleted", db, "InProgress ReplicasNotReady 66%").await?;
    story.bind_all(1).await?;
    story.is("first Pod ready with the new image", db, "Ready").await?;

    story.hold("pod/db-2").await?;
    story.kubectl("scale statefulset/db --replicas=1").await?;
    story.is("scaled to 1", db, "InProgress ScalingDown").await?;
    story.release("pod/db-2").await?;
    story.is("other Pods removed", db, "Ready").await?;
    story.patch(db, json!({ "spec": { "minReadySeconds": 300 } })).await?;
    story.is("minReadySeconds of 5 minutes", db, "InProgress ReplicasNotAvailable").await?;
    story.patch(db, json!({ "spec": { "minReadySeconds": 0 } })).await?;
    story.is("minReadySeconds of 0", db, "Ready").await?;
    story.report("pod/db-0", pod::crash_loop(4)).await?;
    story.is("CrashLoopBackOff", db, "InProgress ReplicasNotReady 0%").await?;
    story.kubectl("scale statefulset/db --replicas=0").await?;
    story.is("scaled to 0", db, "Ready").await?;

    story.kubectl("delete --wait=false statefulset/db").await?;
    story.is("deleted", db, "Terminating").await?;
    story.release(db).await?;
    story.is_gone("finalizer removed", db).await?;
    story.end("stateful_set");
    Ok(())
}
