//! `status`, `wait`, `tree` and `whose` on real control planes: rollouts, watches, RBAC, an API server that
//! is down.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{Cluster, Kubectl, Part, TIMEOUT, eventually, rule, shared};
use tempfile::TempPath;

use crate::{Run, bellwether};

/// A namespace of a cluster without kubelets and without a controller of ours.
pub(super) struct Corner {
    pub(super) kubectl: Kubectl,
    pub(super) namespace: String,
    kubeconfig: TempPath,
}

impl Corner {
    pub(super) async fn of(cluster: &Cluster, name: &str) -> Result<Self> {
        cluster.install(&bellwether_api::crds()).await?;
        let namespace = cluster.namespace(name).await?;
        let kubectl = Kubectl::new(cluster.admin())?.in_namespace(&namespace);
        Ok(Self { kubectl, namespace, kubeconfig: cluster.admin().kubeconfig_file()? })
    }

    pub(super) async fn apply(&self, manifest: &str) -> Result<()> {
        self.kubectl.ok_with_input(&["apply", "-f", "-"], manifest).await.map(drop)
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Result<Run> {
        as_user(&self.kubeconfig, &self.namespace, arguments)
    }

    pub(super) fn start(&self, arguments: &[&str]) -> Result<Child> {
        let mut command = bellwether(arguments);
        command.args(["-n", &self.namespace]).arg("--kubeconfig").arg(&*self.kubeconfig);
        Ok(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
    }
}

pub(super) fn as_user(kubeconfig: &Path, namespace: &str, arguments: &[&str]) -> Result<Run> {
    let mut command = bellwether(arguments);
    command.args(["-n", namespace]).arg("--kubeconfig").arg(kubeconfig);
    Ok(command.output()?.into())
}

/// A Deployment. Without kubelets, its image does not matter.
fn deployment(name: &str, more: &str) -> String {
    format!(
        "
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, labels: {{app: web}}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{run: {name}}}}}
  template:
    metadata: {{labels: {{run: {name}}}}}
    spec:
      {more}
      containers: [{{name: app, image: nginx}}]
"
    )
}

pub(super) const WEB: &str = "
apiVersion: bellwether.dev/v1alpha1
kind: Application
metadata: {name: web}
spec:
  type: web
  selector: {matchLabels: {app: web}}
  componentKinds: [{group: apps, kind: Deployment}, {kind: ConfigMap}]
";

