//! Actions of users in a namespace, directly at the API server: create, patch, report status, delete.

use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result};
use bellwether_testkit::Cluster;
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

use super::super::failing_pods::{LONG_AGO, waiting};

/// A resource, as in URL paths.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResourcePath {
    pub(super) root: &'static str,
    pub(super) plural: &'static str,
}

pub(super) const APPLICATIONS: ResourcePath =
    ResourcePath { root: "/apis/bellwether.dev/v1alpha1", plural: "applications" };
pub(super) const COMBINED_STATUSES: ResourcePath =
    ResourcePath { root: "/apis/bellwether.dev/v1alpha1", plural: "combinedstatuses" };
pub(super) const DEPLOYMENTS: ResourcePath = ResourcePath { root: "/apis/apps/v1", plural: "deployments" };
pub(super) const PODS: ResourcePath = ResourcePath { root: "/api/v1", plural: "pods" };
pub(super) const SECRETS: ResourcePath = ResourcePath { root: "/api/v1", plural: "secrets" };
pub(super) const CLAIMS: ResourcePath = ResourcePath { root: "/api/v1", plural: "persistentvolumeclaims" };
pub(super) const JOBS: ResourcePath = ResourcePath { root: "/apis/batch/v1", plural: "jobs" };
pub(super) const EVENTS: ResourcePath = ResourcePath { root: "/apis/events.k8s.io/v1", plural: "events" };

/// A namespace with an admin client, and the number of objects that the test has deleted.
pub(super) struct TestNamespace {
    pub(super) client: Client,
    pub(super) name: String,
    deleted: AtomicUsize,
}

impl TestNamespace {
    pub(super) async fn new(cluster: &Cluster, prefix: &str) -> Result<Self> {
        let (client, name) = (cluster.admin().client().await?, cluster.namespace(prefix).await?);
        Ok(Self { client, name, deleted: AtomicUsize::new(0) })
    }

    /// A namespace of this name.
    pub(super) async fn named(cluster: &Cluster, name: &str) -> Result<Self> {
        let client = cluster.admin().client().await?;
        let namespace = Self { client, name: name.to_owned(), deleted: AtomicUsize::new(0) };
        let object = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        namespace.request(Method::POST, "/api/v1/namespaces", &object).await?;
        Ok(namespace)
    }

    /// The path of all objects of a resource, or of one.
    pub(super) fn path(&self, resource: ResourcePath, name: Option<&str>) -> String {
        let path = format!("{}/namespaces/{}/{}", resource.root, self.name, resource.plural);
        name.map(|name| format!("{path}/{name}")).unwrap_or(path)
    }

    /// Sends one request, and returns the response.
    pub(super) async fn request(&self, method: Method, path: &str, body: &Value) -> Result<Value> {
        let content =
            if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(&method).uri(path).header("content-type", content);
        let answer = self.client.request(request.body(serde_json::to_vec(body)?)?).await;
        answer.with_context(|| format!("{method} {path}"))
    }

    /// Creates an object at the path of its resource, or patches it.
    pub(super) async fn apply(&self, path: &str, object: &Value) -> Result<()> {
        let name = object["metadata"]["name"].as_str().context("an object without a name")?;
        if self.request(Method::PATCH, &format!("{path}/{name}"), object).await.is_err() {
            self.request(Method::POST, path, object).await?;
        }
        Ok(())
    }

    pub(super) async fn get(&self, resource: ResourcePath, name: &str) -> Result<Value> {
        self.request(Method::GET, &self.path(resource, Some(name)), &Value::Null).await
    }

    pub(super) async fn create(&self, resource: ResourcePath, object: &Value) -> Result<Value> {
        self.request(Method::POST, &self.path(resource, None), object).await
    }

    /// A merge patch.
    pub(super) async fn patch(&self, resource: ResourcePath, name: &str, patch: Value) -> Result<Value> {
        self.request(Method::PATCH, &self.path(resource, Some(name)), &patch).await
    }

