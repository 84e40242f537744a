//! The state of a group: the same in the stored status, in a query and in a listing, and since when.

use bellwether_api::{RollupStatus, State};
use bellwether_engine::{
    Group, GroupKind, GroupStatus, NamespacedName, ServedResource, StatusSummary, Unreadable,
};
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    objects::{self, app_of, app_of_kinds, deployment, health_check, widget, with},
    server::identity,
    world::World,
};

fn failed(name: &str) -> Value {
    let stalled =
        json!([{"type": "Stalled", "status": "True", "reason": "Jammed", "message": "a cog is jammed"}]);
    with(widget(name, None), &json!({"status": {"conditions": stalled}}))
}

fn terminating(name: &str) -> Value {
    with(widget(name, Some("True")), &json!({"metadata": {"deletionTimestamp": "2026-11-14T09:00:00Z"}}))
}

fn paused(name: &str) -> Value {
    with(deployment(name, 3, 3), &json!({"spec": {"paused": true}}))
}

fn summary(world: &World, kind: &str, name: &NamespacedName) -> StatusSummary {
    match world.engine.summary(world.now, &GroupKind::bellwether(kind), name) {
        GroupStatus::Known(summary) => *summary,
        other => panic!("{other:?}"),
    }
}

fn group(world: &World) -> Group {
    world.engine.groups(world.now).swap_remove(0)
}

/// State, reason of the deciding member, reason of Ready, progress.
#[rstest]
#[case::ready(vec![widget("a", Some("True"))], State::Ready, None, "True ComponentsReady", Some(100))]
#[case::suspended(vec![widget("a", Some("True")), paused("b")], State::Ready, None, "True ComponentsReady", Some(100))]
#[case::in_progress(vec![widget("a", Some("True")), deployment("b", 2, 3)], State::InProgress, Some("ReplicasNotReady"), "False ComponentsInProgress", Some(83))]
#[case::failed(vec![failed("a"), deployment("b", 2, 3)], State::Failed, Some("Jammed"), "False ComponentsFailed", Some(33))]
#[case::terminating(vec![terminating("a")], State::Terminating, Some("Deleting"), "False ComponentsTerminating", Some(0))]
#[case::unknown(vec![widget("a", None)], State::Unknown, Some("NoRule"), "Unknown ComponentsUnknown", Some(0))]
#[case::nothing(vec![], State::Unknown, Some("NoComponents"), "Unknown NoComponents", None)]
fn the_state_of_an_application(
    #[case] objects: Vec<Value>,
    #[case] state: State,
    #[case] reason: Option<&str>,
    #[case] ready: &str,
    #[case] progress: Option<i32>,
) {
    let world = World::with([app_of_kinds("web")].into_iter().chain(objects));
    let status = world.status("web");
    assert_eq!((status.state, status.reason.as_deref()), (Some(state), reason));
    assert!(world.of_app("web", "Ready").starts_with(ready), "{}", world.of_app("web", "Ready"));
    assert_eq!(status.progress, progress);
    let (summary, group) =
        (summary(&world, "Application", &NamespacedName::new("shop", "web")), group(&world));
    assert_eq!((summary.state, group.state), (state, state));
    assert_eq!(summary.since, group.since);
    assert_eq!(group.progress.map(i32::from), progress);
}

/// A kind that cannot be read, and a component that is missing.
#[test]
fn the_reason_without_a_member() {
    let mut world = World::with([app_of("web", &["gone"])]);
    let status = world.status("web");
    assert_eq!((status.state, status.reason.as_deref()), (Some(State::Missing), Some("NotFound")));
    world.put(app_of_kinds("web")).put(widget("a", Some("True")));
    let forbidden = Unreadable::Forbidden { resource: "deployments".into() };
    world.unreadable("Deployment.apps", Some(forbidden));
    world.settle();
    let status = world.status("web");
    assert_eq!((status.state, status.reason.as_deref()), (Some(State::Unknown), Some("Forbidden")));
    assert_eq!(status.progress, Some(99), "all members are done, but the Application is not ready");
    world.unreadable("Deployment.apps", None);
    world.unreadable("Widget.acme.io", Some(Unreadable::Failing { why: "overloaded".into() }));
    world.settle();
    let widget = world.status("web").objects.remove(0);
    assert_eq!((widget.status, widget.progress), (State::Unknown, 99), "not ready either");
}

/// Without a health check, `status.ready` would contradict the condition Ready.
#[test]
fn without_a_health_check_there_is_no_readiness_of_one() {
    let world = World::with([app_of_kinds("web"), widget("a", Some("True"))]);
    assert_eq!(world.status("web").ready, None);
}

