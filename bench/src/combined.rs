//! The input of the benchmark for combined status: a collector, and rows for it.

use std::sync::Arc;

use anyhow::{Result, anyhow, ensure};
use bellwether_api::StatusCollectorSpec;
use bellwether_model::Value;
use bellwether_tables::{Collector, Row, Table};
use serde_json::{Value as Json, json};

/// The different objects that the clusters report. They stay in the caches of the CPU, as a row does that was
/// just decoded.
const REPORTS: usize = 128;

/// A table with one row for each cluster.
#[derive(Debug)]
pub struct CombinedTable {
    clusters: Vec<Arc<str>>,
    reports: Vec<[Value<'static>; 4]>,
    table: Table,
    random: usize,
}

impl CombinedTable {
    /// Without rows.
    pub fn new(rows: usize) -> Result<Self> {
        Ok(Self {
            clusters: (0..rows).map(|number| format!("cluster-{number:06}").into()).collect(),
            reports: (0..REPORTS).map(report).collect(),
            table: Table::new(Arc::new(collector()?)),
            random: 1,
        })
    }

    /// Inserts all rows.
    pub fn fill(&mut self) {
        for (number, cluster) in self.clusters.iter().enumerate() {
            self.table.upsert(number, cluster, &row(&self.reports[number % REPORTS]));
        }
    }

    /// Replaces the row of a random cluster with a random one. Returns whether the result may have changed.
    pub fn change(&mut self) -> bool {
        // A linear congruential generator: the next cluster is not next to the last one in memory.
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (cluster, report) = ((self.random >> 33) % self.clusters.len(), (self.random >> 20) % REPORTS);
        self.table.upsert(cluster, &self.clusters[cluster], &row(&self.reports[report]))
    }

    /// Renders the result. Fails if it has other groups than expected.
    pub fn render(&self) -> Result<()> {
        let result = self.table.result("measured");
        ensure!(result.rows.len() == 5, "{} groups", result.rows.len());
        Ok(())
    }
}

/// Six aggregate functions over two fields.
fn collector() -> Result<Collector> {
    let spec: StatusCollectorSpec = serde_json::from_value(json!({
        "filter": "propagation.found && !propagation.stale",
        "groupBy": [{"name": "phase", "def": "returned.status.phase"}],
        "combinedFields": [
            {"name": "clusters", "type": "COUNT"},
            {"name": "reporting", "type": "COUNT", "subject": "returned.status.readyReplicas"},
            {"name": "ready", "type": "SUM", "subject": "returned.status.readyReplicas"},
            {"name": "mean", "type": "AVG", "subject": "returned.status.readyReplicas"},
            {"name": "oldest", "type": "MIN", "subject": "returned.status.observedGeneration"},
            {"name": "newest", "type": "MAX", "subject": "returned.status.observedGeneration"},
        ],
    }))?;
    Collector::compile(&spec).map_err(|errors| anyhow!("{errors:?}"))
}

/// The variables of a row, pruned to what an engine would keep, with a few fields around them.
fn report(number: usize) -> [Value<'static>; 4] {
    let phases = ["Running", "Running", "Pending", "Failed", "Unknown", "Succeeded"];
    [
        json!({"name": format!("cluster-{number:06}"), "labels": {"region": "eu"}, "uid": "5b1d3a52"}),
        json!({"kind": "Deployment", "spec": {"replicas": 3}}),
        json!({
            "metadata": {"name": "web", "generation": number % 7},
            "spec": {"replicas": number % 10},
            "status": {
                "observedGeneration": number,
                "replicas": number % 10,
                "readyReplicas": number % 9,
                "phase": phases[number % phases.len()],
            },
        }),
        json!({"found": true, "stale": number.is_multiple_of(50), "health": "Ready", "observedGeneration": 1}),
    ]
    .map(|json| value(&json))
}

fn row<'a>(report: &'a [Value<'static>; 4]) -> Row<'a> {
    let [inventory, obj, returned, propagation] = report;
    Row { inventory, obj, returned, propagation }
}

fn value(json: &Json) -> Value<'static> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => Value::Int(number.as_i64().unwrap_or_default()),
        Json::String(text) => Value::Text(text.clone().into()),
        Json::Array(entries) => Value::List(entries.iter().map(value).collect()),
        Json::Object(fields) => {
            Value::Map(fields.iter().map(|(key, field)| (key.clone().into(), value(field))).collect())
        }
    }
}
