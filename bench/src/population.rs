//! The objects of the Application benchmarks: Deployments in groups, and an Application for each group.

use std::env;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value as Json, json};

/// A Deployment of 3 KB, as a real API server returned it.
const TEMPLATE: &str = include_str!("../objects/deployment-3k.json");

const APPLICATIONS_IN_A_NAMESPACE: usize = 10;

#[derive(Clone, Debug)]
pub struct Population {
    template: Json,
    objects: usize,
    group: usize,
}

impl Population {
    /// `group` is the number of objects in one Application.
    pub fn new(objects: usize, group: usize) -> Result<Self> {
        Ok(Self { template: serde_json::from_str(TEMPLATE)?, objects, group: group.max(1) })
    }

    pub fn from_arguments() -> Result<Self> {
        let numbers = env::args().skip(1).map(|argument| argument.parse());
        match *numbers.collect::<Result<Vec<_>, _>>()? {
            [objects, group] => Self::new(objects, group),
            _ => bail!("missing arguments: number of objects, number in one Application"),
        }
    }

    pub fn objects(&self) -> usize {
        self.objects
    }

    pub fn applications(&self) -> usize {
        self.objects.div_ceil(self.group)
    }

    /// The Application of an object.
    pub fn application_of(&self, object: usize) -> usize {
        object / self.group
    }

    /// The objects of an Application.
    pub fn members(&self, application: usize) -> std::ops::Range<usize> {
        let first = application * self.group;
        first..(first + self.group).min(self.objects)
    }

    /// The namespace of an Application and its objects.
    pub fn namespace(application: usize) -> String {
        format!("team-{}", application / APPLICATIONS_IN_A_NAMESPACE)
    }

    pub fn namespaces(&self) -> impl Iterator<Item = String> {
        (0..self.applications()).step_by(APPLICATIONS_IN_A_NAMESPACE).map(Self::namespace)
    }

    pub fn application_name(application: usize) -> String {
        format!("shop-{application}")
    }

    pub fn object_name(object: usize) -> String {
        format!("server-{object}")
    }

    /// The manifest of an Application.
    pub fn application(application: usize) -> Json {
        let name = Self::application_name(application);
        json!({
            "apiVersion": "bellwether.dev/v1alpha1",
            "kind": "Application",
            "metadata": { "name": name, "namespace": Self::namespace(application) },
            "spec": {
                "selector": { "matchLabels": {
                    "app.kubernetes.io/part-of": name,
                    "app.kubernetes.io/managed-by": "Helm",
                }},
                "componentKinds": [{ "group": "apps", "kind": "Deployment" }],
            },
        })
    }

    /// An object as the API server sends it, with this resourceVersion.
    pub fn object(&self, object: usize, version: usize, ready: bool) -> Result<Json> {
        let mut deployment = self.template.clone();
        let metadata = deployment
            .get_mut("metadata")
            .and_then(Json::as_object_mut)
            .context("the template has no metadata")?;
        let application = self.application_of(object);
        metadata.insert("name".to_owned(), json!(Self::object_name(object)));
        metadata.insert("namespace".to_owned(), json!(Self::namespace(application)));
        metadata.insert("uid".to_owned(), json!(uid(object)));
        metadata.insert("resourceVersion".to_owned(), json!(version.to_string()));
        metadata.insert("labels".to_owned(), labels(object, application));
        let status = deployment["status"].as_object_mut().context("the template has no status")?;
        status.extend(Self::replicas(ready).as_object().context("replicas is not an object")?.clone());
        Ok(deployment)
    }

    /// The manifest of an object.
    pub fn written(&self, object: usize) -> Result<Json> {
        let mut deployment = self.object(object, 0, true)?;
        let fields = deployment.as_object_mut().context("the template is not an object")?;
        fields.remove("status");
        if let Some(metadata) = fields.get_mut("metadata").and_then(Json::as_object_mut) {
            metadata.retain(|field, _| ["name", "namespace", "labels"].contains(&field.as_str()));
        }
        Ok(deployment)
    }

    /// The whole status of an object.
    pub fn status(&self, ready: bool) -> Json {
        let mut status = self.template["status"].clone();
        if let (Some(status), Json::Object(replicas)) = (status.as_object_mut(), Self::replicas(ready)) {
            status.extend(replicas);
        }
        status
    }

    /// The fields of a status that decide whether the object is ready.
    pub fn replicas(ready: bool) -> Json {
        let available = if ready { 2 } else { 1 };
        json!({ "readyReplicas": available, "availableReplicas": available })
    }
}

/// A unique uid for each number.
pub(crate) fn uid(number: usize) -> String {
    format!("5b1d3a52-0000-4000-8000-{number:012}")
}

/// Labels as in Helm charts.
fn labels(object: usize, application: usize) -> Json {
    let name = Population::application_name(application);
    json!({
        "app.kubernetes.io/name": format!("server-{}", object % 100),
        "app.kubernetes.io/instance": name,
        "app.kubernetes.io/version": format!("2.{}.0", application % 7),
        "app.kubernetes.io/component": (["web", "queue", "cache", "worker"][object % 4]),
        "app.kubernetes.io/part-of": name,
        "app.kubernetes.io/managed-by": "Helm",
        "helm.sh/chart": format!("shop-1.{}.0", application % 5),
    })
}