/// A probe and the terminal give the same time: that of the first member in this state.
#[test]
fn since_when_members_decide() {
    let mut world = World::with([app_of_kinds("web"), widget("a", Some("True")), widget("b", Some("True"))]);
    let name = NamespacedName::new("shop", "web");
    world.pass(SignedDuration::from_mins(5));
    let before = world.now;
    world.put(failed("a"));
    world.pass(SignedDuration::from_mins(5));
    let after = world.now;
    world.put(failed("b"));
    world.pass(SignedDuration::from_mins(5));
    assert_eq!(group(&world).state, State::Failed);
    let first = group(&world).since.expect("a time");
    assert!(before <= first && first < after, "{first}");
    assert_eq!(summary(&world, "Application", &name).since, Some(first));
    world.put(widget("a", Some("True")));
    assert!(group(&world).since >= Some(after), "b failed later");
    assert_eq!(summary(&world, "Application", &name).since, group(&world).since);
}

/// The time of a query, of a listing and of the metrics.
fn since(world: &World) -> Option<String> {
    let group = group(world);
    let GroupStatus::Known(summary) = world.engine.summary(world.now, &group.kind, &group.name) else {
        panic!("nothing is known of it")
    };
    let samples = world.engine.group_samples(9).samples;
    assert_eq!(
        (summary.since, samples[0].since),
        (group.since, group.since),
        "all readers get the same time"
    );
    group.since.map(|since| since.to_string())
}

/// An Application that is `Failed` for two days.
fn failed_for_long(spec: &Value) -> World {
    let mut world = World::with([with(app_of_kinds("web"), &json!({ "spec": spec })), failed("a")]);
    world.pass(SignedDuration::from_hours(48));
    world
}

fn delete(object: &mut Value, at: &str) {
    object["metadata"]["deletionTimestamp"] = at.into();
    object["metadata"]["finalizers"] = json!(["foregroundDeletion"]);
}

#[test]
fn an_application_is_terminating_since_its_deletion() {
    let mut world = failed_for_long(&json!({}));
    let deleted = world.now.to_string();
    world.pass(SignedDuration::from_secs(30));
    world.edit("Application.bellwether.dev", "web", |app| delete(app, &deleted));
    assert_eq!(group(&world).state, State::Terminating);
    assert_eq!(since(&world), Some(deleted));
}

#[test]
fn a_rollup_is_terminating_since_its_deletion() {
    let (mut world, _) = rollup(&[None]);
    world.pass(SignedDuration::from_hours(48));
    let deleted = world.now.to_string();
    world.edit("Rollup.bellwether.dev", "all", |rollup| delete(rollup, &deleted));
    assert_eq!(group(&world).state, State::Terminating);
    assert_eq!(since(&world), Some(deleted));
}

/// The condition Ready is False for longer: a member had failed.
#[test]
fn the_member_that_decides_says_since_when() {
    let mut world = failed_for_long(&json!({}));
    let deleted = world.now.to_string();
    world.edit("Widget.acme.io", "a", |widget| delete(widget, &deleted));
    assert_eq!((group(&world).state, since(&world)), (State::Terminating, Some(deleted)));

    let mut world = failed_for_long(&json!({}));
    let paused_at = world.now.to_string();
    world.put(with(deployment("b", 1, 3), &json!({"spec": {"paused": true}})));
    world.put(widget("a", Some("True")));
    assert_eq!((group(&world).state, since(&world)), (State::InProgress, Some(paused_at)));
}

#[test]
fn an_application_waits_for_its_health_check_since_the_change_of_its_state() {
    let mut world = failed_for_long(&health_check("check:1"));
    let (pods, not_ready) = (GroupKind::pod(), objects::pod("check", false)["status"].clone());
    let check = world.server.list(&pods).next().expect("its Pod").clone();
    let (_, name) = identity(&check);
    world.server.edit(&pods, &name, |pod| pod["status"] = not_ready);
    world.settle();
    world.pass(SignedDuration::from_mins(5));
    let mended = world.now;
    world.put(widget("a", Some("True")));
    world.pass(SignedDuration::from_mins(5));
    assert_eq!((group(&world).state, since(&world)), (State::InProgress, Some(mended.to_string())));
}

fn condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": "Because", "lastTransitionTime": "2026-11-12T09:00:00Z"})
}

