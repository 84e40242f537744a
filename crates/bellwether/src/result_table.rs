//! Results of StatusCollectors as tables, in `query` and in the demo.

use bellwether_api::{TypedValue, ValueType};
use bellwether_terminal::{Grid, GridCell, Screen, printable};
use serde_json::Value as Json;

/// As kubectl prints a missing value.
const NONE: &str = "<none>";

/// The rows have a value for each column. `counts` is the column whose numbers have bars, where the screen has room.
pub(crate) fn print<'a, R: Iterator<Item = &'a TypedValue>>(
    columns: impl Iterator<Item = &'a str>,
    rows: impl Iterator<Item = R>,
    counts: Option<usize>,
    screen: Screen,
) -> String {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return "No rows.\n".to_owned();
    }
    let mut grid = Grid::new(columns.map(header)).with_bars(counts);
    let cell = |value: &TypedValue| {
        let is_number = value.type_ == ValueType::Number;
        GridCell { text: text(value).unwrap_or_else(|| NONE.to_owned()), is_number }
    };
    for row in rows {
        grid.push(row.map(cell).collect());
    }
    grid.print(screen)
}

/// As kubectl writes headers: `AVAILABLE-REPLICAS` for `availableReplicas`.
fn header(name: &str) -> String {
    let mut header = String::new();
    let mut was_lower = false;
    for char in printable(name).chars() {
        if char.is_uppercase() && was_lower {
            header.push('-');
        }
        was_lower = char.is_lowercase();
        header.extend(char.to_uppercase());
    }
    header
}

/// None for null.
pub(crate) fn text(value: &TypedValue) -> Option<String> {
    match value.type_ {
        ValueType::Null => None,
        ValueType::Number => value.number.clone(),
        ValueType::String => value.string.clone(),
        ValueType::Bool | ValueType::Object | ValueType::Array => Some(json(value).to_string()),
    }
}

/// A number that JSON readers would round is a string.
pub(crate) fn json(value: &TypedValue) -> Json {
    let json = match value.type_ {
        ValueType::Null => None,
        ValueType::Number => value.number.as_deref().map(number),
        ValueType::String => value.string.clone().map(Json::String),
        ValueType::Bool => value.bool.map(Json::Bool),
        ValueType::Object => value.object.clone(),
        ValueType::Array => value.array.clone(),
    };
    json.unwrap_or_default()
}

/// The value that [`json`] makes this of.
pub(crate) fn typed(json: &Json) -> TypedValue {
    let of = |type_: ValueType| TypedValue {
        type_,
        string: None,
        number: None,
        bool: None,
        object: None,
        array: None,
    };
    match json {
        Json::Null => of(ValueType::Null),
        Json::Bool(bool) => TypedValue { bool: Some(*bool), ..of(ValueType::Bool) },
        Json::Number(number) => TypedValue { number: Some(number.to_string()), ..of(ValueType::Number) },
        Json::String(string) => TypedValue { string: Some(string.clone()), ..of(ValueType::String) },
        Json::Array(_) => TypedValue { array: Some(json.clone()), ..of(ValueType::Array) },
        Json::Object(_) => TypedValue { object: Some(json.clone()), ..of(ValueType::Object) },
    }
}

fn number(text: &str) -> Json {
    if let Ok(number) = text.parse::<i64>() {
        return number.into();
    }
    if let Ok(number) = text.parse::<u64>() {
        return number.into();
    }
    let is_integer = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let float = text.parse::<f64>().ok().filter(|_| !is_integer).and_then(serde_json::Number::from_f64);
    float.map_or_else(|| Json::String(text.to_owned()), Json::Number)
}
