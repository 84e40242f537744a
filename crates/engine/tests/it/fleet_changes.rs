//! Random changes in a fleet, compared with what the clusters have, and with a controller that starts anew.

use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::fleet::{Fault, Fleet, collector, deployment, policy};

const CLUSTERS: [&str; 4] = ["a", "b", "c", "d"];
const OBJECTS: [&str; 3] = ["web", "db", "cache"];
const POLICIES: [&str; 2] = ["first", "second"];

const DEPLOYMENT: &str = "Deployment.apps";
const POLICY: &str = "BindingPolicy.bellwether.dev";
const COLLECTOR: &str = "StatusCollector.bellwether.dev";
const COMBINED: &str = "CombinedStatus.bellwether.dev";

#[derive(Clone, Debug)]
enum Change {
    /// In a cluster: the number of available replicas, or none at all.
    Report(usize, usize, Option<i64>),
    RemoveThere(usize, usize),
    /// In the hub, with this value of the label `app`.
    Put(usize, usize),
    Remove(usize),
    /// Whether a cluster has the label that policies select.
    Label(usize, bool),
    /// A policy binds the objects with this label, and names these collectors.
    Bind(usize, usize, bool),
    Unbind(usize),
    Collect(usize),
    RemoveCollector,
    Stop(usize),
    Resume(usize),
    Rebuild(usize),
    Pass(i64),
    Fault(usize),
    /// Someone else edits or deletes the first CombinedStatus.
    Tamper(bool),
    Restart,
}

fn change() -> impl Strategy<Value = Change> {
    let (cluster, object) = (0..CLUSTERS.len(), 0..OBJECTS.len());
    prop_oneof![
        8 => (cluster.clone(), object.clone(), proptest::option::of(0..4_i64)).prop_map(|(a, b, c)| Change::Report(a, b, c)),
        2 => (cluster.clone(), object.clone()).prop_map(|(a, b)| Change::RemoveThere(a, b)),
        4 => (object.clone(), 0..2_usize).prop_map(|(a, b)| Change::Put(a, b)),
        1 => object.prop_map(Change::Remove),
        2 => (cluster.clone(), any::<bool>()).prop_map(|(a, b)| Change::Label(a, b)),
        3 => (0..POLICIES.len(), 0..2_usize, any::<bool>()).prop_map(|(a, b, c)| Change::Bind(a, b, c)),
        1 => (0..POLICIES.len()).prop_map(Change::Unbind),
        2 => (0..4_usize).prop_map(Change::Collect),
        1 => Just(Change::RemoveCollector),
        1 => cluster.clone().prop_map(Change::Stop),
        3 => cluster.clone().prop_map(Change::Resume),
        1 => cluster.prop_map(Change::Rebuild),
        2 => (0..60_i64).prop_map(Change::Pass),
        2 => (0..3_usize).prop_map(Change::Fault),
        1 => any::<bool>().prop_map(Change::Tamper),
        1 => Just(Change::Restart),
    ]
}

/// What a person would expect, from the state of the hub and the clusters.
#[derive(Default)]
struct Expected {
    /// By cluster.
    selected: [bool; CLUSTERS.len()],
    stopped: [bool; CLUSTERS.len()],
    /// By policy: the label of its objects, and whether it names the second collector.
    policies: [Option<(usize, bool)>; POLICIES.len()],
    has_rows: bool,
}

fn app(label: usize) -> String {
    format!("app-{label}")
}

fn rows() -> Value {
    let select = json!([
        {"name": "cluster", "def": "inventory.name"},
        {"name": "available", "def": "returned.status.availableReplicas"},
        {"name": "found", "def": {"op": "Path", "path": "$.propagation.found"}},
    ]);
    collector("rows", &json!({"select": select}))
}

fn second(variant: usize) -> Value {
    let spec = match variant {
        0 => {
            json!({"combinedFields": [{"name": "sum", "type": "SUM", "subject": "returned.status.availableReplicas"}]})
        }
        1 => json!({
            "groupBy": [{"name": "health", "def": "propagation.health"}],
            "combinedFields": [{"name": "count", "type": "COUNT"}],
        }),
        2 => json!({"select": [{"name": "wanted", "def": "obj.spec.replicas"}], "limit": 2}),
        _ => json!({"select": [{"name": "wrong", "def": "obj."}]}),
    };
    collector("second", &spec)
}

