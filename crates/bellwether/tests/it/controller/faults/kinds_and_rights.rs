//! CRDs deleted and recreated, and RBAC permissions revoked and granted again (403).

use std::time::Instant;

use anyhow::{Result, ensure};
use bellwether_testkit::{Requests, Verb, eventually, rule};
use http::{Method, Request};
use serde_json::{Value, json};

use super::{
    super::{Controller, condition, text, widgets},
    FaultFixture, SHOP, TIMEOUT,
    namespace_actions::{DEPLOYMENTS, ResourcePath},
    observer::Observer,
    recovered,
};

const GROUP: &str = "removed.example.com";
const WIDGETS: ResourcePath = ResourcePath { root: "/apis/removed.example.com/v1", plural: "widgets" };
const RESOURCE: &str = "widgets.removed.example.com";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

impl FaultFixture<'_> {
    /// Waits until the latest status of the shop satisfies `is_so`, and returns when it appeared.
    async fn shows(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Result<Instant> {
        let is_so = |observer: &Observer| {
            let statuses = observer.statuses(SHOP);
            statuses.last().filter(|revision| is_so(&revision.object["status"])).map(|revision| revision.at)
        };
        self.observer.until(what, is_so).await
    }

    async fn define(&self) -> Result<()> {
        let definition: Value = serde_saphyr::from_str(&widgets(GROUP, "status: {}"))?;
        self.namespace.request(Method::POST, DEFINITIONS, &definition).await?;
        let list = self.namespace.path(WIDGETS, None);
        let is_served = async || Ok(self.namespace.request(Method::GET, &list, &Value::Null).await.is_ok());
        eventually(TIMEOUT, "Widgets are served", is_served).await
    }

    /// Creates a Widget that is Ready. Retries until the API server serves the new CRD.
    async fn widget(&self, name: &str) -> Result<()> {
        let object = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
            "metadata": { "name": name, "labels": { "app": SHOP } },
        });
        let made = async || Ok(self.namespace.create(WIDGETS, &object).await.is_ok());
        eventually(TIMEOUT, "a Widget can be made", made).await?;
        let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        self.namespace.report(WIDGETS, name, ready).await.map(drop)
    }
}

/// A CRD is deleted with all its objects and recreated, while the proxy holds the watch events. The
/// controller drops the old objects and finds the new ones.
#[tokio::test]
async fn a_kind_is_removed_and_added_again() -> Result<()> {
    let fixture = FaultFixture::new("removed").await?;
    fixture.define().await?;
    fixture.widget("one").await?;
    fixture.widget("two").await?;
    let kinds = json!([{ "group": GROUP, "kind": "Widget" }]);
    fixture.namespace.application(SHOP, json!({ "componentKinds": kinds })).await?;
    let controller = fixture.controller().await?;
    let ready = |count: u64| {
        move |status: &Value| {
            status["objectCounts"]["ready"] == count && status["objectCounts"]["total"] == count
        }
    };
    fixture.shows("two are ready", ready(2)).await?;

    let held = fixture.hold_watch_events(&[RESOURCE, "customresourcedefinitions.apiextensions.k8s.io"]).await;
    let path = format!("{DEFINITIONS}/{RESOURCE}");
    fixture.namespace.request(Method::DELETE, &path, &json!({})).await?;
    let is_gone = async || Ok(fixture.namespace.request(Method::GET, &path, &Value::Null).await.is_err());
    eventually(TIMEOUT, "the definition is gone", is_gone).await?;
    fixture.define().await?;
    fixture.widget("three").await?;
    let since = Instant::now();
    held.discard(&fixture.proxy).await;
    let at = fixture.shows("one is ready", ready(1)).await?;
    recovered("kind removed and added again", since, at)?;

    // The same while the watches work.
    let since = Instant::now();
    fixture.namespace.request(Method::DELETE, &path, &json!({})).await?;
    let not_served = |status: &Value| condition(status, "Resolved")["reason"] == "NotServed";
    let at = fixture.shows("the kind is not served", not_served).await?;
    recovered("kind removed", since, at)?;
    let since = Instant::now();
    fixture.define().await?;
    fixture.widget("four").await?;
    let at = fixture.shows("one is ready again", ready(1)).await?;
    recovered("kind added again", since, at)?;
    for revision in fixture.observer.statuses(SHOP) {
        let status = &revision.object["status"];
        let is_true = condition(status, "Ready")["status"] == "True";
        assert!(!is_true || status["objectCounts"]["total"] != 0, "{status:#}");
    }
    fixture.check_invariants(controller, 20).await
}

/// A 403 for one kind affects only that kind: the condition names the missing permission, and objects of that
/// kind become Unknown. After the grant, the Application recovers.
#[tokio::test]
async fn rights_are_taken_away_and_given_back() -> Result<()> {
    let fixture = FaultFixture::new("rights").await?;
    let user = fixture.cluster.user(&format!("controller-of-{}", fixture.namespace.name))?;
    let read = ["get", "list", "watch"];
    let base = vec![
        rule(&["*"], "bellwether.dev", &["*"]),
        rule(&["*"], "events.k8s.io", &["events"]),
        rule(&read, "apiextensions.k8s.io", &["customresourcedefinitions"]),
        rule(&read, "", &["configmaps"]),
    ];
    let _base = fixture.cluster.grant(&user, None, base).await?;
    let members = || vec![rule(&["get", "list", "watch", "patch"], "apps", &["deployments"])];
    let grant = fixture.cluster.grant(&user, None, members()).await?;
    fixture.shop().await?;
    let arguments = ["--leader-elect=false", "--watch-namespace", &fixture.namespace.name];
    let controller = Controller::start(&user.via(fixture.proxy.address()), &arguments).await?;
    fixture.counts_are(SHOP, (2, 1)).await?;
    fixture.fence().await?;

    grant.revoke().await?;
    let forbidden = |status: &Value| condition(status, "Resolved")["reason"] == "Forbidden";
    // The API server checks RBAC when a watch starts, and its own cache of RBAC may lag.
    let client = user.client().await?;
    let is_refused = async || {
        let list = Request::get(fixture.namespace.path(DEPLOYMENTS, None)).body(Vec::new())?;
        Ok(client.request::<Value>(list).await.is_err())
    };
    eventually(TIMEOUT, "the API server refuses", is_refused).await?;
    fixture.proxy.cut_all().await;
    let since = Instant::now();
    let at = fixture.shows("that the right is gone", forbidden).await?;
    recovered("rights for one kind taken away", since, at)?;
    let statuses = fixture.observer.statuses(SHOP);
    let status = statuses.last().map(|revision| revision.object["status"].clone()).unwrap_or_default();
    let message = text(&condition(&status, "Resolved")["message"]);
    assert_eq!(message, "Deployment.apps: forbidden; grant get, list and watch on deployments.apps");
    assert_eq!(condition(&status, "Ready")["status"], "Unknown");
    assert_eq!(
        (&status["objectCounts"]["unknown"], &status["objectCounts"]["total"]),
        (&json!(2), &json!(2))
    );

    // The controller sees this change after the grant.
    fixture.namespace.set_ready("db", true).await?;
    let grant = fixture.cluster.grant(&user, None, members()).await?;
    let since = Instant::now();
    fixture.recovers("rights for one kind given back", since, (2, 2)).await?;
    ensure!(fixture.proxy.count(&Requests::of(Verb::Patch, super::STATUS)) < 20, "it writes and writes");
    drop(grant);
    fixture.check_invariants(controller, 20).await
}
