//! BindingPolicies, StatusCollectors and their CombinedStatuses.

use bellwether_engine::{Outcome, Unreadable, Write};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::fleet::{Fault, Fleet, collector, deployment, policy};

const POLICY: &str = "BindingPolicy.bellwether.dev";
const COLLECTOR: &str = "StatusCollector.bellwether.dev";
const COMBINED: &str = "CombinedStatus.bellwether.dev";
const DEPLOYMENT: &str = "Deployment.apps";

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

/// All clusters with the label `name`, all Deployments with `app: web`.
fn everywhere(collectors: &[&str]) -> Value {
    policy(
        "everywhere",
        &json!({
            "clusterSelectors": [{"matchExpressions": [{"key": "name", "operator": "Exists"}]}],
            "downsync": [{
                "apiGroup": "apps", "resources": ["deployments"],
                "objectSelectors": [{"matchLabels": {"app": "web"}}], "statusCollectors": collectors,
            }],
            "stalenessThreshold": "30s",
        }),
    )
}

fn count() -> Value {
    collector("count", &json!({"combinedFields": [{"name": "count", "type": "COUNT"}]}))
}

fn available() -> Value {
    let select = json!([
        {"name": "cluster", "def": "inventory.name"},
        {"name": "available", "def": "returned.status.availableReplicas"},
        {"name": "health", "def": "propagation.health"},
        {"name": "stale", "def": "propagation.stale"},
    ]);
    collector("available", &json!({"select": select}))
}

/// `web` in the hub, and in three clusters with 3, 2 and 1 of 3 replicas.
fn fleet(collectors: &[Value]) -> Fleet {
    let mut fleet = Fleet::new(&["a", "b", "c"]);
    fleet.put("", deployment("web", None));
    for (cluster, available) in [("a", 3), ("b", 2), ("c", 1)] {
        fleet.put(cluster, deployment("web", Some(available)));
    }
    for collector in collectors {
        fleet.put("", collector.clone());
    }
    let names: Vec<_> = collectors.iter().filter_map(|it| it["metadata"]["name"].as_str()).collect();
    fleet.put("", everywhere(&names));
    fleet
}

fn condition(object: &Value, type_: &str) -> (String, String) {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let condition =
        conditions.iter().find(|condition| condition["type"] == type_).cloned().unwrap_or_default();
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("message"))
}

#[test]
fn the_state_in_three_clusters_is_combined() {
    let fleet = fleet(&[count(), available()]);
    assert_eq!(fleet.rows("count"), [json!([3])]);
    let rows = [
        json!(["a", 3, "Ready", false]),
        json!(["b", 2, "InProgress", false]),
        json!(["c", 1, "InProgress", false]),
    ];
    assert_eq!(fleet.rows("available"), rows);
    assert_eq!(fleet.counts(), [3, 3, 0, 0]);
    let status = fleet.combined_status();
    let metadata = &status["metadata"];
    let uid = |kind: &str, name: &str| fleet.get(kind, name).expect("it exists")["metadata"]["uid"].clone();
    let (object, policy) = (uid(DEPLOYMENT, "web"), uid(POLICY, "everywhere"));
    let text = |value: &Value| value.as_str().expect("a string").to_owned();
    assert_eq!(metadata["name"], format!("{}.{}", text(&object), text(&policy)));
    assert_eq!(metadata["namespace"], "shop");
    assert_eq!(
        metadata["labels"],
        json!({
            "status.bellwether.dev/api-group": "apps", "status.bellwether.dev/resource": "deployments",
            "status.bellwether.dev/namespace": "shop", "status.bellwether.dev/name": "web",
            "status.bellwether.dev/binding-policy": "everywhere",
        })
    );
    let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": object});
    assert_eq!(metadata["ownerReferences"], json!([owner]));
    let policy = fleet.get(POLICY, "everywhere").expect("it exists");
    assert_eq!((&policy["status"]["objects"], &policy["status"]["clusters"]), (&json!(1), &json!(3)));
    assert_eq!(condition(policy, "CollectorsAvailable").0, "True");
    assert_eq!(condition(policy, "Resolved").0, "True");
    assert_eq!(condition(fleet.get(COLLECTOR, "count").expect("it exists"), "Valid").0, "True");
}

