//! Kubernetes Events as kubectl describe shows them: transitions, cluster-scoped objects, 403, a full queue.

use std::collections::BTreeSet;

use anyhow::Result;
use bellwether_api::Rollup;
use bellwether_engine::Transition;
use bellwether_kube_io::write::Recorder;
use bellwether_testkit::{Fault, FaultProxy, Kubectl, Requests, Verb, eventually, rule};
use jiff::Timestamp;
use k8s_openapi::api::{core::v1::Namespace, events::v1::Event};
use kube::api::{DeleteParams, ListParams};
use serde_json::json;

use super::*;

fn transition(kind: &str, name: NamespacedName, uid: Box<str>) -> Transition {
    Transition {
        object: ObjectKey { cluster: ClusterName::hub(), kind: GroupKind::bellwether(kind), name },
        uid,
        subject: "Ready",
        from: Some("True"),
        to: "False",
        since: Timestamp::UNIX_EPOCH,
        reason: "ComponentsInProgress".into(),
        message: "Deployment/web: 2 of 3 replicas ready".into(),
        good: false,
    }
}

/// Waits until `kubectl describe` shows a line with all these texts.
async fn described(kubectl: &Kubectl, object: &str, texts: &[&str]) -> Result<()> {
    eventually(SOON, "kubectl describe shows the Event", async || {
        let text = kubectl.ok(&["describe", object]).await?;
        Ok(text.lines().any(|line| texts.iter().all(|text| line.contains(text))))
    })
    .await
}

#[tokio::test]
async fn kubectl_describe_shows_transitions() -> Result<()> {
    let fixture = WriterFixture::new("events").await?;
    let application = fixture.application("web").await?;
    let recorder = Recorder::start(fixture.client.clone(), "pod-1");
    let bad = transition("Application", NamespacedName::new(&fixture.namespace, "web"), uid(&application));
    let good = Transition {
        from: Some("False"),
        to: "True",
        reason: "ComponentsReady".into(),
        message: "All components ready".into(),
        good: true,
        ..bad.clone()
    };
    let mut elsewhere = Transition { reason: "Elsewhere".into(), ..bad.clone() };
    elsewhere.object.cluster = ClusterName::named("east");
    recorder.record(elsewhere);
    recorder.record(bad);
    recorder.record(good);
    let kubectl = Kubectl::new(fixture.cluster.admin())?.in_namespace(&fixture.namespace);
    let bad = [
        "Warning",
        "ComponentsInProgress",
        "bellwether.dev/controller",
        "Ready changed from True to False: Deployment/web: 2 of 3 replicas ready",
    ];
    described(&kubectl, "application/web", &bad).await?;
    let good = ["Normal", "ComponentsReady", "Ready changed from False to True: All components ready"];
    described(&kubectl, "application/web", &good).await?;
    assert_eq!(recorder.dropped(), 0);
    // The other cluster has an object of the same name and uid.
    assert!(!kubectl.ok(&["describe", "application/web"]).await?.contains("Elsewhere"));
    Ok(())
}

#[tokio::test]
async fn cluster_scoped_objects_have_events() -> Result<()> {
    let fixture = WriterFixture::new("events-none").await?;
    let rollups: Api<Rollup> = Api::all(fixture.client.clone());
    let manifest = object(json!({
        "apiVersion": "bellwether.dev/v1alpha1",
        "kind": "Rollup",
        "metadata": { "name": fixture.namespace },
        "spec": { "components": [{ "group": "acme.io", "kind": "Widget", "name": "main" }] },
    }))?;
    let rollup: Rollup = rollups.create(&PostParams::default(), &manifest).await?;
    let recorder = Recorder::start(fixture.client.clone(), "pod-1");
    recorder.record(transition("Rollup", NamespacedName::new("", &fixture.namespace), uid(&rollup)));
    let kubectl = Kubectl::new(fixture.cluster.admin())?;
    described(
        &kubectl,
        &format!("rollup/{}", fixture.namespace),
        &["Warning", "Ready changed from True to False"],
    )
    .await
}

