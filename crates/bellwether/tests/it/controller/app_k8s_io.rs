//! Applications of app.k8s.io (kubernetes-sigs/application): status, owner references, garbage collection.

use anyhow::{Context as _, Result};
use bellwether_testkit::{Cluster, FaultProxy, Requests, app_k8s_io, eventually, rule};
use serde_json::{Value, json};

use super::{Controller, ControllerFixture, TIMEOUT, application, condition, config, events, text};

const WEB: &str = "applications.app.k8s.io/web";

/// Members are ConfigMaps, Services and ClusterRoles. Users spell `group` in all these ways.
fn web(more: &str) -> String {
    format!(
        "
---
apiVersion: app.k8s.io/v1beta1
kind: Application
metadata: {{name: web, labels: {{app: shop}}}}
spec:
  selector:
    matchLabels: {{app: shop}}
    matchExpressions: [{{key: not-ours, operator: DoesNotExist}}]
  componentKinds:
  - {{group: core, kind: Service}}
  - {{group: rbac.authorization.k8s.io/v1, kind: ClusterRole}}
  - {{group: v1, kind: ConfigMap}}
  - {{group: core/v1, kind: ConfigMap}}
  - {{group: app.k8s.io, kind: Application}}
  descriptor: {{type: shop, version: '1.0', links: [{{url: https://example.com}}]}}
{more}
"
    )
}

/// A ClusterRole, named after the namespace because it is cluster-scoped.
fn role(fixture: &ControllerFixture) -> String {
    format!(
        "
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {}, labels: {{app: shop}}}}
rules: []
",
        fixture.namespace
    )
}

/// Waits until the status satisfies `is_so`, and returns it.
async fn status(fixture: &ControllerFixture, what: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
    let mut status = Value::Null;
    eventually(TIMEOUT, what, async || {
        status = fixture.get(WEB).await?["status"].take();
        Ok(is_so(&status))
    })
    .await
    .with_context(|| format!("the last status was {status:#}"))?;
    Ok(status)
}

/// The CRD is installed while the controller runs. The controller counts and adopts the members, and writes
/// nothing twice. The garbage collector deletes the owned objects with their Application.
#[tokio::test]
async fn from_the_definition_to_the_end() -> Result<()> {
    let cluster = Cluster::builder().name("app-k8s-io").controllers().start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let fixture = ControllerFixture::in_cluster(&cluster, "old").await?;
    let proxy = FaultProxy::before(&cluster).await?;
    let access = cluster.admin().via(proxy.address());
    let controller = Controller::start(&access, &["--leader-elect=false"]).await?;
    fixture.apply(&application("web", "shop", "")).await?;
    fixture.apply(&config("settings", "shop", None)).await?;
    let ours = || fixture.get("applications.bellwether.dev/web");
    let is_ready = |it: &Value| condition(&it["status"], "Ready")["status"] == "True";
    eventually(TIMEOUT, "ours is ready", async || Ok(is_ready(&ours().await?))).await?;

    cluster.install(&[app_k8s_io()?]).await?;
    fixture.apply(&web("")).await?;
    fixture.apply(&role(&fixture)).await?;
    fixture.kubectl("create configmap strange").await?;
    fixture.kubectl("label configmap strange app=shop not-ours=yes").await?;
    fixture.kubectl("create service loadbalancer front --tcp=80").await?;
    fixture.kubectl("label service front app=shop --overwrite").await?;
    // No controller here writes the endpoints of a selector.
    fixture.patch("service/front", json!({ "spec": { "selector": null } })).await?;
    let waits = |status: &Value| status["componentsReady"] == "2/3";
    let waiting = status(&fixture, "the load balancer has no address", waits).await?;
    assert_eq!(condition(&waiting, "Ready")["message"], "1 components not ready");
    let address = json!({ "loadBalancer": { "ingress": [{ "hostname": "front.example.com" }] } });
    fixture.report("service/front", address).await?;
    let done = status(&fixture, "all are ready", |status| status["componentsReady"] == "3/3").await?;
    let namespace = &fixture.namespace;
    let expected = json!([
        {
            "link": format!("/api/v1/namespaces/{namespace}/services/front"), "name": "front", "kind": "Service",
            "status": "Ready",
        },
        {
            "link": format!("/apis/rbac.authorization.k8s.io/v1/clusterroles/{namespace}"), "name": namespace,
            "kind": "ClusterRole", "group": "rbac.authorization.k8s.io", "status": "Ready",
        },
        {
            "link": format!("/api/v1/namespaces/{namespace}/configmaps/settings"), "name": "settings",
            "kind": "ConfigMap", "status": "Ready",
        },
    ]);
    assert_eq!(done["components"], expected);
    let summary = |kind: &str| {
        let it = condition(&done, kind);
        assert!(it["lastUpdateTime"].is_string() && it["lastTransitionTime"].is_string(), "{it}");
        format!("{} {}: {}", text(&it["status"]), text(&it["reason"]), text(&it["message"]))
    };
    assert_eq!(summary("Ready"), "True ComponentsReady: all components ready");
    assert_eq!(summary("Error"), "False NoError: No error seen");
    // `kubectl get`, `wait` and `describe` show what they show with the controller of
    // kubernetes-sigs/application.
    let table = fixture.kubectl("get applications.app.k8s.io web --no-headers").await?;
    assert_eq!(table.split_whitespace().take(4).collect::<Vec<_>>(), ["web", "shop", "1.0", "3/3"]);
    fixture.kubectl(&format!("wait --for=condition=Ready {WEB} --timeout=5m")).await?;
    // While the manifest was being applied, nothing was an Event; later, each change of the state is.
    let events = events(&fixture.kubectl, "app.k8s.io/v1beta1/web").await?;
    let of_apply = ["Normal InProgress 1 components not ready", "Normal Ready all components ready"];
    assert!(events.iter().all(|event| of_apply.contains(&event.as_str())), "{events:#?}");

    fixture.apply(&web("  addOwnerRef: true")).await?;
    fixture.owners_are("configmap/settings", &["web"]).await?;
    fixture.owners_are("service/front", &["web"]).await?;
    status(&fixture, "observedGeneration is 2", |status| status["observedGeneration"] == 2).await?;

    // A restarted controller writes only what changes after its start.
    controller.program.stop().await?;
    proxy.forget();
    let controller = Controller::start(&access, &["--leader-elect=false"]).await?;
    fixture.kubectl("create configmap another").await?;
    fixture.kubectl("label configmap another app=shop").await?;
    status(&fixture, "another one is counted", |status| status["componentsReady"] == "4/4").await?;
    fixture.owners_are("configmap/another", &["web"]).await?;
    let writes = proxy.count(&Requests::writes());
    assert!(writes <= 3, "the owners of one, one status, and that of ours: {:#?}", proxy.requests());
    assert!(is_ready(&ours().await?));

    fixture.kubectl(&format!("delete {WEB}")).await?;
    for owned in ["configmap/settings", "configmap/another", "service/front"] {
        fixture.is_gone(owned).await?;
    }
    assert!(
        fixture.exists("configmap/strange").await?
            && fixture.exists(&format!("clusterrole/{namespace}")).await?
    );
    drop(controller);
    Ok(())
}

/// With `--app-k8s-io=false`, or without permissions on app.k8s.io, the controller ignores these Applications
/// and still handles those of bellwether.dev.
#[tokio::test]
async fn only_where_it_is_wanted_and_allowed() -> Result<()> {
    let cluster = Cluster::builder().name("app-k8s-io-off").start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    cluster.install(&[app_k8s_io()?]).await?;
    let fixture = ControllerFixture::in_cluster(&cluster, "off").await?;
    fixture.apply(&web("")).await?;
    fixture.apply(&application("one", "shop", "")).await?;
    fixture.apply(&config("settings", "shop", None)).await?;
    let is_counted = async |name: &str| {
        eventually(TIMEOUT, &format!("{name} is counted"), async || {
            let ours = fixture.get(&format!("applications.bellwether.dev/{name}")).await?;
            Ok(ours["status"]["componentsReady"] == "1/1")
        })
        .await
    };
    let unwanted =
        Controller::start(cluster.admin(), &["--leader-elect=false", "--app-k8s-io=false"]).await?;
    is_counted("one").await?;
    drop(unwanted);

    let user = cluster.user("controller")?;
    let rights = vec![
        rule(&["*"], "bellwether.dev", &["*"]),
        rule(&["*"], "events.k8s.io", &["events"]),
        rule(&["get", "list", "watch"], "", &["configmaps"]),
    ];
    let _rights = cluster.grant(&user, None, rights).await?;
    let _forbidden = Controller::start(&user, &["--leader-elect=false"]).await?;
    fixture.apply(&application("two", "shop", "")).await?;
    is_counted("two").await?;
    assert!(fixture.get(WEB).await?["status"].is_null());
    Ok(())
}
