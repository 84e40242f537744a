//! Owner references: adoption by annotation, removal, ownedKinds, garbage collection, refused and conflicting
//! writes.

use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};

use bellwether_engine::{Part, Unreadable};

use crate::{
    objects::{annotated, app, app_of, app_of_kinds, deployment, key, widget, with},
    server::merge,
    world::World,
    writes::Fault,
};

const APP: &str = "Application.bellwether.dev";
const KIND: &str = "Deployment.apps";

fn mine() -> Value {
    annotated(deployment("front", 3, 3), "web")
}

fn owner_writes(world: &World) -> usize {
    world.writes.iter().filter(|(slot, ..)| slot.part == Part::OwnerReferences).count()
}

/// Garbage Collection, creation and update, step 2: a member gets an owner reference, in either order of
/// creation. The selector alone makes a member; the annotation makes it owned.
#[test]
fn an_annotated_member_gets_an_owner_reference() {
    for objects in [[app_of_kinds("web"), mine()], [mine(), app_of_kinds("web")]] {
        let mut world = World::new();
        for object in objects {
            world.put(object);
        }
        let (kind, name) = key(KIND, "front");
        let owners = world.server.get(&kind, &name).map(|it| it["metadata"]["ownerReferences"].clone());
        let (kind, name) = key(APP, "web");
        let uid = world.server.get(&kind, &name).map(|it| it["metadata"]["uid"].clone());
        let expected = json!([{
            "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application", "name": "web", "uid": uid,
            "controller": false, "blockOwnerDeletion": true,
        }]);
        assert_eq!(owners, Some(expected));
        assert_eq!(owner_writes(&world), 1);
    }
    let world = World::with([app_of_kinds("web"), deployment("front", 3, 3)]);
    assert_eq!((world.owners(KIND, "front").as_str(), world.status("web").objects.len()), ("", 1));
}

/// Installation Status Reporting, update, step 2: the reference is removed when the object is not a member or
/// not annotated any more.
#[rstest]
#[case::relabelled(KIND, json!({"metadata": {"labels": {"app": "api"}}}))]
#[case::annotation_removed(KIND, json!({"metadata": {"annotations": null}}))]
#[case::annotation_names_no_application(KIND, json!({"metadata": {"annotations": {"kubernetes.io/application": "absent"}}}))]
#[case::ownership_observe(APP, json!({"spec": {"ownership": "Observe"}}))]
#[case::kind_replaced_in_the_spec(APP, json!({"spec": {"componentKinds": [{"group": "acme.io", "kind": "Widget"}]}}))]
#[case::kinds_removed_from_the_spec(APP, json!({"spec": {"componentKinds": null, "dependencies": ["base"]}}))]
fn the_owner_reference_of_a_former_member_is_removed(
    #[case] kind: &str,
    #[case] patch: Value,
    #[values(false, true)] restart: bool,
) {
    let foreign = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "foreign", "uid": "f1"}]);
    let object = with(mine(), &json!({"metadata": {"ownerReferences": foreign}}));
    let mut world = World::with([app_of_kinds("web"), object]);
    assert_eq!(world.owners(KIND, "front"), "foreign web");
    let (kind, name) = key(kind, if kind == APP { "web" } else { "front" });
    world.server.edit(&kind, &name, |it| merge(it, &patch));
    if restart {
        world.restart();
    }
    world.settle();
    assert_eq!(world.owners(KIND, "front"), "foreign");
    assert_eq!(owner_writes(&world), 2);
    world.pass(SignedDuration::from_mins(10));
    let follows = world.feeds.values().any(|feed| feed.kind.to_string() == KIND);
    let needs = json!(world.status("web").objects).to_string().contains("front");
    assert!(needs || !follows || kind.to_string() == KIND, "its kind is not watched any longer");
}

/// In one write, so that the object always has an owner, if the new Application has published the kind
/// already.
#[rstest]
#[case::to_one_that_owns(json!({"metadata": {"annotations": {"kubernetes.io/application": "shop"}}}), 1)]
#[case::to_one_that_does_not(json!({}), 2)]
fn the_annotation_moves_an_object_to_another_owner(#[case] other: Value, #[case] expected: usize) {
    let other = with(deployment("back", 3, 3), &other);
    let mut world = World::with([app_of_kinds("web"), app_of_kinds("shop"), other, mine()]);
    assert_eq!(world.owners(KIND, "front"), "web");
    let writes = owner_writes(&world);
    world
        .edit(KIND, "front", |it| it["metadata"]["annotations"]["kubernetes.io/application"] = "shop".into());
    assert_eq!((world.owners(KIND, "front").as_str(), owner_writes(&world)), ("shop", writes + expected));
}

