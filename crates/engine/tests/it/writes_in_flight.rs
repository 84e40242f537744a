//! What happens while a status is on its way to the cluster, or back.

use bellwether_engine::{NamespacedName, Outcome, Part};
use jiff::{SignedDuration, Timestamp};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    against_oracle::slot,
    objects::{self, app, app_of_kinds, deployment, kind, widget},
    world::World,
    writes::Fault,
};

const APP: &str = "Application.bellwether.dev";
const RULE: &str = "HealthRule.bellwether.dev";
const READY: &str = "True ComponentsReady: All components ready";

/// An Application of one Deployment that is not ready, a minute later.
fn waiting() -> World {
    let mut world = World::with([app_of_kinds("web"), deployment("front", 1, 3)]);
    world.pass(SignedDuration::from_mins(1));
    world
}

/// Something happens in the cluster, and what follows from it at this moment.
fn meanwhile(world: &mut World, object: Value) {
    world.server.put(object);
    while world.deliver() {}
}

fn in_the_end(world: &mut World) -> String {
    world.pass(SignedDuration::from_hours(1));
    world.of_app("web", "Ready")
}

fn turned_at(world: &World, condition: &str) -> Timestamp {
    let conditions = world.status("web").conditions;
    conditions.iter().find(|it| it.type_ == condition).expect("it is there").last_transition_time.0
}

fn conflicts(world: &World) -> usize {
    world.writes.iter().filter(|(_, _, outcome)| *outcome == Outcome::Conflict).count()
}

/// Words wait for a second after the last write; a turn does not.
#[test]
fn a_turn_is_written_at_once_and_words_are_not() {
    let mut world = waiting();
    world.put(deployment("front", 2, 3));
    meanwhile(&mut world, deployment("front", 1, 3));
    world.pass(SignedDuration::from_millis(1));
    let before = world.writes.len();
    meanwhile(&mut world, deployment("front", 2, 3));
    world.settle_now();
    assert_eq!(world.writes.len(), before, "words wait");
    meanwhile(&mut world, deployment("front", 3, 3));
    world.settle_now();
    assert_eq!(world.of_app("web", "Ready"), READY);
}

/// What turns back while the turn is being written is written as soon as that is answered, and has the time at which it
/// turned back.
#[rstest]
#[case::soon(300)]
#[case::later(2000)]
fn what_turns_back_on_the_way_is_written_at_once(#[case] milliseconds: i64) {
    let wait = SignedDuration::from_millis(milliseconds);
    let mut world = waiting();
    world.held.insert(kind(APP));
    meanwhile(&mut world, deployment("front", 3, 3));
    world.send();
    world.arrive(0);
    world.now += wait;
    let back = world.now;
    meanwhile(&mut world, deployment("front", 1, 3));
    world.now += wait;
    world.respond(0);
    world.settle_now();
    assert!(world.of_app("web", "Ready").starts_with("False "), "{}", world.of_app("web", "Ready"));
    assert_eq!(turned_at(&world, "Ready").as_second(), back.as_second());
    let transitions: Vec<_> = world.transitions.iter().map(|it| it.good).collect();
    assert_eq!(transitions, [false, true, false]);
}

/// As long as nobody has told what a status conflicts with, it is tried again only now and then.
#[test]
fn a_conflict_is_met_once() {
    let mut world = waiting();
    world.held.insert(kind(APP));
    world.faults = [Fault::Conflict].into();
    world.put(deployment("front", 3, 3)).put(deployment("front", 2, 3)).put(deployment("front", 3, 3));
    world.pass(SignedDuration::from_secs(20));
    assert_eq!(conflicts(&world), 1);
    world.held.clear();
    assert_eq!(in_the_end(&mut world), READY);
    assert_eq!(conflicts(&world), 1);
}

/// Whoever says that there is a conflict may be wrong.
#[test]
fn a_conflict_that_nobody_tells_of_is_tried_again() {
    let mut world = waiting();
    world.faults = [Fault::Conflict].into();
    world.put(deployment("front", 3, 3));
    world.relist(&kind(APP));
    assert_eq!(in_the_end(&mut world), READY);
    let mine = objects::annotated(deployment("front", 3, 3), "web");
    world.faults = [Fault::None, Fault::FalseConflict].into();
    world.put(mine);
    assert_eq!(world.owners("Deployment.apps", "front"), "");
    in_the_end(&mut world);
    assert_eq!(world.owners("Deployment.apps", "front"), "web");
}

/// The feed may tell of the other version before the answer says that there is one.
#[test]
fn a_conflict_that_is_known_already_is_tried_again_at_once() {
    let mut world = waiting();
    world.faults = [Fault::Conflict].into();
    meanwhile(&mut world, deployment("front", 3, 3));
    world.send();
    world.arrive(0);
    while world.deliver() {}
    world.respond(0);
    world.settle_now();
    assert_eq!((world.of_app("web", "Ready").as_str(), conflicts(&world)), (READY, 1));
}

