//! Faults and rare orders of events in a fleet.

use bellwether_engine::{SINGLETON_LABEL, Unreadable};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::fleet::{Fault, Fleet, collector, deployment, policy};

const POLICY: &str = "BindingPolicy.bellwether.dev";
const COMBINED: &str = "CombinedStatus.bellwether.dev";
const COLLECTOR: &str = "StatusCollector.bellwether.dev";
const DEPLOYMENT: &str = "Deployment.apps";

fn failing() -> Unreadable {
    Unreadable::Failing { why: "500".into() }
}

fn available(name: &str, field: &str) -> Value {
    let select = json!([{"name": "cluster", "def": "inventory.name"}, {"name": "value", "def": field}]);
    collector(name, &json!({"select": select}))
}

fn clause(name: &str, more: &Value) -> Value {
    let mut clause = json!({"apiGroup": "apps", "resources": ["deployments"], "objectNames": [name]});
    for (key, value) in more.as_object().expect("a map") {
        clause[key] = value.clone();
    }
    clause
}

fn bind(clusters: &Value, clauses: &[Value]) -> Value {
    policy("all", &json!({"clusterSelectors": clusters, "downsync": clauses, "stalenessThreshold": "30s"}))
}

fn combined() -> Fleet {
    let mut fleet = Fleet::new(&["a", "b"]);
    fleet.put("", deployment("web", None));
    fleet.put("a", deployment("web", Some(3))).put("b", deployment("web", Some(1)));
    fleet.put("", available("available", "returned.status.availableReplicas"));
    fleet.put("", bind(&json!([{}]), &[clause("web", &json!({"statusCollectors": ["available"]}))]));
    fleet
}

