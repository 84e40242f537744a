//! What the stored status says about Pods and endpoints, while these cannot be listed after a restart.

use bellwether_api::State;
use bellwether_engine::Unreadable;
use bellwether_health::Source;
use jiff::SignedDuration;
use proptest::{prelude::*, sample::select};
use rstest::rstest;
use serde_json::json;

use crate::{
    actions::Action,
    against_oracle::compare,
    below::{POD, line, member, pulling, revision, run, services_and_deployments, world},
    objects::{self, app, deployment, endpoint_slice, selecting_service, with},
    world::World,
};

const REPLICA_SET: &str = "ReplicaSet.apps";
const ENDPOINT_SLICE: &str = "EndpointSlice.discovery.k8s.io";

fn failing() -> Unreadable {
    Unreadable::Failing { why: "overloaded".into() }
}

/// Another process starts while the API server cannot list a kind.
fn restart_while_failing(world: &mut World, kind: &str) {
    world.unreadable(kind, Some(failing()));
    world.restart();
    world.settle();
}

/// The Deployment `web`, failed because of its Pod, and how the status says so.
fn failed() -> (World, String) {
    let mut world = world();
    revision(&mut world, "1");
    let pod = pulling(&world, "web-1-a");
    run(&mut world, "1", pod);
    world.pass(SignedDuration::from_secs(60));
    let line = line(&world);
    assert_eq!(line, "Failed ImagePullBackOff, Failed ImagePullBackOff: Pod/web-1-a ImagePullBackOff");
    (world, line)
}

#[rstest]
#[case::pods(POD)]
#[case::replica_sets(REPLICA_SET)]
fn a_restart_forgets_no_failure_while_what_is_below_cannot_be_listed(#[case] kind: &str) {
    let (mut world, failed) = failed();
    let (stored, writes) = (member(&world), world.writes.len());
    restart_while_failing(&mut world, kind);
    world.pass(SignedDuration::from_secs(600));
    let group = world.engine.groups(world.now).remove(0);
    let seen = &group.members[0];
    assert_eq!((group.state, group.since), (State::Failed, stored.since.as_ref().map(|since| since.0)));
    assert_eq!(
        (Some(&*seen.reason), Some(&*seen.message)),
        (stored.reason.as_deref(), stored.message.as_deref())
    );
    let rule = seen.rule.as_ref().map(|rule| (rule.source, &*rule.id));
    assert_eq!((rule, &seen.cause), (Some((Source::Builtin, "Pod")), &stored.cause));
    assert_eq!(world.writes.len(), writes, "nothing is news");

    world.unreadable(kind, None);
    assert_eq!(world.settle().writes.len(), writes, "nor is what is below");
    assert_eq!(line(&world), failed);
    world.delete(POD, "web-1-a");
    assert_eq!(line(&world), "InProgress ReplicasNotReady, InProgress ReplicasNotReady: no cause");
}

#[test]
fn a_stored_failure_ends_with_its_object() {
    let (mut world, _) = failed();
    restart_while_failing(&mut world, POD);
    let writes = world.writes.len();
    world.edit("Deployment.apps", "web", |it| it["status"] = deployment("web", 3, 3)["status"].clone());
    assert_eq!(world.status("shop").state, Some(State::Ready));
    world.edit("Deployment.apps", "web", |it| it["status"] = deployment("web", 2, 3)["status"].clone());
    assert_eq!(line(&world), "InProgress ReplicasNotReady, InProgress ReplicasNotReady: no cause");
    assert_eq!(world.writes.len(), writes + 2);
}

#[rstest]
#[case::no_rights(Unreadable::Forbidden { resource: "pods".into() })]
#[case::not_served(Unreadable::NotServed)]
fn a_stored_failure_ends_when_pods_will_not_be_listed(#[case] why: Unreadable) {
    let (mut world, _) = failed();
    restart_while_failing(&mut world, POD);
    world.unreadable(POD, Some(why));
    world.settle();
    assert_eq!(line(&world), "InProgress ReplicasNotReady, InProgress ReplicasNotReady: no cause");
}

