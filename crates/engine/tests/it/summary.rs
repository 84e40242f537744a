//! How a group is as one, for whoever asks only for that.

use bellwether_api::{ConditionStatus, State};
use bellwether_engine::{
    Cluster, ClusterEvent, Event, FeedEvent, GroupKind, GroupStatus, NamespacedName, Served, StatusSummary,
    Unreadable,
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
    world.engine.summary(world.now, &GroupKind::own(kind), &NamespacedName::new("shop", name))
}

fn summary(world: &World, name: &str) -> StatusSummary {
    known(ask(world, "Application", name))
}

/// What nobody can tell for want of this kind.
fn unknown(kind: &GroupKind, why: Option<Unreadable>) -> GroupStatus {
    GroupStatus::Unknown(vec![(kind.clone(), why)])
}

/// A kind is being listed again, as far as the beginning.
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
    // It says what its status says, in the same words and in the same order.
    assert_eq!(summary.conditions.first().map(|(kind, _)| *kind), Some("Ready"));
    for (condition, statement) in &summary.conditions {
        let expected = format!("{:?} {}: {}", statement.status, statement.reason, statement.message);
        assert_eq!(world.of_app("web", condition), expected);
        assert_eq!(summary.condition(condition), Some(statement));
    }
    let group = world.engine.groups(world.now).swap_remove(0);
    assert_eq!(statements(&group), summary.conditions);
    assert_eq!((group.kind, group.name), (summary.kind, summary.name));
}

/// What a cluster reported that is silent says nothing any more. Time alone makes it silent.
#[test]
fn of_a_silent_cluster_nothing_is_said_until_it_is_heard_from_again() {
    let mut world = World::with([app_of_kinds("web"), widget("a", Some("True"))]);
    let heard = world.now;
    world.step(Event::Cluster(Cluster::hub(), ClusterEvent::Heard(heard)));
    world.pass(SignedDuration::from_secs(119));
    assert!(summary(&world, "web").healthy);
    world.pass(SignedDuration::from_secs(1));
    assert_eq!(ask(&world, "Application", "web"), GroupStatus::Silent { since: heard });
    world.step(Event::Cluster(Cluster::hub(), ClusterEvent::Lost));
    assert_eq!(ask(&world, "Application", "web"), GroupStatus::Silent { since: heard });
    world.step(Event::Cluster(Cluster::hub(), ClusterEvent::Heard(world.now)));
    assert!(summary(&world, "web").healthy);
}

