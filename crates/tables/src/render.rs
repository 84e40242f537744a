//! Results as the API has them.

use bellwether_api::{AggregationError, CombinedResult, ResultRow, TypedValue, ValueType};
use serde_json::{Map, Value as Json};

use crate::{cell::Cell, table::Table};

pub(crate) fn result(table: &Table, name: &str) -> CombinedResult {
    page(table, name, 0, table.collector.limit)
}

/// At most `limit` rows after the first `offset`.
pub(crate) fn page(table: &Table, name: &str, offset: usize, limit: usize) -> CombinedResult {
    let collector = &table.collector;
    let names = &collector.columns;
    let mut too_large = vec![false; names.len()];
    let rows = table.ordered_rows().skip(offset).take(limit).map(|cells| {
        let columns = cells.into_iter().zip(&mut too_large);
        let columns = columns.map(|(cell, too_large)| {
            *too_large |= cell.is_err();
            typed(&cell.unwrap_or_default())
        });
        ResultRow { columns: columns.collect() }
    });
    let rows: Vec<_> = rows.collect();
    let mut aggregation_errors = table.aggregation_errors.aggregation_errors(names);
    let too_large = names.iter().zip(too_large).filter(|(_, too_large)| *too_large);
    aggregation_errors.extend(too_large.map(|(name, _)| AggregationError {
        column: name.to_string(),
        error: "the result is too large for a floating-point number".to_owned(),
    }));
    let total = table.total_rows();
    CombinedResult {
        name: name.to_owned(),
        column_names: collector.column_names().map(str::to_owned).collect(),
        truncated: rows.len() < total,
        rows,
        total_rows: i64::try_from(total).unwrap_or(i64::MAX),
        row_errors: table.row_errors.row_errors(names),
        aggregation_errors,
    }
}

/// Cuts rows off at the end until the JSON of the result has at most `max_bytes`.
pub(crate) fn cut(mut result: CombinedResult, max_bytes: usize) -> CombinedResult {
    let rows = std::mem::take(&mut result.rows);
    // `truncated` may still become one byte shorter.
    let mut room = max_bytes.saturating_sub(size(&result));
    for row in rows {
        // With its comma.
        match room.checked_sub(size(&row) + 1) {
            Some(left) => room = left,
            None => {
                result.truncated = true;
                break;
            }
        }
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
