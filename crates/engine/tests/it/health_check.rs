//! The health-check Pod of an Application: dry run, creation, replacement with backoff, deletion.

use bellwether_api::{ApplicationStatus, ConditionStatus};
use bellwether_engine::{GroupKind, Unreadable, Write};
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    objects::{app, app_of, deployment, health_check, key, with},
    server::merge,
    world::World,
    writes::Fault,
};

fn checked(image: &str) -> Value {
    app("web", &health_check(image))
}

fn pods(world: &World) -> Vec<&Value> {
    world.server.list(&GroupKind::pod()).collect()
}

/// In a line.
fn images(world: &World) -> String {
    let image = |pod: &&Value| pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default().to_owned();
    pods(world).iter().map(image).collect::<Vec<_>>().join(" ")
}

fn edit_pod(world: &mut World, patch: &Value) {
    let name = pods(world)[0]["metadata"]["name"].as_str().expect("a name").to_owned();
    world.edit("Pod", &name, |pod| merge(pod, patch));
}

fn delete_pod(world: &mut World) {
    let name = pods(world)[0]["metadata"]["name"].as_str().expect("a name").to_owned();
    world.delete("Pod", &name);
}

fn ready(world: &World) -> Option<ConditionStatus> {
    let ApplicationStatus { ready, .. } = world.status("web");
    ready
}

/// Health Check Pods, steps 1 and 2: a Pod is created from the template and named after its hash, after a dry
/// run.
#[test]
fn a_pod_is_created_after_a_dry_run() {
    let world = World::with([checked("check:1")]);
    let creates: Vec<_> = world
        .writes
        .iter()
        .filter_map(|(_, change, _)| match change {
            Write::Create { dry_run, .. } => Some(*dry_run),
            _ => None,
        })
        .collect();
    assert_eq!(creates, [true, false]);
    let pod = pods(&world)[0];
    let name = pod["metadata"]["name"].as_str().expect("a name");
    assert!(name.starts_with("web-") && name.len() == "web-".len() + 10, "{name}");
    assert_eq!(world.owners("Pod", name), "web");
    assert_eq!(
        world.of_app("web", "HealthCheckValid"),
        "True Valid: The API server accepts the Pod template"
    );
}

/// Health Status Reporting, steps 1 and 2: without a health check, nothing; with one, the status of the Pod's
/// Ready condition, or Unknown without that.
#[rstest]
#[case::no_condition(json!({}), ConditionStatus::Unknown, "Unknown ComponentsUnknown")]
#[case::ready(json!({"conditions": [{"type": "Ready", "status": "True"}]}), ConditionStatus::True, "True ComponentsReady")]
#[case::not_ready(json!({"conditions": [{"type": "Ready", "status": "False"}]}), ConditionStatus::False, "False ComponentsInProgress")]
#[case::unknown(json!({"conditions": [{"type": "Ready", "status": "Unknown"}]}), ConditionStatus::Unknown, "Unknown ComponentsUnknown")]
fn ready_follows_the_pod(
    #[case] status: Value,
    #[case] expected: ConditionStatus,
    #[case] expected_ready: &str,
) {
    let spec = with(app_of("web", &["front"])["spec"].clone(), &health_check("check:1"));
    let mut world = World::with([app_of("web", &["front"]), deployment("front", 3, 3)]);
    assert_eq!(ready(&world), None);
    assert!(world.of_app("web", "Ready").starts_with("True "));
    world.put(app("web", &spec));
    edit_pod(&mut world, &json!({ "status": status }));
    assert_eq!(ready(&world), Some(expected));
    assert!(world.of_app("web", "Ready").starts_with(expected_ready), "{}", world.of_app("web", "Ready"));
}

/// Health Check Pods, step 3: a new template means a new Pod; the old one stays until the dry run succeeds.
#[test]
fn a_new_template_means_a_new_pod() {
    let mut world = World::with([checked("check:1")]);
    let count = world.server.objects.len();
    edit_pod(&mut world, &json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}));
    world.put(checked(""));
    assert_eq!(images(&world), "check:1", "the old Pod stays");
    let valid = world.of_app("web", "HealthCheckValid");
    assert_eq!(valid, "False InvalidTemplate: spec.containers[0].image: Required value");
    world.put(checked("check:2"));
    assert_eq!(images(&world), "check:2");
    assert_eq!(world.server.objects.len(), count);
    assert_eq!(
        world.of_app("web", "HealthCheckValid"),
        "True Valid: The API server accepts the Pod template"
    );
    assert_eq!(ready(&world), Some(ConditionStatus::Unknown), "the new Pod has no Ready condition yet");
}

