//! Situations in which KubeStellar 0.30, which has the same kinds, was measured to be wrong or to crash.

use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::fleet::{Fleet, collector, deployment, policy};

const DEPLOYMENT: &str = "Deployment.apps";
const COLLECTOR: &str = "StatusCollector.bellwether.dev";

/// `web` in the hub and in clusters `c1`, `c2`, … with these numbers of available replicas; without a number, it has
/// no status.
fn fleet(available: &[Option<i64>], spec: &Value) -> Fleet {
    let names: Vec<_> = (1..=available.len()).map(|number| format!("c{number:03}")).collect();
    let mut fleet = Fleet::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    fleet.put("", deployment("web", None)).put("", collector("test", spec));
    for (name, available) in names.iter().zip(available) {
        fleet.put(name, deployment("web", *available));
    }
    fleet.put("", everything("all"));
    fleet
}

fn everything(name: &str) -> Value {
    let clause = json!({"apiGroup": "apps", "resources": ["deployments"], "statusCollectors": ["test"]});
    policy(name, &json!({"clusterSelectors": [{}], "downsync": [clause]}))
}

fn result(fleet: &Fleet) -> &Value {
    &fleet.combined_status()["results"][0]
}

const AVAILABLE: &str = "returned.status.availableReplicas";

fn available() -> Value {
    json!([{"name": "available", "def": AVAILABLE}])
}

fn set(fleet: &mut Fleet, cluster: &str, available: i64) {
    fleet.edit(cluster, (DEPLOYMENT, "web"), |web| web["status"]["availableReplicas"] = available.into());
}

#[test]
fn a_limit_limits() {
    let many: Vec<_> = (0..25).map(Some).collect();
    let fleet = fleet(&many, &json!({"select": available(), "limit": 20}));
    assert_eq!(fleet.rows("test").len(), 20);
    assert_eq!((&result(&fleet)["totalRows"], &result(&fleet)["truncated"]), (&json!(25), &json!(true)));
}

#[test]
fn the_order_of_rows_stays() {
    let select =
        json!([{"name": "cluster", "def": "inventory.name"}, {"name": "available", "def": AVAILABLE}]);
    let mut fleet = fleet(&[Some(5), Some(4), Some(3)], &json!({"select": select}));
    let clusters = |fleet: &Fleet| fleet.rows("test").iter().map(|row| row[0].clone()).collect::<Vec<_>>();
    for number in 0..5 {
        set(&mut fleet, "c002", number);
        assert_eq!(clusters(&fleet), ["c001", "c002", "c003"]);
    }
}

#[test]
fn objects_of_one_name_in_two_namespaces_are_two() {
    let count = json!({"combinedFields": [{"name": "sum", "type": "SUM", "subject": AVAILABLE}]});
    let mut fleet = fleet(&[Some(1), Some(2)], &count);
    let other = |available| {
        let mut web = deployment("web", available);
        web["metadata"]["namespace"] = "other".into();
        web
    };
    fleet
        .put("", other(None))
        .put("c001", other(Some(30)))
        .put("c002", other(Some(40)))
        .put("", everything("more"));
    let mut sums: Vec<_> = fleet
        .combined_statuses()
        .into_iter()
        .map(|status| (status["metadata"]["namespace"].clone(), Fleet::rows_of(status, "test")))
        .collect();
    sums.sort_by_key(|(namespace, _)| namespace.to_string());
    let (other, shop) = ((json!("other"), vec![json!([70])]), (json!("shop"), vec![json!([3])]));
    assert_eq!(sums, [other.clone(), other, shop.clone(), shop]);
}

#[test]
fn a_group_can_be_an_object() {
    let spec = json!({
        "groupBy": [{"name": "status", "def": "returned.status"}],
        "combinedFields": [{"name": "count", "type": "COUNT"}],
    });
    let fleet = fleet(&[Some(1), Some(2), Some(1)], &spec);
    let counts: Vec<_> =
        fleet.rows("test").iter().map(|row| (row[0]["availableReplicas"].clone(), row[1].clone())).collect();
    assert_eq!(counts, [(json!(1), json!(2)), (json!(2), json!(1))]);
}

#[test]
fn rows_that_are_alike_are_counted() {
    let mut fleet = fleet(&[Some(1), Some(1), Some(1), Some(2), Some(2)], &json!({"select": available()}));
    set(&mut fleet, "c001", 2);
    assert_eq!(fleet.rows("test"), [2, 1, 1, 2, 2].map(|number| json!([number])));
}