#[test]
fn a_change_in_one_cluster_is_one_write() {
    let mut fleet = fleet(&[available()]);
    let writes = fleet.writes.len();
    fleet.edit("b", (DEPLOYMENT, "web"), |web| {
        web["status"]["availableReplicas"] = 3.into();
        web["status"]["readyReplicas"] = 3.into();
    });
    assert_eq!(fleet.rows("available")[1], json!(["b", 3, "Ready", false]));
    assert_eq!(fleet.writes.len(), writes + 1, "{:?}", &fleet.writes[writes..]);
    fleet.edit("b", (DEPLOYMENT, "web"), |web| web["metadata"]["annotations"]["note"] = "new".into());
    assert_eq!(fleet.writes.len(), writes + 1, "no expression reads it");
}

#[test]
fn only_what_is_needed_is_followed() {
    let mut fleet = Fleet::new(&["a"]);
    fleet.put("", count()).put("", everywhere(&["count"]));
    assert_eq!(fleet.followed("a").len(), 0, "no object is bound");
    fleet.put("", deployment("web", None));
    assert_eq!(fleet.followed("a"), [DEPLOYMENT.to_owned()].into());
    fleet.delete("", POLICY, "everywhere");
    assert_eq!(fleet.followed("a").len(), 0);
    assert!(!fleet.followed("").contains(DEPLOYMENT));
}

#[test]
fn an_object_that_a_cluster_does_not_have_is_missing() {
    let mut fleet = fleet(&[available()]);
    fleet.delete("b", DEPLOYMENT, "web");
    assert_eq!(fleet.rows("available")[1], json!(["b", null, "Missing", false]));
    assert_eq!(fleet.counts(), [3, 2, 0, 1]);
    fleet.put("b", deployment("web", None));
    assert_eq!(fleet.rows("available")[1][1], Value::Null, "it has no status yet");
    assert_eq!(fleet.counts(), [3, 3, 0, 0]);
}

#[test]
fn clusters_are_labelled_in_and_out() {
    let mut fleet = fleet(&[available()]);
    fleet.edit("", (POLICY, "everywhere"), |policy| {
        policy["spec"]["clusterSelectors"] =
            json!([{"matchLabels": {"tier": "edge"}}, {"matchLabels": {"name": "a"}}]);
    });
    assert_eq!(fleet.rows("available"), [json!(["a", 3, "Ready", false])]);
    assert_eq!(fleet.followed("b").len(), 0);
    fleet.label("c", &[("tier", "edge")]);
    assert_eq!(fleet.counts(), [2, 2, 0, 0]);
    assert_eq!(fleet.rows("available")[1], json!(["c", 1, "InProgress", false]));
    fleet.label("c", &[("tier", "core")]);
    assert_eq!(fleet.counts(), [1, 1, 0, 0]);
    fleet.remove_cluster("a");
    assert_eq!((fleet.counts(), fleet.rows("available").len()), ([0, 0, 0, 0], 0));
}

#[test]
fn labels_of_clusters_are_read_by_expressions() {
    let by_tier = collector(
        "tiers",
        &json!({
            "groupBy": [{"name": "tier", "def": "inventory.labels.tier"}],
            "combinedFields": [{"name": "count", "type": "COUNT"}],
        }),
    );
    let mut fleet = fleet(&[by_tier]);
    assert_eq!(fleet.rows("tiers"), [json!([null, 3])]);
    fleet.label("b", &[("tier", "edge")]);
    let mut rows = fleet.rows("tiers");
    rows.sort_by_key(Value::to_string);
    assert_eq!(rows, [json!(["edge", 1]), json!([null, 2])]);
}

#[test]
fn objects_are_matched_as_they_change() {
    let mut fleet = fleet(&[count()]);
    fleet.edit("", (DEPLOYMENT, "web"), |web| web["metadata"]["labels"]["app"] = "db".into());
    assert_eq!(fleet.combined_statuses().len(), 0);
    fleet.edit("", (DEPLOYMENT, "web"), |web| web["metadata"]["labels"]["app"] = "web".into());
    assert_eq!(fleet.counts(), [3, 3, 0, 0]);
    fleet.put("", {
        let mut other = deployment("other", None);
        other["metadata"]["labels"]["app"] = "web".into();
        other
    });
    assert_eq!(fleet.combined_statuses().len(), 2);
    fleet.delete("", DEPLOYMENT, "other");
    assert_eq!(fleet.combined_statuses().len(), 1);
}

