//! Who owns what, and who lets go of it.

use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};

use bellwether_engine::{Part, Unreadable};

use crate::{
    objects::{annotated, app, app_of, app_of_kinds, deployment, key, widget, with},
    world::World,
    writes::Fault,
};

const APP: &str = "Application.bellwether.dev";
const KIND: &str = "Deployment.apps";

fn mine() -> Value {
    annotated(deployment("front", 3, 3), "web")
}

fn owner_writes(world: &World) -> usize {
    world.writes.iter().filter(|(slot, ..)| slot.part == Part::Owners).count()
}

/// Garbage Collection, creation and update, step 2: a member gets a reference to its Application, in either order of creation.
/// Selecting only counts an object; the annotation hands it over.
#[test]
fn a_member_that_was_handed_over_is_owned() {
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

/// Installation Status Reporting, update, step 2: what is a member no longer, or was handed over to nobody, is let go.
#[rstest]
#[case::relabelled(KIND, json!({"metadata": {"labels": {"app": "api"}}}))]
#[case::annotation_removed(KIND, json!({"metadata": {"annotations": null}}))]
#[case::handed_to_nobody(KIND, json!({"metadata": {"annotations": {"kubernetes.io/application": "nobody"}}}))]
#[case::application_only_observes(APP, json!({"spec": {"ownership": "Observe"}}))]
#[case::kind_is_no_longer_of_interest(APP, json!({"spec": {"componentKinds": [{"group": "acme.io", "kind": "Widget"}]}}))]
#[case::no_kind_is(APP, json!({"spec": {"componentKinds": null, "dependencies": ["base"]}}))]
fn what_does_not_belong_any_more_is_let_go(
    #[case] kind: &str,
    #[case] patch: Value,
    #[values(false, true)] restart: bool,
) {
    let foreign = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "foreign", "uid": "f1"}]);
    let object = with(mine(), &json!({"metadata": {"ownerReferences": foreign}}));
    let mut world = World::with([app_of_kinds("web"), object]);
    assert_eq!(world.owners(KIND, "front"), "foreign web");
    let (kind, name) = key(kind, if kind == APP { "web" } else { "front" });
    world.server.edit(&kind, &name, |it| bellwether_simulation::object::merge(it, &patch));
    if restart {
        world.restart();
    }
    world.settle();
    assert_eq!(world.owners(KIND, "front"), "foreign");
    assert_eq!(owner_writes(&world), 2);
    world.pass(SignedDuration::from_mins(10));
    let follows = world.feeds.values().any(|feed| feed.kind.to_string() == KIND);
    let needs = json!(world.status("web").objects).to_string().contains("front");
    assert!(
        needs || !follows || kind.to_string() == KIND,
        "its kind is followed no longer than that can take"
    );
}

/// The annotation moves an object from one Application to another: in one write, so that it is never nobody's, if both
/// have owned something of its kind.
#[rstest]
#[case::to_one_that_owns(json!({"metadata": {"annotations": {"kubernetes.io/application": "shop"}}}), 1)]
#[case::to_one_that_does_not(json!({}), 2)]
fn an_object_moves_from_one_to_another(#[case] other: Value, #[case] expected: usize) {
    let other = with(deployment("back", 3, 3), &other);
    let mut world = World::with([app_of_kinds("web"), app_of_kinds("shop"), other, mine()]);
    assert_eq!(world.owners(KIND, "front"), "web");
    let writes = owner_writes(&world);
    world
        .edit(KIND, "front", |it| it["metadata"]["annotations"]["kubernetes.io/application"] = "shop".into());
    assert_eq!((world.owners(KIND, "front").as_str(), owner_writes(&world)), ("shop", writes + expected));
}

