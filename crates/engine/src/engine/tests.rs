//! One engine with feeds of two clusters.

use bellwether_model::Object;
use serde_json::{Value, json};

use super::*;
use crate::lens::{Lens, ProjectionContext};

fn now() -> Timestamp {
    "2026-11-14T10:00:00Z".parse().unwrap()
}

fn deployment(uid: &str, ready: i64) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": uid, "resourceVersion": "7", "generation": 1,
            "labels": {"app": "web"},
        },
        "spec": {"replicas": 3},
        "status": {"observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": ready,
            "availableReplicas": ready},
    })
}

fn own(kind: &str, namespace: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "bellwether.dev/v1alpha1", "kind": kind, "spec": spec,
        "metadata": {"name": "web", "namespace": namespace, "uid": kind, "resourceVersion": "7", "generation": 1},
    })
}

/// The events of a list with at most one object.
fn list(engine: &Engine, feed: FeedId, kind: &GroupKind, object: Option<&Value>) -> Vec<Event> {
    let seen = object.map(|object| {
        let bytes = object.to_string();
        let lens = Lens::with(kind, engine.feeds.rules().clone(), RequestedFields::conditions().into());
        let object = Object::from_json(bytes.as_bytes(), lens.plan()).unwrap();
        let (name, seen) = lens.project(&object, ProjectionContext { now: now(), has_status: Some(true) });
        FeedEvent::Applied(name, Box::new(seen))
    });
    let events = [FeedEvent::ListStarted].into_iter().chain(seen).chain([FeedEvent::ListCompleted]);
    events.map(|events| Event::Feed(feed, events)).collect()
}

/// An engine with an Application and a Rollup of one Deployment in the hub.
fn engine() -> Engine {
    let mut engine = Engine::new();
    let application = json!({
        "selector": {"matchLabels": {"app": "web"}}, "componentKinds": [{"group": "apps", "kind": "Deployment"}],
    });
    let rollup = json!({
        "components": [{"group": "apps", "kind": "Deployment", "namespace": "shop", "name": "web"}],
    });
    let objects = [own("Application", "shop", &application), own("Rollup", "", &rollup)];
    let mut effects = engine.step(now(), []);
    while !effects.is_empty() {
        let mut events = Vec::new();
        for effect in effects {
            if let Effect::Follow { feed, kind, .. } = effect {
                let object = objects.iter().find(|object| object["kind"] == *kind.kind);
                let deployment = deployment("hub", 3);
                let object = object.or(Some(&deployment).filter(|_| *kind.kind == *"Deployment"));
                events.extend(list(&engine, feed, &kind, object));
            }
        }
        effects = if events.is_empty() { Vec::new() } else { engine.step(now(), events) };
    }
    engine
}

fn group_views(engine: &Engine) -> String {
    format!("{:?}", engine.groups(now()))
}

/// Objects in two clusters with the same name, labels and even uid are two objects: neither changes the
/// verdict of the other, and nothing is written to the cluster that is only observed.
#[test]
fn verdicts_of_two_clusters_never_mix() {
    let (mut engine, kind) = (engine(), GroupKind::new("apps", "Deployment"));
    let before = group_views(&engine);
    assert!(before.contains("Ready"), "{before}");
    let east = Cluster::named("east");
    let mut effects = Vec::new();
    let feed = engine.feeds.acquire(&east, &kind, &RequestedFields::conditions(), &mut effects);
    assert!(matches!(&effects[..], [Effect::Follow { cluster, .. }] if *cluster == east));
    for uid in ["east", "hub"] {
        for object in [Some(deployment(uid, 0)), None, Some(deployment(uid, 1))] {
            let effects = engine.step(now(), list(&engine, feed, &kind, object.as_ref()));
            assert_eq!(group_views(&engine), before);
            assert!(!effects.iter().any(|effect| matches!(effect, Effect::EnqueueWrite(..))), "{effects:?}");
        }
    }
    let name = NamespacedName::new("shop", "web");
    let ready = |cluster: &Cluster, engine: &Engine| {
        let object = engine.feeds.find(cluster, &kind, &name).and_then(|id| engine.feeds.object(id));
        object.map(|stored| stored.facts.verdict.state.name())
    };
    assert_eq!(ready(&Cluster::hub(), &engine), Some("Ready"));
    assert_eq!(ready(&east, &engine), Some("InProgress"));

    // An object that is deleted in the hub is missing, although the other cluster has it.
    let (hub, _) = engine.feeds.of_kind(&Cluster::hub(), &kind).unwrap();
    engine.step(now(), list(&engine, hub, &kind, None));
    assert_eq!(ready(&Cluster::hub(), &engine), None);
    assert_eq!(ready(&east, &engine), Some("InProgress"));
    assert_ne!(group_views(&engine), before);
}

/// A feed without a source waits for one. Late events of a removed source are ignored. Events of the next
/// source count, whatever their resourceVersions are.
#[test]
fn feeds_survive_a_change_of_the_source() {
    let (mut engine, east, kind) = (engine(), Cluster::named("east"), GroupKind::new("apps", "Deployment"));
    let feed = engine.feeds.acquire(&east, &kind, &RequestedFields::default(), &mut Vec::new());
    let cluster_event = |engine: &mut Engine, event: ClusterEvent| {
        let effects = engine.step(now(), [Event::Cluster(east.clone(), event)]);
        effects.iter().any(|effect| matches!(effect, Effect::Follow { feed: it, .. } if *it == feed))
    };
    let unreadable = |engine: &Engine| engine.feeds.get(feed).unwrap().unreadable.clone();
    let ready = |engine: &Engine| {
        let object = engine.feeds.find(&east, &kind, &NamespacedName::new("shop", "web"))?;
        Some(engine.feeds.object(object)?.facts.verdict.state.name())
    };
    let not_connected = || FeedEvent::Unreadable(Unreadable::NotConnected);
    engine.step(now(), [Event::Feed(feed, not_connected())]);
    assert!(cluster_event(&mut engine, ClusterEvent::Added), "a new source follows the feed");
    assert!(!cluster_event(&mut engine, ClusterEvent::Disconnected), "a lost connection may come back");
    assert!(!cluster_event(&mut engine, ClusterEvent::Connected));
    let mut older = deployment("east", 3);
    older["metadata"]["resourceVersion"] = json!("3");
    let (listed, listed_anew) =
        (list(&engine, feed, &kind, Some(&deployment("east", 0))), list(&engine, feed, &kind, Some(&older)));
    engine.step(now(), listed.clone());
    assert_eq!((unreadable(&engine), ready(&engine)), (None, Some("InProgress")));

    assert!(!cluster_event(&mut engine, ClusterEvent::Removed));
    assert_eq!(unreadable(&engine), Some(Unreadable::NotConnected));
    engine.step(now(), listed);
    assert_eq!(unreadable(&engine), Some(Unreadable::NotConnected), "late events are ignored");
    let another =
        engine.feeds.acquire(&east, &GroupKind::pod(), &RequestedFields::default(), &mut Vec::new());
    engine.step(now(), [Event::Feed(another, not_connected())]);
    assert!(engine.feeds.get(another).unwrap().is_known(), "an unreadable kind is known");

    assert!(cluster_event(&mut engine, ClusterEvent::Added));
    engine.step(now(), listed_anew);
    assert_eq!((unreadable(&engine), ready(&engine)), (None, Some("Ready")));
}
