//! What runs Pods, binds volumes and gives out addresses: the parts of a cluster that are machines, or act for them.

use std::time::Duration;

use bellwether_engine::GroupKind;
use serde_json::{Value, json};

use super::{
    memory::{Memory, condition, is_deleting, is_ready, text, uid},
    store::Store,
    workloads::claim,
};

/// The images that there are. All others cannot be pulled.
const IMAGES: &[&str] = &["mysql:8.4", "wordpress:6-apache", "varnish:7.6", "varnish:7.7"];

/// How long things take. They are quicker than in a cluster: people watch.
const BINDS_WITHIN: Duration = Duration::from_millis(1250);
const PULLS_WITHIN: Duration = Duration::from_secs(1);
const READY_WITHIN: Duration = Duration::from_millis(750);
const BACKS_OFF_AFTER: Duration = Duration::from_millis(2250);
const ENDS_WITHIN: Duration = Duration::from_secs(1);
const NOTICES_WITHIN: Duration = Duration::from_secs(1);
const ADDRESS_WITHIN: Duration = Duration::from_millis(2500);

/// An address that no machine has: it is kept for documentation.
const ADDRESS: &str = "203.0.113.10";

pub(super) fn service() -> GroupKind {
    GroupKind::new("", "Service")
}

/// Everybody has a look, and does what comes next.
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

/// How a Pod is.
enum PodPhase {
    /// No node suits it: its volumes are not there yet.
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
    // The oldest first: identities are given out in order.
    pods.sort_by_key(|pod| uid(pod).to_owned());
    // Images are pulled one after the other.
    let mut pulls = false;
    for pod in pods {
        let name = text(&pod["metadata"]["name"]);
        if is_deleting(&pod) {
            if memory.since(uid(&pod), "end") >= ENDS_WITHIN {
                store.remove(&GroupKind::pod(), name);
            }
            continue;
        }
        let life = if has_volumes(store, &pod) {
            live(store, memory, &pod, &mut pulls)
        } else {
            PodPhase::Unscheduled
        };
        let status = status(&pod, &life, &store.time());
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

fn live(store: &Store, memory: &mut Memory, pod: &Value, pulls: &mut bool) -> PodPhase {
    let uid = uid(pod);
    let images = containers(pod).map(|container| text(&container["image"]));
    if let Some(image) = images.into_iter().find(|image| !IMAGES.contains(image)) {
        return stuck(memory.since(uid, "pull"), image);
    }
    if pod["status"]["phase"] != "Running" {
        let is_next = !std::mem::replace(pulls, true);
        if !is_next || memory.since(uid, "pull") < PULLS_WITHIN {
            return PodPhase::Creating;
        }
        *pulls = false;
    }
    let is_up = memory.since(uid, "run") >= READY_WITHIN;
    let reaches = reaches_database(store, pod);
    let noticed = memory.unchanged(uid, "database", reaches.to_string()) >= NOTICES_WITHIN;
    // What was ready stays so until somebody looks again.
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

/// Whether the database answers that a Pod is told of, if it is told of one.
fn reaches_database(store: &Store, pod: &Value) -> bool {
    let environment = containers(pod).flat_map(|container| container["env"].as_array().into_iter().flatten());
    let mut hosts = environment.filter(|variable| text(&variable["name"]).ends_with("_DB_HOST"));
    hosts.all(|host| {
        let service = store.get(&service(), text(&host["value"]));
        let Some(selector) = service.and_then(|service| service["spec"]["selector"].as_object()) else {
            return false;
        };
        let is_meant =
            |pod: &Value| selector.iter().all(|(key, value)| pod["metadata"]["labels"][key] == *value);
        store.all(&GroupKind::pod()).iter().any(|pod| is_meant(pod) && is_ready(pod) && !is_deleting(pod))
    })
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    pod["spec"]["containers"].as_array().into_iter().flatten()
}

/// The status of a Pod, as a patch.
fn status(pod: &Value, life: &PodPhase, time: &str) -> Value {
    let condition = |kind: &str, is, reason, message| condition(pod, kind, (is, reason, message), time);
    if let PodPhase::Unscheduled = life {
        let message = "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.";
        let scheduled = condition("PodScheduled", false, "Unschedulable", message);
        return json!({ "status": { "phase": "Pending", "conditions": [scheduled] } });
    }
    let (phase, ready) = match life {
        PodPhase::Running { ready } => ("Running", *ready),
        _ => ("Pending", false),
    };
    let reason = if ready { "" } else { "ContainersNotReady" };
    let statuses: Vec<_> = containers(pod)
        .enumerate()
        .map(|(index, container)| {
            let began = &pod["status"]["containerStatuses"][index]["state"]["running"]["startedAt"];
            let state = match life {
                PodPhase::Running { .. } if began.is_null() => json!({ "running": { "startedAt": time } }),
                PodPhase::Running { .. } => json!({ "running": { "startedAt": began } }),
                PodPhase::Stuck { reason, message } => {
                    json!({ "waiting": { "reason": reason, "message": message } })
                }
                _ => json!({ "waiting": { "reason": "ContainerCreating" } }),
            };
            json!({
                "name": container["name"], "image": container["image"], "restartCount": 0,
                "ready": ready, "started": phase == "Running", "state": state,
            })
        })
        .collect();
    json!({
        "spec": { "nodeName": "node-1" },
        "status": {
            "phase": phase,
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
