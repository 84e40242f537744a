//! What is said of objects in the course of their lives, on a real control plane.
//!
//! Each test is a story: something is done with kubectl, the controllers do their part, and the verdict becomes a line.
//! So that every step stands still until it has been looked at, the Pods of the stories ask for a scheduler that there is
//! none of. They wait until the story puts them on a node, where kwok makes them ready at once, or until it reports on
//! them as a kubelet would.

mod autoscaler;
mod budget;
mod claim;
mod cron_job;
mod daemon_set;
mod deployment;
mod job;
mod pod;
mod roll_out;
mod service;
mod stateful_set;

use std::io::{Seek as _, Write as _};

use anyhow::{Context as _, Result, ensure};
use bellwether_testkit::{Kubectl, PATIENCE, eventually, shared};
use insta::assert_snapshot;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{Run, bellwether};

/// What happens to the objects of one namespace, and what is said of them.
struct Story {
    kubectl: Kubectl,
    namespace: String,
    lines: Vec<String>,
}

impl Story {
    async fn begin(of: &str) -> Result<Self> {
        let cluster = shared::cluster_with_nodes().await?;
        let namespace = cluster.namespace(of).await?;
        let kubectl = Kubectl::new(cluster.admin())?.in_namespace(&namespace);
        Ok(Self { kubectl, namespace, lines: Vec::new() })
    }

    /// Ends the story, with what it has told.
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

    /// Says of an object what its controller or its kubelet would say.
    async fn report(&self, object: &str, status: Value) -> Result<()> {
        let patch = json!({ "status": status }).to_string();
        self.kubectl.ok(&["patch", object, "--subresource=status", "-p", &patch]).await.map(drop)
    }

    /// Lets an object stay when it is deleted.
    async fn hold(&self, object: &str) -> Result<()> {
        self.patch(object, json!({ "metadata": { "finalizers": ["example.com/hold"] } })).await
    }

    /// Lets it go.
    async fn release(&self, object: &str) -> Result<()> {
        self.patch(object, json!({ "metadata": { "finalizers": null } })).await
    }

    /// The Pods that wait for a node, when there are so many.
    async fn waiting(&self, count: usize) -> Result<Vec<String>> {
        let mut waiting = Vec::new();
        eventually(PATIENCE, &format!("{count} Pods wait for a node"), async || {
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

    /// The one Pod that waits for a node.
    async fn next_pod(&self) -> Result<String> {
        self.waiting(1).await?.pop().context("no Pod")
    }

    /// Puts a Pod on a node, as a scheduler does.
    async fn bind(&self, pod: &str) -> Result<()> {
        // A DaemonSet says on which.
        let path = "{.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution\
                    .nodeSelectorTerms[0].matchFields[0].values[0]}";
        let wish = self.kubectl.ok(&["get", pod, "-o", &format!("jsonpath={path}")]).await?;
        let node = if wish.is_empty() { "node-0" } else { &wish };
        let name = pod.strip_prefix("pod/").context("no Pod")?;
        let address = format!("/api/v1/namespaces/{}/pods/{name}/binding", self.namespace);
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name },
            "target": { "kind": "Node", "name": node },
        });
        let bind = ["create", "--raw", &address, "-f", "-"];
        self.kubectl.ok_with_input(&bind, &binding.to_string()).await.map(drop)
    }

    /// Puts all that wait on nodes, when there are so many.
    async fn bind_all(&self, count: usize) -> Result<()> {
        for pod in self.waiting(count).await? {
            self.bind(&pod).await?;
        }
        Ok(())
    }

    /// Tells what is said of an object that the API server has accepted and no controller has seen.
    async fn accepted(&mut self, step: &str, manifest: &str) -> Result<()> {
        let create = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
        let object = self.kubectl.ok_with_input(&create, manifest).await?;
        self.tell(step, &Said::of(&object, None)?.line);
        Ok(())
    }

