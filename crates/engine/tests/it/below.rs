//! What is below members: Pods of workloads, endpoints of Services, suspended members.

use bellwether_api::{ObjectStatus, State};
use bellwether_engine::{GroupKind, Unreadable};
use jiff::{SignedDuration, Timestamp};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    objects::{
        self, app, app_of, app_of_kinds, daemon_set, deployment, endpoint_slice, failing_pod, owned_by, pod,
        replica_set, selecting_service, stateful_set, with,
    },
    world::World,
};

pub(crate) const POD: &str = "Pod";
const BACK_OFF: &str = "ImagePullBackOff";

/// An Application of Deployments, and the Deployment `web` with 2 of 3 replicas ready.
pub(crate) fn world() -> World {
    World::with([app_of_kinds("shop"), deployment("web", 2, 3)])
}

fn uid(world: &World, kind: &str, name: &str) -> String {
    let (kind, name) = objects::key(kind, name);
    world.server.get(&kind, &name).expect("the owner is there")["metadata"]["uid"]
        .as_str()
        .expect("a uid")
        .to_owned()
}

/// Adds a revision of the Deployment `web`.
pub(crate) fn revision(world: &mut World, number: &str) {
    let owner = uid(world, "Deployment.apps", "web");
    let name = format!("web-{number}");
    world.put(owned_by(replica_set(&name, number), "Deployment", "web", &owner));
}

/// Adds a Pod of a revision of the Deployment `web`.
pub(crate) fn run(world: &mut World, number: &str, pod: Value) {
    let set = format!("web-{number}");
    let owner = uid(world, "ReplicaSet.apps", &set);
    world.put(owned_by(pod, "ReplicaSet", &set, &owner));
}

pub(crate) fn pulling(world: &World, name: &str) -> Value {
    failing_pod(name, BACK_OFF, &json!(world.now.to_string()))
}

pub(crate) fn member(world: &World) -> ObjectStatus {
    world.status("shop").objects.remove(0)
}

/// State and reason of the Application, state and reason of its first member, and its cause.
pub(crate) fn line(world: &World) -> String {
    let (status, member) = (world.status("shop"), member(world));
    let cause = member.cause.map_or_else(
        || "no cause".to_owned(),
        |cause| format!("{}/{} {}", cause.kind, cause.name, cause.reason.unwrap_or_default()),
    );
    let text = |reason: Option<String>| reason.unwrap_or_default();
    format!(
        "{} {}, {} {}: {cause}",
        status.state.expect("a state").name(),
        text(status.reason),
        member.status.name(),
        text(member.reason)
    )
}

#[test]
fn a_pod_that_keeps_failing_fails_its_deployment_after_a_minute() {
    let mut world = world();
    revision(&mut world, "1");
    let begin = world.now;
    run(&mut world, "1", failing_pod("web-1-a", BACK_OFF, &json!(begin.to_string())));
    assert_eq!(
        line(&world),
        "InProgress ReplicasNotReady, InProgress ReplicasNotReady: Pod/web-1-a ImagePullBackOff"
    );
    world.pass(SignedDuration::from_secs(60));
    assert_eq!(
        line(&world),
        "Failed ImagePullBackOff, Failed ImagePullBackOff: Pod/web-1-a ImagePullBackOff"
    );
    let member = member(&world);
    assert_eq!(member.message.as_deref(), Some("Pod web-1-a: container main cannot pull the image: no way"));
    assert_eq!(member.rule.as_deref(), Some("builtin/Pod"));
    let since = member.since.map(|since| since.0.as_second());
    assert_eq!(since, Some(begin.as_second()), "since the Pod stopped being ready");
    let condition = world.of_app("shop", "Ready");
    assert_eq!(
        condition,
        "False ComponentsFailed: Deployment/web: ImagePullBackOff: Pod web-1-a: container main cannot pull the image: no way"
    );
    world.restart();
    world.settle();
    assert_eq!(world.status("shop").state, Some(State::Failed), "also after a restart");
    world.edit("Deployment.apps", "web", |it| it["status"] = deployment("web", 3, 3)["status"].clone());
    assert_eq!(world.status("shop").state, Some(State::Ready), "all replicas are ready");
    assert_eq!(member_count(&world), (1, 1));
}

fn member_count(world: &World) -> (i32, i32) {
    let counts = world.status("shop").object_counts.expect("counts");
    (counts.ready, counts.total)
}

