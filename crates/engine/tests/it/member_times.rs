//! Since when a member is in its state: by the object itself, unless the member was seen in another state then.

use bellwether_api::State;
use bellwether_engine::Unreadable;
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    objects::{self, app, app_of_kinds, deployment, widget, with},
    world::World,
};

const WIDGET: &str = "Widget.acme.io";

fn since(world: &World) -> Option<String> {
    world.status("web").objects[0].since.as_ref().map(|since| since.0.to_string())
}

/// A Deployment that stays available through a rollout: the time of Available does not change.
fn rollout(updated: i64) -> Value {
    let available =
        json!({"type": "Available", "status": "True", "lastTransitionTime": "2026-11-14T09:59:30Z"});
    with(
        deployment("front", 3, 3),
        &json!({"status": {"updatedReplicas": updated, "conditions": [available]}}),
    )
}

fn forbidden() -> Unreadable {
    Unreadable::Forbidden { resource: "widgets".into() }
}

#[test]
fn since_does_not_go_back() {
    let mut world = World::with([app_of_kinds("web"), rollout(3)]);
    assert_eq!(since(&world).as_deref(), Some("2026-11-14T09:59:30Z"));
    world.pass(SignedDuration::from_secs(8)).put(rollout(1));
    let started = since(&world).expect("a time");
    assert!(*started > *"2026-11-14T10:00:00Z", "{started}");
    world.pass(SignedDuration::from_secs(8)).put(rollout(3));
    let ended = since(&world).expect("a time");
    assert!(ended > started, "Ready since {ended}, before {started}");
    let writes = world.writes.len();
    world.restart();
    world.settle();
    assert_eq!((since(&world), world.writes.len()), (Some(ended), writes), "and a restart keeps it");
}

/// Another replica follows what the leader stored.
#[test]
fn a_standby_replica_adopts_the_time_of_the_leader() {
    let mut leader = World::with([app_of_kinds("web"), rollout(3)]);
    leader.pass(SignedDuration::from_secs(8)).put(rollout(1));
    leader.pass(SignedDuration::from_secs(8)).put(rollout(3));
    let stored = serde_json::to_value(leader.status("web")).expect("JSON");
    let mut standby = World::with([app_of_kinds("web"), rollout(3)]);
    standby.pass(SignedDuration::from_secs(9)).put(rollout(1));
    standby.writing = false;
    standby.pass(SignedDuration::from_secs(9)).put(rollout(3));
    standby.edit("Application.bellwether.dev", "web", |object| object["status"] = stored.clone());
    standby.writing = true;
    standby.settle();
    assert_eq!(since(&standby), since(&leader));
}

#[test]
fn a_right_that_is_given_back_brings_the_time_back() {
    let old = |at: &str| json!({"status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": at}]}});
    for (widget, expected) in [
        (with(widget("one", Some("True")), &old("2026-11-14T09:00:00Z")), Some("2026-11-14T09:00:00Z")),
        (widget("one", Some("True")), None),
    ] {
        let mut world = World::with([app_of_kinds("web"), widget]);
        assert_eq!(since(&world).as_deref(), expected);
        world.pass(SignedDuration::from_mins(1)).unreadable(WIDGET, Some(forbidden()));
        world.settle();
        assert!(since(&world).is_some_and(|since| *since > *"2026-11-14T10:00:00Z"));
        world.pass(SignedDuration::from_mins(1)).unreadable(WIDGET, None);
        world.settle();
        assert_eq!(since(&world).as_deref(), expected);
    }
}

#[test]
fn a_component_is_missing_for_as_long_as_before() {
    let spec = json!({"components": {"one": {"group": "acme.io", "kind": "Widget"}}});
    let mut world = World::with([app("web", &spec)]);
    let missing = since(&world);
    assert!(missing.is_some());
    world.pass(SignedDuration::from_mins(1)).unreadable(WIDGET, Some(forbidden()));
    world.settle();
    world.pass(SignedDuration::from_mins(1)).unreadable(WIDGET, None);
    world.settle();
    assert_eq!(since(&world), missing);
}

/// A process that could not read a member so far does not know since when it has failed, but since when the
/// Application has.
#[rstest]
#[case::its_kind(WIDGET)]
#[case::health_rules("HealthRule.bellwether.dev")]
fn a_restart_while_a_member_cannot_be_read_invents_no_time(#[case] kind: &str) {
    let stalled =
        json!({"status": {"conditions": [{"type": "Stalled", "status": "True", "reason": "Jammed"}]}});
    let mut world = World::with([app_of_kinds("web"), with(widget("one", None), &stalled)]);
    world.pass(SignedDuration::from_mins(1)).unreadable(kind, Some(forbidden()));
    world.restart();
    world.settle().pass(SignedDuration::from_mins(1)).unreadable(kind, None);
    let granted = world.now;
    world.settle();
    let status = world.status("web");
    assert_eq!((status.objects[0].status, &status.objects[0].since), (State::Failed, &None));
    let group = world.engine.groups(world.now).remove(0);
    let recorded = status.last_event.expect("it is recorded").time.0;
    assert!(recorded >= granted, "{recorded}");
    assert_eq!((group.state, group.since), (State::Failed, Some(recorded)));
}

/// A nested Application counts as Unknown a little later than it says: from when its status was seen.
#[test]
fn a_restart_does_not_move_the_time_of_an_unknown_member() {
    let outer = json!({"componentKinds": [{"group": "bellwether.dev", "kind": "Application"}]});
    let never = json!({"componentKinds": [{"group": "acme.io", "kind": "Gizmo"}]});
    let inner = with(app("inner", &never), &json!({"metadata": {"labels": {"app": "web"}}}));
    let mut world = World::with([app("web", &outer), inner]);
    world.pass(SignedDuration::from_secs(90));
    assert_eq!(world.status("web").objects[0].status, State::Unknown);
    world.restart();
    let (kind, name) = objects::key("Application.bellwether.dev", "web");
    let seen = "2026-11-14T10:00:30Z";
    world.server.edit(&kind, &name, |object| object["status"]["objects"][0]["since"] = seen.into());
    world.settle();
    assert_eq!(since(&world).as_deref(), Some(seen));
}
