//! Verdicts on objects from creation to deletion, on a real control plane.
//!
//! Each test runs kubectl commands, lets the controllers of Kubernetes act, and records the verdict after
//! each step. Its Pods have a schedulerName without a scheduler, so that they stay Pending until the test
//! binds them to a node. There, kwok makes them ready at once, or the test patches their status as a kubelet
//! would.

mod cron_job;
mod daemon_set;
mod deployment;
mod horizontal_pod_autoscaler;
mod job;
mod persistent_volume_claim;
mod pod;
mod pod_disruption_budget;
mod rollout;
mod service;
mod stateful_set;

use std::io::{Seek as _, Write as _};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{Kubectl, TIMEOUT, eventually, shared};
use insta::assert_snapshot;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{Run, bellwether};

/// The steps in one namespace, and the verdict after each.
struct LifecycleFixture {
    kubectl: Kubectl,
    namespace: String,
    lines: Vec<String>,
}

impl LifecycleFixture {
    async fn new(name: &str) -> Result<Self> {
        let cluster = shared::cluster_with_nodes().await?;
        let namespace = cluster.namespace(name).await?;
        let kubectl = Kubectl::new(cluster.admin())?.in_namespace(&namespace);
        Ok(Self { kubectl, namespace, lines: Vec::new() })
    }

    /// Compares the recorded steps with the snapshot.
    fn end(self, name: &str) {
        assert_snapshot!(name, self.lines.join("\n"));
    }

    /// Runs kubectl with the words of a command.
    async fn kubectl(&self, command: &str) -> Result<String> {
        self.kubectl.ok(&command.split(' ').collect::<Vec<_>>()).await
    }

    async fn apply(&self, manifest: &str) -> Result<()> {
        self.kubectl.ok_with_input(&["apply", "-f", "-"], manifest).await.map(drop)
    }

    async fn patch(&self, object: &str, patch: Value) -> Result<()> {
        self.kubectl.ok(&["patch", object, "-p", &patch.to_string()]).await.map(drop)
    }

    /// Patches the status, as a controller or kubelet would.
    async fn report(&self, object: &str, status: Value) -> Result<()> {
        let patch = json!({ "status": status }).to_string();
        self.kubectl.ok(&["patch", object, "--subresource=status", "-p", &patch]).await.map(drop)
    }

    /// Adds a finalizer, so that a deletion does not complete.
    async fn hold(&self, object: &str) -> Result<()> {
        self.patch(object, json!({ "metadata": { "finalizers": ["example.com/hold"] } })).await
    }

    /// Removes the finalizers.
    async fn release(&self, object: &str) -> Result<()> {
        self.patch(object, json!({ "metadata": { "finalizers": null } })).await
    }

