//! Which objects are components: named one by one, or by their labels, anywhere in the cluster.

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
fn by_name_in_a_namespace_or_in_none_and_by_labels_anywhere() {
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
        "two have the name: the namespace tells them apart"
    );
}

#[test]
fn a_selector_can_be_kept_to_a_namespace() {
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
fn labels_come_and_go() {
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

/// A selector that matches nothing is said, and is not green.
#[test]
fn nothing_selected() {
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
        "False NoObjectsSelected: spec.components[1]: no Net.ops.example matches tier=core"
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
    assert_eq!(world.umbrella().component_count, Some(1), "it is named still");
    assert_eq!(world.triple(), ["Unknown"; 3], "and nothing is selected");
    world.remove("Virt", "virt", "a");
    assert_eq!(
        world.of_umbrella("Available"),
        "False InstallInvalid: Virt/a: not found; Virt/tier=core: no object matches the selector"
    );
}

/// A kind that an Application looks at already is looked at more closely; until that is done, nothing is said.
#[test]
fn a_lens_widens() {
    let operator = |name: &str| {
        with(widget(name, Some("True")), &json!({"status": {"conditions": conditions(HEALTHY)}}))
    };
    let mut world = world([app_of_kinds("web"), operator("w")]);
    world.held.insert(kind("Widget.acme.io"));
    let widgets = json!([{"group": "acme.io", "kind": "Widget", "namespace": "shop", "name": "w"}]);
    world.put(rollup(&widgets, &json!({})));
    assert!(world.umbrella().conditions.is_empty(), "nobody has looked at the conditions yet");
    world.held.clear();
    world.settle();
    assert_eq!(world.triple(), HEALTHY);
    assert!(world.of_app("web", "Ready").starts_with("True"), "the Application is looked after as before");
    world.put(rollup(&json!([virt_named("a")]), &json!({})));
    assert!(world.of_app("web", "Ready").starts_with("True"), "and the kind is followed for it still");
    assert!(world.feeds.values().any(|feed| feed.kind == kind("Widget.acme.io")));
}

/// A kind that cannot be read any more by the time that it should be looked at more closely.
#[test]
fn a_lens_that_comes_too_late() {
    let mut world = world([app_of_kinds("web"), widget("w", Some("True"))]);
    world.held.insert(kind("Widget.acme.io"));
    let widgets = json!([{"group": "acme.io", "kind": "Widget", "namespace": "shop", "name": "w"}]);
    world.put(rollup(&widgets, &json!({})));
    world.unreadable("Widget.acme.io", Some(Unreadable::Forbidden { resource: "widgets".into() }));
    world.held.clear();
    world.settle();
    assert_eq!(world.of_umbrella("Available"), "Unknown Forbidden: Widget/w: forbidden");
}

/// What nobody needs any more is followed no longer.
#[test]
fn kinds_are_left() {
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
    assert_eq!(world.engine.census().notes, 0);
    world.step(Event::Tick);
    assert!(!world.effects.iter().any(|effect| matches!(effect, Effect::Warn(_))));
}

#[test]
fn what_cannot_be_read_is_unknown() {
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
