//! BindingPolicies as groups, and the clusters of other groups, as readers see them.

use bellwether_api::NotReportingReason::{Missing, Stale};
use bellwether_engine::{Detail, Group, Member, Unreadable};
use bellwether_model::State;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::fleet::{Fleet, deployment, policy};

const DEPLOYMENT: &str = "Deployment.apps";

/// Binds the Deployments to all clusters. It asks for nothing.
fn everywhere() -> Value {
    policy(
        "everywhere",
        &json!({
            "clusterSelectors": [{}],
            "downsync": [{"apiGroup": "apps", "resources": ["deployments"]}],
            "stalenessThreshold": "30s",
        }),
    )
}

/// `web` in the hub, in `a` with all replicas, in `b` with some; not in `c`.
fn fleet() -> Fleet {
    let mut fleet = Fleet::for_readers(&["a", "b", "c"]);
    fleet.put("", deployment("web", None)).put("a", deployment("web", Some(3)));
    fleet.put("b", deployment("web", Some(2))).put("", everywhere());
    fleet
}

fn group(fleet: &Fleet, name: &str) -> Group {
    fleet.groups().into_iter().find(|group| *group.name.name == *name).expect("the group is known")
}

/// `web @a Ready`
fn members(group: &Group) -> Vec<String> {
    let line = |member: &Member| {
        let cluster = member.cluster.as_deref().unwrap_or_default();
        format!("{} @{cluster} {}", member.name.name, member.state.name())
    };
    group.members.iter().map(line).collect()
}

/// Reporting, bound, and those that do not report.
fn clusters(group: &Group) -> Option<String> {
    let clusters = group.clusters.as_ref()?;
    let silent = clusters.not_reporting.iter().map(|it| format!(" {} {:?}", it.name, it.reason));
    Some(format!("{}/{}{}", clusters.reporting, clusters.bound, silent.collect::<String>()))
}

/// What stands for the condition Ready.
fn ready(group: &Group) -> String {
    let Detail::BindingPolicy { ready, .. } = &group.detail else { panic!("a policy") };
    format!("{} {}: {}", ready.status.name(), ready.reason, ready.message)
}

fn message(group: &Group, cluster: &str) -> String {
    let is_in = |member: &&Member| member.cluster.as_deref() == Some(cluster);
    let member = group.members.iter().find(is_in).expect("the cluster has a member");
    format!("{}: {}", member.reason, member.message)
}

#[test]
fn the_members_of_a_policy_are_its_objects_in_each_cluster() {
    let group = group(&fleet(), "everywhere");
    assert_eq!(members(&group), ["web @c Missing", "web @b InProgress", "web @a Ready"]);
    assert_eq!((group.state, group.counts.ready, group.counts.total), (State::Missing, 1, 3));
    assert_eq!(group.progress, Some(55), "the mean of 100, 66 and 0");
    assert_eq!(clusters(&group).as_deref(), Some("2/3 c Missing"));
    assert_eq!(ready(&group), "False ComponentsMissing: Deployment/web @c: not found");
    let conditions: Vec<_> = group.conditions.iter().map(|condition| condition.type_).collect();
    assert_eq!(conditions, ["Resolved"], "it names no collector and asks for no singleton");
}

#[test]
fn a_policy_that_names_a_kind_which_was_not_read_is_not_ready() {
    let mut fleet = fleet();
    fleet.put("b", deployment("web", Some(3))).put("c", deployment("web", Some(3)));
    let clause = |group: &str, resource: &str| json!({"apiGroup": group, "resources": [resource]});
    let spec = json!({"clusterSelectors": [{}], "downsync": [clause("apps", "deployments"), clause("acme.io", "gadgets")]});
    fleet.put("", policy("everywhere", &spec));
    let group = group(&fleet, "everywhere");
    assert_eq!((group.state, group.counts.ready, group.counts.total), (State::Unknown, 3, 3));
    assert!(ready(&group).starts_with("Unknown NotServed: gadgets.acme.io"), "{}", ready(&group));
}

