//! The examples of KubeStellar's proposal.

use rstest::rstest;
use serde_json::json;

use crate::sample::{Variables, rows, table};

#[rstest]
#[case::the_number_of_clusters("{combinedFields: [{name: count, type: COUNT}]}", "4")]
#[case::the_list_of_stale_clusters(
    "filter: {op: Path, path: $.propagation.stale}
select: [{name: name, def: {op: Path, path: $.inventory.name}}]",
    r#""south""#
)]
#[case::a_histogram_of_phases(
    "groupBy: [{name: phase, def: {op: Path, path: $.status.phase}}]
combinedFields: [{name: count, type: COUNT}]",
    "null | 1\n\"Pending\" | 1\n\"Running\" | 2"
)]
#[case::a_histogram_of_available_replicas(
    "groupBy: [{name: numAvailable, def: {op: Path, path: $.status.availableReplicas}}]
combinedFields: [{name: count, type: COUNT}]",
    "null | 1\n1 | 1\n3 | 2"
)]
#[case::the_clusters_that_are_not_fully_available(
    "filter: {op: Not, args: [{op: Equal, args: [{op: Path, path: $.spec.replicas}, {op: Path, path: $.status.availableReplicas}]}]}
select: [{name: wec, def: {op: Path, path: $.inventory.name}}]",
    r#""south""#
)]
#[case::the_full_status_from_each_cluster(
    "select:
- {name: wec, def: {op: Path, path: $.inventory.name}}
- {name: status, def: {op: Path, path: $.status}}",
    r#""east" | {"availableReplicas":3,"phase":"Running"}
"north" | {"availableReplicas":3,"phase":"Running"}
"south" | {"availableReplicas":1,"phase":"Pending"}
"west" | null"#
)]
fn example(#[case] yaml: &str, #[case] expected: &str) {
    let mut table = table(yaml);
    for (cluster, status, stale) in [
        ("north", json!({"phase": "Running", "availableReplicas": 3}), false),
        ("south", json!({"phase": "Pending", "availableReplicas": 1}), true),
        ("east", json!({"phase": "Running", "availableReplicas": 3}), false),
        ("west", json!(null), false),
    ] {
        let row = Variables::new(&json!({
            "inventory": {"name": cluster},
            "obj": {"spec": {"replicas": 3}, "status": {"phase": "of the hub"}},
            "returned": {"spec": {"replicas": 1}, "status": status},
            "propagation": {"found": !status.is_null(), "stale": stale},
        }));
        table.upsert(&cluster.into(), &row.row());
    }
    assert_eq!(rows(&table.result("example")), expected);
}
