//! Those who see to it that there are as many Pods as somebody wants, of the version that they want: the controllers of
//! Deployments, ReplicaSets and StatefulSets. They do as those of Kubernetes do, as far as the story needs it.

use std::time::Duration;

use bellwether_engine::GroupKind;
use bellwether_memory_cluster::merge;
use serde_json::{Value, json};

use super::{
    memory::{Memory, condition, count, is_deleting, is_ready, text, uid},
    store::Store,
};

/// The letters and digits that Kubernetes makes names of: nothing that reads like a word.
const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

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

/// Everybody has a look, and does what comes next.
pub(super) fn act(store: &mut Store, memory: &mut Memory) {
    for it in store.all(&deployment()) {
        roll_out(store, memory, &it);
    }
    for it in store.all(&replica_set()) {
        keep_replicas(store, &it);
    }
    for it in store.all(&stateful_set()) {
        keep_in_order(store, &it);
    }
    store.collect_garbage();
}

/// A ReplicaSet as its Deployment sees it.
struct Set {
    name: String,
    wanted: i64,
    there: i64,
    ready: i64,
}

impl Set {
    fn of(it: &Value) -> Self {
        Self {
            name: text(&it["metadata"]["name"]).to_owned(),
            wanted: count(&it["spec"]["replicas"]),
            there: count(&it["status"]["replicas"]),
            ready: count(&it["status"]["readyReplicas"]),
        }
    }
}

/// One step of a roll-out, and what there is to say of it.
fn roll_out(store: &mut Store, memory: &mut Memory, it: &Value) {
    let template = &it["spec"]["template"];
    let hash = version(template);
    let name = format!("{}-{hash}", text(&it["metadata"]["name"]));
    let sets = owned(store, &replica_set(), it);
    let (newest, old): (Vec<_>, Vec<_>) = sets.iter().map(Set::of).partition(|set| set.name == name);
    let Some(newest) = newest.into_iter().next() else {
        let mut template = template.clone();
        let labels = json!({ "metadata": { "labels": { "pod-template-hash": hash } } });
        merge(&mut template, &labels);
        store.create(json!({
            "apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {
                "name": name, "labels": template["metadata"]["labels"], "ownerReferences": [owner(it)],
            },
            "spec": { "replicas": 0, "template": template },
        }));
        return;
    };
    // A quarter more may be there, and a quarter less ready, unless somebody says otherwise; here nobody does.
    let desired = count(&it["spec"]["replicas"]);
    let (most, least) = (desired + (desired + 3) / 4, desired - desired / 4);
    let wanted: i64 = newest.wanted + old.iter().map(|set| set.wanted).sum::<i64>();
    let ready: i64 = newest.ready + old.iter().map(|set| set.ready).sum::<i64>();
    let more = (desired - newest.wanted).min(most - wanted);
    if more > 0 {
        scale(store, &newest.name, newest.wanted + more);
    } else if let Some((set, left)) = shrink(&newest, &old, wanted - least, ready - least) {
        scale(store, set, left);
    }
    say(store, memory, it, &newest, &old, least);
}

/// Which of the old ReplicaSets becomes smaller next: first those whose Pods are not ready, and are missed by nobody.
fn shrink<'s>(newest: &Set, old: &'s [Set], to_spare: i64, ready_to_spare: i64) -> Option<(&'s str, i64)> {
    let fewer = to_spare - (newest.wanted - newest.ready);
    let broken = old.iter().find(|set| set.wanted > set.ready).filter(|_| fewer > 0);
    if let Some(set) = broken {
        return Some((&set.name, set.wanted - fewer.min(set.wanted - set.ready)));
    }
    let set = old.iter().find(|set| set.wanted > 0).filter(|_| ready_to_spare > 0)?;
    Some((&set.name, (set.wanted - ready_to_spare).max(0)))
}

fn scale(store: &mut Store, set: &str, replicas: i64) {
    store.patch(&replica_set(), set, &json!({ "spec": { "replicas": replicas } }));
}