#[test]
fn a_policy_is_ready_if_every_object_is_ready_in_every_cluster() {
    let mut fleet = fleet();
    fleet.put("b", deployment("web", Some(3))).put("c", deployment("web", Some(3)));
    let group = group(&fleet, "everywhere");
    assert_eq!((group.state, group.progress), (State::Ready, Some(100)));
    assert_eq!(ready(&group), "True ComponentsReady: All objects are ready in all clusters");
    assert_eq!(clusters(&group).as_deref(), Some("3/3"));
}

#[test]
fn a_policy_without_objects_or_clusters_is_unknown() {
    let mut fleet = fleet();
    fleet.delete("", DEPLOYMENT, "web");
    let without_objects = group(&fleet, "everywhere");
    assert_eq!((without_objects.state, without_objects.members.len()), (State::Unknown, 0));
    assert_eq!(ready(&without_objects), "Unknown NoComponents: The policy binds no objects");
    assert_eq!(clusters(&without_objects).as_deref(), Some("3/3"), "they are bound, and answer");
    let mut fleet = Fleet::for_readers(&[]);
    fleet.put("", deployment("web", None)).put("", everywhere());
    let without_clusters = group(&fleet, "everywhere");
    assert_eq!((without_clusters.state, without_clusters.members.len()), (State::Unknown, 0));
    assert_eq!(ready(&without_clusters), "Unknown NoComponents: The policy selects no clusters");
    assert_eq!(without_clusters.clusters, None);
}

/// What a stale cluster reported last does not make the policy fine.
#[test]
fn a_stale_cluster_is_unknown_and_named() {
    let mut fleet = fleet();
    fleet.put("b", deployment("web", Some(3))).put("c", deployment("web", Some(3)));
    fleet.stop("a").pass(SignedDuration::from_mins(1));
    let stale = group(&fleet, "everywhere");
    assert_eq!(members(&stale), ["web @a Unknown", "web @b Ready", "web @c Ready"]);
    assert_eq!((stale.state, clusters(&stale).as_deref()), (State::Unknown, Some("2/3 a Stale")));
    assert_eq!(
        message(&stale, "a"),
        "ClusterUnreachable: cluster a not heard from since 2026-11-14 10:00 UTC; it last reported Ready: 3 of 3 replicas ready"
    );
    assert_eq!(stale.clusters.expect("it has clusters").not_reporting[0].last_heard, stale.since);
    fleet.resume("a");
    assert_eq!(group(&fleet, "everywhere").state, State::Ready);
}

#[test]
fn a_kind_that_cannot_be_read_in_one_cluster_is_unknown_there() {
    let mut fleet = fleet();
    let forbidden = Unreadable::Forbidden { resource: "deployments".into() };
    fleet.unreadable("b", DEPLOYMENT, Some(forbidden));
    let group = group(&fleet, "everywhere");
    assert_eq!(members(&group), ["web @c Missing", "web @b Unknown", "web @a Ready"]);
    assert_eq!(
        message(&group, "b"),
        "Forbidden: forbidden; grant get, list and watch on deployments.apps; it last reported InProgress: 2 of 3 replicas ready"
    );
    let silent = group.clusters.expect("it has clusters").not_reporting;
    assert_eq!([silent[0].reason, silent[1].reason], [Stale, Missing]);
    assert_eq!(silent[0].unreadable.as_deref(), Some("Deployment.apps: forbidden"));
}

#[test]
fn the_clusters_of_an_application_are_those_of_its_members() {
    let mut fleet = fleet();
    fleet.put(
        "",
        json!({
            "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application",
            "metadata": {"name": "shop", "namespace": bellwether_simulation::objects::NAMESPACE},
            "spec": {"selector": {}, "components": {"web": {"group": "apps", "kind": "Deployment", "name": "web"}}},
        }),
    );
    assert_eq!(clusters(&group(&fleet, "shop")).as_deref(), Some("2/3 c Missing"));
    fleet.delete("", "BindingPolicy.bellwether.dev", "everywhere");
    assert_eq!(clusters(&group(&fleet, "shop")), None, "no policy binds its members");
}

/// A controller does not read what no clause asks for.
#[test]
fn a_controller_has_no_policies_among_its_groups() {
    let mut fleet = Fleet::new(&["a"]);
    fleet.put("", deployment("web", None)).put("", everywhere());
    assert!(fleet.groups().is_empty() && fleet.followed("a").is_empty());
}
