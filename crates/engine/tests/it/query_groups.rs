//! Queries: `Engine::groups` and `Engine::relations`.

use std::sync::Arc;

use bellwether_api::State;
use bellwether_engine::{
    Event, FeedEvent, Group, GroupKind, Lens, NamespacedName, ProjectionContext, Relation,
};
use bellwether_health::user::UserRules;
use bellwether_model::{Object, Plan};
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    objects::{app, app_of_kinds, deployment, key, widget, with},
    world::World,
};

fn group(world: &World, name: &str) -> Group {
    let mut groups = world.engine.groups(world.now);
    let index = groups.iter().position(|group| *group.name.name == *name);
    groups.swap_remove(index.expect("there is such a group"))
}

fn failed(name: &str) -> Value {
    let stalled = json!([{"type": "Stalled", "status": "True", "reason": "Jammed", "message": "a cog is jammed",
        "lastTransitionTime": "2026-11-14T09:30:00Z"}]);
    with(widget(name, None), &json!({"status": {"conditions": stalled}}))
}

/// The state of a group is the worst state among its blocking members.
#[rstest]
#[case::nothing(vec![], State::Unknown)]
#[case::ready(vec![widget("a", Some("True"))], State::Ready)]
#[case::in_progress(vec![widget("a", Some("True")), deployment("b", 2, 3)], State::InProgress)]
#[case::failed(vec![deployment("b", 2, 3), failed("a")], State::Failed)]
#[case::bad_beats_unknown(vec![widget("a", None), deployment("b", 2, 3)], State::InProgress)]
#[case::unknown(vec![widget("a", None), deployment("b", 3, 3)], State::Unknown)]
fn the_state_of_a_group_is_that_of_its_worst_member(#[case] objects: Vec<Value>, #[case] state: State) {
    let world = World::with([app_of_kinds("web")].into_iter().chain(objects));
    assert_eq!(group(&world, "web").state, state);
}

/// A query returns the statements of the stored status.
#[test]
fn a_group_has_the_statements_of_its_status() {
    let world =
        World::with([app_of_kinds("web"), widget("a", Some("True")), deployment("b", 2, 3), failed("c")]);
    let group = group(&world, "web");
    for condition in &group.conditions {
        let it = &condition.statement;
        let expected = format!("{:?} {}: {}", it.status, it.reason, it.message);
        assert_eq!(world.of_app("web", condition.type_), expected);
    }
    let members: Vec<_> = group.members.iter().map(|member| (&*member.name.name, member.state)).collect();
    assert_eq!(members, [("c", State::Failed), ("b", State::InProgress), ("a", State::Ready)]);
    assert_eq!((group.counts.ready, group.counts.total, group.members.len()), (1, 3, 3));
}

/// Since the first member failed, not since the first evaluation.
#[test]
fn since_is_that_of_the_first_failed_member() {
    let mut world = World::with([app_of_kinds("web"), failed("c"), deployment("b", 3, 3)]);
    assert_eq!(
        group(&world, "web").since.map(|since| since.to_string()).as_deref(),
        Some("2026-11-14T09:30:00Z")
    );
    world.pass(SignedDuration::from_mins(5));
    let before = world.now;
    world.put(widget("c", Some("True"))).settle();
    world.pass(SignedDuration::from_mins(5));
    let group = group(&world, "web");
    assert_eq!((group.state, group.since), (State::Ready, Some(before)));
}

/// Before the initial list, a group is not reported.
#[test]
fn a_group_is_not_reported_before_its_kinds_are_listed() {
    let mut world = World::with([app_of_kinds("web"), widget("a", Some("True"))]);
    assert_eq!(world.engine.groups(world.now).len(), 1);
    world.held.insert(GroupKind::new("", "Service"));
    world.put(app("late", &json!({"componentKinds": [{"kind": "Service"}]}))).settle();
    assert_eq!(world.engine.groups(world.now).len(), 1, "one of its kinds is not listed");
}

/// During a relist, a group is not reported.
#[test]
fn a_group_is_not_reported_during_a_relist() {
    let mut world = World::with([app_of_kinds("web"), widget("a", Some("True"))]);
    assert!(world.engine.is_consistent());
    let feed = world.feeds.iter().find(|(_, feed)| feed.kind == GroupKind::new("acme.io", "Widget"));
    let feed = *feed.expect("widgets are followed").0;
    world.step(Event::Feed(feed, FeedEvent::ListStarted));
    assert!(!world.engine.is_consistent() && world.engine.groups(world.now).is_empty());
}

/// How an Application relates to an object, whether its kind is watched or not.
#[rstest]
#[case::counted(json!({"labels": {"app": "web"}}), "Widget", Relation::Member)]
#[case::to_be_owned(json!({"labels": {"app": "web"}, "annotations": {"kubernetes.io/application": "web"}}), "Widget", Relation::FutureOwner)]
#[case::owned(json!({"labels": {"app": "web"}, "annotations": {"kubernetes.io/application": "web"},
    "ownerReferences": [{"apiVersion": "bellwether.dev/v1alpha1", "kind": "Application", "name": "web", "uid": "UID"}]}), "Widget", Relation::Owner)]
#[case::of_another(json!({"labels": {"app": "web"}, "annotations": {"kubernetes.io/application": "other"}}), "Widget", Relation::NotAMember)]
#[case::other_labels(json!({"labels": {"app": "other"}}), "Widget", Relation::NotSelected)]
#[case::other_kind(json!({"labels": {"app": "web"}}), "Gizmo", Relation::KindNotListed)]
fn relations(#[case] metadata: Value, #[case] kind: &str, #[case] expected: Relation) {
    let world = World::with([app_of_kinds("web")]);
    let (application, name) = key("Application.bellwether.dev", "web");
    let uid = &world.server.get(&application, &name).expect("the Application")["metadata"]["uid"];
    let mut object =
        json!({"apiVersion": "acme.io/v1", "kind": kind, "metadata": {"name": "a", "namespace": "shop"}});
    object["metadata"]
        .as_object_mut()
        .expect("metadata")
        .extend(metadata.as_object().expect("metadata").clone());
    let text = object.to_string().replace("UID", uid.as_str().expect("text"));
    let read = Object::from_json(text.as_bytes(), &Plan::whole()).expect("an object");
    let kind = GroupKind::new("acme.io", kind);
    let lens = Lens::new(&kind, Arc::new(UserRules::default()));
    let facts = lens.project(&read, ProjectionContext { now: world.now, has_status: None }).1.facts;
    let relations = world.engine.relations(&kind, &NamespacedName::new("shop", "a"), &facts);
    let relation = relations.iter().find(|relation| &*relation.name.name == "web").expect("a relation");
    assert_eq!(relation.relation, expected);
}