#[test]
fn labels_of_namespaces_select_objects() {
    let mut fleet = fleet(&[count()]);
    let namespace = |team: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "labels": {"team": team}}});
    fleet.put("", namespace("a")).edit("", (POLICY, "everywhere"), |policy| {
        policy["spec"]["downsync"][0]["namespaceSelectors"] = json!([{"matchLabels": {"team": "b"}}]);
    });
    assert_eq!(fleet.combined_statuses().len(), 0);
    fleet.put("", namespace("b"));
    assert_eq!(fleet.combined_statuses().len(), 1);
    fleet.put("", namespace("c"));
    assert_eq!(fleet.combined_statuses().len(), 0);
}

#[test]
fn a_change_of_the_object_in_the_hub_changes_all_rows() {
    let sad = collector(
        "sad",
        &json!({
            "filter": {"op": "Not", "args": [{"op": "Equal", "args": [
                {"op": "Path", "path": "$.spec.replicas"}, {"op": "Path", "path": "$.status.availableReplicas"},
            ]}]},
            "select": [{"name": "wec", "def": {"op": "Path", "path": "$.inventory.name"}}],
        }),
    );
    let mut fleet = fleet(&[sad]);
    assert_eq!(fleet.rows("sad"), [json!(["b"]), json!(["c"])]);
    fleet.edit("", (DEPLOYMENT, "web"), |web| web["spec"]["replicas"] = 2.into());
    assert_eq!(fleet.rows("sad"), [json!(["a"]), json!(["c"])]);
}

#[test]
fn an_edited_collector_is_evaluated_again() {
    let mut fleet = fleet(&[count()]);
    fleet.edit("", (COLLECTOR, "count"), |count| {
        count["spec"] = json!({"combinedFields": [
            {"name": "total", "type": "SUM", "subject": "returned.status.availableReplicas"},
        ]});
    });
    assert_eq!(fleet.rows("count"), [json!([6])], "a field that was not read before");
    fleet.edit("", (COLLECTOR, "count"), |count| {
        count["spec"]["combinedFields"][0]["subject"] = "spec.x".into();
    });
    let collector = fleet.get(COLLECTOR, "count").expect("it exists");
    let (valid, message) = condition(collector, "Valid");
    assert_eq!(valid, "False");
    assert!(message.starts_with("spec.combinedFields[0].subject"), "{message}");
    assert_eq!(collector["status"]["errors"].as_array().map(Vec::len), Some(1));
    assert_eq!(fleet.combined_status()["results"], json!([]), "an invalid collector has no result");
    let policy = fleet.get(POLICY, "everywhere").expect("it exists");
    assert_eq!(
        condition(policy, "CollectorsAvailable"),
        ("False".to_owned(), "StatusCollector/count is invalid: see its status".to_owned())
    );
    fleet.delete("", COLLECTOR, "count");
    assert_eq!(fleet.combined_statuses().len(), 0, "the policy has no collector");
    let policy = fleet.get(POLICY, "everywhere").expect("it exists");
    assert_eq!(
        condition(policy, "CollectorsAvailable"),
        ("False".to_owned(), "StatusCollector/count does not exist".to_owned())
    );
    fleet.put("", count());
    assert_eq!(fleet.rows("count"), [json!([3])]);
}

#[test]
fn a_stopped_cluster_is_stale_on_time() {
    let mut fleet = fleet(&[available()]);
    fleet.stop("b").pass(seconds(25));
    assert_eq!(fleet.counts(), [3, 3, 0, 0]);
    fleet.pass(seconds(10));
    assert_eq!(fleet.counts(), [3, 2, 1, 0]);
    let rows = [
        json!(["a", 3, "Ready", false]),
        json!(["b", 2, "Unknown", true]),
        json!(["c", 1, "InProgress", false]),
    ];
    assert_eq!(fleet.rows("available"), rows);
    let writes = fleet.writes.len();
    fleet.pass(seconds(600));
    assert_eq!(fleet.writes.len(), writes, "nothing changes");
    fleet.resume("b").pass(seconds(10));
    assert_eq!(fleet.rows("available")[1], json!(["b", 2, "InProgress", false]));
}

#[test]
fn a_clock_that_is_set_makes_nothing_stale() {
    let mut fleet = fleet(&[available()]);
    for hours in [1, -2, 24] {
        fleet.set_clock(SignedDuration::from_hours(hours)).pass(seconds(60));
        assert_eq!(fleet.counts(), [3, 3, 0, 0]);
    }
}

