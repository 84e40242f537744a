//! Reasons, messages, transition times and limits of the status of a Rollup.

use bellwether_api::{ComponentPresence, RollupHealth};
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};

use super::{HEALTHY, condition, conditions, rollup, virt, virt_named, world};
use crate::world::World;

fn two(one: [&str; 3], other: [&str; 3]) -> World {
    world([
        rollup(&json!([virt_named("a"), virt_named("b")]), &json!({})),
        virt("a", &conditions(one)),
        virt("b", &conditions(other)),
    ])
}

#[test]
fn all_components_are_healthy() {
    let world = two(HEALTHY, HEALTHY);
    assert_eq!(world.of_umbrella("Available"), "True InstallSucceeded: All components are available");
    assert_eq!(world.of_umbrella("Progressing"), "False UpgradeInProgress: No component is progressing");
    assert_eq!(world.of_umbrella("Degraded"), "False HealFailed: No component is degraded");
    assert_eq!(world.of_umbrella("Resolved"), "True AllKindsResolved: All kinds resolved");
    let status = world.umbrella();
    assert_eq!((status.health, status.component_count), (Some(RollupHealth::Healthy), Some(2)));
    assert_eq!(status.observed_generation, Some(1));
}

/// The message names every deciding component; the reason is that of the latest transition.
#[test]
fn the_reason_is_the_most_recent_and_the_message_names_all() {
    let down = |reason: &str, message: &str, minute| {
        vec![
            condition("Available", "False", reason, message, minute),
            condition("Progressing", "True", "HealInProgress", "restarts", 1),
            condition("Degraded", "False", "None", "", 1),
        ]
    };
    let mut world = world([
        rollup(&json!([virt_named("a"), virt_named("b"), virt_named("c")]), &json!({})),
        virt("a", &down("UpgradeFailed", "no image", 7)),
        virt("b", &down("InstallFailed", "no node", 9)),
        virt("c", &conditions(HEALTHY)),
    ]);
    assert_eq!(world.of_umbrella("Available"), "False InstallFailed: Virt/a: no image; Virt/b: no node");
    world.put(virt("a", &down("HealFailed", "no disk", 11)));
    assert_eq!(world.of_umbrella("Available"), "False HealFailed: Virt/a: no disk; Virt/b: no node");
    let names: Vec<_> = world.umbrella().components.into_iter().map(|it| it.name).collect();
    assert_eq!(names, ["a", "b", "c"], "those that decide come first");
}

#[test]
fn progressing_names_components_that_require_intervention() {
    let world = two(["False", "False", "True"], ["True", "True", "False"]);
    assert_eq!(
        world.of_umbrella("Progressing"),
        "False UpgradeInProgress: Virt/a: requires manual intervention: has lost a disk"
    );
}

#[test]
fn missing_conditions_are_named_one_by_one() {
    let available = condition("Available", "True", "InstallSucceeded", "works", 1);
    let mut world = world([
        rollup(&json!([virt_named("a"), virt_named("b")]), &json!({})),
        virt("a", &[available]),
        virt("b", &[]),
    ]);
    assert_eq!(world.of_umbrella("Available"), "False InstallInvalid: Virt/b: no Available condition");
    assert_eq!(
        world.of_umbrella("Degraded"),
        "Unknown InstallInvalid: Virt/a: no Degraded condition; Virt/b: no Degraded condition"
    );
    let meaning = world.umbrella().meaning;
    assert_eq!(
        meaning.as_deref(),
        Some("Component is not available; unknown whether it is progressing or degraded")
    );
    let no_reason = condition("Available", "False", "", "is down", 2);
    world.put(virt("b", &[no_reason]));
    assert_eq!(world.of_umbrella("Available"), "False InstallInvalid: Virt/b: is down");
}

/// An invalid condition status counts as Unknown, and the message quotes it.
#[rstest]
#[case::another_case(json!("true"), "works", "invalid status \"true\": must be True, False or Unknown: works")]
#[case::without_a_message(json!("yes"), "", "invalid status \"yes\": must be True, False or Unknown")]
#[case::another_type(json!(1), "works", "status required: True, False or Unknown: works")]
#[case::missing(Value::Null, "", "status required: True, False or Unknown")]
fn an_invalid_condition_status_is_quoted(#[case] status: Value, #[case] message: &str, #[case] text: &str) {
    let mut available = condition("Available", "", "Works", message, 1);
    available["status"] = status;
    let world = world([rollup(&json!([virt_named("a")]), &json!({})), virt("a", &[available])]);
    assert_eq!(world.of_umbrella("Available"), format!("Unknown Works: Virt/a: {text}"));
}