fn apply(fleet: &mut Fleet, expected: &mut Expected, change: &Change) {
    match *change {
        Change::Report(cluster, object, available) => {
            fleet.put(CLUSTERS[cluster], deployment(OBJECTS[object], available));
        }
        Change::RemoveThere(cluster, object) => {
            fleet.remove(CLUSTERS[cluster], DEPLOYMENT, OBJECTS[object]);
        }
        Change::Put(object, label) => {
            let mut object = deployment(OBJECTS[object], None);
            object["metadata"]["labels"]["app"] = app(label).into();
            fleet.put("", object);
        }
        Change::Remove(object) => _ = fleet.remove("", DEPLOYMENT, OBJECTS[object]),
        Change::Label(cluster, selected) => {
            expected.selected[cluster] = selected;
            let labels: &[_] = if selected { &[("edge", "yes")] } else { &[] };
            fleet.label(CLUSTERS[cluster], labels);
        }
        Change::Bind(number, label, both) => {
            expected.policies[number] = Some((label, both));
            let collectors: &[_] = if both { &["rows", "second"] } else { &["rows"] };
            let spec = json!({
                "clusterSelectors": [{"matchLabels": {"edge": "yes"}}],
                "downsync": [{
                    "apiGroup": "apps", "resources": ["deployments"],
                    "objectSelectors": [{"matchLabels": {"app": app(label)}}], "statusCollectors": collectors,
                }],
                "stalenessThreshold": "30s",
            });
            fleet.put("", policy(POLICIES[number], &spec));
        }
        Change::Unbind(number) => {
            expected.policies[number] = None;
            fleet.remove("", POLICY, POLICIES[number]);
        }
        Change::Collect(variant) => {
            expected.has_rows = true;
            fleet.put("", rows()).put("", second(variant));
        }
        Change::RemoveCollector => {
            expected.has_rows = false;
            fleet.remove("", COLLECTOR, "rows");
            fleet.remove("", COLLECTOR, "second");
        }
        Change::Stop(cluster) => {
            expected.stopped[cluster] = true;
            fleet.stop(CLUSTERS[cluster]);
        }
        Change::Resume(cluster) => {
            expected.stopped[cluster] = false;
            fleet.resume(CLUSTERS[cluster]);
        }
        Change::Rebuild(cluster) => {
            expected.stopped[cluster] = false;
            fleet.resume(CLUSTERS[cluster]).rebuild(CLUSTERS[cluster]);
        }
        Change::Pass(seconds) => _ = fleet.pass(SignedDuration::from_secs(seconds)),
        Change::Fault(fault) => {
            fleet.faults.push_back([Fault::LoseResponse, Fault::Fail, Fault::Conflict][fault]);
        }
        Change::Tamper(deletes) => {
            let first = fleet.combined_statuses().first().map(|status| status["metadata"]["name"].clone());
            let Some(name) = first.and_then(|name| name.as_str().map(str::to_owned)) else { return };
            if deletes {
                fleet.remove("", COMBINED, &name);
            } else {
                fleet.edit("", (COMBINED, &name), |status| status["results"] = json!([]));
            }
        }
        Change::Restart => _ = fleet.restart(),
    }
}

/// All clusters answer, and all retries have been made.
fn calm(fleet: &mut Fleet, expected: &mut Expected) {
    for cluster in CLUSTERS {
        fleet.resume(cluster);
    }
    expected.stopped = Default::default();
    fleet.faults.clear();
    fleet.pass(SignedDuration::from_mins(10));
}

/// For each object that a policy binds: the label of the policy, and the rows of the collector `rows`.
fn check(fleet: &Fleet, expected: &Expected) {
    let mut wanted = Vec::new();
    for (policy, bound) in POLICIES.iter().zip(&expected.policies) {
        let Some((label, _)) = bound.filter(|_| expected.has_rows) else { continue };
        for name in OBJECTS {
            let object = fleet.get(DEPLOYMENT, name);
            if object.is_none_or(|object| object["metadata"]["labels"]["app"] != app(label)) {
                continue;
            }
            let selected = CLUSTERS.iter().zip(expected.selected).filter(|(_, selected)| *selected);
            let rows = selected.map(|(cluster, _)| {
                let there = fleet.get_in(cluster, DEPLOYMENT, name);
                json!([cluster, there.map(|it| &it["status"]["availableReplicas"]), there.is_some()])
            });
            wanted.push((policy.to_string(), name.to_owned(), rows.collect::<Vec<_>>()));
        }
    }
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    let mut found: Vec<_> = fleet
        .combined_statuses()
        .into_iter()
        .map(|status| {
            let label =
                |name: &str| text(&status["metadata"]["labels"][format!("status.bellwether.dev/{name}")]);
            (label("binding-policy"), label("name"), Fleet::rows_of(status, "rows"))
        })
        .collect();
    wanted.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    found.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    assert_eq!(found, wanted);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_fleet_is_combined_as_it_is(changes in proptest::collection::vec(change(), 1..40)) {
        let mut fleet = Fleet::new(&CLUSTERS);
        let mut expected = Expected::default();
        for start in [Change::Collect(0), Change::Bind(0, 0, true), Change::Put(0, 0), Change::Label(0, true), Change::Label(1, true)] {
            apply(&mut fleet, &mut expected, &start);
        }
        for change in &changes {
            apply(&mut fleet, &mut expected, change);
        }
        calm(&mut fleet, &mut expected);
        check(&fleet, &expected);
        let (writes, before) = (fleet.writes.len(), fleet.combined_statuses().into_iter().cloned().collect::<Vec<_>>());
        fleet.restart();
        fleet.pass(SignedDuration::from_mins(1));
        prop_assert_eq!(fleet.combined_statuses().into_iter().cloned().collect::<Vec<_>>(), before);
        prop_assert_eq!(fleet.writes.len(), writes, "{:?}", &fleet.writes[writes..]);
    }
}
