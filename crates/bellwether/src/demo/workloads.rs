//! The simulated controllers of Deployments, ReplicaSets and StatefulSets, as far as the story needs them.

use std::time::Duration;

use bellwether_engine::GroupKind;
use bellwether_memory_cluster::merge;
use serde_json::{Value, json};

use super::{
    memory::{Memory, condition, count, is_deleting, is_ready, text, uid},
    store::Store,
};

/// The annotation of Deployments and ReplicaSets with the number of their revision.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// The alphabet of generated names in Kubernetes, which has no vowels.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

pub(super) fn deployment() -> GroupKind {
    GroupKind::new("apps", "Deployment")
}

pub(super) fn replica_set() -> GroupKind {
    GroupKind::new("apps", "ReplicaSet")
}

pub(super) fn stateful_set() -> GroupKind {
    GroupKind::new("apps", "StatefulSet")
}

pub(super) fn claim() -> GroupKind {
    GroupKind::new("", "PersistentVolumeClaim")
}

pub(super) fn act(store: &mut Store, memory: &mut Memory) {
    // A Deployment that is paused from the beginning has no ReplicaSets.
    for it in store.all(&deployment()).iter().filter(|it| it["spec"]["paused"] != true) {
        roll_out(store, memory, it);
    }
    for it in store.all(&replica_set()) {
        keep_replicas(store, &it);
    }
    for it in store.all(&stateful_set()) {
        keep_in_order(store, &it);
    }
    store.collect_garbage();
}

/// A ReplicaSet of a Deployment.
struct Set {
    name: String,
    wanted: i64,
    current: i64,
    ready: i64,
}

impl Set {
    fn of(it: &Value) -> Self {
        Self {
            name: text(&it["metadata"]["name"]).to_owned(),
            wanted: count(&it["spec"]["replicas"]),
            current: count(&it["status"]["replicas"]),
            ready: count(&it["status"]["readyReplicas"]),
        }
    }
}

/// One step of a rollout.
fn roll_out(store: &mut Store, memory: &mut Memory, it: &Value) {
    let template = &it["spec"]["template"];
    let hash = version(template);
    let name = format!("{}-{hash}", text(&it["metadata"]["name"]));
    let sets = owned(store, &replica_set(), it);
    let last = sets.iter().map(revision).max().unwrap_or_default();
    if let Some(set) = sets.iter().find(|set| text(&set["metadata"]["name"]) == name) {
        let number = if revision(set) < last { last + 1 } else { last };
        set_revision(store, &replica_set(), set, number);
        set_revision(store, &deployment(), it, number);
    }
    let (newest, old): (Vec<_>, Vec<_>) = sets.iter().map(Set::of).partition(|set| set.name == name);
    let Some(newest) = newest.into_iter().next() else {
        let mut template = template.clone();
        let labels = json!({ "metadata": { "labels": { "pod-template-hash": hash } } });
        merge(&mut template, &labels);
        store.create(json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": name, "labels": template["metadata"]["labels"], "ownerReferences": [owner_reference(it)],
                "annotations": { REVISION: (last + 1).to_string() },
            },
            "spec": { "replicas": 0, "template": template },
        }));
        return;
    };
    // The defaults of maxSurge and maxUnavailable: 25 %, rounded up and down.
    let desired = count(&it["spec"]["replicas"]);
    let (max, min) = (desired + (desired + 3) / 4, desired - desired / 4);
    let wanted: i64 = newest.wanted + old.iter().map(|set| set.wanted).sum::<i64>();
    let ready: i64 = newest.ready + old.iter().map(|set| set.ready).sum::<i64>();
    let more = (desired - newest.wanted).min(max - wanted);
    if more > 0 {
        scale(store, &newest.name, newest.wanted + more);
    } else if let Some((set, left)) = shrink(&newest, &old, wanted - min, ready - min) {
        scale(store, set, left);
    }
    write_status(store, memory, it, &newest, &old, min);
}

