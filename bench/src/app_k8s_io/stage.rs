//! A cluster with objects, and one of the two controllers.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use bellwether_testkit::{self as testkit, Access, Cluster, Program, app_k8s_io, rule};
use http::Request;
use kube::Client;
use serde_json::{Value, json};
use tempfile::TempPath;
use tokio::time::sleep;

pub struct Subjects {
    /// The binary of the controller of app.k8s.io.
    pub old: PathBuf,
    /// Bellwether's binary.
    pub ours: PathBuf,
    /// The Go module of the old controller, with its examples.
    pub module: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Old,
    Ours,
}

/// A running controller.
pub(super) enum Controller {
    Old { program: Program, _kubeconfig: TempPath },
    Ours(testkit::Controller),
}

impl Controller {
    /// Starts a controller. `period` is the resync period of the old one, in seconds.
    pub(super) fn start(who: Who, subjects: &Subjects, access: &Access, period: u32) -> Result<Self> {
        if who == Who::Ours {
            let ours = testkit::Controller::new(&subjects.ours, access)?.arguments(["--leader-elect=false"]);
            ours.start()?;
            return Ok(Self::Ours(ours));
        }
        let kubeconfig = access.kubeconfig_file()?;
        let program = Program::new(&subjects.old)?
            .arguments(["--metrics-addr", "0", "--sync-period", &period.to_string(), "--kubeconfig"])
            .arguments([kubeconfig.as_os_str()]);
        program.start()?;
        Ok(Self::Old { program, _kubeconfig: kubeconfig })
    }

    pub(super) fn program(&self) -> &Program {
        match self {
            Self::Old { program, .. } => program,
            Self::Ours(controller) => &controller.program,
        }
    }
}

pub(super) struct Stage {
    pub(super) cluster: Cluster,
    pub(super) client: Client,
    /// A user with rights to all kinds of the situations except Secrets.
    pub(super) access: Access,
}

impl Stage {
    pub(super) async fn new(name: &str) -> Result<Self> {
        let cluster = Cluster::builder().name(name).start().await?;
        cluster.install(&bellwether_api::crds()).await?;
        cluster.install(&[app_k8s_io()?]).await?;
        let client = cluster.admin().client().await?;
        let access = cluster.user("controller")?;
        let core = [
            "configmaps",
            "events",
            "persistentvolumeclaims",
            "pods",
            "replicationcontrollers",
            "services",
            "namespaces",
        ];
        let groups = [
            "apps",
            "app.k8s.io",
            "apiextensions.k8s.io",
            "batch",
            "bellwether.dev",
            "events.k8s.io",
            "networking.k8s.io",
            "policy",
            "rbac.authorization.k8s.io",
            "test.crd.com",
            "v2x.example.com",
            "example.com",
        ];
        let mut rules: Vec<_> = groups.iter().map(|group| rule(&["*"], group, &["*"])).collect();
        rules.push(rule(&["*"], "", &core));
        cluster.grant(&access, None, rules).await?;
        Ok(Self { cluster, client, access })
    }

    /// Installs a CRD without a schema, with or without the status subresource.
    pub(super) async fn define(&self, group: &str, kind: &str, has_status: bool) -> Result<()> {
        let subresources = if has_status { json!({"status": {}}) } else { json!({}) };
        let plural = plural(kind);
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "subresources": subresources,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        });
        self.cluster.install(&[serde_json::from_value(definition)?]).await
    }

    /// Creates an object with its status. Deletes it again if it has a finalizer, so that it stays
    /// terminating.
    pub(super) async fn create(&self, namespace: &str, object: &Value) -> Result<()> {
        let at = path(namespace, object);
        self.send("POST", &at, object).await.with_context(|| format!("cannot create {object}"))?;
        let own = format!("{at}/{}", text(&object["metadata"]["name"]));
        if !object["status"].is_null() {
            let status = json!({ "status": object["status"] });
            self.send("PATCH", &format!("{own}/status"), &status)
                .await
                .with_context(|| format!("cannot write the status of {object}"))?;
        }
        if !object["metadata"]["finalizers"].is_null() {
            self.send("DELETE", &own, &json!({})).await?;
        }
        Ok(())
    }

    pub(super) async fn get(&self, path: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.client.request_text(Request::get(path).body(Vec::new())?).await?)?)
    }

    pub(super) async fn send(&self, method: &str, path: &str, body: &Value) -> Result<()> {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("content-type", kind);
        self.client.request_text(request.body(serde_json::to_vec(body)?)?).await?;
        Ok(())
    }

    /// Waits until each Application has a status and nothing changes for `quiet`. Returns all Applications.
    pub(super) async fn settled(&self, controller: &Controller, quiet: Duration) -> Result<Vec<Value>> {
        let (begun, mut since) = (Instant::now(), Instant::now());
        let mut before = Value::Null;
        while begun.elapsed() < Duration::from_mins(10) {
            let now = self.get("/apis/app.k8s.io/v1beta1/applications").await?["items"].take();
            if now != before {
                (before, since) = (now, Instant::now());
            }
            let all = before.as_array().map(Vec::as_slice).unwrap_or_default();
            let is_known = |app: &Value| app["status"]["observedGeneration"] == app["metadata"]["generation"];
            if since.elapsed() > quiet && all.iter().all(is_known) {
                return Ok(all.to_vec());
            }
            if !controller.program().is_running() {
                bail!("the controller has ended: {}", controller.program().log());
            }
            sleep(Duration::from_millis(500)).await;
        }
        bail!("the statuses do not settle: {}", controller.program().log())
    }
}

/// The path of the collection of an object.
pub(super) fn path(namespace: &str, object: &Value) -> String {
    let (api, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
    let root = if api.contains('/') { "apis" } else { "api" };
    let scope = match kind.as_str() {
        "ClusterRole" | "PersistentVolume" | "Namespace" => String::new(),
        _ => format!("/namespaces/{namespace}"),
    };
    format!("/{root}/{api}{scope}/{}", plural(&kind))
}

fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    if kind.ends_with('s') { format!("{kind}es") } else { format!("{kind}s") }
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The objects of a kustomization, without their namespaces.
pub(super) async fn kustomized(cluster: &Cluster, directory: &Path) -> Result<Vec<Value>> {
    let kubectl = bellwether_testkit::Kubectl::new(cluster.admin())?;
    let directory = directory.to_str().context("the path of the directory is not UTF-8")?;
    let listed = kubectl
        .ok(&["create", "--dry-run=client", "--validate=false", "-o", "json", "-k", directory])
        .await?;
    // kubectl prints a sequence of JSON objects or a List.
    let mut objects = Vec::new();
    for object in serde_json::Deserializer::from_str(&listed).into_iter::<Value>() {
        let object = object?;
        match object["items"].as_array() {
            Some(items) => objects.extend(items.iter().cloned()),
            None => objects.push(object),
        }
    }
    for metadata in objects.iter_mut().filter_map(|object| object["metadata"].as_object_mut()) {
        metadata.remove("namespace");
    }
    Ok(objects)
}
