//! Results as text, JSON, YAML and CSV.

use std::{collections::BTreeSet, fmt::Write as _};

use anyhow::Result;
use bellwether_api::{AggregationError, ClusterCounts, CombinedResult, ResultRow, RowError, TypedValue};
use bellwether_engine::{GroupKind, NamespacedName};
use bellwether_inspect::fleet::{Evaluated, ObjectKey};
use bellwether_terminal::{Screen, printable};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Map, Value as Json};

use crate::{
    cli::QueryFormat,
    output::{as_json, as_yaml},
    result_table::{self, json, text, typed},
};

/// The result of one collector over one set of rows.
pub(crate) struct Answer {
    object: Option<ObjectKey>,
    clusters: ClusterCounts,
    result: CombinedResult,
    /// The indexes of the columns to show.
    shown: Vec<usize>,
    offset: u64,
    /// The shown column with the counts of groups.
    counts: Option<usize>,
}

impl Answer {
    pub(crate) fn new(
        evaluated: &Evaluated,
        result: CombinedResult,
        columns: Option<&[String]>,
        offset: u64,
    ) -> Self {
        let shown = match columns {
            None => (0..result.column_names.len()).collect(),
            Some(columns) => columns
                .iter()
                .filter_map(|column| result.column_names.iter().position(|name| name == column))
                .collect(),
        };
        let (object, clusters) = (evaluated.object.clone(), evaluated.clusters.clone());
        Self { object, clusters, result, shown, offset, counts: None }
    }

    /// Its table has bars for the counts in the column of this name.
    pub(super) fn with_counts(self, column: Option<&str>) -> Self {
        let counts = self.names().position(|name| Some(name) == column);
        Self { counts, ..self }
    }

    /// From the JSON that it is serialised to. `None` if it is something else.
    pub(super) fn from_json(json: &Json, offset: u64) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Fields {
            collector: String,
            object: Option<ObjectFields>,
            column_names: Vec<String>,
            rows: Vec<Map<String, Json>>,
            total_rows: i64,
            truncated: bool,
            #[serde(default)]
            failed_rows: i64,
            #[serde(default)]
            row_errors: Vec<RowError>,
            #[serde(default)]
            aggregation_errors: Vec<AggregationError>,
            clusters: ClusterCounts,
        }
        #[derive(Deserialize)]
        struct ObjectFields {
            group: String,
            kind: String,
            #[serde(default)]
            namespace: String,
            name: String,
        }
        let fields = Fields::deserialize(json).ok()?;
        let row = |row: Map<String, Json>| {
            let columns = fields.column_names.iter().map(|name| typed(row.get(name).unwrap_or(&Json::Null)));
            ResultRow { columns: columns.collect() }
        };
        let object = fields.object.map(|ObjectFields { group, kind, namespace, name }| ObjectKey {
            kind: GroupKind::new(&group, &kind),
            name: NamespacedName::new(&namespace, &name),
        });
        let result = CombinedResult {
            name: fields.collector,
            rows: fields.rows.into_iter().map(row).collect(),
            total_rows: fields.total_rows,
            truncated: fields.truncated,
            failed_rows: fields.failed_rows,
            row_errors: fields.row_errors,
            aggregation_errors: fields.aggregation_errors,
            column_names: fields.column_names.clone(),
        };
        let shown = (0..result.column_names.len()).collect();
        Some(Self { object, clusters: fields.clusters, result, shown, offset, counts: None })
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.shown.iter().map(|index| self.result.column_names[*index].as_str())
    }

    fn values<'r>(&'r self, row: &'r ResultRow) -> impl Iterator<Item = &'r TypedValue> {
        self.shown.iter().filter_map(|index| row.columns.get(*index))
    }

    /// `pod-phase of Deployment shop/web`
    fn title(&self) -> String {
        let name = &self.result.name;
        match &self.object {
            Some(ObjectKey { kind, name: object }) => format!("{name} of {} {object}", kind.kind),
            None => name.clone(),
        }
    }

    /// What could not be evaluated.
    pub(super) fn errors(&self, is_one_of_several: bool) -> Vec<String> {
        let title = if is_one_of_several { format!("{}: ", self.title()) } else { String::new() };
        let place = |column: &str| {
            if column.is_empty() { "filter".to_owned() } else { format!("column {column:?}") }
        };
        let of_rows = self.result.row_errors.iter().map(|RowError { cluster, column, error }| {
            format!("{title}cluster {cluster}, {}: {error}", place(column))
        });
        let more = match self.failed_rows_without_error() {
            0 => None,
            1 => Some(format!("{title}and 1 more row could not be evaluated")),
            more => Some(format!("{title}and {more} more rows could not be evaluated")),
        };
        let of_values = self.result.aggregation_errors.iter();
        let of_values =
            of_values.map(|AggregationError { column, error }| format!("{title}{}: {error}", place(column)));
        of_rows.chain(more).chain(of_values).collect()
    }

    fn failed_rows_without_error(&self) -> usize {
        let shown: BTreeSet<_> = self.result.row_errors.iter().map(|error| &error.cluster).collect();
        usize::try_from(self.result.failed_rows).unwrap_or(0).saturating_sub(shown.len())
    }

    /// That there are more rows.
    pub(super) fn more(&self, is_one_of_several: bool) -> Option<String> {
        let shown = u64::try_from(self.result.rows.len()).unwrap_or(u64::MAX);
        let total = u64::try_from(self.result.total_rows).unwrap_or(0);
        if shown == total {
            return None;
        }
        let title = if is_one_of_several { format!("{}: ", self.title()) } else { String::new() };
        let last = self.offset.saturating_add(shown);
        if shown == 0 {
            return Some(format!("{title}no rows after {}; there are {total}", self.offset));
        }
        let rows =
            if shown == 1 { format!("row {last}") } else { format!("rows {} to {last}", self.offset + 1) };
        let next = if last < total { format!(". For the next, use --offset {last}") } else { String::new() };
        Some(format!("{title}{rows} of {total}{next}"))
    }

    fn table(&self, screen: Screen) -> String {
        let rows = self.result.rows.iter().map(|row| self.values(row));
        result_table::print(self.names(), rows, self.counts, screen)
    }
}