fn revision(it: &Value) -> u64 {
    text(&it["metadata"]["annotations"][REVISION]).parse().unwrap_or_default()
}

fn set_revision(store: &mut Store, kind: &GroupKind, it: &Value, number: u64) {
    if revision(it) != number {
        let annotations = json!({ REVISION: number.to_string() });
        store.patch(
            kind,
            text(&it["metadata"]["name"]),
            &json!({ "metadata": { "annotations": annotations } }),
        );
    }
}

/// The old ReplicaSet to scale down next, and to how many replicas: those with unready Pods first.
fn shrink<'s>(newest: &Set, old: &'s [Set], surplus: i64, ready_surplus: i64) -> Option<(&'s str, i64)> {
    let fewer = surplus - (newest.wanted - newest.ready);
    let broken = old.iter().find(|set| set.wanted > set.ready).filter(|_| fewer > 0);
    if let Some(set) = broken {
        return Some((&set.name, set.wanted - fewer.min(set.wanted - set.ready)));
    }
    let set = old.iter().find(|set| set.wanted > 0).filter(|_| ready_surplus > 0)?;
    Some((&set.name, (set.wanted - ready_surplus).max(0)))
}

fn scale(store: &mut Store, set: &str, replicas: i64) {
    store.patch(&replica_set(), set, &json!({ "spec": { "replicas": replicas } }));
}

fn write_status(store: &mut Store, memory: &mut Memory, it: &Value, newest: &Set, old: &[Set], min: i64) {
    let desired = count(&it["spec"]["replicas"]);
    let current: i64 = newest.current + old.iter().map(|set| set.current).sum::<i64>();
    let ready: i64 = newest.ready + old.iter().map(|set| set.ready).sum::<i64>();
    let deadline = u64::try_from(count(&it["spec"]["progressDeadlineSeconds"])).unwrap_or_default();
    let progress = format!("{} {} {current} {ready}", newest.name, newest.current);
    let stalled = memory.unchanged(uid(it), "rollout", progress);
    let set = &newest.name;
    let (progressing, reason, message) = if [newest.current, current, ready] == [desired; 3] {
        (true, "NewReplicaSetAvailable", format!("ReplicaSet \"{set}\" has successfully progressed."))
    } else if stalled >= Duration::from_secs(deadline) {
        (false, "ProgressDeadlineExceeded", format!("ReplicaSet \"{set}\" has timed out progressing."))
    } else {
        (true, "ReplicaSetUpdated", format!("ReplicaSet \"{set}\" is progressing."))
    };
    let available = if ready >= min {
        (true, "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        (false, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    let time = store.time();
    let status = json!({
        "observedGeneration": it["metadata"]["generation"],
        "replicas": current,
        "updatedReplicas": newest.current,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "unavailableReplicas": (desired - ready).max(0),
        "conditions": [
            condition(it, "Available", available, &time),
            condition(it, "Progressing", (progressing, reason, &message), &time),
        ],
    });
    store.patch(&deployment(), text(&it["metadata"]["name"]), &json!({ "status": status }));
}

/// Creates and deletes Pods of a ReplicaSet: unready ones are deleted first, then the youngest.
fn keep_replicas(store: &mut Store, it: &Value) {
    let name = text(&it["metadata"]["name"]);
    let mut pods = owned(store, &GroupKind::pod(), it);
    pods.retain(|pod| !is_deleting(pod));
    pods.sort_by_key(|pod| (!is_ready(pod), uid(pod).to_owned()));
    let (wanted, current) = (count(&it["spec"]["replicas"]), pods.len());
    let wanted = usize::try_from(wanted).unwrap_or_default();
    for number in current..wanted {
        let suffix = letters(&format!("{name} {} {number}", store.revision()), 5);
        create_pod(store, it, &format!("{name}-{suffix}"), &[]);
    }
    for pod in pods.iter().skip(wanted) {
        store.delete(&GroupKind::pod(), text(&pod["metadata"]["name"]));
    }
    let kept = pods.get(..wanted).unwrap_or(&pods);
    let ready = kept.iter().filter(|pod| is_ready(pod)).count();
    let status = json!({
        "observedGeneration": it["metadata"]["generation"],
        "replicas": wanted,
        "fullyLabeledReplicas": wanted,
        "readyReplicas": ready,
        "availableReplicas": ready,
    });
    store.patch(&replica_set(), name, &json!({ "status": status }));
}

/// Creates the Pods of a StatefulSet in order, each when the one before it is ready, with their volumes.
fn keep_in_order(store: &mut Store, it: &Value) {
    let name = text(&it["metadata"]["name"]);
    let mut pods = owned(store, &GroupKind::pod(), it);
    let ready = pods.iter().filter(|pod| is_ready(pod) && !is_deleting(pod)).count();
    let replicas = count(&it["spec"]["replicas"]);
    // A Pod that is being deleted blocks the next one of the same name.
    if ready == pods.len() && pods.len() < usize::try_from(replicas).unwrap_or_default() {
        let pod = format!("{name}-{}", pods.len());
        let templates = it["spec"]["volumeClaimTemplates"].as_array();
        let mut volumes = Vec::new();
        for template in templates.into_iter().flatten() {
            let volume = text(&template["metadata"]["name"]);
            let claim = format!("{volume}-{pod}");
            store.apply(&json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": { "name": claim }, "spec": template["spec"],
            }));
            volumes.push(json!({ "name": volume, "persistentVolumeClaim": { "claimName": claim } }));
        }
        create_pod(store, it, &pod, &volumes);
        pods = owned(store, &GroupKind::pod(), it);
    }
    let revision = format!("{name}-{}", version(&it["spec"]["template"]));
    let current = pods.iter().filter(|pod| !is_deleting(pod)).count();
    let status = json!({
        "observedGeneration": it["metadata"]["generation"],
        "replicas": current,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "currentReplicas": current,
        "updatedReplicas": current,
        "currentRevision": revision,
        "updateRevision": revision,
    });
    store.patch(&stateful_set(), name, &json!({ "status": status }));
}