/// A rollout that cannot be scheduled, its cause, and its repair, without a controller of ours.
#[tokio::test]
async fn from_an_unschedulable_pod_to_ready() -> Result<()> {
    let corner = Corner::of(shared::cluster_with_nodes().await?, "unsuited").await?;
    let empty = corner.run(&["status"])?;
    ensure!(
        empty.code == Some(1) && empty.stdout.starts_with("No Applications or Rollups found in namespace "),
        "{empty}"
    );
    corner.apply(&(WEB.to_owned() + &deployment("bad", "nodeSelector: {there-is: none}"))).await?;
    eventually(TIMEOUT, "the Pod is the cause", async || {
        let one = corner.run(&["status", "web"])?;
        ensure!(one.code == Some(1), "{one}");
        Ok(one.stdout.contains("  1  Pod/bad-")
            && one.stdout.contains("✗ Failed")
            && one.stdout.contains("\n       Unschedulable: ")
            && one.stdout.contains("blocks Deployment/bad: 0 of 2 replicas ready"))
    })
    .await?;
    let tree = corner.run(&["tree", "web"])?;
    ensure!(
        tree.stdout.contains("\n└─ Deployment/bad ") && tree.stdout.contains("\n   └─ ReplicaSet/bad-"),
        "{tree}"
    );
    let pod = tree.stdout.split_whitespace().find_map(|word| word.strip_prefix("Pod/")).context("a Pod")?;
    let explained = corner.run(&["explain", "deploy/bad"])?;
    ensure!(explained.stdout.contains("/bad: InProgress: 0 of 2 replicas ready"), "{explained}");
    let whose = corner.run(&["whose", "deployments.apps/bad"])?;
    let web = format!("Application {}/web", corner.namespace);
    let answer = format!("Deployment/bad belongs to {web}\n");
    ensure!(whose.code == Some(0) && whose.stdout.starts_with(&answer), "{whose}");
    let whose = corner.run(&["whose", &format!("pod/{pod}")])?;
    let answer = format!("Pod/{pod} belongs to {web} (via Deployment/bad)");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(whose.code == Some(0) && words(&whose.stdout).starts_with(&answer), "{whose}");

    let late = corner.run(&["wait", "web", "--timeout", "1s"])?;
    ensure!(late.code == Some(2) && late.stdout.contains(": timed out after 1s: Deployment/bad: "), "{late}");
    let mut waits = corner.start(&["wait", "web", "--timeout", "2m"])?;
    let mut lines = BufReader::new(waits.stdout.take().context("a pipe")?).lines();
    let first = lines.by_ref().take(2).collect::<Result<Vec<_>, _>>()?;
    ensure!(first[1].contains("Deployment/bad: InProgress: 0 of 2 replicas ready"), "{first:?}");
    let mend = r#"{"spec":{"template":{"spec":{"nodeSelector":null}}}}"#;
    corner.kubectl.ok(&["patch", "deploy/bad", "--type=merge", "-p", mend]).await?;
    let rest = lines.collect::<Result<Vec<_>, _>>()?;
    ensure!(rest.last().is_some_and(|last| last.contains("/web: ready after ")), "{rest:?}");
    ensure!(waits.wait()?.code() == Some(0));
    let all = corner.run(&["status"])?;
    ensure!(all.code == Some(0) && all.stdout.contains("✓ Ready"), "{all}");
    Ok(())
}

/// A line for each change, and one for the deletion.
#[tokio::test]
async fn a_watch_in_a_log() -> Result<()> {
    let corner = Corner::of(shared::cluster().await?, "watched").await?;
    corner.apply(WEB).await?;
    let mut watch = corner.start(&["status", "application/web", "-w"])?;
    let mut lines = BufReader::new(watch.stdout.take().context("a pipe")?).lines();
    let mut next = || lines.next().context("the watch has ended")?.context("no text");
    let first = next()?;
    ensure!(first.contains("/web: Unknown, 0/0 ready: "), "{first}");
    corner.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: web}}}").await?;
    let second = next()?;
    ensure!(second.ends_with("/web: Ready, 1/1 ready"), "{second}");
    corner.kubectl.ok(&["delete", "application", "web"]).await?;
    let third = next()?;
    ensure!(third.ends_with("/web: deleted"), "{third}");
    watch.kill()?;
    watch.wait()?;
    Ok(())
}

#[tokio::test]
async fn wait_ends_if_the_application_is_deleted() -> Result<()> {
    let corner = Corner::of(shared::cluster().await?, "going").await?;
    corner.apply(WEB).await?;
    let mut waits = corner.start(&["wait", "web", "--timeout", "2m"])?;
    let mut lines = BufReader::new(waits.stdout.take().context("a pipe")?).lines();
    let first = lines.next().context("the wait has ended")??;
    ensure!(first.contains("/web: Unknown, 0/0 ready"), "{first}");
    corner.kubectl.ok(&["delete", "application", "web"]).await?;
    let last = lines.next().context("the wait has ended")??;
    ensure!(last.ends_with("/web: unknown: deleted"), "{last}");
    ensure!(waits.wait()?.code() == Some(3));
    Ok(())
}

