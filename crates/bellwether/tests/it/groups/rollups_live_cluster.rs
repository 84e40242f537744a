//! Rollups on real control planes. They are cluster-scoped, so that each test has a cluster of its own.

use std::io::{BufRead as _, BufReader};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{Cluster, TIMEOUT, eventually, rule};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::live_cluster::{Corner, WEB, as_user};

/// The CRD of a kind without a schema.
fn crd(kind: &str, plural: &str, scope: &str) -> Result<CustomResourceDefinition> {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    Ok(serde_json::from_value(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.acme.io") },
        "spec": {
            "group": "acme.io", "scope": scope,
            "names": { "kind": kind, "plural": plural, "singular": kind.to_lowercase() },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": schema },
            }],
        },
    }))?)
}

async fn start(name: &str) -> Result<Cluster> {
    let cluster = Cluster::builder().name(name).start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let kinds = [crd("Gizmo", "gizmos", "Namespaced")?, crd("Fabric", "fabrics", "Cluster")?];
    cluster.install(&kinds).await?;
    Ok(cluster)
}

/// A status with the conditions of an operator.
fn status(available: bool, progressing: bool, degraded: bool, message: &str) -> String {
    let condition = |type_: &str, is: bool| -> Value {
        let status = if is { "True" } else { "False" };
        json!({
            "type": type_, "status": status, "reason": "Reported", "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let conditions = [
        condition("Available", available),
        condition("Progressing", progressing),
        condition("Degraded", degraded),
    ];
    json!({ "status": { "conditions": conditions } }).to_string()
}

async fn report(corner: &Corner, object: &str, status: &str) -> Result<()> {
    corner
        .kubectl
        .ok(&["patch", object, "--subresource=status", "--type=merge", "-p", status])
        .await
        .map(drop)
}

fn platform(namespace: &str) -> String {
    format!(
        "
apiVersion: bellwether.dev/v1alpha1
kind: Rollup
metadata: {{name: platform}}
spec:
  components:
  - {{group: acme.io, kind: Gizmo, namespace: {namespace}, name: a}}
  - {{group: acme.io, kind: Fabric, name: f}}
---
{{apiVersion: acme.io/v1, kind: Gizmo, metadata: {{name: a}}}}
---
{{apiVersion: acme.io/v1, kind: Fabric, metadata: {{name: f}}}}
"
    )
}

/// The commands run in another namespace than that of the components.
#[tokio::test]
async fn from_failed_to_ready() -> Result<()> {
    let cluster = start("rollup-heals").await?;
    let corner = Corner::of(&cluster, "disks").await?;
    let elsewhere = Corner::of(&cluster, "elsewhere").await?;
    corner.apply(&platform(&corner.namespace)).await?;
    report(&corner, "gizmo/a", &status(false, false, true, "a cog is jammed")).await?;
    report(&corner, "fabric/f", &status(true, false, false, "")).await?;
    let uid = corner.kubectl.ok(&["get", "gizmo/a", "-o", "jsonpath={.metadata.uid}"]).await?;
    corner
        .apply(&format!(
            "apiVersion: apps/v1
kind: Deployment
metadata:
  name: gears
  ownerReferences: [{{apiVersion: acme.io/v1, kind: Gizmo, name: a, uid: {uid}, controller: true}}]
spec:
  selector: {{matchLabels: {{run: gears}}}}
  template: {{metadata: {{labels: {{run: gears}}}}, spec: {{containers: [{{name: app, image: nginx}}]}}}}
"
        ))
        .await?;
    let place = &corner.namespace;

    let all = elsewhere.run(&["status"])?;
    let why = "Gizmo/a: Reported: a cog is jammed";
    ensure!(all.stdout.contains("rollup/platform  ✗ Failed") && all.stdout.contains(why), "{all}");
    ensure!(all.code == Some(1), "{all}");
    let one = elsewhere.run(&["status", "platform"])?;
    ensure!(one.stdout.starts_with("Rollup platform: Failed for "), "{one}");
    ensure!(one.stdout.contains("Available=False, Degraded=True (Reported): "), "{one}");
    ensure!(one.stdout.contains(&format!("  1  Deployment/gears -n {place}  ")), "{one}");
    ensure!(one.stdout.contains(&format!("blocks {why}")), "{one}");
    let tree = elsewhere.run(&["tree", "rollup/platform"])?;
    ensure!(tree.stdout.contains(&format!("├─ Gizmo/a -n {place} ")), "{tree}");
    ensure!(tree.stdout.contains("│  └─ Deployment/gears "), "{tree}");
    let whose = corner.run(&["whose", "deploy/gears"])?;
    let answer = "Deployment/gears belongs to Rollup platform (via Gizmo/a)\n";
    ensure!(whose.code == Some(0) && whose.stdout == answer, "{whose}");
    // No controller has written a status of the inner Rollup.
    let above = "{apiVersion: bellwether.dev/v1alpha1, kind: Rollup, metadata: {name: all}, spec: {components: [{group: \
                 bellwether.dev, kind: Rollup, name: platform}]}}";
    corner.apply(above).await?;
    let above = elsewhere.run(&["status", "all"])?;
    ensure!(above.stdout.starts_with("Rollup all: Failed for "), "{above}");
    ensure!(above.stdout.contains("  1  Rollup/platform  ✗ Failed"), "{above}");
    let fast = elsewhere.run(&["wait", "platform", "--fail-fast"])?;
    ensure!(
        fast.code == Some(1) && fast.stdout.contains(&format!("\nRollup platform: failed: {why}")),
        "{fast}"
    );

    let mut waits = elsewhere.start(&["wait", "platform", "--timeout", "2m"])?;
    let mut lines = BufReader::new(waits.stdout.take().context("a pipe")?).lines();
    let mut next = || lines.next().context("the wait has ended")?.context("no text");
    let first = next()?;
    ensure!(first.contains("Rollup platform: Failed, 1/2 ready"), "{first}");
    let second = next()?;
    ensure!(second.contains("Gizmo/a: Failed: Reported: a cog is jammed"), "{second}");
    report(&corner, "gizmo/a", &status(true, true, true, "the cog is being oiled")).await?;
    let third = next()?;
    ensure!(third.contains("Rollup platform: InProgress, 1/2 ready"), "{third}");
    let fourth = next()?;
    ensure!(fourth.contains("/a: InProgress: the cog is being oiled"), "{fourth}");
    report(&corner, "gizmo/a", &status(true, false, false, "")).await?;
    let rest = lines.collect::<Result<Vec<_>, _>>()?;
    ensure!(rest.last().is_some_and(|last| last.starts_with("Rollup platform: ready after ")), "{rest:?}");
    ensure!(waits.wait()?.code() == Some(0));
    let all = elsewhere.run(&["status"])?;
    ensure!(all.code == Some(0) && all.stdout.contains("rollup/platform  ✓ Ready"), "{all}");
    Ok(())
}

/// Applications of one namespace, and Rollups with components in another.
#[tokio::test]
async fn watch_of_applications_and_rollups() -> Result<()> {
    let cluster = start("rollup-watched").await?;
    let corner = Corner::of(&cluster, "shop").await?;
    let elsewhere = Corner::of(&cluster, "disks").await?;
    corner.apply(WEB).await?;
    elsewhere.apply(&platform(&elsewhere.namespace)).await?;
    report(&elsewhere, "gizmo/a", &status(true, false, false, "")).await?;
    report(&elsewhere, "fabric/f", &status(true, false, false, "")).await?;
    let mut watch = corner.start(&["status", "-w"])?;
    let mut lines = BufReader::new(watch.stdout.take().context("a pipe")?).lines();
    let mut next = || lines.next().context("the watch has ended")?.context("no text");
    let mut first = [next()?, next()?];
    first.sort_by_key(|line| line.contains("Rollup "));
    ensure!(first[0].contains("/web: Unknown, 0/0 ready: "), "{first:?}");
    ensure!(first[1].ends_with(" Rollup platform: Ready, 2/2 ready"), "{first:?}");
    report(&elsewhere, "fabric/f", &status(true, false, true, "a link is down")).await?;
    let degraded = next()?;
    ensure!(
        degraded.ends_with(" Rollup platform: Failed, 1/2 ready: Fabric/f: Reported: a link is down"),
        "{degraded}"
    );
    corner.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: web}}}").await?;
    let ready = next()?;
    ensure!(ready.ends_with("/web: Ready, 1/1 ready"), "{ready}");
    elsewhere.kubectl.ok(&["delete", "rollup", "platform"]).await?;
    let deleted = next()?;
    ensure!(deleted.ends_with(" Rollup platform: deleted"), "{deleted}");
    watch.kill()?;
    watch.wait()?;
    Ok(())
}

