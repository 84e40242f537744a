//! One Rollup with many components.

use serde_json::{Value as Json, json};

use crate::population::uid;

/// The plural of the components' kind.
pub const PLURAL: &str = "engines";

/// The namespace of the components.
pub const NAMESPACE: &str = "default";

/// The CRD of the components.
pub fn definition() -> Json {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{PLURAL}.ops.example")},
        "spec": {
            "group": "ops.example",
            "names": {"kind": "Engine", "plural": PLURAL},
            "scope": "Namespaced",
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": open, "status": open},
                }},
            }],
        },
    })
}

pub fn rollup() -> Json {
    json!({
        "apiVersion": "bellwether.dev/v1alpha1",
        "kind": "Rollup",
        "metadata": {"name": "umbrella", "uid": uid(999_999)},
        "spec": {"components": [
            {"group": "ops.example", "kind": "Engine", "selector": {"matchLabels": {"tier": "core"}}},
        ]},
    })
}

/// The name of a component.
pub fn name(number: usize) -> String {
    format!("engine-{number}")
}

/// A component without a status.
pub fn component(number: usize) -> Json {
    json!({
        "apiVersion": "ops.example/v1",
        "kind": "Engine",
        "metadata": {
            "name": name(number), "namespace": NAMESPACE, "uid": uid(number), "generation": 1,
            "labels": {"tier": "core", "app.kubernetes.io/name": name(number)},
        },
        "spec": {"size": 3},
    })
}

/// The status that an operator writes.
pub fn status(ready: bool) -> Json {
    let condition = |kind: &str, status: &str| {
        json!({
            "type": kind, "status": status, "reason": if ready { "InstallSucceeded" } else { "HealInProgress" },
            "message": if ready { "all three copies are running" } else { "two of three copies are running" },
            "lastTransitionTime": if ready { "2026-11-14T09:00:00Z" } else { "2026-11-14T10:00:00Z" },
        })
    };
    let degraded = if ready { "False" } else { "True" };
    let conditions =
        [condition("Available", "True"), condition("Progressing", degraded), condition("Degraded", degraded)];
    json!({ "conditions": conditions })
}