/// The status names a kind before anything of it is taken over. So whatever is under way when the kind is dropped from the
/// spec is let go of; also by one who comes after us, or when the answer never came.
#[rstest]
fn what_is_taken_over_too_late_is_let_go(
    #[values(Fault::None, Fault::LoseResponse)] fault: Fault,
    #[values(false, true)] restart: bool,
) {
    let mut world = World::with([app_of_kinds("web"), deployment("front", 3, 3)]);
    assert_eq!(world.status("web").owned_kinds, []);
    world.faults = [Fault::None, fault].into();
    world.slow = true;
    world.server.put(mine());
    while !world.owners_in_flight() {
        assert!(world.advance(), "it is taken over");
    }
    assert_eq!(world.status("web").owned_kinds.len(), 1);
    world.held.insert(key(KIND, "").0);
    let (kind, name) = key(APP, "web");
    let patch = json!({"spec": {"componentKinds": null, "dependencies": ["base"]}});
    world.server.edit(&kind, &name, |it| bellwether_simulation::object::merge(it, &patch));
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

/// What could not be let go of is not forgotten, whatever becomes of its kind or of what is written about it.
#[rstest]
#[case::not_served_for_a_moment(|world: &mut World| {
    world.unreadable(KIND, Some(Unreadable::NotServed));
    world.pass(SignedDuration::from_mins(5));
    world.unreadable(KIND, None);
})]
#[case::status_cleared(|world: &mut World| {
    world.edit(APP, "web", |it| it["status"] = json!({}));
})]
fn what_is_left_is_not_forgotten(#[case] interfere: fn(&mut World)) {
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

/// A kind that is wanted again while its name still stands in the status is as good as named anew: what was taken over
/// then is let go of like all else.
#[test]
fn a_kind_that_was_never_unnamed_is_let_go_of_again() {
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

/// Before all Applications are known, nobody can tell whose an object is, and an Application may be one.
#[test]
fn nothing_is_let_go_of_before_all_is_known() {
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

/// A kind that somebody else has named is looked at, though the spec does not speak of it.
#[test]
fn what_another_has_taken_over_is_let_go() {
    let mut world = World::with([app("web", &json!({"dependencies": ["base"]})), mine()]);
    let (kind, name) = key(APP, "web");
    let uid = world.server.get(&kind, &name).map(|it| it["metadata"]["uid"].clone());
    let owner = json!([{
        "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application", "name": "web", "uid": uid,
    }]);
    world.edit(KIND, "front", |it| it["metadata"]["ownerReferences"] = owner);
    assert_eq!(world.owners(KIND, "front"), "web", "nobody looks there");
    world
        .edit(APP, "web", |it| it["status"]["ownedKinds"] = json!([{"group": "apps", "kind": "Deployment"}]));
    assert_eq!(world.owners(KIND, "front"), "");
}

/// Our own kinds are always followed. Whose they are is looked at only while somebody counts them, and all over when
/// somebody does again.
#[test]
fn who_owns_applications_matters_to_those_who_count_them() {
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
    assert_eq!(world.owners(APP, "inner"), "all", "that is nobody's business");
    for _ in 0..2 {
        world.put(app("all", &kinds));
        assert_eq!(world.owners(APP, "inner"), "");
        world.put(bare());
        world.edit(APP, "inner", own);
        assert_eq!(world.owners(APP, "inner"), "all");
    }
}

/// A reference is patched only where it differs: flags that somebody chose stay.
#[test]
fn a_reference_that_is_there_stays_as_it_is() {
    let mut world = World::with([app_of_kinds("web"), mine()]);
    world.edit(KIND, "front", |it| {
        it["metadata"]["ownerReferences"][0]["controller"] = true.into();
        it["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] = false.into();
    });
    assert_eq!(owner_writes(&world), 1);
    world.edit(KIND, "front", |it| it["metadata"]["ownerReferences"] = json!([]));
    assert_eq!(
        (world.owners(KIND, "front").as_str(), owner_writes(&world)),
        ("web", 2),
        "what was removed comes back"
    );
}

/// Garbage Collection, deletion: the members of an Application that is deleted are the garbage collector's. Nothing is
/// released then, and nothing new is taken over.
#[test]
fn an_application_that_is_deleted_releases_nothing() {
    let mut world = World::with([app_of_kinds("web"), mine()]);
    let writes = owner_writes(&world);
    world.edit(APP, "web", |it| it["metadata"]["deletionTimestamp"] = "2026-11-14T10:00:00Z".into());
    world.put(annotated(deployment("late", 3, 3), "web"));
    assert_eq!((world.owners(KIND, "front"), world.owners(KIND, "late")), ("web".to_owned(), String::new()));
    world.delete(APP, "web");
    assert_eq!((world.owners(KIND, "front").as_str(), owner_writes(&world)), ("web", writes));
    assert!(world.wants().is_empty());
}

/// An Application of the same name is another one: what the first owned is still its own, and the second takes over.
#[test]
fn an_application_that_is_created_again_takes_over() {
    let mut world = World::with([app_of_kinds("web"), mine()]);
    world.delete(APP, "web").put(app_of_kinds("web"));
    let (kind, name) = key(KIND, "front");
    let owners = world.server.get(&kind, &name).map(|it| it["metadata"]["ownerReferences"].clone());
    assert_eq!(owners.as_ref().and_then(Value::as_array).map(Vec::len), Some(2), "{owners:?}");
}

/// What cannot be taken over is said, and is said no longer when it could be.
#[test]
fn an_owner_that_is_refused_is_said() {
    let mut world = World::new();
    world.faults.extend([Fault::None, Fault::Refuse, Fault::None, Fault::Refuse]);
    world.put(mine()).put(app("web", &json!({"componentKinds": [{"group": "apps", "kind": "Deployment"}]})));
    assert_eq!(world.of_app("web", "Adopted"), "False OwnerReferenceNotUpdated: Deployment/front: not today");
    assert!(world.of_app("web", "Ready").starts_with("True "), "its members are counted all the same");
    world.pass(SignedDuration::from_mins(1));
    assert_eq!(
        (world.owners(KIND, "front").as_str(), world.of_app("web", "Adopted").as_str()),
        ("web", "none")
    );
}

/// An object that is refused once more may have changed hands in between: nobody complains who has nothing to do with it any
/// more.
#[test]
fn a_refusal_concerns_those_who_own_it_now() {
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

/// Nobody complains about a refusal of what is not wanted any more.
#[test]
fn a_refusal_that_comes_late_is_not_said() {
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

/// Objects that are being deleted, and those in other namespaces, are left alone.
#[test]
fn what_is_on_its_way_out_is_left_alone() {
    let going = with(mine(), &json!({"metadata": {"deletionTimestamp": "2026-11-14T10:00:00Z"}}));
    let elsewhere =
        with(annotated(widget("one", None), "web"), &json!({"metadata": {"namespace": "elsewhere"}}));
    let world = World::with([app_of_kinds("web"), going, elsewhere]);
    assert_eq!(owner_writes(&world), 0);
}
