//! Lost responses, and 409 conflicts: other clients write to the same objects at the same time.

use std::time::Instant;

use anyhow::{Context as _, Result};
use bellwether_testkit::{Fault, StatusCode, Verb, eventually};
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::{
    MEMBERS, OWN, SHOP, STATUS, Stage, TIMEOUT,
    namespace_actions::{APPLICATIONS, DEPLOYMENTS},
    observer::Observer,
    recovered,
    write_kinds::{Work, has_told},
};
use crate::controller::condition;

/// The API server makes the write and the response is lost: the controller does nothing twice, and records
/// one Event. Each kind of write has a controller of its own, all in parallel.
#[tokio::test]
async fn answers_are_lost() -> Result<()> {
    let lost = |work| async move { is_lost(work).await.with_context(|| format!("the answer to {work}")) };
    try_join_all(Work::ALL.map(lost)).await.map(drop)
}

async fn is_lost(work: Work) -> Result<()> {
    let stage = Stage::set("lost").await?;
    let struck = stage.struck(work, Fault::LoseResponse).await?;
    struck.fault.done(1).await;
    let since = Instant::now();
    let at = stage.is_done(work).await?;
    recovered(&format!("answer lost to {work}"), since, at)?;
    if matches!(work, Work::Status | Work::Event) {
        let is_told = |observer: &Observer| has_told(observer, SHOP, "to True").then_some(());
        stage.observer.until("the turn is told", is_told).await?;
    }
    stage.ends_well(struck.controller, 20).await?;
    stage.is_done_once(work)
}

/// Another client has written to the status, and the controller has not seen it: 409 conflict. Afterwards the
/// status has the conditions of both.
#[tokio::test]
async fn somebody_else_writes_a_status() -> Result<()> {
    let stage = Stage::set("conflict").await?;
    let controller = stage.looked_after_shop().await?;
    let deaf = stage.deaf_to(&[OWN]).await;
    let mut conditions = stage.land.get(APPLICATIONS, SHOP).await?["status"]["conditions"].take();
    let theirs = json!({
        "type": "Approved", "status": "True", "reason": "Tried", "message": "by others",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    });
    conditions.as_array_mut().context("no conditions")?.push(theirs.clone());
    stage.land.report(APPLICATIONS, SHOP, json!({ "conditions": conditions })).await?;
    stage.land.is_ready("db", true).await?;
    stage.meets_conflict(STATUS).await?;

    let since = Instant::now();
    deaf.hear();
    stage.recovers("conflict over a status", since, (2, 2)).await?;
    let last = stage.land.get(APPLICATIONS, SHOP).await?["status"].take();
    assert_eq!(condition(&last, "Approved"), theirs);
    stage.ends_well(controller, 8).await
}

/// Another client changes the owner references, labels and annotations of an object that the controller
/// adopts.
#[tokio::test]
async fn somebody_else_writes_owners_and_labels() -> Result<()> {
    let stage = Stage::set("conflict-owners").await?;
    stage.land.deployment("web", SHOP).await?;
    let other = stage.land.counted_deployment("other", "none").await?;
    stage.land.application("first", json!({})).await?;
    let controller = stage.controller().await?;
    stage.says("first", (0, 0)).await?;
    stage.fence().await?;
    let deaf = stage.deaf_to(&[MEMBERS]).await;
    let theirs = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "name": "other", "uid": other["metadata"]["uid"],
    });
    let metadata =
        json!({ "ownerReferences": [theirs], "labels": { "team": "a" }, "annotations": { "note": "b" } });
    stage.land.patch(DEPLOYMENTS, "web", json!({ "metadata": metadata })).await?;
    stage.land.application(SHOP, json!({})).await?;
    stage.meets_conflict(MEMBERS).await?;

    let since = Instant::now();
    deaf.hear();
    let at = stage.is_owned("web").await?;
    recovered("conflict over owners", since, at)?;
    stage.says(SHOP, (1, 0)).await?;
    let metadata = stage.land.get(DEPLOYMENTS, "web").await?["metadata"].take();
    let owners: Vec<&Value> = metadata["ownerReferences"].as_array().into_iter().flatten().collect();
    assert_eq!((owners.len(), owners[0]), (2, &theirs), "{owners:?}");
    assert_eq!((&metadata["labels"]["team"], &metadata["annotations"]["note"]), (&json!("a"), &json!("b")));
    stage.ends_well(controller, 8).await
}

/// How often other clients change the objects that the controller writes to.
const ROUNDS: usize = 25;

/// Other clients change everything that the controller writes to, while it writes: no change is lost.
#[tokio::test]
async fn everybody_writes_at_once() -> Result<()> {
    let stage = Stage::set("conflicts").await?;
    let controller = stage.looked_after_shop().await?;
    let land = &stage.land;
    let labels = async {
        for number in 0..ROUNDS {
            let label = json!({ "metadata": { "labels": { (format!("label-{number}")): "theirs" } } });
            land.patch(DEPLOYMENTS, "db", label.clone()).await?;
            land.patch(APPLICATIONS, SHOP, label).await?;
        }
        anyhow::Ok(())
    };
    let turns = async {
        for number in 0..ROUNDS {
            land.is_ready("db", number % 2 == 0).await?;
            // The owner reference comes and goes with the annotation.
            let owner = (number % 2 == 0).then_some(SHOP);
            let annotation = json!({ "metadata": { "annotations": { "kubernetes.io/application": owner } } });
            land.patch(DEPLOYMENTS, "web", annotation).await?;
            land.is_ready("web", true).await?;
        }
        anyhow::Ok(())
    };
    tokio::try_join!(labels, turns)?;
    let since = Instant::now();
    stage.recovers("many writers at once", since, (2, 2)).await?;
    stage.is_owned("web").await?;
    for (what, name) in [(DEPLOYMENTS, "db"), (APPLICATIONS, SHOP)] {
        let labels = land.get(what, name).await?["metadata"]["labels"].take();
        let theirs = labels.as_object().into_iter().flatten().filter(|(_, value)| *value == "theirs").count();
        assert_eq!(theirs, ROUNDS, "{labels}");
    }
    stage.ends_well(controller, 8 + 8 * ROUNDS).await
}

impl Stage<'_> {
    /// Waits until a write of the controller fails with a 409 conflict.
    async fn meets_conflict(&self, resource: &str) -> Result<()> {
        let is_it = |call: &bellwether_testkit::Call| {
            call.verb == Verb::Patch && call.resource.as_ref().is_some_and(|it| it.to_string() == resource)
        };
        eventually(TIMEOUT, "a write meets a conflict", async || {
            let requests = self.proxy.requests();
            Ok(requests.iter().any(|asked| is_it(&asked.call) && asked.status == Some(StatusCode::CONFLICT)))
        })
        .await
    }
}
