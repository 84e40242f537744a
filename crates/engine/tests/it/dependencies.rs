//! Dependencies between Applications: installed, ready, cycles.

use bellwether_api::ConditionStatus::{False, True, Unknown};
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
