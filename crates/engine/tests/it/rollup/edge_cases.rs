//! Edge cases of Rollups: unreadable kinds that come back, unset generations, failover.

use bellwether_api::ComponentPresence;
use bellwether_engine::{NamespacedName, Unreadable, Write};
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};

use super::{HEALTHY, ROLLUP, component, condition, conditions, rollup, virt, virt_named, world};
use crate::{
    objects::{self, app_of_kinds, widget},
    world::World,
};

const VIRT: &str = "Virt.ops.example";

fn forbidden() -> Unreadable {
    Unreadable::Forbidden { resource: "virts".into() }
}

fn selected(kind: &str) -> Value {
    json!({"group": "ops.example", "kind": kind, "selector": {"matchLabels": {"tier": "core"}}})
}

fn upgradeable() -> Value {
    json!({"upgradeable": true})
}

/// An unreadable component may object, whether it was read before or not.
#[test]
fn upgradeable_is_unknown_with_unreadable_components() {
    let mut world = world([rollup(&json!([virt_named("a"), selected("Virt")]), &upgradeable())]);
    world.put(virt("a", &conditions(HEALTHY)));
    assert!(world.of_umbrella("Upgradeable").starts_with("True AllAsExpected"));
    world.unreadable(VIRT, Some(forbidden()));
    world.settle();
    assert!(world.of_umbrella("Upgradeable").starts_with("Unknown Forbidden: "));
    world.restart();
    world.settle();
    assert!(world.of_umbrella("Upgradeable").starts_with("Unknown Forbidden: "));
}

/// A selector for a kind that is not served is Unknown: no particular object is missing.
#[test]
fn a_selector_of_a_kind_that_is_not_served_is_unknown() {
    let components = json!([virt_named("a"), {"group": "typo.example", "kind": "Virt", "selector": {"matchLabels": {"a": "b"}}}]);
    let world = world([rollup(&components, &upgradeable()), virt("a", &conditions(HEALTHY))]);
    assert_eq!(world.triple(), ["Unknown"; 3]);
    assert!(world.of_umbrella("Resolved").starts_with("False NotServed"));
    assert!(world.of_umbrella("Upgradeable").starts_with("True"), "no component can object");
    assert_eq!(world.umbrella().component_count, Some(1));
}

/// A component that the running relist has delivered is not missing at the same time.
#[test]
fn a_component_of_a_kind_that_comes_back_counts_once() {
    let mut world = world([rollup(&json!([virt_named("a")]), &json!({})), virt("a", &conditions(HEALTHY))]);
    world.unreadable(VIRT, Some(Unreadable::NotServed));
    world.settle();
    assert_eq!(
        world.of_umbrella("Available"),
        "False InstallInvalid: Virt/a: not found: kind not served by the cluster"
    );
    assert_eq!(world.umbrella().components[0].presence, Some(ComponentPresence::NotServed));
    world.unreadable(VIRT, None);
    // Served, list started, and the object, but not the end of the list.
    for _ in 0..3 {
        world.deliver();
    }
    let patches = world.wants().into_values().filter_map(|change| match change {
        Write::Status { patch, .. } => Some(patch),
        _ => None,
    });
    for patch in patches {
        assert_eq!(patch.get("componentCount"), None, "still one component: {patch}");
        assert_eq!(patch["components"].as_array().map(Vec::len), Some(1));
    }
    world.settle();
    assert_eq!(world.umbrella().component_count, Some(1));
    assert_eq!(world.triple(), HEALTHY);
}

/// An unreadable kind delivers no conditions, so the Rollup does not wait for them.
#[test]
fn an_unreadable_kind_is_not_waited_for() {
    let mut world = world([app_of_kinds("web"), widget("w", Some("True"))]);
    world.unreadable("Widget.acme.io", Some(Unreadable::Failing { why: "overloaded".into() }));
    world.settle();
    let widgets = json!([{"group": "acme.io", "kind": "Widget", "namespace": "shop", "name": "w"}]);
    world.put(rollup(&widgets, &json!({})));
    assert_eq!(world.of_umbrella("Available"), "Unknown NotReadable: Widget/w: API server error: overloaded");
    world.unreadable("Widget.acme.io", None);
    world.settle();
    assert_eq!(world.of_umbrella("Available"), "False InstallInvalid: Widget/w: no Available condition");
}

/// An unmatched selector has no stored time, so it must not give the reason: a restart would change it.
#[test]
fn a_restart_changes_no_reason() {
    let components = json!([selected("Net"), virt_named("a"), {
        "group": "ops.example", "kind": "Store", "selector": {"matchLabels": {"tier": "edge"}},
    }]);
    let unknown = [condition("Available", "Unknown", "Looking", "looks", 1)];
    let mut world = world([rollup(&components, &json!({})), virt("a", &unknown)]);
    world.put(component("Net", Some("east"), "bridge", &conditions(HEALTHY)));
    let (before, writes) = (world.of_umbrella("Available"), world.writes.len());
    assert!(before.starts_with("Unknown Looking: "), "{before}");
    world.restart();
    world.settle();
    assert_eq!((world.of_umbrella("Available"), world.writes.len()), (before, writes));
}

