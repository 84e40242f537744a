//! `status` and `wait` on a real hub and two real clusters: stored CombinedStatuses, `--cluster`, and a cluster that
//! stops answering.

use std::{
    io::{BufRead as _, BufReader, Lines, Read as _},
    process::{Child, ChildStdout, Command, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{Cluster, Controller, FaultProxy, Kubectl, Part, TIMEOUT, Verb, eventually};
use serde_json::{Value, json};
use tempfile::TempPath;
use tokio::task::spawn_blocking;

use crate::{Run, bellwether};

const WEB: &str = "
{apiVersion: v1, kind: Namespace, metadata: {name: shop}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {run: web}}
  template:
    metadata: {labels: {run: web}}
    spec: {containers: [{name: app, image: nginx}]}
";

const GROUPS: &str = "
---
apiVersion: bellwether.dev/v1alpha1
kind: Application
metadata: {name: shop, namespace: shop}
spec:
  ownership: Observe
  selector: {}
  components: {web: {group: apps, kind: Deployment, name: web}}
---
apiVersion: bellwether.dev/v1alpha1
kind: StatusCollector
metadata: {name: count}
spec: {combinedFields: [{name: count, type: COUNT}]}
---
apiVersion: bellwether.dev/v1alpha1
kind: BindingPolicy
metadata: {name: edge}
spec:
  clusterSelectors: [{matchLabels: {tier: edge}}]
  downsync: [{apiGroup: apps, resources: [deployments], namespaces: [shop], statusCollectors: [count]}]
  stalenessThreshold: 10s
";

/// An API server with the Deployment web, which is ready.
async fn cluster(name: &str) -> Result<Cluster> {
    let cluster = Cluster::builder().name(name).start().await?;
    let kubectl = Kubectl::new(cluster.admin())?.in_namespace("shop");
    kubectl.ok_with_input(&["apply", "-f", "-"], WEB).await?;
    let status = json!({"status": {
        "observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
    }});
    let patch = ["patch", "deployment/web", "--subresource=status", "--type=merge", "-p"];
    kubectl.ok(&[&patch[..], &[&status.to_string()]].concat()).await?;
    Ok(cluster)
}

struct Fleet {
    hub: TempPath,
    east: TempPath,
    west: TempPath,
}

impl Fleet {
    /// `--cluster` for both clusters, with the label that the policy selects.
    fn clusters(&self) -> Vec<String> {
        let clusters = [("east", &self.east), ("west", &self.west)];
        let of = |(name, kubeconfig): (&str, &TempPath)| {
            [
                format!("--cluster={name}={}", kubeconfig.display()),
                format!("--cluster-labels={name}=tier=edge"),
            ]
        };
        clusters.into_iter().flat_map(of).collect()
    }

    fn on_hub(&self, arguments: &[&str]) -> Command {
        let mut command = bellwether(arguments);
        command.args(["-n", "shop", "--kubeconfig"]).arg(&*self.hub);
        command
    }

    fn with_clusters(&self, arguments: &[&str]) -> Result<Run> {
        Ok(self.on_hub(arguments).args(self.clusters()).output()?.into())
    }

    fn start(&self, arguments: &[&str]) -> Result<Running> {
        let mut command = self.on_hub(arguments);
        let command = command.args(self.clusters()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let lines = BufReader::new(child.stdout.take().context("a pipe")?).lines();
        Ok(Running { child, lines })
    }
}

/// A command that runs until its end is asked for.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn next_line(&mut self) -> Result<String> {
        Ok(self.lines.next().context("the command has ended")??)
    }

    fn stop(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

fn json(run: &Run) -> Result<Value> {
    serde_json::from_str(&run.stdout).with_context(|| run.to_string())
}

/// One evaluator reads the namespace of the Applications, another one the policies and the clusters.
async fn clusters_are_read_once(hub: &Cluster, east: &Cluster) -> Result<()> {
    let (to_hub, to_east) = (FaultProxy::before(hub).await?, FaultProxy::before(east).await?);
    let via = |cluster: &Cluster, proxy: &FaultProxy| cluster.admin().via(proxy.address()).kubeconfig_file();
    let fleet = Fleet { hub: via(hub, &to_hub)?, east: via(east, &to_east)?, west: via(east, &to_east)? };
    let mut command = fleet.on_hub(&["status", "-o", "json"]);
    command.args(&fleet.clusters()[..2]);
    let run: Run = spawn_blocking(move || command.output()).await??.into();
    let clusters = json(&run)?["applications"][0]["clusters"].take();
    ensure!(clusters == json!({"bound": 1, "reporting": 1, "stale": 0, "missing": 0}), "{run}");
    for proxy in [to_hub, to_east] {
        let requests = proxy.requests();
        let lists = requests.iter().filter(|request| request.call.verb == Verb::List);
        let mut lists: Vec<_> = lists.map(|request| &request.uri).collect();
        // Each evaluator has its own rules.
        lists.retain(|uri| !uri.contains("/healthrules"));
        let all = lists.len();
        lists.sort();
        lists.dedup();
        ensure!(all > 0 && all == lists.len(), "{requests:#?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_cluster_that_stops_answering() -> Result<()> {
    let (hub, east, west) = tokio::try_join!(cluster("hub"), cluster("east"), cluster("west"))?;
    hub.install(&bellwether_api::crds()).await?;
    let kubectl = Kubectl::new(hub.admin())?.in_namespace("shop");
    kubectl.ok_with_input(&["apply", "-f", "-"], GROUPS).await?;
    let kubeconfig = |cluster: &Cluster| cluster.admin().kubeconfig_file();
    let fleet = Fleet { hub: kubeconfig(&hub)?, east: kubeconfig(&east)?, west: kubeconfig(&west)? };

    let controller = Controller::new(env!("CARGO_BIN_EXE_bellwether"), hub.admin())?
        .arguments(["--leader-elect=false", "--probe-interval=1s"])
        .arguments(fleet.clusters());
    controller.start()?;
    let stored = |run: &Run| Ok::<_, anyhow::Error>(json(run)?["applications"][0]["clusters"].take());
    eventually(TIMEOUT, "the CombinedStatus says that both clusters report", async || {
        let clusters = stored(&fleet.on_hub(&["status", "-o", "json"]).output()?.into())?;
        Ok(clusters == json!({"bound": 2, "reporting": 2, "stale": 0, "missing": 0}))
    })
    .await
    .with_context(|| controller.log_since_start())?;

    clusters_are_read_once(&hub, &east).await?;

    let all = fleet.with_clusters(&["status", "-o", "json"])?;
    let policy = json(&all)?["bindingPolicies"][0].take();
    ensure!(policy["state"] == "Ready" && policy["componentsReady"] == "2/2", "{all}");
    ensure!(stored(&all)?["reporting"] == 2, "{all}");
    let ready = fleet.with_clusters(&["wait", "policy/edge", "--timeout", "1m"])?;
    ensure!(ready.code == Some(0) && ready.stdout.contains("BindingPolicy edge: ready after "), "{ready}");

    let mut watch = fleet.start(&["status", "policy/edge", "-w"])?;
    let first = watch.next_line()?;
    ensure!(first.ends_with("BindingPolicy edge: Ready, 2/2 ready"), "{first}");

    west.pause_part(Part::ApiServer)?;
    let frozen = fleet.with_clusters(&["status", "--request-timeout", "2s"])?;
    ensure!(frozen.code == Some(2) && frozen.stderr.contains("error: cluster west: "), "{frozen}");
    ensure!(frozen.stdout.contains("west is stale"), "{frozen}");
    ensure!(frozen.stdout.contains("policy/edge  ? Unknown") && frozen.stdout.contains(" 1/2 "), "{frozen}");
    let next = watch.next_line()?;
    ensure!(
        next.contains(
            "BindingPolicy edge: Unknown, 1/2 ready: Deployment/web @west: cluster west not heard from"
        ),
        "{next}"
    );
    eventually(TIMEOUT, "the CombinedStatus names the stale cluster", async || {
        let run: Run = fleet.on_hub(&["status"]).output()?.into();
        Ok(run.stdout.contains("west is stale") && run.stdout.contains("  1/2"))
    })
    .await?;

    // Commands that start without the cluster read it when it is back.
    let mut late = fleet.start(&["status", "policy/edge", "-w", "--request-timeout", "2s"])?;
    let mut wait = fleet.start(&["wait", "policy/edge", "--timeout", "2m", "--request-timeout", "2s"])?;
    let first = late.next_line()?;
    ensure!(
        first.ends_with(
            "BindingPolicy edge: Unknown, 1/2 ready: Deployment/web @west: no response from cluster west"
        ),
        "{first}"
    );
    let first = wait.next_line()?;
    ensure!(first.contains("BindingPolicy edge: Unknown, 1/2 ready"), "{first}");

    west.resume_part(Part::ApiServer)?;
    for mut watch in [watch, late] {
        let back = watch.next_line()?;
        ensure!(back.ends_with("BindingPolicy edge: Ready, 2/2 ready"), "{back}");
        watch.stop()?;
    }
    let code = wait.child.wait()?.code();
    let mut errors = String::new();
    wait.child.stderr.take().context("a pipe")?.read_to_string(&mut errors)?;
    ensure!(code == Some(0) && errors.is_empty(), "{code:?}\n{errors}");
    Ok(())
}
