//! Components of Rollups by name or by label selector, and how a lens is widened to deliver conditions.

use bellwether_engine::{Effect, Event, Unreadable};
use serde_json::{Value, json};

use super::{HEALTHY, component, conditions, rollup, virt, virt_named, world};
use crate::{
    objects::{app_of_kinds, kind, widget, with},
    world::World,
};

const BAD: [&str; 3] = ["False", "True", "False"];

fn selected(kind: &str) -> Value {
    json!({"group": "ops.example", "kind": kind, "selector": {"matchLabels": {"tier": "core"}}})
}

fn labelled(object: Value, tier: Option<&str>) -> Value {
    with(object, &json!({"metadata": {"labels": {"tier": tier}}}))
}

fn names(world: &World) -> Vec<String> {
    let name = |it: bellwether_api::RollupComponentStatus| match it.namespace {
        Some(namespace) => format!("{} {namespace}/{}", it.kind, it.name),
        None => format!("{} {}", it.kind, it.name),
    };
    world.umbrella().components.into_iter().map(name).collect()
}

#[test]
fn components_by_name_and_by_selector() {
    let components = json!([
        virt_named("kept"), {"group": "ops.example", "kind": "Store", "name": "disks"}, selected("Net"),
    ]);
    let world = world([
        rollup(&components, &json!({})),
        virt("kept", &conditions(HEALTHY)),
        virt("other", &conditions(BAD)),
        component("Store", None, "disks", &conditions(HEALTHY)),
        component("Net", Some("east"), "bridge", &conditions(HEALTHY)),
        component("Net", Some("west"), "bridge", &conditions(BAD)),
        labelled(component("Net", Some("west"), "plain", &conditions(BAD)), None),
    ]);
    assert_eq!(names(&world), ["Net west/bridge", "Net east/bridge", "Store disks", "Virt virt/kept"]);
    assert_eq!(
        world.of_umbrella("Available"),
        "False InstallSucceeded: Net/west/bridge: works",
        "the namespace distinguishes components of one name"
    );
}

#[test]
fn a_selector_with_a_namespace() {
    let mut west = selected("Net");
    west["namespace"] = "west".into();
    let world = world([
        rollup(&json!([west]), &json!({})),
        component("Net", Some("east"), "bridge", &conditions(BAD)),
        component("Net", Some("west"), "bridge", &conditions(HEALTHY)),
    ]);
    assert_eq!(names(&world), ["Net west/bridge"]);
}

#[test]
fn labels_are_added_and_removed() {
    let mut world = world([
        rollup(&json!([selected("Virt")]), &json!({})),
        virt("a", &conditions(HEALTHY)),
        labelled(virt("b", &conditions(BAD)), None),
    ]);
    assert_eq!(world.triple(), HEALTHY);
    world.put(virt("b", &conditions(BAD)));
    assert_eq!(world.triple(), BAD);
    world.put(labelled(virt("b", &conditions(BAD)), Some("edge")));
    assert_eq!(world.triple(), HEALTHY);
}

#[test]
fn an_unmatched_selector_is_unknown() {
    let mut world = world([
        rollup(&json!([virt_named("a"), selected("Net")]), &json!({})),
        virt("a", &conditions(HEALTHY)),
    ]);
    assert_eq!(world.triple(), ["Unknown"; 3]);
    assert_eq!(
        world.of_umbrella("Available"),
        "Unknown NoObjectsSelected: Net/tier=core: no object matches the selector"
    );
    assert_eq!(
        world.of_umbrella("Resolved"),
        "False NoObjectsSelected: spec.components[1]: no Net.ops.example matches selector tier=core"
    );
    assert_eq!(world.umbrella().component_count, Some(1));
    world.put(component("Net", Some("east"), "bridge", &conditions(HEALTHY)));
    assert_eq!(world.triple(), HEALTHY);
    world.remove("Net", "east", "bridge");
    assert_eq!(world.triple(), ["Unknown"; 3]);
}