/// A failed member ends `wait` at once only with `--fail-fast`.
#[tokio::test]
async fn a_failed_member() -> Result<()> {
    let corner = Corner::of(shared::cluster().await?, "failing").await?;
    corner.apply(&(WEB.to_owned() + &deployment("web", ""))).await?;
    let status = r#"{"status":{"observedGeneration":1,"replicas":2,"updatedReplicas":1,"conditions":[{"type":"Progressing",
        "status":"False","reason":"ProgressDeadlineExceeded","message":"it has timed out"}]}}"#;
    corner.kubectl.ok(&["patch", "deploy/web", "--subresource=status", "--type=merge", "-p", status]).await?;
    let fast = corner.run(&["wait", "web", "--fail-fast", "--timeout", "2m"])?;
    ensure!(fast.code == Some(1) && fast.stdout.contains("/web: failed: Deployment/web: "), "{fast}");
    let patient = corner.run(&["wait", "web", "--timeout", "1s"])?;
    ensure!(
        patient.code == Some(1) && patient.stdout.contains("/web: failed after 1s: Deployment/web: "),
        "{patient}"
    );
    Ok(())
}

/// Rights in one namespace are enough. The output names those that are missing.
#[tokio::test]
async fn rbac_forbids_some_kinds() -> Result<()> {
    let cluster = shared::cluster().await?;
    let corner = Corner::of(cluster, "rights").await?;
    corner
        .apply(&format!(
            "{WEB}---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, labels: {{app: web}}}}}}"
        ))
        .await?;
    let reader = cluster.user("reader-of-few")?;
    let kubeconfig = reader.kubeconfig_file()?;
    let none = as_user(&kubeconfig, &corner.namespace, &["status"])?;
    let expected = format!(
        "error: user \"reader-of-few\" cannot list applications.bellwether.dev in namespace {}. Grant user reader-of-few the \
         verb list on applications.bellwether.dev, or choose another namespace with -n\n",
        corner.namespace
    );
    ensure!(none.code == Some(2) && none.stdout.is_empty() && none.stderr.contains(&expected), "{none}");

    let watched = as_user(&kubeconfig, &corner.namespace, &["status", "-w"])?;
    ensure!(watched.code == Some(2) && watched.stderr.contains(&expected), "{watched}");

    let verbs = ["get", "list", "watch"];
    let rights = vec![rule(&verbs, "bellwether.dev", &["applications"]), rule(&verbs, "", &["configmaps"])];
    let _granted = cluster.grant(&reader, Some(&corner.namespace), rights).await?;
    let some = as_user(&kubeconfig, &corner.namespace, &["status"])?;
    ensure!(some.stdout.contains("? Unknown") && some.code == Some(1), "{some}");
    let user = "user \"reader-of-few\" cannot list";
    let deployments = format!("{user} deployments.apps in namespace {}", corner.namespace);
    let rules = &format!(
        "note: {user} healthrules.bellwether.dev; verdicts are Unknown. Grant user reader-of-few the verb list on \
         healthrules.bellwether.dev, or use --without-health-rules\n"
    );
    let below = ["pods", "replicasets.apps"].map(|kind| {
        let place = format!("in namespace {}", corner.namespace);
        format!("note: {user} {kind} {place}; failed Pods are not detected\n")
    });
    ensure!(some.stderr == format!("{rules}note: {deployments}\n{}", below.concat()), "{some}");
    let one = as_user(&kubeconfig, &corner.namespace, &["status", "web"])?;
    let words: Vec<_> = one.stdout.split_whitespace().collect();
    let remark = format!("Resolved=False (Forbidden): {deployments}");
    ensure!(words.join(" ").contains(&remark) && one.stderr == format!("{rules}{}", below.concat()), "{one}");
    ensure!(words.join(" ").contains("cannot read HealthRules"), "{one}");
    let without = as_user(&kubeconfig, &corner.namespace, &["status", "web", "--without-health-rules"])?;
    let words: Vec<_> = without.stdout.split_whitespace().collect();
    ensure!(words.join(" ").contains(&remark) && without.stderr == below.concat(), "{without}");
    ensure!(!without.stdout.contains("cannot read HealthRules"), "{without}");
    Ok(())
}

