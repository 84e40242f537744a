//! Results as the API has them.

use bellwether_api::{AggregationError, CombinedResult, ResultRow, TypedValue, ValueType};
use serde_json::{Map, Value as Json};

use crate::{
    cell::Cell,
    collector::Collector,
    table::{Body, Contents},
    tally::Overflow,
};

pub(crate) fn result(collector: &Collector, contents: &Contents, name: &str) -> CombinedResult {
    page(collector, contents, name, 0, collector.limit)
}

/// At most `limit` rows after the first `offset`.
pub(crate) fn page(
    collector: &Collector,
    contents: &Contents,
    name: &str,
    offset: usize,
    limit: usize,
) -> CombinedResult {
    let names = &collector.columns;
    let mut aggregation_errors = Vec::new();
    let (total, rows) = match &contents.body {
        Body::Selection(selection) => {
            let rows = selection.rows().skip(offset).take(limit);
            (selection.len(), rows.map(|cells| row(cells.iter())).collect())
        }
        Body::Groups(groups) => {
            aggregation_errors = groups.errors.aggregation_errors(names);
            let rows: Vec<_> = groups.rows().skip(offset).take(limit).collect();
            let too_large = names
                .iter()
                .enumerate()
                .filter(|(column, _)| rows.iter().any(|row| row[*column] == Err(Overflow)));
            aggregation_errors.extend(too_large.map(|(_, name)| AggregationError {
                column: name.to_string(),
                error: "the result is too large for a floating-point number".to_owned(),
            }));
            let cells = |cells: &[Result<Cell, Overflow>]| {
                row(cells.iter().map(|cell| cell.as_ref().unwrap_or(&Cell::Null)))
            };
            (groups.len(), rows.iter().map(|row| cells(row)).collect::<Vec<_>>())
        }
    };
    CombinedResult {
        name: name.to_owned(),
        column_names: collector.column_names().map(str::to_owned).collect(),
        truncated: rows.len() < total,
        rows,
        total_rows: i64::try_from(total).unwrap_or(i64::MAX),
        row_errors: contents.row_errors.row_errors(names),
        aggregation_errors,
    }
}

fn row<'a>(cells: impl Iterator<Item = &'a Cell>) -> ResultRow {
    ResultRow { columns: cells.map(typed).collect() }
}

/// Cuts rows off at the end until the JSON of the result has at most `max_bytes`.
pub(crate) fn cut(mut result: CombinedResult, max_bytes: usize) -> CombinedResult {
    if size(&result) <= max_bytes {
        return result;
    }
    result.truncated = true;
    let rows = std::mem::take(&mut result.rows);
    // The first row has no comma.
    let mut room = max_bytes.saturating_add(1).saturating_sub(size(&result));
    for row in rows {
        let Some(left) = room.checked_sub(size(&row) + 1) else { break };
        room = left;
        result.rows.push(row);
    }
    result
}

/// The length of the JSON.
fn size(value: &impl serde::Serialize) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |json| json.len())
}

fn typed(cell: &Cell) -> TypedValue {
    let mut value = TypedValue {
        type_: ValueType::Null,
        string: None,
        number: None,
        bool: None,
        object: None,
        array: None,
    };
    match cell {
        Cell::Null => {}
        Cell::Bool(truth) => {
            value.type_ = ValueType::Bool;
            value.bool = Some(*truth);
        }
        Cell::Number(number) => {
            value.type_ = ValueType::Number;
            value.number = Some(number.to_string());
        }
        Cell::Text(text) => {
            value.type_ = ValueType::String;
            value.string = Some(text.to_string());
        }
        Cell::Moment(moment) => {
            value.type_ = ValueType::String;
            value.string = Some(moment.text.to_string());
        }
        Cell::List(_) => {
            value.type_ = ValueType::Array;
            value.array = Some(json(cell));
        }
        Cell::Map(_) => {
            value.type_ = ValueType::Object;
            value.object = Some(json(cell));
        }
    }
    value
}

fn json(cell: &Cell) -> Json {
    match cell {
        Cell::Null => Json::Null,
        Cell::Bool(truth) => Json::Bool(*truth),
        Cell::Number(number) => number.to_json().map_or(Json::Null, Json::Number),
        Cell::Moment(moment) => Json::String(moment.text.to_string()),
        Cell::Text(text) => Json::String(text.to_string()),
        Cell::List(entries) => Json::Array(entries.iter().map(json).collect()),
        Cell::Map(fields) => {
            let fields = fields.iter().map(|(key, value)| (key.to_string(), json(value)));
            Json::Object(fields.collect::<Map<_, _>>())
        }
    }
}
