//! Queries for the rows of bound objects: filters, order and pages.

use std::{collections::BTreeSet, sync::Arc};

use bellwether_engine::{BoundRow, BoundRows, BoundRowsQuery, GroupKind, RowFilter, Unreadable};
use bellwether_model::State;
use bellwether_tables::Collector;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::fleet::{Fleet, collector, deployment, policy};

const POLICY: &str = "BindingPolicy.bellwether.dev";
const DEPLOYMENT: &str = "Deployment.apps";

/// Binds these Deployments to the clusters that have a label.
fn binding(name: &str, label: &str, objects: &[&str], collectors: &[&str]) -> Value {
    policy(
        name,
        &json!({
            "clusterSelectors": [{"matchExpressions": [{"key": label, "operator": "Exists"}]}],
            "downsync": [{
                "apiGroup": "apps", "resources": ["deployments"], "objectNames": objects,
                "statusCollectors": collectors,
            }],
            "stalenessThreshold": "30s",
        }),
    )
}

fn available() -> Value {
    let select = json!([{"name": "available", "def": "returned.status.availableReplicas"}]);
    collector("available", &json!({"select": select}))
}

/// `db` and `web` in the hub and in the clusters `a`, `b` and `c`; not `db` in `c`.
fn fleet() -> Fleet {
    let mut fleet = Fleet::new(&["a", "b", "c"]);
    fleet.put("", available());
    for name in ["db", "web"] {
        fleet.put("", deployment(name, None));
        for (cluster, available) in [("a", 3), ("b", 2), ("c", 1)] {
            if (name, cluster) != ("db", "c") {
                fleet.put(cluster, deployment(name, Some(available)));
            }
        }
    }
    fleet.put("", binding("all", "name", &["db", "web"], &["available"]));
    fleet
}

fn query() -> BoundRowsQuery {
    BoundRowsQuery::new(GroupKind::new("apps", "Deployment"), 100)
}

/// As `web b InProgress`.
fn text(row: &BoundRow) -> String {
    format!("{} {} {}", row.key.object.name, row.key.cluster, row.state.name())
}

fn rows(fleet: &Fleet, query: &BoundRowsQuery) -> Vec<String> {
    known(fleet, query).rows.iter().map(text).collect()
}

fn known(fleet: &Fleet, query: &BoundRowsQuery) -> BoundRows {
    fleet.bound_rows(query).expect("it is known what is bound")
}

#[test]
fn an_object_has_a_row_for_each_cluster_in_order() {
    let fleet = fleet();
    let expected = [
        "db a Ready",
        "db b InProgress",
        "db c Missing",
        "web a Ready",
        "web b InProgress",
        "web c InProgress",
    ];
    assert_eq!(rows(&fleet, &query()), expected);
    let rows = known(&fleet, &query()).rows;
    let (there, missing) = (&rows[1], &rows[2]);
    assert_eq!((there.found, there.stale, there.progress), (Some(true), false, Some(66)));
    assert_eq!(there.message, "2 of 3 replicas ready");
    assert!(there.last_heard.is_some() && there.variables.is_none());
    assert_eq!(there.policies.iter().map(|name| &**name).collect::<Vec<_>>(), ["all"]);
    assert_eq!(there.metadata.labels["name"], "b");
    assert_eq!((missing.found, &*missing.message), (Some(false), "not found"));
    assert_eq!(&*missing.reason, "NotFound");
}

