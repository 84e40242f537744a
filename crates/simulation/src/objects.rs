//! Objects for tests and simulated clusters, by default in namespace `shop` with label `app: web`.

use std::collections::BTreeMap;

use bellwether_api::{APPLICATION_ANNOTATION, GROUP, VERSION};
use bellwether_engine::{GroupKind, NamespacedName, ServedResource};
use bellwether_memory_cluster::served;
use serde_json::{Value, json};

use crate::object::merge;

pub const NAMESPACE: &str = "shop";

pub fn kinds() -> BTreeMap<GroupKind, ServedResource> {
    let served = |name, versions: &[&str], plural, namespaced| {
        let resource = served(versions, plural, namespaced);
        // All of a CombinedStatus is status.
        (kind(name), ServedResource { has_status: plural != "combinedstatuses", ..resource })
    };
    [
        ("Application.bellwether.dev", &["v1alpha1"][..], "applications", true),
        ("BindingPolicy.bellwether.dev", &["v1alpha1"], "bindingpolicies", false),
        ("CombinedStatus.bellwether.dev", &["v1alpha1"], "combinedstatuses", true),
        ("HealthRule.bellwether.dev", &["v1alpha1"], "healthrules", false),
        ("Rollup.bellwether.dev", &["v1alpha1"], "rollups", false),
        ("StatusCollector.bellwether.dev", &["v1alpha1"], "statuscollectors", false),
        ("Application.app.k8s.io", &["v1beta1"], "applications", true),
        ("Deployment.apps", &["v1"], "deployments", true),
        ("ReplicaSet.apps", &["v1"], "replicasets", true),
        ("StatefulSet.apps", &["v1"], "statefulsets", true),
        ("DaemonSet.apps", &["v1"], "daemonsets", true),
        ("Job.batch", &["v1"], "jobs", true),
        ("EndpointSlice.discovery.k8s.io", &["v1"], "endpointslices", true),
        ("Service", &["v1"], "services", true),
        ("Pod", &["v1"], "pods", true),
        ("Widget.acme.io", &["v2", "v1"], "widgets", true),
        ("Platform.acme.io", &["v1"], "platforms", false),
        ("ClusterRole.rbac.authorization.k8s.io", &["v1"], "clusterroles", false),
    ]
    .map(|(name, versions, plural, namespaced)| served(name, versions, plural, namespaced))
    .into()
}

/// Parses a kind in the form of kubectl, such as `Deployment.apps`.
pub fn kind(text: &str) -> GroupKind {
    let (kind, group) = text.split_once('.').unwrap_or((text, ""));
    GroupKind::new(group, kind)
}

/// The identity of an object in namespace `shop`, or without a namespace if its kind is cluster-scoped.
pub fn key(text: &str, name: &str) -> (GroupKind, NamespacedName) {
    let kind = kind(text);
    let is_cluster_scoped = matches!(
        &*kind.kind,
        "BindingPolicy" | "StatusCollector" | "HealthRule" | "ClusterRole" | "Rollup" | "Platform"
    );
    let namespace = if is_cluster_scoped { "" } else { NAMESPACE };
    (kind, NamespacedName::new(namespace, name))
}

fn object(api_version: &str, kind: &str, name: &str) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": "web"}},
    })
}

/// Merges fields into an object.
pub fn with(mut object: Value, fields: &Value) -> Value {
    merge(&mut object, fields);
    object
}

/// An Application that selects `app: web`. `spec` is merged.
pub fn app(name: &str, spec: &Value) -> Value {
    let object = object(&format!("{GROUP}/{VERSION}"), "Application", name);
    let object = with(object, &json!({"metadata": {"labels": null}}));
    with(object, &json!({"spec": with(json!({"selector": {"matchLabels": {"app": "web"}}}), spec)}))
}

/// The same as [`app`] in `app.k8s.io`.
pub fn old_app(name: &str, spec: &Value) -> Value {
    with(app(name, spec), &json!({"apiVersion": "app.k8s.io/v1beta1"}))
}

/// An Application that selects Deployments and Widgets with `app: web`.
pub fn app_of_kinds(name: &str) -> Value {
    app(
        name,
        &json!({"componentKinds": [{"group": "apps", "kind": "Deployment"}, {"group": "acme.io", "kind": "Widget"}]}),
    )
}

/// An Application with these Deployments as components.
pub fn app_of(name: &str, deployments: &[&str]) -> Value {
    let component = |name: &&str| ((*name).to_owned(), json!({"group": "apps", "kind": "Deployment"}));
    let components: serde_json::Map<_, _> = deployments.iter().map(component).collect();
    app(name, &json!({ "components": components }))
}

/// A Deployment with `ready` of `of` replicas ready.
pub fn deployment(name: &str, ready: i64, of: i64) -> Value {
    let status = json!({
        "observedGeneration": 1, "replicas": of, "updatedReplicas": of, "readyReplicas": ready, "availableReplicas": ready,
        "unavailableReplicas": of - ready,
    });
    let fields = json!({"spec": {"replicas": of}, "status": status});
    with(object("apps/v1", "Deployment", name), &fields)
}

/// A StatefulSet with `ready` of `of` replicas ready, and the revision of its template.
pub fn stateful_set(name: &str, ready: i64, of: i64, revision: &str) -> Value {
    let status = json!({
        "observedGeneration": 1, "replicas": of, "currentReplicas": of, "updatedReplicas": of, "readyReplicas": ready,
        "availableReplicas": ready, "currentRevision": revision, "updateRevision": revision,
    });
    let fields = json!({"spec": {"replicas": of}, "status": status});
    with(object("apps/v1", "StatefulSet", name), &fields)
}