/// Only the times that it wrote itself show it.
#[test]
fn the_clock_of_a_cluster_is_an_hour_off() {
    let updated = collector(
        "updated",
        &json!({"select": [{"name": "time", "def": "propagation.lastReturnedUpdateTimestamp"}]}),
    );
    for time in ["2026-11-14T09:00:00Z", "2026-11-14T11:00:00Z"] {
        let mut fleet = fleet(&[available(), updated.clone()]);
        fleet.edit("b", ("Deployment.apps", "web"), |web| {
            web["metadata"]["creationTimestamp"] = time.into();
            web["metadata"]["managedFields"] = json!([{"subresource": "status", "time": time}]);
            web["status"]["conditions"] = json!([
                {"type": "Progressing", "status": "True", "reason": "ReplicaSetUpdated", "lastTransitionTime": time},
            ]);
        });
        assert_eq!(fleet.rows("available")[1], json!(["b", 2, "InProgress", false]), "{time}");
        assert_eq!(fleet.rows("updated")[1], json!([time]));
        fleet.stop("b").pass(seconds(25));
        assert_eq!(fleet.counts(), [3, 3, 0, 0], "{time}");
        fleet.pass(seconds(10));
        assert_eq!(fleet.counts(), [3, 2, 1, 0], "{time}");
        fleet.resume("b").pass(seconds(10));
        assert_eq!(fleet.rows("available")[1], json!(["b", 2, "InProgress", false]), "{time}");
    }
}

/// What one collector reads of an object changes nothing for another one.
#[test]
fn the_object_as_a_whole_is_the_same_whatever_else_is_read_of_it() {
    let select = |name: &str, fields: &[&str]| {
        let columns: Vec<_> = fields.iter().map(|field| json!({"name": field, "def": field})).collect();
        collector(name, &json!({"select": columns}))
    };
    let others =
        select("others", &["propagation.lastReturnedUpdateTimestamp", "returned.metadata.managedFields"]);
    let rows = |collectors: &[Value]| {
        let mut fleet = fleet(collectors);
        for cluster in ["a", "b", "c"] {
            fleet.edit(cluster, ("Deployment.apps", "web"), |web| {
                web["data"] = json!({"a": "b"});
                let writes = json!([{"subresource": "status", "time": "2026-11-14T09:00:00Z"}]);
                web["metadata"]["managedFields"] = writes;
            });
        }
        fleet.rows("whole")
    };
    for whole in [&["returned"][..], &["returned.metadata"], &["returned.spec", "returned.status"]] {
        let whole = select("whole", whole);
        let alone = rows(std::slice::from_ref(&whole));
        assert!(!alone[0].to_string().contains("managedFields"), "{alone:?}");
        assert_eq!(rows(&[whole, others.clone()]), alone);
    }
}

#[test]
fn a_rebuilt_cluster_is_another_one() {
    let uids = collector("uids", &json!({"select": [{"name": "uid", "def": "inventory.uid"}]}));
    let mut fleet = fleet(&[available(), uids]);
    fleet.rebuild("b");
    assert_eq!(fleet.rows("available")[1], json!(["b", null, "Missing", false]));
    assert_eq!(fleet.rows("uids")[1], json!(["new-uid-of-b"]));
    assert_eq!(fleet.counts(), [3, 2, 0, 1]);
}

#[test]
fn clusters_that_do_not_report_are_named() {
    let names: Vec<_> = (0..20).map(|number| format!("c{number:02}")).collect();
    let mut fleet = Fleet::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
    fleet.put("", deployment("web", None)).put("c00", deployment("web", Some(3)));
    fleet.put("", count()).put("", everywhere(&["count"]));
    assert_eq!(fleet.counts(), [20, 1, 0, 19]);
    let missing: Vec<_> = names[1..17].iter().map(|name| format!("{name} Missing")).collect();
    assert_eq!(fleet.not_reporting(), missing, "the first of them");
    fleet.stop("c19").stop("c05").pass(seconds(35));
    assert_eq!(fleet.not_reporting()[..3], ["c05 Stale", "c19 Stale", "c01 Missing"]);
    fleet.resume("c05").put("c01", deployment("web", Some(3)));
    assert_eq!(fleet.not_reporting()[..2], ["c19 Stale", "c02 Missing"]);
    fleet.remove_cluster("c19");
    assert_eq!(fleet.not_reporting()[..2], ["c02 Missing", "c03 Missing"]);
    let writes = fleet.writes.len();
    fleet.restart().pass(seconds(35));
    assert_eq!(fleet.writes.len(), writes, "nothing is written again");
}

