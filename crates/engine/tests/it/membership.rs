//! Membership in Applications: label selectors, annotations, named components, and which kinds are watched.

use jiff::SignedDuration;
use rstest::rstest;
use serde_json::json;

use crate::{
    objects::{annotated, app, app_of, app_of_kinds, deployment, key, pod, service, widget, with},
    world::World,
};

/// Selecting Components, steps 1 and 2: the selector matches objects of the kinds in the namespace; the
/// annotation decides between overlapping selectors. Adopting Existing Components: in either order of
/// creation.
#[rstest]
#[case::selected("Selected", "web", None, true)]
#[case::selected_and_annotated("Selected", "web", Some("web"), true)]
#[case::annotated_for_another("Selected", "web", Some("other"), false)]
#[case::not_selected("Selected", "api", None, false)]
#[case::annotated_and_not_selected("Selected", "api", Some("web"), false)]
#[case::no_annotation_where_one_is_needed("Annotated", "web", None, false)]
#[case::annotation_where_one_is_needed("Annotated", "web", Some("web"), true)]
#[case::annotation_of_another_where_one_is_needed("Annotated", "web", Some("other"), false)]
#[case::annotation_alone_is_not_enough("Annotated", "api", Some("web"), false)]
fn selector_and_annotation_make_a_member(
    #[case] mode: &str,
    #[case] label: &str,
    #[case] annotation: Option<&str>,
    #[case] is_member: bool,
) {
    let app =
        app("web", &json!({"componentKinds": [{"group": "acme.io", "kind": "Widget"}], "membership": mode}));
    let widget = with(widget("one", Some("True")), &json!({"metadata": {"labels": {"app": label}}}));
    let widget = annotation.map_or(widget.clone(), |name| annotated(widget, name));
    for objects in [[app.clone(), widget.clone()], [widget, app]] {
        let mut world = World::new();
        for object in objects {
            world.put(object);
        }
        let expected = if is_member {
            ("1/1", "True ComponentsReady: All components ready")
        } else {
            ("0/0", "Unknown NoComponents: no Widget.acme.io in namespace shop matches selector app=web")
        };
        let status = (world.status("web").components_ready.unwrap_or_default(), world.of_app("web", "Ready"));
        assert_eq!((status.0.as_str(), status.1.as_str()), expected);
    }
}

/// Selecting Components, step 2: the annotation excludes an object from other Applications.
#[test]
fn where_selectors_overlap_the_annotation_decides() {
    let mut world = World::with([app_of_kinds("web"), app_of_kinds("shop"), widget("one", Some("True"))]);
    let counted = |world: &World| ["web", "shop"].map(|name| world.status(name).objects.len());
    assert_eq!(counted(&world), [1, 1], "without an annotation, both count it");
    world.put(annotated(widget("one", Some("True")), "shop"));
    assert_eq!(counted(&world), [0, 1]);
    world.put(annotated(widget("one", Some("True")), "web"));
    assert_eq!(counted(&world), [1, 0]);
    world.delete("Widget.acme.io", "one");
    assert_eq!(counted(&world), [0, 0]);
}

