//! A client of the API server: writes objects, and reads the server's request metrics.

use std::{io, ops::Sub};

use anyhow::{Context as _, Result};
use bellwether_testkit::{TIMEOUT, eventually};
use futures::{AsyncBufReadExt as _, StreamExt as _, TryStreamExt as _, stream, stream::BoxStream};
use http::Request;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value as Json, json};

use crate::{population::Population, umbrella};

const MAX_IN_FLIGHT: usize = 16;

/// An API server, reached as the administrator.
#[derive(Clone)]
pub struct Server(Client);

/// The number of write requests of a controller.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    /// Status writes of Applications.
    pub statuses: f64,
    pub events: f64,
}

/// What clients have read.
#[derive(Clone, Copy, Debug)]
pub struct Reads {
    /// List requests.
    pub lists: f64,
    /// Bytes of the responses to them.
    pub bytes: f64,
    /// Open watches.
    pub watches: f64,
}

impl Sub for Reads {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            lists: self.lists - before.lists,
            bytes: self.bytes - before.bytes,
            watches: self.watches - before.watches,
        }
    }
}

impl Sub for Calls {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { statuses: self.statuses - before.statuses, events: self.events - before.events }
    }
}

impl Server {
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    pub(super) fn client(&self) -> &Client {
        &self.0
    }

    /// Creates the namespaces, the Applications and the objects, all of them ready.
    pub async fn populate(&self, population: &Population) -> Result<()> {
        for name in population.namespaces() {
            self.post("/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await?;
        }
        for application in 0..population.applications() {
            let namespace = Population::namespace(application);
            let path = format!("/apis/bellwether.dev/v1alpha1/namespaces/{namespace}/applications");
            self.post(&path, &Population::application(application)).await?;
        }
        let status = json!({ "status": population.status(true) });
        let create = async |object: usize| {
            let path = format!(
                "/apis/apps/v1/namespaces/{}/deployments",
                Population::namespace(population.application_of(object))
            );
            self.post(&path, &population.written(object)?).await?;
            self.merge(&format!("{path}/{}/status", Population::object_name(object)), &status).await
        };
        self.all((0..population.objects()).map(create)).await
    }

    /// Makes an object ready or not ready.
    pub async fn set_ready(&self, population: &Population, object: usize, ready: bool) -> Result<()> {
        let path = format!("{}/status", path(population, object));
        self.merge(&path, &json!({ "status": Population::replicas(ready) })).await
    }

    pub async fn set_all_ready(
        &self,
        population: &Population,
        objects: impl IntoIterator<Item = usize>,
        ready: bool,
    ) -> Result<()> {
        self.all(objects.into_iter().map(|object| self.set_ready(population, object, ready))).await
    }

    /// Updates only `lastUpdateTime`, as controllers do that find nothing to change.
    pub async fn touch_all(
        &self,
        population: &Population,
        objects: impl IntoIterator<Item = usize>,
    ) -> Result<()> {
        let mut conditions = population.status(true)["conditions"].take();
        for condition in conditions.as_array_mut().into_iter().flatten() {
            condition["lastUpdateTime"] = json!(Timestamp::now().to_string());
        }
        let patch = json!({ "status": { "conditions": conditions } });
        let touch = async |object| self.merge(&format!("{}/status", path(population, object)), &patch).await;
        self.all(objects.into_iter().map(touch)).await
    }

    /// What all clients have read of these resources.
    pub async fn reads(&self, resources: &[&str]) -> Result<Reads> {
        let text = self.metrics().await?;
        let resources: Vec<_> = resources.iter().map(|name| format!("resource=\"{name}\"")).collect();
        let sum = |metric: &str, verb: &str| -> Result<f64> {
            let is_counted = |labels: &str| {
                labels.contains(verb) && resources.iter().any(|resource| labels.contains(resource))
            };
            let counted = samples(&text, metric).filter(|(labels, _)| is_counted(labels));
            counted.map(|(_, value)| number(value)).sum()
        };
        Ok(Reads {
            lists: sum("apiserver_request_total", "verb=\"LIST\"")?,
            bytes: sum("apiserver_response_sizes_sum", "verb=\"LIST\"")?,
            watches: sum("apiserver_longrunning_requests", "verb=\"WATCH\"")?,
        })
    }

    async fn metrics(&self) -> Result<String> {
        Ok(self.0.request_text(Request::get("/metrics").body(Vec::new())?).await?)
    }

    /// The lines of a watch of these objects, from the ones that exist on.
    pub(super) async fn watch(&self, path: &str) -> Result<BoxStream<'static, io::Result<String>>> {
        let request = Request::get(format!("{path}?watch=1&timeoutSeconds=3600")).body(Vec::new())?;
        Ok(self.0.request_stream(request).await?.lines().boxed())
    }

