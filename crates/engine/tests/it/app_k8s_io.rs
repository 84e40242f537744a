//! Applications of app.k8s.io/v1beta1: status, addOwnerRef, invalid specs, and a second controller that
//! writes the same status.

use bellwether_engine::{Dialect, GroupRef, OwnKind, Part, Unreadable};
use jiff::SignedDuration;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    objects::{annotated, app_of_kinds, deployment, key, old_app, pod, service, widget, with},
    world::World,
    writes::Fault,
};

const OLD: &str = "Application.app.k8s.io";
const KIND: &str = "Deployment.apps";

fn kinds(kinds: &[(&str, &str)]) -> Value {
    kinds.iter().map(|(group, kind)| json!({"group": group, "kind": kind})).collect()
}

/// With the groups in the notations that manifests have.
fn web() -> Value {
    old_app("web", &json!({"componentKinds": kinds(&[("v1", "Service"), ("apps/v1", "Deployment")])}))
}

fn status(world: &World, name: &str) -> Value {
    let (kind, name) = key(OLD, name);
    world.server.get(&kind, &name).expect("the Application is there")["status"].clone()
}

fn ready(world: &World) -> String {
    world.condition(OLD, "web", "Ready")
}

fn error(world: &World) -> String {
    world.condition(OLD, "web", "Error")
}

/// In a line: `Service a Ready, Deployment b InProgress`.
fn components(world: &World, name: &str) -> String {
    let status = status(world, name);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let line = |it: &Value| format!("{} {} {}", text(&it["kind"]), text(&it["name"]), text(&it["status"]));
    status["components"].as_array().into_iter().flatten().map(line).collect::<Vec<_>>().join(", ")
}

fn writes(world: &World, part: &Part) -> usize {
    world.writes.iter().filter(|(slot, ..)| slot.part == *part).count()
}

#[test]
fn the_status_has_the_shape_of_app_k8s_io() {
    let world = World::with([web(), deployment("front", 3, 3), deployment("back", 2, 3), service("front")]);
    let time = "2026-11-14T10:00:00Z";
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastUpdateTime": time, "lastTransitionTime": time,
        })
    };
    let expected = json!({
        "observedGeneration": 1,
        "conditions": [
            condition("Ready", "False", "ComponentsNotReady", "1 components not ready"),
            condition("Error", "False", "NoError", "No error seen"),
        ],
        "components": [
            {"link": "/api/v1/namespaces/shop/services/front", "name": "front", "kind": "Service", "status": "Ready"},
            {
                "link": "/apis/apps/v1/namespaces/shop/deployments/back", "name": "back", "kind": "Deployment",
                "group": "apps", "status": "InProgress",
            },
            {
                "link": "/apis/apps/v1/namespaces/shop/deployments/front", "name": "front", "kind": "Deployment",
                "group": "apps", "status": "Ready",
            },
        ],
        "componentsReady": "2/3",
    });
    assert_eq!(status(&world, "web"), expected);
}

/// Bellwether has more states than app.k8s.io.
#[rstest]
#[case::ready(
    deployment("x", 3, 3),
    "Deployment x Ready",
    "1/1",
    "True ComponentsReady: all components ready"
)]
#[case::in_progress(
    deployment("x", 2, 3),
    "Deployment x InProgress",
    "0/1",
    "False ComponentsNotReady: 1 components not ready"
)]
#[case::suspended(
    with(deployment("x", 3, 3), &json!({"spec": {"paused": true}})), "Deployment x Ready", "1/1",
    "True ComponentsReady: all components ready"
)]
#[case::suspended_and_not_available(
    with(deployment("x", 1, 3), &json!({"spec": {"paused": true}})), "Deployment x InProgress", "0/1",
    "False ComponentsNotReady: 1 components not ready"
)]
#[case::terminating(
    with(deployment("x", 3, 3), &json!({"metadata": {"deletionTimestamp": "2026-11-14T09:00:00Z"}})),
    "Deployment x InProgress", "0/1", "False ComponentsNotReady: 1 components not ready"
)]
#[case::failed(
    with(deployment("x", 2, 3), &json!({"status": {"conditions": [{
        "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too late",
    }]}})),
    "Deployment x InProgress", "0/1", "False ComponentsNotReady: 1 components not ready"
)]
#[case::unknown(
    widget("x", None),
    "Widget x Unknown",
    "0/1",
    "Unknown ComponentsReadyUnknown: 1 components of unknown readiness"
)]
fn states_are_mapped_to_those_of_app_k8s_io(
    #[case] object: Value,
    #[case] listed: &str,
    #[case] count: &str,
    #[case] expected: &str,
) {
    let app =
        old_app("web", &json!({"componentKinds": kinds(&[("apps", "Deployment"), ("acme.io", "Widget")])}));
    let world = World::with([app, object]);
    assert_eq!(components(&world, "web"), listed);
    assert_eq!(status(&world, "web")["componentsReady"], count);
    assert_eq!((ready(&world).as_str(), error(&world).as_str()), (expected, "False NoError: No error seen"));
}