/// A DaemonSet with `ready` of `of` Pods ready and `updated` of its template, which is of this generation.
pub fn daemon_set(name: &str, (ready, updated, of): (i64, i64, i64), generation: &str) -> Value {
    let annotations = json!({"deprecated.daemonset.template.generation": generation});
    let status = json!({
        "observedGeneration": 1, "desiredNumberScheduled": of, "currentNumberScheduled": of,
        "updatedNumberScheduled": updated, "numberReady": ready, "numberAvailable": ready,
    });
    let fields = json!({"metadata": {"annotations": annotations}, "spec": {}, "status": status});
    with(object("apps/v1", "DaemonSet", name), &fields)
}

/// A Job of one Pod, started at 9:59. `ended`: with this condition and reason.
pub fn job(name: &str, ended: Option<(&str, &str)>) -> Value {
    let condition = |(kind, reason): (&str, &str)| {
        json!({
            "type": kind, "status": "True", "reason": reason, "lastTransitionTime": "2026-11-14T09:59:30Z",
        })
    };
    let conditions: Vec<_> = ended.into_iter().map(condition).collect();
    let status = json!({
        "startTime": "2026-11-14T09:59:00Z", "active": i64::from(ended.is_none()), "conditions": conditions,
    });
    let fields = json!({"spec": {"completions": 1}, "status": status});
    with(object("batch/v1", "Job", name), &fields)
}

/// A ReplicaSet of a Deployment.
pub fn replica_set(name: &str, revision: &str) -> Value {
    let annotations = json!({"deployment.kubernetes.io/revision": revision});
    let fields = json!({"metadata": {"labels": null, "annotations": annotations}, "spec": {"replicas": 1}});
    with(object("apps/v1", "ReplicaSet", name), &fields)
}

/// Names an object as the controller of another one.
pub fn owned_by(object: Value, kind: &str, name: &str, uid: &str) -> Value {
    let version = if kind == "Job" { "batch/v1" } else { "apps/v1" };
    let owner = json!([{"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": true}]);
    with(object, &json!({"metadata": {"ownerReferences": owner}}))
}

/// A Service that selects Pods.
pub fn selecting_service(name: &str) -> Value {
    with(service(name), &json!({"spec": {"selector": {"run": name}}}))
}

/// The endpoints of a Service.
pub fn endpoint_slice(service: &str, ready: bool) -> Value {
    let labels = json!({"app": null, "kubernetes.io/service-name": service});
    let endpoints = json!([{"addresses": ["10.0.0.1"], "conditions": {"ready": ready}}]);
    let name = format!("{service}-slice");
    with(
        object("discovery.k8s.io/v1", "EndpointSlice", &name),
        &json!({"metadata": {"labels": labels}, "endpoints": endpoints}),
    )
}

/// A Pod whose container waits for this reason, and that is not ready since that time.
pub fn failing_pod(name: &str, reason: &str, since: &Value) -> Value {
    let container = json!({
        "name": "main", "ready": false, "restartCount": 0, "state": {"waiting": {"reason": reason, "message": "no way"}},
    });
    let conditions = json!([{"type": "Ready", "status": "False", "lastTransitionTime": since}]);
    let status = json!({"phase": "Pending", "conditions": conditions, "containerStatuses": [container]});
    with(pod(name, false), &json!({"metadata": {"labels": null}, "status": status}))
}

/// A custom resource with a Ready condition of this status, or without conditions.
pub fn widget(name: &str, ready: Option<&str>) -> Value {
    let condition = |status: &str| json!({"conditions": [{"type": "Ready", "status": status, "reason": "Working", "message": "cogs turn"}]});
    let fields =
        json!({"spec": {"size": 1}, "status": ready.map_or_else(|| json!({"color": "blue"}), condition)});
    with(object("acme.io/v2", "Widget", name), &fields)
}

/// A cluster-scoped custom resource.
pub fn platform(name: &str) -> Value {
    let fields = json!({"metadata": {"namespace": null}, "spec": {"size": 1}});
    with(object("acme.io/v1", "Platform", name), &fields)
}

pub fn rollup(name: &str, spec: &Value) -> Value {
    let fields = json!({"metadata": {"namespace": null, "labels": null}, "spec": spec});
    with(object(&format!("{GROUP}/{VERSION}"), "Rollup", name), &fields)
}

/// A BindingPolicy or a StatusCollector.
pub fn cluster_scoped(kind: &str, name: &str, spec: &Value) -> Value {
    let fields = json!({"metadata": {"namespace": null, "labels": null}, "spec": spec});
    with(object(&format!("{GROUP}/{VERSION}"), kind, name), &fields)
}

/// A Service, which is Ready as soon as it exists.
pub fn service(name: &str) -> Value {
    with(object("v1", "Service", name), &json!({"spec": {"type": "ClusterIP"}}))
}

/// Assigns an object to an Application by annotation.
pub fn annotated(object: Value, app: &str) -> Value {
    with(object, &json!({"metadata": {"annotations": {APPLICATION_ANNOTATION: app}}}))
}

/// A spec with a health check. API servers reject it if the image is empty.
pub fn health_check(image: &str) -> Value {
    let container =
        json!({"name": "check", "image": image, "readinessProbe": {"exec": {"command": ["true"]}}});
    json!({"healthCheck": {"template": {"spec": {"containers": [container]}}}})
}

/// A running Pod.
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

/// A Pod that is unschedulable since 10:00.
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