/// Since it turned: as is written, and also before that is written.
#[test]
fn it_knows_since_when() {
    let mut world = World::with([app_of_kinds("web"), widget("a", Some("True"))]);
    let begun = summary(&world, "web").since.expect("it knows");
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
fn what_is_not_there_is_not_what_is_not_known() {
    let mut world = World::new();
    let GroupStatus::Unknown(base) = ask(&world, "Application", "web") else {
        panic!("nothing is known yet")
    };
    assert!(base.contains(&(GroupKind::own("Application"), None)), "{base:?}");
    world.settle();
    assert_eq!(ask(&world, "Application", "web"), GroupStatus::NotFound);
    assert_eq!(ask(&world, "HealthRule", "web"), GroupStatus::NotFound, "a HealthRule is not a group");

    // It is there, and one of its kinds has not been listed yet.
    let services = GroupKind::new("", "Service");
    world.held.insert(services.clone());
    world.put(app("web", &json!({"componentKinds": [{"kind": "Service"}]}))).settle();
    assert_eq!(ask(&world, "Application", "web"), unknown(&services, None));
    world.held.clear();
    world.settle();
    assert!(!summary(&world, "web").healthy);
}

/// Who may not see which there are cannot say that there is none.
#[test]
fn where_the_kind_cannot_be_read_nobody_can_tell() {
    let mut world = World::with([app_of_kinds("web"), widget("a", Some("True"))]);
    let forbidden = Unreadable::Forbidden { resource: "applications".into() };
    world.unreadable("Application.bellwether.dev", Some(forbidden.clone()));
    world.settle();
    assert!(summary(&world, "web").healthy, "what was there is as it was");
    assert_eq!(ask(&world, "Application", "other"), unknown(&GroupKind::own("Application"), Some(forbidden)));
    world.unreadable("Application.bellwether.dev", Some(Unreadable::NotServed));
    world.settle();
    assert_eq!(ask(&world, "Application", "other"), GroupStatus::NotFound, "no kind, no objects");
}

/// A list that is begun again is no news about anybody: what was said still counts, and nothing else is said.
#[test]
fn while_a_kind_is_listed_again_the_last_word_counts() {
    let widgets = GroupKind::new("acme.io", "Widget");
    let mut world = World::with([app_of_kinds("web"), widget("a", Some("True"))]);
    let before = summary(&world, "web");
    list_again(&mut world, &widgets);
    assert_eq!(summary(&world, "web"), before);

    // Where the last word is not what was known by then, there is none.
    let mut world = World::with([app_of_kinds("web"), widget("a", Some("True"))]);
    world.writing = false;
    world.put(widget("a", None)).settle();
    list_again(&mut world, &widgets);
    assert_eq!(ask(&world, "Application", "web"), unknown(&widgets, None));
}

/// A component, and what its operator says of it: Available, Progressing, Degraded.
fn component(name: &str, statuses: [&str; 3]) -> Value {
    let condition = |(kind, status): (&str, &str)| {
        json!({"type": kind, "status": status, "reason": "Because", "message": format!("{kind} is {status}"),
            "lastTransitionTime": "2026-11-14T09:30:00Z"})
    };
    let conditions: Vec<_> =
        ["Available", "Progressing", "Degraded"].into_iter().zip(statuses).map(condition).collect();
    with(widget(name, None), &json!({"status": {"conditions": conditions}}))
}

/// A Rollup of two components.
fn rollup() -> Value {
    let component =
        |name: &str| json!({"group": "acme.io", "kind": "Widget", "namespace": "shop", "name": name});
    json!({"apiVersion": "bellwether.dev/v1alpha1", "kind": "Rollup", "metadata": {"name": "all"},
        "spec": {"components": [component("a"), component("b")]}})
}

/// A cluster that has Rollups besides, of which nothing is known yet; and these objects.
fn with_rollups(objects: impl IntoIterator<Item = Value>) -> World {
    let mut world = World::new();
    let served = Served {
        version: "v1alpha1".into(),
        versions: ["v1alpha1".into()].into(),
        plural: "rollups".into(),
        namespaced: false,
        has_status: true,
    };
    world.server.kinds.insert(GroupKind::own("Rollup"), served);
    for object in objects {
        world.server.put(object);
    }
    world
}

fn of_rollup(world: &World) -> GroupStatus {
    world.engine.summary(world.now, &GroupKind::own("Rollup"), &NamespacedName::new("", "all"))
}

fn known(status: GroupStatus) -> StatusSummary {
    match status {
        GroupStatus::Known(summary) => *summary,
        other => panic!("it is known: {other:?}"),
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
fn a_rollup_is_healthy_if_its_components_are_well_and_at_rest(
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
    assert_eq!((group.kind, group.name), (summary.kind, summary.name));
    assert_eq!(summary.conditions.first().map(|(kind, _)| *kind), Some("Available"));
}

/// Nor is there a last word where it would say of an upgrade what is not so any more.
#[test]
fn an_objection_that_is_not_written_yet_is_not_forgotten() {
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

/// However well its members are: who waits for it waits for something that will not be there.
#[test]
fn what_is_being_deleted_is_not_healthy() {
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

/// Nobody can tell before its kinds are known; and a list that is begun again is no news.
#[test]
fn a_rollup_is_known_when_its_kinds_are() {
    let widgets = GroupKind::new("acme.io", "Widget");
    let mut world = with_rollups([]);
    assert!(
        matches!(of_rollup(&world), GroupStatus::Unknown(kinds) if kinds.contains(&(GroupKind::own("Rollup"), None)))
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

    // Where the last word is not what was known by then, there is none.
    let mut world = with_rollups([rollup(), component("a", ["True"; 3]), component("b", ["True"; 3])]);
    world.settle();
    world.writing = false;
    world.put(component("a", ["False", "False", "True"])).settle();
    list_again(&mut world, &widgets);
    assert_eq!(of_rollup(&world), unknown(&widgets, None));
}

/// One of the same name in the other API, or in no namespace, would be another one.
#[test]
fn the_kind_says_which_is_meant() {
    let world = World::with([app_of_kinds("web"), widget("a", Some("True"))]);
    let old = GroupKind::new("app.k8s.io", "Application");
    assert_eq!(
        world.engine.summary(world.now, &old, &NamespacedName::new("shop", "web")),
        GroupStatus::NotFound
    );
    assert_eq!(
        world.engine.summary(world.now, &GroupKind::own("Application"), &NamespacedName::new("", "web")),
        GroupStatus::NotFound
    );
}
