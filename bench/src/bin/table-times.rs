//! Measures the time of a row's change in a table with six aggregate functions, and the memory of a row.
//!
//! Argument: the number of rows.

use std::{
    env,
    io::{Write as _, stdout},
    sync::Arc,
};

use anyhow::{Context as _, Result, ensure};
use bellwether_api::StatusCollectorSpec;
use bellwether_bench::{cpu_time, median};
use bellwether_model::Value;
use bellwether_tables::{Collector, Row, Table};
use serde_json::{Value as Json, json};

/// Long enough for the clock, and more than the rows of the largest table.
const CHANGES: u32 = 1_000_000;

/// The different objects that the clusters report.
const REPORTS: usize = 1_000;

fn main() -> Result<()> {
    let rows = env::args().nth(1).context("missing argument: the number of rows")?.parse()?;
    let reports: Vec<_> = (0..REPORTS).map(report).collect();
    let clusters: Vec<Arc<str>> = (0..rows).map(|number| format!("cluster-{number:06}").into()).collect();
    let collector = Arc::new(collector()?);

    let mut table = Table::new(collector);
    let filled = allocation_counter::measure(|| {
        for (number, cluster) in clusters.iter().enumerate() {
            table.upsert(cluster, &row(&reports[number % REPORTS]));
        }
    });
    let mut state = 1_usize;
    let start = cpu_time()?;
    let mut changed = 0_u32;
    for _ in 0..CHANGES {
        // A linear congruential generator: the next cluster is not next to the last one in memory.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (cluster, report) = ((state >> 33) % rows, (state >> 20) % REPORTS);
        changed += u32::from(table.upsert(&clusters[cluster], &row(&reports[report])));
    }
    let time = cpu_time()? - start;
    let result = table.result("measured");
    ensure!(changed > CHANGES / 2, "only {changed} changes");
    ensure!(result.rows.len() == 5, "{} groups", result.rows.len());
    let line = json!({
        "rows": rows,
        "change_ns": time.as_secs_f64() * 1e9 / f64::from(CHANGES),
        "bytes": filled.bytes_current,
        "render_ns": median(|| table.result("measured")),
    });
    writeln!(stdout(), "{line}")?;
    Ok(())
}

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
    Collector::compile(&spec).map_err(|errors| anyhow::anyhow!("{errors:?}"))
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
        json!({"found": true, "stale": number % 50 == 0, "health": "Ready", "observedGeneration": 1}),
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