/// The conditions of each. `None`: the component does not exist.
type Components<'a> = &'a [Option<&'a [Value]>];

/// A Rollup and its stored status.
fn rollup(components: Components<'_>) -> (World, RollupStatus) {
    let entries: Vec<_> = (0..components.len())
        .map(|number| {
            json!({"group": "acme.io", "kind": "Widget", "namespace": "shop", "name": format!("w{number}")})
        })
        .collect();
    let umbrella = json!({
        "apiVersion": "bellwether.dev/v1alpha1", "kind": "Rollup", "metadata": {"name": "all"},
        "spec": {"components": entries},
    });
    let mut world = World::new();
    let served = ServedResource {
        version: "v1alpha1".into(),
        versions: Box::new(["v1alpha1".into()]),
        plural: "rollups".into(),
        namespaced: false,
        has_status: true,
    };
    world.server.kinds.insert(GroupKind::bellwether("Rollup"), served);
    world.put(umbrella);
    for (number, conditions) in components.iter().enumerate() {
        if let Some(conditions) = conditions {
            let status = json!({"status": {"conditions": conditions}});
            world.put(with(widget(&format!("w{number}"), None), &status));
        }
    }
    world.settle();
    let name = NamespacedName::new("", "all");
    let stored =
        world.server.get(&GroupKind::bellwether("Rollup"), &name).expect("a Rollup")["status"].clone();
    (world, serde_json::from_value(stored).expect("a status"))
}

#[test]
fn the_state_of_a_rollup() {
    let of = |[available, progressing, degraded]: [&str; 3]| {
        [
            condition("Available", available),
            condition("Progressing", progressing),
            condition("Degraded", degraded),
        ]
    };
    let (ready, busy, bad) =
        (of(["True", "False", "False"]), of(["True", "True", "False"]), of(["False", "False", "True"]));
    let only_available = [condition("Available", "False")];
    let none: &[Value] = &[];
    let cases: [(Components<'_>, State, &str); 8] = [
        (&[Some(&ready)], State::Ready, "Healthy"),
        (&[Some(&ready), Some(&busy)], State::InProgress, "Warning"),
        (&[Some(&ready), Some(&bad)], State::Failed, "Error"),
        (&[Some(&ready), None], State::Missing, "Error"),
        (&[None, Some(&bad)], State::Failed, "Error"),
        // Its operator has not reported yet: Error in the table of spec.health, but not Unknown.
        (&[Some(none)], State::InProgress, "Error"),
        (&[Some(none), None], State::Missing, "Error"),
        (&[Some(&only_available)], State::Failed, "Error"),
    ];
    for (components, state, health) in cases {
        let (world, status) = rollup(components);
        assert_eq!((status.state, json!(status.health)), (Some(state), json!(health)), "{components:?}");
        let (summary, group) = (summary(&world, "Rollup", &NamespacedName::new("", "all")), group(&world));
        assert_eq!((summary.state, group.state), (state, state), "{components:?}");
        assert_eq!(summary.since, group.since, "{components:?}");
    }
}

/// A controller counts a nested Application by its stored status; a reader without a controller evaluates it.
#[rstest]
#[case::ready(json!({"componentKinds": [{"kind": "Service"}]}), State::Ready)]
#[case::missing(json!({"components": {"absent": {"kind": "Service"}}}), State::Missing)]
#[case::without_members(json!({"componentKinds": [{"group": "acme.io", "kind": "Gizmo"}]}), State::Unknown)]
#[case::failed(json!({"componentKinds": [{"group": "acme.io", "kind": "Widget"}]}), State::Failed)]
#[case::in_progress(json!({"componentKinds": [{"group": "apps", "kind": "Deployment"}]}), State::InProgress)]
#[case::terminating(json!({"componentKinds": [{"kind": "Service"}]}), State::Terminating)]
fn a_nested_application_counts_the_same_stored_and_evaluated(#[case] spec: Value, #[case] state: State) {
    let selects = |label: &str| json!({"selector": {"matchLabels": {"app": label}}});
    let outer = json!({"componentKinds": [{"group": "bellwether.dev", "kind": "Application"}]});
    let deleted = json!("2026-11-14T09:00:00Z");
    let deleted = if state == State::Terminating { deleted } else { json!(null) };
    let metadata = json!({"labels": {"app": "outer"}, "deletionTimestamp": deleted});
    let inner = with(objects::app("inner", &spec), &json!({"metadata": metadata}));
    let objects = [
        objects::app("outer", &with(outer, &selects("outer"))),
        inner,
        objects::service("front"),
        failed("press"),
        deployment("web", 2, 3),
    ];
    let mut world = World::with(objects.clone());
    // In their first seconds, Applications have no Events.
    world.pass(SignedDuration::from_secs(15));
    assert_eq!(world.status("outer").state, Some(state));
    let mut reader = World::new();
    reader.engine = bellwether_engine::Engine::new().with_nested_evaluation();
    reader.writing = false;
    for object in objects {
        reader.server.put(object);
    }
    reader.settle();
    let of = |world: &World| -> Vec<_> {
        let groups = world.engine.groups(world.now).into_iter().filter(|group| *group.name.name == *"outer");
        let members = |group: &Group| {
            group.members.iter().map(|member| (member.state, member.reason.clone())).collect::<Vec<_>>()
        };
        groups.map(|group| (group.state, members(&group))).collect()
    };
    assert_eq!(of(&reader), of(&world));
}
