//! Objects to compare the two controllers on, with the expected differences and their reasons.

use serde_json::{Value, json};

/// One Application, its objects, and the fields of its status that should differ.
pub(super) struct Situation {
    pub(super) name: &'static str,
    pub(super) spec: Value,
    pub(super) objects: Vec<Value>,
    pub(super) differs: Vec<&'static str>,
    pub(super) because: &'static str,
}

/// The fields that depend on the state of a component.
const STATE: [&str; 3] = ["components", "componentsReady", "Ready"];

/// A situation without expected differences.
fn same(name: &'static str, kinds: &[(&str, &str)], objects: impl Into<Vec<Value>>) -> Situation {
    let kinds: Vec<_> = kinds.iter().map(|(group, kind)| json!({"group": group, "kind": kind})).collect();
    let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "componentKinds": kinds});
    Situation { name, spec, objects: objects.into(), differs: Vec::new(), because: "" }
}

impl Situation {
    fn state_differs(self, because: &'static str) -> Self {
        self.differs(&STATE, because)
    }

    fn differs(mut self, fields: &[&'static str], because: &'static str) -> Self {
        (self.differs, self.because) = (fields.to_vec(), because);
        self
    }

    fn with(mut self, field: &str, value: Value) -> Self {
        self.spec[field] = value;
        self
    }
}

fn object(api: &str, kind: &str, name: &str, spec: &Value, status: &Value) -> Value {
    let mut object = json!({
        "apiVersion": api, "kind": kind, "metadata": {"name": name, "labels": {"app": "web"}},
    });
    if !spec.is_null() {
        object["spec"] = spec.clone();
    }
    if !status.is_null() {
        object["status"] = status.clone();
    }
    object
}

/// Selector and Pod template of a workload.
fn pods() -> Value {
    json!({
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "main"}]},
        },
    })
}

fn workload(kind: &str, more: &Value, status: &Value) -> Value {
    let mut spec = pods();
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    object("apps/v1", kind, "x", &spec, status)
}

fn deployment(status: &Value) -> Value {
    let mut all = json!({
        "observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
        "conditions": [condition("Available", "True", "MinimumReplicasAvailable")],
    });
    for (field, value) in status.as_object().into_iter().flatten() {
        all[field] = value.clone();
    }
    workload("Deployment", &json!({"replicas": 3}), &all)
}

fn condition(kind: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": "some message",
        "lastTransitionTime": "2026-11-14T10:00:00Z",
    })
}

fn stateful_set(more: &Value, status: &Value) -> Value {
    let mut spec = json!({"replicas": 3, "serviceName": "x"});
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    let mut all = json!({
        "observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "currentReplicas": 3, "updatedReplicas": 3,
        "availableReplicas": 3, "currentRevision": "a", "updateRevision": "a",
    });
    for (field, value) in status.as_object().into_iter().flatten() {
        all[field] = value.clone();
    }
    workload("StatefulSet", &spec, &all)
}

fn daemon_set(updated: i64, available: i64, desired: i64) -> Value {
    let status = json!({
        "observedGeneration": 1, "desiredNumberScheduled": desired, "currentNumberScheduled": desired,
        "numberReady": available, "numberAvailable": available, "updatedNumberScheduled": updated,
        "numberMisscheduled": 0,
    });
    workload("DaemonSet", &json!({}), &status)
}

fn service(name: &str, kind: &str, ingress: &Value) -> Value {
    let spec = match kind {
        "ExternalName" => json!({"type": kind, "externalName": "example.com"}),
        _ => json!({"type": kind, "ports": [{"port": 80}]}),
    };
    let status = if ingress.is_null() { json!(null) } else { json!({"loadBalancer": {"ingress": ingress}}) };
    object("v1", "Service", name, &spec, &status)
}

fn pod(status: &Value) -> Value {
    object("v1", "Pod", "x", &json!({"containers": [{"name": "main", "image": "main"}]}), status)
}

fn claim(phase: &str) -> Value {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": ""});
    object("v1", "PersistentVolumeClaim", "x", &spec, &json!({ "phase": phase }))
}

fn budget(observed: i64, current: i64, desired: i64) -> Value {
    let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}});
    let status = json!({
        "observedGeneration": observed, "currentHealthy": current, "desiredHealthy": desired, "expectedPods": 3,
        "disruptionsAllowed": 0,
    });
    object("policy/v1", "PodDisruptionBudget", "x", &spec, &status)
}

fn job(status: &Value) -> Value {
    let spec = json!({
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "main"}]}},
    });
    object("batch/v1", "Job", "x", &spec, status)
}

fn widget(status: &Value) -> Value {
    object("example.com/v1", "Widget", "x", &json!({"size": 1}), status)
}

fn config(name: &str) -> Value {
    object("v1", "ConfigMap", name, &json!(null), &json!(null))
}

