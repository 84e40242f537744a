//! The status of an object that is bound to exactly one cluster.

use bellwether_engine::{Outcome, SINGLETON_LABEL};
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::fleet::{Fault, Fleet, deployment, policy};

const POLICY: &str = "BindingPolicy.bellwether.dev";
const DEPLOYMENT: &str = "Deployment.apps";

/// Binds the Deployments with `app: web` to the clusters of this name.
fn one(name: &str, clusters: &[&str], wanted: bool) -> Value {
    let selectors: Vec<_> =
        clusters.iter().map(|cluster| json!({"matchLabels": {"name": cluster}})).collect();
    policy(
        name,
        &json!({
            "clusterSelectors": selectors,
            "downsync": [{
                "apiGroup": "apps", "resources": ["deployments"],
                "objectSelectors": [{"matchLabels": {"app": "web"}}], "wantSingletonReportedState": wanted,
            }],
            "stalenessThreshold": "30s",
        }),
    )
}

/// `web` in the hub and in two clusters, bound to `a`.
fn fleet() -> Fleet {
    let mut fleet = Fleet::new(&["a", "b"]);
    fleet.put("", deployment("web", None));
    fleet.put("a", deployment("web", Some(3))).put("b", deployment("web", Some(1)));
    fleet.put("", one("one", &["a"], true));
    fleet
}

/// The label and the status of `web` in the hub.
fn web(fleet: &Fleet) -> (bool, Value) {
    let web = fleet.get(DEPLOYMENT, "web").expect("it exists");
    (web["metadata"]["labels"][SINGLETON_LABEL] == "true", web["status"]["availableReplicas"].clone())
}