fn create_pod(store: &mut Store, owner: &Value, name: &str, volumes: &[Value]) {
    let template = &owner["spec"]["template"];
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "labels": template["metadata"]["labels"], "ownerReferences": [owner_reference(owner)],
        },
        "spec": template["spec"],
    });
    merge(&mut pod, &json!({ "spec": { "volumes": volumes } }));
    store.create(pod);
}

fn owners(object: &Value) -> impl Iterator<Item = &str> {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.into_iter().flatten().map(|owner| text(&owner["uid"]))
}

/// The objects of a kind with an owner reference to this one.
fn owned(store: &Store, kind: &GroupKind, by: &Value) -> Vec<Value> {
    let mut all = store.all(kind);
    all.retain(|object| owners(object).any(|owner| owner == uid(by)));
    all
}

fn owner_reference(of: &Value) -> Value {
    json!({
        "apiVersion": of["apiVersion"], "kind": of["kind"], "name": of["metadata"]["name"], "uid": of["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// A hash of a Pod template. In the story, only images change.
fn version(template: &Value) -> String {
    let containers = template["spec"]["containers"].as_array().into_iter().flatten();
    let images: Vec<_> = containers.map(|container| text(&container["image"])).collect();
    letters(&images.join(" "), 8)
}

/// The FNV-1a hash of a text, in the alphabet of generated names.
fn letters(text: &str, count: usize) -> String {
    let mut number = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let all = ALPHABET.len() as u64;
    let letter = |_| {
        let index = usize::try_from(number % all).unwrap_or_default();
        number /= all;
        ALPHABET.get(index).copied().map_or('x', char::from)
    };
    (0..count).map(letter).collect()
}