fn labelled(mut object: Value, key: &str, value: &str) -> Value {
    object["metadata"]["labels"][key] = value.into();
    object
}

const DEPLOYMENTS: [(&str, &str); 1] = [("apps", "Deployment")];
const CONFIGS: [(&str, &str); 1] = [("v1", "ConfigMap")];

const ROLLED_OUT: &str = "a rollout is not complete until all replicas have the new template";
const NOTHING_FOUND: &str = "an Application without members is not ready";

/// All situations, each for its own namespace.
pub(super) fn all() -> Vec<Situation> {
    [workloads(), others(), generic(), selecting(), owning()].into_iter().flatten().collect()
}

fn workloads() -> Vec<Situation> {
    let sets = [("apps/v1", "StatefulSet")];
    let replicas = [("apps", "ReplicaSet")];
    let daemons = [("apps", "DaemonSet")];
    let replica_set = |conditions: Value| {
        let status = json!({
            "observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3,
            "fullyLabeledReplicas": 3, "conditions": conditions,
        });
        workload("ReplicaSet", &json!({"replicas": 3}), &status)
    };
    let partition = json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}});
    let partly = json!({"currentReplicas": 2, "updatedReplicas": 1, "updateRevision": "b"});
    let none = json!({"replicas": 0, "readyReplicas": 0, "currentReplicas": 0, "updatedReplicas": 0, "availableReplicas": 0});
    vec![
        same("sts-ready", &sets, [stateful_set(&json!({}), &json!({}))]),
        same("sts-behind", &sets, [stateful_set(&json!({}), &json!({"observedGeneration": 0}))]),
        same(
            "sts-less-ready",
            &sets,
            [stateful_set(&json!({}), &json!({"readyReplicas": 2, "availableReplicas": 2}))],
        ),
        same("sts-none", &sets, [stateful_set(&json!({"replicas": 0}), &none)]),
        same("sts-partition", &sets, [stateful_set(&partition, &partly)])
            .state_differs("replicas below the partition do not block readiness"),
        same("deploy-ready", &DEPLOYMENTS, [deployment(&json!({}))]),
        same(
            "deploy-progressed",
            &DEPLOYMENTS,
            [deployment(
                &json!({"conditions": [condition("Progressing", "True", "NewReplicaSetAvailable")]}),
            )],
        ),
        same("deploy-no-conditions", &DEPLOYMENTS, [deployment(&json!({"conditions": null}))])
            .state_differs("the replica counts are sufficient, conditions are not required"),
        same(
            "deploy-failing",
            &DEPLOYMENTS,
            [deployment(&json!({"conditions": [condition("ReplicaFailure", "True", "FailedCreate")]}))],
        ),
        same("deploy-surge", &DEPLOYMENTS, [deployment(&json!({"replicas": 4}))]),
        same("deploy-not-updated", &DEPLOYMENTS, [deployment(&json!({"updatedReplicas": 1}))])
            .state_differs(ROLLED_OUT),
        same(
            "deploy-too-late",
            &DEPLOYMENTS,
            [deployment(&json!({"updatedReplicas": 1, "conditions": [
                condition("Available", "True", "MinimumReplicasAvailable"),
                condition("Progressing", "False", "ProgressDeadlineExceeded"),
            ]}))],
        )
        .state_differs("a failed rollout is not ready although old replicas are available"),
        same("rs-ready", &replicas, [replica_set(json!(null))]),
        same(
            "rs-failing",
            &replicas,
            [replica_set(json!([condition("ReplicaFailure", "True", "FailedCreate")]))],
        ),
        same("ds-ready", &daemons, [daemon_set(3, 3, 3)]),
        same("ds-none", &daemons, [daemon_set(0, 0, 0)]),
        same("ds-less-available", &daemons, [daemon_set(3, 2, 3)]),
        same("ds-not-updated", &daemons, [daemon_set(1, 3, 3)]).state_differs(ROLLED_OUT),
    ]
}

