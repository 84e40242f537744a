//! Those who tidy up in a cluster: the garbage collector, and whoever runs Pods.

use std::rc::Rc;

use bellwether_engine::GroupKind;
use bellwether_memory_cluster::Garbage;
use rand::Rng as _;
use serde_json::json;

use super::World;

impl World<'_> {
    /// The garbage collector removes what is owned by nobody who is there.
    pub(super) fn collect(&mut self) {
        self.collecting = false;
        for Garbage { object, solid } in self.clusters.hub.store.garbage(|uid| uid == "f1") {
            self.tell(|| {
                format!("the garbage collector: {} {} is owned by what is gone", object.kind, object.name)
            });
            if solid.is_empty() {
                self.clusters.hub.store.remove(&object.kind, &object.name);
            } else {
                let mut value = object.value.clone();
                value["metadata"]["ownerReferences"] = json!(solid);
                self.clusters.hub.store.put(value);
            }
        }
    }

    /// Whoever runs Pods starts those that check something, and removes those that are to end.
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
                let ready = if self.chance.random() { "True" } else { "False" };
                value["status"] =
                    json!({"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]});
                self.clusters.hub.store.put(value);
            }
        }
    }
}
