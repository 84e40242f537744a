//! A StatefulSet from its creation to its end.

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
    story.is("its first Pod waits for a node", db, "InProgress ReplicasNotReady 0%").await?;
    story.bind_all(1).await?;
    story.is("the first runs, and the second waits", db, "InProgress ReplicasNotReady 33%").await?;
    story.bind_all(1).await?;
    story.is("the second runs, and the third waits", db, "InProgress ReplicasNotReady 66%").await?;
    story.bind_all(1).await?;
    story.is("all run", db, "Ready").await?;

    // An old Pod that does not go holds a roll-out still.
    story.hold("pod/db-2").await?;
    let partition = json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 2 } } } });
    story.patch(db, partition).await?;
    story.kubectl("set image statefulset/db server=shop/db:2").await?;
    story.is("a new image for one of three", db, "InProgress RollingOut 100%").await?;
    story.release("pod/db-2").await?;
    let updated = story.next_pod().await?;
    story.is("the old Pod has gone", db, "InProgress ReplicasNotReady 66%").await?;
    story.bind(&updated).await?;
    story.is("the new one runs", db, "Ready").await?;

    story.hold("pod/db-1").await?;
    story.patch(db, json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 0 } } } })).await?;
    story.is("the new image for all", db, "InProgress RollingOut 100%").await?;
    story.release("pod/db-1").await?;
    story.bind_all(1).await?;
    let last = story.next_pod().await?;
    story.is("two have it", db, "InProgress ReplicasNotReady 66%").await?;
    story.bind(&last).await?;
    story.is("three have it", db, "Ready").await?;

    story.kubectl("set image statefulset/db server=shop/db:tpyo").await?;
    story.is("an image that there is none of", db, "InProgress ReplicasNotReady 66%").await?;
    story.waiting(1).await?;
    story.report("pod/db-2", pod::image_pull_back_off("shop/db:tpyo")).await?;
    story.is("the Pod with it", "pod/db-2", "Failed ImagePullBackOff").await?;
    story.kubectl("set image statefulset/db server=shop/db:2").await?;
    // Kubernetes leaves the broken Pod alone: a person must delete it.
    story.is("the image is put right", db, "InProgress ReplicasNotReady 66%").await?;
    story.kubectl("delete pod/db-2").await?;
    story.bind_all(1).await?;
    story.is("repaired", db, "Ready").await?;

    let on_delete = json!({ "spec": { "updateStrategy": { "type": "OnDelete", "rollingUpdate": null } } });
    story.patch(db, on_delete).await?;
    story.kubectl("set image statefulset/db server=shop/db:3").await?;
    story.is("a new image for whoever is deleted", db, "Ready").await?;
    story.kubectl("delete pod/db-0").await?;
    story.is("the first is deleted", db, "InProgress ReplicasNotReady 66%").await?;
    story.bind_all(1).await?;
    story.is("it runs, with the new image", db, "Ready").await?;

    story.hold("pod/db-2").await?;
    story.kubectl("scale statefulset/db --replicas=1").await?;
    story.is("scaled to one", db, "InProgress ScalingDown").await?;
    story.release("pod/db-2").await?;
    story.is("the others have gone", db, "Ready").await?;
    story.patch(db, json!({ "spec": { "minReadySeconds": 300 } })).await?;
    story.is("it counts only after 5 minutes", db, "InProgress ReplicasNotAvailable").await?;
    story.patch(db, json!({ "spec": { "minReadySeconds": 0 } })).await?;
    story.is("it counts at once", db, "Ready").await?;
    story.report("pod/db-0", pod::crash_loop(4)).await?;
    story.is("it crashes", db, "InProgress ReplicasNotReady 0%").await?;
    story.kubectl("scale statefulset/db --replicas=0").await?;
    story.is("scaled to nothing", db, "Ready").await?;

    story.kubectl("delete --wait=false statefulset/db").await?;
    story.is("deleted", db, "Terminating").await?;
    story.release(db).await?;
    story.is_gone("its finalizer has gone", db).await?;
    story.end("stateful_set");
    Ok(())
}
