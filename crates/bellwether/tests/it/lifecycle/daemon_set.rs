//! DaemonSet: nodes that start and stop to match, rolling updates, OnDelete, minReadySeconds.

use anyhow::Result;
use serde_json::json;

use super::{Story, pod};

#[tokio::test]
async fn daemon_set() -> Result<()> {
    let mut story = Story::begin("daemon-set").await?;
    let (agent, label) = ("daemonset/agent", story.namespace.clone());
    // A label that no other test uses.
    let manifest = format!(
        "
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: agent, finalizers: [example.com/hold]}}
spec:
  selector: {{matchLabels: {{app: agent}}}}
  template:
    metadata: {{labels: {{app: agent}}}}
    spec:
      schedulerName: the-story
      nodeSelector: {{{label}: wanted}}
      containers: [{{name: server, image: 'shop/agent:1'}}]
"
    );
    story.accepted("accepted", &manifest).await?;
    story.apply(&manifest).await?;
    story.is("no node matches", agent, "Ready").await?;
    story.kubectl(&format!("label node/node-0 {label}=wanted")).await?;
    story.is("a node matches, Pod pending", agent, "InProgress ReplicasNotReady 0%").await?;
    story.bind_all(1).await?;
    story.is("Pod ready", agent, "Ready ReplicasReady 100% 1 of 1").await?;
    story.kubectl(&format!("label node/node-1 {label}=wanted")).await?;
    story.is("a second node matches, Pod pending", agent, "InProgress ReplicasNotReady 50%").await?;
    story.bind_all(1).await?;
    story.is("both Pods ready", agent, "Ready ReplicasReady 100% 2 of 2").await?;

    story.kubectl("set image daemonset/agent server=shop/agent:2").await?;
    let updated = story.next_pod().await?;
    story.is("new image, first Pod pending", agent, "InProgress RollingOut 50% 1 of 2").await?;
    story.bind(&updated).await?;
    let updated = story.next_pod().await?;
    story.is("first Pod ready, second pending", agent, "InProgress ReplicasNotReady 50%").await?;
    story.bind(&updated).await?;
    story.is("both Pods ready with the new image", agent, "Ready").await?;

    story.kubectl("set image daemonset/agent server=shop/agent:tpyo").await?;
    let broken = story.next_pod().await?;
    story.report(&broken, pod::image_pull_back_off("shop/agent:tpyo")).await?;
    story.is("image does not exist", agent, "InProgress RollingOut 50% 1 of 2").await?;
    story.is("its Pod", &broken, "Failed ImagePullBackOff").await?;
    story.kubectl("set image daemonset/agent server=shop/agent:2").await?;
    story.kubectl(&format!("wait --for=delete {broken} --timeout=5m")).await?;
    story.bind_all(1).await?;
    story.is("repaired", agent, "Ready").await?;

    let on_delete = json!({ "spec": { "updateStrategy": { "type": "OnDelete", "rollingUpdate": null } } });
    story.patch(agent, on_delete).await?;
    story.kubectl("set image daemonset/agent server=shop/agent:3").await?;
    story.is("new image with OnDelete", agent, "Ready").await?;
    story.kubectl(&format!("label node/node-1 {label}-")).await?;
    story.is("only one node matches", agent, "Ready ReplicasReady 100% 1 of 1").await?;

    story.patch(agent, json!({ "spec": { "minReadySeconds": 300 } })).await?;
    story.is("minReadySeconds of 5 minutes", agent, "InProgress ReplicasNotAvailable").await?;
    story.patch(agent, json!({ "spec": { "minReadySeconds": 0 } })).await?;
    story.is("minReadySeconds of 0", agent, "Ready").await?;

    story.kubectl("delete --wait=false daemonset/agent").await?;
    story.is("deleted", agent, "Terminating").await?;
    story.release(agent).await?;
    story.is_gone("finalizer removed", agent).await?;
    story.kubectl(&format!("label node/node-0 {label}-")).await?;
    story.end("daemon_set");
    Ok(())
}