#[rstest]
#[case::invalid_name("InvalidImageName")]
#[case::never_pulled("ErrImageNeverPull")]
fn what_cannot_heal_fails_at_once(#[case] reason: &str) {
    let mut world = world();
    revision(&mut world, "1");
    let failing = failing_pod("web-1-a", reason, &json!(world.now.to_string()));
    run(&mut world, "1", failing);
    assert_eq!(world.status("shop").state, Some(State::Failed));
}

#[test]
fn pods_of_old_revisions_do_not_count() {
    let mut world = world();
    revision(&mut world, "9");
    let old = pulling(&world, "web-9-a");
    run(&mut world, "9", old);
    revision(&mut world, "10");
    world.pass(SignedDuration::from_secs(90));
    assert_eq!(line(&world), "InProgress ReplicasNotReady, InProgress ReplicasNotReady: no cause");
    // A rollback renews the number of the old one.
    world.edit("ReplicaSet.apps", "web-9", |it| {
        it["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = json!("11");
    });
    assert_eq!(world.status("shop").state, Some(State::Failed));
    world.delete("ReplicaSet.apps", "web-9");
    assert_eq!(world.status("shop").state, Some(State::InProgress));
}

#[test]
fn pods_of_a_stateful_set_count_by_their_revision() {
    let kinds = json!({"componentKinds": [{"group": "apps", "kind": "StatefulSet"}]});
    let mut world = World::with([app("shop", &kinds), stateful_set("db", 2, 3, "new")]);
    let owner = uid(&world, "StatefulSet.apps", "db");
    let of = |world: &World, revision: &str| {
        let labels = json!({"metadata": {"labels": {"controller-revision-hash": revision}}});
        owned_by(with(pulling(world, "db-0"), &labels), "StatefulSet", "db", &owner)
    };
    let old = of(&world, "old");
    world.put(old).pass(SignedDuration::from_secs(90));
    assert_eq!(world.status("shop").state, Some(State::InProgress));
    world.edit(POD, "db-0", |it| it["metadata"]["labels"]["controller-revision-hash"] = json!("new"));
    assert_eq!(world.status("shop").state, Some(State::Failed));
}

#[rstest]
#[case::recovered(pod("web-1-a", true))]
#[case::finished(with(pod("web-1-a", false), &json!({"status": {"phase": "Failed"}})))]
#[case::terminating(with(
    failing_pod("web-1-a", BACK_OFF, &json!("2026-11-14T09:00:00Z")),
    &json!({"metadata": {"deletionTimestamp": "2026-11-14T09:59:00Z"}})
))]
#[case::in_another_namespace(with(
    failing_pod("web-1-a", BACK_OFF, &json!("2026-11-14T09:00:00Z")),
    &json!({"metadata": {"namespace": "elsewhere"}})
))]
fn a_pod_that_does_not_count(#[case] pod: Value) {
    let mut world = world();
    revision(&mut world, "1");
    run(&mut world, "1", pod);
    world.pass(SignedDuration::from_secs(90));
    assert_eq!(line(&world), "InProgress ReplicasNotReady, InProgress ReplicasNotReady: no cause");
}

/// Pods come and go in a rollout: those that are just starting cause no write.
#[test]
fn a_starting_pod_changes_nothing_until_it_takes_long() {
    let mut world = world();
    revision(&mut world, "1");
    let since = world.now.to_string();
    let writes = world.writes.len();
    let starting = with(
        pod("web-1-a", false),
        &json!({"status": {"conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": since}]}}),
    );
    run(&mut world, "1", starting);
    assert_eq!(world.writes.len(), writes, "{:?}", world.writes.last());
    world.pass(SignedDuration::from_secs(61));
    assert_eq!(
        line(&world),
        "InProgress ReplicasNotReady, InProgress ReplicasNotReady: Pod/web-1-a PodNotReady"
    );
}

#[test]
fn a_workload_that_is_ready_is_ready_whatever_its_pods_say() {
    let mut world = World::with([app_of_kinds("shop"), deployment("web", 3, 3)]);
    revision(&mut world, "1");
    let failing = failing_pod("web-1-a", BACK_OFF, &json!("2026-11-14T09:00:00Z"));
    run(&mut world, "1", failing);
    world.pass(SignedDuration::from_secs(90));
    assert_eq!(world.status("shop").state, Some(State::Ready));
}

