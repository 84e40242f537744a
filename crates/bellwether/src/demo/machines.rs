//! The simulated kubelets, the volume binder and the load balancer.

use std::time::Duration;

use bellwether_engine::GroupKind;
use serde_json::{Value, json};

use super::{
    memory::{Memory, condition, is_deleting, is_ready, text, uid},
    store::Store,
    workloads::claim,
};

/// Other images cannot be pulled.
const IMAGES: &[&str] =
    &["mysql:8.4", "wordpress:6-apache", "varnish:7.6", "varnish:7.7", "nginx:1.28", "nginx:1.29"];

// Shorter than in a real cluster, because people watch.
const BINDS_WITHIN: Duration = Duration::from_millis(1250);
const PULLS_WITHIN: Duration = Duration::from_secs(1);
const READY_WITHIN: Duration = Duration::from_millis(750);
const BACKS_OFF_AFTER: Duration = Duration::from_millis(2250);
const ENDS_WITHIN: Duration = Duration::from_secs(1);
const NOTICES_WITHIN: Duration = Duration::from_secs(1);
const ADDRESS_WITHIN: Duration = Duration::from_millis(2500);

/// Reserved for documentation (RFC 5737).
const ADDRESS: &str = "203.0.113.10";

pub(super) fn service() -> GroupKind {
    GroupKind::new("", "Service")
}

pub(super) fn act(store: &mut Store, memory: &mut Memory) {
    bind_volumes(store, memory);
    give_addresses(store, memory);
    run_pods(store, memory);
}

fn bind_volumes(store: &mut Store, memory: &mut Memory) {
    for it in store.all(&claim()) {
        let is_bound = memory.since(uid(&it), "claim") >= BINDS_WITHIN;
        let patch = if is_bound {
            json!({ "spec": { "volumeName": format!("pvc-{}", uid(&it)) }, "status": { "phase": "Bound" } })
        } else {
            json!({ "status": { "phase": "Pending" } })
        };
        store.patch(&claim(), text(&it["metadata"]["name"]), &patch);
    }
}

fn give_addresses(store: &mut Store, memory: &mut Memory) {
    for it in store.all(&service()) {
        if it["spec"]["type"] == "LoadBalancer" && memory.since(uid(&it), "address") >= ADDRESS_WITHIN {
            let patch = json!({ "status": { "loadBalancer": { "ingress": [{ "ip": ADDRESS }] } } });
            store.patch(&service(), text(&it["metadata"]["name"]), &patch);
        }
    }
}

enum PodPhase {
    /// Its volumes are not bound yet.
    Unscheduled,
    Creating,
    /// Its image cannot be pulled.
    Stuck {
        reason: &'static str,
        message: String,
    },
    Running {
        ready: bool,
    },
}

fn run_pods(store: &mut Store, memory: &mut Memory) {
    let mut pods = store.all(&GroupKind::pod());
    // The oldest first: UIDs are ascending.
    pods.sort_by_key(|pod| uid(pod).to_owned());
    // Images are pulled one after the other.
    let mut is_pulling = false;
    for pod in pods {
        let name = text(&pod["metadata"]["name"]);
        if is_deleting(&pod) {
            if memory.since(uid(&pod), "end") >= ENDS_WITHIN {
                store.remove(&GroupKind::pod(), name);
            }
            continue;
        }
        let phase = if has_volumes(store, &pod) {
            phase(store, memory, &pod, &mut is_pulling)
        } else {
            PodPhase::Unscheduled
        };
        let status = status(&pod, &phase, &store.time());
        store.patch(&GroupKind::pod(), name, &status);
    }
}

fn has_volumes(store: &Store, pod: &Value) -> bool {
    let is_bound = |volume: &Value| {
        let name = text(&volume["persistentVolumeClaim"]["claimName"]);
        store.get(&claim(), name).is_some_and(|claim| claim["status"]["phase"] == "Bound")
    };
    pod["spec"]["volumes"].as_array().into_iter().flatten().all(is_bound)
}

