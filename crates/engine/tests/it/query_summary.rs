//! Queries: `Engine::summary`, during relists, with silent clusters, and with unreadable kinds.

use bellwether_api::{ConditionStatus, State};
use bellwether_engine::{
    Cluster, ClusterEvent, Event, FeedEvent, GroupKind, GroupStatus, NamespacedName, OwnKind, ServedResource,
    StatusSummary, Unreadable,
};
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    objects::{app, app_of_kinds, deployment, widget, with},
    views::statements,
    world::World,
};

fn ask(world: &World, kind: &str, name: &str) -> GroupStatus {
    world.engine.summary(world.now, &GroupKind::bellwether(kind), &NamespacedName::new("shop", name))
}

fn summary(world: &World, name: &str) -> StatusSummary {
    known(ask(world, "Application", name))
}

fn unknown(kind: &GroupKind, why: Option<Unreadable>) -> GroupStatus {
    GroupStatus::Unknown(vec![(kind.clone(), why)])
}

/// Starts a relist.
fn list_again(world: &mut World, kind: &GroupKind) {
    let feed = world.feeds.iter().find(|(_, feed)| feed.kind == *kind);
    let feed = *feed.expect("the kind is followed").0;
    world.step(Event::Feed(feed, FeedEvent::ListStarted));
}

#[rstest]
#[case::nothing(vec![], false, State::Unknown)]
#[case::ready(vec![widget("a", Some("True"))], true, State::Ready)]
#[case::in_progress(vec![widget("a", Some("True")), deployment("b", 2, 3)], false, State::InProgress)]
#[case::unknown(vec![widget("a", None), deployment("b", 3, 3)], false, State::Unknown)]
fn an_application_is_healthy_if_it_is_ready(
    #[case] objects: Vec<Value>,
    #[case] healthy: bool,
    #[case] state: State,
) {
    let world = World::with([app_of_kinds("web")].into_iter().chain(objects));
    let summary = summary(&world, "web");
    assert_eq!((summary.healthy, summary.state, &summary.meaning), (healthy, state, &None));
    // The same statements and order as in the stored status.
    assert_eq!(summary.conditions.first().map(|(kind, _)| *kind), Some("Ready"));
    for (condition, statement) in &summary.conditions {
        let expected = format!("{:?} {}: {}", statement.status, statement.reason, statement.message);
        assert_eq!(world.of_app("web", condition), expected);
        assert_eq!(summary.condition(condition), Some(statement));
    }
    let group = world.engine.groups(world.now).swap_remove(0);
    assert_eq!(statements(&group), summary.conditions);
    assert_eq!((group.state, group.since), (summary.state, summary.since));
    assert_eq!((group.kind, group.name), (summary.kind, summary.name));
}

/// After two minutes without an event, the state of a cluster is stale.
#[test]
fn a_silent_cluster_has_no_summary() {
    let mut world = World::with([app_of_kinds("web"), widget("a", Some("True"))]);
    let heard = world.now;
    world.step(Event::Cluster(Cluster::hub(), ClusterEvent::Heard(heard)));
    world.pass(SignedDuration::from_secs(119));
    assert!(summary(&world, "web").healthy);
    world.pass(SignedDuration::from_secs(1));
    assert_eq!(ask(&world, "Application", "web"), GroupStatus::Silent { since: heard });
    world.step(Event::Cluster(Cluster::hub(), ClusterEvent::Disconnected));
    assert_eq!(ask(&world, "Application", "web"), GroupStatus::Silent { since: heard });
    world.step(Event::Cluster(Cluster::hub(), ClusterEvent::Heard(world.now)));
    assert!(summary(&world, "web").healthy);
}

/// By the stored time, or by the evaluation before it is written.
#[test]
fn since_follows_the_transition_of_ready() {
    let mut world = World::with([app_of_kinds("web"), widget("a", Some("True"))]);
    let begun = summary(&world, "web").since.expect("a time");
    world.pass(SignedDuration::from_mins(5));
    assert_eq!(summary(&world, "web").since, Some(begun));
    let turned = world.now;
    world.writing = false;
    world.put(widget("a", None)).settle();
    world.pass(SignedDuration::from_mins(5));
    let summary = summary(&world, "web");
    assert_eq!((summary.healthy, summary.since), (false, Some(turned)));
}

#[test]
fn not_found_differs_from_unknown() {
    let mut world = World::new();
    let GroupStatus::Unknown(base) = ask(&world, "Application", "web") else {
        panic!("nothing is known yet")
    };
    assert!(base.contains(&(GroupKind::bellwether("Application"), None)), "{base:?}");
    world.settle();
    assert_eq!(ask(&world, "Application", "web"), GroupStatus::NotFound);
    assert_eq!(ask(&world, "HealthRule", "web"), GroupStatus::NotFound, "a HealthRule is not a group");

    // It exists, but one of its kinds is not listed yet.
    let services = GroupKind::new("", "Service");
    world.held.insert(services.clone());
    world.put(app("web", &json!({"componentKinds": [{"kind": "Service"}]}))).settle();
    assert_eq!(ask(&world, "Application", "web"), unknown(&services, None));
    world.held.clear();
    world.settle();
    assert!(!summary(&world, "web").healthy);
}

