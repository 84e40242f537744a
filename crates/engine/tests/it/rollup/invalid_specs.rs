//! Invalid specs of Rollups: Resolved is False with one reason each, and the other components still count.

use rstest::rstest;
use serde_json::{Value, json};

use super::{HEALTHY, component, conditions, rollup, virt, virt_named, world};

fn selector() -> Value {
    json!({"matchLabels": {"tier": "core"}})
}

#[rstest]
#[case::unknown_group(
    json!([virt_named("a"), {"group": "typo.example", "kind": "Virt", "namespace": "virt", "name": "a"}]),
    "False NotServed: Virt.typo.example: kind not served by the cluster; check the group and kind, and that the CRD is installed",
    ["False", "Unknown", "Unknown"]
)]
#[case::named_twice(
    json!([virt_named("a"), virt_named("a")]),
    "False DuplicateComponent: spec.components[1]: duplicate of spec.components[0]: remove one",
    HEALTHY
)]
#[case::two_selectors(
    json!([
        {"group": "ops.example", "kind": "Virt", "selector": selector()},
        {"group": "ops.example", "kind": "Virt", "selector": selector()},
    ]),
    "False DuplicateComponent: spec.components[1]: duplicate of spec.components[0]: remove one",
    HEALTHY
)]
#[case::name_and_selector(
    json!([virt_named("a"), {"group": "ops.example", "kind": "Virt", "name": "a", "selector": selector()}]),
    "False NameAndSelector: spec.components[1]: set only one of name and selector",
    ["Unknown"; 3]
)]
#[case::itself(
    json!([virt_named("a"), {"group": "bellwether.dev", "kind": "Rollup", "name": "umbrella"}]),
    "False ComponentCycle: spec.components[1]: a Rollup cannot be a component of itself: remove this entry",
    ["Unknown"; 3]
)]
#[case::no_namespace(
    json!([{"group": "ops.example", "kind": "Virt", "name": "a"}]),
    "False NamespaceRequired: spec.components[0]: Virt.ops.example is namespaced: set the namespace of a",
    ["False", "Unknown", "Unknown"]
)]
#[case::needless_namespace(
    json!([{"group": "ops.example", "kind": "Store", "namespace": "virt", "name": "disks"}]),
    "False ClusterScoped: spec.components[0]: Store.ops.example is cluster-scoped: remove the namespace",
    ["False", "Unknown", "Unknown"]
)]
fn an_invalid_entry_makes_resolved_false(
    #[case] components: Value,
    #[case] resolved: &str,
    #[case] triple: [&str; 3],
) {
    let world = world([
        rollup(&components, &json!({})),
        virt("a", &conditions(HEALTHY)),
        component("Store", None, "disks", &conditions(HEALTHY)),
    ]);
    assert_eq!(world.of_umbrella("Resolved"), resolved);
    assert_eq!(world.triple(), triple);
    assert!(world.umbrella().component_count <= Some(2));
}

/// A component that cannot be evaluated may object to an upgrade.
#[rstest]
#[case::circle(json!([{"group": "bellwether.dev", "kind": "Rollup", "name": "low"}]), "ComponentCycle")]
#[case::itself(json!([{"group": "bellwether.dev", "kind": "Rollup", "name": "umbrella"}]), "ComponentCycle")]
#[case::name_and_selector(
    json!([{"group": "ops.example", "kind": "Virt", "name": "a", "selector": selector()}]),
    "NameAndSelector"
)]
fn upgradeable_is_unknown_with_invalid_entries(#[case] components: Value, #[case] reason: &str) {
    let upgradeable = json!({"upgradeable": true});
    let mut low =
        rollup(&json!([{"group": "bellwether.dev", "kind": "Rollup", "name": "umbrella"}]), &upgradeable);
    low["metadata"]["name"] = "low".into();
    let world = world([rollup(&components, &upgradeable), low]);
    let condition = world.of_umbrella("Upgradeable");
    assert!(condition.starts_with(&format!("Unknown {reason}: ")), "{condition}");
}

/// Equal selectors are duplicates; similar texts need not be equal selectors.
#[test]
fn selectors_with_equal_texts_may_differ() {
    let selects = |values: Value| {
        let expression = json!({"key": "tier", "operator": "In", "values": values});
        json!({"group": "ops.example", "kind": "Virt", "selector": {"matchExpressions": [expression]}})
    };
    let world = world([rollup(&json!([selects(json!(["x,y"])), selects(json!(["x", "y"]))]), &json!({}))]);
    let text = "Virt/tier in (x,y): no object matches the selector";
    assert_eq!(world.of_umbrella("Available"), format!("Unknown NoObjectsSelected: {text}; {text}"));
}

/// Without cycle detection, the Rollups would keep each other unhealthy for ever.
#[test]
fn a_cycle_is_reported_and_resolved() {
    let named = |name: &str, others: Value| {
        let mut it = rollup(&others, &json!({}));
        it["metadata"]["name"] = name.into();
        it
    };
    let of = |name: &str| json!({"group": "bellwether.dev", "kind": "Rollup", "name": name});
    let mut world = world([
        rollup(&json!([of("middle")]), &json!({})),
        named("middle", json!([of("low"), virt_named("a")])),
        named("low", json!([of("umbrella")])),
        virt("a", &conditions(["False", "True", "False"])),
    ]);
    assert_eq!(
        world.of_umbrella("Resolved"),
        "False ComponentCycle: Rollup/middle: component cycle: remove one of the two Rollups from the components of the other"
    );
    assert_eq!(
        world.of_umbrella("Available"),
        "Unknown ComponentCycle: Rollup/middle: component cycle: contains this Rollup"
    );
    world.put(named("low", json!([virt_named("a")])));
    assert_eq!(world.triple(), ["False", "True", "False"]);
    assert!(world.of_umbrella("Resolved").starts_with("True"));
    world.put(virt("a", &conditions(HEALTHY)));
    assert_eq!(world.triple(), HEALTHY, "healthy again");
}