/// Without rights below members, failures go unnoticed. Every command says so.
#[tokio::test]
async fn rbac_forbids_what_is_below_members() -> Result<()> {
    const SERVICE: &str = "
---
apiVersion: bellwether.dev/v1alpha1
kind: Application
metadata: {name: net}
spec: {selector: {matchLabels: {app: net}}, componentKinds: [{kind: Service}, {kind: Pod}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, labels: {app: net}}
spec: {selector: {run: web}, ports: [{port: 80}]}
";
    let cluster = shared::cluster().await?;
    let corner = Corner::of(cluster, "blind").await?;
    corner.apply(&(WEB.to_owned() + &deployment("web", ""))).await?;
    let reader = cluster.user("reader-of-members")?;
    let kubeconfig = reader.kubeconfig_file()?;
    let verbs = ["get", "list", "watch"];
    let rights = vec![
        rule(&verbs, "bellwether.dev", &["applications"]),
        rule(&verbs, "apps", &["deployments"]),
        rule(&verbs, "", &["configmaps", "services"]),
    ];
    let _granted = cluster.grant(&reader, Some(&corner.namespace), rights).await?;
    let _rules = cluster.grant(&reader, None, vec![rule(&verbs, "bellwether.dev", &["healthrules"])]).await?;
    let note = |kind: &str, what: &str| {
        let user = "user \"reader-of-members\"";
        format!("note: {user} cannot list {kind} in namespace {}{what}\n", corner.namespace)
    };
    let undetected = "; failed Pods are not detected";
    let (pods, replica_sets) = (note("pods", undetected), note("replicasets.apps", undetected));
    for arguments in [
        &["status"][..],
        &["status", "web"],
        &["tree", "web"],
        &["wait", "web", "--fail-fast", "--timeout", "1s"],
        &["explain", "deploy/web"],
    ] {
        let run = as_user(&kubeconfig, &corner.namespace, arguments)?;
        ensure!(run.stderr == format!("{pods}{replica_sets}"), "{arguments:?}: {run}");
    }
    let mut command = bellwether(&["status", "web", "-w", "-n", &corner.namespace]);
    command.arg("--kubeconfig").arg(&*kubeconfig).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut watch = command.spawn()?;
    let lines = BufReader::new(watch.stderr.take().context("a pipe")?).lines();
    let lines = lines.take(2).collect::<Result<Vec<_>, _>>()?;
    watch.kill()?;
    watch.wait()?;
    ensure!(
        format!("{}\n", lines.join("\n")) == format!("{pods}{replica_sets}").trim_end().to_owned() + "\n"
    );

    // Here, Pods are also members. A Service is Ready if its endpoints cannot be read.
    corner.apply(SERVICE).await?;
    let run = as_user(&kubeconfig, &corner.namespace, &["status"])?;
    let slices =
        note("endpointslices.discovery.k8s.io", "; Services without ready endpoints are not detected");
    for expected in [note("pods", ""), replica_sets.clone(), slices.clone()] {
        ensure!(run.stderr.contains(&expected), "{run}");
    }
    let run = as_user(&kubeconfig, &corner.namespace, &["explain", "svc/web"])?;
    ensure!(run.code == Some(0) && run.stderr == slices, "{run}");
    Ok(())
}

#[tokio::test]
async fn wait_goes_on_if_the_pipe_is_closed() -> Result<()> {
    let corner = Corner::of(shared::cluster().await?, "piped").await?;
    corner.apply(WEB).await?;
    let mut waits = corner.start(&["wait", "web", "--timeout", "2m"])?;
    let mut lines = BufReader::new(waits.stdout.take().context("a pipe")?).lines();
    lines.next().context("the wait has ended")??;
    drop(lines);
    corner.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: web}}}").await?;
    ensure!(waits.wait()?.code() == Some(0));
    Ok(())
}