/// The first time at once, then with growing delays.
#[test]
fn a_deleted_pod_is_recreated_with_backoff() {
    let mut world = World::with([checked("check:1")]);
    delete_pod(&mut world);
    assert_eq!(images(&world), "check:1", "the first time at once");
    delete_pod(&mut world);
    assert_eq!(images(&world), "", "the second time later");
    assert_eq!(ready(&world), Some(ConditionStatus::Unknown));
    world.pass(SignedDuration::from_secs(10));
    assert_eq!(images(&world), "check:1");
    delete_pod(&mut world);
    world.pass(SignedDuration::from_secs(10));
    assert_eq!(images(&world), "", "and the third time later still");
    world.pass(SignedDuration::from_secs(10));
    assert_eq!(images(&world), "check:1");
}

#[rstest]
#[case::back(SignedDuration::from_hours(-24))]
#[case::forward(SignedDuration::from_hours(24))]
fn a_clock_that_was_set_does_not_change_the_backoff(#[case] by: SignedDuration) {
    let mut world = World::with([checked("check:1")]);
    delete_pod(&mut world);
    delete_pod(&mut world);
    assert_eq!(images(&world), "", "the second time later");
    world.set_clock(by);
    world.pass(SignedDuration::from_secs(5));
    assert_eq!(images(&world), "");
    world.pass(SignedDuration::from_secs(5));
    assert_eq!(images(&world), "check:1");
}

/// A finished Pod says nothing about readiness.
#[rstest]
#[case::failed("Failed")]
#[case::succeeded("Succeeded")]
fn a_finished_pod_is_replaced(#[case] phase: &str) {
    let mut world = World::with([checked("check:1")]);
    let uid = |world: &World| pods(world)[0]["metadata"]["uid"].clone();
    let before = uid(&world);
    edit_pod(
        &mut world,
        &json!({"status": {"phase": phase, "conditions": [{"type": "Ready", "status": "False"}]}}),
    );
    assert_eq!(images(&world), "check:1");
    assert_ne!(uid(&world), before);
    assert_eq!(ready(&world), Some(ConditionStatus::Unknown));
}

/// Without the field, the Pod and its conditions go; also after a failover.
#[rstest]
fn removing_the_health_check_deletes_the_pod(#[values(false, true)] restart: bool) {
    let mut world = World::with([checked("check:1")]);
    world.server.put(app("web", &json!({"dependencies": ["base"]})));
    if restart {
        world.restart();
    }
    world.settle();
    assert_eq!(images(&world), "");
    assert_eq!(world.of_app("web", "HealthCheckValid"), "none");
    assert_eq!(world.status("web").owned_kinds.len(), 1, "another Pod may be in flight");
    world.pass(SignedDuration::from_mins(10));
    assert_eq!(world.status("web").owned_kinds, []);
    assert!(!world.feeds.values().any(|feed| feed.kind == GroupKind::pod()), "Pods are not watched any more");
}

/// A foreign Pod of that name is neither used nor deleted.
#[test]
fn a_foreign_pod_of_that_name_is_left_alone() {
    let world = World::with([checked("check:1")]);
    let mut foreign = pods(&world)[0].clone();
    foreign["metadata"]["ownerReferences"].take();
    foreign["metadata"]["labels"].take();
    let mut world = World::with([foreign, checked("check:1")]);
    let valid = world.of_app("web", "HealthCheckValid");
    assert!(
        valid.starts_with("False InvalidTemplate: Pod/web-")
            && valid.contains("is not owned by this Application"),
        "{valid}"
    );
    assert_eq!(ready(&world), Some(ConditionStatus::Unknown));
    delete_pod(&mut world);
    assert_eq!(
        world.of_app("web", "HealthCheckValid"),
        "True Valid: The API server accepts the Pod template"
    );
    assert_eq!(images(&world), "check:1");
}

/// Failover: the new engine finds the Pod.
#[test]
fn a_restart_makes_no_second_pod() {
    let mut world = World::with([checked("check:1")]);
    let writes = world.writes.len();
    world.restart();
    world.settle();
    assert_eq!((images(&world).as_str(), world.writes.len()), ("check:1", writes));
}

/// A created Pod that the watch has not reported is deleted with the health check.
#[test]
fn a_pod_that_the_watch_has_not_reported_is_deleted_later() {
    let mut world = World::with([app("web", &json!({}))]);
    world.put(app("web", &json!({"dependencies": ["base"]})));
    world.server.put(checked("check:1"));
    while world.feeds.values().all(|feed| feed.kind != GroupKind::pod() || !feed.received.known.listed) {
        assert!(world.advance(), "the Pods are listed");
    }
    world.held.insert(GroupKind::pod());
    world.settle();
    assert_eq!(images(&world), "check:1");
    world.put(app("web", &json!({})));
    world.pass(SignedDuration::from_mins(5));
    assert_eq!(images(&world), "check:1");
    world.held.clear();
    world.settle();
    assert_eq!(images(&world), "");
}