    /// The number of write requests by all clients. Only the controller writes these resources.
    pub async fn calls(&self) -> Result<Calls> {
        let metrics = self.metrics().await?;
        Ok(Calls {
            statuses: writes(&metrics, &["resource=\"applications\"", "subresource=\"status\""])?,
            events: writes(&metrics, &["resource=\"events\""])?,
        })
    }

    /// The number of write requests for CombinedStatuses.
    pub async fn combined_status_writes(&self) -> Result<f64> {
        writes(&self.metrics().await?, &["resource=\"combinedstatuses\""])
    }

    /// Creates the CRD of the components of [`umbrella`], and returns the path of its objects once it is served.
    pub async fn serve_components(&self) -> Result<String> {
        let path = format!("/apis/ops.example/v1/namespaces/{}/{}", umbrella::NAMESPACE, umbrella::PLURAL);
        self.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &umbrella::definition()).await?;
        eventually(TIMEOUT, "the CRD of the components is served", async || {
            Ok(self.get(&path).await.is_ok())
        })
        .await?;
        Ok(path)
    }

    /// Runs many calls, several at a time.
    pub async fn all(&self, calls: impl IntoIterator<Item = impl Future<Output = Result<()>>>) -> Result<()> {
        stream::iter(calls).buffer_unordered(MAX_IN_FLIGHT).try_collect().await
    }

    pub async fn post(&self, path: &str, object: &Json) -> Result<()> {
        let request = Request::post(path).header("content-type", "application/json");
        self.send(request, object)
            .await
            .with_context(|| format!("cannot create {}", object["metadata"]["name"]))
    }

    /// Sends a merge patch.
    pub async fn merge(&self, path: &str, change: &Json) -> Result<()> {
        let request = Request::patch(path).header("content-type", "application/merge-patch+json");
        self.send(request, change).await.with_context(|| format!("cannot patch {path}"))
    }

    pub async fn get(&self, path: &str) -> Result<Json> {
        Ok(serde_json::from_str(&self.0.request_text(Request::get(path).body(Vec::new())?).await?)?)
    }

    async fn send(&self, request: http::request::Builder, body: &Json) -> Result<()> {
        self.0.request_text(request.body(serde_json::to_vec(body)?)?).await?;
        Ok(())
    }
}

/// The number of write requests with these labels.
fn writes(metrics: &str, labels: &[&str]) -> Result<f64> {
    let is_write = |own: &str| {
        let is_read = ["GET", "LIST", "WATCH"].iter().any(|verb| own.contains(&format!("\"{verb}\"")));
        !is_read && labels.iter().all(|label| own.contains(label))
    };
    let counted = samples(metrics, "apiserver_request_total").filter(|(own, _)| is_write(own));
    counted.map(|(_, value)| number(value)).sum()
}

/// The labels and the values of a metric.
fn samples<'a>(metrics: &'a str, name: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let samples = metrics.lines().filter_map(move |line| line.strip_prefix(name)?.strip_prefix('{'));
    samples.filter_map(|line| line.rsplit_once("} "))
}

fn number(value: &str) -> Result<f64> {
    value.parse().context("the value of the metric is not a number")
}

fn path(population: &Population, object: usize) -> String {
    let namespace = Population::namespace(population.application_of(object));
    format!("/apis/apps/v1/namespaces/{namespace}/deployments/{}", Population::object_name(object))
}