/// With rights in one namespace, its Applications are complete, and the missing right is named only if the
/// user asks for a Rollup.
#[tokio::test]
async fn rbac_forbids_rollups() -> Result<()> {
    let cluster = start("rollup-rights").await?;
    let corner = Corner::of(&cluster, "shop").await?;
    corner.apply(&format!("{WEB}---{}", platform(&corner.namespace))).await?;
    corner.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: web}}}").await?;
    let reader = cluster.user("reader-of-a-shop")?;
    let kubeconfig = reader.kubeconfig_file()?;
    let verbs = ["get", "list", "watch"];
    let rights = vec![
        rule(&verbs, "bellwether.dev", &["applications"]),
        rule(&verbs, "", &["configmaps"]),
        rule(&verbs, "apps", &["deployments"]),
        rule(&verbs, "acme.io", &["gizmos"]),
    ];
    let _shop = cluster.grant(&reader, Some(&corner.namespace), rights).await?;
    let _rules = cluster.grant(&reader, None, vec![rule(&verbs, "bellwether.dev", &["healthrules"])]).await?;
    let run = |arguments: &[&str]| as_user(&kubeconfig, &corner.namespace, arguments);

    for arguments in [&["status"][..], &["status", "web"], &["tree", "web"], &["wait", "web"]] {
        let quiet = run(arguments)?;
        ensure!(quiet.code == Some(0) && quiet.stderr.is_empty(), "{arguments:?}: {quiet}");
        ensure!(!quiet.stdout.contains("rollup"), "{quiet}");
    }
    let missing = "user \"reader-of-a-shop\" cannot list rollups.bellwether.dev. Grant user reader-of-a-shop the verb list on \
                   rollups.bellwether.dev";
    let asked = run(&["status", "rollup/platform"])?;
    ensure!(asked.code == Some(2) && asked.stderr == format!("error: {missing}\n"), "{asked}");
    let asked = run(&["wait", "platform"])?;
    let expected =
        format!("error: no Application named \"platform\" in namespace {}; {missing}\n", corner.namespace);
    ensure!(asked.code == Some(3) && asked.stderr == expected, "{asked}");

    // With rights for Rollups but not for their components, the Rollup is Unknown and its Applications are as
    // before.
    let rollups = vec![rule(&verbs, "bellwether.dev", &["rollups"])];
    let _rollups = cluster.grant(&reader, None, rollups).await?;
    let all = run(&["status"])?;
    ensure!(all.stdout.contains("rollup/platform  ? Unknown"), "{all}");
    ensure!(all.stdout.contains("✓ Ready"), "{all}");
    let missing = "note: user \"reader-of-a-shop\" cannot list fabrics.acme.io\nnote: user \"reader-of-a-shop\" cannot list \
                   gizmos.acme.io in all namespaces\n";
    ensure!(all.code == Some(1) && all.stderr.starts_with(missing), "{all}");
    Ok(())
}

#[tokio::test]
async fn without_the_crd_of_rollups() -> Result<()> {
    let cluster = Cluster::builder().name("rollup-less").start().await?;
    let corner = Corner::of(&cluster, "shop").await?;
    corner.kubectl.ok(&["delete", "crd", "rollups.bellwether.dev"]).await?;
    corner.apply(WEB).await?;
    eventually(TIMEOUT, "Rollups are not served", async || {
        let asked = corner.run(&["status", "rollup/platform"])?;
        ensure!(asked.code == Some(2), "{asked}");
        let error = "error: CRDs not installed. Run: bellwether crds | kubectl apply --server-side -f -\n";
        Ok(asked.stderr == error)
    })
    .await?;
    let all = corner.run(&["status"])?;
    ensure!(all.code == Some(1) && all.stderr.is_empty() && all.stdout.contains("web"), "{all}");
    let neither = corner.run(&["status", "nosuch"])?;
    ensure!(neither.stderr.starts_with("error: no Application named \"nosuch\" in namespace "), "{neither}");
    Ok(())
}
