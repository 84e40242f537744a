//! ReplicaSets and Pods below the Deployments, as the Deployment controller and the kubelet write them.

use std::rc::Rc;

use bellwether_simulation::object::Object;
use jiff::{SignedDuration, Timestamp};
use rand::{Rng, seq::IndexedRandom as _};
use serde_json::{Value as Json, json};

use crate::objects::Kind;

/// The annotation of a ReplicaSet with its revision.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// The number of ReplicaSets of a Deployment, from which on the oldest is deleted.
pub(crate) const REVISIONS: usize = 3;

/// The seconds after which a Pod that is not ready means more: an unschedulable one has failed, and a failed
/// one makes its workload fail.
const MILESTONES: [i64; 2] = [15, 60];

/// The revision of a ReplicaSet.
pub(crate) fn revision(set: &Object) -> u64 {
    let text = set.metadata()["annotations"][REVISION].as_str();
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn template(name: &str) -> Json {
    json!({
        "metadata": { "labels": { "object": name } },
        // No scheduler and no kubelet knows the Pods.
        "spec": { "schedulerName": "none", "containers": [{ "name": "main", "image": "example.com/server" }] },
    })
}

/// An object with an owner, as its controller.
fn owned(kind: Kind, name: &str, owner: &Object) -> Json {
    let owners = json!([{
        "apiVersion": "apps/v1", "kind": &*owner.kind.kind, "name": &*owner.name.name, "uid": owner.uid(),
        "controller": true,
    }]);
    let metadata = json!({ "name": name, "labels": { "object": name }, "ownerReferences": owners });
    json!({ "apiVersion": kind.api_resource().api_version(), "kind": kind.name(), "metadata": metadata })
}

/// A ReplicaSet of a Deployment.
pub(crate) fn replica_set(deployment: &Object, revision: u64, random: &mut impl Rng) -> Json {
    let name = format!("{}-{:04x}", deployment.name.name, random.random::<u16>());
    let mut set = owned(Kind::ReplicaSet, &name, deployment);
    set["metadata"]["annotations"] = json!({ (REVISION): revision.to_string() });
    set["spec"] = json!({
        "replicas": 1, "selector": { "matchLabels": { "object": name } }, "template": template(&name),
    });
    set
}

/// A Pod of a ReplicaSet.
pub(crate) fn pod(set: &Object, random: &mut impl Rng) -> Json {
    let name = format!("{}-{:04x}", set.name.name, random.random::<u16>());
    let mut pod = owned(Kind::Pod, &name, set);
    pod["spec"] = template(&name)["spec"].take();
    pod
}

/// A random status of a Pod. It is not ready since a time of which some are just before a milestone.
pub(crate) fn pod_status(random: &mut impl Rng) -> Json {
    let ages = [0..3, 5..15, 45..60, 60..90];
    let age = ages.choose(random).cloned().unwrap_or(0..3);
    let age = random.random_range(age);
    let since = Timestamp::now() - SignedDuration::from_secs(age);
    let since = since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let condition = |kind: &str, status: &str, reason: &str| json!({ "type": kind, "status": status, "reason": reason, "lastTransitionTime": since });
    let container = |state: Json| {
        json!([{
            "name": "main", "image": "example.com/server", "imageID": "", "ready": false, "restartCount": 0,
            "state": state,
        }])
    };
    let not_ready = || json!([condition("Ready", "False", "ContainersNotReady")]);
    let waits = |reason: &str| container(json!({ "waiting": { "reason": reason, "message": "back-off" } }));
    match random.random_range(0..10) {
        0..3 => json!({
            "phase": "Running", "conditions": [condition("Ready", "True", "")], "containerStatuses": null,
        }),
        3..6 => {
            let reasons = ["CrashLoopBackOff", "ImagePullBackOff", "CrashLoopBackOff", "InvalidImageName"];
            let reason = reasons.choose(random).unwrap_or(&"CrashLoopBackOff");
            json!({ "phase": "Pending", "conditions": not_ready(), "containerStatuses": waits(reason) })
        }
        6 => json!({
            "phase": "Pending", "conditions": [condition("PodScheduled", "False", "Unschedulable")],
            "containerStatuses": null,
        }),
        7..9 => json!({
            "phase": "Running", "conditions": not_ready(), "containerStatuses": container(json!({ "running": {} })),
        }),
        _ => json!({ "phase": "Failed", "conditions": not_ready(), "containerStatuses": null }),
    }
}

/// The times at which time alone may change what a Pod means.
pub(crate) fn milestones(pod: &Rc<Object>) -> Vec<Timestamp> {
    let conditions = pod.value["status"]["conditions"].as_array().into_iter().flatten();
    let since = conditions.filter_map(|it| it["lastTransitionTime"].as_str()?.parse::<Timestamp>().ok());
    since.flat_map(|since| MILESTONES.map(|seconds| since + SignedDuration::from_secs(seconds))).collect()
}