#[test]
fn without_rights_to_pods_only_the_detail_is_missing() {
    let mut world = world();
    world.unreadable(POD, Some(Unreadable::Forbidden { resource: "pods".into() }));
    world.settle();
    assert_eq!(line(&world), "InProgress ReplicasNotReady, InProgress ReplicasNotReady: no cause");
    assert!(world.of_app("shop", "Resolved").starts_with("True"));
    world.unreadable(POD, None);
    revision(&mut world, "1");
    let failing = failing_pod("web-1-a", BACK_OFF, &json!("2026-11-14T09:00:00Z"));
    run(&mut world, "1", failing);
    assert_eq!(world.status("shop").state, Some(State::Failed));
    world.unreadable(POD, Some(Unreadable::Forbidden { resource: "pods".into() }));
    world.settle();
    assert_eq!(line(&world), "InProgress ReplicasNotReady, InProgress ReplicasNotReady: no cause");
}

#[test]
fn kinds_below_are_followed_while_members_need_them() {
    let followed = |world: &World| {
        let mut kinds: Vec<_> = world.feeds.values().map(|feed| feed.kind.to_string()).collect();
        kinds.retain(|kind| !kind.contains("bellwether") && !kind.contains("app.k8s.io"));
        kinds.sort();
        kinds.join(" ")
    };
    let mut world = World::with([app_of("shop", &["web"]), app_of("blog", &["web"])]);
    assert_eq!(followed(&world), "Deployment.apps Pod ReplicaSet.apps");
    world.delete("Application.bellwether.dev", "blog");
    assert_eq!(followed(&world), "Deployment.apps Pod ReplicaSet.apps");
    let services = json!({"componentKinds": [{"kind": "Service"}]});
    world.put(app("shop", &services));
    assert_eq!(followed(&world), "EndpointSlice.discovery.k8s.io Service");
    world.delete("Application.bellwether.dev", "shop");
    assert_eq!(followed(&world), "");
}

#[test]
fn nothing_below_is_followed_if_switched_off() {
    let mut world = World::new();
    world.engine = bellwether_engine::Engine::new().with_failed_after(None);
    world.put(app_of("shop", &["web"])).put(deployment("web", 2, 3));
    assert!(!world.feeds.values().any(|feed| feed.kind == GroupKind::pod()));
    assert_eq!(line(&world), "InProgress ReplicasNotReady, InProgress ReplicasNotReady: no cause");
}

pub(crate) fn services_and_deployments() -> Value {
    json!({"componentKinds": [{"kind": "Service"}, {"group": "apps", "kind": "Deployment"}]})
}

#[test]
fn a_service_without_a_ready_endpoint_is_in_progress() {
    let mut world = World::with([app("shop", &services_and_deployments()), selecting_service("web")]);
    assert_eq!(line(&world), "InProgress NoReadyEndpoints, InProgress NoReadyEndpoints: no cause");
    world.put(endpoint_slice("web", false));
    assert_eq!(world.status("shop").state, Some(State::InProgress));
    world.put(endpoint_slice("web", true));
    assert_eq!(world.status("shop").state, Some(State::Ready));
    world.delete("EndpointSlice.discovery.k8s.io", "web-slice");
    assert_eq!(world.status("shop").state, Some(State::InProgress));
    world.put(deployment("web", 0, 0));
    assert_eq!(world.status("shop").state, Some(State::Ready), "all workloads are scaled to zero");
    world.put(deployment("api", 3, 3));
    assert_eq!(world.status("shop").state, Some(State::InProgress));
    world.unreadable(
        "EndpointSlice.discovery.k8s.io",
        Some(Unreadable::Forbidden { resource: "endpointslices".into() }),
    );
    world.settle();
    assert_eq!(world.status("shop").state, Some(State::Ready), "as before, where slices cannot be read");
}

fn all_kinds_with_services() -> Value {
    let kind = |group: &str, kind: &str| json!({"group": group, "kind": kind});
    json!({"componentKinds": [kind("apps", "Deployment"), kind("", "Service"), kind("apps", "StatefulSet")]})
}

fn scaled_to_zero(name: &str) -> Value {
    with(stateful_set(name, 0, 0, "1"), &json!({"status": {"currentReplicas": 0}}))
}