#[tokio::test]
async fn a_403_drops_events() -> Result<()> {
    let fixture = WriterFixture::new("events-forbidden").await?;
    let mute = fixture.cluster.user("mute-recorder")?;
    let recorder = Recorder::start(mute.client().await?, "pod-1");
    let application = fixture.application("web").await?;
    let event = transition("Application", NamespacedName::new(&fixture.namespace, "web"), uid(&application));
    recorder.record(event.clone());
    recorder.record(event.clone());
    eventually(SOON, "both are dropped", async || Ok(recorder.dropped() == 2)).await?;

    let permission = rule(&["create"], "events.k8s.io", &["events"]);
    fixture.cluster.grant(&mute, Some(&fixture.namespace), vec![permission]).await?;
    recorder.record(event);
    let kubectl = Kubectl::new(fixture.cluster.admin())?.in_namespace(&fixture.namespace);
    described(&kubectl, "application/web", &["ComponentsInProgress"]).await?;
    assert_eq!(recorder.dropped(), 2);
    Ok(())
}

/// The namespace is being deleted, so that its Events are not missed, and no permission is asked for: rights
/// in it may be gone already.
#[tokio::test]
async fn an_event_in_a_terminating_namespace_is_not_missed() -> Result<()> {
    let fixture = WriterFixture::new("events-ending").await?;
    let application = fixture.application("web").await?;
    let event = transition("Application", NamespacedName::new(&fixture.namespace, "web"), uid(&application));
    let mute = fixture.cluster.user("mute-recorder-of-namespaces")?;
    let permission = rule(&["get"], "", &["namespaces"]);
    let _granted = fixture.cluster.grant(&mute, None, vec![permission]).await?;
    // Without controllers, it stays in that state.
    let namespaces: Api<Namespace> = Api::all(fixture.client.clone());
    namespaces.delete(&fixture.namespace, &DeleteParams::default()).await?;
    for client in [mute.client().await?, fixture.client.clone()] {
        // Admission and the authorizer learn of changes by watches.
        eventually(SOON, "no Event is missed", async || {
            let recorder = Recorder::start(client.clone(), "pod-1");
            recorder.record(event.clone());
            let dropped = recorder.finish(SOON).await;
            Ok(dropped == 0)
        })
        .await?;
    }
    Ok(())
}

/// As when all Applications of a cluster change at the same moment.
#[tokio::test]
async fn many_transitions_at_once_are_all_written() -> Result<()> {
    let fixture = WriterFixture::new("events-many").await?;
    let recorder = Recorder::start(fixture.client.clone(), "pod-1");
    for number in 0..600 {
        recorder.record(transition(
            "Application",
            NamespacedName::new(&fixture.namespace, &format!("web-{number}")),
            format!("u-{number}").into(),
        ));
    }
    let events: Api<Event> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    recorder.finish(SOON).await;
    let written = events.list(&ListParams::default()).await?;
    let written: BTreeSet<_> = written.items.into_iter().filter_map(|event| event.regarding?.name).collect();
    assert_eq!(written.len(), 600);
    Ok(())
}

#[tokio::test]
async fn a_flapping_object_has_few_events() -> Result<()> {
    let fixture = WriterFixture::new("events-flapping").await?;
    let recorder = Recorder::start(fixture.client.clone(), "pod-1");
    let event = |name: &str| {
        transition("Application", NamespacedName::new(&fixture.namespace, name), name.to_owned().into())
    };
    for _ in 0..40 {
        recorder.record(event("flapping"));
    }
    recorder.record(event("quiet"));
    let events: Api<Event> = Api::namespaced(fixture.client.clone(), &fixture.namespace);
    assert_eq!(recorder.finish(SOON).await, 15);
    let written = events.list(&ListParams::default()).await?;
    let names: Vec<_> = written.items.into_iter().filter_map(|event| event.regarding?.name).collect();
    let of = |name: &str| names.iter().filter(|it| *it == name).count();
    assert_eq!((of("flapping"), of("quiet")), (25, 1));
    Ok(())
}

#[tokio::test]
async fn a_full_queue_drops_events() -> Result<()> {
    let fixture = WriterFixture::new("events-flood").await?;
    let proxy = FaultProxy::before(fixture.cluster).await?;
    let recorder = Recorder::start(fixture.cluster.admin().via(proxy.address()).client().await?, "pod-1");
    let held = proxy.inject(Requests::of(Verb::Create, "events.events.k8s.io"), Fault::HoldResponse);
    for number in 0..10_000 {
        recorder.record(transition(
            "Application",
            NamespacedName::new(&fixture.namespace, "web"),
            format!("u-{number}").into(),
        ));
    }
    assert!((5000..10_000).contains(&recorder.dropped()), "{}", recorder.dropped());
    held.lift();
    Ok(())
}
