//! Kinds: not served, forbidden, cluster-scoped, CRDs that come and go, relists, and clusters restored from a
//! backup.

use bellwether_engine::{Event, FeedEvent, Unreadable};
use rstest::rstest;
use serde_json::{Value, json};

use crate::{
    objects::{self, app, app_of_kinds, deployment, kind, widget},
    world::World,
};

/// Resolved names the kind and the reason, other kinds are still counted, and Ready is at best Unknown.
#[rstest]
#[case::not_served(json!({"group": "no.where", "kind": "Gone"}), "False NotServed: Gone.no.where: kind not served by the cluster; check the group and kind, and that the CRD is installed")]
#[case::cluster_scoped(
    json!({"group": "rbac.authorization.k8s.io", "kind": "ClusterRole"}),
    "False ClusterScoped: ClusterRole.rbac.authorization.k8s.io: cluster-scoped; members must be in the namespace of the Application",
)]
fn resolved_names_an_unusable_kind(#[case] other: Value, #[case] resolved: &str) {
    let kinds = json!({"componentKinds": [{"group": "apps", "kind": "Deployment"}, other]});
    let mut world = World::with([app("web", &kinds), deployment("front", 3, 3)]);
    assert_eq!(world.of_app("web", "Resolved"), resolved);
    assert!(world.of_app("web", "Ready").starts_with("Unknown ComponentsUnknown: "));
    assert_eq!(world.status("web").components_ready.as_deref(), Some("1/1"));
    assert!(world.of_app("web", "Settled").starts_with("Unknown "));

    world.put(deployment("front", 2, 3));
    assert_eq!(
        world.of_app("web", "Ready"),
        "False ComponentsInProgress: Deployment/front: 2 of 3 replicas ready"
    );
}

/// Resolved is False, but the object is counted in the served version.
#[test]
fn a_version_that_is_not_served() {
    let components = |version: &str| json!({"components": {"one": {"group": "acme.io", "kind": "Widget", "version": version}}});
    let mut world = World::with([app("web", &components("v3")), widget("one", Some("True"))]);
    let resolved = "False VersionNotServed: Widget.acme.io: version v3 not served, only v2, v1";
    assert_eq!(world.of_app("web", "Resolved"), resolved);
    assert_eq!(world.status("web").installed, ["one"]);
    world.put(app("web", &components("v1")));
    assert_eq!(world.of_app("web", "Resolved"), "True AllKindsResolved: All kinds resolved");
    assert_eq!(world.of_app("web", "Ready"), "True ComponentsReady: All components ready");
}

/// RBAC: members of a kind that becomes forbidden are Unknown, and recover with the permission.
#[test]
fn rbac_is_revoked_and_granted_again() {
    let mut world = World::with([app_of_kinds("web"), widget("one", Some("True"))]);
    world.unreadable("Widget.acme.io", Some(Unreadable::Forbidden { resource: "widgets".into() }));
    world.settle();
    let resolved = world.of_app("web", "Resolved");
    assert!(
        resolved.starts_with("False Forbidden: Widget.acme.io: forbidden; grant get, list"),
        "{resolved}"
    );
    let status = world.status("web");
    assert_eq!((status.objects.len(), status.components_ready.as_deref()), (1, Some("0/1")));
    assert!(world.of_app("web", "Ready").starts_with("Unknown ComponentsUnknown: "));

    world.unreadable("Widget.acme.io", None);
    world.settle();
    assert_eq!(world.of_app("web", "Resolved"), "True AllKindsResolved: All kinds resolved");
    assert_eq!(world.of_app("web", "Ready"), "True ComponentsReady: All components ready");
}

/// Garbage Collection: a CRD that is installed later is found; one that is deleted takes its objects with it.
#[test]
fn a_crd_is_installed_deleted_and_installed_again() {
    let widgets = kind("Widget.acme.io");
    let components = json!({"components": {"one": {"group": "acme.io", "kind": "Widget"}}});
    let mut world = World::new();
    world.server.unserve(&widgets);
    world.put(app("web", &components));
    assert_eq!(
        world.of_app("web", "Resolved"),
        "False NotServed: Widget.acme.io: kind not served by the cluster; check the group and kind, and that the CRD is installed"
    );
    assert_eq!(world.of_app("web", "Ready"), "False ComponentsMissing: Widget/one: not found");
    for _ in 0..2 {
        let mut served = objects::kinds()[&widgets].clone();
        served.versions = ["v2".into()].into();
        world.server.kinds.insert(widgets.clone(), served);
        world.server.put(widget("one", Some("True")));
        world.relist(&widgets);
        world.settle();
        assert_eq!(world.of_app("web", "Ready"), "True ComponentsReady: All components ready");
        assert_eq!(world.status("web").installed, ["one"]);
        world.server.unserve(&widgets);
        world.relist(&widgets);
        world.settle();
        assert_eq!(world.of_app("web", "Ready"), "False ComponentsMissing: Widget/one: not found");
        assert_eq!(world.status("web").missing, ["one"]);
    }
}

