//! On real API servers.

use std::net::TcpListener;

use anyhow::{Result, ensure};
use bellwether_testkit::{Access, Cluster, Kubectl};
use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, api::PostParams};
use serde_json::{Value, json};
use tempfile::TempPath;

use super::run;
use crate::Run;

const WEB: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {run: web}}
  template:
    metadata: {labels: {run: web}}
    spec: {containers: [{name: app, image: nginx}]}
---
{apiVersion: v1, kind: Secret, metadata: {name: key, namespace: shop}, stringData: {password: hunter2}}
";

/// An API server with the Deployment web, of which some replicas are available.
async fn cluster(name: &str, available: u32) -> Result<Cluster> {
    let cluster = Cluster::builder().name(name).start().await?;
    let kubectl = Kubectl::new(cluster.admin())?.in_namespace("shop");
    kubectl.ok_with_input(&["apply", "-f", "-"], WEB).await?;
    let status = json!({ "status": {
        "observedGeneration": 1, "replicas": 3, "updatedReplicas": 3, "readyReplicas": available,
        "availableReplicas": available,
    }});
    let patch = ["patch", "deployment/web", "--subresource=status", "--type=merge", "-p"];
    kubectl.ok(&[&patch[..], &[&status.to_string()]].concat()).await?;
    Ok(cluster)
}

struct Named {
    argument: String,
    _kubeconfig: TempPath,
}

impl Named {
    fn new(name: &str, access: &Access) -> Result<Self> {
        let kubeconfig = access.kubeconfig_file()?;
        Ok(Self { argument: format!("{name}={}", kubeconfig.display()), _kubeconfig: kubeconfig })
    }
}

fn query(arguments: &[&str], clusters: &[&Named]) -> Run {
    let clusters: Vec<_> = clusters.iter().flat_map(|named| ["--cluster", &named.argument]).collect();
    run(&[arguments, &clusters].concat())
}

/// One test, because API servers are slow to start.
#[tokio::test]
async fn two_api_servers() -> Result<()> {
    let (one, other) = tokio::try_join!(cluster("query-east", 3), cluster("query-west", 1))?;
    let (east, west) = (Named::new("east", one.admin())?, Named::new("west", other.admin())?);
    let both = [&east, &west];

    let sql = "SELECT inventory.name, status.availableReplicas AS available, obj.spec.replicas, propagation.found, \
               propagation.stale, propagation.health FROM deployments/web";
    let found = query(&[sql, "-n", "shop"], &both);
    let expected = "NAME  AVAILABLE  REPLICAS  FOUND  STALE  HEALTH\neast          3         3  true   false  Ready\nwest       \
                    \u{20}  1         3  true   false  InProgress\n";
    ensure!(found.code == Some(0) && found.stdout == expected, "{found}");

    // What only an API server knows.
    let sql = "SELECT DISTINCT inventory.uid IS NOT NULL AS a, propagation.lastReturnedUpdateTimestamp IS NOT NULL AS b, \
               propagation.observedGeneration AS c FROM deploy";
    let known = query(&[sql, "-n", "shop", "-o", "csv"], &both);
    ensure!(known.stdout == "a,b,c\r\ntrue,true,1\r\n", "{known}");

    // Of Secrets, only metadata is requested.
    let secret = query(
        &["SELECT inventory.name, metadata.name AS object, obj.data FROM secrets/key", "-A", "-o", "csv"],
        &both,
    );
    ensure!(secret.stdout == "name,object,data\r\neast,key,\r\nwest,key,\r\n", "{secret}");

    let selected =
        query(&["SELECT COUNT(*) FROM deployments.apps", "-A", "-l", "app=web", "-o", "name"], &both);
    ensure!(selected.stdout == "2\n", "{selected}");
    let none =
        query(&["SELECT COUNT(*) FROM deployments.apps", "-A", "-l", "app=other", "-o", "name"], &both);
    ensure!(none.stdout == "0\n", "{none}");

    // The flags of the hub without --cluster: one cluster.
    let kubeconfig = one.admin().kubeconfig_file()?;
    let only = run(&[
        "SELECT inventory.name, metadata.name AS object FROM deployments",
        "-n",
        "shop",
        "-o",
        "csv",
        "--kubeconfig",
        &kubeconfig.to_string_lossy(),
    ]);
    ensure!(only.code == Some(0) && only.stdout == "name,object\r\nlocal,web\r\n", "{only}");

    unreadable_clusters(&other, &east)?;
    many_objects(&one, &east).await
}

/// Each is said, has its row, and delays no other.
fn unreadable_clusters(other: &Cluster, east: &Named) -> Result<()> {
    let bob = Named::new("west", &other.user("bob")?)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let hanging = Named::new("hanging", &other.admin().via(listener.local_addr()?))?;
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.local_addr()?
    };
    let closed = Named::new("closed", &other.admin().via(closed))?;
    let sql = "SELECT inventory.name, propagation.found, propagation.stale, status.availableReplicas AS n FROM deployments/web";
    let arguments = [sql, "-n", "shop", "--request-timeout", "2s"];
    let answer = query(&arguments, &[east, &bob, &hanging, &closed]);
    let expected = "NAME     FOUND   STALE       N\nclosed   <none>  true   <none>\neast     true    false       3\nhanging  \
                    <none>  true   <none>\nwest     <none>  true   <none>\n";
    ensure!(answer.code == Some(3) && answer.stdout == expected, "{answer}");
    for error in [
        "error: cluster west: user \"bob\" cannot list deployments.apps in namespace shop. Grant user bob the verb list on \
         deployments.apps\n",
        "error: cluster hanging: cannot connect to the API server at ",
        ": no response within 2s. ",
        "error: cluster closed: cannot connect to the API server at ",
    ] {
        ensure!(answer.stderr.contains(error), "{error}: {answer}");
    }
    // Nothing stale passes as fine.
    let fine = "SELECT COUNT(*) FROM deployments/web WHERE status.availableReplicas = spec.replicas";
    let fine = query(&[fine, "-n", "shop", "--request-timeout", "2s", "-o", "name"], &[east, &bob, &closed]);
    ensure!(fine.stdout == "1\n", "{fine}");
    Ok(())
}

/// More than a page of the list.
async fn many_objects(one: &Cluster, east: &Named) -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(one.admin().client().await?, "shop");
    let create = |number: usize| {
        let maps = maps.clone();
        async move {
            let map: ConfigMap = serde_json::from_value(json!({ "metadata": {
                "name": format!("many-{number}"), "labels": { "many": "yes" },
            }}))?;
            anyhow::Ok(maps.create(&PostParams::default(), &map).await.map(drop)?)
        }
    };
    let created: Vec<Result<()>> = stream::iter((0..1203).map(create)).buffer_unordered(16).collect().await;
    created.into_iter().collect::<Result<()>>()?;
    let counted =
        query(&["SELECT COUNT(*) FROM configmaps", "-n", "shop", "-l", "many", "-o", "name"], &[east]);
    ensure!(counted.stdout == "1203\n", "{counted}");
    let sql = "SELECT metadata.name AS object FROM cm";
    let page = query(
        &[sql, "-n", "shop", "-l", "many=yes", "--offset", "1000", "--limit", "500", "-o", "json"],
        &[east],
    );
    let json: Value = serde_json::from_str(&page.stdout)?;
    let rows = json[0]["rows"].as_array().map(Vec::len);
    ensure!(rows == Some(203) && json[0]["totalRows"] == 1203, "{rows:?}: {}", page.stderr);
    Ok(())
}