#[test]
fn filters_choose_objects_and_rows() {
    let mut fleet = fleet();
    fleet.label("b", &[("region", "eu")]);
    let names = |names: &[&str]| BoundRowsQuery {
        names: names.iter().map(|name| Arc::from(*name)).collect(),
        ..query()
    };
    let filter = |filter: RowFilter| BoundRowsQuery { filter, ..query() };
    let labels = |labels: Value| serde_json::from_value(labels).expect("a selector");
    assert_eq!(rows(&fleet, &names(&["web"])), ["web a Ready", "web b InProgress", "web c InProgress"]);
    let by_label = BoundRowsQuery { objects: labels(json!({"matchLabels": {"app": "db"}})), ..query() };
    assert_eq!(rows(&fleet, &by_label), ["db a Ready", "db b InProgress", "db c Missing"]);
    let cluster = RowFilter { clusters: BTreeSet::from(["a".to_owned()]), ..RowFilter::default() };
    assert_eq!(rows(&fleet, &filter(cluster)), ["db a Ready", "web a Ready"]);
    let region = labels(json!({"matchLabels": {"region": "eu"}}));
    let region = RowFilter { cluster_selector: region, ..RowFilter::default() };
    assert_eq!(rows(&fleet, &filter(region)), ["db b InProgress", "web b InProgress"]);
    let bad = RowFilter { states: BTreeSet::from([State::Missing, State::Ready]), ..RowFilter::default() };
    assert_eq!(rows(&fleet, &filter(bad)), ["db a Ready", "db c Missing", "web a Ready"]);
    let missing = RowFilter { found: Some(false), ..RowFilter::default() };
    assert_eq!(rows(&fleet, &filter(missing)), ["db c Missing"]);
    let stale = RowFilter { stale: Some(true), ..RowFilter::default() };
    assert!(rows(&fleet, &filter(stale)).is_empty());
    let shop = |namespace: &str| BoundRowsQuery { namespace: Some(namespace.into()), ..query() };
    assert_eq!(rows(&fleet, &shop("shop")).len(), 6);
    assert!(known(&fleet, &shop("shop")).is_any_bound);
    let other = known(&fleet, &shop("other"));
    assert!(other.rows.is_empty() && !other.is_any_bound);
    assert!(!known(&fleet, &names(&["api"])).is_any_bound, "no policy binds it");
}

/// All pages of a query, from the text of its keys.
fn pages(fleet: &mut Fleet, limit: usize, mut between: impl FnMut(&mut Fleet, usize)) -> Vec<Vec<String>> {
    let mut query = BoundRowsQuery { limit, ..query() };
    let mut pages = Vec::new();
    loop {
        let page = known(fleet, &query);
        assert!(page.rows.len() <= limit);
        pages.push(page.rows.iter().map(text).collect());
        let Some(next) = page.next else { return pages };
        query.after = Some(next.to_string().parse().expect("the text of a key"));
        between(fleet, pages.len());
    }
}

#[test]
fn pages_together_have_every_row_once() {
    let mut fleet = fleet();
    let all = rows(&fleet, &query());
    for limit in 1..8 {
        let pages = pages(&mut fleet, limit, |_, _| {});
        assert_eq!(pages.concat(), all, "pages of {limit}");
    }
}

/// One object in 10,000 is wanted.
#[test]
fn a_page_ends_after_a_bounded_number_of_objects() {
    let mut fleet = Fleet::new(&["a"]);
    fleet.put_all("", (0..10_001).map(|number| deployment(&format!("d{number:05}"), None)));
    let deployments = json!([{"apiGroup": "apps", "resources": ["deployments"]}]);
    fleet.put("", policy("all", &json!({"clusterSelectors": [{}], "downsync": deployments})));
    let last = BTreeSet::from(["d10000".into()]);
    let by_label = BoundRowsQuery {
        objects: serde_json::from_value(json!({"matchLabels": {"app": "d10000"}})).expect("a selector"),
        ..query()
    };
    for query in [BoundRowsQuery { names: last.clone(), ..query() }, by_label] {
        let first = known(&fleet, &query);
        assert!(first.rows.is_empty() && !first.is_any_bound);
        let after = first.next.expect("the page ended").to_string().parse().expect("the text of a key");
        let second = known(&fleet, &BoundRowsQuery { after: Some(after), ..query });
        assert_eq!(second.rows.iter().map(text).collect::<Vec<_>>(), ["d10000 a Unknown"]);
        assert_eq!(second.next, None);
    }
    let in_namespace = BoundRowsQuery { names: last, namespace: Some("shop".into()), ..query() };
    assert_eq!(rows(&fleet, &in_namespace), ["d10000 a Unknown"], "the others are not examined");
}