/// A forbidden kind does not prove that the group does not exist.
#[test]
fn a_forbidden_kind_is_unknown() {
    let mut world = World::with([app_of_kinds("web"), widget("a", Some("True"))]);
    let forbidden = Unreadable::Forbidden { resource: "applications".into() };
    world.unreadable("Application.bellwether.dev", Some(forbidden.clone()));
    world.settle();
    assert!(summary(&world, "web").healthy, "known groups are not affected");
    assert_eq!(
        ask(&world, "Application", "other"),
        unknown(&GroupKind::bellwether("Application"), Some(forbidden))
    );
    world.unreadable("Application.bellwether.dev", Some(Unreadable::NotServed));
    world.settle();
    assert_eq!(ask(&world, "Application", "other"), GroupStatus::NotFound, "no kind, no objects");
}

/// During a relist, the published status is reported if it matches the last evaluation.
#[test]
fn a_relist_reports_the_published_status() {
    let widgets = GroupKind::new("acme.io", "Widget");
    let mut world = World::with([app_of_kinds("web"), widget("a", Some("True"))]);
    let before = summary(&world, "web");
    list_again(&mut world, &widgets);
    assert_eq!(summary(&world, "web"), before);

    // The published status is outdated.
    let mut world = World::with([app_of_kinds("web"), widget("a", Some("True"))]);
    world.writing = false;
    world.put(widget("a", None)).settle();
    list_again(&mut world, &widgets);
    assert_eq!(ask(&world, "Application", "web"), unknown(&widgets, None));
}

/// With Available, Progressing and Degraded.
fn component(name: &str, statuses: [&str; 3]) -> Value {
    let condition = |(kind, status): (&str, &str)| {
        json!({"type": kind, "status": status, "reason": "Because", "message": format!("{kind} is {status}"),
            "lastTransitionTime": "2026-11-14T09:30:00Z"})
    };
    let conditions: Vec<_> =
        ["Available", "Progressing", "Degraded"].into_iter().zip(statuses).map(condition).collect();
    with(widget(name, None), &json!({"status": {"conditions": conditions}}))
}

fn rollup() -> Value {
    let component =
        |name: &str| json!({"group": "acme.io", "kind": "Widget", "namespace": "shop", "name": name});
    json!({"apiVersion": "bellwether.dev/v1alpha1", "kind": "Rollup", "metadata": {"name": "all"},
        "spec": {"components": [component("a"), component("b")]}})
}

/// A cluster that serves Rollups, with these objects.
fn with_rollups(objects: impl IntoIterator<Item = Value>) -> World {
    let mut world = World::new();
    let served = ServedResource {
        version: "v1alpha1".into(),
        versions: ["v1alpha1".into()].into(),
        plural: "rollups".into(),
        namespaced: false,
        has_status: true,
    };
    world.server.kinds.insert(GroupKind::bellwether("Rollup"), served);
    for object in objects {
        world.server.put(object);
    }
    world
}

fn of_rollup(world: &World) -> GroupStatus {
    world.engine.summary(world.now, &GroupKind::bellwether("Rollup"), &NamespacedName::new("", "all"))
}

fn known(status: GroupStatus) -> StatusSummary {
    match status {
        GroupStatus::Known(summary) => *summary,
        other => panic!("not known: {other:?}"),
    }
}

#[rstest]
#[case::well(["True", "False", "False"], true, State::Ready, "Component is 100% healthy and the Operator is idle")]
#[case::at_work(
    ["True", "True", "False"], false, State::InProgress, "Component is functional but, either upgrading or healing"
)]
#[case::below_capacity(
    ["True", "False", "True"], false, State::Failed,
    "Component is functioning below capacity and the Operator is idle"
)]
#[case::unknown(
    ["True", "Unknown", "False"], false, State::Unknown,
    "Component is available and not degraded; unknown whether it is progressing"
)]
fn a_rollup_is_healthy_if_available_and_idle(
    #[case] statuses: [&str; 3],
    #[case] healthy: bool,
    #[case] state: State,
    #[case] meaning: &str,
) {
    let mut world =
        with_rollups([rollup(), component("a", ["True", "False", "False"]), component("b", statuses)]);
    world.settle();
    let summary = known(of_rollup(&world));
    assert_eq!((summary.healthy, summary.state), (healthy, state));
    assert_eq!(summary.meaning.as_deref(), Some(meaning));
    assert!(summary.since.is_some());
    let group = world.engine.groups(world.now).swap_remove(0);
    assert_eq!(statements(&group), summary.conditions);
    assert_eq!(group.meaning(), summary.meaning.as_deref());
    assert_eq!((group.state, group.since), (summary.state, summary.since));
    assert_eq!((group.kind, group.name), (summary.kind, summary.name));
    assert_eq!(summary.conditions.first().map(|(kind, _)| *kind), Some("Available"));
}