#[test]
fn a_missing_component() {
    let mut world = two(HEALTHY, HEALTHY);
    world.pass(SignedDuration::from_mins(5));
    world.remove("Virt", "virt", "b");
    assert_eq!(world.triple(), ["False", "Unknown", "Unknown"]);
    assert_eq!(world.of_umbrella("Available"), "False InstallInvalid: Virt/b: not found");
    let status = world.umbrella();
    assert_eq!(status.component_count, Some(2), "a missing component still counts");
    let (b, since) = (&status.components[0], status.components[0].since.clone());
    assert_eq!((b.name.as_str(), b.message.as_deref()), ("b", Some("not found")));
    assert_eq!((b.presence, status.components[1].presence), (Some(ComponentPresence::Missing), None));
    world.restart();
    world.pass(SignedDuration::from_mins(5));
    assert_eq!(world.umbrella().components[0].since, since, "a restart changes nothing");
    world.put(virt("b", &conditions(HEALTHY)));
    assert_eq!(world.triple(), HEALTHY);
}

#[test]
fn a_condition_with_a_stale_observed_generation_is_unknown() {
    let mut world = two(HEALTHY, HEALTHY);
    let mut behind = virt("b", &conditions(HEALTHY));
    behind["spec"]["size"] = 2.into();
    for condition in behind["status"]["conditions"].as_array_mut().expect("they are there") {
        condition["observedGeneration"] = 1.into();
    }
    world.put(behind.clone());
    assert_eq!(
        world.of_umbrella("Available"),
        "Unknown ObservedGenerationStale: Virt/b: Available condition observed generation 1, want 2"
    );
    for condition in behind["status"]["conditions"].as_array_mut().expect("they are there") {
        condition["observedGeneration"] = 2.into();
    }
    world.put(behind.clone());
    assert_eq!(world.triple(), HEALTHY);
    // Without an observedGeneration of the condition, that of the status counts.
    behind["spec"]["size"] = 3.into();
    behind["status"] = json!({"observedGeneration": 2, "conditions": conditions(HEALTHY)});
    world.put(behind);
    assert_eq!(world.triple(), ["Unknown"; 3]);
}

#[test]
fn of_duplicate_conditions_with_one_status_the_first_counts() {
    let twice = [conditions(HEALTHY), conditions(HEALTHY)].concat();
    let world = world([rollup(&json!([virt_named("a")]), &json!({})), virt("a", &twice)]);
    assert_eq!(world.triple(), HEALTHY);
    let message = world.umbrella().components[0].message.clone();
    assert_eq!(message.as_deref(), Some("works (2 Available conditions, using the first)"));
}

#[test]
fn duplicate_conditions_with_different_status_are_unknown() {
    let twice = [conditions(HEALTHY), conditions(["False", "True", "True"])].concat();
    let world = world([rollup(&json!([virt_named("a")]), &json!({})), virt("a", &twice)]);
    assert_eq!(world.triple(), ["Unknown"; 3]);
    let message = world.umbrella().components[0].message.clone();
    assert_eq!(message.as_deref(), Some("works (2 Available conditions with different status)"));
}

#[test]
fn transition_times_change_with_the_status_only_and_survive_a_restart() {
    let since = |world: &World| {
        let status = world.umbrella();
        let times = status.conditions.iter().map(|it| (it.type_.clone(), it.last_transition_time.0));
        times.collect::<Vec<_>>()
    };
    let mut world = two(HEALTHY, HEALTHY);
    let first = since(&world);
    world.pass(SignedDuration::from_mins(1));
    world.put(virt("a", &conditions(["True", "True", "False"])));
    let second = since(&world);
    for ((kind, before), (_, after)) in first.iter().zip(&second) {
        assert_eq!(before != after, kind == "Progressing", "{kind}");
    }
    world.pass(SignedDuration::from_mins(1));
    world.put(virt("b", &conditions(["True", "True", "False"])));
    assert_eq!(since(&world), second, "only messages have changed");
    let writes = world.writes.len();
    world.restart();
    world.pass(SignedDuration::from_mins(10));
    assert_eq!((since(&world), world.writes.len()), (second, writes), "a restart changes nothing");
}

#[test]
fn transitions_are_announced() {
    let mut world = two(HEALTHY, HEALTHY);
    world.transitions.clear();
    world.put(virt("a", &conditions(["True", "True", "True"])));
    world.put(virt("a", &conditions(HEALTHY)));
    let transitions: Vec<_> = world
        .transitions
        .iter()
        .map(|it| format!("{} {} {}: {}", it.subject, it.to, it.good, it.message))
        .collect();
    assert_eq!(
        transitions,
        ["State InProgress true: Virt/a: has lost a disk", "State Ready true: All components are available"]
    );
    // Its operator has stopped, and needs manual intervention.
    world.transitions.clear();
    world.put(virt("a", &conditions(["False", "True", "True"])));
    world.put(virt("a", &conditions(["False", "False", "True"])));
    let transitions: Vec<_> = world.transitions.iter().map(|it| (it.to, it.good)).collect();
    assert_eq!(transitions, [("InProgress", true), ("Failed", false)]);
}