/// The last known state may be stale.
#[tokio::test]
async fn wait_while_the_api_server_is_down() -> Result<()> {
    let cluster = Cluster::builder().name("silent").start().await?;
    let corner = Corner::of(&cluster, "silent").await?;
    corner
        .apply(&format!(
            "{WEB}---\n{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, labels: {{app: web}}}}}}"
        ))
        .await?;
    let mut waits = corner.start(&["wait", "web", "--stable", "1h", "--timeout", "60s"])?;
    let mut lines = BufReader::new(waits.stdout.take().context("a pipe")?).lines();
    let first = lines.next().context("the wait has ended")??;
    ensure!(first.contains(": Ready, 1/1 ready"), "{first}");
    cluster.kill_part(Part::ApiServer)?;
    let last = lines.last().context("the wait has ended")??;
    ensure!(last.contains("/web: unknown: no response from the API server for "), "{last}");
    ensure!(waits.wait()?.code() == Some(3));
    Ok(())
}

/// The object may belong to a group that the user cannot read.
#[tokio::test]
async fn whose_if_rbac_forbids_groups_or_owners() -> Result<()> {
    let cluster = shared::cluster().await?;
    let corner = Corner::of(cluster, "whose").await?;
    corner.apply("{apiVersion: v1, kind: Secret, metadata: {name: above}}").await?;
    let uid = corner.kubectl.ok(&["get", "secret/above", "-o", "jsonpath={.metadata.uid}"]).await?;
    let owner = format!("{{apiVersion: v1, kind: Secret, name: above, uid: {uid}}}");
    let object =
        format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: a, ownerReferences: [{owner}]}}}}");
    corner.apply(&object).await?;
    let reader = cluster.user("reader-of-settings")?;
    let kubeconfig = reader.kubeconfig_file()?;
    let rights = |group: &str, resource: &str| vec![rule(&["get", "list"], group, &[resource])];
    let _settings = cluster.grant(&reader, Some(&corner.namespace), rights("", "configmaps")).await?;
    let whose = || as_user(&kubeconfig, &corner.namespace, &["whose", "cm/a"]);
    let blind = whose()?;
    ensure!(
        blind.stderr.contains("user \"reader-of-settings\" cannot list applications.bellwether.dev"),
        "{blind}"
    );
    ensure!(blind.code == Some(2) && blind.stdout.starts_with("cannot determine "), "{blind}");

    let applications = rights("bellwether.dev", "applications");
    let _applications = cluster.grant(&reader, Some(&corner.namespace), applications).await?;
    let _rules = cluster.grant(&reader, None, rights("bellwether.dev", "healthrules")).await?;
    let halfway = whose()?;
    let answer = "cannot determine the Application or Rollup of ConfigMap/a: cannot read its owner\n";
    ensure!(halfway.stdout == answer && halfway.code == Some(2), "{halfway}");
    let error = format!(
        "error: user \"reader-of-settings\" cannot get secrets in namespace {}. Grant user reader-of-settings the verb get on \
         secrets\n",
        corner.namespace
    );
    ensure!(halfway.stderr == error, "{halfway}");

    let _secrets = cluster.grant(&reader, Some(&corner.namespace), rights("", "secrets")).await?;
    let seeing = whose()?;
    ensure!(
        seeing.code == Some(1) && seeing.stdout.contains(" is not a member of any Application"),
        "{seeing}"
    );
    Ok(())
}

#[tokio::test]
async fn connection_refused() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let kubeconfig = directory.path().join("config");
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    std::fs::write(
        &kubeconfig,
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{{name: c, cluster: {{server: \
             'http://127.0.0.1:{port}'}}}}]\ncontexts: [{{name: c, context: {{cluster: c, user: u}}}}]\nusers: [{{name: u, \
             user: {{}}}}]\n"
        ),
    )?;
    for (arguments, code) in
        [(&["status"][..], 2), (&["tree", "web"], 2), (&["wait", "web"], 3), (&["explain", "pod/a"], 2)]
    {
        let run = as_user(&kubeconfig, "default", arguments)?;
        ensure!(run.code == Some(code) && run.stdout.is_empty(), "{run}");
        ensure!(run.stderr.contains(&format!(" http://127.0.0.1:{port}/")), "{run}");
        let way_out = ". Choose another cluster with --context, or read a dump with --from PATH\n";
        ensure!(run.stderr.ends_with(way_out), "{run}");
    }
    Ok(())
}
