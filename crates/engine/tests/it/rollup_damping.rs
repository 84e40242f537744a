//! Damping of Rollups: a bad status is published after `spec.degradedAfter`, recovery at once.

use bellwether_engine::{Effect, Event, OwnKind, Write};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{objects, world::World};

const ROLLUP: &str = "Rollup.bellwether.dev";

/// `degradedAfter` in seconds.
const HOLD: i64 = 10;

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

/// With a transition time for all three conditions.
fn platform(name: &str, [available, progressing, degraded]: [&str; 3], since: Timestamp) -> Value {
    let condition = |kind: &str, status: &str| {
        json!({"type": kind, "status": status, "reason": "Because", "message": "cogs turn",
               "lastTransitionTime": since.to_string()})
    };
    let conditions = [("Available", available), ("Progressing", progressing), ("Degraded", degraded)]
        .map(|(kind, status)| condition(kind, status));
    objects::with(objects::platform(name), &json!({"status": {"conditions": conditions}}))
}

const GOOD: [&str; 3] = ["True", "False", "False"];
const BAD: [&str; 3] = ["False", "False", "True"];
const SLOW: [&str; 3] = ["True", "False", "True"];

/// A Rollup of two Platforms that have been healthy for an hour.
fn world() -> World {
    let names = ["x", "y"].map(|name| json!({"group": "acme.io", "kind": "Platform", "name": name}));
    let spec = json!({"components": names, "degradedAfter": format!("{HOLD}s")});
    let mut world = World::new();
    let since = world.now - SignedDuration::from_hours(1);
    for object in [objects::rollup("r", &spec), platform("x", GOOD, since), platform("y", GOOD, since)] {
        world.server.put(object);
    }
    world.settle();
    world.transitions.clear();
    world
}

impl World {
    /// With a transition now.
    fn set_platform(&mut self, name: &str, statuses: [&str; 3]) {
        self.server.put(platform(name, statuses, self.now));
    }

    fn statuses(&self) -> [String; 3] {
        let (kind, name) = objects::key(ROLLUP, "r");
        let status = self.server.get(&kind, &name).map(|object| object["status"].clone()).unwrap_or_default();
        ["Available", "Progressing", "Degraded"].map(|kind| {
            let mut conditions = status["conditions"].as_array().into_iter().flatten();
            let found = conditions.find(|it| it["type"] == kind);
            found.and_then(|it| it["status"].as_str()).unwrap_or_default().to_owned()
        })
    }

