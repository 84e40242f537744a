//! Random BindingPolicies, StatusCollectors, clusters that come and go, and the objects in them.

use bellwether_engine::SINGLETON_LABEL;
use rand::Rng;
use serde_json::{Value, json};

use crate::{
    collectors::samples,
    inventory::{InventoryAction, Labels},
    load::{ObjectRef, Text, UserAction, pick},
    objects::{cluster_scoped, deployment, platform, widget, with},
    plan::PlannedAction,
    site::Site,
    tampering::Tampering,
};

/// The kinds that faults of plans with policies concern.
pub(crate) const KINDS: [&str; 8] = [
    "BindingPolicy.bellwether.dev",
    "StatusCollector.bellwether.dev",
    "CombinedStatus.bellwether.dev",
    "Deployment.apps",
    "Deployment.apps",
    "Widget.acme.io",
    "Widget.acme.io",
    "Platform.acme.io",
];

const POLICY: &str = "BindingPolicy.bellwether.dev";
const COLLECTOR: &str = "StatusCollector.bellwether.dev";
const POLICIES: [&str; 2] = ["p", "q"];
const COLLECTORS: [&str; 3] = ["c", "d", "e"];
const BOUND: [&str; 4] = ["Deployment.apps", "Deployment.apps", "Widget.acme.io", "Platform.acme.io"];
const NAMES: [&str; 2] = ["x", "y"];

/// The clusters, collectors, objects and a policy that a plan begins with.
pub(crate) fn beginning(rng: &mut impl Rng) -> Vec<PlannedAction> {
    let mut actions = Vec::new();
    for site in Site::WORKLOAD {
        if rng.random_bool(0.8) {
            actions.push(PlannedAction::Inventory(InventoryAction::Add(site, labels(rng, site))));
        }
    }
    if actions.is_empty() {
        actions.push(PlannedAction::Inventory(InventoryAction::Add(Site::East, labels(rng, Site::East))));
    }
    for name in COLLECTORS {
        if rng.random_bool(0.8) {
            actions.push(PlannedAction::Act(UserAction::Put(collector(rng, name))));
        }
    }
    for site in Site::ALL {
        for name in NAMES {
            if rng.random_bool(0.6) {
                let kind = pick(rng, &BOUND);
                actions.push(at(site, UserAction::Put(object(rng, kind, name))));
            }
        }
    }
    actions.push(PlannedAction::Act(UserAction::Put(policy(rng))));
    actions
}

/// A random action.
pub(crate) fn draw(rng: &mut impl Rng) -> PlannedAction {
    let act = match rng.random_range(0..50) {
        0..7 => UserAction::Put(policy(rng)),
        7 => UserAction::Delete((POLICY.into(), pick(rng, &POLICIES).into())),
        8 => UserAction::Recreate((POLICY.into(), pick(rng, &POLICIES).into())),
        9..13 => {
            let name = pick(rng, &COLLECTORS);
            UserAction::Put(collector(rng, name))
        }
        13 => UserAction::Delete((COLLECTOR.into(), pick(rng, &COLLECTORS).into())),
        14 => UserAction::Recreate((COLLECTOR.into(), pick(rng, &COLLECTORS).into())),
        15..31 => {
            let site = pick(rng, &[Site::Hub, Site::East, Site::North, Site::West]);
            return at(site, object_action(rng));
        }
        31..39 => return PlannedAction::Inventory(inventory_action(rng)),
        39..44 => {
            let all = [
                Tampering::Delete,
                Tampering::DropResults,
                Tampering::DropCounts,
                Tampering::DropLabels,
                Tampering::DropOwner,
                Tampering::Copy,
            ];
            UserAction::Tamper(rng.random_range(0..4), pick(rng, &all))
        }
        44 => UserAction::Merge(target(rng), json!({"metadata": {"labels": {SINGLETON_LABEL: "no"}}})),
        45 => UserAction::Merge(target(rng), json!({"metadata": {"labels": {SINGLETON_LABEL: null}}})),
        46 => UserAction::Say(target(rng), json!({"readyReplicas": rng.random_range(0..9)})),
        47 => UserAction::Merge(
            (POLICY.into(), pick(rng, &POLICIES).into()),
            json!({"status": {"objects": 99}}),
        ),
        _ => return at(pick(rng, &Site::WORKLOAD), object_action(rng)),
    };
    PlannedAction::Act(act)
}

/// In the hub or in another cluster.
fn at(site: Site, action: UserAction) -> PlannedAction {
    match site {
        Site::Hub => PlannedAction::Act(action),
        site => PlannedAction::In(site, Box::new(PlannedAction::Act(action))),
    }
}

fn target(rng: &mut impl Rng) -> ObjectRef {
    (pick(rng, &BOUND).into(), pick(rng, &NAMES).into())
}