#[test]
fn a_page_continues_where_the_last_one_ended_whatever_changed() {
    let mut fleet = fleet();
    let pages = pages(&mut fleet, 2, |fleet, page| {
        if page == 1 {
            // What the first page ended at is gone, and something new is before it.
            fleet.remove_cluster("b");
            fleet.put("", deployment("api", None));
            fleet.put("", binding("api", "name", &["api"], &["available"]));
        }
    });
    assert_eq!(
        pages.concat(),
        ["db a Ready", "db b InProgress", "db c Missing", "web a Ready", "web c InProgress"]
    );
}

#[test]
fn a_stale_row_says_what_was_reported_last() {
    let mut fleet = fleet();
    fleet.stop("a").pass(SignedDuration::from_secs(60));
    let stale = RowFilter { stale: Some(true), ..RowFilter::default() };
    let stale = known(&fleet, &BoundRowsQuery { filter: stale, ..query() }).rows;
    assert_eq!(stale.iter().map(text).collect::<Vec<_>>(), ["db a Unknown", "web a Unknown"]);
    assert_eq!((stale[0].found, stale[0].progress, stale[0].since), (Some(true), None, stale[0].last_heard));
    assert_eq!(&*stale[0].reason, "ClusterUnreachable");
    let expected =
        "cluster a not heard from since 2026-11-14 10:00 UTC; it last reported Ready: 3 of 3 replicas ready";
    assert_eq!(stale[0].message, expected);
}

#[test]
fn a_kind_that_cannot_be_read_says_what_to_grant() {
    let mut fleet = fleet();
    fleet.put("", deployment("api", None));
    fleet.join("d", &[]);
    let forbidden = Unreadable::Forbidden { resource: "deployments".into() };
    fleet.unreadable("d", DEPLOYMENT, Some(forbidden));
    let cluster = RowFilter { clusters: BTreeSet::from(["d".to_owned()]), ..RowFilter::default() };
    let rows = known(&fleet, &BoundRowsQuery { filter: cluster, ..query() }).rows;
    assert_eq!((rows[0].found, rows[0].stale), (None, true));
    assert_eq!(&*rows[0].reason, "Forbidden");
    let expected = "forbidden; grant get, list and watch on deployments.apps";
    assert_eq!(rows[0].message, expected);
}

/// Terminals show the members of the policy, HTTP the rows.
#[test]
fn rows_and_members_say_the_same() {
    let mut fleet = Fleet::for_readers(&["forbidden", "missing", "ready", "silent", "unserved"]);
    fleet.put("", available()).put("", deployment("web", None));
    for cluster in ["forbidden", "ready", "silent"] {
        fleet.put(cluster, deployment("web", Some(3)));
    }
    fleet.put("", binding("all", "name", &["web"], &["available"]));
    fleet.stop("silent").pass(SignedDuration::from_mins(1));
    fleet.unreadable("forbidden", DEPLOYMENT, Some(Unreadable::Forbidden { resource: "deployments".into() }));
    fleet.unreadable("unserved", DEPLOYMENT, Some(Unreadable::NotServed));
    let reasons = ["Forbidden", "NotFound", "", "ClusterUnreachable", "NotFound"];
    for asks in [true, false] {
        if !asks {
            fleet.put("", binding("all", "name", &["web"], &[]));
        }
        let mut members = fleet.groups().remove(0).members;
        members.sort_by(|one, other| one.cluster.cmp(&other.cluster));
        let rows = known(&fleet, &query()).rows;
        assert_eq!((members.len(), rows.len()), (5, 5));
        for ((row, member), reason) in rows.iter().zip(&members).zip(reasons) {
            assert_eq!(Some(&row.key.cluster), member.cluster.as_ref());
            assert_eq!(
                (row.state, &*row.reason, &row.message, row.since),
                (member.state, &*member.reason, &member.message, member.since)
            );
            let is_expected = reason.is_empty() || *row.reason == *reason;
            assert!(is_expected || !asks, "{}: {}", row.key.cluster, row.reason);
        }
    }
}

