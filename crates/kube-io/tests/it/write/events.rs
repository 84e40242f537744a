//! What people are told, as they read it.

use std::collections::BTreeSet;

use anyhow::Result;
use bellwether_api::Rollup;
use bellwether_engine::Transition;
use bellwether_kube_io::write::Recorder;
use bellwether_model::ConditionStatus::{False, True};
use bellwether_testkit::{Fault, FaultProxy, Kubectl, Requests, Verb, eventually, rule};
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use serde_json::json;

use super::*;

fn turn(kind: &str, name: NamespacedName, uid: Box<str>) -> Transition {
    Transition {
        object: ObjectKey { cluster: ClusterName::hub(), kind: GroupKind::own(kind), name },
        uid,
        condition: "Ready",
        from: Some(True),
        to: False,
        since: Timestamp::UNIX_EPOCH,
        reason: "ComponentsNotReady".into(),
        message: "web 2 of 3 replicas ready".into(),
        good: false,
    }
}

/// Waits until `kubectl describe` says all this, in one line.
async fn described(kubectl: &Kubectl, what: &str, words: &[&str]) -> Result<()> {
    eventually(SOON, "kubectl describe shows the Event", async || {
        let text = kubectl.ok(&["describe", what]).await?;
        Ok(text.lines().any(|line| words.iter().all(|word| line.contains(word))))
    })
    .await
}

#[tokio::test]
async fn kubectl_describe_shows_what_has_turned() -> Result<()> {
    let stage = Stage::set("events").await?;
    let application = stage.application("web").await?;
    let recorder = Recorder::start(stage.client.clone(), "pod-1");
    let bad = turn("Application", NamespacedName::new(&stage.namespace, "web"), uid(&application));
    let good = Transition {
        from: Some(False),
        to: True,
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
    let kubectl = Kubectl::new(stage.cluster.admin())?.in_namespace(&stage.namespace);
    let bad = [
        "Warning",
        "ComponentsNotReady",
        "bellwether.dev/controller",
        "Ready: was True, is False: web 2 of 3 replicas ready",
    ];
    described(&kubectl, "application/web", &bad).await?;
    let good = ["Normal", "ComponentsReady", "Ready: was False, is True: All components ready"];
    described(&kubectl, "application/web", &good).await?;
    assert_eq!(recorder.dropped(), 0);
    // It is of another cluster, which has an object of the same name and uid.
    assert!(!kubectl.ok(&["describe", "application/web"]).await?.contains("Elsewhere"));
    Ok(())
}

#[tokio::test]
async fn what_is_in_no_namespace_is_told_too() -> Result<()> {
    let stage = Stage::set("events-none").await?;
    let rollups: Api<Rollup> = Api::all(stage.client.clone());
    let manifest = object(json!({
        "apiVersion": "bellwether.dev/v1alpha1",
        "kind": "Rollup",
        "metadata": { "name": stage.namespace },
        "spec": { "components": [{ "group": "acme.io", "kind": "Widget", "name": "main" }] },
    }))?;
    let rollup: Rollup = rollups.create(&PostParams::default(), &manifest).await?;
    let recorder = Recorder::start(stage.client.clone(), "pod-1");
    recorder.record(turn("Rollup", NamespacedName::new("", &stage.namespace), uid(&rollup)));
    let kubectl = Kubectl::new(stage.cluster.admin())?;
    described(&kubectl, &format!("rollup/{}", stage.namespace), &["Warning", "Ready: was True, is False"])
        .await
}

#[tokio::test]
async fn who_may_not_tell_does_no_harm() -> Result<()> {
    let stage = Stage::set("events-forbidden").await?;
    let mute = stage.cluster.user("mute-recorder")?;
    let recorder = Recorder::start(mute.client().await?, "pod-1");
    let application = stage.application("web").await?;
    let turn = turn("Application", NamespacedName::new(&stage.namespace, "web"), uid(&application));
    recorder.record(turn.clone());
    recorder.record(turn.clone());
    eventually(SOON, "both were given up", async || Ok(recorder.dropped() == 2)).await?;

    let rights = rule(&["create"], "events.k8s.io", &["events"]);
    stage.cluster.grant(&mute, Some(&stage.namespace), vec![rights]).await?;
    recorder.record(turn);
    let kubectl = Kubectl::new(stage.cluster.admin())?.in_namespace(&stage.namespace);
    described(&kubectl, "application/web", &["ComponentsNotReady"]).await?;
    assert_eq!(recorder.dropped(), 2);
    Ok(())
}

/// As at a first start, when every Application has a status for the first time.
#[tokio::test]
async fn all_are_told_when_many_turn_at_once() -> Result<()> {
    let stage = Stage::set("events-many").await?;
    let recorder = Recorder::start(stage.client.clone(), "pod-1");
    for number in 0..600 {
        recorder.record(turn(
            "Application",
            NamespacedName::new(&stage.namespace, &format!("web-{number}")),
            "u".into(),
        ));
    }
    let events: Api<Event> = Api::namespaced(stage.client.clone(), &stage.namespace);
    recorder.finish(SOON).await;
    let told = events.list(&ListParams::default()).await?;
    let told: BTreeSet<_> = told.items.into_iter().filter_map(|event| event.regarding?.name).collect();
    assert_eq!(told.len(), 600);
    Ok(())
}

#[tokio::test]
async fn a_flood_is_not_waited_for() -> Result<()> {
    let stage = Stage::set("events-flood").await?;
    let proxy = FaultProxy::before(stage.cluster).await?;
    let recorder = Recorder::start(stage.cluster.admin().via(proxy.address()).client().await?, "pod-1");
    let held = proxy.inject(Requests::of(Verb::Create, "events.events.k8s.io"), Fault::HoldResponse);
    for _ in 0..10_000 {
        recorder.record(turn("Application", NamespacedName::new(&stage.namespace, "web"), "u".into()));
    }
    assert!((5000..10_000).contains(&recorder.dropped()), "{}", recorder.dropped());
    held.lift();
    Ok(())
}
