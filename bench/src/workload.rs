//! The objects of the live benchmark for combined status: Deployments in a hub and in clusters, a BindingPolicy
//! with two StatusCollectors, and what the CombinedStatuses must show.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use bellwether_api::CombinedStatusFields;
use serde_json::{Value as Json, json};

use crate::population::uid;

/// A Deployment of 6 KB, as a real API server returned it.
const TEMPLATE: &str = include_str!("../objects/deployment-6k.json");

/// The namespace of the Deployments and of their CombinedStatuses.
pub const NAMESPACE: &str = "shop";

/// The rows of a list within the limit.
const LIMIT: usize = 20;

/// How many different numbers of available replicas the clusters report.
const NUMBERS: u32 = 9;

/// The numbers of available replicas that the clusters report: one for each Deployment in each cluster.
#[derive(Clone, Debug)]
pub struct Workload {
    template: Json,
    /// By Deployment, then by cluster.
    available: Vec<Vec<u32>>,
}

/// The rows of each result, and the number of clusters that report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shown {
    rows: BTreeMap<String, Vec<Vec<String>>>,
    reporting: Option<i32>,
}

impl Workload {
    pub fn new(deployments: usize, clusters: usize) -> Result<Self> {
        let numbers = (0..clusters).zip((1..=NUMBERS).cycle()).map(|(_, number)| number).collect();
        Ok(Self { template: serde_json::from_str(TEMPLATE)?, available: vec![numbers; deployments] })
    }

    pub fn deployments(&self) -> usize {
        self.available.len()
    }

    pub fn deployment_name(deployment: usize) -> String {
        format!("web-{deployment}")
    }

    /// Names have the order of the numbers, as the rows of a list.
    pub fn cluster_name(cluster: usize) -> String {
        format!("cluster-{cluster:06}")
    }

    /// The number of available replicas.
    pub fn available(&self, deployment: usize, cluster: usize) -> u32 {
        self.available[deployment][cluster]
    }

    /// Another number than before, so that two groups and a row change. Returns the new number.
    pub fn change(&mut self, deployment: usize, cluster: usize) -> u32 {
        let available = &mut self.available[deployment][cluster];
        *available = *available % NUMBERS + 1;
        *available
    }

    /// A Deployment without a status.
    pub fn manifest(&self, deployment: usize) -> Json {
        let mut manifest = self.template.clone();
        if let Some(fields) = manifest.as_object_mut() {
            fields.remove("status");
        }
        manifest["metadata"] = json!({ "name": Self::deployment_name(deployment), "labels": self.template["metadata"]["labels"] });
        manifest
    }

    /// A Deployment as the API server sends it, with this resourceVersion.
    pub fn stored(&self, deployment: usize, cluster: usize, version: u64) -> Result<Json> {
        let mut stored = self.template.clone();
        let metadata = stored["metadata"].as_object_mut().context("the template has no metadata")?;
        metadata.insert("name".to_owned(), json!(Self::deployment_name(deployment)));
        metadata.insert("namespace".to_owned(), json!(NAMESPACE));
        metadata.insert("uid".to_owned(), json!(uid(deployment)));
        metadata.insert("resourceVersion".to_owned(), json!(version.to_string()));
        let status = stored["status"].as_object_mut().context("the template has no status")?;
        let replicas = Self::replicas(self.available(deployment, cluster));
        status.extend(replicas.as_object().context("replicas is not an object")?.clone());
        Ok(stored)
    }

    /// The whole status in a cluster.
    pub fn status(&self, deployment: usize, cluster: usize) -> Result<Json> {
        Ok(self.stored(deployment, cluster, 0)?["status"].take())
    }

    /// The fields of a status that change.
    pub fn replicas(available: u32) -> Json {
        json!({ "replicas": NUMBERS, "readyReplicas": available, "availableReplicas": available })
    }

    /// Binds all Deployments to all clusters.
    pub fn policy() -> Json {
        json!({
            "apiVersion": "bellwether.dev/v1alpha1",
            "kind": "BindingPolicy",
            "metadata": { "name": "shop" },
            "spec": {
                "clusterSelectors": [{ "matchLabels": { "tier": "edge" } }],
                "downsync": [{
                    "apiGroup": "apps", "resources": ["deployments"], "namespaces": [NAMESPACE],
                    "statusCollectors": ["agg", "list"],
                }],
            },
        })
    }

    pub fn collectors() -> [Json; 2] {
        let collector = |name: &str, spec: Json| {
            json!({
                "apiVersion": "bellwether.dev/v1alpha1", "kind": "StatusCollector",
                "metadata": { "name": name }, "spec": spec,
            })
        };
        let available = "returned.status.availableReplicas";
        [
            collector(
                "agg",
                json!({
                    "filter": format!("{available} > 0"),
                    "groupBy": [{ "name": "available", "def": available }],
                    "combinedFields": [
                        { "name": "clusters", "type": "COUNT" },
                        { "name": "total", "type": "SUM", "subject": available },
                    ],
                }),
            ),
            collector(
                "list",
                json!({
                    "select": [
                        { "name": "cluster", "def": "inventory.name" },
                        { "name": "replicas", "def": "returned.status.replicas" },
                        { "name": "ready", "def": "returned.status.readyReplicas" },
                        { "name": "available", "def": available },
                    ],
                    "limit": LIMIT,
                }),
            ),
        ]
    }

    /// What the CombinedStatus of a Deployment must show.
    pub fn expected(&self, deployment: usize) -> Shown {
        let reported = &self.available[deployment];
        let mut groups: BTreeMap<u32, u32> = BTreeMap::new();
        for available in reported {
            *groups.entry(*available).or_default() += 1;
        }
        let groups = groups.iter().map(|(available, count)| [*available, *count, available * count]);
        let agg = groups.map(|row| row.map(|number| number.to_string()).to_vec());
        let list = reported.iter().enumerate().take(LIMIT).map(|(cluster, available)| {
            let numbers = [NUMBERS, *available, *available].map(|number| number.to_string());
            [Self::cluster_name(cluster)].into_iter().chain(numbers).collect()
        });
        let rows = [("agg".to_owned(), agg.collect()), ("list".to_owned(), list.collect())];
        Shown { rows: rows.into(), reporting: reported.len().try_into().ok() }
    }
}

impl From<CombinedStatusFields> for Shown {
    fn from(status: CombinedStatusFields) -> Self {
        let results = status.results.into_iter().map(|result| {
            let rows = result.rows.into_iter().map(|row| {
                let cells = row.columns.into_iter();
                cells.map(|cell| cell.number.or(cell.string).unwrap_or_default()).collect()
            });
            (result.name, rows.collect())
        });
        Self { rows: results.collect(), reporting: status.clusters.map(|clusters| clusters.reporting) }
    }
}
