//! Nodes whose kubelets kwok simulates.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};
use serde_json::json;

use crate::wait::eventually;

/// Creates nodes and waits until all of them accept Pods.
pub(crate) async fn create(client: &Client, count: usize, within: Duration) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    for number in 0..count {
        let node: Node = serde_json::from_value(json!({
            "metadata": {
                "name": format!("node-{number}"),
                "labels": { "kubernetes.io/hostname": format!("node-{number}"), "kubernetes.io/os": "linux" },
            },
        }))?;
        nodes.create(&PostParams::default(), &node).await.context("cannot create a node")?;
    }
    eventually(within, "the nodes are ready", async || {
        let all = nodes.list(&ListParams::default()).await?;
        Ok(all.items.len() == count && all.items.iter().all(is_schedulable))
    })
    .await
}

/// Ready, and without the taints that admission and the controllers set on a node until it is ready.
fn is_schedulable(node: &Node) -> bool {
    let ready = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let tainted = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten()).next().is_some();
    !tainted && ready.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}
