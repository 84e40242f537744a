//! The same on real control planes, with and without a controller.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{Cluster, Kubectl, PATIENCE, Part, eventually, rule, shared};
use tempfile::TempPath;

use crate::{Run, bellwether};

/// A namespace of a cluster in which nobody but the tests writes statuses.
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

/// A Deployment whose image does not matter: no kubelet runs it, and what is said of it is believed.
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

/// A whole life without a controller of ours: a roll-out that cannot be scheduled, with its cause, and its repair.
#[tokio::test]
async fn from_a_pod_that_no_node_suits_to_ready() -> Result<()> {
    let corner = Corner::of(shared::cluster_with_nodes().await?, "unsuited").await?;
    let empty = corner.run(&["status"])?;
    ensure!(empty.code == Some(1) && empty.stdout.starts_with("No Applications in namespace"), "{empty}");
    corner.apply(&(WEB.to_owned() + &deployment("bad", "nodeSelector: {there-is: none}"))).await?;
    eventually(PATIENCE, "the Pod is the cause", async || {
        let one = corner.run(&["status", "web"])?;
        ensure!(one.code == Some(1), "{one}");
        Ok(one.stdout.contains("  1  Pod bad-")
            && one.stdout.contains("no node suits it")
            && one.stdout.contains("blocks Deployment bad: 0 of 2 replicas ready"))
    })
    .await?;
    let tree = corner.run(&["tree", "web"])?;
    ensure!(
        tree.stdout.contains("\n└─ Deployment bad ") && tree.stdout.contains("\n   └─ ReplicaSet bad-"),
        "{tree}"
    );
    let pod = tree.stdout.split_whitespace().skip_while(|word| *word != "Pod").nth(1).context("a Pod")?;
    let explained = corner.run(&["explain", "deploy/bad"])?;
    ensure!(explained.stdout.contains("is InProgress: 0 of 2 replicas ready"), "{explained}");
    let whose = corner.run(&["whose", "deployments.apps/bad"])?;
    ensure!(whose.code == Some(0) && whose.stdout.contains("it is counted by web"), "{whose}");
    let whose = corner.run(&["whose", &format!("pod/{pod}")])?;
    let through = "But it is owned through Deployment.apps bad, a member of web.";
    ensure!(whose.code == Some(0) && whose.stdout.contains(through), "{whose}");

    let late = corner.run(&["wait", "web", "--timeout", "1s"])?;
    ensure!(
        late.code == Some(2)
            && late.stdout.contains("\ntimed out after 1s: still waiting for Deployment bad"),
        "{late}"
    );
    let mut waits = corner.start(&["wait", "web", "--timeout", "2m"])?;
    let mut lines = BufReader::new(waits.stdout.take().context("a pipe")?).lines();
    let told = lines.by_ref().take(2).collect::<Result<Vec<_>, _>>()?;
    ensure!(told[1].contains("Deployment bad ◐ InProgress: 0 of 2 replicas ready"), "{told:?}");
    let mend = r#"{"spec":{"template":{"spec":{"nodeSelector":null}}}}"#;
    corner.kubectl.ok(&["patch", "deploy/bad", "--type=merge", "-p", mend]).await?;
    let told = lines.collect::<Result<Vec<_>, _>>()?;
    ensure!(told.last().is_some_and(|last| last.starts_with("ready after ")), "{told:?}");
    ensure!(waits.wait()?.code() == Some(0));
    let all = corner.run(&["status"])?;
    ensure!(all.code == Some(0) && all.stdout.contains("✓ Ready"), "{all}");
    Ok(())
}

/// A line for each change, and one when it is gone.
#[tokio::test]
async fn a_watch_in_a_log() -> Result<()> {
    let corner = Corner::of(shared::cluster().await?, "watched").await?;
    corner.apply(WEB).await?;
    let mut watch = corner.start(&["status", "application/web", "-w"])?;
    let mut lines = BufReader::new(watch.stdout.take().context("a pipe")?).lines();
    let mut next = || lines.next().context("the watch has ended")?.context("no text");
    let first = next()?;
    ensure!(first.ends_with("/web ? Unknown, 0/0 ready: no object belongs to it"), "{first}");
    corner.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {app: web}}}").await?;
    let second = next()?;
    ensure!(second.ends_with("/web ✓ Ready, 1/1 ready"), "{second}");
    corner.kubectl.ok(&["delete", "application", "web"]).await?;
    let third = next()?;
    ensure!(third.ends_with("/web is gone"), "{third}");
    watch.kill()?;
    watch.wait()?;
    Ok(())
}

/// Whoever waits for what is deleted is told so.
#[tokio::test]
async fn waiting_for_what_goes() -> Result<()> {
    let corner = Corner::of(shared::cluster().await?, "going").await?;
    corner.apply(WEB).await?;
    let mut waits = corner.start(&["wait", "web", "--timeout", "2m"])?;
    let mut lines = BufReader::new(waits.stdout.take().context("a pipe")?).lines();
    let first = lines.next().context("the wait has ended")??;
    ensure!(first.contains("/web is Unknown, 0/0 ready"), "{first}");
    corner.kubectl.ok(&["delete", "application", "web"]).await?;
    let last = lines.next().context("the wait has ended")??;
    ensure!(last == "cannot tell: the Application was deleted", "{last}");
    ensure!(waits.wait()?.code() == Some(3));
    Ok(())
}