fn singleton(more: &Value) -> Fleet {
    let mut fleet = Fleet::new(&["a", "b"]);
    fleet.put("", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": "a"}}}));
    fleet.put("", deployment("web", None)).put("a", deployment("web", Some(3)));
    let mut clause = clause("web", &json!({"wantSingletonReportedState": true}));
    for (key, value) in more.as_object().expect("a map") {
        clause[key] = value.clone();
    }
    fleet.put("", bind(&json!([{"matchLabels": {"name": "a"}}]), &[clause]));
    assert_eq!(web(&fleet), (true, json!(3)));
    fleet
}

fn web(fleet: &Fleet) -> (bool, Value) {
    let web = fleet.get(DEPLOYMENT, "web").expect("it exists");
    (web["metadata"]["labels"][SINGLETON_LABEL] == "true", web["status"]["availableReplicas"].clone())
}

fn pause() -> SignedDuration {
    SignedDuration::from_mins(15)
}

#[test]
fn conflict_that_the_watch_showed_first() {
    let mut fleet = combined();
    // The timer of the Create would hide it.
    fleet.pass(pause()).faults.push_back(Fault::ConflictSeenFirst);
    fleet.edit("a", (DEPLOYMENT, "web"), |web| web["status"]["availableReplicas"] = 2.into());
    fleet.pass(pause());
    assert_eq!(fleet.rows("available")[0], json!(["a", 2]));
}

#[test]
fn hub_restored_from_a_backup() {
    let mut fleet = combined();
    let backup = fleet.backup();
    fleet.edit("a", (DEPLOYMENT, "web"), |web| web["status"]["availableReplicas"] = 2.into());
    assert_eq!(fleet.rows("available")[0], json!(["a", 2]));
    fleet.restore(backup).pass(pause());
    assert_eq!(fleet.rows("available")[0], json!(["a", 2]));
}

#[test]
fn policies_unreadable_at_a_restart() {
    let mut fleet = singleton(&json!({}));
    fleet.unreadable("", POLICY, Some(failing())).restart().pass(SignedDuration::from_secs(60));
    assert_eq!(web(&fleet), (true, json!(3)));
}

#[test]
fn namespaces_unreadable_at_a_restart() {
    let mut fleet = singleton(&json!({"namespaceSelectors": [{"matchLabels": {"team": "a"}}]}));
    fleet.unreadable("", "Namespace", Some(failing())).restart().pass(SignedDuration::from_secs(60));
    assert_eq!(web(&fleet), (true, json!(3)));
}

#[test]
fn edit_of_a_collector_of_another_object() {
    let mut fleet = combined();
    fleet.put("", available("other", "returned.status.readyReplicas")).put("", deployment("db", None));
    let clauses = [
        clause("web", &json!({"statusCollectors": ["available"]})),
        clause("db", &json!({"statusCollectors": ["other"]})),
    ];
    fleet.put("", bind(&json!([{}]), &clauses));
    let counts = |fleet: &Fleet| {
        let all = fleet.combined_statuses();
        let web = all
            .iter()
            .find(|it| it["metadata"]["labels"]["status.bellwether.dev/name"] == "web")
            .expect("it exists");
        (web["clusters"]["bound"].clone(), Fleet::rows_of(web, "available").len())
    };
    assert_eq!(counts(&fleet), (json!(2), 2));
    // The relist in b takes a while.
    fleet.stop("b").put("", available("other", "returned.spec.paused"));
    fleet.label("b", &[("tier", "new")]);
    assert_eq!(counts(&fleet), (json!(2), 2));
}

#[test]
fn another_writer_removes_the_label() {
    let mut fleet = singleton(&json!({}));
    let writes = fleet.writes.len();
    for _ in 0..200 {
        fleet.edit("", (DEPLOYMENT, "web"), |web| web["metadata"]["labels"] = json!({"app": "web"}));
    }
    let writes = fleet.writes.len() - writes;
    assert!(writes < 30, "{writes} writes");
}

#[test]
fn kind_not_served_in_the_only_cluster() {
    let mut fleet = singleton(&json!({}));
    fleet.unreadable("a", DEPLOYMENT, Some(Unreadable::NotServed)).pass(SignedDuration::from_secs(60));
    assert_eq!(web(&fleet), (true, Value::Null));
}

#[test]
fn another_writer_reverts_while_the_watch_is_away() {
    let mut fleet = combined();
    let before = fleet.combined_status().clone();
    let name = before["metadata"]["name"].as_str().expect("a string").to_owned();
    fleet.unreadable("", COMBINED, Some(failing()));
    fleet.edit("a", (DEPLOYMENT, "web"), |web| web["status"]["availableReplicas"] = 2.into());
    assert_eq!(fleet.rows("available")[0], json!(["a", 2]), "it is written all the same");
    fleet.edit("", (COMBINED, &name), |status| status["results"] = before["results"].clone());
    fleet.unreadable("", COMBINED, None).pass(pause());
    assert_eq!(fleet.rows("available")[0], json!(["a", 2]));
}

#[test]
fn namespaces_unreadable_when_a_selector_is_added() {
    let mut fleet = singleton(&json!({}));
    fleet.unreadable("", "Namespace", Some(failing()));
    fleet.edit("", (POLICY, "all"), |policy| {
        policy["spec"]["downsync"][0]["namespaceSelectors"] = json!([{"matchLabels": {"team": "a"}}]);
    });
    assert_eq!(web(&fleet), (true, json!(3)));
}

#[test]
fn collectors_unreadable_at_a_restart() {
    let mut fleet = combined();
    fleet.unreadable("", COLLECTOR, Some(failing())).restart().pass(SignedDuration::from_secs(60));
    assert_eq!(fleet.rows("available").len(), 2);
}

/// With 1,000 such clusters that reconnect, every output is rendered 1,000 times.
#[test]
fn relist_in_a_cluster_renders_nothing() {
    let mut fleet = combined();
    for number in 0..50 {
        let name = format!("db-{number}");
        fleet.put("", deployment(&name, None));
    }
    fleet.put("", bind(&json!([{}]), &[json!({"apiGroup": "apps", "resources": ["deployments"], "namespaces": ["shop"], "statusCollectors": ["available"]})]));
    fleet.pass(pause());
    let waiting = fleet.enqueued_by_relist("a");
    assert!(waiting <= 1, "more than the policy: {waiting}");
}

#[test]
fn a_field_of_the_hub_is_read_by_a_collector_of_another_object() {
    let mut fleet = combined();
    fleet.put("", available("other", "returned.status.readyReplicas")).put("", deployment("db", None));
    let clauses = [
        clause("web", &json!({"statusCollectors": ["available"]})),
        clause("db", &json!({"statusCollectors": ["other"]})),
    ];
    fleet.put("", bind(&json!([{}]), &clauses));
    // The relist in the hub fails for a while; the watches of the clusters go on.
    fleet.unreadable("", DEPLOYMENT, Some(failing())).put("", available("other", "obj.spec.paused"));
    fleet.edit("a", (DEPLOYMENT, "web"), |web| web["status"]["availableReplicas"] = 2.into());
    fleet.pass(SignedDuration::from_secs(60));
    let all = fleet.combined_statuses();
    let web = all
        .iter()
        .find(|it| it["metadata"]["labels"]["status.bellwether.dev/name"] == "web")
        .expect("it exists");
    assert_eq!(web["clusters"]["bound"], 2);
}

#[test]
fn what_is_not_needed_any_more_is_left() {
    let mut fleet = combined();
    fleet.put("", bind(&json!([{}]), &[clause("web", &json!({}))])).pass(pause());
    assert_eq!(fleet.combined_statuses().len(), 0);
    assert!(fleet.followed("a").is_empty(), "no collector: {:?}", fleet.followed("a"));
}

#[test]
fn the_last_object_is_deleted() {
    let mut fleet = combined();
    fleet.delete("", DEPLOYMENT, "web").pass(pause());
    assert!(fleet.followed("a").is_empty(), "no object: {:?}", fleet.followed("a"));
}

#[test]
fn a_policy_that_binds_combined_statuses() {
    let mut fleet = combined();
    let clause = json!({"resources": ["deployments", "combinedstatuses"], "namespaces": ["shop"], "statusCollectors": ["available"]});
    fleet.put("", bind(&json!([{}]), &[clause])).pass(SignedDuration::from_secs(1));
    assert!(fleet.combined_statuses().len() <= 2, "{}", fleet.combined_statuses().len());
}

#[test]
fn the_kind_of_policies_is_not_served_for_a_moment() {
    let mut fleet = singleton(&json!({}));
    fleet.unreadable("", POLICY, Some(Unreadable::NotServed)).pass(SignedDuration::from_secs(60));
    assert_eq!(web(&fleet), (true, json!(3)));
}

#[test]
fn aggregated_api_unavailable_at_a_restart() {
    let mut fleet = combined();
    let resolved = |fleet: &Fleet| {
        let policy = fleet.get(POLICY, "all").expect("it exists");
        let conditions = policy["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let resolved = conditions.into_iter().find(|condition| condition["type"] == "Resolved");
        resolved.expect("the policy is resolved")["message"].clone()
    };
    fleet.restart_without_groups(&["apps"]).pass(pause());
    assert_eq!(fleet.rows("available"), [json!(["a", 3]), json!(["b", 1])], "it stays as it was");
    assert_eq!(
        resolved(&fleet),
        "deployments.apps is of an API group whose API server does not respond to discovery: check its APIService"
    );
    fleet.recover_groups();
    fleet.edit("a", (DEPLOYMENT, "web"), |web| web["status"]["availableReplicas"] = 2.into());
    assert_eq!(fleet.rows("available"), [json!(["a", 2]), json!(["b", 1])]);
    assert_eq!(resolved(&fleet), "Every kind can be read");

    fleet.restart_without_groups(&["apps"]).delete("", POLICY, "all");
    assert_eq!(fleet.combined_statuses().len(), 0, "without the policy, it has no reason to exist");
}

#[test]
fn unavailable_group_of_other_objects() {
    let mut fleet = combined();
    fleet.writing = false;
    fleet.delete("", DEPLOYMENT, "web").writing = true;
    fleet.restart_without_groups(&["metrics.k8s.io"]).pass(pause());
    assert_eq!(fleet.combined_statuses().len(), 0);
}

#[test]
fn policy_deleted_during_the_write_of_the_label() {
    for (is_lost, is_gone) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut fleet = Fleet::new(&["a"]);
        fleet.put("", deployment("web", None)).put("a", deployment("web", Some(3)));
        // The first is the write of the policy's status.
        fleet.faults.extend([Fault::None, Fault::DeletePolicies { is_lost, is_gone }]);
        let clause = clause("web", &json!({"wantSingletonReportedState": true}));
        fleet.put("", bind(&json!([{}]), &[clause]));
        assert_eq!(fleet.writes[1].0.object.kind.to_string(), DEPLOYMENT, "the label is written");
        fleet.pass(pause());
        if is_gone {
            assert!(fleet.get(DEPLOYMENT, "web").is_none());
        } else {
            assert_eq!(web(&fleet), (false, Value::Null), "{is_lost}");
        }
        assert!(!fleet.followed("").contains(DEPLOYMENT), "{is_lost}, {is_gone}");
    }
}

#[test]
fn policy_deleted_after_the_write_of_the_label_failed() {
    for is_made in [false, true] {
        let mut fleet = Fleet::new(&["a"]);
        fleet.put("", deployment("web", None)).put("a", deployment("web", Some(3)));
        let label = if is_made { Fault::LoseResponse } else { Fault::Fail };
        fleet.faults.extend([Fault::None, label]);
        fleet.faults.extend([Fault::Fail; 10]);
        let clause = clause("web", &json!({"wantSingletonReportedState": true}));
        fleet.put("", bind(&json!([{}]), &[clause]));
        assert_eq!(web(&fleet), (is_made, Value::Null));
        fleet.delete("", POLICY, "all").faults.clear();
        assert!(fleet.followed("").contains(DEPLOYMENT), "the label may still be written");
        fleet.pass(pause());
        assert_eq!(web(&fleet), (false, Value::Null), "{is_made}");
        assert!(!fleet.followed("").contains(DEPLOYMENT), "{is_made}");
    }
}

#[test]
fn rows_with_the_uid_of_a_cluster_wait_for_it_but_not_for_ever() {
    let mut fleet = combined();
    fleet.put("", available("available", "inventory.uid"));
    assert_eq!(fleet.rows("available"), [json!(["a", "uid-of-a"]), json!(["b", "uid-of-b"])]);
    fleet.join_unidentified("c");
    assert_eq!(fleet.counts(), [2, 2, 0, 0], "its lists have arrived, but not its UID");
    fleet.identify("c", "uid-of-c");
    assert_eq!(fleet.rows("available")[2], json!(["c", "uid-of-c"]));
    fleet.join_unidentified("d");
    assert_eq!(fleet.rows("available").len(), 3);
    fleet.pass(SignedDuration::from_secs(11));
    assert_eq!(fleet.rows("available")[3], json!(["d", null]), "the UID may be forbidden");
}

/// A CRD may require fields of the status.
#[test]
fn cleared_status_is_removed() {
    let mut fleet = singleton(&json!({}));
    fleet.delete("", POLICY, "all");
    assert_eq!(fleet.get(DEPLOYMENT, "web").expect("it exists").get("status"), None);
    assert_eq!(web(&fleet), (false, Value::Null));
}

/// Both API groups serve the same objects.
#[test]
fn events_have_one_combined_status() {
    let mut fleet = Fleet::new(&["a"]);
    let event = |api: &str| json!({"apiVersion": api, "kind": "Event", "metadata": {"name": "started", "namespace": "shop", "uid": "e1"}});
    for (kind, api) in [("Event", "v1"), ("Event.events.k8s.io", "events.k8s.io/v1")] {
        fleet.serve("", kind, "events").serve("a", kind, "events");
        fleet.put("", event(api)).put("a", event(api));
    }
    fleet.put("", collector("kinds", &json!({"select": [{"name": "api", "def": "obj.apiVersion"}]})));
    let clause = json!({"resources": ["events"], "statusCollectors": ["kinds"]});
    fleet.put("", bind(&json!([{}]), &[clause]));
    assert_eq!(fleet.rows("kinds"), [json!(["v1"])]);
    let writes = fleet.writes.len();
    fleet.pass(pause());
    assert_eq!(fleet.writes.len(), writes, "nothing is written again");
}

#[test]
fn collector_that_fails_on_every_row() {
    let names: Vec<_> = (0..30).map(|number| format!("c{number:02}")).collect();
    let mut fleet = Fleet::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    fleet.put("", deployment("web", None));
    for name in &names {
        fleet.put(name, deployment("web", Some(3)));
    }
    let count = json!({"combinedFields": [{"name": "count", "type": "COUNT"}]});
    fleet
        .put("", available("fails", "returned.status.availableReplicas + 'x'"))
        .put("", collector("count", &count));
    fleet.put("", bind(&json!([{}]), &[clause("web", &json!({"statusCollectors": ["fails", "count"]}))]));
    let failing = |fleet: &Fleet| fleet.combined_status()["results"][0].clone();
    assert_eq!(
        (failing(&fleet)["rows"].clone(), failing(&fleet)["totalRows"].clone()),
        (json!([]), json!(0))
    );
    let errors = failing(&fleet)["rowErrors"].as_array().cloned().unwrap_or_default();
    assert_eq!(
        (errors.len(), &errors[0]["cluster"], &errors[0]["column"]),
        (10, &json!("c00"), &json!("value"))
    );
    assert_eq!(fleet.rows("count"), [json!([30])]);
    let writes = fleet.writes.len();
    for name in &names {
        fleet.edit_now(name, (DEPLOYMENT, "web"), |web| web["status"]["availableReplicas"] = 2.into());
    }
    fleet.pass(pause());
    assert_eq!(fleet.writes.len(), writes, "the errors are the same");
    fleet.put("", available("fails", "returned.status.availableReplicas"));
    assert_eq!(fleet.rows("fails")[19], json!(["c19", 2]));
    assert_eq!(failing(&fleet).get("rowErrors"), None);
}

/// Of twenty clusters one never returns.
#[test]
fn all_clusters_reconnect_at_once() {
    let names: Vec<_> = (0..20).map(|number| format!("c{number:02}")).collect();
    let mut fleet = Fleet::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let objects: Vec<_> = (0..10).map(|number| format!("web-{number}")).collect();
    for object in &objects {
        fleet.put("", deployment(object, None));
        for name in &names {
            fleet.put(name, deployment(object, Some(3)));
        }
    }
    let sum = json!({
        "filter": "!propagation.stale",
        "combinedFields": [{"name": "available", "type": "SUM", "subject": "returned.status.availableReplicas"}],
    });
    fleet.put("", collector("sum", &sum));
    let clause = json!({"apiGroup": "apps", "resources": ["deployments"], "statusCollectors": ["sum"]});
    fleet.put("", bind(&json!([{}]), &[clause]));
    let sums = |fleet: &Fleet| {
        let all = fleet.combined_statuses().into_iter();
        all.map(|status| (Fleet::rows_of(status, "sum")[0][0].clone(), status["clusters"]["stale"].clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(sums(&fleet), vec![(json!(60), json!(0)); 10]);
    for name in &names {
        fleet.stop(name);
    }
    fleet.pass(SignedDuration::from_secs(60));
    assert_eq!(sums(&fleet), vec![(Value::Null, json!(20)); 10]);
    for name in &names {
        for object in &objects {
            fleet.edit_now(name, (DEPLOYMENT, object), |web| web["status"]["availableReplicas"] = 2.into());
        }
    }
    let writes = fleet.writes.len();
    fleet.resume_all(&names[1..]);
    assert_eq!(sums(&fleet), vec![(json!(38), json!(1)); 10]);
    let writes = fleet.writes.len() - writes;
    assert!(writes <= 3 * objects.len(), "{writes} writes for {} objects", objects.len());
}
