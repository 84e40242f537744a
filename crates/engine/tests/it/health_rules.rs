//! HealthRules: activation, invalid rules, precedence, relists.

use bellwether_api::State;
use bellwether_engine::Effect;
use serde_json::{Value, json};

use crate::{
    against_oracle::compare,
    objects::{app_of_kinds, deployment, widget},
    world::World,
};

const RULE: &str = "HealthRule.bellwether.dev";

fn rule(name: &str, created: &str, when: &str, state: &str) -> Value {
    json!({
        "apiVersion": "bellwether.dev/v1alpha1", "kind": "HealthRule",
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {"for": {"group": "acme.io", "kind": "Widget"}, "cel": [{"when": when, "state": state, "reason": "Said"}]},
    })
}

fn always(name: &str, state: &str) -> Value {
    rule(name, "2026-11-14T09:00:00Z", "metadata.name != ''", state)
}

/// The state of the Widget, after a comparison with the oracle.
fn state(world: &World) -> State {
    compare(world);
    world.status("web").objects.iter().find(|it| it.name == "one").expect("it is listed").status
}

/// The kinds that were relisted since.
fn listed_since(world: &World, before: usize) -> Vec<String> {
    let kind = |effect: &Effect| match effect {
        Effect::Follow { kind, .. } => Some(kind.to_string()),
        _ => None,
    };
    world.effects[before..].iter().filter_map(kind).collect()
}

/// A rule overrides all others while it exists, and only its kind is relisted.
#[test]
fn a_rule_is_created_changed_and_deleted() {
    let mut world = World::with([app_of_kinds("web"), widget("one", Some("True")), deployment("two", 3, 3)]);
    assert_eq!(state(&world), State::Ready);
    let before = world.effects.len();
    world.put(always("widgets", "Failed"));
    assert_eq!(state(&world), State::Failed);
    assert_eq!(world.status("web").objects[0].rule.as_deref(), Some("user/widgets"));
    assert_eq!(world.condition(RULE, "widgets", "Valid"), "True Active: The rule is active");
    world.put(always("widgets", "Suspended"));
    assert_eq!(state(&world), State::Suspended);
    world.delete(RULE, "widgets");
    assert_eq!(state(&world), State::Ready);
    assert_eq!(listed_since(&world, before), ["Widget.acme.io"; 3]);
}

/// The condition Valid has the position of the error, and verdicts do not change.
#[test]
fn an_invalid_rule_reports_the_position() {
    let mut world = World::with([app_of_kinds("web"), widget("one", Some("True"))]);
    let before = world.effects.len();
    world.put(rule("widgets", "2026-11-14T09:00:00Z", "status.phase ==", "Failed"));
    let valid = world.condition(RULE, "widgets", "Valid");
    assert!(
        valid.starts_with("False Invalid: spec.cel[0].when: ") && valid.contains("line 1, column 16"),
        "{valid}"
    );
    assert_eq!(state(&world), State::Ready);
    assert_eq!(listed_since(&world, before), [""; 0]);
    world.put(always("widgets", "Failed"));
    assert_eq!(world.condition(RULE, "widgets", "Valid"), "True Active: The rule is active");
    assert_eq!(state(&world), State::Failed);
}

/// The older rule wins; the other one names it in its condition.
#[test]
fn the_older_of_two_rules_takes_precedence() {
    let younger = rule("a", "2026-11-14T09:30:00Z", "metadata.name != ''", "Failed");
    let mut world = World::with([app_of_kinds("web"), widget("one", Some("True")), younger]);
    assert_eq!(state(&world), State::Failed);
    world.put(always("b", "Suspended"));
    assert_eq!(state(&world), State::Suspended);
    let valid = world.condition(RULE, "a", "Valid");
    assert!(
        valid.starts_with("False Overridden: overridden by HealthRule/b") && valid.contains("Widget.acme.io"),
        "{valid}"
    );
    world.delete(RULE, "b");
    assert_eq!(world.condition(RULE, "a", "Valid"), "True Active: The rule is active");
    assert_eq!(state(&world), State::Failed);
    let transitions: Vec<_> =
        world.transitions.iter().filter(|it| it.condition == "Valid").map(|it| it.good).collect();
    assert_eq!(transitions, [true, false, true, true]);
}

#[test]
fn a_restart_writes_no_rule_status() {
    let broken = rule("broken", "2026-11-14T09:00:00Z", "(", "Failed");
    let mut world =
        World::with([app_of_kinds("web"), widget("one", None), always("widgets", "Failed"), broken]);
    let writes = world.writes.len();
    world.restart();
    world.settle();
    assert_eq!(world.writes.len(), writes);
    assert_eq!(state(&world), State::Failed);
}
