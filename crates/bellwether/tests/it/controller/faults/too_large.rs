//! Statuses near etcd's size limit: thousands of members, and an Application that other writers have filled.

use std::time::Instant;

use anyhow::{Result, ensure};
use bellwether_testkit::eventually;
use futures::{TryStreamExt as _, stream};
use serde_json::{Value, json};

use super::{
    FaultFixture, SHOP, TIMEOUT,
    namespace_actions::{APPLICATIONS, DEPLOYMENTS, TestNamespace},
    observer::{Observer, Revision},
    recovered,
};
use crate::controller::condition;

/// A name of the maximum length.
fn long(word: &str, number: u64) -> String {
    let end = format!("-{word}-{number}");
    format!("{}{end}", "n".repeat(253 - end.len()))
}

const MEMBERS: u64 = 2000;
const FAILED: u64 = 200;

/// More components with names of this length exceed the CEL cost limit of the CRD's validation rules.
const COMPONENTS: u64 = 64;

/// Thousands of members with the longest names, hundreds of them failed with long messages, and as many
/// missing components and dependencies as an Application can have: the status counts all of them, lists the
/// worst, and stays small enough for etcd.
#[tokio::test]
async fn thousands_of_long_names() -> Result<()> {
    let fixture = FaultFixture::new("many").await?;
    let namespace = &fixture.namespace;
    let fail = async |number: u64| {
        let name = long("member", number);
        namespace.unowned_deployment(&name, SHOP).await?;
        if number < FAILED {
            let stuck = json!({
                "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "x".repeat(9000),
            });
            let status = json!({ "observedGeneration": 1, "replicas": 1, "conditions": [stuck] });
            namespace.report(DEPLOYMENTS, &name, status).await?;
        }
        anyhow::Ok(())
    };
    stream::iter((0..MEMBERS).map(Ok)).try_for_each_concurrent(16, fail).await?;
    let component = json!({ "group": "apps", "kind": "Deployment" });
    let components: serde_json::Map<_, _> =
        (0..COMPONENTS).map(|number| (long("component", number), component.clone())).collect();
    let dependencies: Vec<_> = (0..64).map(|number| long("dependency", number)).collect();
    namespace.application(SHOP, json!({ "components": components, "dependencies": dependencies })).await?;
    let since = Instant::now();
    let controller = fixture.controller().await?;

    let counts = |revision: &Revision| {
        let counts = &revision.object["status"]["objectCounts"];
        ["total", "failed", "missing"].map(|state| counts[state].as_u64().unwrap_or_default())
    };
    let is_whole = |revision: &Revision| counts(revision) == [MEMBERS + COMPONENTS, FAILED, COMPONENTS];
    let last = |observer: &Observer| observer.statuses(SHOP).pop();
    let revision =
        fixture.observer.until("all are counted", |observer| last(observer).filter(is_whole)).await?;
    recovered("2,000 members with the longest names, from the start", since, revision.at)?;
    let status = &revision.object["status"];
    assert!(status["objects"].as_array().is_some_and(|objects| (1..=100).contains(&objects.len())));
    let message = condition(status, "Ready")["message"].to_string();
    assert!(message.contains("and ") && message.contains(" more"), "{message}");
    let size = status.to_string().len();
    assert!(size < 64 << 10, "{size} bytes");
    assert!(fixture.observer.statuses(SHOP).iter().all(is_whole), "written after all lists");
    // On a loaded machine, such a write may take longer than the request timeout, and the controller repeats
    // it.
    let unanswered = fixture.writes().iter().filter(|write| write.status.is_none()).count();
    fixture.check_invariants(controller, 5 + unanswered).await
}

/// Other writers have filled an Application up to etcd's size limit. The controller logs that its status is
/// too large, handles other Applications meanwhile, and writes the status as soon as there is room.
pub(super) async fn others_have_filled_it() -> Result<()> {
    let fixture = FaultFixture::new("full").await?;
    let namespace = &fixture.namespace;
    fixture.shop().await?;
    namespace.application("full", json!({})).await?;
    fill(namespace).await?;
    let controller = fixture.controller().await?;
    fixture.counts_are(SHOP, (2, 1)).await?;
    eventually(TIMEOUT, "the log says that it is too large", async || {
        let texts = ["write rejected", "/full\"", "part=status", "error=etcdserver: request is too large"];
        Ok(controller.program.log().lines().any(|line| texts.iter().all(|text| line.contains(text))))
    })
    .await?;
    let since = Instant::now();
    namespace.set_ready("db", true).await?;
    fixture.recovers("another status is too large", since, (2, 2)).await?;

    let since = Instant::now();
    namespace.report(APPLICATIONS, "full", json!({ "conditions": null })).await?;
    let at = fixture.counts_are("full", (0, 0)).await?;
    recovered("status too large, from when there is room", since, at)?;
    fixture.check_invariants(controller, 12).await
}

/// Writes conditions of another writer until those of the controller do not fit.
async fn fill(namespace: &TestNamespace) -> Result<()> {
    let theirs = |number: usize, length: usize, letter: &str| {
        json!({
            "type": format!("Theirs{number}"), "status": "True", "reason": "Reported", "message": letter.repeat(length),
            "lastTransitionTime": "2026-01-02T03:04:05Z",
        })
    };
    // Messages of the length that the CRD allows, with three bytes per character; then as many single bytes
    // as etcd accepts, by bisection.
    let full: Vec<Value> = (0..15).map(|number| theirs(number, 32_768, "€")).collect();
    let (mut fits, mut exceeds) = (0, 5 * 32_768);
    while exceeds - fits > 64 {
        let middle = usize::midpoint(fits, exceeds);
        let rest = (0..5).map(|number| theirs(15 + number, middle / 5, "x"));
        let conditions: Vec<_> = full.iter().cloned().chain(rest).collect();
        let written = namespace.report(APPLICATIONS, "full", json!({ "conditions": conditions })).await;
        *(if written.is_ok() { &mut fits } else { &mut exceeds }) = middle;
    }
    ensure!(fits > 0 && exceeds < 5 * 32_768, "the store is larger or smaller than it should be: {fits}");
    Ok(())
}
