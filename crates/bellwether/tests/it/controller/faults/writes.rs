//! Lost responses, and 409 conflicts: other clients write to the same objects at the same time.

use std::time::Instant;

use anyhow::{Context as _, Result};
use bellwether_testkit::{Fault, StatusCode, Verb, eventually};
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::{
    FaultFixture, MEMBERS, OWN, SHOP, STATUS, TIMEOUT,
    namespace_actions::{APPLICATIONS, DEPLOYMENTS},
    observer::Observer,
    recovered,
    write_kinds::{WriteKind, has_recorded},
};
use crate::controller::condition;

/// The API server makes the write and the response is lost: the controller does nothing twice, and records
/// one Event. Each kind of write has a controller of its own, all in parallel.
#[tokio::test]
async fn answers_are_lost() -> Result<()> {
    let lost = |kind| async move { is_lost(kind).await.with_context(|| format!("the answer to {kind}")) };
    try_join_all(WriteKind::ALL.map(lost)).await.map(drop)
}

async fn is_lost(kind: WriteKind) -> Result<()> {
    let fixture = FaultFixture::new("lost").await?;
    let struck = fixture.struck(kind, Fault::LoseResponse).await?;
    struck.fault.done(1).await;
    let since = Instant::now();
    let at = fixture.is_done(kind).await?;
    recovered(&format!("answer lost to {kind}"), since, at)?;
    if kind == WriteKind::Event {
        let is_recorded = |observer: &Observer| has_recorded(observer, SHOP, "All components").then_some(());
        fixture.observer.until("the Event of the transition is recorded", is_recorded).await?;
    }
    fixture.check_invariants(struck.controller, 20).await?;
    fixture.is_done_once(kind)
}

/// Another client has written to the status, and the controller has not seen it: 409 conflict. Afterwards the
/// status has the conditions of both.
#[tokio::test]
async fn another_client_writes_a_status() -> Result<()> {
    let fixture = FaultFixture::new("conflict").await?;
    let controller = fixture.controlled_shop().await?;
    let held = fixture.hold_watch_events(&[OWN]).await;
    let mut conditions = fixture.namespace.get(APPLICATIONS, SHOP).await?["status"]["conditions"].take();
    let theirs = json!({
        "type": "Approved", "status": "True", "reason": "Tried", "message": "by others",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    });
    conditions.as_array_mut().context("no conditions")?.push(theirs.clone());
    fixture.namespace.report(APPLICATIONS, SHOP, json!({ "conditions": conditions })).await?;
    fixture.namespace.set_ready("db", true).await?;
    fixture.write_conflicts(STATUS).await?;

    let since = Instant::now();
    held.deliver();
    fixture.recovers("conflict over a status", since, (2, 2)).await?;
    let last = fixture.namespace.get(APPLICATIONS, SHOP).await?["status"].take();
    assert_eq!(condition(&last, "Approved"), theirs);
    fixture.check_invariants(controller, 8).await
}

/// Another client changes the owner references, labels and annotations of an object that the controller
/// adopts.
#[tokio::test]
async fn another_client_writes_owners_and_labels() -> Result<()> {
    let fixture = FaultFixture::new("conflict-owners").await?;
    fixture.namespace.deployment("web", SHOP).await?;
    let other = fixture.namespace.unowned_deployment("other", "none").await?;
    fixture.namespace.application("first", json!({})).await?;
    let controller = fixture.controller().await?;
    fixture.counts_are("first", (0, 0)).await?;
    fixture.fence().await?;
    let held = fixture.hold_watch_events(&[MEMBERS]).await;
    let theirs = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "other", "uid": other["metadata"]["uid"],
    });
    let metadata =
        json!({ "ownerReferences": [theirs], "labels": { "team": "a" }, "annotations": { "note": "b" } });
    fixture.namespace.patch(DEPLOYMENTS, "web", json!({ "metadata": metadata })).await?;
    fixture.namespace.application(SHOP, json!({})).await?;
    fixture.write_conflicts(MEMBERS).await?;

    let since = Instant::now();
    held.deliver();
    let at = fixture.is_owned("web").await?;
    recovered("conflict over owners", since, at)?;
    fixture.counts_are(SHOP, (1, 0)).await?;
    let metadata = fixture.namespace.get(DEPLOYMENTS, "web").await?["metadata"].take();
    let owners: Vec<&Value> = metadata["ownerReferences"].as_array().into_iter().flatten().collect();
    assert_eq!((owners.len(), owners[0]), (2, &theirs), "{owners:?}");
    assert_eq!((&metadata["labels"]["team"], &metadata["annotations"]["note"]), (&json!("a"), &json!("b")));
    // Without members it is Unknown, which is recorded after a minute.
    fixture.namespace.delete(APPLICATIONS, "first").await?;
    fixture.check_invariants(controller, 8).await
}

/// How often other clients change the objects that the controller writes to.
const ROUNDS: usize = 25;

/// Other clients change everything that the controller writes to, while it writes: no change is lost.
#[tokio::test]
async fn two_clients_write_at_once() -> Result<()> {
    let fixture = FaultFixture::new("conflicts").await?;
    let controller = fixture.controlled_shop().await?;
    let namespace = &fixture.namespace;
    let labels = async {
        for number in 0..ROUNDS {
            let label = json!({ "metadata": { "labels": { (format!("label-{number}")): "theirs" } } });
            namespace.patch(DEPLOYMENTS, "db", label.clone()).await?;
            namespace.patch(APPLICATIONS, SHOP, label).await?;
        }
        anyhow::Ok(())
    };
    let readiness = async {
        for number in 0..ROUNDS {
            namespace.set_ready("db", number % 2 == 0).await?;
            // The owner reference comes and goes with the annotation.
            let owner = (number % 2 == 0).then_some(SHOP);
            let annotation = json!({ "metadata": { "annotations": { "kubernetes.io/application": owner } } });
            namespace.patch(DEPLOYMENTS, "web", annotation).await?;
            namespace.set_ready("web", true).await?;
        }
        anyhow::Ok(())
    };
    tokio::try_join!(labels, readiness)?;
    let since = Instant::now();
    fixture.recovers("many writers at once", since, (2, 2)).await?;
    fixture.is_owned("web").await?;
    for (resource, name) in [(DEPLOYMENTS, "db"), (APPLICATIONS, SHOP)] {
        let labels = namespace.get(resource, name).await?["metadata"]["labels"].take();
        let theirs = labels.as_object().into_iter().flatten().filter(|(_, value)| *value == "theirs").count();
        assert_eq!(theirs, ROUNDS, "{labels}");
    }
    fixture.check_invariants(controller, 8 + 8 * ROUNDS).await
}

impl FaultFixture<'_> {
    /// Waits until a write of the controller fails with a 409 conflict.
    async fn write_conflicts(&self, resource: &str) -> Result<()> {
        let is_it = |call: &bellwether_testkit::Call| {
            call.verb == Verb::Patch && call.resource.as_ref().is_some_and(|it| it.to_string() == resource)
        };
        eventually(TIMEOUT, "a write fails with a conflict", async || {
            let requests = self.proxy.requests();
            Ok(requests.iter().any(|asked| is_it(&asked.call) && asked.status == Some(StatusCode::CONFLICT)))
        })
        .await
    }
}