/// A standby replica that sees the deletion after the leader's write takes over the stored time. Otherwise it
/// would write its own time once it leads.
#[rstest]
#[case::it_was_there(false)]
#[case::its_kind_was_not_served(true)]
fn a_standby_takes_over_since_when_a_component_is_missing(#[case] unserved: bool) {
    let begin = || {
        let mut world =
            world([rollup(&json!([virt_named("a")]), &json!({})), virt("a", &conditions(HEALTHY))]);
        if unserved {
            world.unreadable(VIRT, Some(Unreadable::NotServed));
        }
        world.settle();
        world
    };
    let mut leader = begin();
    leader.remove("Virt", "virt", "a");
    leader.unreadable(VIRT, None);
    leader.settle();
    let status = leader.umbrella();
    assert_eq!(status.components[0].presence, Some(ComponentPresence::Missing));

    let mut standby = begin();
    let writes = standby.writes.len();
    standby.writing = false;
    standby.held.insert(objects::kind(VIRT));
    standby.remove("Virt", "virt", "a");
    standby.unreadable(VIRT, None);
    standby.edit(ROLLUP, "umbrella", |it| it["status"] = json!(status));
    standby.pass(SignedDuration::from_mins(5));
    standby.held.clear();
    standby.settle();
    standby.writing = true;
    standby.settle();
    assert_eq!(standby.umbrella().components[0].since, status.components[0].since);
    assert_eq!(standby.writes.len(), writes);
}

/// An operator may report a message that Rollups use for a missing component. After a restart, `since` must
/// not come from that.
#[test]
fn a_reported_message_is_not_taken_for_a_missing_component() {
    let reported = [condition("Available", "False", "InstallFailed", "not found", 1)];
    let mut world = world([rollup(&json!([virt_named("a")]), &json!({})), virt("a", &reported)]);
    let before = world.umbrella().components[0].clone();
    assert_eq!((before.message.as_deref(), before.presence), (Some("not found"), None));
    world.writing = false;
    world.remove("Virt", "virt", "a");
    world.restart();
    world.writing = true;
    world.settle();
    let after = world.umbrella().components[0].clone();
    assert_eq!(after.presence, Some(ComponentPresence::Missing));
    assert!(after.since > before.since, "{after:?}");
}

/// Go programs write zero for an unset generation; then that of the status counts.
#[test]
fn a_generation_of_zero_is_none() {
    let mut conditions = conditions(HEALTHY);
    for condition in &mut conditions {
        condition["observedGeneration"] = 0.into();
    }
    let mut behind = virt("a", &conditions);
    behind["status"]["observedGeneration"] = 1.into();
    let mut world = world([rollup(&json!([virt_named("a")]), &json!({})), behind.clone()]);
    assert_eq!(world.triple(), HEALTHY);
    behind["spec"]["size"] = 2.into();
    world.put(behind);
    assert_eq!(world.triple(), ["Unknown"; 3]);
}

#[test]
fn a_duplicate_condition_without_a_message() {
    let twice = [
        condition("Available", "False", "InstallFailed", "", 1),
        condition("Available", "True", "InstallSucceeded", "", 1),
    ];
    let world = world([rollup(&json!([virt_named("a")]), &json!({})), virt("a", &twice)]);
    let message = world.umbrella().components[0].message.clone();
    assert_eq!(message.as_deref(), Some("(2 Available conditions with different status)"));
}

/// An Application publishes none of the conditions that operators report: those that another tool adds to its
/// status do not count.
#[test]
fn conditions_that_another_tool_writes_into_an_application_do_not_count() {
    let entry = json!({"group": "bellwether.dev", "kind": "Application", "namespace": "shop", "name": "web"});
    let mut world = world([rollup(&json!([entry]), &json!({})), app_of_kinds("web")]);
    let before = world.of_umbrella("Degraded");
    world.edit("Application.bellwether.dev", "web", |app| {
        let conditions = app["status"]["conditions"].as_array_mut().expect("a list");
        conditions.push(json!({
            "type": "Degraded", "status": "True", "reason": "BackupLate", "message": "no backup for a day",
            "lastTransitionTime": "2026-11-14T09:00:00Z",
        }));
    });
    assert_eq!(world.of_umbrella("Degraded"), before);
}

/// A change of the innermost component passes through each Rollup once.
#[test]
fn a_change_reaches_the_top_of_nested_rollups() {
    const DEPTH: usize = 150;
    let nested = |number: usize| {
        let entry = match number {
            0 => virt_named("a"),
            _ => json!({"group": "bellwether.dev", "kind": "Rollup", "name": format!("r{}", number - 1)}),
        };
        objects::with(
            rollup(&json!([entry]), &json!({})),
            &json!({"metadata": {"name": format!("r{number}")}}),
        )
    };
    let mut world = world((0..DEPTH).rev().map(nested));
    let top = format!("r{}", DEPTH - 1);
    world.put(virt("a", &conditions(HEALTHY)));
    world.pass(SignedDuration::from_mins(5));
    let health = |world: &World| -> Vec<Value> {
        let name = |number| NamespacedName::new("", &format!("r{number}"));
        let stored = |number| world.server.get(&objects::kind(ROLLUP), &name(number)).expect("it is there");
        (0..DEPTH).map(|number| stored(number)["status"]["health"].clone()).collect()
    };
    assert!(health(&world).iter().all(|health| health == "Healthy"), "{top}: {:?}", health(&world));
    let writes = world.writes.len();
    world.put(virt("a", &conditions(["False", "False", "True"])));
    world.pass(SignedDuration::from_mins(5));
    assert!(health(&world).iter().all(|health| health == "Error"), "{:?}", health(&world));
    assert_eq!(world.writes.len() - writes, DEPTH);
}