/// `status.ownedKinds` lists a kind before any object of it is adopted. So a reference that is in flight
/// while the kind is dropped from the spec is removed later; also after a failover, or if the response was
/// lost.
#[rstest]
fn an_owner_reference_in_flight_is_removed_later(
    #[values(Fault::None, Fault::LoseResponse)] fault: Fault,
    #[values(false, true)] restart: bool,
) {
    let mut world = World::with([app_of_kinds("web"), deployment("front", 3, 3)]);
    assert_eq!(world.status("web").owned_kinds, []);
    world.faults = [Fault::None, fault].into();
    world.slow = true;
    world.server.put(mine());
    while !world.owners_in_flight() {
        assert!(world.advance(), "an owner reference is written");
    }
    assert_eq!(world.status("web").owned_kinds.len(), 1);
    world.held.insert(key(KIND, "").0);
    let (kind, name) = key(APP, "web");
    let patch = json!({"spec": {"componentKinds": null, "dependencies": ["base"]}});
    world.server.edit(&kind, &name, |it| merge(it, &patch));
    while world.deliver() {}
    world.arrive(0);
    if restart {
        world.restart();
    }
    world.slow = false;
    world.pass(SignedDuration::from_mins(5));
    world.held.clear();
    world.settle();
    assert_eq!(world.owners(KIND, "front"), "");
    world.pass(SignedDuration::from_mins(10));
    assert_eq!(world.status("web").owned_kinds, []);
    assert!(!world.feeds.values().any(|feed| feed.kind.to_string() == KIND));
}

/// References that could not be removed are removed later, whatever happens to the kind or the status.
#[rstest]
#[case::not_served_for_a_moment(|world: &mut World| {
    world.unreadable(KIND, Some(Unreadable::NotServed));
    world.pass(SignedDuration::from_mins(5));
    world.unreadable(KIND, None);
})]
#[case::status_cleared(|world: &mut World| {
    world.edit(APP, "web", |it| it["status"] = json!({}));
})]
fn remaining_owner_references_are_removed_later(#[case] interfere: fn(&mut World)) {
    let mut world = World::with([app_of_kinds("web"), mine()]);
    world.unreadable(KIND, Some(Unreadable::Forbidden { resource: "deployments".into() }));
    world
        .put(with(app_of_kinds("web"), &json!({"spec": {"componentKinds": null, "dependencies": ["base"]}})));
    world.pass(SignedDuration::from_mins(30));
    interfere(&mut world);
    world.pass(SignedDuration::from_mins(1));
    world.unreadable(KIND, None);
    world.settle();
    assert_eq!(world.owners(KIND, "front"), "");
}

/// The kind is used again before its removal from `status.ownedKinds` is written.
#[test]
fn a_kind_that_is_used_again_can_be_released_again() {
    let mut world = World::with([app_of_kinds("web"), mine()]);
    let bare =
        || with(app_of_kinds("web"), &json!({"spec": {"componentKinds": null, "dependencies": ["base"]}}));
    world.put(bare());
    assert_eq!(world.owners(KIND, "front"), "");
    world.pass(SignedDuration::from_mins(9));
    world.faults.extend([Fault::Fail; 1000]);
    world.pass(SignedDuration::from_mins(2));
    assert_eq!(world.status("web").owned_kinds.len(), 1, "the empty list could not be written");
    world.server.put(app_of_kinds("web"));
    while world.deliver() {}
    world.faults.clear();
    world.pass(SignedDuration::from_mins(2));
    assert_eq!(world.owners(KIND, "front"), "web");
    world.put(bare());
    assert_eq!(world.owners(KIND, "front"), "");
}

