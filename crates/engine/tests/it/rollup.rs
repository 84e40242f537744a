//! Rollups: components with the conditions Available, Progressing, Degraded and Upgradeable.

mod component_selection;
mod condition_matrix;
mod edge_cases;
mod invalid_specs;
mod reasons_and_messages;

use bellwether_api::RollupStatus;
use bellwether_engine::{GroupKind, NamespacedName, ServedResource};
use serde_json::{Value, json};

use crate::{objects, world::World};

const ROLLUP: &str = "Rollup.bellwether.dev";

/// A cluster with three more kinds, two namespaced and one cluster-scoped, and these objects.
fn world(objects: impl IntoIterator<Item = Value>) -> World {
    let mut world = World::new();
    let kinds = [
        (ROLLUP, "rollups", false),
        ("Virt.ops.example", "virts", true),
        ("Store.ops.example", "stores", false),
        ("Net.ops.example", "nets", true),
    ];
    for (kind, plural, namespaced) in kinds {
        let served = ServedResource {
            version: "v1".into(),
            versions: Box::new(["v1".into()]),
            plural: plural.into(),
            namespaced,
            has_status: true,
        };
        world.server.kinds.insert(objects::kind(kind), served);
    }
    for object in objects {
        world.server.put(object);
    }
    world.settle();
    world
}

/// With more fields in its spec.
fn rollup(components: &Value, fields: &Value) -> Value {
    let spec = objects::with(json!({"components": components}), fields);
    json!({
        "apiVersion": "bellwether.dev/v1alpha1", "kind": "Rollup", "metadata": {"name": "umbrella"}, "spec": spec,
    })
}

/// An entry of a namespaced kind.
fn virt_named(name: &str) -> Value {
    json!({"group": "ops.example", "kind": "Virt", "namespace": "virt", "name": name})
}

fn component(kind: &str, namespace: Option<&str>, name: &str, conditions: &[Value]) -> Value {
    json!({
        "apiVersion": "ops.example/v1", "kind": kind,
        "metadata": {
            "name": name, "namespace": namespace, "labels": {"tier": "core"},
            "creationTimestamp": "2026-11-14T09:00:00Z",
        },
        "spec": {"size": 1},
        "status": {"conditions": conditions},
    })
}

fn virt(name: &str, conditions: &[Value]) -> Value {
    component("Virt", Some("virt"), name, conditions)
}

/// With a transition at 09:`minute`. Scenarios start at 10:00.
fn condition(kind: &str, status: &str, reason: &str, message: &str, minute: u8) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": format!("2026-11-14T09:{minute:02}:00Z"),
    })
}

/// Each with its own reason.
fn conditions([available, progressing, degraded]: [&str; 3]) -> Vec<Value> {
    vec![
        condition("Available", available, "InstallSucceeded", "works", 1),
        condition("Progressing", progressing, "UpgradeInProgress", "goes on", 2),
        condition("Degraded", degraded, "HealFailed", "has lost a disk", 3),
    ]
}

const HEALTHY: [&str; 3] = ["True", "False", "False"];

impl World {
    fn umbrella(&self) -> RollupStatus {
        let object = self
            .server
            .get(&objects::kind(ROLLUP), &NamespacedName::new("", "umbrella"))
            .expect("it is there");
        let status = object["status"].clone();
        if status.is_null() {
            RollupStatus::default()
        } else {
            serde_json::from_value(status).expect("a status")
        }
    }

    /// In a line; empty if there is none of the type.
    fn of_umbrella(&self, kind: &str) -> String {
        let status = self.umbrella();
        let condition = status.conditions.iter().find(|condition| condition.type_ == kind);
        condition.map_or_else(String::new, |condition| {
            format!("{} {}: {}", condition.status, condition.reason, condition.message)
        })
    }

    fn triple(&self) -> [String; 3] {
        ["Available", "Progressing", "Degraded"]
            .map(|kind| self.of_umbrella(kind).split(' ').next().unwrap_or_default().to_owned())
    }

    fn remove(&mut self, kind: &str, namespace: &str, name: &str) {
        let kind = GroupKind::new("ops.example", kind);
        assert!(
            self.server.get(&kind, &NamespacedName::new(namespace, name)).is_some(),
            "there is no {kind} {name}"
        );
        self.server.remove(&kind, &NamespacedName::new(namespace, name));
        self.settle();
    }
}
