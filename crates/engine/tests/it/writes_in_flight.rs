//! Status writes in flight: 409 conflicts, lost and late responses, overwritten statuses, resourceVersion,
//! failover.

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

/// An Application with one Deployment that is not ready, a minute later.
fn waiting() -> World {
    let mut world = World::with([app_of_kinds("web"), deployment("front", 1, 3)]);
    world.pass(SignedDuration::from_mins(1));
    world
}

/// Changes an object and delivers the watch events, without writes.
fn meanwhile(world: &mut World, object: Value) {
    world.server.put(object);
    while world.deliver() {}
}

fn in_the_end(world: &mut World) -> String {
    world.pass(SignedDuration::from_hours(1));
    world.of_app("web", "Ready")
}

fn transition_time(world: &World, condition: &str) -> Timestamp {
    let conditions = world.status("web").conditions;
    conditions.iter().find(|it| it.type_ == condition).expect("it is there").last_transition_time.0
}

fn conflicts(world: &World) -> usize {
    world.writes.iter().filter(|(_, _, outcome)| *outcome == Outcome::Conflict).count()
}

/// Message changes wait for a second after the last write, transitions do not.
#[test]
fn transitions_are_immediate_and_message_changes_wait() {
    let mut world = waiting();
    world.put(deployment("front", 2, 3));
    meanwhile(&mut world, deployment("front", 1, 3));
    world.pass(SignedDuration::from_millis(1));
    let before = world.writes.len();
    meanwhile(&mut world, deployment("front", 2, 3));
    world.settle_now();
    assert_eq!(world.writes.len(), before, "message changes wait");
    meanwhile(&mut world, deployment("front", 3, 3));
    world.settle_now();
    assert_eq!(world.of_app("web", "Ready"), READY);
}

/// A transition back while the first is in flight is written right after the response, with its own time.
#[rstest]
#[case::soon(300)]
#[case::later(2000)]
fn a_transition_back_during_a_write_is_written_at_once(#[case] milliseconds: i64) {
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
    assert_eq!(transition_time(&world, "Ready").as_second(), back.as_second());
    let transitions: Vec<_> = world.transitions.iter().map(|it| it.to).collect();
    assert_eq!(transitions, ["Ready", "InProgress"]);
}

/// Until a watch event shows the newer version, the write is not repeated.
#[test]
fn a_409_is_not_repeated_before_the_watch_event() {
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

/// A 409 without a newer version on the watch is retried after a timeout.
#[test]
fn a_409_without_a_newer_version_is_retried() {
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

/// The watch event with the newer version comes before the 409.
#[test]
fn a_409_after_the_watch_event_is_retried_at_once() {
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

/// The response has the new resourceVersion, so the next write need not wait for the watch.
#[test]
fn consecutive_writes_do_not_wait_for_the_watch() {
    let mut world = waiting();
    world.held.insert(kind(APP));
    for ready in [3, 1, 2, 3] {
        world.put(deployment("front", ready, 3));
    }
    assert_eq!((world.of_app("web", "Ready").as_str(), conflicts(&world)), (READY, 0));
}

/// A lost response: the transition is announced once, by the next attempt or by the watch event.
#[test]
fn a_lost_response_announces_the_transition_once() {
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

/// The previous leader wrote the same transition, and announced it.
#[test]
fn a_transition_of_another_replica_is_not_announced() {
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
        it["status"]["lastEvent"] =
            json!({"state": "Ready", "type": "Normal", "time": "2026-11-14T09:00:00Z"});
    });
    world.held.clear();
    assert_eq!(in_the_end(&mut world), READY);
    assert_eq!(world.transitions.len(), before);
}

/// The watch event of the first attempt comes while the second is in flight.
#[rstest]
fn a_retried_transition_is_announced_once(#[values(false, true)] overwritten: bool) {
    let mut world = waiting();
    let before = world.transitions.len();
    world.faults = [Fault::Fail].into();
    world.slow = true;
    meanwhile(&mut world, deployment("front", 3, 3));
    world.send();
    world.arrive(0);
    world.respond(0);
    world.now += SignedDuration::from_secs(1);
    assert!(world.send(), "the write is retried");
    world.arrive(0);
    while world.deliver() {}
    assert_eq!(world.transitions.len(), before + 1, "stored by either attempt");
    if overwritten {
        let (kind, name) = objects::key(APP, "web");
        world.server.edit(&kind, &name, |it| it["status"]["lastEvent"]["state"] = "InProgress".into());
        while world.deliver() {}
    }
    world.respond(0);
    assert_eq!(world.transitions.len(), before + 1);
    world.slow = false;
    assert_eq!(in_the_end(&mut world), READY);
    assert_eq!(
        world.transitions.len(),
        before + 1 + usize::from(overwritten),
        "the overwritten field makes another transition"
    );
}

/// The watch event comes before the request fails.
#[test]
fn a_watch_event_before_the_lost_response_announces_once() {
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

/// A 404 from a replica of the API server that does not know the object yet.
#[test]
fn a_404_from_another_replica_is_retried() {
    let mut world = waiting();
    world.faults = [Fault::NotFound].into();
    world.put(deployment("front", 3, 3));
    assert_eq!(in_the_end(&mut world), READY);
}

/// An overwritten condition is written again, with the time of the overwrite as its transition.
#[test]
fn an_overwritten_condition_is_written_again() {
    let mut world = waiting();
    world.put(deployment("front", 3, 3));
    let once = transition_time(&world, "Ready");
    world.pass(SignedDuration::from_mins(10));
    let again = world.now;
    world.edit(APP, "web", |it| {
        let mut conditions = it["status"]["conditions"].as_array_mut().into_iter().flatten();
        let ready = conditions.find(|it| it["type"] == "Ready").expect("it is there");
        ready["status"] = json!("False");
        ready["lastTransitionTime"] = json!(again.to_string());
    });
    assert_eq!(world.of_app("web", "Ready"), READY);
    assert!(transition_time(&world, "Ready") >= again && again > once);
}

/// Another writer restores the status that we observed last: it looks unchanged, but is not what we wrote.
#[test]
fn a_restored_old_status_is_written_again() {
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

/// The same for a HealthRule.
#[test]
fn an_overwritten_rule_status_is_written_again() {
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

    // The watch event with the newer version comes before the 409.
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

/// The watch has shown a newer version than the response.
#[test]
fn a_late_response_does_not_overwrite_a_newer_version() {
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

/// The spec names a new kind while a write is pending.
#[test]
fn nothing_is_written_while_a_new_kind_is_listed() {
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
    assert!(world.settle().of_app("web", "Ready").starts_with("False ComponentsInProgress"), "as it was");
    world.held.clear();
    assert!(
        in_the_end(&mut world).starts_with("False ComponentsInProgress: Widget/one: "),
        "the Widget is not ready"
    );
}

/// Failover: two replicas saw a change at different moments; the new leader keeps the stored times.
#[rstest]
fn a_new_leader_finds_nothing_to_write(#[values(false, true)] held: bool) {
    let mut world = World::new();
    world.writing = false;
    if held {
        // The status is observed before the objects.
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
