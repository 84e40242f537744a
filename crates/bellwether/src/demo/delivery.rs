//! The tool that delivers Deployments from the hub to the clusters. Bellwether only observes.

use serde_json::{Value, json};

use super::{
    memory::{count, text},
    store::Store,
    workloads::deployment,
};

/// The paused Deployments of the hub, as the clusters get them.
pub(super) fn templates(hub: &Store) -> Vec<Value> {
    let mut templates = hub.all(&deployment());
    templates.retain(|it| it["spec"]["paused"] == true);
    templates.iter().map(manifest).collect()
}

fn manifest(template: &Value) -> Value {
    let (metadata, mut spec) = (&template["metadata"], template["spec"].clone());
    spec.as_object_mut().map(|fields| fields.remove("paused"));
    json!({
        "apiVersion": template["apiVersion"], "kind": template["kind"],
        "metadata": { "name": metadata["name"], "labels": metadata["labels"] },
        "spec": spec,
    })
}

/// Creates a Deployment in all clusters at once, and updates it in one cluster after the other: in the next when it is
/// rolled out in those before.
pub(super) fn deliver<'s>(template: &Value, clusters: impl Iterator<Item = &'s mut Store>) {
    for store in clusters {
        let Some(delivered) = store.get(&deployment(), text(&template["metadata"]["name"])) else {
            store.apply(template);
            continue;
        };
        if delivered["spec"] != template["spec"] {
            store.apply(template);
            return;
        }
        if !is_rolled_out(delivered) {
            return;
        }
    }
}

fn is_rolled_out(it: &Value) -> bool {
    let (status, wanted) = (&it["status"], count(&it["spec"]["replicas"]));
    let replicas = ["replicas", "updatedReplicas", "readyReplicas"].map(|field| count(&status[field]));
    status["observedGeneration"] == it["metadata"]["generation"] && replicas == [wanted; 3]
}