#[test]
fn a_cluster_that_never_answers_does_not_hold_back_the_others() {
    let mut fleet = Fleet::new(&["a"]);
    fleet.join("dead", &[]);
    fleet.stop("dead");
    fleet.put("", deployment("web", None)).put("a", deployment("web", Some(3))).put("", available());
    fleet.put("", everywhere(&["available"]));
    assert_eq!(fleet.combined_statuses().len(), 0, "the other cluster may answer soon");
    fleet.pass(seconds(10));
    assert_eq!(fleet.counts(), [2, 1, 1, 0]);
    assert_eq!(fleet.rows("available")[1], json!(["dead", null, "Unknown", true]));
    fleet.edit("a", (DEPLOYMENT, "web"), |web| web["status"]["availableReplicas"] = 2.into());
    assert_eq!(fleet.rows("available")[0][1], 2);
}

#[test]
fn a_cluster_that_waits_for_its_turn_is_waited_for() {
    let mut fleet = Fleet::new(&["a"]);
    fleet.queue("late");
    fleet.put("", deployment("web", None)).put("a", deployment("web", Some(3))).put("", available());
    fleet.put("", everywhere(&["available"])).pass(seconds(20));
    assert_eq!(fleet.combined_statuses().len(), 0);
    fleet.connect("late");
    assert_eq!(fleet.counts(), [2, 1, 0, 1]);
}

#[test]
fn a_kind_that_a_cluster_forbids_is_said_for_that_cluster() {
    let mut fleet = fleet(&[available()]);
    let forbidden = Unreadable::Forbidden { resource: "deployments".into() };
    fleet.unreadable("b", DEPLOYMENT, Some(forbidden));
    assert_eq!(fleet.counts(), [3, 2, 1, 0]);
    let policy = fleet.get(POLICY, "everywhere").expect("it exists");
    let (status, message) = condition(policy, "Resolved");
    assert_eq!(status, "False");
    assert_eq!(message, "b: Deployment.apps forbidden; grant get, list and watch on deployments.apps",);
    fleet.unreadable("b", DEPLOYMENT, None);
    assert_eq!(fleet.counts(), [3, 3, 0, 0]);
    assert_eq!(condition(fleet.get(POLICY, "everywhere").expect("it exists"), "Resolved").0, "True");
}

#[test]
fn a_resource_that_the_hub_does_not_serve_is_named() {
    let mut fleet = fleet(&[count()]);
    fleet.edit("", (POLICY, "everywhere"), |policy| {
        policy["spec"]["downsync"][0]["resources"] = json!(["deployments", "deploymets"]);
    });
    let (status, message) = condition(fleet.get(POLICY, "everywhere").expect("it exists"), "Resolved");
    assert_eq!(status, "False");
    assert!(message.starts_with("deploymets.apps is not served by the hub"), "{message}");
    assert_eq!(fleet.counts(), [3, 3, 0, 0]);
}

#[test]
fn a_restart_writes_nothing() {
    let mut fleet = fleet(&[count(), available()]);
    let before = fleet.combined_status().clone();
    let writes = fleet.writes.len();
    fleet.restart();
    assert_eq!(fleet.writes.len(), writes, "{:?}", &fleet.writes[writes..]);
    assert_eq!(*fleet.combined_status(), before);
}

#[test]
fn what_ended_while_the_controller_was_down_is_deleted() {
    let mut fleet = fleet(&[count()]);
    fleet.writing = false;
    fleet.delete("", POLICY, "everywhere");
    assert_eq!(fleet.combined_statuses().len(), 1);
    fleet.writing = true;
    fleet.restart();
    assert_eq!(fleet.combined_statuses().len(), 0);
}

#[test]
fn nothing_is_deleted_while_its_reason_cannot_be_read() {
    let mut fleet = fleet(&[count()]);
    for kind in [DEPLOYMENT, POLICY, COLLECTOR] {
        fleet
            .unreadable("", kind, Some(Unreadable::Failing { why: "500".into() }))
            .restart()
            .pass(seconds(60));
        assert_eq!(fleet.combined_statuses().len(), 1, "{kind}");
        fleet.unreadable("", kind, None);
        assert_eq!(fleet.counts(), [3, 3, 0, 0], "{kind}");
    }
}