#[test]
fn a_mean_of_nothing_is_null_and_is_written_once() {
    let spec = json!({
        "filter": "returned.status.availableReplicas > 100",
        "combinedFields": [
            {"name": "mean", "type": "AVG", "subject": AVAILABLE}, {"name": "least", "type": "MIN", "subject": AVAILABLE},
            {"name": "greatest", "type": "MAX", "subject": AVAILABLE}, {"name": "sum", "type": "SUM", "subject": AVAILABLE},
        ],
    });
    let mut fleet = fleet(&[Some(1), Some(2)], &spec);
    assert_eq!(fleet.rows("test"), [json!([null, null, null, null])]);
    let types = result(&fleet)["rows"][0]["columns"].as_array().cloned().unwrap_or_default();
    assert!(types.iter().all(|column| *column == json!({"type": "Null"})), "{types:?}");
    let writes = fleet.writes.len();
    fleet.pass(SignedDuration::from_mins(10));
    assert_eq!(fleet.writes.len(), writes);
}

#[test]
fn null_has_its_own_type() {
    let fleet = fleet(&[None, Some(1)], &json!({"select": available()}));
    assert_eq!(result(&fleet)["rows"][0]["columns"][0], json!({"type": "Null"}));
}

#[test]
fn a_filter_that_is_null_lets_no_row_pass() {
    let select = json!([{"name": "cluster", "def": "inventory.name"}]);
    let spec = json!({"filter": "returned.status.availableReplicas >= 1", "select": select});
    let fleet = fleet(&[None, None, Some(1), Some(0), Some(0)], &spec);
    assert_eq!(fleet.rows("test"), [json!(["c003"])]);
}

#[test]
fn a_mean_is_over_the_rows_with_a_value() {
    let spec = json!({"combinedFields": [{"name": "mean", "type": "AVG", "subject": AVAILABLE}]});
    let fleet = fleet(&[Some(10), Some(10), Some(10), None, None], &spec);
    assert_eq!(fleet.rows("test"), [json!([10])]);
    assert_eq!(result(&fleet).get("aggregationErrors"), None);
}

#[test]
fn a_cluster_without_the_object_is_a_row_of_nulls() {
    let select =
        json!([{"name": "cluster", "def": "inventory.name"}, {"name": "available", "def": AVAILABLE}]);
    let mut fleet = fleet(&[Some(1), Some(2), Some(3)], &json!({"select": select}));
    fleet.delete("c001", DEPLOYMENT, "web").delete("c003", DEPLOYMENT, "web");
    assert_eq!(fleet.rows("test"), [json!(["c001", null]), json!(["c002", 2]), json!(["c003", null])]);
    assert_eq!((result(&fleet).get("rowErrors"), fleet.counts()), (None, [3, 1, 0, 2]));
}

#[test]
fn large_sums_keep_all_digits() {
    let spec = json!({"combinedFields": [{"name": "sum", "type": "SUM", "subject": AVAILABLE}]});
    let fleet = fleet(&[Some(999_999), Some(1)], &spec);
    assert_eq!(result(&fleet)["rows"][0]["columns"][0], json!({"type": "Number", "number": "1000000"}));
}

#[test]
fn lists_have_the_type_array() {
    let spec = json!({"select": [{"name": "names", "def": "['a', inventory.name]"}]});
    let fleet = fleet(&[Some(1)], &spec);
    assert_eq!(result(&fleet)["rows"][0]["columns"][0], json!({"type": "Array", "array": ["a", "c001"]}));
}

#[test]
fn after_a_restart_no_row_is_blank() {
    let mut fleet = fleet(&[Some(1), Some(2), Some(3)], &json!({"select": available()}));
    let (before, writes) = (fleet.combined_status().clone(), fleet.writes.len());
    fleet.restart();
    assert_eq!((fleet.combined_status(), fleet.writes.len()), (&before, writes));
}

/// An edited collector takes effect, and its CombinedStatus stays.
#[test]
fn an_edit_of_the_collector_keeps_the_object() {
    let mut fleet = fleet(&[Some(1), Some(2)], &json!({"select": available()}));
    let uid = fleet.combined_status()["metadata"]["uid"].clone();
    fleet.edit("", (COLLECTOR, "test"), |test| test["spec"]["limit"] = 1.into());
    assert_eq!((fleet.rows("test").len(), &fleet.combined_status()["metadata"]["uid"]), (1, &uid));
}
