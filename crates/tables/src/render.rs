//! Results as the API has them.

use bellwether_api::{AggregationError, CombinedResult, ResultRow, TypedValue, ValueType};
use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::{
    cell::Cell,
    collector::Collector,
    table::{Body, Contents},
    tally::Overflow,
};

/// Which rows of a result are wanted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) offset: usize,
    pub(crate) limit: usize,
    /// Of the JSON of the result; `None` for any size.
    pub(crate) max_bytes: Option<usize>,
}

/// Where not everything fits, the last rows are left out first, then errors, then the names of the columns.
pub(crate) fn page(collector: &Collector, contents: &Contents, name: &str, page: Page) -> CombinedResult {
    let Page { offset, limit, max_bytes } = page;
    let names = &collector.columns;
    let total = match &contents.body {
        Body::Selection(selection) => selection.len(),
        Body::Groups(groups) => groups.len(),
    };
    let mut result = CombinedResult {
        name: name.to_owned(),
        column_names: collector.column_names().map(str::to_owned).collect(),
        truncated: offset > 0 || limit < total,
        total_rows: i64::try_from(total).unwrap_or(i64::MAX),
        failed_rows: i64::try_from(contents.row_errors.failed_rows).unwrap_or(i64::MAX),
        ..CombinedResult::default()
    };
    let mut room = Room(max_bytes);
    if !room.reserve(&result) {
        result.column_names.clear();
        room = Room(Some(0));
    }
    let mut fill = |aggregation_errors, rows: &mut dyn Iterator<Item = ResultRow>| {
        result.aggregation_errors = room.fitting(aggregation_errors, r#","aggregationErrors":[]"#.len());
        result.row_errors = room.fitting(contents.row_errors.row_errors(names), r#","rowErrors":[]"#.len());
        result.rows = room.fitting(rows, 0);
    };
    match &contents.body {
        Body::Selection(selection) => {
            fill(Vec::new(), &mut selection.rows().skip(offset).take(limit).map(|cells| row(cells.iter())));
        }
        Body::Groups(groups) => {
            let rows: Vec<_> = groups.rows().skip(offset).take(limit).collect();
            let mut errors = groups.errors.aggregation_errors(names);
            let too_large = names
                .iter()
                .enumerate()
                .filter(|(column, _)| rows.iter().any(|row| row[*column] == Err(Overflow)));
            errors.extend(too_large.map(|(_, name)| AggregationError {
                column: name.to_string(),
                error: "the result is too large for a floating-point number".to_owned(),
            }));
            let cell = |cell| Result::as_ref(cell).unwrap_or(&Cell::Null);
            fill(errors, &mut rows.iter().map(|cells| row(cells.iter().map(cell))));
        }
    }
    result.truncated = result.rows.len() < total;
    result
}

/// The bytes of JSON that are left; `None` for any number.
struct Room(Option<usize>);

impl Room {
    /// Takes the bytes of a value. Returns whether there are so many.
    fn reserve(&mut self, value: &impl Serialize) -> bool {
        let Some(left) = self.0 else { return true };
        let rest = left.checked_sub(size(value));
        self.0 = Some(rest.unwrap_or(left));
        rest.is_some()
    }

    /// The first entries of a list that fit. Without entries it takes `empty` bytes, or none if that is 0.
    fn fitting<T: Serialize>(&mut self, entries: impl IntoIterator<Item = T>, empty: usize) -> Vec<T> {
        let Some(left) = self.0 else { return entries.into_iter().collect() };
        // The first entry has no comma.
        let Some(mut left) = (left + 1).checked_sub(empty) else { return Vec::new() };
        let mut fitting = Vec::new();
        for entry in entries {
            let Some(rest) = left.checked_sub(size(&entry) + 1) else { break };
            left = rest;
            fitting.push(entry);
        }
        if !fitting.is_empty() {
            self.0 = Some(left);
        }
        fitting
    }
}

/// The length of the JSON.
fn size(value: &impl Serialize) -> usize {
    serde_json::to_vec(value).map_or(usize::MAX, |json| json.len())
}

fn row<'a>(cells: impl Iterator<Item = &'a Cell>) -> ResultRow {
    ResultRow { columns: cells.map(typed).collect() }
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
