//! Random changes by users and other controllers.

use std::{borrow::Cow, fmt, rc::Rc};

use bellwether_api::{APPLICATION_ANNOTATION, GROUP, VERSION};
use bellwether_engine::{GroupKind, NamespacedName};
use jiff::{SignedDuration, Timestamp};
use rand::{
    Rng,
    seq::{IndexedRandom as _, IteratorRandom as _},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    object::{Object, identity, merge},
    objects::{self, app, deployment, health_check, pod, service, unschedulable_pod, widget, with},
    store::Store,
    tampering::Tampering,
};

/// Static in a plan that was drawn, owned in one that was read from a file.
pub(crate) type Text = Cow<'static, str>;

/// Kind and name of an object.
pub(crate) type ObjectRef = (Text, Text);

pub(crate) const APP: &str = "Application.bellwether.dev";

pub(crate) const ROLLUP: &str = "Rollup.bellwether.dev";

const APPS: [&str; 3] = ["a", "b", "c"];
const WORKLOADS: [&str; 4] = ["Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "Job.batch"];
const KINDS: [&str; 7] = [
    "Deployment.apps",
    "StatefulSet.apps",
    "DaemonSet.apps",
    "Job.batch",
    "Widget.acme.io",
    "Service",
    "Pod",
];
const NAMES: [&str; 3] = ["x", "y", "z"];

/// An action on one object. Part of the file format of histories, like `Plan`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum UserAction {
    /// Creates or replaces the object. Owner references stay, and so does the status unless one is given.
    Put(Value),
    Delete(ObjectRef),
    /// Deletes and creates the object, so that it has another UID.
    Recreate(ObjectRef),
    /// Sets the deletion timestamp. A finalizer keeps the object.
    Mark(ObjectRef),
    /// Makes an Application the only owner.
    Own(ObjectRef, Text),
    /// Sets a foreign condition in the status of a group.
    Remark(ObjectRef, bool),
    /// Flips a condition in the status of a group.
    Overwrite(ObjectRef, Text),
    /// Clears the status of a group; if false, all but `ownedKinds`.
    Clear(ObjectRef, bool),
    /// Restores the previous spec of a group.
    Revert(ObjectRef),
    /// Merges into the status, as the operator of the object does.
    Say(ObjectRef, Value),
    /// Sets or removes the label `tier`.
    Label(ObjectRef, Option<Text>),
    /// Sets an annotation that has no meaning for Bellwether.
    Annotate(ObjectRef, u32),
    /// Creates or replaces a Pod below a workload, as its controller does: of this revision, in this state.
    /// Below a Deployment, its ReplicaSet of that revision is created as well.
    Run(ObjectRef, Text, PodState),
    /// Removes a Pod of this revision below a workload.
    Stop(ObjectRef, Text),
    /// Sets whether the one endpoint of a Service is ready.
    Endpoint(Text, bool),
    /// Merges fields into an object.
    Merge(ObjectRef, Value),
    /// Changes one of the CombinedStatuses, counted by this number.
    Tamper(usize, Tampering),
}

/// The state of a Pod below a workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum PodState {
    Ready,
    /// Running and not ready, since so many seconds.
    NotReady(i64),
    /// A container waits for this reason, since so many seconds.
    Failing(Text, i64),
    /// It has run to its end, and failed.
    Finished,
}

impl UserAction {
    /// A random action on an Application or an object that may be a member.
    pub(crate) fn draw(rng: &mut impl Rng) -> Self {
        match rng.random_range(0..46) {
            0..8 => Self::Put(application(rng)),
            8..20 => Self::Put(object(rng)),
            20..23 => Self::Delete(target(rng)),
            23..25 => Self::Recreate(target(rng)),
            25 => Self::Delete(app_target(rng)),
            26 => Self::Recreate(app_target(rng)),
            27 => Self::Mark(app_target(rng)),
            28 => Self::Mark(target(rng)),
            29 => Self::Own(target(rng), pick(rng, &APPS).into()),
            30 => Self::Own(any(rng), pick(rng, &APPS).into()),
            31 => Self::Remark(app_target(rng), rng.random()),
            32 => Self::Overwrite(app_target(rng), "Ready".into()),
            33 => Self::Clear(app_target(rng), rng.random()),
            34..36 => Self::Revert(app_target(rng)),
            36..42 => Self::Run(workload(rng), pick(rng, &["1", "2"]).into(), PodState::draw(rng)),
            42 => Self::Stop(workload(rng), pick(rng, &["1", "2"]).into()),
            43..45 => Self::Endpoint(pick(rng, &NAMES).into(), rng.random()),
            _ => Self::Annotate(target(rng), rng.random_range(0..1000)),
        }
    }