/// No status before the initial lists of all kinds; a stored status stays.
#[test]
fn nothing_is_published_before_all_kinds_are_listed() {
    let mut world = World::new();
    world.held.insert(kind("Widget.acme.io"));
    world.put(app_of_kinds("web")).put(deployment("front", 3, 3));
    assert_eq!(world.writes.len(), 0);
    world.held.clear();
    world.settle();
    assert_eq!(world.of_app("web", "Ready"), "True ComponentsReady: All components ready");

    world.restart();
    world.held.insert(kind("Deployment.apps"));
    let writes = world.writes.len();
    world.settle();
    assert_eq!(world.writes.len(), writes, "what was published before stays");
}

/// A deletion that the watch missed is found by the next relist.
#[test]
fn objects_missing_from_a_relist_are_deleted() {
    let widgets = kind("Widget.acme.io");
    let mut world =
        World::with([app_of_kinds("web"), widget("one", Some("True")), widget("two", Some("False"))]);
    world.server.objects.retain(|(_, name), _| *name.name != *"two");
    assert!(
        world.settle().of_app("web", "Ready").starts_with("False "),
        "the watch has not reported the deletion"
    );
    world.relist(&widgets);
    assert_eq!(world.settle().of_app("web", "Ready"), "True ComponentsReady: All components ready");
    assert_eq!(world.status("web").objects.len(), 1);
}

/// Older resourceVersions are ignored, unless the cluster was restored.
#[test]
fn older_versions_count_only_after_a_restore() {
    let mut world = World::with([app_of_kinds("web"), widget("one", Some("True"))]);
    let past = world.settle().server.clone();
    for status in ["False", "Unknown", "False"] {
        world.edit("Widget.acme.io", "one", |it| it["status"]["conditions"][0]["status"] = json!(status));
    }
    assert!(world.of_app("web", "Ready").starts_with("False "));

    let kinds: Vec<_> = world.feeds.iter().map(|(id, feed)| (*id, feed.kind.clone())).collect();
    world.server = past;
    for (_, kind) in &kinds {
        world.relist(kind);
    }
    world.writing = false;
    assert!(world.settle().wants().is_empty(), "an API server that is behind: {:?}", world.wants());

    world.writing = true;
    for (id, kind) in &kinds {
        world.step(Event::Feed(*id, FeedEvent::Restored));
        world.relist(kind);
    }
    assert_eq!(world.settle().of_app("web", "Ready"), "True ComponentsReady: All components ready");
    world.edit("Widget.acme.io", "one", |it| it["status"]["conditions"][0]["status"] = json!("False"));
    assert!(world.settle().of_app("web", "Ready").starts_with("False "), "and events count again");
}

/// During a relist, new and old objects are mixed, which may be a state that never existed: no status is
/// written. Here one object became ready after another one appeared that is not.
#[test]
fn nothing_is_published_during_a_relist() {
    let mut world = World::with([app_of_kinds("web"), deployment("front", 1, 3)]);
    world.server.put(deployment("mail", 0, 1));
    world.server.put(deployment("front", 3, 3));
    world.relist(&kind("Deployment.apps"));
    let writes = world.writes.len();
    for delivered in 0..5 {
        assert!(world.deliver(), "served, list started, two objects, list completed");
        assert_eq!(world.write(), delivered == 4, "{}", world.of_app("web", "Ready"));
    }
    assert_eq!(world.writes.len(), writes + 1);
    assert_eq!(
        world.of_app("web", "Ready"),
        "False ComponentsInProgress: Deployment/mail: 0 of 1 replica ready"
    );
}

/// Whether a component of a cluster-scoped kind exists is not asked.
#[test]
fn a_component_of_a_cluster_scoped_kind_says_so() {
    let component = json!({"group": "rbac.authorization.k8s.io", "kind": "ClusterRole"});
    let world = World::with([app("web", &json!({"components": {"admin": component}}))]);
    let why = "cluster-scoped; members must be in the namespace of the Application";
    assert_eq!(
        world.of_app("web", "Installed"),
        format!("Unknown ComponentsUnknown: component admin: ClusterRole.rbac.authorization.k8s.io: {why}")
    );
    let object = &world.status("web").objects[0];
    assert_eq!((object.reason.as_deref(), object.message.as_deref()), (Some("ClusterScoped"), Some(why)));
}