#[rstest]
#[case::everything(json!({}), "Deployment a Ready, Deployment b Ready")]
#[case::a_label(json!({"matchLabels": {"tier": "front"}}), "Deployment a Ready")]
#[case::an_expression(
    json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["front"]}]}), "Deployment b Ready"
)]
#[case::both(
    json!({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}),
    "Deployment b Ready"
)]
#[case::nothing(json!(null), "")]
#[case::an_impossible_one(json!({"matchExpressions": [{"key": "tier", "operator": "Like", "values": ["f"]}]}), "")]
#[case::labels_of_a_wrong_type(json!({"matchLabels": [{"app": "web"}]}), "")]
#[case::expressions_of_a_wrong_type(json!({"matchExpressions": {"key": "tier", "operator": "Exists"}}), "")]
#[case::a_value_of_a_wrong_type(
    json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["front", 3]}]}), ""
)]
fn selectors(#[case] selector: Value, #[case] listed: &str) {
    let labelled = with(deployment("a", 1, 1), &json!({"metadata": {"labels": {"tier": "front"}}}));
    let elsewhere = with(deployment("c", 1, 1), &json!({"metadata": {"namespace": "elsewhere"}}));
    let mut app = web();
    app["spec"]["selector"] = selector;
    let world = World::with([app, labelled, deployment("b", 1, 1), elsewhere]);
    assert_eq!(components(&world, "web"), listed);
}

/// Without members, Ready is Unknown, and the message says why.
#[rstest]
#[case::none_matches(
    json!({}), "Unknown ComponentsReadyUnknown: no components found: no object of these kinds matches the selector"
)]
#[case::no_selector(
    json!({"selector": null}),
    "Unknown ComponentsReadyUnknown: no components found: spec.selector is missing"
)]
#[case::no_kinds(
    json!({"componentKinds": null}),
    "Unknown ComponentsReadyUnknown: no components found: spec.componentKinds is empty"
)]
fn ready_is_unknown_without_components(#[case] spec: Value, #[case] expected: &str) {
    let world = World::with([with(web(), &json!({"spec": spec}))]);
    assert_eq!((ready(&world).as_str(), error(&world).as_str()), (expected, "False NoError: No error seen"));
    assert_eq!(status(&world, "web")["componentsReady"], "0/0");
}

#[rstest]
#[case::wrong_group(
    json!({"componentKinds": kinds(&[("v1", "Deployment")])}),
    "Deployment in the core group: kind not served by the cluster; check the group and kind, and that the CRD is installed"
)]
#[case::no_such_kind(
    json!({"componentKinds": kinds(&[("apps", "Deployment"), ("no.where", "Gone")])}),
    "Gone.no.where: kind not served by the cluster; check the group and kind, and that the CRD is installed"
)]
#[case::bad_selector(
    json!({"selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
    "spec.selector.matchExpressions[0]: values required for operator In"
)]
#[case::labels_of_a_wrong_type(
    json!({"selector": {"matchLabels": [{"app": "web"}]}}), "spec.selector.matchLabels: must be a map"
)]
#[case::no_kind(json!({"componentKinds": [{"group": "apps"}]}), "spec.componentKinds[0]: kind required")]
#[case::kinds_of_a_wrong_type(json!({"componentKinds": {"kind": "Service"}}), "spec.componentKinds: must be a list")]
#[case::a_kind_of_a_wrong_type(json!({"componentKinds": ["Service"]}), "spec.componentKinds[0]: must be an object")]
fn invalid_fields_and_unreadable_kinds_are_errors(#[case] spec: Value, #[case] expected: &str) {
    let world = World::with([with(web(), &json!({"spec": spec})), deployment("front", 3, 3)]);
    assert_eq!(error(&world), format!("True ErrorSeen: {expected}"));
    let expected = "failed to aggregate all components' statuses, check the Error condition for details";
    assert_eq!(ready(&world), format!("Unknown ComponentsReadyUnknown: {expected}"));
}

