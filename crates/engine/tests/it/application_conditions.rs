//! Ready, Settled and Installed of Applications: messages, counts, transition times, Events, restarts and
//! clock changes.

use bellwether_api::State;
use bellwether_engine::{Event, Write};
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    objects::{app, app_of, app_of_kinds, deployment, unschedulable_pod, widget, with},
    world::World,
};

const APP: &str = "Application.bellwether.dev";

fn terminating(name: &str) -> Value {
    with(widget(name, Some("True")), &json!({"metadata": {"deletionTimestamp": "2026-11-14T09:00:00Z"}}))
}

fn paused(name: &str) -> Value {
    with(deployment(name, 3, 3), &json!({"spec": {"paused": true}}))
}

fn failed(name: &str) -> Value {
    let stalled =
        json!([{"type": "Stalled", "status": "True", "reason": "Jammed", "message": "a cog is jammed"}]);
    with(widget(name, None), &json!({"status": {"conditions": stalled}}))
}

/// Ready is a three-valued AND: False wins, then Unknown. Suspended members do not block. Without members it
/// is Unknown.
#[rstest]
#[case::nothing(vec![], "Unknown NoComponents: no Deployment.apps or Widget.acme.io in namespace shop matches selector app=web")]
#[case::all_ready(vec![widget("a", Some("True")), deployment("b", 3, 3)], "True ComponentsReady: All components ready")]
#[case::one_in_progress(vec![widget("a", Some("True")), deployment("b", 2, 3)], "False ComponentsInProgress: Deployment/b: 2 of 3 replicas ready")]
#[case::one_unknown(vec![widget("a", None), deployment("b", 3, 3)], "Unknown ComponentsUnknown: Widget/a: no rule for Widget.acme.io, and no known condition, phase or counter in its status")]
#[case::bad_beats_unknown(vec![widget("a", None), deployment("b", 2, 3)], "False ComponentsInProgress: Deployment/b: 2 of 3 replicas ready")]
#[case::terminating(vec![terminating("a")], "False ComponentsTerminating: Widget/a: being deleted")]
#[case::suspended_does_not_block(vec![widget("a", Some("True")), paused("b")], "True ComponentsReady: All components ready, 1 suspended")]
#[case::failed_first(vec![deployment("a", 2, 3), failed("b")], "False ComponentsFailed: Widget/b: Jammed: a cog is jammed; Deployment/a: 2 of 3 replicas ready")]
fn ready_is_three_valued(#[case] objects: Vec<Value>, #[case] ready: &str) {
    let world = World::with([app_of_kinds("web")].into_iter().chain(objects));
    assert_eq!(world.of_app("web", "Ready"), ready);
}

/// Generation Observation: the status has the observed generation; Settled compares that of the members.
#[test]
fn settled_when_every_member_has_observed_its_generation() {
    let mut world = World::with([app_of_kinds("web"), deployment("front", 3, 3)]);
    assert_eq!(world.of_app("web", "Settled"), "True ReconcileSuccess: Observed revision: 1");
    world.edit("Deployment.apps", "front", |it| it["spec"]["replicas"] = 4.into());
    assert!(world.of_app("web", "Settled").starts_with("False ComponentsNotSettled: Deployment/front: "));
    world.edit("Deployment.apps", "front", |it| it["status"]["observedGeneration"] = 2.into());
    assert_eq!(world.of_app("web", "Settled"), "True ReconcileSuccess: Observed revision: 1");
    world.edit(APP, "web", |it| it["spec"]["version"] = "2".into());
    assert_eq!(world.of_app("web", "Settled"), "True ReconcileSuccess: Observed revision: 2");
    assert_eq!(world.status("web").observed_generation, Some(2));
}

#[test]
fn not_settled_by_a_generation_in_text_or_of_a_condition_or_without_a_status() {
    let mut world =
        World::with([app_of_kinds("web"), deployment("front", 3, 3), widget("cog", Some("True"))]);
    let not_settled = |world: &World, member: &str| {
        let settled = world.of_app("web", "Settled");
        assert!(settled.starts_with(&format!("False ComponentsNotSettled: {member}: ")), "{settled}");
    };
    world.edit("Deployment.apps", "front", |it| it["status"]["observedGeneration"] = "0".into());
    not_settled(&world, "Deployment/front");
    world.edit("Deployment.apps", "front", |it| it["status"] = json!({}));
    not_settled(&world, "Deployment/front");
    world.put(deployment("front", 3, 3));
    world.edit("Widget.acme.io", "cog", |it| it["spec"]["size"] = 2.into());
    world
        .edit("Widget.acme.io", "cog", |it| it["status"]["conditions"][0]["observedGeneration"] = "1".into());
    not_settled(&world, "Widget/cog");
    world
        .edit("Widget.acme.io", "cog", |it| it["status"]["conditions"][0]["observedGeneration"] = "2".into());
    assert!(world.of_app("web", "Settled").starts_with("True"));
}

