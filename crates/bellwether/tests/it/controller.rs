//! End-to-end tests of the controller on real control planes.
//!
//! Headings such as *Selecting Components* are those of the Kubernetes enhancement proposal (KEP) for an
//! Application API, whose rules the tests check.

mod adopt;
mod app_k8s_io;
mod bound_rows;
mod clusters;
mod combined_status;
mod events;
mod failing_pods;
mod failure_times;
mod faults;
mod health_check;
mod kinds;
mod leader_election;
mod membership;
mod metrics;
mod old_revisions;
mod olm;
mod one_answer;
mod probes;
mod refused_pods;
mod request_counts;
mod rollup;
mod rules;
mod secrets;
mod unbound_claims;
mod wordpress;

use std::{ops::Deref, path::PathBuf};

use anyhow::{Context as _, Result, anyhow};
use bellwether_testkit::{Access, Cluster, Kubectl, TIMEOUT, eventually, shared};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

/// Runs the binary of this build.
struct Controller(bellwether_testkit::Controller);

impl Deref for Controller {
    type Target = bellwether_testkit::Controller;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Controller {
    /// Starts a controller with the permissions of `access`, and waits until it is ready.
    async fn start(access: &Access, arguments: &[&str]) -> Result<Self> {
        let controller = Self::launch(access, arguments)?;
        controller.is_ready().await?;
        Ok(controller)
    }

    fn launch(access: &Access, arguments: &[&str]) -> Result<Self> {
        Self::launch_with(access, arguments, [])
    }

    fn launch_with(
        access: &Access,
        arguments: &[&str],
        environment: impl IntoIterator<Item = (&'static str, String)>,
    ) -> Result<Self> {
        let controller = bellwether_testkit::Controller::new(env!("CARGO_BIN_EXE_bellwether"), access)?;
        let controller = environment
            .into_iter()
            .fold(controller.arguments(arguments), |it, (name, value)| it.environment(name, value));
        controller.start()?;
        Ok(Self(controller))
    }

    async fn is_ready(&self) -> Result<()> {
        self.ready(TIMEOUT).await
    }

    /// The status code and the JSON body of a probe.
    async fn probe(&self, path: &str) -> Result<(u16, Value)> {
        let (code, body) = self.get(path).await?;
        let json = serde_json::from_str(&body).with_context(|| format!("{path}: {code} {body}"))?;
        Ok((code, json))
    }

    /// Waits for this status code and for a body that satisfies `is_so`, and returns the body.
    async fn probed(&self, path: &str, code: u16, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut last = (0, Value::Null);
        eventually(TIMEOUT, &format!("{path} responds {code}"), async || {
            last = self.probe(path).await?;
            Ok(last.0 == code && is_so(&last.1))
        })
        .await
        .with_context(|| format!("the last response was {} {:#}", last.0, last.1))?;
        Ok(last.1)
    }

    /// Fails if `/metrics` has no such metric.
    async fn metric(&self, name: &str) -> Result<u64> {
        self.0.metric(name).await?.with_context(|| format!("/metrics has no {name}"))
    }
}

/// The cluster that these tests share, with one controller for all of them.
async fn controlled_cluster() -> Result<&'static Cluster> {
    Ok(shared_controller().await?.0)
}

/// The shared cluster and its controller.
async fn shared_controller() -> Result<(&'static Cluster, &'static Controller)> {
    static CONTROLLER: OnceCell<Result<Controller>> = OnceCell::const_new();
    let cluster = shared::cluster_with_nodes().await?;
    let start = async || {
        cluster.install(&bellwether_api::crds()).await?;
        Controller::start(cluster.admin(), &["--leader-elect=false"]).await
    };
    let controller = CONTROLLER.get_or_init(start).await;
    let controller =
        controller.as_ref().map_err(|error| anyhow!("the shared controller did not start: {error:#}"))?;
    Ok((cluster, controller))
}

/// The namespace of one test, and kubectl in it.
struct ControllerFixture {
    kubectl: Kubectl,
    namespace: String,
}

impl ControllerFixture {
    async fn new(name: &str) -> Result<Self> {
        Self::in_cluster(controlled_cluster().await?, name).await
    }

    async fn in_cluster(cluster: &Cluster, name: &str) -> Result<Self> {
        let namespace = cluster.namespace(name).await?;
        let kubectl = Kubectl::new(cluster.admin())?.in_namespace(&namespace);
        Ok(Self { kubectl, namespace })
    }

    /// Runs kubectl. Spaces separate the arguments.
    async fn kubectl(&self, command: &str) -> Result<String> {
        self.kubectl.ok(&command.split(' ').collect::<Vec<_>>()).await
    }

    async fn apply(&self, manifest: &str) -> Result<()> {
        self.kubectl.ok_with_input(&["apply", "-f", "-"], manifest).await.map(drop)
    }

    async fn patch(&self, object: &str, patch: Value) -> Result<()> {
        self.kubectl.ok(&["patch", object, "--type=merge", "-p", &patch.to_string()]).await.map(drop)
    }

    /// Patches the status of an object, in place of its controller.
    async fn report(&self, object: &str, status: Value) -> Result<()> {
        let patch = json!({ "status": status }).to_string();
        self.kubectl
            .ok(&["patch", object, "--subresource=status", "--type=merge", "-p", &patch])
            .await
            .map(drop)
    }