#[test]
fn a_forbidden_kind_is_an_error_and_others_still_count() {
    let mut world = World::with([web(), deployment("front", 3, 3), service("front")]);
    assert_eq!(ready(&world), "True ComponentsReady: all components ready");
    world.unreadable("Service", Some(Unreadable::Forbidden { resource: "services".into() }));
    world.settle();
    assert_eq!(
        error(&world),
        "True ErrorSeen: Service in the core group: forbidden; grant get, list and watch on services"
    );
    assert_eq!(components(&world, "web"), "Service front Unknown, Deployment front Ready");
    world.unreadable("Service", None);
    world.settle();
    assert_eq!(
        (error(&world).as_str(), ready(&world).split(' ').next()),
        ("False NoError: No error seen", Some("True"))
    );
}

/// As with the original controller: selected by labels. A namespaced owner of a cluster-scoped object is
/// invalid.
#[test]
fn cluster_scoped_objects_are_members_and_never_owned() {
    let role = |name: &str, label: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": name, "labels": {"app": label}},
        })
    };
    let spec = json!({"addOwnerRef": true, "componentKinds": kinds(&[("rbac.authorization.k8s.io/v1", "ClusterRole")])});
    let mut world = World::with([old_app("web", &spec), role("reader", "web"), role("writer", "api")]);
    assert_eq!(components(&world, "web"), "ClusterRole reader Ready");
    assert_eq!(
        status(&world, "web")["components"][0]["link"],
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/reader"
    );
    world.put(role("writer", "web"));
    assert_eq!(components(&world, "web"), "ClusterRole reader Ready, ClusterRole writer Ready");
    world.delete("ClusterRole.rbac.authorization.k8s.io", "reader");
    assert_eq!(components(&world, "web"), "ClusterRole writer Ready");
    assert_eq!(writes(&world, &Part::OwnerReferences), 0);
}

#[test]
fn the_annotation_and_other_applications_are_ignored() {
    let world = World::with([web(), annotated(deployment("front", 3, 3), "another")]);
    assert_eq!(components(&world, "web"), "Deployment front Ready");
    let selects_itself = with(
        old_app("web", &json!({"componentKinds": kinds(&[("app.k8s.io", "Application")])})),
        &json!({"metadata": {"labels": {"app": "web"}}, "spec": {"addOwnerRef": true}}),
    );
    let other = with(old_app("other", &json!({})), &json!({"metadata": {"labels": {"app": "web"}}}));
    let world = World::with([selects_itself, other]);
    assert_eq!(components(&world, "web"), "Application other Unknown");
    assert_eq!((world.owners(OLD, "other").as_str(), world.owners(OLD, "web").as_str()), ("web", ""));
}

/// Two Applications of one name, one in each API group.
#[test]
fn namesakes_in_both_api_groups_are_independent() {
    let ours = with(app_of_kinds("web"), &json!({"spec": {"dependencies": ["base"]}}));
    let mut world = World::with([ours, app_of_kinds("base"), web(), deployment("front", 3, 3)]);
    let of_ours = |world: &World| world.status("web").components_ready.expect("a count");
    assert_eq!(
        (of_ours(&world).as_str(), components(&world, "web").as_str()),
        ("1/1", "Deployment front Ready")
    );
    world.edit(KIND, "front", |it| it["status"]["readyReplicas"] = 1.into());
    assert_eq!(
        (of_ours(&world).as_str(), components(&world, "web").as_str()),
        ("0/1", "Deployment front InProgress")
    );
    world.delete(OLD, "web");
    assert_eq!(world.status("web").installed, ["base"], "its dependencies are still known");
    world.put(web()).delete("Application.bellwether.dev", "web");
    assert_eq!(components(&world, "web"), "Deployment front InProgress");
    world.edit(KIND, "front", |it| it["status"]["readyReplicas"] = 3.into());
    assert_eq!(components(&world, "web"), "Deployment front Ready");
}

/// Both Applications hold an owner reference.
#[test]
fn both_api_groups_may_own_one_object() {
    let owning = with(web(), &json!({"spec": {"addOwnerRef": true}}));
    let mut world = World::with([app_of_kinds("web"), owning, annotated(deployment("front", 3, 3), "web")]);
    let (kind, name) = key(KIND, "front");
    let owners = |world: &World| {
        let owners =
            world.server.get(&kind, &name).expect("it is there")["metadata"]["ownerReferences"].clone();
        owners.as_array().into_iter().flatten().map(|owner| owner["apiVersion"].clone()).collect::<Vec<_>>()
    };
    // Ours comes second, because it publishes `status.ownedKinds` first.
    assert_eq!(owners(&world), ["app.k8s.io/v1beta1", "bellwether.dev/v1alpha1"]);
    world.edit(KIND, "front", |it| it["metadata"]["annotations"] = json!({}));
    assert_eq!(owners(&world), ["app.k8s.io/v1beta1"], "only our own reference is removed");
}