    /// A merge patch of the status.
    pub(super) async fn report(&self, resource: ResourcePath, name: &str, status: Value) -> Result<Value> {
        let path = format!("{}/status", self.path(resource, Some(name)));
        self.request(Method::PATCH, &path, &json!({ "status": status })).await
    }

    pub(super) async fn delete(&self, resource: ResourcePath, name: &str) -> Result<()> {
        self.request(Method::DELETE, &self.path(resource, Some(name)), &json!({})).await?;
        self.deleted.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    pub(super) fn deleted(&self) -> usize {
        self.deleted.load(Ordering::Relaxed)
    }

    /// An Application whose members are the Deployments with its name as label `app`. `more` has further
    /// fields of the spec.
    pub(super) async fn application(&self, name: &str, more: Value) -> Result<Value> {
        let mut object = json!({
            "apiVersion": "bellwether.dev/v1alpha1",
            "kind": "Application",
            "metadata": { "name": name },
            "spec": {
                "selector": { "matchLabels": { "app": name } },
                "componentKinds": [{ "group": "apps", "kind": "Deployment" }],
            },
        });
        for (field, value) in more.as_object().into_iter().flatten() {
            object["spec"][field] = value.clone();
        }
        self.create(APPLICATIONS, &object).await
    }

    /// A Deployment whose annotation makes an Application its owner. The tests set its status with
    /// `set_ready`.
    pub(super) async fn deployment(&self, name: &str, application: &str) -> Result<Value> {
        let mut object = deployment(name, application);
        object["metadata"]["annotations"] = json!({ "kubernetes.io/application": application });
        self.create(DEPLOYMENTS, &object).await
    }

    /// A Deployment without the annotation: a member that is not owned.
    pub(super) async fn unowned_deployment(&self, name: &str, application: &str) -> Result<Value> {
        self.create(DEPLOYMENTS, &deployment(name, application)).await
    }

    /// A Job that runs, and its Pod, whose image cannot be pulled since long ago.
    pub(super) async fn failing_job(&self, name: &str, application: &str, pod: &str) -> Result<()> {
        let spec = json!({ "restartPolicy": "Never", "containers": [{ "name": "server", "image": "main" }] });
        let job = self
            .create(
                JOBS,
                &json!({
                    "apiVersion": "batch/v1", "kind": "Job",
                    "metadata": { "name": name, "labels": { "app": application } },
                    "spec": { "template": { "spec": spec } },
                }),
            )
            .await?;
        self.report(JOBS, name, json!({ "active": 1, "ready": 0, "startTime": LONG_AGO })).await?;
        let owner = json!([{
            "apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job["metadata"]["uid"],
        }]);
        self.create(
            PODS,
            &json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": { "name": pod, "ownerReferences": owner }, "spec": spec,
            }),
        )
        .await?;
        self.report(PODS, pod, waiting("ImagePullBackOff")).await.map(drop)
    }

    /// Writes the status of a Deployment, in place of its controller.
    pub(super) async fn set_ready(&self, name: &str, ready: bool) -> Result<()> {
        let (count, word) = if ready { (1, "True") } else { (0, "False") };
        let generation = self.get(DEPLOYMENTS, name).await?["metadata"]["generation"].take();
        let status = json!({
            "observedGeneration": generation, "replicas": 1, "updatedReplicas": 1, "readyReplicas": count,
            "availableReplicas": count, "unavailableReplicas": 1 - count,
            "conditions": [{ "type": "Available", "status": word, "reason": "Reported", "message": "written by the test" }],
        });
        self.report(DEPLOYMENTS, name, status).await.map(drop)
    }
}

fn deployment(name: &str, application: &str) -> Value {
    let container = json!({ "name": "main", "image": "main" });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": name, "labels": { "app": application } },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "part": "of" } },
            "template": { "metadata": { "labels": { "part": "of" } }, "spec": { "containers": [container] } },
        },
    })
}