fn phase(store: &Store, memory: &mut Memory, pod: &Value, is_pulling: &mut bool) -> PodPhase {
    let uid = uid(pod);
    let images = containers(pod).map(|container| text(&container["image"]));
    if let Some(image) = images.into_iter().find(|image| !IMAGES.contains(image)) {
        return stuck(memory.since(uid, "pull"), image);
    }
    if pod["status"]["phase"] != "Running" {
        let is_next = !std::mem::replace(is_pulling, true);
        if !is_next || memory.since(uid, "pull") < PULLS_WITHIN {
            return PodPhase::Creating;
        }
        *is_pulling = false;
    }
    let is_up = memory.since(uid, "run") >= READY_WITHIN;
    let reaches = reaches_database(store, pod);
    let noticed = memory.unchanged(uid, "database", reaches.to_string()) >= NOTICES_WITHIN;
    // The readiness probe has a delay.
    let ready = if reaches { is_up && (noticed || is_ready(pod)) } else { is_ready(pod) && !noticed };
    PodPhase::Running { ready }
}

fn stuck(tried: Duration, image: &str) -> PodPhase {
    let why = format!("failed to resolve reference \"{image}\": not found");
    if tried < PULLS_WITHIN {
        PodPhase::Creating
    } else if tried < BACKS_OFF_AFTER {
        PodPhase::Stuck { reason: "ErrImagePull", message: why }
    } else {
        let message = format!("Back-off pulling image \"{image}\": ErrImagePull: {why}");
        PodPhase::Stuck { reason: "ImagePullBackOff", message }
    }
}

/// Whether the database in the environment of a Pod has a ready Pod. True without one.
fn reaches_database(store: &Store, pod: &Value) -> bool {
    let environment = containers(pod).flat_map(|container| container["env"].as_array().into_iter().flatten());
    let mut hosts = environment.filter(|variable| text(&variable["name"]).ends_with("_DB_HOST"));
    hosts.all(|host| {
        let service = store.get(&service(), text(&host["value"]));
        let Some(selector) = service.and_then(|service| service["spec"]["selector"].as_object()) else {
            return false;
        };
        let is_selected =
            |pod: &Value| selector.iter().all(|(key, value)| pod["metadata"]["labels"][key] == *value);
        store.all(&GroupKind::pod()).iter().any(|pod| is_selected(pod) && is_ready(pod) && !is_deleting(pod))
    })
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["spec"]["containers"].as_array().into_iter().flatten()
}

/// A patch of the status of a Pod.
fn status(pod: &Value, phase: &PodPhase, time: &str) -> Value {
    let condition = |type_: &str, is, reason, message| condition(pod, type_, (is, reason, message), time);
    if let PodPhase::Unscheduled = phase {
        let message = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.";
        let scheduled = condition("PodScheduled", false, "Unschedulable", message);
        return json!({ "status": { "phase": "Pending", "conditions": [scheduled] } });
    }
    let (name, ready) = match phase {
        PodPhase::Running { ready } => ("Running", *ready),
        _ => ("Pending", false),
    };
    let reason = if ready { "" } else { "ContainersNotReady" };
    let statuses: Vec<_> = containers(pod)
        .enumerate()
        .map(|(index, container)| {
            let began = &pod["status"]["containerStatuses"][index]["state"]["running"]["startedAt"];
            let state = match phase {
                PodPhase::Running { .. } if began.is_null() => json!({ "running": { "startedAt": time } }),
                PodPhase::Running { .. } => json!({ "running": { "startedAt": began } }),
                PodPhase::Stuck { reason, message } => {
                    json!({ "waiting": { "reason": reason, "message": message } })
                }
                _ => json!({ "waiting": { "reason": "ContainerCreating" } }),
            };
            json!({
                "name": container["name"], "image": container["image"], "restartCount": 0,
                "ready": ready, "started": name == "Running", "state": state,
            })
        })
        .collect();
    json!({
        "spec": { "nodeName": "node-1" },
        "status": {
            "phase": name,
            "conditions": [
                condition("PodScheduled", true, "", ""),
                condition("Initialized", true, "", ""),
                condition("ContainersReady", ready, reason, ""),
                condition("Ready", ready, reason, ""),
            ],
            "containerStatuses": statuses,
        },
    })
}