#[test]
fn add_owner_ref_adds_owner_references() {
    let mut world = World::with([web(), deployment("front", 3, 3)]);
    assert_eq!(world.owners(KIND, "front"), "");
    world.edit(OLD, "web", |it| it["spec"]["addOwnerRef"] = true.into());
    let (kind, name) = key(OLD, "web");
    let uid = world.server.get(&kind, &name).expect("it is there")["metadata"]["uid"].clone();
    let (kind, name) = key(KIND, "front");
    let expected = json!([{
        "apiVersion": "app.k8s.io/v1beta1", "kind": "Application", "name": "web", "uid": uid,
        "controller": false, "blockOwnerDeletion": true,
    }]);
    assert_eq!(world.server.get(&kind, &name).expect("it is there")["metadata"]["ownerReferences"], expected);
    assert_eq!(writes(&world, &Part::OwnerReferences), 1);
}

/// Installers add owner references without `addOwnerRef`.
#[rstest]
#[case::flag_off(OLD, json!({"spec": {"addOwnerRef": false}}))]
#[case::other_selector(OLD, json!({"spec": {"selector": {"matchLabels": {"app": "api"}}}}))]
#[case::kind_dropped(OLD, json!({"spec": {"componentKinds": null}}))]
#[case::relabelled(KIND, json!({"metadata": {"labels": {"app": "api"}}}))]
fn owner_references_are_never_removed(
    #[case] kind: &str,
    #[case] patch: Value,
    #[values(false, true)] restart: bool,
) {
    let mut world =
        World::with([with(web(), &json!({"spec": {"addOwnerRef": true}})), deployment("front", 3, 3)]);
    assert_eq!(world.owners(KIND, "front"), "web");
    let (kind, name) = key(kind, if kind == OLD { "web" } else { "front" });
    world.server.edit(&kind, &name, |it| bellwether_simulation::object::merge(it, &patch));
    if restart {
        world.restart();
    }
    world.pass(SignedDuration::from_hours(1));
    assert_eq!((world.owners(KIND, "front").as_str(), writes(&world, &Part::OwnerReferences)), ("web", 1));
}

#[test]
fn a_recreated_application_replaces_the_old_owner_reference() {
    let before = json!({
        "apiVersion": "app.k8s.io/v1beta1", "kind": "Application", "name": "web", "uid": "before",
        "controller": false, "blockOwnerDeletion": true,
    });
    let object = with(deployment("front", 3, 3), &json!({"metadata": {"ownerReferences": [before]}}));
    let world = World::with([with(web(), &json!({"spec": {"addOwnerRef": true}})), object]);
    assert_eq!((world.owners(KIND, "front").as_str(), writes(&world, &Part::OwnerReferences)), ("web", 1));
    let (kind, name) = key(KIND, "front");
    assert_ne!(
        world.server.get(&kind, &name).expect("it is there")["metadata"]["ownerReferences"][0]["uid"],
        "before"
    );
}

#[test]
fn several_may_own_one_object() {
    let owning = |name: &str| {
        with(
            old_app(name, &json!({"componentKinds": kinds(&[("apps", "Deployment")])})),
            &json!({"spec": {"addOwnerRef": true}}),
        )
    };
    let mut world = World::with([owning("b"), owning("a"), deployment("front", 3, 3)]);
    assert_eq!((world.owners(KIND, "front").as_str(), writes(&world, &Part::OwnerReferences)), ("a b", 2));
    world.faults = [Fault::Conflict].into();
    world.put(owning("c"));
    assert_eq!(world.owners(KIND, "front"), "a b c", "also after a conflict");
}

#[test]
fn a_refused_owner_reference_is_an_error_and_ready_is_unaffected() {
    let mut world = World::with([web(), deployment("front", 3, 3)]);
    // The status of the new generation is written first, then the owner reference.
    world.faults = [Fault::None, Fault::Refuse].into();
    let (kind, name) = key(OLD, "web");
    world.server.edit(&kind, &name, |it| it["spec"]["addOwnerRef"] = true.into());
    world.settle_now();
    assert_eq!(error(&world), "True ErrorSeen: Deployment/front: not today");
    assert_eq!(ready(&world), "True ComponentsReady: all components ready");
    world.settle();
    assert_eq!(
        (error(&world).as_str(), world.owners(KIND, "front").as_str()),
        ("False NoError: No error seen", "web")
    );
}

