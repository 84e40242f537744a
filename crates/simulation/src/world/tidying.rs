//! The garbage collector and the kubelet of the hub.

use std::rc::Rc;

use bellwether_engine::GroupKind;
use bellwether_memory_cluster::Garbage;
use rand::Rng as _;
use serde_json::json;

use super::World;

impl World<'_> {
    /// Deletes objects whose owners are all gone, and removes references to owners that are gone.
    pub(super) fn collect(&mut self) {
        self.collecting = false;
        for Garbage { object, solid } in self.clusters.hub.store.garbage(|uid| uid == "f1") {
            self.tell(|| format!("garbage collector: an owner of {} {} is gone", object.kind, object.name));
            if solid.is_empty() {
                self.clusters.hub.store.remove(&object.kind, &object.name);
            } else {
                let mut value = object.value.clone();
                value["metadata"]["ownerReferences"] = json!(solid);
                self.clusters.hub.store.put(value);
            }
        }
    }

    /// Starts health-check Pods, ready or not, and removes those that are being deleted.
    pub(super) fn run_pods(&mut self) {
        self.running_pods = false;
        let pods: Vec<_> = self
            .clusters
            .hub
            .store
            .of_kind(&GroupKind::pod())
            .filter(|pod| pod.is_check())
            .map(Rc::clone)
            .collect();
        for pod in pods {
            if pod.is_deleting() {
                self.clusters.hub.store.remove(&pod.kind, &pod.name);
            } else if pod.value.get("status").is_none_or(serde_json::Value::is_null) {
                let mut value = pod.value.clone();
                let ready = if self.rng.random() { "True" } else { "False" };
                value["status"] =
                    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]});
                self.clusters.hub.store.put(value);
            }
        }
    }
}
