//! The API server: what is written to it, and what others asked of it.

use std::ops::Sub;

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::Request;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value as Json, json};

use crate::population::Population;

/// So many calls are under way at a time.
const AT_A_TIME: usize = 16;

/// An API server, and somebody who may do everything.
#[derive(Clone)]
pub struct Server(Client);

/// How often a controller has called.
#[derive(Clone, Copy, Debug)]
pub struct Calls {
    /// To write the status of an Application.
    pub statuses: f64,
    /// To tell people what has turned.
    pub events: f64,
}

impl Sub for Calls {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { statuses: self.statuses - before.statuses, events: self.events - before.events }
    }
}

impl Server {
    /// The one that a client talks to.
    pub fn new(client: Client) -> Self {
        Self(client)
    }

    /// The client.
    pub(super) fn client(&self) -> &Client {
        &self.0
    }

    /// Creates the namespaces, the Applications and the objects, all of which are ready.
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

    /// An object becomes ready, or is no longer.
    pub async fn turn(&self, population: &Population, object: usize, ready: bool) -> Result<()> {
        let path = format!("{}/status", path(population, object));
        self.merge(&path, &json!({ "status": Population::replicas(ready) })).await
    }

    /// Objects become ready, or are no longer.
    pub async fn turn_all(
        &self,
        population: &Population,
        objects: impl IntoIterator<Item = usize>,
        ready: bool,
    ) -> Result<()> {
        self.all(objects.into_iter().map(|object| self.turn(population, object, ready))).await
    }

    /// The owners of objects look at them, and find them as they were.
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

    /// How many lists of Applications, rules and Deployments anybody has asked for so far.
    pub async fn lists(&self) -> Result<f64> {
        let text = self.metrics().await?;
        let resources =
            ["applications", "healthrules", "deployments"].map(|name| format!("resource=\"{name}\""));
        let is_list = |labels: &str| {
            labels.contains("verb=\"LIST\"") && resources.iter().any(|resource| labels.contains(resource))
        };
        let counted = requests(&text).filter(|(labels, _)| is_list(labels));
        counted.map(|(_, value)| value.parse::<f64>().context("no number")).sum()
    }

    async fn metrics(&self) -> Result<String> {
        Ok(self.0.request_text(Request::get("/metrics").body(Vec::new())?).await?)
    }

    /// How often the controller has called so far: nobody else writes what is counted here.
    pub async fn calls(&self) -> Result<Calls> {
        let text = self.metrics().await?;
        let requests: Vec<_> = requests(&text).collect();
        let count = |labels: &[&str]| -> Result<f64> {
            let is_write = |line: &str| {
                !["GET", "LIST", "WATCH"].iter().any(|verb| line.contains(&format!("\"{verb}\"")))
            };
            let counted = requests
                .iter()
                .filter(|(own, _)| labels.iter().all(|label| own.contains(label)) && is_write(own));
            counted.map(|(_, value)| value.parse::<f64>().context("no number")).sum()
        };
        Ok(Calls {
            statuses: count(&["resource=\"applications\"", "subresource=\"status\""])?,
            events: count(&["resource=\"events\""])?,
        })
    }

    /// Makes many calls, some at a time.
    pub async fn all(&self, calls: impl IntoIterator<Item = impl Future<Output = Result<()>>>) -> Result<()> {
        stream::iter(calls).buffer_unordered(AT_A_TIME).try_collect().await
    }

    /// Creates an object.
    pub async fn post(&self, path: &str, object: &Json) -> Result<()> {
        let request = Request::post(path).header("content-type", "application/json");
        self.send(request, object)
            .await
            .with_context(|| format!("cannot create {}", object["metadata"]["name"]))
    }

    /// Merges a change into an object.
    pub async fn merge(&self, path: &str, change: &Json) -> Result<()> {
        let request = Request::patch(path).header("content-type", "application/merge-patch+json");
        self.send(request, change).await.with_context(|| format!("cannot patch {path}"))
    }

    /// What there is at a path.
    pub async fn get(&self, path: &str) -> Result<Json> {
        Ok(serde_json::from_str(&self.0.request_text(Request::get(path).body(Vec::new())?).await?)?)
    }

    async fn send(&self, request: http::request::Builder, body: &Json) -> Result<()> {
        self.0.request_text(request.body(serde_json::to_vec(body)?)?).await?;
        Ok(())
    }
}

/// What was asked of the API server, by its labels, and how often.
fn requests(metrics: &str) -> impl Iterator<Item = (&str, &str)> {
    let requests = metrics.lines().filter_map(|line| line.strip_prefix("apiserver_request_total{"));
    requests.filter_map(|line| line.rsplit_once("} "))
}

/// Where an object is.
fn path(population: &Population, object: usize) -> String {
    let namespace = Population::namespace(population.application_of(object));
    format!("/apis/apps/v1/namespaces/{namespace}/deployments/{}", Population::object_name(object))
}