/// What has been written is known from the answer: the next write does not wait for the feed to tell.
#[test]
fn one_write_follows_the_other_without_the_feed() {
    let mut world = waiting();
    world.held.insert(kind(APP));
    for ready in [3, 1, 2, 3] {
        world.put(deployment("front", ready, 3));
    }
    assert_eq!((world.of_app("web", "Ready").as_str(), conflicts(&world)), (READY, 0));
}

/// A turn whose answer is lost is told once, whether the next attempt or the feed is first to find out.
#[test]
fn a_turn_is_told_once_when_its_answer_is_lost() {
    for held in [false, true] {
        let mut world = waiting();
        let before = world.transitions.len();
        if held {
            world.held.insert(kind(APP));
        }
        world.faults = [Fault::LoseResponse].into();
        world.put(deployment("front", 3, 3));
        world.held.clear();
        assert_eq!(in_the_end(&mut world), READY);
        assert_eq!(world.transitions.len() - before, 1, "{:?}", world.transitions);
    }
}

/// Whoever led before may have written the same, and has told of it.
#[test]
fn a_turn_that_somebody_else_has_written_is_not_told() {
    let mut world = waiting();
    let before = world.transitions.len();
    world.held.insert(kind(APP));
    world.faults = [Fault::Fail].into();
    meanwhile(&mut world, deployment("front", 3, 3));
    world.write();
    let (kind, name) = objects::key(APP, "web");
    world.server.edit(&kind, &name, |it| {
        it["status"]["conditions"][0]["status"] = "True".into();
        it["status"]["conditions"][0]["lastTransitionTime"] = "2026-11-14T09:00:00Z".into();
    });
    world.held.clear();
    assert_eq!(in_the_end(&mut world), READY);
    assert_eq!(world.transitions.len(), before);
}

/// The feed may also tell of the first attempt while the second is under way.
#[rstest]
fn a_turn_that_was_tried_twice_is_told_once(#[values(false, true)] overturned: bool) {
    let mut world = waiting();
    let before = world.transitions.len();
    world.faults = [Fault::Fail].into();
    world.slow = true;
    meanwhile(&mut world, deployment("front", 3, 3));
    world.send();
    world.arrive(0);
    world.respond(0);
    world.now += SignedDuration::from_secs(1);
    assert!(world.send(), "it is tried again");
    world.arrive(0);
    while world.deliver() {}
    assert_eq!(world.transitions.len(), before + 1, "stored by either attempt");
    if overturned {
        let (kind, name) = objects::key(APP, "web");
        world.server.edit(&kind, &name, |it| it["status"]["conditions"][0]["status"] = "False".into());
        while world.deliver() {}
    }
    world.respond(0);
    assert_eq!(world.transitions.len(), before + 1);
    world.slow = false;
    assert_eq!(in_the_end(&mut world), READY);
    assert_eq!(
        world.transitions.len(),
        before + 1 + usize::from(overturned),
        "the overwritten condition makes another transition"
    );
}

/// The feed may tell that it was written before it is known that no answer comes.
#[test]
fn a_turn_is_told_once_when_the_feed_is_quicker_than_the_loss() {
    let mut world = waiting();
    let before = world.transitions.len();
    world.faults = [Fault::LoseResponse].into();
    meanwhile(&mut world, deployment("front", 3, 3));
    world.send();
    world.arrive(0);
    while world.deliver() {}
    assert_eq!(world.transitions.len(), before, "another writer could have written it");
    world.respond(0);
    assert_eq!(world.transitions.len(), before + 1);
    assert_eq!(in_the_end(&mut world), READY);
    assert_eq!(world.transitions.len(), before + 1);
}

/// One of several API servers may not know of a kind, or of an object, yet.
#[test]
fn what_is_said_to_be_absent_is_written_if_it_is_there() {
    let mut world = waiting();
    world.faults = [Fault::NotFound].into();
    world.put(deployment("front", 3, 3));
    assert_eq!(in_the_end(&mut world), READY);
}

/// Somebody overwrites what we wrote: what is true is written again, and has turned when it was overwritten.
#[test]
fn what_somebody_overwrites_is_written_again() {
    let mut world = waiting();
    world.put(deployment("front", 3, 3));
    let once = turned_at(&world, "Ready");
    world.pass(SignedDuration::from_mins(10));
    let again = world.now;
    world.edit(APP, "web", |it| {
        let mut conditions = it["status"]["conditions"].as_array_mut().into_iter().flatten();
        let ready = conditions.find(|it| it["type"] == "Ready").expect("it is there");
        ready["status"] = json!("False");
        ready["lastTransitionTime"] = json!(again.to_string());
    });
    assert_eq!(world.of_app("web", "Ready"), READY);
    assert!(turned_at(&world, "Ready") >= again && again > once);
}