fn others() -> Vec<Situation> {
    let services = [("v1", "Service")];
    let claims = [("v1", "PersistentVolumeClaim")];
    let all_pods = [("v1", "Pod")];
    let budgets = [("policy/v1", "PodDisruptionBudget")];
    let jobs = [("batch", "Job")];
    let ready = |status: &str, reason: &str| json!({"phase": "Running", "conditions": [condition("Ready", status, reason)]});
    let start = "2026-11-14T10:00:00Z";
    let ended = |kind: &str| {
        json!({
            "startTime": start, "completionTime": if kind == "Complete" { json!(start) } else { json!(null) },
            "conditions": [
                condition(if kind == "Complete" { "SuccessCriteriaMet" } else { "FailureTarget" }, "True", "Ended"),
                condition(kind, "True", "Ended"),
            ],
            "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}, "succeeded": i32::from(kind == "Complete"),
            "failed": i32::from(kind != "Complete"),
        })
    };
    let ingress = object(
        "networking.k8s.io/v1",
        "Ingress",
        "x",
        &json!({"defaultBackend": {"service": {"name": "x", "port": {"number": 80}}}}),
        &json!(null),
    );
    vec![
        same("pvc-bound", &claims, [claim("Bound")]),
        same("pvc-pending", &claims, [claim("Pending")]),
        same("pvc-lost", &claims, [claim("Lost")]),
        same(
            "svc-plain",
            &services,
            [
                service("a", "ClusterIP", &json!(null)),
                service("b", "NodePort", &json!(null)),
                service("c", "ExternalName", &json!(null)),
            ],
        ),
        same("svc-lb-none", &services, [service("a", "LoadBalancer", &json!(null))]),
        same("svc-lb-ip", &services, [service("a", "LoadBalancer", &json!([{"ip": "192.0.2.1"}]))])
            .state_differs("a load balancer with an address is ready; v0.8.3 never reports it as ready"),
        same(
            "svc-lb-hostname",
            &services,
            [service("a", "LoadBalancer", &json!([{"hostname": "lb.example.com"}]))],
        )
        .state_differs("a hostname is a valid address"),
        same("pod-ready", &all_pods, [pod(&ready("True", ""))]),
        same("pod-not-ready", &all_pods, [pod(&ready("False", "ContainersNotReady"))]),
        same(
            "pod-completed",
            &all_pods,
            [pod(
                &json!({"phase": "Succeeded", "conditions": [condition("Ready", "False", "PodCompleted")]}),
            )],
        ),
        same("pod-new", &all_pods, [pod(&json!({"phase": "Pending"}))]),
        same("pdb-ready", &budgets, [budget(1, 3, 3)]),
        same("pdb-too-few", &budgets, [budget(1, 2, 3)]),
        same("pdb-behind", &budgets, [budget(0, 3, 3)]),
        same("job-new", &jobs, [job(&json!(null))]),
        same("job-running", &jobs, [job(&json!({"startTime": start, "active": 1, "ready": 1}))])
            .state_differs("a running Job is not ready"),
        same("job-complete", &jobs, [job(&ended("Complete"))]),
        same("job-failed", &jobs, [job(&ended("Failed"))]).state_differs("a failed Job is not ready"),
        same("ingress-new", &[("networking.k8s.io", "Ingress")], [ingress])
            .state_differs("an Ingress without an address is not ready"),
        same("configmap", &CONFIGS, [config("a"), config("b")]),
    ]
}

fn generic() -> Vec<Situation> {
    let widgets = [("example.com", "Widget")];
    let conditions = |kind: &str, status: &str| json!({"conditions": [condition(kind, status, "Some")]});
    vec![
        same("custom-silent", &widgets, [widget(&json!(null))])
            .state_differs("an object without a status has not been observed by its controller"),
        same("custom-ready", &widgets, [widget(&conditions("Ready", "True"))]),
        same("custom-not-ready", &widgets, [widget(&conditions("Ready", "False"))]),
        same("custom-unknown", &widgets, [widget(&conditions("Ready", "Unknown"))])
            .state_differs("Ready=Unknown is not ready"),
        same(
            "custom-in-progress",
            &widgets,
            [widget(&json!({"conditions": [
                condition("Ready", "True", "Some"), condition("InProgress", "True", "Some"),
            ]}))],
        )
        .state_differs("the condition Ready takes precedence"),
        same("terminating", &CONFIGS, [with_finalizer(config("a"))])
            .state_differs("an object that is being deleted is not ready"),
    ]
}

fn with_finalizer(mut object: Value) -> Value {
    object["metadata"]["finalizers"] = json!(["example.com/wait"]);
    object
}