/// Members are counted by kind, so a Service comes between a Deployment and a StatefulSet.
#[rstest]
#[case::one_runs(vec![deployment("worker", 0, 0), stateful_set("db", 1, 1, "1")], State::InProgress)]
#[case::all_are_scaled_to_zero(vec![scaled_to_zero("db")], State::Ready)]
fn an_edit_does_not_change_whether_a_service_needs_endpoints(
    #[case] workloads: Vec<Value>,
    #[case] state: State,
) {
    let group = [app("shop", &all_kinds_with_services()), selecting_service("db")];
    let mut world = World::with(group.into_iter().chain(workloads));
    assert_eq!(world.status("shop").state, Some(state));
    world.edit("Application.bellwether.dev", "shop", |it| it["spec"]["description"] = json!("a shop"));
    assert_eq!(world.status("shop").state, Some(state), "after an edit");
    world.put(app("new", &all_kinds_with_services()));
    assert_eq!(world.status("new").state, Some(state), "of a new Application");
    world.restart();
    world.step(bellwether_engine::Event::Tick);
    world.deliver_in_batches();
    world.settle();
    assert_eq!(world.status("shop").state, Some(state), "after lists that came in one batch");
}

/// In one step, a workload starts, its Service loses its endpoint, and the spec is edited.
#[test]
fn a_batch_leaves_services_as_single_events_do() {
    let mut world = World::with([
        app("shop", &all_kinds_with_services()),
        deployment("worker", 0, 0),
        scaled_to_zero("db"),
        selecting_service("db"),
        endpoint_slice("db", true),
    ]);
    assert_eq!(world.status("shop").state, Some(State::Ready));
    let edited = json!({"spec": {"description": "a shop"}});
    let observed = json!({"status": {"observedGeneration": 9}});
    for object in [
        with(stateful_set("db", 1, 1, "1"), &observed),
        with(app("shop", &all_kinds_with_services()), &edited),
        endpoint_slice("db", false),
    ] {
        world.server.put(object);
    }
    world.deliver_in_batches();
    world.settle();
    assert_eq!(line(&world), "InProgress NoReadyEndpoints, InProgress NoReadyEndpoints: no cause");
    for object in [app("shop", &all_kinds_with_services()), with(scaled_to_zero("db"), &observed)] {
        world.server.put(object);
    }
    world.deliver_in_batches();
    world.settle();
    assert_eq!(world.status("shop").state, Some(State::Ready), "all workloads are scaled to zero");
}

#[test]
fn a_service_without_selector_needs_no_endpoints() {
    let world = World::with([app("shop", &services_and_deployments()), objects::service("web")]);
    assert_eq!(world.status("shop").state, Some(State::Ready));
}

#[test]
fn a_paused_deployment_blocks_unless_it_is_available() {
    let paused = |ready: i64| with(deployment("web", ready, 3), &json!({"spec": {"paused": true}}));
    let mut world = World::with([app_of_kinds("shop"), paused(0)]);
    assert_eq!(line(&world), "InProgress Paused, Suspended Paused: no cause");
    let message = world.of_app("shop", "Ready");
    assert!(message.starts_with("False ComponentsInProgress: Deployment/web: paused, 0 of 3 "), "{message}");
    world.put(paused(3));
    let message = world.of_app("shop", "Ready");
    assert_eq!(message, "True ComponentsReady: All components ready, 1 suspended");
}

#[test]
fn a_clock_that_is_set_back_counts_pods_by_the_new_time() {
    let mut world = world();
    revision(&mut world, "1");
    let failing = pulling(&world, "web-1-a");
    run(&mut world, "1", failing);
    world.pass(SignedDuration::from_secs(70));
    assert_eq!(world.status("shop").state, Some(State::Failed));
    world.set_clock(SignedDuration::from_secs(-50)).settle();
    assert_eq!(world.status("shop").state, Some(State::InProgress));
    let fails_at: Timestamp = world.now + SignedDuration::from_secs(60);
    world.pass(SignedDuration::from_secs(60));
    assert!(world.now >= fails_at);
    assert_eq!(world.status("shop").state, Some(State::Failed));
}

