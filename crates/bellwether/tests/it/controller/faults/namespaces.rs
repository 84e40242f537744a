//! Namespace deletion: an Application, its members and its health-check Pod in a terminating namespace.

use std::time::Instant;

use anyhow::{Result, ensure};
use bellwether_testkit::{Cluster, eventually};
use http::Method;
use serde_json::{Value, json};

use super::{
    FaultFixture, SHOP, TIMEOUT, in_lines,
    namespace_actions::{APPLICATIONS, DEPLOYMENTS, PODS},
    observer::Observer,
    recovered,
    write_kinds::health_check,
};
use crate::controller::Controller;

/// A finalizer keeps the Application longer than the other objects. The controller recreates nothing, hardly
/// retries, and handles other namespaces as before.
#[tokio::test]
async fn a_namespace_goes() -> Result<()> {
    let cluster = Cluster::builder().name("doomed").controllers().start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let (doomed, other) = (
        FaultFixture::in_cluster(&cluster, "doomed").await?,
        FaultFixture::in_cluster(&cluster, "other").await?,
    );
    let proxy = &doomed.proxy;
    let controller =
        Controller::start(&cluster.admin().via(proxy.address()), &["--leader-elect=false"]).await?;
    doomed.namespace.application(SHOP, json!({ "healthCheck": health_check() })).await?;
    let finalizers = json!({ "metadata": { "finalizers": ["example.com/still-needed"] } });
    doomed.namespace.patch(APPLICATIONS, SHOP, finalizers).await?;
    for name in ["web", "db"] {
        doomed.namespace.deployment(name, SHOP).await?;
    }
    let is_whole = |observer: &Observer| {
        let statuses = observer.statuses(SHOP);
        let counts = statuses.last()?.object["status"]["objectCounts"]["total"].as_u64()?;
        let checks =
            observer.present(PODS.plural).into_keys().filter(|name| name.starts_with("shop-")).count();
        (counts == 2 && checks == 1).then_some(())
    };
    doomed.observer.until("all is there", is_whole).await?;
    for name in ["web", "db"] {
        doomed.is_owned(name).await?;
    }
    other.fence().await?;

    proxy.forget();
    let namespace = format!("/api/v1/namespaces/{}", doomed.namespace.name);
    doomed.namespace.request(Method::DELETE, &namespace, &json!({})).await?;
    let since = Instant::now();
    let is_empty = |observer: &Observer| {
        let is_left = |resource: &str| !observer.present(resource).is_empty();
        let application = observer.present(APPLICATIONS.plural).remove(SHOP)?;
        let is_going = !application.object["metadata"]["deletionTimestamp"].is_null();
        (is_going && !is_left(PODS.plural) && !is_left(DEPLOYMENTS.plural)).then(Instant::now)
    };
    let at = doomed.observer.until("all but the Application is gone", is_empty).await?;
    recovered("namespace terminating, until all but a held Application is gone", since, at)?;
    let writes = || {
        let mut requests = doomed.writes();
        requests.retain(|asked| asked.call.namespace.as_ref() == Some(&doomed.namespace.name));
        requests
    };
    let before = other.settled(writes).await?;
    ensure!(before.len() <= 20, "{} writes are too many: {}", before.len(), in_lines(&before));
    assert!(doomed.observer.present(PODS.plural).is_empty());

    let released = json!({ "metadata": { "finalizers": null } });
    doomed.namespace.patch(APPLICATIONS, SHOP, released).await?;
    let is_gone = async || Ok(other.namespace.request(Method::GET, &namespace, &Value::Null).await.is_err());
    eventually(TIMEOUT, "the namespace is gone", is_gone).await?;
    other.slow_fence().await?;
    assert_eq!(writes().len(), before.len(), "{}", in_lines(&writes()));
    controller.program.kill();
    doomed.observer.catches_up(&doomed.namespace).await?;
    doomed.observer.check_statuses()?;
    other.check_restart(0).await
}