    /// The Pods without a node, as soon as there are `count`.
    async fn waiting(&self, count: usize) -> Result<Vec<String>> {
        let mut waiting = Vec::new();
        eventually(TIMEOUT, &format!("{count} Pods wait for a node"), async || {
            let pods: Value = serde_json::from_str(&self.kubectl("get pods -o json").await?)?;
            let pods = pods["items"].as_array().context("no list")?.iter();
            waiting = pods
                .filter(|pod| pod["spec"]["nodeName"].is_null() && pod["status"]["phase"] == "Pending")
                .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null())
                .filter_map(|pod| Some(format!("pod/{}", pod["metadata"]["name"].as_str()?)))
                .collect();
            ensure!(waiting.len() == count, "{waiting:?} do");
            Ok(true)
        })
        .await?;
        Ok(waiting)
    }

    /// The only Pod without a node.
    async fn next_pod(&self) -> Result<String> {
        self.waiting(1).await?.pop().context("no Pod")
    }

    /// Binds a Pod to a node, as a scheduler does.
    async fn bind(&self, pod: &str) -> Result<()> {
        // A Pod of a DaemonSet has the name of its node in its affinity.
        let path = "{.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution\
                    .nodeSelectorTerms[0].matchFields[0].values[0]}";
        let required = self.kubectl.ok(&["get", pod, "-o", &format!("jsonpath={path}")]).await?;
        let node = if required.is_empty() { "node-0" } else { &required };
        let name = pod.strip_prefix("pod/").context("no Pod")?;
        let address = format!("/api/v1/namespaces/{}/pods/{name}/binding", self.namespace);
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name },
            "target": { "kind": "Node", "name": node },
        });
        let bind = ["create", "--raw", &address, "-f", "-"];
        self.kubectl.ok_with_input(&bind, &binding.to_string()).await.map(drop)
    }

    /// Binds all Pods without a node, as soon as there are `count`.
    async fn bind_all(&self, count: usize) -> Result<()> {
        for pod in self.waiting(count).await? {
            self.bind(&pod).await?;
        }
        Ok(())
    }

    /// Records the verdict on an object before any controller has seen it.
    async fn accepted(&mut self, step: &str, manifest: &str) -> Result<()> {
        let create = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
        let object = self.kubectl.ok_with_input(&create, manifest).await?;
        self.record(step, &AssessedLine::of(&object, None)?.line);
        Ok(())
    }

    /// Records the verdict on a Pod whose containers are still stopping. The deletion is a dry run, because
    /// kwok would complete it at once.
    async fn deleted(&mut self, step: &str, pod: &str) -> Result<()> {
        let address = format!("/api/v1/namespaces/{}/{pod}?dryRun=All", self.namespace);
        let object = self.kubectl.ok(&["delete", "--raw", &address]).await?;
        self.record(step, &AssessedLine::of(&object, None)?.line);
        Ok(())
    }

    /// Records a step as soon as the verdict on an object begins with `verdict`.
    async fn is(&mut self, step: &str, object: &str, verdict: &str) -> Result<()> {
        let line = self.wait_for(object, None, verdict).await?;
        self.record(step, &line);
        Ok(())
    }

    /// The same, assessed as of `time` after the `since` of the verdict.
    async fn is_after(
        &mut self,
        time: SignedDuration,
        step: &str,
        object: &str,
        verdict: &str,
    ) -> Result<()> {
        let line = self.wait_for(object, Some(time), verdict).await?;
        self.record(step, &line);
        Ok(())
    }

    async fn wait_for(&self, object: &str, time: Option<SignedDuration>, verdict: &str) -> Result<String> {
        let mut line = String::new();
        eventually(TIMEOUT, &format!("{object} is {verdict}"), async || {
            let object = self.kubectl(&format!("get {object} -o json")).await?;
            let mut assessed = AssessedLine::of(&object, None)?;
            if let Some(time) = time {
                let since = assessed.since.with_context(|| format!("no since: {}", assessed.line))?;
                assessed = AssessedLine::of(&object, Some(since + time))?;
            }
            line = assessed.line;
            Ok(line.starts_with(verdict))
        })
        .await
        .with_context(|| format!("the last verdict was {line}"))?;
        Ok(line)
    }

    /// Records a step as soon as an object does not exist.
    async fn is_gone(&mut self, step: &str, object: &str) -> Result<()> {
        eventually(TIMEOUT, &format!("{object} is gone"), async || {
            let answer = self.kubectl.run(&["get", object]).await?;
            Ok(!answer.success && answer.stderr.contains("NotFound"))
        })
        .await?;
        self.record(step, "gone");
        Ok(())
    }

    fn record(&mut self, step: &str, line: &str) {
        let line = redacted(&line.replace(&self.namespace, "<namespace>"));
        self.lines.push(format!("{step}: {line}"));
    }
}

/// The verdict of `bellwether assess` as a line.
struct AssessedLine {
    line: String,
    since: Option<Timestamp>,
}

impl AssessedLine {
    fn of(object: &str, now: Option<Timestamp>) -> Result<Self> {
        let mut input = tempfile::tempfile()?;
        input.write_all(object.as_bytes())?;
        input.rewind()?;
        let mut command = bellwether(&["assess", "-", "-o", "json"]);
        if let Some(now) = now {
            command.args(["--now", &now.to_string()]);
        }
        let run: Run = command.stdin(input).output()?.into();
        let rows: Value = serde_json::from_str(&run.stdout).with_context(|| run.to_string())?;
        let text = |field: &str| rows[0][field].as_str().with_context(|| format!("no {field} in {rows}"));
        let (state, reason, message) = (text("state")?, text("reason")?, text("message")?);
        let since = text("since").ok().map(str::parse).transpose()?;
        let ahead = if since > Some(Timestamp::now()) { " (SINCE IN THE FUTURE)" } else { "" };
        Ok(Self { line: format!("{state} {reason} {}% {message}{ahead}", rows[0]["progress"]), since })
    }
}

/// Replaces times and generated parts of names.
fn redacted(line: &str) -> String {
    // The alphabet of generated names in Kubernetes.
    let is_generated = |part: &str| {
        part.len() >= 5 && part.chars().all(|character| "bcdfghjklmnpqrstvwxz2456789".contains(character))
    };
    let name = |name: &str| {
        let parts = name.split('-').map(|part| if is_generated(part) { "*" } else { part });
        parts.collect::<Vec<_>>().join("-")
    };
    let word = |word: &str| {
        let core = word.trim_matches(['"', ',', '.', ':', '(', ')']);
        let plain = match core.parse::<Timestamp>() {
            Ok(_) => "<time>".to_owned(),
            Err(_) => name(core),
        };
        word.replace(core, &plain)
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
