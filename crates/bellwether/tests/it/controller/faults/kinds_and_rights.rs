//! CRDs deleted and recreated, and RBAC permissions revoked and granted again (403).

use std::time::Instant;

use anyhow::{Result, ensure};
use bellwether_testkit::{Requests, Verb, eventually, rule};
use http::{Method, Request};
use serde_json::{Value, json};

use super::{
    super::{Controller, condition, text, widgets},
    SHOP, Stage, TIMEOUT,
    namespace_actions::{DEPLOYMENTS, What},
    observer::Observer,
    recovered,
};

const GROUP: &str = "removed.example.com";
const WIDGETS: What = What { root: "/apis/removed.example.com/v1", plural: "widgets" };
const RESOURCE: &str = "widgets.removed.example.com";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

impl Stage<'_> {
    /// Waits until the latest status of the shop satisfies `is_so`, and returns when it appeared.
    async fn shows(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Result<Instant> {
        let is_so = |observer: &Observer| {
            let statuses = observer.statuses(SHOP);
            statuses.last().filter(|seen| is_so(&seen.object["status"])).map(|seen| seen.at)
        };
        self.observer.until(what, is_so).await
    }

    async fn define(&self) -> Result<()> {
        let definition: Value = serde_saphyr::from_str(&widgets(GROUP, "status: {}"))?;
        self.land.ask(Method::POST, DEFINITIONS, &definition).await?;
        let list = self.land.path(WIDGETS, None);
        let is_served = async || Ok(self.land.ask(Method::GET, &list, &Value::Null).await.is_ok());
        eventually(TIMEOUT, "Widgets are served", is_served).await
    }

    /// Creates a Widget that is Ready. Retries until the API server serves the new CRD.
    async fn widget(&self, name: &str) -> Result<()> {
        let object = json!({
            "apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
            "metadata": { "name": name, "labels": { "app": SHOP } },
        });
        let made = async || Ok(self.land.create(WIDGETS, &object).await.is_ok());
        eventually(TIMEOUT, "a Widget can be made", made).await?;
        let ready = json!({ "conditions": [{ "type": "Ready", "status": "True" }] });
        self.land.report(WIDGETS, name, ready).await.map(drop)
    }
}

/// A CRD is deleted with all its objects and recreated, while the proxy holds the watch events. The
/// controller drops the old objects and finds the new ones.
#[tokio::test]
async fn a_kind_is_removed_and_added_again() -> Result<()> {
    let stage = Stage::set("removed").await?;
    stage.define().await?;
    stage.widget("one").await?;
    stage.widget("two").await?;
    let kinds = json!([{ "group": GROUP, "kind": "Widget" }]);
    stage.land.application(SHOP, json!({ "componentKinds": kinds })).await?;
    let controller = stage.controller().await?;
    let ready = |count: u64| {
        move |status: &Value| {
            status["objectCounts"]["ready"] == count && status["objectCounts"]["total"] == count
        }
    };
    stage.shows("two are ready", ready(2)).await?;

    let deaf = stage.deaf_to(&[RESOURCE, "customresourcedefinitions.apiextensions.k8s.io"]).await;
    let path = format!("{DEFINITIONS}/{RESOURCE}");
    stage.land.ask(Method::DELETE, &path, &json!({})).await?;
    let is_gone = async || Ok(stage.land.ask(Method::GET, &path, &Value::Null).await.is_err());
    eventually(TIMEOUT, "the definition is gone", is_gone).await?;
    stage.define().await?;
    stage.widget("three").await?;
    let since = Instant::now();
    deaf.end(&stage.proxy).await;
    let at = stage.shows("one is ready", ready(1)).await?;
    recovered("kind removed and added again", since, at)?;

    // The same while the watches work.
    let since = Instant::now();
    stage.land.ask(Method::DELETE, &path, &json!({})).await?;
    let not_served = |status: &Value| condition(status, "Resolved")["reason"] == "NotServed";
    let at = stage.shows("the kind is not served", not_served).await?;
    recovered("kind removed", since, at)?;
    let since = Instant::now();
    stage.define().await?;
    stage.widget("four").await?;
    let at = stage.shows("one is ready again", ready(1)).await?;
    recovered("kind added again", since, at)?;
    for seen in stage.observer.statuses(SHOP) {
        let status = &seen.object["status"];
        let is_true = condition(status, "Ready")["status"] == "True";
        assert!(!is_true || status["objectCounts"]["total"] != 0, "{status:#}");
    }
    stage.ends_well(controller, 20).await
}

/// A 403 for one kind affects only that kind: the condition names the missing permission, and objects of that
/// kind become Unknown. After the grant, the Application recovers.
#[tokio::test]
async fn rights_are_taken_away_and_given_back() -> Result<()> {
    let stage = Stage::set("rights").await?;
    let user = stage.cluster.user(&format!("controller-of-{}", stage.land.namespace))?;
    let read = ["get", "list", "watch"];
    let base = vec![
        rule(&["*"], "bellwether.dev", &["*"]),
        rule(&["*"], "events.k8s.io", &["events"]),
        rule(&read, "apiextensions.k8s.io", &["customresourcedefinitions"]),
        rule(&read, "", &["configmaps"]),
    ];
    let _base = stage.cluster.grant(&user, None, base).await?;
    let members = || vec![rule(&["get", "list", "watch", "patch"], "apps", &["deployments"])];
    let grant = stage.cluster.grant(&user, None, members()).await?;
    stage.shop().await?;
    let arguments = ["--leader-elect=false", "--watch-namespace", &stage.land.namespace];
    let controller = Controller::start(&user.via(stage.proxy.address()), &arguments).await?;
    stage.says(SHOP, (2, 1)).await?;
    stage.fence().await?;

    grant.revoke().await?;
    let forbidden = |status: &Value| condition(status, "Resolved")["reason"] == "Forbidden";
    // The API server checks RBAC when a watch starts, and its own cache of RBAC may lag.
    let client = user.client().await?;
    let is_refused = async || {
        let list = Request::get(stage.land.path(DEPLOYMENTS, None)).body(Vec::new())?;
        Ok(client.request::<Value>(list).await.is_err())
    };
    eventually(TIMEOUT, "the API server refuses", is_refused).await?;
    stage.proxy.cut_all().await;
    let since = Instant::now();
    let at = stage.shows("that the right is gone", forbidden).await?;
    recovered("rights for one kind taken away", since, at)?;
    let statuses = stage.observer.statuses(SHOP);
    let status = statuses.last().map(|seen| seen.object["status"].clone()).unwrap_or_default();
    let message = text(&condition(&status, "Resolved")["message"]);
    assert_eq!(message, "Deployment.apps: forbidden; grant get, list and watch on deployments.apps");
    assert_eq!(condition(&status, "Ready")["status"], "Unknown");
    assert_eq!(
        (&status["objectCounts"]["unknown"], &status["objectCounts"]["total"]),
        (&json!(2), &json!(2))
    );

    // The controller sees this change after the grant.
    stage.land.is_ready("db", true).await?;
    let grant = stage.cluster.grant(&user, None, members()).await?;
    let since = Instant::now();
    stage.recovers("rights for one kind given back", since, (2, 2)).await?;
    ensure!(stage.proxy.count(&Requests::of(Verb::Patch, super::STATUS)) < 20, "it writes and writes");
    drop(grant);
    stage.ends_well(controller, 20).await
}