/// The status of the original controller is kept where it is still right, transition times included.
#[test]
fn a_status_of_the_original_controller_is_kept_where_right() {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastUpdateTime": "2026-11-13T08:00:00Z", "lastTransitionTime": "2026-11-12T08:00:00Z",
        })
    };
    let foreign = json!({"type": "Qualified", "status": "True", "by": "another controller"});
    let status_before = json!({
        "observedGeneration": 1, "componentsReady": "1/1",
        "conditions": [
            condition("Ready", "True", "ComponentsReady", "all components ready"),
            foreign,
            condition("Error", "False", "NoError", "No error seen"),
        ],
        "components": [{"name": "front", "kind": "Deployment", "group": "apps", "status": "Ready"}],
    });
    let mut world =
        World::with([with(web(), &json!({"status": status_before.clone()})), deployment("front", 3, 3)]);
    let now = status(&world, "web");
    assert_eq!(now["conditions"], status_before["conditions"]);
    assert_eq!((writes(&world, &Part::Status), world.transitions.len()), (1, 0), "only the links are new");
    world.edit(KIND, "front", |it| it["status"]["readyReplicas"] = 2.into());
    let conditions = status(&world, "web")["conditions"].clone();
    assert_eq!((&conditions[1], &conditions[2]), (&foreign, &status_before["conditions"][2]));
    assert_eq!(conditions[0]["lastTransitionTime"], conditions[0]["lastUpdateTime"]);
    let turned = conditions[0]["lastTransitionTime"].clone();
    world.pass(SignedDuration::from_mins(1));
    world.put(deployment("back", 1, 3));
    let conditions = status(&world, "web")["conditions"].clone();
    assert_eq!(conditions[0]["message"], "2 components not ready");
    assert_eq!(conditions[0]["lastTransitionTime"], turned);
    assert_ne!(conditions[0]["lastUpdateTime"], turned, "the message changed later");
    let transitions: Vec<_> = world.transitions.iter().map(|it| (it.object.to_string(), it.to)).collect();
    assert_eq!(transitions, [("Application.app.k8s.io shop/web".to_owned(), "InProgress")]);
}

#[rstest]
#[case::nonsense(json!({"conditions": "none", "components": {"a": 1}, "observedGeneration": "x"}))]
#[case::halves(json!({"conditions": [{"type": "Ready"}, {"status": "True"}, 7, {"type": "Error", "status": "False"}]}))]
fn a_malformed_status_is_replaced(#[case] before: Value) {
    let world = World::with([with(web(), &json!({ "status": before })), deployment("front", 3, 3)]);
    assert_eq!(ready(&world), "True ComponentsReady: all components ready");
    assert_eq!(error(&world), "False NoError: No error seen");
}

#[test]
fn nothing_is_written_twice_and_a_restart_changes_nothing() {
    let owning = with(web(), &json!({"spec": {"addOwnerRef": true}}));
    let mut world = World::with([owning, deployment("front", 3, 3), service("front"), pod("x", true)]);
    let before = world.writes.len();
    world.restart();
    world.pass(SignedDuration::from_hours(1));
    for (kind, name) in world.server.objects.keys().cloned().collect::<Vec<_>>() {
        world
            .server
            .edit(&kind, &name, |it| it["metadata"]["annotations"]["example.com/seen"] = "yes".into());
    }
    world.settle();
    assert_eq!((world.writes.len(), world.server.no_op_writes), (before, 0));
}

#[test]
fn the_list_is_bounded_and_counts_are_exact() {
    let objects = (0..1100).map(|number| service(&format!("s{number:04}")));
    let world = World::with(objects.chain([web()]));
    let status = status(&world, "web");
    assert_eq!(status["components"].as_array().map(Vec::len), Some(1000));
    assert_eq!(status["componentsReady"], "1100/1100");
}

/// Our own Applications do not wait for the initial list of app.k8s.io.
#[test]
fn own_applications_do_not_wait_for_app_k8s_io() {
    let mut world = World::new();
    world.held.insert(Dialect::AppK8sIo.kind());
    for object in [web(), app_of_kinds("web"), deployment("front", 3, 3)] {
        world.put(object);
    }
    assert_eq!(world.of_app("web", "Ready"), "True ComponentsReady: All components ready");
    assert_eq!(status(&world, "web"), json!(null));
    world.held.clear();
    world.settle();
    assert_eq!(ready(&world), "True ComponentsReady: all components ready");
}

