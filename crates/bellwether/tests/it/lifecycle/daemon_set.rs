//! DaemonSet: nodes that start and stop to match, rolling updates, OnDelete, minReadySeconds.

use anyhow::Result;
use serde_json::json;

use super::{LifecycleFixture, pod};

#[tokio::test]
async fn daemon_set() -> Result<()> {
    let mut fixture = LifecycleFixture::new("daemon-set").await?;
    let (agent, label) = ("daemonset/agent", fixture.namespace.clone());
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
      schedulerName: no-scheduler
      nodeSelector: {{{label}: wanted}}
      containers: [{{name: server, image: 'shop/agent:1'}}]
"
    );
    fixture.accepted("accepted", &manifest).await?;
    fixture.apply(&manifest).await?;
    fixture.is("no node matches", agent, "Ready").await?;
    fixture.kubectl(&format!("label node/node-0 {label}=wanted")).await?;
    fixture.is("a node matches, Pod pending", agent, "InProgress ReplicasNotReady 0%").await?;
    fixture.bind_all(1).await?;
    fixture.is("Pod ready", agent, "Ready ReplicasReady 100% 1 of 1").await?;
    fixture.kubectl(&format!("label node/node-1 {label}=wanted")).await?;
    fixture.is("a second node matches, Pod pending", agent, "InProgress ReplicasNotReady 50%").await?;
    fixture.bind_all(1).await?;
    fixture.is("both Pods ready", agent, "Ready ReplicasReady 100% 2 of 2").await?;

    fixture.kubectl("set image daemonset/agent server=shop/agent:2").await?;
    let updated = fixture.next_pod().await?;
    fixture.is("new image, first Pod pending", agent, "InProgress RollingOut 50% 1 of 2").await?;
    fixture.bind(&updated).await?;
    let updated = fixture.next_pod().await?;
    fixture.is("first Pod ready, second pending", agent, "InProgress ReplicasNotReady 50%").await?;
    fixture.bind(&updated).await?;
    fixture.is("both Pods ready with the new image", agent, "Ready").await?;

    fixture.kubectl("set image daemonset/agent server=shop/agent:tpyo").await?;
    let broken = fixture.next_pod().await?;
    fixture.report(&broken, pod::image_pull_back_off("shop/agent:tpyo")).await?;
    fixture.is("image does not exist", agent, "InProgress RollingOut 50% 1 of 2").await?;
    fixture.is("its Pod", &broken, "Failed ImagePullBackOff").await?;
    fixture.kubectl("set image daemonset/agent server=shop/agent:2").await?;
    fixture.kubectl(&format!("wait --for=delete {broken} --timeout=5m")).await?;
    fixture.bind_all(1).await?;
    fixture.is("repaired", agent, "Ready").await?;

    let on_delete = json!({ "spec": { "updateStrategy": { "type": "OnDelete", "rollingUpdate": null } } });
    fixture.patch(agent, on_delete).await?;
    fixture.kubectl("set image daemonset/agent server=shop/agent:3").await?;
    fixture.is("new image with OnDelete", agent, "Ready").await?;
    fixture.kubectl(&format!("label node/node-1 {label}-")).await?;
    fixture.is("only one node matches", agent, "Ready ReplicasReady 100% 1 of 1").await?;

    fixture.patch(agent, json!({ "spec": { "minReadySeconds": 300 } })).await?;
    fixture.is("minReadySeconds of 5 minutes", agent, "InProgress ReplicasNotAvailable").await?;
    fixture.patch(agent, json!({ "spec": { "minReadySeconds": 0 } })).await?;
    fixture.is("minReadySeconds of 0", agent, "Ready").await?;

    fixture.kubectl("delete --wait=false daemonset/agent").await?;
    fixture.is("deleted", agent, "Terminating").await?;
    fixture.release(agent).await?;
    fixture.is_gone("finalizer removed", agent).await?;
    fixture.kubectl(&format!("label node/node-0 {label}-")).await?;
    fixture.end("daemon_set");
    Ok(())
}
