//! The StatusCollectors of plans, each with a second implementation: a function over all rows.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::inventory::Labels;

/// One object in one cluster that it is bound to.
#[derive(Clone, Debug)]
pub(crate) struct Row<'a> {
    pub(crate) cluster: &'static str,
    pub(crate) labels: &'a Labels,
    pub(crate) uid: &'a str,
    /// In the hub.
    pub(crate) obj: &'a Value,
    /// In the cluster; `Null` if it does not exist there, or if that is not known.
    pub(crate) returned: &'a Value,
    /// `None` if it is not known.
    pub(crate) found: Option<bool>,
    pub(crate) is_stale: bool,
    pub(crate) health: String,
}

/// A StatusCollector and what it means.
pub(crate) struct Sample {
    pub(crate) spec: Value,
    /// The result over all rows, sorted by cluster, in the form of [`shape`]; `None` if the spec is invalid.
    pub(crate) result: Option<fn(&[Row<'_>]) -> Value>,
    /// Whether it reads what a cluster has reported last, even if that is stale.
    pub(crate) reads_returned: bool,
}

fn ready(row: &Row<'_>) -> Value {
    row.returned["status"]["readyReplicas"].clone()
}

fn region(row: &Row<'_>) -> Value {
    row.labels.get("region").map_or(Value::Null, |region| json!(region))
}

/// All samples, always in the same order.
pub(crate) fn samples() -> Vec<Sample> {
    let sample = |spec: Value, reads_returned: bool, result: fn(&[Row<'_>]) -> Value| Sample {
        spec,
        result: Some(result),
        reads_returned,
    };
    vec![
        sample(
            json!({"select": [
                {"name": "cluster", "def": "inventory.name"},
                {"name": "ready", "def": "returned.status.readyReplicas"},
                {"name": "wanted", "def": "obj.spec.replicas"},
                {"name": "region", "def": "inventory.labels.region"},
                {"name": "uid", "def": "inventory.uid"},
            ]}),
            true,
            |rows| {
                let cells = |row: &Row<'_>| {
                    vec![
                        json!(row.cluster),
                        ready(row),
                        row.obj["spec"]["replicas"].clone(),
                        region(row),
                        json!(row.uid),
                    ]
                };
                table(
                    &["cluster", "ready", "wanted", "region", "uid"],
                    rows.iter().map(cells).collect(),
                    20,
                    &[],
                )
            },
        ),
        sample(
            json!({
                "filter": "propagation.stale || !propagation.found",
                "select": [{"name": "cluster", "def": "inventory.name"}, {"name": "health", "def": "propagation.health"}],
            }),
            false,
            |rows| {
                let absent = rows.iter().filter(|row| row.is_stale || row.found == Some(false));
                let cells = |row: &Row<'_>| vec![json!(row.cluster), json!(row.health)];
                table(&["cluster", "health"], absent.map(cells).collect(), 20, &[])
            },
        ),
        sample(
            json!({"combinedFields": [
                {"name": "clusters", "type": "COUNT"},
                {"name": "reporting", "type": "COUNT", "subject": "returned.status.readyReplicas"},
                {"name": "ready", "type": "SUM", "subject": "returned.status.readyReplicas"},
                {"name": "least", "type": "MIN", "subject": "returned.status.readyReplicas"},
                {"name": "most", "type": "MAX", "subject": "returned.status.readyReplicas"},
            ]}),
            true,
            |rows| {
                let values: Vec<_> = rows.iter().filter_map(|row| ready(row).as_i64()).collect();
                let sum = (!values.is_empty()).then(|| values.iter().sum::<i64>());
                let cells = vec![
                    json!(rows.len()),
                    json!(values.len()),
                    json!(sum),
                    json!(values.iter().min()),
                    json!(values.iter().max()),
                ];
                table(&["clusters", "reporting", "ready", "least", "most"], vec![cells], 20, &[])
            },
        ),
        sample(
            json!({
                "groupBy": [{"name": "health", "def": "propagation.health"}],
                "combinedFields": [{"name": "clusters", "type": "COUNT"}],
                "orderBy": [{"column": "clusters", "descending": true}], "limit": 1,
            }),
            false,
            |rows| {
                let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
                for row in rows {
                    *groups.entry(&row.health).or_default() += 1;
                }
                let mut groups: Vec<_> = groups.into_iter().collect();
                groups.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
                let cells = groups.into_iter().map(|(health, count)| vec![json!(health), json!(count)]);
                table(&["health", "clusters"], cells.collect(), 1, &[])
            },
        ),
        sample(
            json!({
                "filter": "!propagation.stale",
                "groupBy": [{"name": "region", "def": "inventory.labels.region"}],
                "combinedFields": [
                    {"name": "clusters", "type": "COUNT"},
                    {"name": "ready", "type": "SUM", "subject": "returned.status.readyReplicas"},
                ],
            }),
            false,
            |rows| {
                // Null comes first.
                let mut groups: BTreeMap<Option<&String>, (usize, Option<i64>)> = BTreeMap::new();
                for row in rows.iter().filter(|row| !row.is_stale) {
                    let group = groups.entry(row.labels.get("region")).or_default();
                    group.0 += 1;
                    if let Some(ready) = ready(row).as_i64() {
                        *group.1.get_or_insert(0) += ready;
                    }
                }
                let cells = |(region, (count, ready))| vec![json!(region), json!(count), json!(ready)];
                table(&["region", "clusters", "ready"], groups.into_iter().map(cells).collect(), 20, &[])
            },
        ),
        sample(
            json!({
                "filter": "propagation.found",
                "select": [
                    {"name": "cluster", "def": "inventory.name"},
                    {"name": "share", "def": "inventory.name == 'north' ? 1 / (inventory.name.size() - 5) : 1"},
                ],
                "orderBy": [{"column": "cluster", "descending": true}],
            }),
            true,
            |rows| {
                let found = || rows.iter().rev().filter(|row| row.found == Some(true));
                let fails = |row: &&Row<'_>| row.cluster == "north";
                let cells = found().filter(|row| !fails(row)).map(|row| vec![json!(row.cluster), json!(1)]);
                let failed: Vec<_> = found().filter(fails).map(|row| (row.cluster, "share")).collect();
                table(&["cluster", "share"], cells.collect(), 20, &failed)
            },
        ),
        sample(
            json!({"combinedFields": [{"name": "total", "type": "SUM", "subject": "int(inventory.name)"}]}),
            false,
            |rows| {
                let failed: Vec<_> = rows.iter().map(|row| (row.cluster, "total")).collect();
                table(&["total"], vec![vec![Value::Null]], 20, &failed)
            },
        ),
        sample(
            json!({
                "select": [{"name": "labels", "def": "inventory.labels"}, {"name": "stale", "def": "propagation.stale"}],
                "limit": 2,
            }),
            false,
            |rows| {
                let cells = |row: &Row<'_>| vec![json!(row.labels), json!(row.is_stale)];
                table(&["labels", "stale"], rows.iter().map(cells).collect(), 2, &[])
            },
        ),
        Sample {
            spec: json!({"select": [{"name": "cluster", "def": "inventory.nme("}]}),
            result: None,
            reads_returned: false,
        },
    ]
}

/// A result in the form of [`shape`]. `failed`: clusters and columns of rows that cannot be evaluated, for each
/// one column.
fn table(columns: &[&str], rows: Vec<Vec<Value>>, limit: usize, failed: &[(&str, &str)]) -> Value {
    let total = rows.len();
    let rows: Vec<Vec<_>> =
        rows.into_iter().take(limit).map(|row| row.into_iter().map(typed).collect()).collect();
    json!({
        "columnNames": columns, "rows": rows, "totalRows": total, "truncated": total > limit,
        "failedRows": failed.len(), "rowErrors": failed, "aggregationErrors": 0,
    })
}

fn typed(value: Value) -> Value {
    match value {
        Value::Null => json!({"type": "Null"}),
        Value::Bool(truth) => json!({"type": "Bool", "bool": truth}),
        Value::Number(number) => json!({"type": "Number", "number": number.to_string()}),
        Value::String(text) => json!({"type": "String", "string": text}),
        Value::Array(array) => json!({"type": "Array", "array": array}),
        Value::Object(object) => json!({"type": "Object", "object": object}),
    }
}

/// A stored result without its name and the texts of errors, so that it can be compared.
pub(crate) fn shape(result: &Value) -> Value {
    let list = |field: &str| result[field].as_array().cloned().unwrap_or_default();
    let rows: Vec<_> = list("rows").into_iter().map(|row| row["columns"].clone()).collect();
    let mut failed: Vec<_> =
        list("rowErrors").iter().map(|error| json!([error["cluster"], error["column"]])).collect();
    failed.sort_by_key(ToString::to_string);
    json!({
        "columnNames": result["columnNames"], "rows": rows, "totalRows": result["totalRows"],
        "truncated": result["truncated"],
        "failedRows": result["failedRows"].as_u64().unwrap_or(0), "rowErrors": failed,
        "aggregationErrors": list("aggregationErrors").len(),
    })
}
