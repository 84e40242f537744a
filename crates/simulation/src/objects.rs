//! The objects of the stories. They live in the namespace `shop` and carry the label `app: web`, unless a story says
//! otherwise.

use std::collections::BTreeMap;

use bellwether_api::{APPLICATION_ANNOTATION, GROUP, VERSION};
use bellwether_engine::{GroupKind, NamespacedName, Served};
use bellwether_memory_cluster::served;
use serde_json::{Value, json};

use crate::object::merge;

/// The namespace of all stories.
pub const NAMESPACE: &str = "shop";

/// The kinds that the cluster serves.
pub fn kinds() -> BTreeMap<GroupKind, Served> {
    [
        ("Application.bellwether.dev", &["v1alpha1"][..], "applications", true),
        ("HealthRule.bellwether.dev", &["v1alpha1"], "healthrules", false),
        ("Rollup.bellwether.dev", &["v1alpha1"], "rollups", false),
        ("Application.app.k8s.io", &["v1beta1"], "applications", true),
        ("Deployment.apps", &["v1"], "deployments", true),
        ("Service", &["v1"], "services", true),
        ("Pod", &["v1"], "pods", true),
        ("Widget.acme.io", &["v2", "v1"], "widgets", true),
        ("Platform.acme.io", &["v1"], "platforms", false),
        ("ClusterRole.rbac.authorization.k8s.io", &["v1"], "clusterroles", false),
    ]
    .map(|(name, versions, plural, namespaced)| (kind(name), served(versions, plural, namespaced)))
    .into()
}

/// The kind that kubectl writes like this: `Deployment.apps`.
pub fn kind(text: &str) -> GroupKind {
    let (kind, group) = text.split_once('.').unwrap_or((text, ""));
    GroupKind::new(group, kind)
}

/// An object of the stories.
pub fn key(text: &str, name: &str) -> (GroupKind, NamespacedName) {
    let kind = kind(text);
    let is_nowhere = matches!(&*kind.kind, "HealthRule" | "ClusterRole" | "Rollup" | "Platform");
    let namespace = if is_nowhere { "" } else { NAMESPACE };
    (kind, NamespacedName::new(namespace, name))
}

fn object(api_version: &str, kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": "web"}},
    })
}

/// The same object, with these fields besides.
pub fn with(mut object: Value, fields: &Value) -> Value {
    merge(&mut object, fields);
    object
}

/// An Application that selects `app: web`, with this spec besides.
pub fn app(name: &str, spec: &Value) -> Value {
    let object = object(&format!("{GROUP}/{VERSION}"), "Application", name);
    let object = with(object, &json!({"metadata": {"labels": null}}));
    with(object, &json!({"spec": with(json!({"selector": {"matchLabels": {"app": "web"}}}), spec)}))
}

/// An Application of `app.k8s.io` that selects `app: web`, with this spec besides.
pub fn old_app(name: &str, spec: &Value) -> Value {
    with(app(name, spec), &json!({"apiVersion": "app.k8s.io/v1beta1"}))
}

/// An Application of all Deployments and Widgets with `app: web`.
pub fn app_of_kinds(name: &str) -> Value {
    app(
        name,
        &json!({"componentKinds": [{"group": "apps", "kind": "Deployment"}, {"group": "acme.io", "kind": "Widget"}]}),
    )
}

/// An Application that names these Deployments.
pub fn app_of(name: &str, deployments: &[&str]) -> Value {
    let component = |name: &&str| ((*name).to_owned(), json!({"group": "apps", "kind": "Deployment"}));
    let components: serde_json::Map<_, _> = deployments.iter().map(component).collect();
    app(name, &json!({ "components": components }))
}

/// A Deployment with so many ready replicas.
pub fn deployment(name: &str, ready: i64, of: i64) -> Value {
    let status = json!({
        "observedGeneration": 1, "replicas": of, "updatedReplicas": of, "readyReplicas": ready, "availableReplicas": ready,
        "unavailableReplicas": of - ready,
    });
    let fields = json!({"spec": {"replicas": of}, "status": status});
    with(object("apps/v1", "Deployment", name), &fields)
}

/// A custom resource with a Ready condition of this status, or without any.
pub fn widget(name: &str, ready: Option<&str>) -> Value {
    let condition = |status: &str| json!({"conditions": [{"type": "Ready", "status": status, "reason": "Working", "message": "cogs turn"}]});
    let fields = json!({"spec": {"size": 1}, "status": ready.map_or(json!({}), condition)});
    with(object("acme.io/v2", "Widget", name), &fields)
}

/// A custom resource that is in no namespace.
pub fn platform(name: &str) -> Value {
    let fields = json!({"metadata": {"namespace": null}, "spec": {"size": 1}});
    with(object("acme.io/v1", "Platform", name), &fields)
}

/// A Rollup with this spec.
pub fn rollup(name: &str, spec: &Value) -> Value {
    let fields = json!({"metadata": {"namespace": null, "labels": null}, "spec": spec});
    with(object(&format!("{GROUP}/{VERSION}"), "Rollup", name), &fields)
}

/// A Service, which is ready as soon as it is there.
pub fn service(name: &str) -> Value {
    with(object("v1", "Service", name), &json!({"spec": {"type": "ClusterIP"}}))
}

/// The same object, handed over to an Application by its annotation.
pub fn annotated(object: Value, app: &str) -> Value {
    with(object, &json!({"metadata": {"annotations": {APPLICATION_ANNOTATION: app}}}))
}

/// A health check with this container image. Without any, no API server accepts it.
pub fn health_check(image: &str) -> Value {
    let container =
        json!({"name": "check", "image": image, "readinessProbe": {"exec": {"command": ["true"]}}});
    json!({"healthCheck": {"template": {"spec": {"containers": [container]}}}})
}

/// A Pod that runs, ready or not.
pub fn pod(name: &str, ready: bool) -> Value {
    let status = if ready { "True" } else { "False" };
    let status = json!({
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": status}],
        "containerStatuses": [{"name": "main", "ready": ready, "restartCount": 0, "state": {"running": {}}}],
    });
    let fields = json!({"spec": {"containers": [{"name": "main", "image": "main:1"}]}, "status": status});
    with(object("v1", "Pod", name), &fields)
}

/// A Pod for which no node has been found since the beginning of the stories.
pub fn unschedulable_pod(name: &str) -> Value {
    let condition = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node is large enough",
        "lastTransitionTime": "2026-11-14T10:00:00Z",
    });
    with(
        pod(name, false),
        &json!({"status": {"phase": "Pending", "conditions": [condition], "containerStatuses": null}}),
    )
}