/// As `status -w` shows objects below members.
#[test]
fn objects_that_are_kept_for_readers_change_with_time_alone() {
    let mut world = World::with([objects::unschedulable_pod("web-1-a")]);
    world.engine.keep(&GroupKind::pod());
    world.step(bellwether_engine::Event::Tick);
    world.settle();
    let state = |world: &World| {
        let pods = world.engine.objects(&GroupKind::pod()).unwrap().unwrap();
        pods[0].1.verdict.state
    };
    assert_eq!(state(&world), State::InProgress);
    world.pass(SignedDuration::from_secs(20));
    assert_eq!(state(&world), State::Failed);
}

fn status_of(world: &World) -> (Option<State>, Option<String>) {
    let member = member(world);
    (world.status("shop").state, member.since.map(|since| since.0.to_string()))
}

/// The workload of a Pod becomes unready a moment after it.
#[test]
fn a_workload_is_failed_since_its_pod_is_not_ready() {
    let mut world = World::with([app_of_kinds("shop"), deployment("web", 3, 3)]);
    revision(&mut world, "1");
    let begin = world.now;
    world.pass(SignedDuration::from_secs(2)).put(deployment("web", 2, 3));
    run(&mut world, "1", failing_pod("web-1-a", BACK_OFF, &json!(begin.to_string())));
    assert_eq!(world.status("shop").state, Some(State::InProgress));
    world.pass(SignedDuration::from_secs(60));
    let failed = (Some(State::Failed), Some(begin.to_string()));
    assert_eq!(status_of(&world), failed);
    world.restart();
    world.settle();
    assert_eq!(status_of(&world), failed);
    // For a moment, the Pod does not count as failed, and then again.
    let starting = with(pod("web-1-a", false), &json!({"status": {"conditions": []}}));
    run(&mut world, "1", starting);
    assert_eq!(world.status("shop").state, Some(State::InProgress));
    run(&mut world, "1", failing_pod("web-1-a", BACK_OFF, &json!(begin.to_string())));
    assert_eq!(status_of(&world), failed);
}

/// The first Pod to fail is evicted; another one has failed since.
#[test]
fn a_workload_stays_failed_since_its_first_pod_failed() {
    let mut world = world();
    revision(&mut world, "1");
    let begin = world.now;
    run(&mut world, "1", failing_pod("web-1-a", BACK_OFF, &json!(begin.to_string())));
    world.pass(SignedDuration::from_mins(30));
    let second = pulling(&world, "web-1-b");
    run(&mut world, "1", second);
    world.pass(SignedDuration::from_mins(5)).delete(POD, "web-1-a");
    assert_eq!(
        line(&world),
        "Failed ImagePullBackOff, Failed ImagePullBackOff: Pod/web-1-b ImagePullBackOff"
    );
    let failed = (Some(State::Failed), Some(begin.to_string()));
    assert_eq!(status_of(&world), failed);
    world.restart();
    world.settle();
    assert_eq!(status_of(&world), failed, "also after a restart");
}

/// A rollout from template A to B is undone: the third generation has template A again, and Pods that were
/// never replaced keep the label of the first.
#[test]
fn pods_of_a_daemon_set_count_after_a_rollback() {
    let kinds = json!({"componentKinds": [{"group": "apps", "kind": "DaemonSet"}]});
    let agent = |generation: &str, updated: i64| daemon_set("agent", (1, updated, 2), generation);
    let mut world = World::with([app("shop", &kinds), agent("2", 1)]);
    let owner = uid(&world, "DaemonSet.apps", "agent");
    let labels = json!({"metadata": {"labels": {"pod-template-generation": "1"}}});
    let old = with(pulling(&world, "agent-a"), &labels);
    world.put(owned_by(old, "DaemonSet", "agent", &owner)).pass(SignedDuration::from_secs(90));
    let rolling_out = "InProgress RollingOut, InProgress RollingOut: no cause";
    assert_eq!(line(&world), rolling_out, "a Pod of the old template");
    world.put(agent("3", 1));
    assert_eq!(line(&world), rolling_out, "it may be of either template");
    world.put(agent("3", 2));
    assert_eq!(
        line(&world),
        "Failed ImagePullBackOff, Failed ImagePullBackOff: Pod/agent-a ImagePullBackOff"
    );
}

