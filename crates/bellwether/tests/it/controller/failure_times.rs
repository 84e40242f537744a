//! How long it takes until an Application is Failed because a Pod of a workload has failed, and until it is
//! Ready again: `--failed-after` on a real control plane.
//!
//! `cargo xtask faults failure_times` prints the times, also those of the default, which takes a minute for each
//! failure. No test limits them.

use std::{env, time::Instant};

use anyhow::{Context as _, Result, bail};
use bellwether_testkit::{Cluster, TIMEOUT, eventually};
use futures::{AsyncBufReadExt as _, TryStreamExt as _, future::try_join_all};
use http::{Method, Request};
use jiff::Timestamp;
use kube::Client;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Controller, faults::recovered, text};

/// Group, kind, fields of the spec.
const WORKLOADS: [(&str, &str, &str); 4] = [
    ("apps", "Deployment", r#""selector": {"matchLabels": {"run": "work"}}"#),
    ("apps", "StatefulSet", r#""serviceName": "work", "selector": {"matchLabels": {"run": "work"}}"#),
    ("apps", "DaemonSet", r#""selector": {"matchLabels": {"run": "work"}}"#),
    ("batch", "Job", r#""backoffLimit": 100"#),
];

const FAILURES: [&str; 4] = ["ImagePullBackOff", "CrashLoopBackOff", "Unschedulable", "ErrImageNeverPull"];

#[rstest]
#[case::short(&["--failed-after=5s"])]
#[case::default(&[])]
#[tokio::test]
async fn from_the_failure_of_a_pod(#[case] arguments: &[&str]) -> Result<()> {
    if arguments.is_empty() && env::var_os("BELLWETHER_RECOVERIES").is_none() {
        return Ok(());
    }
    let cluster = Cluster::builder().name("failure-times").nodes(1).start().await?;
    cluster.install(&bellwether_api::crds()).await?;
    let controller =
        Controller::start(cluster.admin(), &[&["--leader-elect=false"], arguments].concat()).await?;
    let client = cluster.admin().client().await?;
    let setting = arguments.first().unwrap_or(&"default");
    let all = WORKLOADS.map(|(group, kind, spec)| {
        let (client, cluster) = (client.clone(), &cluster);
        async move {
            let namespace = cluster.namespace(&kind.to_lowercase()).await?;
            let workload = Workload { client, namespace, group, kind };
            workload.run(spec, setting).await.context(kind)
        }
    });
    try_join_all(all).await?;
    drop(controller);
    Ok(())
}

struct Workload {
    client: Client,
    namespace: String,
    group: &'static str,
    kind: &'static str,
}

impl Workload {
    async fn run(&self, spec: &str, setting: &str) -> Result<()> {
        let kind = self.kind;
        let application = json!({
            "apiVersion": "bellwether.dev/v1alpha1", "kind": "Application", "metadata": {"name": "shop"},
            "spec": {
                "selector": {"matchLabels": {"app": "shop"}},
                "componentKinds": [{"group": self.group, "kind": kind}],
            },
        });
        self.call(Method::POST, "bellwether.dev/v1alpha1", "applications", &application).await?;
        let mut workload = json!({
            "apiVersion": format!("{}/v1", self.group), "kind": kind,
            "metadata": {"name": "work", "labels": {"app": "shop"}},
            "spec": serde_json::from_str::<Value>(&format!("{{{spec}}}"))?,
        });
        let restart = if kind == "Job" { "OnFailure" } else { "Always" };
        // No scheduler and no kubelet knows its Pods: the test reports their status.
        workload["spec"]["template"] = json!({
            "metadata": {"labels": {"run": "work"}},
            "spec": {
                "schedulerName": "none", "restartPolicy": restart,
                "containers": [{"name": "server", "image": "shop/work:1"}],
            },
        });
        let plural = format!("{}s", kind.to_lowercase());
        self.call(Method::POST, &format!("{}/v1", self.group), &plural, &workload).await?;
        let pod = self.pod().await?;
        for failure in FAILURES {
            let since = self.report(&pod, &failed(failure)).await?;
            self.application(failure, |status| status["state"] == "Failed" && status["reason"] == failure)
                .await?;
            recovered(&format!("{kind}, {failure}, {setting}: Failed"), since, Instant::now())?;
            let since = self.report(&pod, &ready()).await?;
            // A Job is Ready at its end.
            let good = if kind == "Job" { "InProgress" } else { "Ready" };
            self.application(good, |status| {
                status["state"] == good && status["objects"][0]["cause"].is_null()
            })
            .await?;
            recovered(&format!("{kind}, {failure}, {setting}: {good}"), since, Instant::now())?;
        }
        Ok(())
    }

    async fn call(&self, method: Method, version: &str, path: &str, body: &Value) -> Result<Value> {
        let root = if version == "v1" { "api" } else { "apis" };
        let path = format!("/{root}/{version}/namespaces/{}/{path}", self.namespace);
        let content =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(&method).uri(&path).header("content-type", content);
        let body = if method == Method::GET { Vec::new() } else { serde_json::to_vec(body)? };
        self.client.request(request.body(body)?).await.with_context(|| format!("{method} {path}"))
    }

    /// The only Pod, as soon as it exists.
    async fn pod(&self) -> Result<String> {
        let mut name = String::new();
        eventually(TIMEOUT, "there is a Pod", async || {
            let pods = self.call(Method::GET, "v1", "pods", &Value::Null).await?;
            name = text(&pods["items"][0]["metadata"]["name"]);
            Ok(!name.is_empty())
        })
        .await?;
        Ok(name)
    }

    /// Writes the status of a Pod. Returns when the API server had it.
    async fn report(&self, pod: &str, status: &Value) -> Result<Instant> {
        let status = json!({ "status": status });
        self.call(Method::PATCH, "v1", &format!("pods/{pod}/status"), &status).await?;
        Ok(Instant::now())
    }

    /// Waits until a watch shows such a status.
    async fn application(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Result<()> {
        let path =
            format!("/apis/bellwether.dev/v1alpha1/namespaces/{}/applications?watch=1", self.namespace);
        let mut lines = self.client.request_stream(Request::get(path).body(Vec::new())?).await?.lines();
        let mut status = Value::Null;
        let watch = async {
            while let Some(line) = lines.try_next().await? {
                status = serde_json::from_str::<Value>(&line)?["object"]["status"].take();
                if is_so(&status) {
                    return Ok(());
                }
            }
            bail!("the watch ended")
        };
        let watched = timeout(TIMEOUT, watch).await.context("timed out").flatten();
        watched.with_context(|| format!("not {what}: {status:#}"))
    }
}

fn now() -> Value {
    json!(Timestamp::now().to_string())
}

/// The status of a Pod that fails from now on.
fn failed(reason: &str) -> Value {
    if reason == "Unschedulable" {
        let condition = json!({
            "type": "PodScheduled", "status": "False", "reason": reason, "message": "no node",
            "lastTransitionTime": now(),
        });
        return json!({"phase": "Pending", "conditions": [condition], "containerStatuses": null});
    }
    let condition = json!({"type": "Ready", "status": "False", "lastTransitionTime": now()});
    json!({"phase": "Pending", "conditions": [condition], "containerStatuses": [{
        "name": "server", "image": "shop/work:1", "imageID": "", "ready": false, "restartCount": 3,
        "state": {"waiting": {"reason": reason, "message": "back-off"}},
    }]})
}

fn ready() -> Value {
    let condition = json!({"type": "Ready", "status": "True", "lastTransitionTime": now()});
    json!({"phase": "Running", "conditions": [condition], "containerStatuses": null})
}
