//! Groups that are being deleted and wait for a finalizer: their status goes on.

use bellwether_api::State;
use bellwether_engine::{GroupKind, GroupRef, GroupStatus, NamespacedName, OwnKind};
use jiff::SignedDuration;
use serde_json::json;

use crate::{
    objects::{app, app_of_kinds, deployment, key, old_app, platform, rollup},
    world::World,
};

const APP: &str = "Application.bellwether.dev";

fn delete(object: &mut serde_json::Value) {
    object["metadata"]["deletionTimestamp"] = "2026-11-14T10:00:00Z".into();
    object["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
}

/// The stored status has the answer of a query.
#[test]
fn an_application_that_is_being_deleted_is_not_ready() {
    let depending = app("shop", &json!({"dependencies": ["web"]}));
    let mut world = World::with([app_of_kinds("web"), deployment("front", 3, 3), depending]);
    assert_eq!(world.of_app("web", "Ready"), "True ComponentsReady: All components ready");
    world.edit(APP, "web", delete);
    assert_eq!(world.of_app("web", "Ready"), "False Terminating: waiting for finalizers: foregroundDeletion");
    world.edit(APP, "web", |app| app["spec"]["version"] = "2".into());
    assert_eq!(world.status("web").observed_generation, Some(2));
    assert_eq!(world.status("shop").dependencies[0].ready, bellwether_api::ConditionStatus::False);
    let (kind, name) = key(APP, "web");
    let GroupStatus::Known(summary) = world.engine.summary(world.now, &kind, &name) else { panic!() };
    let ready = summary.condition("Ready").expect("a condition");
    assert_eq!(
        (summary.state, summary.healthy, &*ready.reason, &*ready.message),
        (State::Terminating, false, "Terminating", "waiting for finalizers: foregroundDeletion")
    );
    // Until the Event is recorded that the dependent stays Unknown.
    world.pass(SignedDuration::from_mins(2));
    let writes = world.writes.len();
    world.pass(SignedDuration::from_mins(10));
    assert_eq!(world.writes.len(), writes, "{:?}", world.writes.last());
    world.delete(APP, "web");
    assert_eq!(world.writes.len(), writes + 1, "only the dependent");
}

#[test]
fn an_application_of_app_k8s_io_that_is_being_deleted_is_not_ready() {
    let kinds = json!({"componentKinds": [{"group": "apps", "kind": "Deployment"}]});
    let mut world = World::with([old_app("web", &kinds), deployment("front", 3, 3)]);
    world.edit("Application.app.k8s.io", "web", delete);
    assert_eq!(
        world.condition("Application.app.k8s.io", "web", "Ready"),
        "False ComponentsNotReady: the application is being deleted"
    );
}

#[test]
fn a_rollup_that_is_being_deleted_is_progressing() {
    let components = json!({"components": [{"group": "acme.io", "kind": "Platform", "name": "main"}]});
    let mut world = World::with([rollup("all", &components), platform("main")]);
    let (kind, name) = (GroupKind::bellwether("Rollup"), NamespacedName::new("", "all"));
    world.server.edit(&kind, &name, delete);
    world.server.edit(&kind, &name, |rollup| rollup["spec"]["upgradeable"] = true.into());
    world.settle();
    let stored = &world.server.get(&kind, &name).expect("it is there")["status"];
    assert_eq!(stored["observedGeneration"], 2);
    let conditions = stored["conditions"].as_array().expect("a list");
    let progressing = conditions.iter().find(|it| it["type"] == "Progressing").expect("a condition");
    assert_eq!(
        (&progressing["status"], &progressing["reason"], &progressing["message"]),
        (&json!("True"), &json!("Terminating"), &json!("waiting for finalizers: foregroundDeletion"))
    );
    let group = world.engine.group(world.now, &GroupRef::new(OwnKind::Rollup, name)).expect("it is known");
    assert_eq!(group.state, State::Terminating);
}