    /// Every status that was written for a condition.
    fn ever_written(&self, kind: &str) -> Vec<String> {
        let conditions = self.writes.iter().filter_map(|(_, change, _)| match change {
            Write::Status { patch, .. } => patch["conditions"].as_array().cloned(),
            _ => None,
        });
        let found = conditions.flatten().filter(|it| it["type"] == kind);
        found.map(|it| it["status"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

#[test]
fn a_flap_is_never_published() {
    let mut world = world();
    for _ in 0..5 {
        world.set_platform("x", BAD);
        world.pass(seconds(HOLD - 1));
        assert_eq!(world.statuses(), GOOD);
        world.set_platform("x", GOOD);
        world.pass(seconds(1));
    }
    world.pass(seconds(60));
    assert!(world.ever_written("Available").iter().all(|status| status == "True"));
    assert!(world.ever_written("Degraded").iter().all(|status| status == "False"));
    assert!(world.transitions.is_empty(), "{:?}", world.transitions);
}

/// To the second, also after a failover.
#[rstest]
#[case::undisturbed(false)]
#[case::restarted(true)]
fn a_lasting_issue_is_published_on_time(#[case] restarts: bool) {
    let mut world = world();
    world.set_platform("x", BAD);
    world.pass(seconds(HOLD / 2));
    if restarts {
        world.restart();
    }
    world.pass(seconds(HOLD / 2 - 1));
    assert_eq!(world.statuses(), GOOD);
    world.pass(seconds(1));
    assert_eq!(world.statuses(), BAD);
}

#[test]
fn recovery_is_published_at_once() {
    let mut world = world();
    world.set_platform("x", BAD);
    world.set_platform("y", SLOW);
    world.pass(seconds(HOLD));
    assert_eq!(world.statuses(), BAD);
    world.set_platform("x", GOOD);
    world.settle_now();
    assert_eq!(world.statuses(), SLOW, "y is still degraded");
    world.set_platform("y", GOOD);
    world.settle_now();
    assert_eq!(world.statuses(), GOOD);
}

#[test]
fn conditions_do_not_wait_for_each_other() {
    let mut world = world();
    world.set_platform("x", ["False", "False", "False"]);
    world.pass(seconds(3));
    world.set_platform("y", SLOW);
    world.pass(seconds(HOLD - 3));
    assert_eq!(world.statuses(), ["False", "False", "False"]);
    world.pass(seconds(3));
    assert_eq!(world.statuses(), BAD);
}

/// Queries report the held condition and when it is due.
#[test]
fn queries_show_held_conditions() {
    let mut world = world();
    world.set_platform("x", ["False", "False", "False"]);
    let begun = world.now;
    world.pass(seconds(3));
    world.set_platform("y", SLOW);
    world.pass(seconds(1));
    let held = |world: &World| -> Vec<_> {
        let groups = world.engine.groups(world.now);
        let conditions = groups.iter().flat_map(|group| &group.conditions);
        conditions.filter_map(|condition| Some((condition.type_, condition.held_until?))).collect()
    };
    let (first, second) = (begun + seconds(HOLD), begun + seconds(HOLD + 3));
    assert_eq!(held(&world), [("Available", first), ("Degraded", second)]);
    world.pass(seconds(HOLD - 4));
    assert_eq!(held(&world), [("Degraded", second)]);
    world.pass(seconds(3));
    assert_eq!(held(&world), []);
}

/// Since the deletion was noticed, also after a failover.
#[rstest]
#[case::undisturbed(false)]
#[case::restarted(true)]
fn a_missing_component_is_damped(#[case] restarts: bool) {
    let mut world = world();
    world.delete("Platform.acme.io", "x");
    world.pass(seconds(HOLD - 5));
    if restarts {
        world.restart();
    }
    world.pass(seconds(2));
    assert_eq!(world.statuses()[0], "True");
    world.pass(seconds(1));
    assert_eq!(world.statuses(), ["False", "Unknown", "Unknown"]);
}

/// While damping holds Degraded back, Progressing must not require intervention.
#[test]
fn a_held_issue_does_not_require_intervention() {
    let mut world = world();
    world.set_platform("y", ["True", "True", "False"]);
    world.set_platform("x", BAD);
    world.settle();
    assert_eq!(world.statuses(), ["True", "True", "False"]);
    world.pass(seconds(HOLD));
    assert_eq!(world.statuses(), BAD);
}

/// An issue that is old enough by the new time is published, and one in the future is not held.
#[rstest]
#[case::forward(3600)]
#[case::back(-3600)]
fn a_clock_that_was_set_hides_no_issue(#[case] by: i64) {
    let mut world = world();
    world.set_platform("x", BAD);
    world.settle();
    assert_eq!(world.statuses(), GOOD);
    world.set_clock(seconds(by));
    world.settle();
    assert_eq!(world.statuses(), BAD);
}

/// A probe may query a terminating Rollup, although its status is not written.
#[test]
fn a_terminating_rollup_is_reported_as_changed_when_a_hold_ends() {
    let mut world = world();
    world.edit(ROLLUP, "r", |it| it["metadata"]["finalizers"] = json!(["acme.io/last"]));
    world.edit(ROLLUP, "r", |it| it["metadata"]["deletionTimestamp"] = "2026-11-14T10:00:00Z".into());
    world.set_platform("x", BAD);
    world.settle();
    let (kind, name) = objects::key(ROLLUP, "r");
    let before = world.engine.summary(world.now, &kind, &name);
    world.now += seconds(HOLD + 1);
    let effects = world.engine.step(world.now, [Event::Tick]);
    assert_ne!(world.engine.summary(world.now, &kind, &name), before);
    let changed = Effect::Changed(OwnKind::Rollup, Some(name));
    assert!(effects.contains(&changed), "{effects:?}");
}

/// The hold starts at the transition, whatever the duration is changed to.
#[test]
fn a_changed_duration_counts_from_the_same_transition() {
    let mut world = world();
    world.set_platform("x", BAD);
    world.pass(seconds(5));
    world.edit(ROLLUP, "r", |it| it["spec"]["degradedAfter"] = "20s".into());
    world.pass(seconds(8));
    assert_eq!(world.statuses(), GOOD);
    world.edit(ROLLUP, "r", |it| it["spec"]["degradedAfter"] = "14s".into());
    assert_eq!(world.statuses(), BAD);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Second by second, with restarts.
    #[test]
    fn issues_are_published_exactly_when_they_have_lasted(
        changes in prop::collection::vec((prop::sample::select(vec!["x", "y"]), any::<bool>(), 1..16i64, any::<bool>()), 1..12),
    ) {
        let mut world = world();
        let mut bad_since = [None; 2];
        let mut is_published = false;
        for (name, is_bad, lasts, restarts) in changes {
            let since = &mut bad_since[usize::from(name == "y")];
            if is_bad != since.is_some() {
                *since = is_bad.then_some(world.now);
                world.set_platform(name, if is_bad { SLOW } else { GOOD });
            }
            if restarts {
                world.restart();
            }
            for _ in 0..lasts {
                // Before and after each second: an issue that lasts exactly `HOLD` is published.
                for time in [seconds(0), seconds(1)] {
                    world.pass(time);
                    let bad: Vec<_> = bad_since.iter().flatten().collect();
                    let has_lasted = bad.iter().any(|since| **since + seconds(HOLD) <= world.now);
                    is_published = !bad.is_empty() && (is_published || has_lasted);
                    prop_assert_eq!(&world.statuses()[2], if is_published { "True" } else { "False" }, "at {}", world.now);
                }
            }
        }
    }
}