    /// Applies the action. Does nothing if the object does not exist.
    pub(crate) fn apply(&self, store: &mut Store, now: Timestamp) {
        let key = |(kind, name): &ObjectRef| objects::key(kind, name);
        match self {
            Self::Put(value) => put(store, dated(value, now)),
            Self::Delete(target) => {
                let (kind, name) = key(target);
                store.remove(&kind, &name);
            }
            Self::Recreate(target) => {
                let (kind, name) = key(target);
                let Some(object) = store.get(&kind, &name).cloned() else { return };
                store.remove(&kind, &name);
                let mut value = object.value.clone();
                for field in ["uid", "resourceVersion", "generation", "ownerReferences", "deletionTimestamp"]
                {
                    value["metadata"].as_object_mut().map(|metadata| metadata.remove(field));
                }
                if matches!(&*target.0, APP | ROLLUP) {
                    value.as_object_mut().map(|fields| fields.remove("status"));
                }
                store.put(value);
            }
            Self::Mark(target) => edit(store, target, |value| {
                value["metadata"]["deletionTimestamp"] = json!("2026-11-14T10:00:00Z");
            }),
            Self::Own(target, app) => {
                let (kind, name) = objects::key(APP, app);
                let Some(uid) = store.get(&kind, &name).map(|app| app.uid().to_owned()) else { return };
                let owner = json!([{
                    "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "Application", "name": app, "uid": uid,
                }]);
                edit(store, target, |value| value["metadata"]["ownerReferences"] = owner);
            }
            Self::Remark(target, good) => edit(store, target, |value| remark(&mut value["status"], *good)),
            Self::Overwrite(target, kind) => edit(store, target, |value| {
                let conditions = value.pointer_mut("/status/conditions").and_then(Value::as_array_mut);
                for condition in conditions.into_iter().flatten() {
                    if condition["type"] == **kind {
                        let status = if condition["status"] == "True" { "False" } else { "True" };
                        condition["status"] = json!(status);
                    }
                }
            }),
            Self::Clear(target, whole) => edit(store, target, |value| {
                let owned = value["status"]["ownedKinds"].take();
                value["status"] =
                    if *whole || owned.is_null() { json!({}) } else { json!({"ownedKinds": owned}) };
            }),
            Self::Revert(target) => {
                let (kind, name) = key(target);
                let Some(now) = store.get(&kind, &name).map(Rc::clone) else { return };
                let is_it = |it: &&Object| it.uid() == now.uid() && it.value["spec"] != now.value["spec"];
                let before = store.log.iter().map(|entry| &*entry.object).rfind(is_it);
                if let Some(spec) = before.map(|before| before.value["spec"].clone()) {
                    edit(store, target, |value| value["spec"] = spec);
                }
            }
            Self::Say(target, status) => {
                let status = dated(status, now);
                edit(store, target, |value| merge(&mut value["status"], &status));
            }
            Self::Label(target, tier) => edit(store, target, |value| {
                merge(&mut value["metadata"], &json!({"labels": {"tier": tier}}));
            }),
            Self::Annotate(target, number) => edit(store, target, |value| {
                value["metadata"]["annotations"]["example.com/seen"] = json!(number.to_string());
            }),
            Self::Run(workload, revision, state) => run(store, workload, revision, state, now),
            Self::Stop((kind, name), revision) => {
                let (pod, name) = objects::key("Pod", &pod_name(kind, name, revision));
                store.remove(&pod, &name);
            }
            Self::Endpoint(service, ready) => put(store, objects::endpoint_slice(service, *ready)),
            Self::Merge(target, fields) => edit(store, target, |value| merge(value, fields)),
            Self::Tamper(number, tampering) => tampering.apply(*number, store),
        }
    }
}

impl PodState {
    fn draw(rng: &mut impl Rng) -> Self {
        let ago = pick(rng, &[0, 1, 30, 59, 61, 600]);
        match rng.random_range(0..8) {
            0 | 1 => Self::Ready,
            2 => Self::NotReady(ago),
            3 => Self::Finished,
            _ => {
                let reasons = [
                    "CrashLoopBackOff",
                    "ImagePullBackOff",
                    "CreateContainerConfigError",
                    "InvalidImageName",
                ];
                Self::Failing(pick(rng, &reasons).into(), ago)
            }
        }
    }