/// Writes down how the roll-out is going.
fn say(store: &mut Store, memory: &mut Memory, it: &Value, newest: &Set, old: &[Set], least: i64) {
    let desired = count(&it["spec"]["replicas"]);
    let there: i64 = newest.there + old.iter().map(|set| set.there).sum::<i64>();
    let ready: i64 = newest.ready + old.iter().map(|set| set.ready).sum::<i64>();
    let deadline = u64::try_from(count(&it["spec"]["progressDeadlineSeconds"])).unwrap_or_default();
    let how_far = format!("{} {} {there} {ready}", newest.name, newest.there);
    let stood_still = memory.unchanged(uid(it), "roll-out", how_far);
    let set = &newest.name;
    let (progressing, reason, message) = if [newest.there, there, ready] == [desired; 3] {
        (true, "NewReplicaSetAvailable", format!("ReplicaSet \"{set}\" has successfully progressed."))
    } else if stood_still >= Duration::from_secs(deadline) {
        (false, "ProgressDeadlineExceeded", format!("ReplicaSet \"{set}\" has timed out progressing."))
    } else {
        (true, "ReplicaSetUpdated", format!("ReplicaSet \"{set}\" is progressing."))
    };
    let available = if ready >= least {
        (true, "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        (false, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    let time = store.time();
    let status = json!({
        "observedGeneration": it["metadata"]["generation"],
        "replicas": there,
        "updatedReplicas": newest.there,
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

/// As many Pods as a ReplicaSet wants. Those that are not ready go first, then the youngest.
fn keep_replicas(store: &mut Store, it: &Value) {
    let name = text(&it["metadata"]["name"]);
    let mut pods = owned(store, &GroupKind::pod(), it);
    pods.retain(|pod| !is_deleting(pod));
    pods.sort_by_key(|pod| (!is_ready(pod), uid(pod).to_owned()));
    let (wanted, there) = (count(&it["spec"]["replicas"]), pods.len());
    let wanted = usize::try_from(wanted).unwrap_or_default();
    for number in there..wanted {
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

/// The Pods of a StatefulSet, each after the one before it is ready, and each with its own volumes.
fn keep_in_order(store: &mut Store, it: &Value) {
    let name = text(&it["metadata"]["name"]);
    let mut pods = owned(store, &GroupKind::pod(), it);
    let ready = pods.iter().filter(|pod| is_ready(pod) && !is_deleting(pod)).count();
    let replicas = count(&it["spec"]["replicas"]);
    // One that is about to go is in the way of the next of the same name.
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
    let there = pods.iter().filter(|pod| !is_deleting(pod)).count();
    let status = json!({
        "observedGeneration": it["metadata"]["generation"],
        "replicas": there,
        "readyReplicas": ready,
        "availableReplicas": ready,
        "currentReplicas": there,
        "updatedReplicas": there,
        "currentRevision": revision,
        "updateRevision": revision,
    });
    store.patch(&stateful_set(), name, &json!({ "status": status }));
}

fn create_pod(store: &mut Store, owned_by: &Value, name: &str, volumes: &[Value]) {
    let template = &owned_by["spec"]["template"];
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": name, "labels": template["metadata"]["labels"], "ownerReferences": [owner(owned_by)],
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

/// The objects of a kind that this one owns.
fn owned(store: &Store, kind: &GroupKind, by: &Value) -> Vec<Value> {
    let mut all = store.all(kind);
    all.retain(|object| owners(object).any(|owner| owner == uid(by)));
    all
}

fn owner(of: &Value) -> Value {
    json!({
        "apiVersion": of["apiVersion"], "kind": of["kind"], "name": of["metadata"]["name"], "uid": of["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// What tells one version of a template from another. In the story, versions differ in their images alone.
fn version(template: &Value) -> String {
    let containers = template["spec"]["containers"].as_array().into_iter().flatten();
    let images: Vec<_> = containers.map(|container| text(&container["image"])).collect();
    letters(&images.join(" "), 8)
}

/// Letters that are always the same for the same text, by the hash of Fowler, Noll and Vo.
fn letters(text: &str, count: usize) -> String {
    let mut number = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let all = LETTERS.len() as u64;
    let letter = |_| {
        let index = usize::try_from(number % all).unwrap_or_default();
        number /= all;
        LETTERS.get(index).copied().map_or('x', char::from)
    };
    (0..count).map(letter).collect()
}