/// Installation Status Reporting, creation, step 2, deletion, step 2, and update, step 2: a component is
/// installed while the object exists and is selected.
#[test]
fn a_named_component_is_missing_until_it_exists_and_is_selected() {
    let mut world = World::with([app_of("web", &["front"])]);
    let presence = |world: &World| {
        let status = world.status("web");
        (status.installed.join(" "), status.missing.join(" "))
    };
    let (there, missing) = (("front".to_owned(), String::new()), (String::new(), "front".to_owned()));
    assert_eq!(presence(&world), missing);
    assert_eq!(world.of_app("web", "Ready"), "False ComponentsMissing: Deployment/front: not found");
    assert_eq!(world.of_app("web", "Installed"), "False ComponentsMissing: component front missing");

    world.put(deployment("front", 3, 3));
    assert_eq!(presence(&world), there);
    assert_eq!(world.of_app("web", "Ready"), "True ComponentsReady: All components ready");
    assert_eq!(
        world.of_app("web", "Installed"),
        "True AllInstalled: All required components and dependencies exist"
    );

    world.edit("Deployment.apps", "front", |it| it["metadata"]["labels"]["app"] = "api".into());
    assert_eq!(presence(&world), missing);
    assert_eq!(
        world.of_app("web", "Ready"),
        "False ComponentsMissing: Deployment/front: exists, but its labels do not match the selector"
    );

    world.edit("Deployment.apps", "front", |it| it["metadata"]["labels"]["app"] = "web".into());
    assert_eq!(presence(&world), there);

    world.delete("Deployment.apps", "front");
    assert_eq!(presence(&world), missing);
    assert_eq!(world.status("web").object_counts.map(|counts| (counts.total, counts.missing)), Some((1, 1)));
}

/// Selecting Components: the key of a component need not be the name of the object.
#[test]
fn a_service_and_a_deployment_may_share_a_name() {
    let components = json!({"components": {
        "front": {"group": "apps", "kind": "Deployment"},
        "front-service": {"kind": "Service", "name": "front"},
    }});
    let mut world = World::with([app("web", &components), deployment("front", 3, 3)]);
    assert_eq!(world.status("web").missing, ["front-service"]);
    world.put(service("front"));
    assert_eq!(world.status("web").installed, ["front", "front-service"]);
    assert_eq!(world.status("web").components_ready.as_deref(), Some("2/2"));
}

/// Selecting Components, step 1: all objects of a component's kind are members, not only the named ones.
#[test]
fn selected_objects_of_a_component_kind_are_members() {
    let world = World::with([app_of("web", &["front"]), deployment("front", 3, 3), deployment("back", 1, 3)]);
    assert_eq!(world.status("web").components_ready.as_deref(), Some("1/2"));
    assert_eq!(world.status("web").installed, ["front"]);
}

/// Objects in other namespaces, of other kinds, and health-check Pods.
#[test]
fn other_namespaces_kinds_and_health_checks_are_not_members() {
    let elsewhere = with(widget("one", Some("False")), &json!({"metadata": {"namespace": "elsewhere"}}));
    let check = json!({"metadata": {"labels": {"bellwether.dev/health-check": "1"}}});
    let kinds = json!({"componentKinds": [{"kind": "Pod"}, {"group": "acme.io", "kind": "Widget"}]});
    let world =
        World::with([app("web", &kinds), elsewhere, service("one"), with(pod("check", false), &check)]);
    assert_eq!(
        world.of_app("web", "Ready"),
        "Unknown NoComponents: no Pod or Widget.acme.io in namespace shop matches selector app=web"
    );
}

#[test]
fn an_application_is_not_a_member_of_itself() {
    let labels = json!({"metadata": {"labels": {"app": "web"}}});
    let kinds = json!({"componentKinds": [{"group": "bellwether.dev", "kind": "Application"}]});
    let world = World::with([
        with(app("all", &kinds), &labels),
        with(app_of("web", &["front"]), &labels),
        deployment("front", 3, 3),
    ]);
    assert_eq!(world.status("all").components_ready.as_deref(), Some("1/1"));
    assert_eq!(world.of_app("all", "Ready"), "True ComponentsReady: All components ready");
}

/// Their messages do not quote each other, which would never end.
#[test]
fn applications_that_contain_each_other_converge() {
    let labels = json!({"metadata": {"labels": {"app": "web"}}});
    let kinds = json!({"componentKinds": [{"group": "bellwether.dev", "kind": "Application"}]});
    let mut world = World::with([with(app("one", &kinds), &labels), with(app("other", &kinds), &labels)]);
    world.pass(SignedDuration::from_mins(1));
    let writes = world.writes.len();
    assert_eq!(
        world.of_app("one", "Ready"),
        "False ComponentsInProgress: Application/other: InProgress (ComponentsInProgress)"
    );
    world.pass(SignedDuration::from_mins(1));
    assert_eq!(world.writes.len(), writes);
}