    /// Tells what is said of a Pod on a node once it is deleted, while its containers may take their time to end. Nothing
    /// is deleted: kwok would not take any time.
    async fn deleted(&mut self, step: &str, pod: &str) -> Result<()> {
        let address = format!("/api/v1/namespaces/{}/{pod}?dryRun=All", self.namespace);
        let object = self.kubectl.ok(&["delete", "--raw", &address]).await?;
        self.tell(step, &Said::of(&object, None)?.line);
        Ok(())
    }

    /// Tells a step once the verdict on an object begins so.
    async fn is(&mut self, step: &str, object: &str, verdict: &str) -> Result<()> {
        let line = self.wait_for(object, None, verdict).await?;
        self.tell(step, &line);
        Ok(())
    }

    /// The same as of a moment that is so long after that since which it has been so.
    async fn is_after(
        &mut self,
        time: SignedDuration,
        step: &str,
        object: &str,
        verdict: &str,
    ) -> Result<()> {
        let line = self.wait_for(object, Some(time), verdict).await?;
        self.tell(step, &line);
        Ok(())
    }

    async fn wait_for(&self, object: &str, time: Option<SignedDuration>, verdict: &str) -> Result<String> {
        let mut line = String::new();
        eventually(PATIENCE, &format!("{object} is {verdict}"), async || {
            let object = self.kubectl(&format!("get {object} -o json")).await?;
            let mut said = Said::of(&object, None)?;
            if let Some(time) = time {
                let since = said.since.with_context(|| format!("{} since nobody knows when", said.line))?;
                said = Said::of(&object, Some(since + time))?;
            }
            line = said.line;
            Ok(line.starts_with(verdict))
        })
        .await
        .with_context(|| format!("the last verdict was {line}"))?;
        Ok(line)
    }

    /// Tells that an object is no more.
    async fn is_gone(&mut self, step: &str, object: &str) -> Result<()> {
        eventually(PATIENCE, &format!("{object} is gone"), async || {
            let answer = self.kubectl.run(&["get", object]).await?;
            Ok(!answer.success && answer.stderr.contains("NotFound"))
        })
        .await?;
        self.tell(step, "gone");
        Ok(())
    }

    fn tell(&mut self, step: &str, line: &str) {
        let line = without_chance(&line.replace(&self.namespace, "<namespace>"));
        self.lines.push(format!("{step}: {line}"));
    }
}

/// What the binary says of an object.
struct Said {
    line: String,
    since: Option<Timestamp>,
}

impl Said {
    fn of(object: &str, now: Option<Timestamp>) -> Result<Self> {
        let mut input = tempfile::tempfile()?;
        input.write_all(object.as_bytes())?;
        input.rewind()?;
        let mut command = bellwether(&["assess", "-", "-o", "json"]);
        if let Some(now) = now {
            command.args(["--now", &now.to_string()]);
        }
        let run: Run = command.stdin(input).output()?.into();
        let said: Value = serde_json::from_str(&run.stdout).with_context(|| run.to_string())?;
        let text = |field: &str| said[0][field].as_str().with_context(|| format!("no {field} in {said}"));
        let (state, reason, message) = (text("state")?, text("reason")?, text("message")?);
        let since = text("since").ok().map(str::parse).transpose()?;
        // Nothing has been so since a time to come: that must catch the eye.
        let ahead = if since > Some(Timestamp::now()) { " (SINCE A TIME TO COME)" } else { "" };
        Ok(Self { line: format!("{state} {reason} {}% {message}{ahead}", said[0]["progress"]), since })
    }
}

/// The same without the times and the ends of the names that the cluster makes up.
fn without_chance(line: &str) -> String {
    // No vowels, so that no name is a word, and nothing that looks like something else.
    let is_made_up = |part: &str| {
        part.len() >= 5 && part.chars().all(|character| "bcdfghjklmnpqrstvwxz2456789".contains(character))
    };
    let name = |name: &str| {
        let parts = name.split('-').map(|part| if is_made_up(part) { "*" } else { part });
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