#[test]
fn one_that_is_named_and_selected_counts_once() {
    let mut world = world([
        rollup(&json!([virt_named("a"), selected("Virt")]), &json!({})),
        virt("a", &conditions(HEALTHY)),
    ]);
    assert_eq!(world.umbrella().component_count, Some(1));
    world.put(labelled(virt("a", &conditions(HEALTHY)), None));
    assert_eq!(world.umbrella().component_count, Some(1), "still named");
    assert_eq!(world.triple(), ["Unknown"; 3], "but the selector matches nothing");
    world.remove("Virt", "virt", "a");
    assert_eq!(
        world.of_umbrella("Available"),
        "False InstallInvalid: Virt/a: not found; Virt/tier=core: no object matches the selector"
    );
}

/// The kind is watched for an Application already. Until the relist through the wider lens, no status is
/// written.
#[test]
fn a_relist_widens_the_lens() {
    let operator = |name: &str| {
        with(widget(name, Some("True")), &json!({"status": {"conditions": conditions(HEALTHY)}}))
    };
    let mut world = world([app_of_kinds("web"), operator("w")]);
    world.held.insert(kind("Widget.acme.io"));
    let widgets = json!([{"group": "acme.io", "kind": "Widget", "namespace": "shop", "name": "w"}]);
    world.put(rollup(&widgets, &json!({})));
    assert!(world.umbrella().conditions.is_empty(), "the conditions are not delivered yet");
    world.held.clear();
    world.settle();
    assert_eq!(world.triple(), HEALTHY);
    assert!(world.of_app("web", "Ready").starts_with("True"), "the Application is not affected");
    world.put(rollup(&json!([virt_named("a")]), &json!({})));
    assert!(world.of_app("web", "Ready").starts_with("True"), "and its kind is still watched");
    assert!(world.feeds.values().any(|feed| feed.kind == kind("Widget.acme.io")));
}

/// The kind becomes unreadable before the relist through the wider lens.
#[test]
fn a_kind_becomes_unreadable_before_its_lens_is_widened() {
    let mut world = world([app_of_kinds("web"), widget("w", Some("True"))]);
    world.held.insert(kind("Widget.acme.io"));
    let widgets = json!([{"group": "acme.io", "kind": "Widget", "namespace": "shop", "name": "w"}]);
    world.put(rollup(&widgets, &json!({})));
    world.unreadable("Widget.acme.io", Some(Unreadable::Forbidden { resource: "widgets".into() }));
    world.held.clear();
    world.settle();
    assert_eq!(world.of_umbrella("Available"), "Unknown Forbidden: Widget/w: forbidden");
}

#[test]
fn unused_kinds_are_no_longer_watched() {
    let mut world = world([
        rollup(&json!([virt_named("a"), selected("Net")]), &json!({})),
        virt("a", &conditions(HEALTHY)),
    ]);
    let followed = |world: &World| {
        let kinds = world.feeds.values().filter(|feed| *feed.kind.group == *"ops.example");
        kinds.map(|feed| feed.kind.kind.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(followed(&world), ["Virt", "Net"]);
    world.put(rollup(&json!([virt_named("a")]), &json!({})));
    assert_eq!(followed(&world), ["Virt"]);
    world.server.remove(&kind(super::ROLLUP), &bellwether_engine::NamespacedName::new("", "umbrella"));
    world.settle();
    assert!(followed(&world).is_empty());
    assert_eq!(world.engine.stats().index_entries, 0);
    world.step(Event::Tick);
    assert!(!world.effects.iter().any(|effect| matches!(effect, Effect::Warn(_))));
}

#[test]
fn components_of_an_unreadable_kind_are_unknown() {
    let mut world = world([
        rollup(&json!([virt_named("a"), selected("Net")]), &json!({})),
        virt("a", &conditions(HEALTHY)),
    ]);
    world.put(component("Net", Some("east"), "bridge", &conditions(HEALTHY)));
    world.unreadable("Virt.ops.example", Some(Unreadable::Forbidden { resource: "virts".into() }));
    world.settle();
    assert_eq!(world.triple(), ["Unknown"; 3]);
    assert_eq!(world.of_umbrella("Available"), "Unknown Forbidden: Virt/a: forbidden; last reported: works");
    assert_eq!(
        world.of_umbrella("Resolved"),
        "False Forbidden: Virt.ops.example: forbidden; grant get, list and watch on virts.ops.example"
    );
    world.unreadable("Virt.ops.example", None);
    world.settle();
    assert_eq!(world.triple(), HEALTHY);
}