/// A watch event from before our last write to the inner Application still updates the outer one.
#[test]
fn an_event_older_than_our_write_is_merged() {
    let labels = json!({"metadata": {"labels": {"app": "web"}}});
    let kinds = json!({"componentKinds": [{"group": "bellwether.dev", "kind": "Application"}]});
    let inner = with(app_of("inner", &["front"]), &labels);
    let mut world = World::with([app("outer", &kinds), inner, deployment("front", 3, 3)]);
    let applications = key("Application.bellwether.dev", "").0;
    world.held.insert(applications);
    world.put(deployment("front", 1, 3));
    world.put(deployment("front", 2, 3));
    assert!(world.of_app("inner", "Ready").contains("2 of 3"));
    assert_eq!(world.of_app("outer", "Ready"), "True ComponentsReady: All components ready");
    world.held.clear();
    assert!(world.deliver(), "the watch event of the first of two writes");
    world.held.insert(key("Application.bellwether.dev", "").0);
    world.settle();
    assert_eq!(
        world.of_app("outer", "Ready"),
        "False ComponentsInProgress: Application/inner: InProgress (ComponentsInProgress)"
    );
}

/// One feed per kind for all Applications, as long as one uses it or looks below it.
#[test]
fn a_kind_has_one_feed_while_it_is_used() {
    let mut world = World::with([app_of_kinds("web"), app_of_kinds("shop"), app_of("front", &["front"])]);
    let followed = |world: &World| {
        let mut kinds: Vec<_> = world.feeds.values().map(|feed| feed.kind.to_string()).collect();
        kinds.retain(|kind| !kind.starts_with("Application.") && !kind.ends_with("bellwether.dev"));
        kinds.sort();
        kinds.join(" ")
    };
    assert_eq!(followed(&world), "Deployment.apps Pod ReplicaSet.apps Widget.acme.io");
    world.delete("Application.bellwether.dev", "web");
    assert_eq!(followed(&world), "Deployment.apps Pod ReplicaSet.apps Widget.acme.io");
    world.delete("Application.bellwether.dev", "shop");
    assert_eq!(followed(&world), "Deployment.apps Pod ReplicaSet.apps");
    world.put(app("front", &json!({"components": {"front": {"kind": "Service"}}})));
    assert_eq!(followed(&world), "EndpointSlice.discovery.k8s.io Service");
    world.delete("Application.bellwether.dev", "front");
    assert_eq!(followed(&world), "");
}

/// The annotation is there, and names no Application.
#[rstest]
#[case::empty("")]
#[case::blank(" ")]
fn an_empty_annotation_counts_as_absent(#[case] annotation: &str) {
    let mut world = World::with([app_of_kinds("web"), annotated(deployment("front", 1, 3), annotation)]);
    assert_eq!(
        world.of_app("web", "Ready"),
        "False ComponentsInProgress: Deployment/front: 1 of 3 replicas ready"
    );
    assert_eq!(world.owners("Deployment.apps", "front"), "");
    let annotated_only = with(app_of_kinds("web"), &json!({"spec": {"membership": "Annotated"}}));
    world.put(annotated_only);
    assert_eq!(world.status("web").components_ready.as_deref(), Some("0/0"));
}

/// Two members of one name are told apart.
#[test]
fn members_are_named_with_their_kind() {
    let world = World::with([app_of_kinds("web"), deployment("same", 1, 3), widget("same", Some("False"))]);
    assert_eq!(
        world.of_app("web", "Ready"),
        "False ComponentsInProgress: Deployment/same: 1 of 3 replicas ready; Widget/same: cogs turn"
    );
}