#[test]
fn the_crd_may_be_installed_later_and_deleted() {
    let mut world = World::new();
    let kind = Dialect::AppK8sIo.kind();
    let served = world.server.kinds.remove(&kind).expect("it was served");
    world.put(app_of_kinds("web")).put(deployment("front", 3, 3));
    assert_eq!(world.of_app("web", "Ready"), "True ComponentsReady: All components ready");
    world.server.kinds.insert(kind.clone(), served);
    world.put(web());
    world.relist(&kind);
    world.settle();
    assert_eq!(ready(&world), "True ComponentsReady: all components ready");
    world.server.unserve(&kind);
    world.relist(&kind);
    world.settle();
    let services = world.feeds.values().any(|feed| feed.kind.to_string() == "Service");
    assert!(!services, "kinds that only it used are not watched any more");
}

/// Another controller overwrites the status after each of our writes.
#[test]
fn a_second_controller_leads_to_backoff_and_a_warning() {
    let mut world = World::with([web(), deployment("front", 3, 3)]);
    let (kind, name) = key(OLD, "web");
    let begun = world.now;
    let mut times = Vec::new();
    while times.len() < 12 {
        let before = writes(&world, &Part::Status);
        // As the original controller writes it: without links.
        world.server.edit(&kind, &name, |it| {
            it["status"]["components"] =
                json!([{"name": "front", "kind": "Deployment", "group": "apps", "status": "Ready"}]);
        });
        while writes(&world, &Part::Status) == before {
            world.pass(SignedDuration::from_secs(1));
        }
        times.push(world.now.duration_since(begun).as_secs());
    }
    let pauses: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.iter().take(3).all(|pause| *pause <= 2), "{pauses:?}");
    assert!(pauses.windows(2).skip(2).all(|pair| pair[1] >= pair[0]), "{pauses:?}");
    assert!(pauses.last().is_some_and(|pause| *pause >= 250), "{pauses:?}");
    let warnings: Vec<_> = world.warnings.iter().map(|warning| warning.reason).collect();
    assert_eq!(warnings, ["StatusOverwritten"], "one warning is enough");
    // The other controller is stopped: the next write comes after the backoff, later ones at once.
    world.pass(SignedDuration::from_mins(30));
    world.edit(KIND, "front", |it| it["status"]["readyReplicas"] = 1.into());
    assert_eq!(ready(&world), "False ComponentsNotReady: 1 components not ready");
}

/// Frequent changes of our own are not a conflict, whether the response or the watch event comes first.
#[rstest]
fn own_changes_are_not_a_write_conflict(#[values(Fault::None, Fault::WatchFirst)] fault: Fault) {
    let mut world = World::with([web(), deployment("front", 3, 3)]);
    world.faults = std::iter::repeat_n(fault, 100).collect();
    for round in 0..20 {
        world.edit(KIND, "front", |it| it["status"]["readyReplicas"] = (round % 2).into());
        world.edit(KIND, "front", |it| it["status"]["readyReplicas"] = 3.into());
        assert_eq!(ready(&world), "True ComponentsReady: all components ready");
    }
    assert_eq!(world.warnings, []);
}

/// A query counts as the stored status does: as ready, unless too little of it runs.
#[rstest]
#[case::available(3, (1, 0))]
#[case::blocking(0, (0, 1))]
fn a_suspended_component_counts_the_same_everywhere(#[case] ready: i64, #[case] counted: (i32, i32)) {
    let kinds = json!({"componentKinds": [{"group": "apps", "kind": "Deployment"}]});
    let paused = with(deployment("front", ready, 3), &json!({"spec": {"paused": true}}));
    let world = World::with([old_app("web", &kinds), paused]);
    let (kind, name) = key("Application.app.k8s.io", "web");
    let stored = &world.server.get(&kind, &name).expect("it is there")["status"];
    let group = GroupRef::new(OwnKind::Application(Dialect::AppK8sIo), name);
    let counts = world.engine.group(world.now, &group).expect("it is known").counts;
    assert_eq!(stored["componentsReady"], format!("{}/{}", counts.ready, counts.total));
    assert_eq!((counts.ready, counts.in_progress, counts.suspended), (counted.0, counted.1, 0));
}