/// Worst first, then by kind and name; counts and mean progress cover all members.
#[test]
fn counts_progress_and_the_order_of_objects() {
    let objects = [
        app_of("web", &["gone"]),
        deployment("c", 1, 4),
        deployment("a", 3, 3),
        failed("z"),
        terminating("t"),
        paused("p"),
        widget("u", None),
    ];
    let mut world = World::with(objects);
    world.edit(APP, "web", |it| {
        it["spec"]["componentKinds"] = json!([{"group": "acme.io", "kind": "Widget"}]);
    });
    let status = world.status("web");
    let objects: Vec<_> =
        status.objects.iter().map(|it| (it.name.as_str(), it.status, it.progress)).collect();
    let expected = [
        ("z", State::Failed, 0),
        ("gone", State::Missing, 0),
        ("c", State::InProgress, 25),
        ("u", State::Unknown, 0),
        ("t", State::Terminating, 0),
        ("p", State::Suspended, 99),
        ("a", State::Ready, 100),
    ];
    assert_eq!(objects, expected);
    let counts = json!({
        "total": 7, "ready": 1, "inProgress": 1, "failed": 1, "suspended": 1, "terminating": 1, "unknown": 1, "missing": 1,
    });
    assert_eq!(json!(status.object_counts), counts);
    assert_eq!(status.progress, Some((25 + 99 + 100) / 7));
    assert_eq!(status.components_ready.as_deref(), Some("1/7"));
    let first = &status.objects[2];
    assert_eq!(first.link.as_deref(), Some("/apis/apps/v1/namespaces/shop/deployments/c"));
    assert_eq!(first.rule.as_deref(), Some("builtin/apps/Deployment"));
}

/// Lists and messages are limited; the counts are exact.
#[test]
fn lists_and_messages_are_bounded_and_counts_are_exact() {
    let objects = (0..250).map(|number| deployment(&format!("d{number:03}"), 0, 3));
    let world = World::with([app_of_kinds("web")].into_iter().chain(objects));
    let status = world.status("web");
    assert_eq!(status.objects.len(), 100);
    assert_eq!(status.object_counts.map(|counts| (counts.total, counts.in_progress)), Some((250, 250)));
    let ready = world.of_app("web", "Ready");
    assert!(
        ready.starts_with(
            "False ComponentsInProgress: Deployment/d000: 0 of 3 replicas ready; Deployment/d001: "
        ),
        "{ready}"
    );
    let shown = ready.matches("replicas ready").count();
    assert!(ready.ends_with(&format!("; and {} more", 250 - shown)) && ready.len() < 1100, "{ready}");

    let words = "w".repeat(900);
    let long = |number| {
        let condition = json!([{"type": "Ready", "status": "False", "reason": "Long", "message": words}]);
        with(widget(&format!("w{number:03}"), None), &json!({"status": {"conditions": condition}}))
    };
    let world = World::with([app_of_kinds("web")].into_iter().chain((0..100).map(long)));
    let status = world.status("web");
    assert!(json!(status).to_string().len() < 64 << 10);
    assert!((20..100).contains(&status.objects.len()), "{}", status.objects.len());
    assert_eq!(status.object_counts.map(|counts| counts.in_progress), Some(100));
}

