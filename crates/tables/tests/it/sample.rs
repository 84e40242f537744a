//! Collectors and rows of the tests, and how the tests print results.

use std::{collections::BTreeMap, fmt, ops::Deref, sync::Arc};

use bellwether_api::{CombinedResult, StatusCollectorSpec, TypedValue};
use bellwether_model::Value;
use bellwether_tables::{Collector, Row, Table};
use serde_json::{Value as Json, json};

/// A spec in YAML.
pub(crate) fn spec(yaml: &str) -> StatusCollectorSpec {
    serde_saphyr::from_str(yaml).expect(yaml)
}

pub(crate) fn collector(yaml: &str) -> Collector {
    Collector::compile(&spec(yaml)).unwrap_or_else(|errors| panic!("{yaml}: {errors:?}"))
}

pub(crate) fn table(yaml: &str) -> NamedTable {
    NamedTable::new(collector(yaml))
}

/// A table that numbers its rows.
pub(crate) struct NamedTable {
    table: Table,
    numbers: BTreeMap<Arc<str>, usize>,
    /// The numbers of removed rows.
    free: Vec<usize>,
}

impl NamedTable {
    pub(crate) fn new(collector: Collector) -> Self {
        Self { table: Table::new(Arc::new(collector)), numbers: BTreeMap::new(), free: Vec::new() }
    }

    pub(crate) fn upsert(&mut self, cluster: &Arc<str>, row: &Row<'_>) -> bool {
        let Self { table, numbers, free } = self;
        let next = numbers.len();
        let number = numbers.entry(Arc::clone(cluster)).or_insert_with(|| free.pop().unwrap_or(next));
        table.upsert(*number, cluster, row)
    }

    pub(crate) fn remove(&mut self, cluster: &str) -> bool {
        let Some((cluster, number)) = self.numbers.remove_entry(cluster) else { return false };
        self.free.push(number);
        self.table.remove(number, &cluster)
    }
}

impl Deref for NamedTable {
    type Target = Table;

    fn deref(&self) -> &Table {
        &self.table
    }
}

/// The four variables of a row.
pub(crate) struct Variables([Value<'static>; 4]);

/// As JSON.
impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for variable in &self.0 {
            write!(f, "{} ", serde_json::to_string(variable).map_err(|_| fmt::Error)?)?;
        }
        Ok(())
    }
}

impl Variables {
    /// Of an object with the fields `inventory`, `obj`, `returned` and `propagation`.
    pub(crate) fn new(json: &Json) -> Self {
        Self(["inventory", "obj", "returned", "propagation"].map(|name| value(&json[name])))
    }

    pub(crate) fn row(&self) -> Row<'_> {
        let [inventory, obj, returned, propagation] = &self.0;
        Row { inventory, obj, returned, propagation }
    }
}

/// As the decoder reads it.
pub(crate) fn value(json: &Json) -> Value<'static> {
    match json {
        Json::Null => Value::Null,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Float(number.as_f64().expect("a double")),
        },
        Json::String(text) => Value::Text(text.clone().into()),
        Json::Array(entries) => Value::List(entries.iter().map(value).collect()),
        Json::Object(fields) => {
            Value::Map(fields.iter().map(|(key, field)| (key.clone().into(), value(field))).collect())
        }
    }
}

/// The row of a cluster that reports a status.
pub(crate) fn reports(cluster: &str, status: &Json) -> Variables {
    Variables::new(&json!({
        "inventory": {"name": cluster},
        "obj": {"spec": {"replicas": 3}},
        "returned": {"status": status},
        "propagation": {"found": true, "stale": false},
    }))
}

/// Adds rows of clusters that report a status.
pub(crate) fn fill(table: &mut NamedTable, statuses: &[(&str, Json)]) {
    for (cluster, status) in statuses {
        table.upsert(&Arc::from(*cluster), &reports(cluster, status).row());
    }
}

/// The rows of a result, one on each line.
pub(crate) fn rows(result: &CombinedResult) -> String {
    let rows = result.rows.iter().map(|row| row.columns.iter().map(shown).collect::<Vec<_>>().join(" | "));
    rows.collect::<Vec<_>>().join("\n")
}

/// A value as JSON. A number has all its digits.
pub(crate) fn shown(value: &TypedValue) -> String {
    let TypedValue { type_: _, string, number, bool, object, array } = value;
    let json = string.clone().map(Json::String).or_else(|| bool.map(Json::Bool));
    let json = json.or_else(|| object.clone()).or_else(|| array.clone());
    number.clone().unwrap_or_else(|| json.unwrap_or_default().to_string())
}