fn selecting() -> Vec<Situation> {
    let two = || [labelled(config("a"), "tier", "front"), config("b")];
    let front = json!([{"key": "tier", "operator": "In", "values": ["front"]}]);
    let unresolved = ["Ready", "Error"];
    vec![
        same("nothing-matches", &CONFIGS, []).differs(&["Ready"], NOTHING_FOUND),
        same("empty-selector", &CONFIGS, two()).with("selector", json!({})),
        same("expressions", &CONFIGS, two())
            .with("selector", json!({ "matchExpressions": front }))
            .differs(&["components", "componentsReady"], "matchExpressions are honoured"),
        same("labels-and-expressions", &CONFIGS, two())
            .with("selector", json!({"matchLabels": {"app": "web"}, "matchExpressions": front}))
            .differs(&["components", "componentsReady"], "matchExpressions are honoured"),
        same("bad-expression", &CONFIGS, two())
            .with("selector", json!({"matchExpressions": [{"key": "tier", "operator": "Like"}]}))
            .differs(
                &["components", "componentsReady", "Ready", "Error"],
                "an invalid selector selects nothing and is reported",
            ),
        same(
            "spellings",
            &[("/v1", "ConfigMap"), ("apps/v1beta2", "Deployment"), ("", "Service")],
            [config("a"), deployment(&json!({})), service("a", "ClusterIP", &json!(null))],
        ),
        same(
            "core",
            &[("core", "ConfigMap"), ("core/v1", "Service")],
            [config("a"), service("a", "ClusterIP", &json!(null))],
        )
        .differs(
            &["components", "componentsReady"],
            "the documentation of app.k8s.io tells users to write core",
        ),
        same(
            "group-like-a-version",
            &[("v2x.example.com", "Gadget")],
            [object(
                "v2x.example.com/v1",
                "Gadget",
                "x",
                &json!({"size": 1}),
                &json!({"conditions": [condition("Ready", "True", "Some")]}),
            )],
        )
        .differs(
            &["components", "componentsReady"],
            "a group that only starts like a version is not a version",
        ),
        same("twice", &[("v1", "ConfigMap"), ("", "ConfigMap")], [config("a")])
            .differs(&["components", "componentsReady"], "an object is counted once"),
        same(
            "wrong-group",
            &[("v1", "Deployment"), ("v1", "ConfigMap")],
            [config("a"), deployment(&json!({}))],
        )
        .differs(&unresolved, "a kind that is not served is reported, and Ready is Unknown"),
        same("forbidden", &[("v1", "Secret"), ("v1", "ConfigMap")], [config("a")])
            .differs(&["Error"], "the message names the missing right"),
        same(
            "cluster-scoped",
            &[("rbac.authorization.k8s.io/v1", "ClusterRole")],
            [labelled(
                object("rbac.authorization.k8s.io/v1", "ClusterRole", "compared", &json!(null), &json!(null)),
                "app",
                "roles",
            )],
        )
        .with("selector", json!({"matchLabels": {"app": "roles"}})),
        same("selects-itself", &[("app.k8s.io", "Application")], []).differs(
            &["components", "componentsReady", "Ready"],
            "an Application is not a component of itself",
        ),
        same("foreign-conditions", &CONFIGS, [config("a")]),
    ]
}

fn owning() -> Vec<Situation> {
    vec![
        same("owns", &CONFIGS, [config("a"), config("b")]).with("addOwnerRef", json!(true)),
        same("owns-not", &CONFIGS, [config("a")]).with("addOwnerRef", json!(false)),
        same("owns-core", &[("core", "ConfigMap")], [config("a")]).with("addOwnerRef", json!(true)).differs(
            &["components", "componentsReady", "owners"],
            "the documentation of app.k8s.io tells users to write core, so addOwnerRef applies",
        ),
        same(
            "owns-cluster-scoped",
            &[("rbac.authorization.k8s.io", "ClusterRole")],
            [labelled(
                object("rbac.authorization.k8s.io/v1", "ClusterRole", "owned", &json!(null), &json!(null)),
                "app",
                "owned",
            )],
        )
        .with("selector", json!({"matchLabels": {"app": "owned"}}))
        .with("addOwnerRef", json!(true))
        .differs(&["owners"], "a namespaced object cannot own a cluster-scoped object"),
    ]
}

/// The process of the old controller ends at these, at each start: one such Application is enough.
pub(super) fn fatal() -> Vec<Situation> {
    let no_reason = json!({"conditions": [{"type": "Ready", "status": "True"}]});
    vec![
        same("no-selector", &CONFIGS, [config("a")])
            .with("selector", json!(null))
            .differs(&["all"], "an Application without a selector has no members and is not ready"),
        same("custom-no-reason", &[("example.com", "Widget")], [widget(&no_reason)])
            .differs(&["all"], "the reason of a condition is optional"),
    ]
}

/// An Application with one ready object of each of four kinds.
pub(super) fn application_of_four(name: &str) -> Vec<Value> {
    let kinds =
        [("v1", "ConfigMap"), ("v1", "Service"), ("apps/v1", "Deployment"), ("apps/v1", "StatefulSet")];
    let mut spec = same("race", &kinds, []).spec;
    spec["selector"]["matchLabels"]["app"] = name.into();
    let application = json!({
        "apiVersion": "app.k8s.io/v1beta1", "kind": "Application", "metadata": {"name": name}, "spec": spec,
    });
    let mut objects = vec![
        config(name),
        service(name, "ClusterIP", &json!(null)),
        deployment(&json!({})),
        stateful_set(&json!({}), &json!({})),
    ];
    for object in &mut objects {
        object["metadata"]["name"] = name.into();
        object["metadata"]["labels"]["app"] = name.into();
    }
    objects.push(application);
    objects
}