fn condition(fleet: &Fleet, name: &str) -> (String, String) {
    let policy = fleet.get(POLICY, name).expect("it exists");
    let conditions = policy["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let condition =
        conditions.into_iter().find(|condition| condition["type"] == "SingletonsApply").unwrap_or_default();
    let text = |field: &str| condition[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("message"))
}

#[test]
fn the_status_of_the_only_cluster_is_copied() {
    let mut fleet = fleet();
    assert_eq!(web(&fleet), (true, json!(3)));
    assert_eq!(condition(&fleet, "one").0, "True");
    fleet.edit("a", (DEPLOYMENT, "web"), |web| web["status"]["availableReplicas"] = 2.into());
    assert_eq!(web(&fleet), (true, json!(2)));
    let labels = &fleet.get(DEPLOYMENT, "web").expect("it exists")["metadata"]["labels"];
    assert_eq!(labels["app"], "web", "other labels stay");
    assert_eq!(fleet.combined_statuses().len(), 0, "no collector is named");
}

#[test]
fn the_label_comes_before_the_first_status() {
    let fleet = fleet();
    let to_web = fleet.writes.iter().filter(|(slot, ..)| slot.object.kind.to_string() == DEPLOYMENT);
    let outcomes: Vec<_> = to_web.map(|(_, write, outcome)| (format!("{write:?}"), outcome)).collect();
    assert_eq!(outcomes.len(), 2, "{outcomes:?}");
    assert!(outcomes[0].0.contains("labels") && outcomes[1].0.contains("part: Status"), "{outcomes:?}");
    assert!(outcomes.iter().all(|(_, outcome)| matches!(outcome, Outcome::Written(_))), "{outcomes:?}");
}

#[test]
fn with_two_clusters_the_status_is_cleared() {
    let mut fleet = fleet();
    fleet.put("", one("one", &["a", "b"], true));
    assert_eq!(web(&fleet), (false, Value::Null));
    let expected = "Deployment.apps shop/web is bound to 2 clusters by the policies that ask for its status";
    assert_eq!(condition(&fleet, "one"), ("False".to_owned(), expected.to_owned()));
    fleet.put("", one("one", &["b"], true));
    assert_eq!(web(&fleet), (true, json!(1)));
    fleet.remove_cluster("b");
    assert_eq!(web(&fleet), (false, Value::Null));
    assert_eq!(condition(&fleet, "one").1, "Deployment.apps shop/web is bound to no cluster");
}

#[test]
fn objects_that_are_no_singletons_are_named_in_the_same_order_after_a_restart() {
    let mut fleet = fleet();
    fleet.put("", one("one", &["a", "b"], true));
    let mut other = deployment("other", None);
    other["metadata"]["labels"]["app"] = "web".into();
    fleet.put("", other);
    let before = condition(&fleet, "one");
    assert!(before.1.contains("shop/web") && before.1.contains("shop/other"), "{before:?}");
    fleet.writes.clear();
    fleet.restart().pass(SignedDuration::from_secs(60));
    assert_eq!((condition(&fleet, "one"), fleet.writes.len()), (before, 0));
}

#[test]
fn policies_that_ask_decide_together() {
    let mut fleet = fleet();
    fleet.put("", one("other", &["b"], false));
    assert_eq!(web(&fleet), (true, json!(3)), "it does not ask");
    fleet.put("", one("other", &["b"], true));
    assert_eq!(web(&fleet), (false, Value::Null));
    assert_eq!(condition(&fleet, "one").0, "False");
    fleet.put("", one("other", &["a"], true));
    assert_eq!(web(&fleet), (true, json!(3)), "both mean the same cluster");
    fleet.delete("", POLICY, "one");
    assert_eq!(web(&fleet), (true, json!(3)));
    fleet.delete("", POLICY, "other");
    assert_eq!(web(&fleet), (false, Value::Null));
}

#[test]
fn what_is_not_wanted_any_more_is_cleared() {
    for change in ["flag", "policy", "clause"] {
        for is_down in [false, true] {
            let mut fleet = fleet();
            fleet.writing = !is_down;
            match change {
                "flag" => fleet.put("", one("one", &["a"], false)),
                "policy" => fleet.delete("", POLICY, "one"),
                _ => fleet.edit("", (POLICY, "one"), |policy| {
                    policy["spec"]["downsync"][0]["resources"] = json!(["statefulsets"]);
                }),
            };
            if is_down {
                assert_eq!(web(&fleet), (true, json!(3)), "{change}");
                fleet.writing = true;
                fleet.restart();
            }
            assert_eq!(web(&fleet), (false, Value::Null), "{change}, {is_down}");
            fleet.pass(SignedDuration::from_secs(60));
            let expected = usize::from(change == "flag");
            let followed = fleet.followed("").iter().filter(|kind| *kind == DEPLOYMENT).count();
            assert_eq!(followed, expected, "{change}, {is_down}");
        }
    }
}

#[test]
fn a_stale_cluster_changes_nothing() {
    let mut fleet = fleet();
    fleet.stop("a").pass(SignedDuration::from_secs(120));
    assert_eq!(web(&fleet), (true, json!(3)));
    fleet.resume("a").delete("a", DEPLOYMENT, "web");
    assert_eq!(web(&fleet), (true, Value::Null), "the object is gone there");
}

#[test]
fn namespaces_are_exempt() {
    let mut fleet = Fleet::new(&["a"]);
    let namespace = |phase: &str| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}, "status": {"phase": phase}});
    fleet.put("", namespace("Active")).put("a", namespace("Terminating"));
    fleet.put(
        "",
        policy(
            "namespaces",
            &json!({
                "clusterSelectors": [{}],
                "downsync": [{"resources": ["namespaces"], "wantSingletonReportedState": true}],
            }),
        ),
    );
    assert_eq!(fleet.get("Namespace", "shop").expect("it exists")["status"]["phase"], "Active");
    assert_eq!(condition(&fleet, "namespaces").1, "Namespace shop is of an exempt kind");
}

#[test]
fn faults_end_in_the_same_state() {
    for fault in [Fault::LoseResponse, Fault::Fail, Fault::Conflict] {
        let mut fleet = fleet();
        for available in [5, 4] {
            fleet.faults.push_back(fault);
            fleet.edit("a", (DEPLOYMENT, "web"), |web| web["status"]["availableReplicas"] = available.into());
            fleet.pass(SignedDuration::from_secs(60));
            assert_eq!(web(&fleet), (true, json!(available)), "{fault:?}");
        }
        fleet.faults.extend([fault, Fault::None, fault]);
        fleet.delete("", POLICY, "one").pass(SignedDuration::from_secs(120));
        assert_eq!(web(&fleet), (false, Value::Null), "{fault:?}");
    }
}

#[test]
fn another_writer_of_the_status_is_not_fought_for_ever() {
    let mut fleet = fleet();
    let writes = fleet.writes.len();
    for round in 0..200 {
        fleet.edit("", (DEPLOYMENT, "web"), |web| web["status"]["availableReplicas"] = round.into());
    }
    let writes = fleet.writes.len() - writes;
    assert!(writes < 30, "{writes} writes");
    fleet.pass(SignedDuration::from_mins(10));
    assert_eq!(web(&fleet), (true, json!(3)));
}
