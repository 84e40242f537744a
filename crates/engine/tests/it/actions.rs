//! Random actions of users and controllers on a cluster, for property tests.

use bellwether_api::{APPLICATION_ANNOTATION, GROUP, VERSION};
use bellwether_engine::Unreadable;
use bellwether_simulation::operators;
use jiff::{SignedDuration, Timestamp};
use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};

use crate::{
    objects::{self, app, deployment, health_check, old_app, service, widget, with},
    server::identity,
    world::World,
};

#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Creates or replaces an object; its owner references stay.
    Put(Value),
    Delete(&'static str, &'static str),
    /// Sets a deletionTimestamp, as with a finalizer.
    Mark(&'static str, &'static str),
    /// Adds an owner reference to an Application.
    Own(&'static str, &'static str, &'static str),
    /// Makes a kind unreadable, or readable again.
    Unreadable(&'static str, Option<Unreadable>),
    Relist(&'static str),
    /// In seconds.
    Pass(i64),
    /// Failover: a new engine without any state.
    Restart,
}

const APPS: [&str; 3] = ["a", "b", "c"];
const KINDS: [&str; 4] = ["Deployment.apps", "Widget.acme.io", "Service", "Pod"];
const ROLLUP: &str = "Rollup.bellwether.dev";
const NAMES: [&str; 3] = ["x", "y", "z"];

impl Action {
    /// Only applies it. The engine reacts later, except for `Pass`.
    pub(crate) fn apply(&self, world: &mut World) {
        match self {
            Self::Put(object) => {
                let (kind, name) = identity(object);
                let before =
                    world.server.get(&kind, &name).map(|object| &object["metadata"]["ownerReferences"]);
                let owners = before.filter(|owners| !owners.is_null()).cloned();
                let mut object = object.clone();
                if let Some(owners) = owners {
                    object["metadata"]["ownerReferences"] = owners;
                }
                world.server.put(object);
            }
            Self::Delete(kind, name) => {
                let (kind, name) = objects::key(kind, name);
                world.server.remove(&kind, &name);
            }
            Self::Mark(kind, name) => {
                let (kind, name) = objects::key(kind, name);
                world.server.edit(&kind, &name, |object| {
                    object["metadata"]["deletionTimestamp"] = "2026-11-14T10:00:00Z".into();
                });
            }
            Self::Own(kind, name, app) => {
                let (own, app) = objects::key("Application.bellwether.dev", app);
                let Some(uid) = world.server.get(&own, &app).map(|app| app["metadata"]["uid"].clone()) else {
                    return;
                };
                let owner = json!([{
                    "apiVersion": format!("{GROUP}/{VERSION}"), "kind": "Application", "name": *app.name, "uid": uid,
                }]);
                let (kind, name) = objects::key(kind, name);
                world.server.edit(&kind, &name, |object| object["metadata"]["ownerReferences"] = owner);
            }
            Self::Unreadable(kind, why) => world.unreadable(kind, why.clone()),
            Self::Relist(kind) => world.relist(&objects::kind(kind)),
            Self::Pass(seconds) => _ = world.pass(SignedDuration::from_secs(*seconds)),
            Self::Restart => world.restart(),
        }
    }
}

/// `checks` allows health checks, whose Pods exist only if writes are made.
pub(crate) fn action(checks: bool) -> impl Strategy<Value = Action> {
    let why = prop_oneof![
        2 => Just(None),
        1 => Just(Some(Unreadable::NotServed)),
        1 => Just(Some(Unreadable::Forbidden { resource: "widgets".into() })),
        1 => Just(Some(Unreadable::Failing { why: "overloaded".into() })),
    ];
    prop_oneof![
        8 => application(checks).prop_map(Action::Put),
        3 => old_application().prop_map(Action::Put),
        12 => object().prop_map(Action::Put),
        5 => rollup().prop_map(Action::Put),
        6 => component().prop_map(Action::Put),
        1 => select(&["r", "s", "t"][..]).prop_map(|name| Action::Delete(ROLLUP, name)),
        1 => select(&["r", "s", "t"][..]).prop_map(|name| Action::Mark(ROLLUP, name)),
        1 => select(&NAMES[..]).prop_map(|name| Action::Delete("Platform.acme.io", name)),
        3 => (select(&KINDS[..]), select(&NAMES[..])).prop_map(|(kind, name)| Action::Delete(kind, name)),
        1 => select(&APPS[..]).prop_map(|name| Action::Delete("Application.bellwether.dev", name)),
        1 => select(&APPS[..]).prop_map(|name| Action::Delete("Application.app.k8s.io", name)),
        1 => select(&APPS[..]).prop_map(|name| Action::Mark("Application.bellwether.dev", name)),
        1 => (select(&KINDS[..]), select(&NAMES[..])).prop_map(|(kind, name)| Action::Mark(kind, name)),
        2 => (select(&KINDS[..]), select(&NAMES[..]), select(&APPS[..]))
            .prop_map(|(kind, name, app)| Action::Own(kind, name, app)),
        2 => (select(&["Widget.acme.io", "Widget.acme.io", "Pod", "Pod", "Platform.acme.io"][..]), why).prop_map(|(kind, why)| Action::Unreadable(kind, why)),
        1 => select(&KINDS[..]).prop_map(Action::Relist),
        1 => select(&["Application.bellwether.dev", ROLLUP, "Platform.acme.io"][..]).prop_map(Action::Relist),
        2 => (1..30i64).prop_map(Action::Pass),
        1 => Just(Action::Restart),
    ]
}

/// The selector depends on the name alone, because selectors are immutable.
fn application(checks: bool) -> impl Strategy<Value = Value> {
    let kinds = proptest::sample::subsequence(
        vec![
            "Deployment.apps",
            "Service",
            "StatefulSet.apps",
            "Widget.acme.io",
            "Pod",
            "ClusterRole.rbac.authorization.k8s.io",
            "Gone.no.where",
        ],
        0..4,
    );
    let component = (
        select(&["x", "y"][..]),
        select(&["Deployment.apps", "Widget.acme.io", "Service"][..]),
        prop_oneof![4 => Just(None), 1 => Just(Some("v1"))],
        prop_oneof![4 => Just(None), 1 => Just(Some("z"))],
    );
    let components = prop::collection::vec(component, 0..3);
    let dependencies = proptest::sample::subsequence(&["a", "b", "c", "absent"][..], 0..3);
    let check = prop_oneof![3 => Just(None), 2 => select(&["check:1", "check:2", ""][..]).prop_map(Some)];
    let modes = (select(&["Selected", "Annotated"][..]), select(&["Adopt", "Adopt", "Observe"][..]));
    (select(&APPS[..]), kinds, components, dependencies, check, modes).prop_map(
        move |(name, kinds, components, dependencies, check, (membership, ownership))| {
            let kinds: Vec<_> = kinds
                .into_iter()
                .map(objects::kind)
                .map(|kind| json!({"group": *kind.group, "kind": *kind.kind}))
                .collect();
            let mut named = json!({});
            for (key, kind, version, other) in components {
                let (kind, other) = (objects::kind(kind), other.filter(|_| key == "x"));
                named[key] = json!({"group": *kind.group, "kind": *kind.kind, "version": version, "name": other});
            }
            let selector = match name {
                "a" => json!({"matchLabels": {"app": "web"}}),
                "b" => json!({"matchLabels": null, "matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "api"]}]}),
                _ => json!({"matchLabels": null, "matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["api"]}]}),
            };
            let spec = json!({
                "selector": selector, "componentKinds": kinds, "components": with(json!({}), &named),
                "dependencies": dependencies, "membership": membership, "ownership": ownership,
            });
            let check = check.filter(|_| checks).map_or(json!({}), health_check);
            app(name, &with(spec, &check))
        },
    )
}

/// Shares its names with Applications of `bellwether.dev`. Its selector may change.
fn old_application() -> impl Strategy<Value = Value> {
    let kinds = proptest::sample::subsequence(
        vec!["Deployment.apps", "Widget.acme.io", "Service", "Pod", "Gone.no.where"],
        0..3,
    );
    let selector = select(vec![
        json!(null),
        json!({}),
        json!({"matchLabels": {"app": "web"}}),
        json!({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]}),
    ]);
    (select(&APPS[..]), kinds, selector).prop_map(|(name, kinds, selector)| {
        let kinds = kinds.into_iter().map(objects::kind);
        let kinds: Vec<_> = kinds.map(|kind| json!({"group": *kind.group, "kind": *kind.kind})).collect();
        let mut app = old_app(name, &json!({ "componentKinds": kinds }));
        app["spec"]["selector"] = selector;
        app
    })
}

fn object() -> impl Strategy<Value = Value> {
    let deployment = (0..=3i64, select(&NAMES[..]), any::<bool>()).prop_map(|(ready, name, stale)| {
        let generation = if stale { 0 } else { 99 };
        with(deployment(name, ready, 3), &json!({"status": {"observedGeneration": generation}}))
    });
    let widget = (select(&NAMES[..]), select(&[None, Some("True"), Some("False"), Some("Unknown")][..]))
        .prop_map(|(name, ready)| widget(name, ready));
    let paused = select(&NAMES[..])
        .prop_map(|name| with(objects::deployment(name, 1, 3), &json!({"spec": {"paused": true}})));
    // Services depend on whether all workloads are scaled to zero.
    let stateful_set = (select(&NAMES[..]), select(&[0, 0, 1][..])).prop_map(|(name, replicas)| {
        let current = json!({"status": {"currentReplicas": replicas}});
        with(objects::stateful_set(name, replicas, replicas, "1"), &current)
    });
    let object = prop_oneof![
        3 => deployment,
        1 => paused,
        2 => select(&NAMES[..]).prop_map(|name| objects::deployment(name, 0, 0)),
        2 => stateful_set,
        3 => widget,
        1 => select(&NAMES[..]).prop_map(service),
        2 => select(&NAMES[..]).prop_map(objects::selecting_service),
        1 => (select(&NAMES[..]), any::<bool>())
            .prop_map(|(name, ready)| objects::endpoint_slice(name, ready)),
        2 => (select(&NAMES[..]), any::<bool>()).prop_map(|(name, ready)| objects::pod(name, ready)),
        2 => select(&NAMES[..]).prop_map(objects::unschedulable_pod),
    ];
    let label = select(&[Some("web"), Some("web"), Some("api"), None][..]);
    let annotation = select(&[None, None, Some("a"), Some("b"), Some("absent")][..]);
    let namespace = prop_oneof![9 => Just(objects::NAMESPACE), 1 => Just("elsewhere")];
    let owner = prop_oneof![5 => Just(json!(null)), 1 => Just(json!([
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "foreign", "uid": "f1", "controller": true},
    ]))];
    (object, label, annotation, namespace, owner).prop_map(|(object, label, annotation, namespace, owner)| {
        let annotations = json!({APPLICATION_ANNOTATION: annotation});
        let fields = json!({"metadata": {
            "labels": {"app": label}, "annotations": annotations, "namespace": namespace, "ownerReferences": owner,
        }});
        with(object, &fields)
    })
}

fn rollup() -> impl Strategy<Value = Value> {
    any::<u64>().prop_map(operators::any_rollup)
}

/// A component with conditions from the start of the scenario, or a little later.
fn component() -> impl Strategy<Value = Value> {
    let beginning: Timestamp = "2026-11-14T10:00:00Z".parse().expect("a time");
    (any::<u64>(), 0..90i64).prop_map(move |(number, seconds)| {
        operators::any_component(number, beginning + SignedDuration::from_secs(seconds))
    })
}

pub(crate) fn anything() -> impl Strategy<Value = Value> {
    prop_oneof![2 => application(true), 1 => old_application(), 3 => object(), 2 => rollup(), 2 => component()]
}