/// A fix was just applied: the Pods are still those of the revision before.
#[test]
fn pods_do_not_count_until_the_latest_generation_is_observed() {
    let mut world = world();
    revision(&mut world, "1");
    let failing = pulling(&world, "web-1-a");
    run(&mut world, "1", failing);
    world.pass(SignedDuration::from_secs(90));
    assert_eq!(world.status("shop").state, Some(State::Failed));
    world.edit("Deployment.apps", "web", |it| it["spec"]["paused"] = json!(false));
    assert_eq!(
        line(&world),
        "InProgress LatestGenerationNotObserved, InProgress LatestGenerationNotObserved: no cause"
    );
}

/// Deployments and their ReplicaSets are watched apart.
#[test]
fn the_revision_of_a_deployment_says_which_replica_set_is_current() {
    let number =
        |number: &str| json!({"metadata": {"annotations": {"deployment.kubernetes.io/revision": number}}});
    let mut world = World::with([app_of_kinds("shop"), with(deployment("web", 2, 3), &number("2"))]);
    revision(&mut world, "1");
    let failing = pulling(&world, "web-1-a");
    run(&mut world, "1", failing);
    world.pass(SignedDuration::from_secs(90));
    assert_eq!(world.status("shop").state, Some(State::InProgress), "revision 2 is not listed yet");
    revision(&mut world, "2");
    let failing = pulling(&world, "web-2-a");
    run(&mut world, "2", failing);
    world.pass(SignedDuration::from_secs(90));
    assert_eq!(
        line(&world),
        "Failed ImagePullBackOff, Failed ImagePullBackOff: Pod/web-2-a ImagePullBackOff"
    );
}

/// The deadline only says for how long.
#[test]
fn a_deadline_does_not_hide_why_a_pod_fails() {
    let exceeded = json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"});
    let exceeded = json!({"status": {"conditions": [exceeded]}});
    let mut world = World::with([app_of_kinds("shop"), with(deployment("web", 2, 3), &exceeded)]);
    assert_eq!(line(&world), "Failed ProgressDeadlineExceeded, Failed ProgressDeadlineExceeded: no cause");
    revision(&mut world, "1");
    let failing = pulling(&world, "web-1-a");
    run(&mut world, "1", failing);
    world.pass(SignedDuration::from_secs(90));
    assert_eq!(
        line(&world),
        "Failed ImagePullBackOff, Failed ImagePullBackOff: Pod/web-1-a ImagePullBackOff"
    );
}

/// Who writes a rule for workloads or Services decides about them.
#[test]
fn what_is_below_does_not_overrule_the_rule_of_a_user() {
    let rule = |kind: &str, group: &str, state: &str| {
        let name = kind.to_lowercase();
        let spec = json!({"for": {"group": group, "kind": kind}, "cel": [{"when": "true", "state": state}]});
        json!({
            "apiVersion": "bellwether.dev/v1alpha1", "kind": "HealthRule", "metadata": {"name": name}, "spec": spec,
        })
    };
    let mut world = world();
    revision(&mut world, "1");
    let failing = pulling(&world, "web-1-a");
    run(&mut world, "1", failing);
    world.pass(SignedDuration::from_secs(90));
    assert_eq!(world.status("shop").state, Some(State::Failed));
    world.put(rule("Deployment", "apps", "InProgress")).settle();
    assert_eq!(world.status("shop").state, Some(State::InProgress));
    let mut world = World::with([app("shop", &services_and_deployments()), selecting_service("web")]);
    assert_eq!(member(&world).rule.as_deref(), Some("builtin/ServiceEndpoints"));
    assert_eq!(world.status("shop").state, Some(State::InProgress));
    world.put(rule("Service", "", "Ready")).settle();
    assert_eq!(world.status("shop").state, Some(State::Ready));
}

/// A Pod of the Deployment `web` in a crash loop, not ready since 9:50.
fn crash_looping(restarts: u32, state: &Value) -> Value {
    let crash =
        json!({"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-11-14T09:59:00Z"}});
    let container =
        json!({"name": "main", "ready": false, "restartCount": restarts, "state": state, "lastState": crash});
    let status = json!({"phase": "Running", "containerStatuses": [container]});
    with(
        failing_pod("web-1-a", "CrashLoopBackOff", &json!("2026-11-14T09:50:00Z")),
        &json!({"status": status}),
    )
}