/// As in the CombinedStatus, whose collector reads the UID.
#[test]
fn a_row_waits_for_the_uid_of_its_cluster() {
    let mut fleet = Fleet::new(&["a"]);
    fleet.put("", collector("uid", &json!({"select": [{"name": "uid", "def": "inventory.uid"}]})));
    fleet.put("", deployment("web", None)).put("a", deployment("web", Some(3)));
    let everywhere = json!([{"apiGroup": "apps", "resources": ["deployments"], "statusCollectors": ["uid"]}]);
    fleet.put("", policy("all", &json!({"clusterSelectors": [{}], "downsync": everywhere})));
    fleet.join_unidentified("b");
    let b = |fleet: &Fleet| known(fleet, &query()).rows.remove(1);
    let waiting = b(&fleet);
    assert_eq!((waiting.found, waiting.state, &*waiting.reason), (None, State::Unknown, "NotRead"));
    fleet.identify("b", "uid-of-b");
    assert_eq!((b(&fleet).found, b(&fleet).state), (Some(false), State::Missing));
}

#[test]
fn an_object_under_two_policies_has_one_row_for_each_cluster() {
    let mut fleet = fleet();
    fleet.label("a", &[("edge", "")]);
    fleet.put("", binding("edges", "edge", &["web"], &[]));
    let web = known(&fleet, &BoundRowsQuery { names: BTreeSet::from(["web".into()]), ..query() }).rows;
    let of = |row: &BoundRow| (row.key.cluster.to_string(), row.policies.len());
    let expected = [("a".to_owned(), 2), ("b".to_owned(), 1), ("c".to_owned(), 1)];
    assert_eq!(web.iter().map(of).collect::<Vec<_>>(), expected);
}

#[test]
fn a_policy_that_asks_for_nothing_reads_nothing() {
    let mut fleet = fleet();
    fleet.delete("", POLICY, "all");
    fleet.put("", binding("all", "name", &["web"], &[]));
    let web = known(&fleet, &query()).rows;
    assert_eq!(web.iter().map(text).collect::<Vec<_>>(), ["web a Unknown", "web b Unknown", "web c Unknown"]);
    assert_eq!(web[0].found, None);
    assert_eq!(&*web[0].reason, "NotRead");
    assert!(web[0].message.starts_with("not read: "), "{}", web[0].message);
}

#[test]
fn nothing_is_known_before_the_policies_are_listed() {
    let mut fleet = fleet();
    fleet.unreadable("", DEPLOYMENT, None);
    assert!(fleet.bound_rows(&query()).is_some());
    assert_eq!(Fleet::before_its_lists().bound_rows(&query()), None);
}

/// Variables are complete where the facts have every field that the collectors read.
#[test]
fn variables_come_from_the_facts_as_far_as_they_are_kept() {
    let fleet = fleet();
    let variables = |def: &str| {
        let spec = json!({"select": [{"name": "it", "def": def}]});
        let collector = Collector::compile(&serde_json::from_value(spec).expect("a spec")).expect("valid");
        let query = BoundRowsQuery { collectors: Some(vec![Arc::new(collector)]), ..query() };
        known(&fleet, &query).rows.into_iter().nth(1).and_then(|row| row.variables).expect("variables")
    };
    let json = |value: &bellwether_model::Value<'_>| serde_json::to_value(value).expect("JSON");
    let kept = variables("returned.status.availableReplicas");
    assert_eq!(kept.returned.as_ref().map(json), Some(json!({"status": {"availableReplicas": 2}})));
    assert_eq!(json(&kept.inventory)["name"], "b");
    assert_eq!(json(&kept.propagation)["health"], "InProgress");
    assert_eq!(variables("returned.spec.replicas").returned, None, "no collector of the policy reads it");
    assert_eq!(variables("obj.spec.replicas").obj, None);
    let identity = variables("obj.metadata.name + obj.metadata.namespace").obj.expect("facts have it");
    assert_eq!(json(&identity)["metadata"]["name"], "db");
}