/// Each change of Upgradeable is an Event, a Normal one. The first status is not a change.
#[test]
fn changes_of_upgradeable_are_announced() {
    let report = |upgradeable: &str| {
        let mut reported = conditions(HEALTHY);
        reported.push(condition("Upgradeable", upgradeable, "Said", "so it is", 4));
        virt("a", &reported)
    };
    let mut umbrella = rollup(&json!([virt_named("a")]), &json!({"upgradeable": true}));
    umbrella["metadata"]["creationTimestamp"] = "2026-11-14T10:00:00Z".into();
    let mut world = world([umbrella]);
    assert_ne!(world.condition("Rollup.bellwether.dev", "umbrella", "Upgradeable"), "");
    world.put(report("False"));
    world.put(report("True"));
    assert_eq!(world.transitions, [], "its components are being applied");
    world.pass(SignedDuration::from_secs(20));
    for status in ["False", "True"] {
        world.put(report(status));
    }
    let transitions: Vec<_> = world.transitions.iter().map(|it| (it.subject, it.to, it.good)).collect();
    assert_eq!(transitions, [("Upgradeable", "False", true), ("Upgradeable", "True", true)]);
}

/// A terminating component is Progressing.
#[test]
fn a_terminating_component() {
    let mut going = virt("b", &conditions(HEALTHY));
    going["metadata"]["deletionTimestamp"] = "2026-11-14T10:00:00Z".into();
    let world = world([
        rollup(&json!([virt_named("a"), virt_named("b")]), &json!({})),
        virt("a", &conditions(HEALTHY)),
        going,
    ]);
    assert_eq!(world.triple(), ["True", "True", "False"]);
    assert_eq!(world.of_umbrella("Progressing"), "True Terminating: Virt/b: being deleted");
}

/// Failed components come first in the list, however many others there are.
#[test]
fn deciding_components_are_not_cut_off() {
    let busy = (0..150).map(|number| virt(&format!("a{number:03}"), &conditions(["True", "True", "False"])));
    let all =
        json!([{"group": "ops.example", "kind": "Virt", "selector": {"matchLabels": {"tier": "core"}}}]);
    let silent = virt("silent", &[]);
    let world = world([rollup(&all, &json!({})), silent].into_iter().chain(busy));
    let status = world.umbrella();
    assert_eq!(status.components.first().map(|it| it.name.as_str()), Some("silent"));
    assert_eq!((status.components.len(), status.component_count), (100, Some(151)));
}

#[test]
fn a_status_never_outgrows_its_limit() {
    let message = "\"\\".repeat(2_000);
    let conditions = [condition("Available", "False", "HealFailed", &message, 1)];
    let objects = (0..200).map(|number| virt(&format!("v{number:03}"), &conditions));
    let all =
        json!([{"group": "ops.example", "kind": "Virt", "selector": {"matchLabels": {"tier": "core"}}}]);
    let world = world([rollup(&all, &json!({}))].into_iter().chain(objects));
    let status = world.umbrella();
    assert_eq!(status.component_count, Some(200));
    assert!(serde_json::to_string(&status).expect("it is JSON").len() < 64 << 10);
    assert!(!status.components.is_empty());
}

#[test]
fn ten_thousand_components_fit() {
    let objects =
        (0..10_000).map(|number| virt(&format!("v{number:05}"), &conditions(["False", "False", "True"])));
    let all =
        json!([{"group": "ops.example", "kind": "Virt", "selector": {"matchLabels": {"tier": "core"}}}]);
    let world = world([rollup(&all, &json!({}))].into_iter().chain(objects));
    let status = world.umbrella();
    assert_eq!(status.component_count, Some(10_000));
    assert!(serde_json::to_string(&status).expect("it is JSON").len() < 64 << 10);
    for condition in &status.conditions {
        assert!(condition.message.len() <= 1024, "{}", condition.message);
    }
    let degraded = world.of_umbrella("Degraded");
    let (items, rest) = degraded.rsplit_once("; and ").expect("not all fit");
    let shown = items.split("; ").count();
    assert_eq!(rest, format!("{} more", 10_000 - shown));
}

/// Messages lead down to the deciding object.
#[test]
fn a_rollup_of_rollups() {
    let mut inner = rollup(&json!([virt_named("a")]), &json!({}));
    inner["metadata"]["name"] = "inner".into();
    let outer = json!([{"group": "bellwether.dev", "kind": "Rollup", "name": "inner"}]);
    let mut world =
        world([rollup(&outer, &json!({})), inner, virt("a", &conditions(["True", "True", "False"]))]);
    assert_eq!(world.triple(), ["True", "True", "False"]);
    assert_eq!(world.of_umbrella("Progressing"), "True UpgradeInProgress: Rollup/inner: Virt/a: goes on");
    world.put(virt("a", &conditions(HEALTHY)));
    assert_eq!(world.triple(), HEALTHY);
}
