//! The CRD of the Applications of `app.k8s.io`, in `apiextensions.k8s.io/v1`.

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

/// Requires and validates as little as the released CRD does.
pub fn app_k8s_io() -> Result<CustomResourceDefinition> {
    let (plural, group) = ("applications", "app.k8s.io");
    Ok(serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            // The API server requires this annotation in groups that end in k8s.io.
            "annotations": {"api-approved.kubernetes.io": "unapproved, restated for tests"},
        },
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "kind": "Application", "listKind": "ApplicationList", "plural": plural, "singular": "application",
                "shortNames": ["app"], "categories": ["all"],
            },
            "versions": [{
                "name": "v1beta1", "served": true, "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "Type", "type": "string", "jsonPath": ".spec.descriptor.type"},
                    {"name": "Version", "type": "string", "jsonPath": ".spec.descriptor.version"},
                    {"name": "Owner", "type": "boolean", "jsonPath": ".spec.addOwnerRef"},
                    {"name": "Ready", "type": "string", "jsonPath": ".status.componentsReady"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
                "schema": {"openAPIV3Schema": object(&json!({
                    "apiVersion": text(), "kind": text(), "metadata": {"type": "object"},
                    "spec": spec(), "status": status(),
                }))},
            }],
        },
    }))?)
}

fn text() -> Value {
    json!({"type": "string"})
}

fn object(properties: &Value) -> Value {
    json!({"type": "object", "properties": properties})
}

fn list(items: &Value) -> Value {
    json!({"type": "array", "items": items})
}

fn object_with_required(required: &[&str], properties: &Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}

fn spec() -> Value {
    let contact = object(&json!({"name": text(), "url": text(), "email": text()}));
    let kind = object_with_required(&["group", "kind"], &json!({"group": text(), "kind": text()}));
    let expression = object_with_required(
        &["key", "operator"],
        &json!({"key": text(), "operator": text(), "values": list(&text())}),
    );
    let icon = object_with_required(&["src"], &json!({"src": text(), "size": text(), "type": text()}));
    let descriptor = object(&json!({
        "type": text(), "version": text(), "description": text(), "notes": text(), "icons": list(&icon),
        "maintainers": list(&contact), "owners": list(&contact), "keywords": list(&text()),
        "links": list(&object(&json!({"description": text(), "url": text()}))),
    }));
    // Controllers do not resolve these references.
    let loose = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    object(&json!({
        "addOwnerRef": {"type": "boolean"},
        "assemblyPhase": text(),
        "componentKinds": list(&kind),
        "descriptor": descriptor,
        "info": list(&object(&json!({"name": text(), "type": text(), "value": text(), "valueFrom": loose}))),
        "selector": object(&json!({
            "matchLabels": {"type": "object", "additionalProperties": text()},
            "matchExpressions": list(&expression),
        })),
    }))
}

fn status() -> Value {
    let time = json!({"type": "string", "format": "date-time"});
    let condition = object_with_required(
        &["type", "status"],
        &json!({
            "type": text(), "status": text(), "reason": text(), "message": text(),
            "lastUpdateTime": time, "lastTransitionTime": time,
        }),
    );
    let component =
        object(&json!({"link": text(), "name": text(), "kind": text(), "group": text(), "status": text()}));
    object(&json!({
        "observedGeneration": {"type": "integer", "format": "int64"},
        "conditions": list(&condition),
        "components": list(&component),
        "componentsReady": text(),
    }))
}
