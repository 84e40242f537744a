//! Dependencies between Applications: installed, ready, cycles.

use std::collections::BTreeSet;

use bellwether_api::ConditionStatus::{False, True, Unknown};
use bellwether_engine::Effect;
use rstest::rstest;
use serde_json::json;

use crate::{
    objects::{app, app_of, deployment},
    world::World,
};

fn depending(name: &str, others: &[&str]) -> serde_json::Value {
    app(name, &json!({ "dependencies": others }))
}

/// Retrieving Dependencies, step 1: a dependency is installed if there is an Application of that name.
/// Installation Status Reporting: creation and deletion both update the dependents.
#[test]
fn dependents_follow_creation_and_deletion() {
    let mut world = World::with([depending("shop", &["base"])]);
    let dependency = |world: &World| {
        let status = world.status("shop");
        (status.dependencies[0].installed, status.dependencies[0].ready, status.installed, status.missing)
    };
    let base = || vec!["base".to_owned()];
    assert_eq!(dependency(&world), (false, Unknown, vec![], base()));
    assert_eq!(world.of_app("shop", "Installed"), "False DependenciesMissing: dependency base missing");
    world.put(app_of("base", &["front"]));
    assert_eq!(dependency(&world), (true, False, base(), vec![]));
    world.put(deployment("front", 3, 3));
    assert_eq!(dependency(&world), (true, True, base(), vec![]));
    assert!(world.of_app("shop", "Installed").starts_with("True AllInstalled: "));
    world.delete("Application.bellwether.dev", "base");
    assert_eq!(dependency(&world), (false, Unknown, vec![], base()));
}

/// Retrieving Dependencies, step 1, and Garbage Collection: a dependency is neither owned nor a member.
#[test]
fn dependencies_are_not_owned() {
    let world =
        World::with([depending("shop", &["base"]), app_of("base", &["front"]), deployment("front", 3, 3)]);
    assert_eq!(world.owners("Application.bellwether.dev", "base"), "");
    assert_eq!(
        world.of_app("shop", "Ready"),
        "Unknown NoComponents: no members: spec.componentKinds is empty"
    );
}

/// Only Applications in the cycle report it, and they work otherwise.
#[rstest]
#[case::itself("a: a", &[("a", Some("a -> a"))])]
#[case::two("a: b; b: a", &[("a", Some("a -> b -> a")), ("b", Some("b -> a -> b"))])]
#[case::leads_into_one("a: b; b: b", &[("a", None), ("b", Some("b -> b"))])]
#[case::none("a: b; b: base", &[("a", None), ("b", None)])]
fn cycles(#[case] edges: &str, #[case] expected_cycles: &[(&str, Option<&str>)]) {
    let edges = edges.split("; ").filter_map(|edge| edge.split_once(": "));
    let mut world = World::with(edges.map(|(name, other)| depending(name, &[other])));
    for (name, cycle) in expected_cycles {
        let expected = cycle.map_or("none".to_owned(), |cycle| format!("True DependencyCycle: {cycle}"));
        assert_eq!(world.of_app(name, "DependencyCycle"), expected);
    }
    for (name, _) in expected_cycles {
        world.put(app_of(name, &["front"]));
        assert_eq!(world.of_app(name, "DependencyCycle"), "none", "the cycle is broken");
    }
}

/// The cost of a change does not grow with a chain that it is not part of, nor with one that it extends.
#[test]
fn a_change_evaluates_what_it_concerns() {
    const LENGTH: usize = 300;
    let chain = (0..LENGTH).map(|number| depending(&format!("a{number}"), &[&*format!("a{}", number + 1)]));
    let mut world = World::with(chain.chain([app_of("web", &["front"]), deployment("front", 3, 3)]));
    let changed = |world: &World, before: usize| -> BTreeSet<String> {
        let name = |effect: &Effect| match effect {
            Effect::Changed(_, Some(name)) => Some(name.name.to_string()),
            _ => None,
        };
        world.effects[before..].iter().filter_map(name).collect()
    };
    let before = world.effects.len();
    world.put(deployment("front", 2, 3));
    assert_eq!(changed(&world, before), ["web".to_owned()].into());
    let before = world.effects.len();
    world.put(depending(&format!("a{LENGTH}"), &["web"]));
    assert_eq!(changed(&world, before), [format!("a{LENGTH}"), format!("a{}", LENGTH - 1)].into());
    let before = world.effects.len();
    world.put(depending(&format!("a{LENGTH}"), &["a0"]));
    assert_eq!(changed(&world, before).len(), LENGTH + 1);
    let cycle = world.of_app("a7", "DependencyCycle");
    assert_eq!(
        cycle,
        "True DependencyCycle: a7 -> a8 -> a9 -> a10 -> a11 -> a12 -> a13 -> a14 -> ... (301 Applications depend on one \
         another)"
    );
    world.put(depending("a7", &[]));
    assert!((0..=LENGTH).all(|number| world.of_app(&format!("a{number}"), "DependencyCycle") == "none"));
}
