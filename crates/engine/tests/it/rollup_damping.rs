//! Turns for the worse that have to last before a Rollup tells of them; and turns for the better, which do not.

use bellwether_engine::{Change, Effect, Event, OwnKind};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{objects, world::World};

const ROLLUP: &str = "Rollup.bellwether.dev";

/// How long it has to last.
const HOLD: i64 = 10;

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

/// A Platform whose three conditions are these since this time.
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

/// A Rollup of two Platforms that are well, and have been for an hour.
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
    /// One of the Platforms is so from now on.
    fn set_platform(&mut self, name: &str, statuses: [&str; 3]) {
        self.server.put(platform(name, statuses, self.now));
    }

    /// The statuses of the three conditions.
    fn statuses(&self) -> [String; 3] {
        let (kind, name) = objects::key(ROLLUP, "r");
        let status = self.server.get(&kind, &name).map(|object| object["status"].clone()).unwrap_or_default();
        ["Available", "Progressing", "Degraded"].map(|kind| {
            let mut conditions = status["conditions"].as_array().into_iter().flatten();
            let found = conditions.find(|it| it["type"] == kind);
            found.and_then(|it| it["status"].as_str()).unwrap_or_default().to_owned()
        })
    }

    /// What was ever written of a condition.
    fn ever_written(&self, kind: &str) -> Vec<String> {
        let conditions = self.writes.iter().filter_map(|(_, change, _)| match change {
            Change::Status { patch, .. } => patch["conditions"].as_array().cloned(),
            _ => None,
        });
        let found = conditions.flatten().filter(|it| it["type"] == kind);
        found.map(|it| it["status"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

#[test]
fn a_flap_is_never_told() {
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

/// To the second, whoever is there then to tell it.
#[rstest]
#[case::undisturbed(false)]
#[case::restarted(true)]
fn what_lasts_is_told(#[case] restarts: bool) {
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
fn recovery_is_told_at_once() {
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

/// Each condition waits for its own time.
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

/// Those who ask are told what is not told by the statuses yet, and when it will be.
#[test]
fn what_is_held_back_is_no_secret() {
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

/// What is not there is missed from the moment on when that is noticed, also by those who come after.
#[rstest]
#[case::undisturbed(false)]
#[case::restarted(true)]
fn what_is_gone_has_to_be_gone_for_a_while(#[case] restarts: bool) {
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

/// Nobody needs to come as long as nothing is said to be bad.
#[test]
fn what_is_held_back_needs_no_human_yet() {
    let mut world = world();
    world.set_platform("y", ["True", "True", "False"]);
    world.set_platform("x", BAD);
    world.settle();
    assert_eq!(world.statuses(), ["True", "True", "False"]);
    world.pass(seconds(HOLD));
    assert_eq!(world.statuses(), BAD);
}

/// Somebody sets the clock: what has lasted by the new time is told, and no time that is out of reach hides anything.
#[rstest]
#[case::forward(3600)]
#[case::back(-3600)]
fn a_clock_that_is_set_hides_nothing(#[case] by: i64) {
    let mut world = world();
    world.set_platform("x", BAD);
    world.settle();
    assert_eq!(world.statuses(), GOOD);
    world.set_clock(seconds(by));
    world.settle();
    assert_eq!(world.statuses(), BAD);
}

/// The engine writes nothing about a Rollup that is being deleted, but a probe may ask about it.
#[test]
fn followers_of_a_rollup_that_is_being_deleted_are_told_when_a_turn_is_due() {
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

/// A longer or a shorter time is for what has not been told.
#[test]
fn another_duration_counts_from_the_same_moment() {
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

    /// Second by second: bad is told after it has lasted and not before, good at once, and restarts change nothing.
    #[test]
    fn what_is_told_is_what_has_lasted(
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
                // At the beginning of a second and at its end: what lasts until then is told, even if it ends there.
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