/// Before all Applications are known, the owner of an object is not.
#[test]
fn no_owner_reference_is_removed_before_all_applications_are_known() {
    let labels = json!({"metadata": {"labels": {"app": "web"}}});
    let kinds = json!({"componentKinds": [{"group": "bellwether.dev", "kind": "Application"}]});
    let inner = annotated(with(app_of("inner", &["front"]), &labels), "all");
    let mut world = World::with([app("all", &kinds), inner, deployment("front", 3, 3)]);
    assert_eq!(world.owners(APP, "inner"), "all");
    let writes = world.writes.len();
    world.held.insert(key("HealthRule.bellwether.dev", "").0);
    world.restart();
    world.settle();
    assert!(world.wants().is_empty(), "{:?}", world.wants());
    world.held.clear();
    world.settle();
    assert_eq!((world.owners(APP, "inner").as_str(), world.writes.len()), ("all", writes));
}

/// Another replica published a kind that the spec does not name.
#[test]
fn owned_kinds_of_another_replica_are_released() {
    let mut world = World::with([app("web", &json!({"dependencies": ["base"]})), mine()]);
    let (kind, name) = key(APP, "web");
    let uid = world.server.get(&kind, &name).map(|it| it["metadata"]["uid"].clone());
    let owner = json!([{
        "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application", "name": "web", "uid": uid,
    }]);
    world.edit(KIND, "front", |it| it["metadata"]["ownerReferences"] = owner);
    assert_eq!(world.owners(KIND, "front"), "web", "the kind is not watched");
    world
        .edit(APP, "web", |it| it["status"]["ownedKinds"] = json!([{"group": "apps", "kind": "Deployment"}]));
    assert_eq!(world.owners(KIND, "front"), "");
}

/// Owner references of Applications are managed only while an Application uses that kind.
#[test]
fn owners_of_applications_are_managed_only_for_their_users() {
    let labels = json!({"metadata": {"labels": {"app": "api"}}});
    let kinds = json!({"componentKinds": [{"group": "bellwether.dev", "kind": "Application"}]});
    let bare = || app("all", &json!({"dependencies": ["base"]}));
    let mut world = World::with([bare(), with(app_of("inner", &["front"]), &labels)]);
    let (kind, name) = key(APP, "all");
    let uid = world.server.get(&kind, &name).map(|it| it["metadata"]["uid"].clone());
    let owner = json!([{
        "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application", "name": "all", "uid": uid,
    }]);
    let own = |it: &mut Value| it["metadata"]["ownerReferences"] = owner.clone();
    world.edit(APP, "inner", own);
    assert_eq!(world.owners(APP, "inner"), "all", "the kind is not used");
    for _ in 0..2 {
        world.put(app("all", &kinds));
        assert_eq!(world.owners(APP, "inner"), "");
        world.put(bare());
        world.edit(APP, "inner", own);
        assert_eq!(world.owners(APP, "inner"), "all");
    }
}

/// `controller` and `blockOwnerDeletion` are corrected. If another writer insists, with growing delays.
#[test]
fn an_altered_owner_reference_is_corrected() {
    let mut world = World::with([app_of_kinds("web"), mine()]);
    let reference = |world: &World| {
        let (kind, name) = key(KIND, "front");
        let owner = &world.server.get(&kind, &name).expect("it is there")["metadata"]["ownerReferences"][0];
        (owner["controller"] == true, owner["blockOwnerDeletion"] == true)
    };
    for altered in
        [json!({"controller": true}), json!({"blockOwnerDeletion": false}), json!({"controller": null})]
    {
        world.edit(KIND, "front", |it| merge(&mut it["metadata"]["ownerReferences"][0], &altered));
        assert_eq!(reference(&world), (false, true));
    }
    assert_eq!(owner_writes(&world), 3, "an absent controller is false");
    for _ in 0..100 {
        world.edit(KIND, "front", |it| it["metadata"]["ownerReferences"][0]["controller"] = true.into());
    }
    assert!(owner_writes(&world) < 15, "{} writes in 200 s", owner_writes(&world));
    world.pass(SignedDuration::from_mins(10));
    assert_eq!(reference(&world), (false, true));
}

#[test]
fn a_removed_owner_reference_comes_back() {
    let mut world = World::with([app_of_kinds("web"), mine()]);
    world.edit(KIND, "front", |it| it["metadata"]["ownerReferences"] = json!([]));
    assert_eq!(
        (world.owners(KIND, "front").as_str(), owner_writes(&world)),
        ("web", 2),
        "a removed reference comes back"
    );
}