    fn pod(&self, name: &str) -> Value {
        let object = match self {
            Self::Ready => pod(name, true),
            Self::NotReady(ago) => with(
                pod(name, false),
                &json!({"status": {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": ago}]}}),
            ),
            Self::Failing(reason, ago) => objects::failing_pod(name, reason, &json!(ago)),
            Self::Finished => with(pod(name, false), &json!({"status": {"phase": "Failed"}})),
        };
        with(object, &json!({"metadata": {"labels": null}}))
    }
}

fn pod_name(kind: &str, workload: &str, revision: &str) -> String {
    let short = match kind {
        "DaemonSet.apps" => "ds",
        "Job.batch" => "j",
        "StatefulSet.apps" => "s",
        _ => "d",
    };
    format!("{workload}-{short}{revision}-pod")
}

fn run(store: &mut Store, (kind, name): &ObjectRef, revision: &str, state: &PodState, now: Timestamp) {
    let (group_kind, key) = objects::key(kind, name);
    let Some(uid) = store.get(&group_kind, &key).map(|workload| workload.uid().to_owned()) else { return };
    let pod = dated(&state.pod(&pod_name(kind, name, revision)), now);
    let labelled = |label: &str| {
        let labels = json!({"metadata": {"labels": {label: revision}}});
        objects::owned_by(with(pod.clone(), &labels), &group_kind.kind, name, &uid)
    };
    let pod = if &**kind == "Deployment.apps" {
        let set = format!("{name}-{revision}");
        let (set_kind, set_key) = objects::key("ReplicaSet.apps", &set);
        // A Deployment of another uid has other ReplicaSets.
        let is_foreign = |set: &Rc<Object>| set.owners().next() != Some(&uid);
        if store.get(&set_kind, &set_key).is_some_and(is_foreign) {
            store.remove(&set_kind, &set_key);
        }
        put(store, objects::owned_by(objects::replica_set(&set, revision), "Deployment", name, &uid));
        set_newest_revision(store, (&group_kind, &key), revision);
        let Some(set_uid) = store.get(&set_kind, &set_key).map(|set| set.uid().to_owned()) else { return };
        objects::owned_by(pod, "ReplicaSet", &set, &set_uid)
    } else if &**kind == "Job.batch" {
        objects::owned_by(pod, "Job", name, &uid)
    } else {
        let is_daemon_set = &**kind == "DaemonSet.apps";
        labelled(if is_daemon_set { "pod-template-generation" } else { "controller-revision-hash" })
    };
    let (pod_kind, pod_key) = identity(&pod);
    store.remove(&pod_kind, &pod_key);
    put(store, pod);
}

/// Sets the revision of a Deployment, as its controller does, unless it is newer.
fn set_newest_revision(store: &mut Store, (kind, name): (&GroupKind, &NamespacedName), revision: &str) {
    let Some(deployment) = store.get(kind, name) else { return };
    let number = |text: Option<&str>| text.and_then(|text| text.parse::<u64>().ok());
    let before = number(deployment.metadata()["annotations"]["deployment.kubernetes.io/revision"].as_str());
    if before < number(Some(revision)) {
        let annotations =
            json!({"metadata": {"annotations": {"deployment.kubernetes.io/revision": revision}}});
        put(store, with(deployment.value.clone(), &annotations));
    }
}

fn workload(rng: &mut impl Rng) -> ObjectRef {
    (pick(rng, &WORKLOADS).into(), pick(rng, &NAMES).into())
}

impl fmt::Display for UserAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |(kind, name): &ObjectRef| format!("{kind} {name}");
        match self {
            Self::Put(value) => write!(f, "put {value}"),
            Self::Delete(target) => write!(f, "delete {}", one(target)),
            Self::Recreate(target) => write!(f, "delete and recreate {}", one(target)),
            Self::Mark(target) => write!(f, "delete {}, blocked by a finalizer", one(target)),
            Self::Own(target, app) => write!(f, "make Application {app} the owner of {}", one(target)),
            Self::Remark(target, good) => {
                write!(f, "set condition example.com/Reviewed of {} to {good}", one(target))
            }
            Self::Overwrite(target, kind) => write!(f, "flip condition {kind} of {}", one(target)),
            Self::Clear(target, true) => write!(f, "clear the status of {}", one(target)),
            Self::Clear(target, false) => {
                write!(f, "clear the status of {} except ownedKinds", one(target))
            }
            Self::Revert(target) => write!(f, "restore the previous spec of {}", one(target)),
            Self::Say(target, status) => write!(f, "report status of {}: {status}", one(target)),
            Self::Label(target, tier) => write!(f, "set label tier of {} to {tier:?}", one(target)),
            Self::Annotate(target, number) => write!(f, "annotate {} with {number}", one(target)),
            Self::Run(workload, revision, state) => {
                write!(f, "run a Pod of revision {revision} below {}: {state:?}", one(workload))
            }
            Self::Stop(workload, revision) => {
                write!(f, "delete the Pod of revision {revision} below {}", one(workload))
            }
            Self::Endpoint(service, ready) => {
                write!(f, "the endpoint of Service {service} is ready: {ready}")
            }
            Self::Merge(target, fields) => write!(f, "merge into {}: {fields}", one(target)),
            Self::Tamper(number, tampering) => {
                write!(f, "another user changes CombinedStatus number {number}: {tampering:?}")
            }
        }
    }
}

/// Sets a condition of another writer.
fn remark(status: &mut Value, good: bool) {
    let condition = json!({
        "type": "example.com/Reviewed", "status": if good { "True" } else { "False" }, "reason": "Reviewed",
        "message": "reviewed by a colleague", "lastTransitionTime": "2026-11-14T10:00:00Z",
    });
    if !status["conditions"].is_array() {
        status["conditions"] = json!([]);
    }
    let conditions = status["conditions"].as_array_mut().into_iter();
    conditions.for_each(|conditions| {
        conditions.retain(|other| other["type"] != condition["type"]);
        conditions.push(condition.clone());
    });
}

/// Replaces numbers, seconds before `now`, by timestamps. Plans have no absolute times.
pub(crate) fn dated(value: &Value, now: Timestamp) -> Value {
    let mut value = value.clone();
    let date = |time: &mut Value| {
        if let Some(ago) = time.as_i64() {
            let then = now.saturating_sub(SignedDuration::from_secs(ago)).unwrap_or(now);
            *time = json!(Timestamp::from_second(then.as_second()).unwrap_or(then).to_string());
        }
    };
    // Events depend on the age of a group.
    let (kind, _) = identity(&value);
    let is_group = ["Application", "Rollup"].iter().any(|own| kind == GroupKind::bellwether(own));
    if is_group && value["metadata"]["creationTimestamp"].is_null() {
        value["metadata"]["creationTimestamp"] = json!(0);
    }
    if let Some(created) = value.pointer_mut("/metadata/creationTimestamp") {
        date(created);
    }
    for path in ["/status/conditions", "/conditions"] {
        let conditions = value.pointer_mut(path).and_then(Value::as_array_mut);
        for condition in conditions.into_iter().flatten() {
            date(&mut condition["lastTransitionTime"]);
        }
    }
    value
}

/// Creates or replaces an object, if its kind is served.
fn put(store: &mut Store, mut value: Value) {
    let (kind, name) = identity(&value);
    if !store.kinds.contains_key(&kind) {
        return;
    }
    if let Some(before) = store.get(&kind, &name) {
        let created = &before.metadata()["creationTimestamp"];
        if !created.is_null() {
            value["metadata"]["creationTimestamp"] = created.clone();
        }
        if !before.metadata()["ownerReferences"].is_null() {
            value["metadata"]["ownerReferences"] = before.metadata()["ownerReferences"].clone();
        }
        if value.get("status").is_none() && !before.value["status"].is_null() {
            value["status"] = before.value["status"].clone();
        }
        if before.is_deleting() {
            value["metadata"]["deletionTimestamp"] = before.metadata()["deletionTimestamp"].clone();
        }
    }
    store.put(value);
}

fn edit(store: &mut Store, (kind, name): &ObjectRef, edit: impl FnOnce(&mut Value)) {
    let (kind, name) = objects::key(kind, name);
    store.edit(&kind, &name, edit);
}

pub(crate) fn pick<T: Copy>(rng: &mut impl Rng, among: &[T]) -> T {
    among[rng.random_range(0..among.len())]
}

fn target(rng: &mut impl Rng) -> ObjectRef {
    (pick(rng, &KINDS).into(), pick(rng, &NAMES).into())
}

fn app_target(rng: &mut impl Rng) -> ObjectRef {
    (APP.into(), pick(rng, &APPS).into())
}

fn any(rng: &mut impl Rng) -> ObjectRef {
    if rng.random() { target(rng) } else { app_target(rng) }
}

/// A random Application. Its selector depends only on its name, because selectors are immutable.
pub(crate) fn application(rng: &mut impl Rng) -> Value {
    let name = pick(rng, &APPS);
    let all = KINDS.into_iter().chain(["Gone.no.where", APP]);
    let count = rng.random_range(0..5);
    let kinds: Vec<_> = all.choose_multiple(rng, count);
    let kinds: Vec<_> = kinds
        .into_iter()
        .map(objects::kind)
        .map(|kind| json!({"group": *kind.group, "kind": *kind.kind}))
        .collect();
    let mut named = json!({});
    for _ in 0..rng.random_range(0..3) {
        let key = pick(rng, &["x", "y"]);
        let kind = objects::kind(pick(rng, &["Deployment.apps", "Widget.acme.io", "Service"]));
        named[key] = json!({"group": *kind.group, "kind": *kind.kind});
    }
    let dependencies: Vec<_> = ["a", "b", "c", "no-app"].choose_multiple(rng, 4).collect();
    let dependencies = &dependencies[..[0, 0, 0, 1, 2][rng.random_range(0..5)]];
    let selector = match name {
        "a" => json!({"matchLabels": {"app": "web"}}),
        "b" => {
            json!({"matchLabels": null, "matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "api"]}]})
        }
        _ => {
            json!({"matchLabels": null, "matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["api"]}]})
        }
    };
    let spec = json!({
        "selector": selector, "componentKinds": kinds, "components": named, "dependencies": dependencies,
        "membership": pick(rng, &["Selected", "Annotated"]),
        "ownership": pick(rng, &["Adopt", "Adopt", "Observe"]),
    });
    let check = match rng.random_range(0..8) {
        0 => health_check("check:1"),
        1 => health_check("check:2"),
        2 if rng.random_bool(0.3) => health_check(""),
        _ => json!({}),
    };
    let app = app(name, &with(spec, &check));
    // Some are members of another Application.
    if rng.random_bool(0.3) { with(app, &belongings(rng)) } else { app }
}

/// A label and an annotation that may make an object a member of an Application.
pub(crate) fn belongings(rng: &mut impl Rng) -> Value {
    let label = pick(rng, &[Some("web"), Some("web"), Some("api"), None]);
    let annotation = pick(rng, &[None, None, Some("a"), Some("b"), Some("no-app")]);
    json!({"metadata": {"labels": {"app": label}, "annotations": {APPLICATION_ANNOTATION: annotation}}})
}

fn job(rng: &mut impl Rng, name: &str) -> Value {
    let ended = [
        None,
        None,
        Some(("Complete", "CompletionsReached")),
        Some(("Failed", "BackoffLimitExceeded")),
        Some(("FailureTarget", "PodFailurePolicy")),
    ];
    let suspended = json!({"spec": {"suspend": rng.random_bool(0.2)}});
    with(objects::job(name, pick(rng, &ended)), &suspended)
}

fn object(rng: &mut impl Rng) -> Value {
    let name = pick(rng, &NAMES);
    let object = match rng.random_range(0..21) {
        0..3 => {
            let observed = if rng.random() { 0 } else { 99 };
            let object = if rng.random_bool(0.2) {
                deployment(name, 0, 0)
            } else {
                deployment(name, rng.random_range(0..=3), 3)
            };
            with(object, &json!({"status": {"observedGeneration": observed}}))
        }
        3 => with(deployment(name, 1, 3), &json!({"spec": {"paused": true}})),
        4..8 => widget(name, pick(rng, &[None, Some("True"), Some("True"), Some("False"), Some("Unknown")])),
        8..10 => service(name),
        10..12 => pod(name, rng.random()),
        12..14 => {
            let replicas = pick(rng, &[0, 3, 3]);
            let ready = rng.random_range(0..=replicas);
            let object = objects::stateful_set(name, ready, replicas, pick(rng, &["1", "2"]));
            with(object, &json!({"status": {"observedGeneration": 99}}))
        }
        14..16 => objects::selecting_service(name),
        16..18 => {
            let counts = pick(rng, &[(0, 0, 0), (0, 2, 2), (1, 1, 2), (1, 2, 2), (2, 2, 2)]);
            objects::daemon_set(name, counts, pick(rng, &["1", "2", "3"]))
        }
        18..20 => job(rng, name),
        _ => unschedulable_pod(name),
    };
    let belongings = belongings(rng);
    let namespace = if rng.random_bool(0.1) { "elsewhere" } else { objects::NAMESPACE };
    let owner = if rng.random_bool(0.15) {
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "foreign", "uid": "f1", "controller": true}])
    } else {
        Value::Null
    };
    let fields = json!({"metadata": {"namespace": namespace, "ownerReferences": owner}});
    with(with(object, &belongings), &fields)
}