/// A new objection to an upgrade that is not written yet hides the published status.
#[test]
fn a_relist_does_not_hide_an_unwritten_objection() {
    let widgets = GroupKind::new("acme.io", "Widget");
    let upgradeable = |status: &str| {
        let mut component = component("a", ["True", "False", "False"]);
        let condition = json!({"type": "Upgradeable", "status": status, "reason": "Because", "message": "so it is",
            "lastTransitionTime": "2026-11-14T09:30:00Z"});
        component["status"]["conditions"].as_array_mut().expect("conditions").push(condition);
        component
    };
    let rollup = with(rollup(), &json!({"spec": {"upgradeable": true}}));
    let mut world = with_rollups([rollup, upgradeable("True"), component("b", ["True", "False", "False"])]);
    world.settle();
    let upgrade_status = |world: &World| known(of_rollup(world)).condition("Upgradeable").map(|it| it.status);
    assert_eq!(upgrade_status(&world), Some(ConditionStatus::True));
    world.writing = false;
    world.put(upgradeable("False")).settle();
    assert_eq!(upgrade_status(&world), Some(ConditionStatus::False));
    list_again(&mut world, &widgets);
    assert_eq!(of_rollup(&world), unknown(&widgets, None));
}

/// A terminating group, however healthy its members are.
#[test]
fn a_terminating_group_is_not_healthy() {
    let deleted = json!({"metadata": {"deletionTimestamp": "2026-11-14T10:00:00Z"}});
    let mut world = World::with([app_of_kinds("web"), widget("a", Some("True"))]);
    assert!(summary(&world, "web").healthy);
    world.put(with(app_of_kinds("web"), &deleted)).settle();
    let of_application = summary(&world, "web");
    assert_eq!((of_application.healthy, of_application.state), (false, State::Terminating));

    let well = ["True", "False", "False"];
    let mut world = with_rollups([rollup(), component("a", well), component("b", well)]);
    world.settle();
    assert!(known(of_rollup(&world)).healthy);
    world.put(with(rollup(), &deleted)).settle();
    let of_rollup = known(of_rollup(&world));
    assert_eq!((of_rollup.healthy, of_rollup.state), (false, State::Terminating));
}

/// Unknown until its kinds are listed; a relist does not change that.
#[test]
fn a_rollup_is_unknown_until_its_kinds_are_listed() {
    let widgets = GroupKind::new("acme.io", "Widget");
    let mut world = with_rollups([]);
    assert!(
        matches!(of_rollup(&world), GroupStatus::Unknown(kinds) if kinds.contains(&(GroupKind::bellwether("Rollup"), None)))
    );
    world.settle();
    assert_eq!(of_rollup(&world), GroupStatus::NotFound);
    world.held.insert(widgets.clone());
    world.put(rollup()).settle();
    assert_eq!(of_rollup(&world), unknown(&widgets, None));
    world.held.clear();
    world.settle();
    assert_eq!(known(of_rollup(&world)).state, State::Missing);
    for name in ["a", "b"] {
        world.put(component(name, ["True", "False", "False"]));
    }
    let before = known(of_rollup(&world));
    assert!(before.healthy);
    list_again(&mut world, &widgets);
    assert_eq!(known(of_rollup(&world)), before);

    // The published status is outdated.
    let mut world = with_rollups([rollup(), component("a", ["True"; 3]), component("b", ["True"; 3])]);
    world.settle();
    world.writing = false;
    world.put(component("a", ["False", "False", "True"])).settle();
    list_again(&mut world, &widgets);
    assert_eq!(of_rollup(&world), unknown(&widgets, None));
}

/// The other API group, or no namespace, means another object.
#[test]
fn group_and_namespace_are_part_of_the_identity() {
    let world = World::with([app_of_kinds("web"), widget("a", Some("True"))]);
    let old = GroupKind::new("app.k8s.io", "Application");
    assert_eq!(
        world.engine.summary(world.now, &old, &NamespacedName::new("shop", "web")),
        GroupStatus::NotFound
    );
    assert_eq!(
        world.engine.summary(
            world.now,
            &GroupKind::bellwether("Application"),
            &NamespacedName::new("", "web")
        ),
        GroupStatus::NotFound
    );
}

/// Where not all groups can have series, Rollups have them: they are few, and each stands for much.
#[test]
fn rollups_are_sampled_first() {
    let apps = ["a", "b", "c"].map(app_of_kinds);
    let mut world = with_rollups(apps.into_iter().chain([rollup()]));
    world.settle();
    let samples = world.engine.group_samples(2);
    let kinds: Vec<_> = samples.samples.iter().map(|sample| sample.group.kind).collect();
    assert_eq!((kinds[0], kinds.len(), samples.without), (OwnKind::Rollup, 2, 2));
}