/// For JSON and YAML: rows are maps.
impl Serialize for Answer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Object<'a> {
            group: &'a str,
            kind: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            namespace: &'a str,
            name: &'a str,
        }
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("collector", &self.result.name)?;
        if let Some(ObjectKey { kind, name }) = &self.object {
            let object =
                Object { group: &kind.group, kind: &kind.kind, namespace: &name.namespace, name: &name.name };
            fields.serialize_entry("object", &object)?;
        }
        fields.serialize_entry("columnNames", &self.names().collect::<Vec<_>>())?;
        let rows: Vec<_> = self.result.rows.iter().map(|row| RowAsMap { answer: self, row }).collect();
        fields.serialize_entry("rows", &rows)?;
        fields.serialize_entry("totalRows", &self.result.total_rows)?;
        fields.serialize_entry("truncated", &self.result.truncated)?;
        if self.result.failed_rows > 0 {
            fields.serialize_entry("failedRows", &self.result.failed_rows)?;
        }
        if !self.result.row_errors.is_empty() {
            fields.serialize_entry("rowErrors", &self.result.row_errors)?;
        }
        if !self.result.aggregation_errors.is_empty() {
            fields.serialize_entry("aggregationErrors", &self.result.aggregation_errors)?;
        }
        fields.serialize_entry("clusters", &self.clusters)?;
        fields.end()
    }
}

struct RowAsMap<'a> {
    answer: &'a Answer,
    row: &'a ResultRow,
}

impl Serialize for RowAsMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values = self.answer.names().zip(self.answer.values(self.row));
        serializer.collect_map(values.map(|(name, value)| (name, json(value))))
    }
}

pub(super) fn print(
    answers: &[Answer],
    format: QueryFormat,
    screen: Screen,
) -> Result<Result<String, String>> {
    Ok(Ok(match format {
        QueryFormat::Json => as_json(&answers)?,
        QueryFormat::Yaml => as_yaml(&answers)?,
        QueryFormat::Table => tables(answers, screen),
        QueryFormat::Wide => tables(answers, screen.without_end()),
        QueryFormat::Name => names(answers),
        QueryFormat::Csv => return Ok(csv(answers)),
    }))
}

fn tables(answers: &[Answer], screen: Screen) -> String {
    if let [one] = answers {
        return one.table(screen);
    }
    let table = |answer: &Answer| format!("{}:\n{}", printable(&answer.title()), answer.table(screen));
    if answers.is_empty() {
        "No objects found.\n".to_owned()
    } else {
        answers.iter().map(table).collect::<Vec<_>>().join("\n")
    }
}

fn names(answers: &[Answer]) -> String {
    let mut names = String::new();
    for answer in answers {
        for row in &answer.result.rows {
            let first = answer.values(row).next().and_then(text).unwrap_or_default();
            let _ = writeln!(names, "{}", printable(&first));
        }
    }
    names
}

/// One table. The results of several objects have their names as the first columns.
fn csv(answers: &[Answer]) -> Result<String, String> {
    let Some(first) = answers.first() else { return Ok(String::new()) };
    if let Some(other) = answers.iter().find(|answer| answer.result.name != first.result.name) {
        return Err(format!(
            "-o csv prints one table, but there are several collectors: {}, {}. Choose a file with one, or another format",
            first.result.name, other.result.name
        ));
    }
    let has_objects = answers.len() > 1;
    let mut text = String::new();
    let of_object = if has_objects { &["namespace", "object"][..] } else { &[] };
    add_record(&mut text, of_object.iter().copied().chain(first.names()).map(|name| Some(name.to_owned())));
    for answer in answers {
        let object = answer.object.as_ref().filter(|_| has_objects);
        for row in &answer.result.rows {
            let object = object.into_iter().flat_map(|object| {
                [Some(object.name.namespace.to_string()), Some(object.name.name.to_string())]
            });
            add_record(&mut text, object.chain(answer.values(row).map(result_table::text)));
        }
    }
    Ok(text)
}

/// A null is empty; an empty text is in quotes.
fn add_record(text: &mut String, fields: impl Iterator<Item = Option<String>>) {
    for (index, field) in fields.enumerate() {
        if index > 0 {
            text.push(',');
        }
        let Some(field) = field else { continue };
        if field.is_empty() || field.contains(['"', ',', '\n', '\r']) {
            let _ = write!(text, "\"{}\"", field.replace('"', "\"\""));
        } else {
            text.push_str(&field);
        }
    }
    text.push_str("\r\n");
}