#[test]
fn a_deleted_or_edited_combined_status_is_restored() {
    let mut fleet = fleet(&[count()]);
    let name = fleet.combined_status()["metadata"]["name"].as_str().expect("a name").to_owned();
    let results = fleet.combined_status()["results"].clone();
    fleet.edit("", (COMBINED, &name), |status| {
        status["results"] = json!([]);
        status["metadata"]["labels"] = json!({"mine": "stays"});
        status["metadata"]["annotations"] = json!({"note": "stays"});
    });
    assert_eq!(fleet.combined_status()["results"], results);
    let metadata = &fleet.combined_status()["metadata"];
    assert_eq!(metadata["labels"]["status.bellwether.dev/name"], "web");
    assert_eq!(
        (&metadata["labels"]["mine"], &metadata["annotations"]["note"]),
        (&json!("stays"), &json!("stays"))
    );
    fleet.delete("", COMBINED, &name);
    assert_eq!(fleet.combined_status()["results"], results);
}

#[test]
fn a_combined_status_without_reason_is_deleted() {
    let mut fleet = fleet(&[count()]);
    let mut stray = fleet.combined_status().clone();
    stray["metadata"] = json!({"name": "x.y", "namespace": "shop"});
    fleet.put("", stray);
    assert_eq!(fleet.combined_statuses().len(), 1);
}

#[test]
fn a_recreated_object_has_another_combined_status() {
    let mut fleet = fleet(&[count()]);
    let before = fleet.combined_status()["metadata"]["name"].clone();
    fleet.delete("", DEPLOYMENT, "web");
    assert_eq!(fleet.combined_statuses().len(), 0);
    fleet.put("", deployment("web", None));
    assert_ne!(fleet.combined_status()["metadata"]["name"], before);
    assert_eq!(fleet.counts(), [3, 3, 0, 0]);
}

#[test]
fn cluster_scoped_objects_are_reported_in_a_namespace_of_their_own() {
    let mut fleet = Fleet::new(&["a"]);
    let role = |name: &str| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name}});
    fleet.put("", count()).put("", role("system:web")).put("a", role("system:web"));
    fleet.put(
        "",
        policy(
            "roles",
            &json!({
                "clusterSelectors": [{}],
                "downsync": [{"resources": ["clusterroles"], "statusCollectors": ["count"]}],
            }),
        ),
    );
    let metadata = &fleet.combined_status()["metadata"];
    assert_eq!(metadata["namespace"], "bellwether-report");
    let label = metadata["labels"]["status.bellwether.dev/name"].as_str().expect("a label");
    assert!(label.starts_with("system-web-"), "{label}");
    assert_eq!(fleet.counts(), [1, 1, 0, 0]);
}

#[test]
fn lost_responses_and_conflicts_end_in_the_same_state() {
    for faults in [
        [Fault::LoseResponse, Fault::LoseResponse, Fault::Conflict],
        [Fault::Fail, Fault::Conflict, Fault::LoseResponse],
        [Fault::Conflict, Fault::Fail, Fault::Conflict],
    ] {
        let mut fleet = fleet(&[available()]);
        for (number, fault) in faults.into_iter().enumerate() {
            fleet.faults.push_back(fault);
            fleet.edit("a", (DEPLOYMENT, "web"), |web| web["status"]["availableReplicas"] = number.into());
            fleet.pass(seconds(60));
            assert_eq!(fleet.rows("available")[0][1], number, "{faults:?}");
        }
        let status = fleet.combined_status().clone();
        fleet.delete("", POLICY, "everywhere").faults.push_back(Fault::LoseResponse);
        fleet.pass(seconds(60));
        assert_eq!(fleet.combined_statuses().len(), 0, "{faults:?}: {status}");
    }
}

#[test]
fn a_burst_is_a_handful_of_writes() {
    let mut fleet = fleet(&[available()]);
    let writes = fleet.writes.len();
    for number in 0..10_000 {
        let cluster = ["a", "b", "c"][number % 3];
        fleet
            .edit_now(cluster, (DEPLOYMENT, "web"), |web| web["status"]["availableReplicas"] = number.into());
    }
    fleet.settle();
    let available: Vec<_> = fleet.rows("available").iter().map(|row| row[1].clone()).collect();
    assert_eq!(available, [9999, 9997, 9998]);
    let writes = fleet.writes.len() - writes;
    assert!(writes <= 2, "{writes} writes");
}

#[test]
fn every_write_succeeds() {
    let mut fleet = fleet(&[count(), available()]);
    fleet.edit("a", (DEPLOYMENT, "web"), |web| web["status"]["availableReplicas"] = 1.into());
    fleet.restart().delete("", DEPLOYMENT, "web");
    for (slot, write, outcome) in &fleet.writes {
        assert!(matches!(outcome, Outcome::Written(_)), "{} {write:?}: {outcome:?}", slot.object);
        assert!(!matches!(write, Write::Delete { .. }) || slot.object.kind.to_string() == COMBINED);
    }
}