/// While the template is invalid, the latest earlier Pod stays.
#[test]
fn one_earlier_pod_stays_while_the_template_is_invalid() {
    let mut world = World::with([app("web", &json!({"componentKinds": [{"kind": "Pod"}]}))]);
    world.held.insert(GroupKind::pod());
    world.put(checked("check:1")).put(checked("check:2"));
    assert_eq!(pods(&world).len(), 2, "the watch has not reported the first");
    world.put(checked(""));
    world.held.clear();
    world.pass(SignedDuration::from_mins(1));
    assert_eq!(images(&world), "check:2");
}

/// Another writer clears `status.ownedKinds` before the Pod is created.
#[test]
fn a_pod_waits_until_owned_kinds_is_written_again() {
    let mut world = World::with([app("web", &json!({"componentKinds": [{"kind": "Pod"}]}))]);
    world.slow = true;
    world.server.put(checked("check:1"));
    while !world.wants().values().any(|change| matches!(change, Write::Create { dry_run: false, .. })) {
        assert!(world.advance(), "a Pod is wanted");
    }
    let (kind, name) = key("Application.bellwether.dev", "web");
    world.server.edit(&kind, &name, |it| it["status"] = json!({}));
    while world.deliver() {}
    assert!(!world.wants().values().any(|change| matches!(change, Write::Create { dry_run: false, .. })));
    world.slow = false;
    world.settle();
    assert_eq!(images(&world), "check:1");
}

/// The delete gets a 409 although the Pod is the same.
#[test]
fn a_delete_is_retried_after_a_false_conflict() {
    let mut world = World::with([checked("check:1")]);
    world.faults = [Fault::FalseConflict, Fault::FalseConflict].into();
    world.server.put(app("web", &json!({"componentKinds": [{"kind": "Pod"}]})));
    world.settle();
    world.pass(SignedDuration::from_mins(1));
    assert_eq!(images(&world), "");
}

/// Stale watch events from before the deletion.
#[test]
fn stale_events_do_not_revive_a_deleted_pod() {
    let mut world = World::with([checked("check:1")]);
    world.held.insert(GroupKind::pod());
    let ready_pod =
        json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}});
    edit_pod(&mut world, &ready_pod);
    world.put(app("web", &json!({"componentKinds": [{"kind": "Pod"}]})));
    assert_eq!(images(&world), "", "it is deleted");
    world.put(checked("check:1"));
    world.held.clear();
    assert!(world.deliver(), "the watch event with Ready=True");
    assert!(world.feeds.values().any(|feed| feed.received.known.objects.values().any(|pod| pod.is_check())));
    world.write();
    assert_eq!(ready(&world), Some(ConditionStatus::Unknown));
}

/// Without read access to Pods, none is created.
#[test]
fn no_pod_is_created_while_pods_are_unreadable() {
    let mut world = World::with([app("web", &json!({"componentKinds": [{"kind": "Pod"}]}))]);
    world.unreadable("Pod", Some(Unreadable::Forbidden { resource: "pods".into() }));
    world.put(checked("check:1"));
    world.pass(SignedDuration::from_mins(1));
    assert_eq!(images(&world), "");
    world.unreadable("Pod", None);
    world.settle();
    assert_eq!(images(&world), "check:1");
}

/// `status.ownedKinds` lists Pod before one is created, so that the next leader can clean up.
#[test]
fn owned_kinds_is_written_before_the_pod_is_created() {
    let world = World::with([checked("check:1")]);
    let at = |is_it: &dyn Fn(&Write) -> bool| world.writes.iter().position(|(_, change, _)| is_it(change));
    let status = at(
        &|change| matches!(change, Write::Status { patch, .. } if patch["ownedKinds"][0]["kind"] == "Pod"),
    );
    let pod = at(&|change| matches!(change, Write::Create { dry_run: false, .. }));
    assert!(status < pod && status.is_some(), "{status:?} {pod:?}");
}

/// The template is fine; the Pod is created once the quota allows it.
#[test]
fn a_pod_that_a_quota_denies_is_tried_again() {
    let mut world = World::new();
    world.quota_exceeded = true;
    world.put(checked("check:1"));
    assert_eq!(
        world.of_app("web", "HealthCheckValid"),
        r#"False QuotaExceeded: pods "web" is forbidden: exceeded quota: small"#
    );
    assert_eq!(
        world.of_app("web", "Ready"),
        "Unknown ComponentsUnknown: health check: Pod not created: QuotaExceeded"
    );
    world.quota_exceeded = false;
    world.pass(SignedDuration::from_secs(60));
    assert_eq!(images(&world), "check:1");
    assert!(world.of_app("web", "HealthCheckValid").starts_with("True Valid"));
}