/// Only what a Pod said is kept: it missed its deadline, and goes on while no process watches.
#[test]
fn a_failure_of_the_workload_itself_is_not_kept() {
    let (mut world, _) = failed();
    let condition = |status: &str, reason: &str| {
        let mut object = deployment("web", 2, 3);
        let missed = json!([{"type": "Progressing", "status": status, "reason": reason}]);
        object["status"]["conditions"] = missed;
        object["status"].take()
    };
    world.delete(POD, "web-1-a");
    world.edit("Deployment.apps", "web", |it| it["status"] = condition("False", "ProgressDeadlineExceeded"));
    assert!(line(&world).starts_with("Failed ProgressDeadlineExceeded"), "{}", line(&world));
    let (kind, name) = objects::key("Deployment.apps", "web");
    world.server.edit(&kind, &name, |it| it["status"] = condition("True", "ReplicaSetUpdated"));
    restart_while_failing(&mut world, POD);
    assert_eq!(world.status("shop").state, Some(State::InProgress));
}

#[test]
fn a_restart_leaves_a_service_in_progress_while_its_endpoints_cannot_be_listed() {
    let mut world = World::with([app("shop", &services_and_deployments()), selecting_service("web")]);
    let without = "InProgress NoReadyEndpoints, InProgress NoReadyEndpoints: no cause";
    assert_eq!(line(&world), without);
    let writes = world.writes.len();
    restart_while_failing(&mut world, ENDPOINT_SLICE);
    assert_eq!((line(&world), world.writes.len()), (without.to_owned(), writes));
    world.put(endpoint_slice("web", true)).unreadable(ENDPOINT_SLICE, None);
    world.settle();
    assert_eq!(world.status("shop").state, Some(State::Ready));
}

/// What was listed still counts.
#[rstest]
#[case::pods(POD)]
#[case::replica_sets(REPLICA_SET)]
fn a_failed_workload_stays_failed_while_the_api_server_fails(#[case] kind: &str) {
    let (mut world, failed) = failed();
    let writes = world.writes.len();
    world.unreadable(kind, Some(failing()));
    world.pass(SignedDuration::from_secs(600));
    assert_eq!((line(&world), world.writes.len()), (failed, writes));
    world.edit("Deployment.apps", "web", |it| it["status"] = deployment("web", 3, 3)["status"].clone());
    assert_eq!(world.status("shop").state, Some(State::Ready));
}

#[test]
fn a_service_stays_in_progress_while_the_api_server_fails() {
    let mut world = World::with([app("shop", &services_and_deployments()), selecting_service("web")]);
    let before = line(&world);
    world.unreadable(ENDPOINT_SLICE, Some(failing()));
    world.settle();
    assert_eq!(line(&world), before);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    /// A Deployment whose Pod has failed for long, and a Service without endpoints.
    #[test]
    fn stored_failures_equal_the_oracle(
        actions in prop::collection::vec(action(), 1..12),
        seed in any::<u64>(),
    ) {
        let (mut world, _) = failed();
        world.put(app("shop", &services_and_deployments())).put(selecting_service("web"));
        world.shuffle(seed);
        for action in &actions {
            action.apply(&mut world);
            world.settle();
            compare(&world);
        }
    }
}

fn action() -> impl Strategy<Value = Action> {
    let why = prop_oneof![
        2 => Just(None),
        1 => Just(Some(Unreadable::Forbidden { resource: "pods".into() })),
        4 => Just(Some(failing())),
    ];
    let readable = (select(&[POD, REPLICA_SET, ENDPOINT_SLICE][..]), why);
    let workload = (2..=3i64, select(&[99, 99, 0][..])).prop_map(|(ready, observed)| {
        with(deployment("web", ready, 3), &json!({"status": {"observedGeneration": observed}}))
    });
    let deadline = json!([{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]);
    let late = with(deployment("web", 2, 3), &json!({"status": {"conditions": deadline}}));
    prop_oneof![
        4 => readable.prop_map(|(kind, why)| Action::Unreadable(kind, why)),
        4 => Just(Action::Restart),
        2 => workload.prop_map(Action::Put),
        1 => Just(Action::Put(late)),
        1 => any::<bool>().prop_map(|ready| Action::Put(endpoint_slice("web", ready))),
        1 => Just(Action::Delete(POD, "web-1-a")),
        1 => Just(Action::Delete("Deployment.apps", "web")),
        1 => Just(Action::Put(app("shop", &json!({"componentKinds": [{"kind": "Service"}]})))),
        1 => Just(Action::Put(app("shop", &services_and_deployments()))),
        1 => Just(Action::Pass(90)),
    ]
}