/// lastTransitionTime moves only with the status, each transition is announced once, and foreign conditions
/// stay.
#[test]
fn transition_times_and_events_follow_the_status() {
    let foreign = json!([{
        "type": "Audited", "status": "True", "reason": "Fine", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]);
    let app = with(app_of_kinds("web"), &json!({"status": {"conditions": foreign}}));
    let mut world = World::with([app, deployment("front", 1, 3)]);
    let ready = |world: &World| {
        let conditions = world.status("web").conditions;
        assert_eq!(conditions[0].type_, "Audited", "foreign conditions keep their place");
        let ready = conditions.into_iter().find(|it| it.type_ == "Ready").expect("a condition");
        (ready.message, ready.last_transition_time.0)
    };
    let first = ready(&world);
    world.pass(SignedDuration::from_mins(1)).put(deployment("front", 2, 3));
    let second = ready(&world);
    assert_ne!(first.0, second.0);
    assert_eq!(first.1, second.1, "only the message changed");
    world.pass(SignedDuration::from_mins(1)).put(deployment("front", 3, 3));
    let before = world.now;
    let third = ready(&world);
    assert!(third.1 > second.1 && third.1 <= before && third.1.subsec_nanosecond() == 0);
    world.pass(SignedDuration::from_mins(1)).put(deployment("front", 0, 3));
    let transitions: Vec<_> = world.transitions.iter().map(|it| (it.from, it.to, it.good)).collect();
    let expected = [(Some("InProgress"), "Ready", true), (Some("Ready"), "InProgress", true)];
    assert_eq!(transitions, expected);
    assert_eq!(&*world.transitions[1].message, "Deployment/front: 0 of 3 replicas ready");
}

/// `since` is restored from the stored status.
#[test]
fn a_restart_changes_nothing() {
    let objects = [app_of("web", &["front", "gone"]), deployment("front", 1, 3), widget("one", Some("True"))];
    let mut world = World::with(objects);
    world.pass(SignedDuration::from_mins(5)).put(deployment("front", 3, 3));
    let (status, writes) = (world.status("web"), world.writes.len());
    let front = status.objects.iter().find(|it| it.name == "front").and_then(|it| it.since.clone());
    assert!(front.is_some(), "a new state has a known time");
    world.pass(SignedDuration::from_mins(5)).restart();
    world.settle();
    assert_eq!(world.status("web"), status);
    assert_eq!(world.writes.len(), writes);
}

/// An unschedulable Pod fails after a while without any event.
#[test]
fn time_alone_changes_a_verdict() {
    let app = app("web", &json!({"componentKinds": [{"kind": "Pod"}]}));
    let mut world = World::with([app, unschedulable_pod("one")]);
    let state = |world: &World| world.status("web").objects[0].status;
    assert_eq!(state(&world), State::InProgress);
    let effects = world.effects.len();
    world.pass(SignedDuration::from_secs(10));
    assert_eq!((state(&world), world.effects.len()), (State::InProgress, effects), "nothing happens early");
    world.pass(SignedDuration::from_secs(10));
    assert_eq!(state(&world), State::Failed);
}

/// Verdicts that rest on a time that has not come yet are reassessed by a relist.
#[test]
fn a_clock_that_is_set_back_reassesses_verdicts() {
    let app = app("web", &json!({"componentKinds": [{"kind": "Pod"}]}));
    let mut world = World::with([app, unschedulable_pod("one")]);
    let state = |world: &World| world.status("web").objects[0].status;
    world.pass(SignedDuration::from_hours(1));
    world.step(Event::Tick);
    assert_eq!(state(&world), State::Failed);
    world.set_clock(SignedDuration::from_hours(-1)).settle();
    assert_eq!(state(&world), State::InProgress);
    world.pass(SignedDuration::from_mins(1));
    assert_eq!(state(&world), State::Failed);
}

/// The response is about a deleted Application of the same name.
#[test]
fn a_late_response_for_a_deleted_application_is_ignored() {
    let mut world = World::with([app_of_kinds("web"), deployment("front", 3, 3)]);
    let (slot, change, outcome) = world.writes.last().cloned().expect("a write");
    world.delete(APP, "web").writing = false;
    world.put(app_of_kinds("web"));
    let transitions = world.transitions.len();
    world.step(Event::Written { slot: slot.clone(), write: change, outcome });
    assert_eq!(world.transitions.len(), transitions, "nothing has been written about the new one yet");
    assert!(world.wants().contains_key(&slot));
}

/// A pending transition keeps the time at which it was evaluated.
#[test]
fn a_pending_transition_keeps_its_time() {
    let mut world = World::new();
    world.writing = false;
    world.put(app_of_kinds("web")).put(deployment("front", 1, 3));
    let times = |world: &World| {
        let wants = world.wants();
        let Some(Write::Status { patch, .. }) = wants.values().next() else { panic!("a status is wanted") };
        let conditions = patch["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().map(|it| it["lastTransitionTime"].clone()).collect::<Vec<_>>()
    };
    let before = times(&world);
    world.pass(SignedDuration::from_mins(1)).put(deployment("front", 2, 3));
    assert_eq!(times(&world), before);
}