/// Garbage Collection, deletion: the garbage collector handles the members of a terminating Application. No
/// reference is removed or added.
#[test]
fn a_terminating_application_releases_nothing() {
    let mut world = World::with([app_of_kinds("web"), mine()]);
    let writes = owner_writes(&world);
    world.edit(APP, "web", |it| it["metadata"]["deletionTimestamp"] = "2026-11-14T10:00:00Z".into());
    world.put(annotated(deployment("late", 3, 3), "web"));
    assert_eq!((world.owners(KIND, "front"), world.owners(KIND, "late")), ("web".to_owned(), String::new()));
    world.delete(APP, "web");
    assert_eq!((world.owners(KIND, "front").as_str(), owner_writes(&world)), ("web", writes));
    assert!(world.wants().is_empty());
}

/// A recreated Application has another uid.
#[test]
fn a_recreated_application_adopts_again() {
    let mut world = World::with([app_of_kinds("web"), mine()]);
    world.delete(APP, "web").put(app_of_kinds("web"));
    let (kind, name) = key(KIND, "front");
    let owners = world.server.get(&kind, &name).map(|it| it["metadata"]["ownerReferences"].clone());
    assert_eq!(owners.as_ref().and_then(Value::as_array).map(Vec::len), Some(2), "{owners:?}");
}

/// Adopted is False while the write is refused.
#[test]
fn a_refused_owner_reference_is_reported() {
    let mut world = World::new();
    world.faults.extend([Fault::None, Fault::Refuse, Fault::None, Fault::Refuse]);
    world.put(mine()).put(app("web", &json!({"componentKinds": [{"group": "apps", "kind": "Deployment"}]})));
    assert_eq!(world.of_app("web", "Adopted"), "False OwnerReferenceNotUpdated: Deployment/front: not today");
    assert!(world.of_app("web", "Ready").starts_with("True "), "its members still count");
    world.pass(SignedDuration::from_mins(1));
    assert_eq!(
        (world.owners(KIND, "front").as_str(), world.of_app("web", "Adopted").as_str()),
        ("web", "none")
    );
}

/// The reference changes between two refusals: only the current owner reports it.
#[test]
fn a_refusal_is_reported_by_the_current_owner() {
    let mut world = World::with([app_of_kinds("web"), app_of_kinds("shop"), deployment("front", 3, 3)]);
    let uid = |world: &World, name| {
        let (kind, name) = key(APP, name);
        world.server.get(&kind, &name).map(|it| it["metadata"]["uid"].clone())
    };
    world.slow = true;
    for owner in ["web", "shop"] {
        let owner = json!([{
            "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application", "name": owner, "uid": uid(&world, owner),
        }]);
        let (kind, name) = key(KIND, "front");
        world.server.edit(&kind, &name, |it| it["metadata"]["ownerReferences"] = owner);
        while world.deliver() {}
        world.faults = [Fault::Refuse; 9].into();
        world.now += SignedDuration::from_mins(1);
        world.send();
        assert!(world.owners_in_flight());
        while !world.in_flight.is_empty() {
            world.arrive(0);
            world.respond(0);
        }
    }
    (world.slow, world.faults) = (false, [].into());
    world.pass(SignedDuration::from_mins(2));
    assert_eq!(world.owners(KIND, "front"), "");
    assert_eq!(["web", "shop"].map(|app| world.of_app(app, "Adopted")), ["none", "none"]);
}

/// The refused change is not wanted any more.
#[test]
fn a_late_refusal_is_not_reported() {
    let mut world = World::with([app_of_kinds("web"), deployment("front", 3, 3)]);
    world.server.put(mine());
    while world.deliver() {}
    world.faults.extend([Fault::Refuse]);
    world.send();
    world.arrive(0);
    let (kind, name) = key(APP, "web");
    world.server.edit(&kind, &name, |it| it["spec"]["ownership"] = json!("Observe"));
    while world.deliver() {}
    world.respond(0);
    assert_eq!(world.settle().of_app("web", "Adopted"), "none");
}

/// Terminating objects, and objects in other namespaces.
#[test]
fn terminating_objects_are_not_adopted() {
    let going = with(mine(), &json!({"metadata": {"deletionTimestamp": "2026-11-14T10:00:00Z"}}));
    let elsewhere =
        with(annotated(widget("one", None), "web"), &json!({"metadata": {"namespace": "elsewhere"}}));
    let world = World::with([app_of_kinds("web"), going, elsewhere]);
    assert_eq!(owner_writes(&world), 0);
}