/// A status that is put back to what it was when it was last seen is written again, although it looks as if nothing had
/// happened.
#[test]
fn what_is_put_back_behind_our_back_is_written_again() {
    let mut world = waiting();
    let (kind, name) = objects::key(APP, "web");
    let before = world.server.get(&kind, &name).expect("it is there")["status"].clone();
    world.held.insert(kind.clone());
    world.put(deployment("front", 3, 3));
    assert_eq!(world.of_app("web", "Ready"), READY);
    world.server.edit(&kind, &name, |it| it["status"] = before);
    world.relist(&kind);
    world.held.clear();
    assert_eq!(in_the_end(&mut world), READY);
}

/// The same for what is said of a rule.
#[test]
fn what_is_said_of_a_rule_is_written_again() {
    let rule = json!({
        "apiVersion": "bellwether.dev/v1alpha1", "kind": "HealthRule", "metadata": {"name": "own"},
        "spec": {"for": {"group": "acme.io", "kind": "Widget"}, "cel": [{"when": "true", "state": "Ready"}]},
    });
    let mut world = World::with([rule]);
    let (kind, name) = (kind(RULE), NamespacedName::new("", "own"));
    let valid = |world: &World| {
        let rule = world.server.get(&kind, &name).expect("it is there");
        rule["status"]["conditions"][0]["status"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(valid(&world), "True");
    world.server.edit(&kind, &name, |it| it["status"]["conditions"][0]["status"] = json!("False"));
    assert_eq!(valid(world.settle()), "True");

    // The feed tells of the other version before the answer says that there is one.
    world.pass(SignedDuration::from_mins(1)).faults = [Fault::Conflict].into();
    world.server.edit(&kind, &name, |it| it["status"] = json!({}));
    while world.deliver() {}
    world.send();
    world.arrive(0);
    while world.deliver() {}
    world.respond(0);
    world.pass(SignedDuration::from_hours(1));
    assert_eq!((valid(&world).as_str(), conflicts(&world)), ("True", 1));
}

/// What the feed has told is newer than an answer that comes after it.
#[test]
fn an_answer_that_comes_late_does_not_count() {
    let mut world = waiting();
    meanwhile(&mut world, deployment("front", 3, 3));
    world.send();
    world.arrive(0);
    let (kind, name) = objects::key(APP, "web");
    world.server.edit(&kind, &name, |it| it["status"]["objects"] = json!([]));
    while world.deliver() {}
    world.respond(0);
    assert_eq!(in_the_end(&mut world), READY);
    assert_eq!(world.status("web").objects.len(), 1);
}

/// What was to be written is not, once the spec asks for a kind of which nothing is known yet.
#[test]
fn nothing_is_written_while_a_kind_is_being_listed() {
    let kinds = json!([{"group": "apps", "kind": "Deployment"}]);
    let mut world = World::with([app("web", &json!({"componentKinds": kinds})), deployment("front", 1, 3)]);
    world.pass(SignedDuration::from_mins(1)).writing = false;
    world.put(deployment("front", 3, 3)).put(widget("one", Some("False")));
    let status = slot(&kind(APP), &objects::key(APP, "web").1, Part::Status);
    assert!(world.wanted(&status).is_some());
    world.held.insert(kind("Widget.acme.io"));
    world.edit(APP, "web", |it| {
        let more = json!({"group": "acme.io", "kind": "Widget"});
        it["spec"]["componentKinds"].as_array_mut().expect("kinds").push(more);
    });
    assert!(world.wanted(&status).is_none());
    world.writing = true;
    assert!(world.settle().of_app("web", "Ready").starts_with("False ComponentsNotReady"), "as it was");
    world.held.clear();
    assert!(
        in_the_end(&mut world).starts_with("False ComponentsNotReady: Widget/one: "),
        "the Widget is not ready"
    );
}

/// Two that see the same at different moments need not agree on since when: what is written stands, and whoever takes over
/// writes nothing.
#[rstest]
fn whoever_takes_over_finds_nothing_to_write(#[values(false, true)] held: bool) {
    let mut world = World::new();
    world.writing = false;
    if held {
        // The status is seen before the objects are.
        world.held.insert(kind("Deployment.apps"));
    }
    world.put(objects::app_of("web", &["front"]));
    let mut leader = World::with([objects::app_of("web", &["front"])]);
    leader.pass(SignedDuration::from_mins(1));
    let mut written = leader.status("web");
    written.objects[0].since.as_mut().expect("it is missed from now on").0 -= SignedDuration::from_secs(3);
    world.edit(APP, "web", |it| it["status"] = json!(written));
    world.held.clear();
    world.settle();
    let status = slot(&kind(APP), &objects::key(APP, "web").1, Part::Status);
    assert_eq!(world.wanted(&status), None);
}