    async fn get(&self, object: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.kubectl(&format!("get {object} -o json")).await?)?)
    }

    /// Waits until the status of an Application satisfies `is_so`, and returns it.
    async fn status(&self, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut status = Value::Null;
        eventually(TIMEOUT, &format!("{name}: {what}"), async || {
            status = self.get(&format!("application/{name}")).await?["status"].take();
            Ok(is_so(&status))
        })
        .await
        .with_context(|| format!("the last status was {status:#}"))?;
        Ok(status)
    }

    /// Waits until the Ready condition has this reason, and returns its message.
    async fn ready_is(&self, name: &str, reason: &str) -> Result<String> {
        let status =
            self.status(name, reason, |status| condition(status, "Ready")["reason"] == reason).await?;
        Ok(text(&condition(&status, "Ready")["message"]))
    }

    /// Waits until the owner references of an object have these names, in this order.
    async fn owners_are(&self, object: &str, names: &[&str]) -> Result<()> {
        let mut owners = Vec::new();
        eventually(TIMEOUT, &format!("the owners of {object} are {names:?}"), async || {
            let references = self.get(object).await?["metadata"]["ownerReferences"].take();
            owners = references.as_array().into_iter().flatten().map(|owner| text(&owner["name"])).collect();
            Ok(owners == names)
        })
        .await
        .with_context(|| format!("the last were {owners:?}"))
    }

    async fn is_gone(&self, object: &str) -> Result<()> {
        eventually(TIMEOUT, &format!("{object} is gone"), async || {
            let answer = self.kubectl.run(&["get", object]).await?;
            Ok(!answer.success && answer.stderr.contains("NotFound"))
        })
        .await
    }

    async fn exists(&self, object: &str) -> Result<bool> {
        Ok(self.kubectl.run(&["get", object]).await?.success)
    }
}

/// What our Events about an object say, oldest first: type, reason and note.
async fn events(kubectl: &Kubectl, object: &str) -> Result<Vec<String>> {
    let list: Value =
        serde_json::from_str(&kubectl.ok(&["get", "events.events.k8s.io", "-o", "json"]).await?)?;
    let items = list["items"].as_array().into_iter().flatten();
    let ours = items.filter(|event| {
        let regarding = &event["regarding"];
        event["reportingController"] == "bellwether.dev/controller"
            && format!("{}/{}", text(&regarding["apiVersion"]), text(&regarding["name"])) == object
    });
    let said = |event: &Value| ["type", "reason", "note"].map(|field| text(&event[field])).join(" ");
    let mut events: Vec<_> = ours.map(|event| (text(&event["eventTime"]), said(event))).collect();
    events.sort();
    Ok(events.into_iter().map(|(_, said)| said).collect())
}

/// A condition of a status; null if missing.
fn condition(status: &Value, kind: &str) -> Value {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    conditions.find(|condition| condition["type"] == kind).cloned().unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

/// The content of a file below `examples/`.
fn example(file: &str) -> Result<String> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(file);
    std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// A ConfigMap, which is Ready as soon as it exists.
fn config(name: &str, label: &str, application: Option<&str>) -> String {
    let annotations = application.map_or_else(String::new, |application| {
        format!("annotations: {{kubernetes.io/application: {application}}}")
    });
    format!(
        "
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {name}
  labels: {{app: {label}}}
  {annotations}
"
    )
}

/// An Application whose members are ConfigMaps.
fn application(name: &str, label: &str, more: &str) -> String {
    format!(
        "
---
apiVersion: bellwether.dev/v1alpha1
kind: Application
metadata: {{name: {name}}}
spec:
  selector: {{matchLabels: {{app: {label}}}}}
  componentKinds: [{{kind: ConfigMap}}]
{more}
"
    )
}

/// The conditions of an operator's component: Available, Progressing and Degraded, in this order.
fn operator_conditions(statuses: [&str; 3]) -> Vec<Value> {
    let kinds = ["Available", "Progressing", "Degraded"].into_iter().zip(statuses);
    kinds.map(|(kind, status)| operator_condition(kind, status)).collect()
}

fn operator_condition(kind: &str, status: &str) -> Value {
    json!({"type": kind, "status": status, "reason": format!("{kind}Is{status}"), "message": format!("{kind} is {status}"),
        "lastTransitionTime": "2026-11-14T10:00:00Z"})
}

/// A Rollup whose components are these Widgets.
fn rollup(name: &str, group: &str, namespace: &str, widgets: &[&str], upgradeable: bool) -> String {
    let component =
        |widget: &&str| json!({"group": group, "kind": "Widget", "namespace": namespace, "name": widget});
    let components: Vec<_> = widgets.iter().map(component).collect();
    json!({"apiVersion": "bellwether.dev/v1alpha1", "kind": "Rollup", "metadata": {"name": name},
        "spec": {"components": components, "upgradeable": upgradeable}})
    .to_string()
}

/// The CRD of the kind Widget. CRDs are cluster-scoped, so each test has an API group of its own.
fn widgets(group: &str, subresources: &str) -> String {
    format!(
        "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: widgets.{group}}}
spec:
  group: {group}
  names: {{kind: Widget, plural: widgets}}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {{{subresources}}}
    schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
"
    )
}