/// A member that has failed ends a wait only for those who say so.
#[tokio::test]
async fn a_member_that_has_failed() -> Result<()> {
    let corner = Corner::of(shared::cluster().await?, "failing").await?;
    corner.apply(&(WEB.to_owned() + &deployment("web", ""))).await?;
    let status = r#"{"status":{"observedGeneration":1,"replicas":2,"updatedReplicas":1,"conditions":[{"type":"Progressing",
        "status":"False","reason":"ProgressDeadlineExceeded","message":"it has timed out"}]}}"#;
    corner.kubectl.ok(&["patch", "deploy/web", "--subresource=status", "--type=merge", "-p", status]).await?;
    let fast = corner.run(&["wait", "web", "--fail-fast", "--timeout", "2m"])?;
    ensure!(fast.code == Some(1) && fast.stdout.contains("\nfailed: Deployment web: "), "{fast}");
    let patient = corner.run(&["wait", "web", "--timeout", "1s"])?;
    ensure!(
        patient.code == Some(1) && patient.stdout.contains("\nfailed after 1s: Deployment web: "),
        "{patient}"
    );
    Ok(())
}

/// Rights in one namespace are enough there, and what is missing is said.
#[tokio::test]
async fn with_few_rights() -> Result<()> {
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
        "error: you may not list applications.bellwether.dev in namespace {}: ask for that right, or choose another \
         namespace with -n\n",
        corner.namespace
    );
    ensure!(none.code == Some(2) && none.stdout.is_empty() && none.stderr.contains(&expected), "{none}");

    let watched = as_user(&kubeconfig, &corner.namespace, &["status", "-w"])?;
    ensure!(watched.code == Some(2) && watched.stderr.contains(&expected), "{watched}");

    let verbs = ["get", "list", "watch"];
    let rights = vec![rule(&verbs, "bellwether.dev", &["applications"]), rule(&verbs, "", &["configmaps"])];
    let _granted = cluster.grant(&reader, Some(&corner.namespace), rights).await?;
    let some = as_user(&kubeconfig, &corner.namespace, &["status"])?;
    ensure!(
        some.stdout.contains("? Unknown") && some.stdout.contains("Bellwether may not read it"),
        "{some}"
    );
    ensure!(
        some.stderr.starts_with("note: HealthRules cannot be read, so objects are judged without them"),
        "{some}"
    );
    ensure!(some.code == Some(1), "{some}");
    Ok(())
}

/// Whoever reads the log has had enough; the answer is the exit code.
#[tokio::test]
async fn a_pipe_that_is_closed() -> Result<()> {
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

/// What nobody has heard of for a while may not be so any more.
#[tokio::test]
async fn a_cluster_that_falls_silent() -> Result<()> {
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
    ensure!(first.contains("is Ready, 1/1 ready"), "{first}");
    cluster.kill_part(Part::ApiServer)?;
    let last = lines.last().context("the wait has ended")??;
    ensure!(last.starts_with("cannot tell: the cluster has not been heard from for "), "{last}");
    ensure!(waits.wait()?.code() == Some(3));
    Ok(())
}

/// What may not be read is no reason to deny that an object belongs to somebody.
#[tokio::test]
async fn whose_with_few_rights() -> Result<()> {
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
    ensure!(blind.stderr.contains("you may not list applications.bellwether.dev"), "{blind}");
    ensure!(blind.code == Some(2) && !blind.stdout.contains("No Application"), "{blind}");

    let applications = rights("bellwether.dev", "applications");
    let _applications = cluster.grant(&reader, Some(&corner.namespace), applications).await?;
    let _rules = cluster.grant(&reader, None, rights("bellwether.dev", "healthrules")).await?;
    let halfway = whose()?;
    ensure!(halfway.stdout.starts_with("ConfigMap ") && halfway.code == Some(2), "{halfway}");
    ensure!(halfway.stdout.ends_with("\nOf what owns it further up, nobody can tell.\n"), "{halfway}");
    ensure!(halfway.stderr.starts_with("error: you may not get secrets, such as "), "{halfway}");

    let _secrets = cluster.grant(&reader, Some(&corner.namespace), rights("", "secrets")).await?;
    let seeing = whose()?;
    ensure!(seeing.code == Some(1) && seeing.stdout.ends_with("\nNo Application counts it.\n"), "{seeing}");
    Ok(())
}

/// Nobody answers: one sentence, and where else to look.
#[tokio::test]
async fn nobody_answers() -> Result<()> {
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
        ensure!(
            run.stderr.starts_with(&format!(
                "error: cannot connect to the API server at http://127.0.0.1:{port}/: "
            )),
            "{run}"
        );
        ensure!(
            run.stderr
                .ends_with("choose another cluster with --context, or look at a dump with --from DIR\n"),
            "{run}"
        );
    }
    Ok(())
}