#[test]
fn a_workload_stays_failed_while_its_pod_runs_between_two_crashes() {
    let mut world = world();
    revision(&mut world, "1");
    let waiting = json!({"waiting": {"reason": "CrashLoopBackOff"}});
    run(&mut world, "1", crash_looping(7, &waiting));
    let failed = "Failed CrashLoopBackOff, Failed CrashLoopBackOff: Pod/web-1-a CrashLoopBackOff";
    assert_eq!(line(&world), failed);
    world.transitions.clear();
    let restarted = world.now;
    run(&mut world, "1", crash_looping(8, &json!({"running": {"startedAt": restarted.to_string()}})));
    assert_eq!(line(&world), failed);
    let nearly = restarted + SignedDuration::from_secs(599);
    world.pass(nearly.duration_since(world.now));
    assert_eq!(line(&world), failed);
    run(&mut world, "1", crash_looping(8, &json!({"terminated": {"exitCode": 1, "reason": "Error"}})));
    assert_eq!(line(&world), failed);
    run(&mut world, "1", crash_looping(8, &waiting));
    assert_eq!(line(&world), failed);
    assert!(world.transitions.is_empty(), "Events: {:?}", world.transitions);
}

#[test]
fn a_crash_loop_ends_when_its_pod_has_run_for_ten_minutes() {
    let mut world = world();
    revision(&mut world, "1");
    let restarted = world.now;
    run(&mut world, "1", crash_looping(8, &json!({"running": {"startedAt": restarted.to_string()}})));
    let failed = "Failed CrashLoopBackOff, Failed CrashLoopBackOff: Pod/web-1-a CrashLoopBackOff";
    assert_eq!(line(&world), failed);
    let nearly = restarted + SignedDuration::from_secs(599);
    world.pass(nearly.duration_since(world.now));
    assert_eq!(line(&world), failed);
    world.pass(SignedDuration::from_secs(3));
    assert_eq!(
        line(&world),
        "InProgress ReplicasNotReady, InProgress ReplicasNotReady: Pod/web-1-a PodNotReady"
    );
}

/// What the controller of the StatefulSet leaves at its revision counts.
#[rstest]
#[case::on_delete(json!({"type": "OnDelete"}), "db-2", State::Failed)]
#[case::below_the_partition(json!({"rollingUpdate": {"partition": 2}}), "db-1", State::Failed)]
#[case::from_the_partition_on(json!({"rollingUpdate": {"partition": 2}}), "db-2", State::InProgress)]
fn pods_that_stay_at_their_revision_count(#[case] strategy: Value, #[case] pod: &str, #[case] state: State) {
    let kinds = json!({"componentKinds": [{"group": "apps", "kind": "StatefulSet"}]});
    let set = with(stateful_set("db", 2, 3, "new"), &json!({"spec": {"updateStrategy": strategy}}));
    let mut world = World::with([app("shop", &kinds), set]);
    let owner = uid(&world, "StatefulSet.apps", "db");
    let old = json!({"metadata": {"labels": {"controller-revision-hash": "old"}}});
    let old = owned_by(with(pulling(&world, pod), &old), "StatefulSet", "db", &owner);
    world.put(old).pass(SignedDuration::from_secs(90));
    assert_eq!(world.status("shop").state, Some(state));
}

/// A roll-out that fails is not better for being paused, although the old replicas are available.
#[test]
fn a_paused_rollout_with_a_failing_pod_is_failed() {
    let paused = with(deployment("web", 3, 3), &json!({"spec": {"paused": true}}));
    let mut world = World::with([app_of_kinds("shop"), paused]);
    assert_eq!(world.status("shop").state, Some(State::Ready));
    revision(&mut world, "1");
    let pod = pulling(&world, "web-1-a");
    run(&mut world, "1", pod);
    assert_eq!(world.status("shop").state, Some(State::Ready), "not for a minute");
    world.pass(SignedDuration::from_secs(60));
    assert_eq!(
        line(&world),
        "Failed ImagePullBackOff, Failed ImagePullBackOff: Pod/web-1-a ImagePullBackOff"
    );
}

#[test]
fn a_service_of_a_workload_that_is_paused_and_scaled_to_zero_needs_no_endpoints() {
    let none = json!({"spec": {"paused": true}, "status": {"replicas": 0}});
    let world = World::with([
        app("shop", &services_and_deployments()),
        selecting_service("web"),
        with(deployment("web", 0, 0), &none),
    ]);
    assert_eq!(world.status("shop").state, Some(State::Ready));
}