fn object_action(rng: &mut impl Rng) -> UserAction {
    match rng.random_range(0..12) {
        0..4 => {
            let (kind, name) = target(rng);
            UserAction::Put(object(rng, &kind, &name))
        }
        4..8 => UserAction::Say(target(rng), json!({"readyReplicas": rng.random_range(0..4)})),
        8 => UserAction::Delete(target(rng)),
        9 => UserAction::Recreate(target(rng)),
        10 => UserAction::Label(target(rng), tier(rng)),
        _ => UserAction::Annotate(target(rng), rng.random_range(0..1000)),
    }
}

fn tier(rng: &mut impl Rng) -> Option<Text> {
    pick(rng, &[Some("core"), Some("core"), None]).map(Into::into)
}

fn object(rng: &mut impl Rng, kind: &str, name: &str) -> Value {
    let ready = rng.random_range(0..=3);
    let object = match kind {
        "Deployment.apps" => deployment(name, ready, 3),
        "Platform.acme.io" => platform(name),
        _ => with(widget(name, Some("True")), &json!({"status": {"readyReplicas": ready}})),
    };
    let object = with(object, &json!({"metadata": {"labels": {"tier": tier(rng)}}}));
    // Some objects have no status, as in the hub of most fleets.
    if rng.random_bool(0.3) { with(object, &json!({"status": null})) } else { object }
}

fn labels(rng: &mut impl Rng, site: Site) -> Labels {
    let region = pick(rng, &[Some("edge"), Some("edge"), Some("core"), None]);
    let region = region.map(|region| ("region".to_owned(), region.to_owned()));
    [("name".to_owned(), site.name().to_owned())].into_iter().chain(region).collect()
}

fn inventory_action(rng: &mut impl Rng) -> InventoryAction {
    let site = pick(rng, &Site::WORKLOAD);
    match rng.random_range(0..14) {
        0..5 => InventoryAction::Add(site, labels(rng, site)),
        5..7 => InventoryAction::Remove(site),
        7 => InventoryAction::Replace(site),
        8..10 => InventoryAction::Rebuild(site),
        10 => InventoryAction::Unplug(site, None),
        11 => InventoryAction::Unplug(site, Some(rng.random_range(100..10_000))),
        _ => InventoryAction::Unplug(site, Some(rng.random_range(10_000..150_000))),
    }
}

fn collector(rng: &mut impl Rng, name: &str) -> Value {
    let mut samples = samples();
    let sample = samples.swap_remove(rng.random_range(0..samples.len()));
    cluster_scoped("StatusCollector", name, &sample.spec)
}

fn policy(rng: &mut impl Rng) -> Value {
    let all = json!({});
    let of_name = |name: &str| json!({"matchLabels": {"name": name}});
    let selectors = match rng.random_range(0..9) {
        0..3 => json!([all]),
        3 => json!([of_name("east")]),
        4 => json!([of_name("north"), of_name("west")]),
        5 => json!([{"matchLabels": {"region": "edge"}}]),
        6 => json!([{"matchExpressions": [{"key": "region", "operator": "In", "values": ["edge", "core"]}]}]),
        7 => json!([{"matchExpressions": [{"key": "region", "operator": "DoesNotExist"}]}, of_name("west")]),
        _ => json!([]),
    };
    let clauses: Vec<_> = (0..pick(rng, &[1, 1, 1, 2, 3])).map(|_| clause(rng)).collect();
    let threshold = pick(rng, &["15s", "30s", "60s"]);
    let spec = json!({"clusterSelectors": selectors, "downsync": clauses, "stalenessThreshold": threshold});
    cluster_scoped("BindingPolicy", pick(rng, &POLICIES), &spec)
}

fn clause(rng: &mut impl Rng) -> Value {
    let (group, resources) = pick(
        rng,
        &[
            (Some("apps"), &["deployments"][..]),
            (Some("apps"), &["deployments"]),
            (Some("acme.io"), &["widgets"]),
            (Some("acme.io"), &["platforms", "widgets"]),
            (Some("acme.io"), &[]),
            (None, &["deployments", "widgets"]),
            (Some("acme.io"), &["gadgets", "widgets"]),
        ],
    );
    let objects = match rng.random_range(0..6) {
        0 => json!({"objectNames": ["x"]}),
        1 => json!({"objectNames": ["x", "y"]}),
        2..4 => json!({"objectSelectors": [{"matchLabels": {"tier": "core"}}]}),
        4 => json!({"namespaces": ["shop"]}),
        _ => json!({}),
    };
    let mut collectors: Vec<_> = COLLECTORS.into_iter().filter(|_| rng.random_bool(0.45)).collect();
    if rng.random_bool(0.05) {
        collectors.push("absent");
    }
    let clause = json!({
        "apiGroup": group, "resources": resources, "statusCollectors": collectors,
        "wantSingletonReportedState": rng.random_bool(0.3),
    });
    with(clause, &objects)
}
