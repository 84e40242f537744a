//! A second implementation of collectors: it evaluates all rows from scratch, knows no limits of time and
//! memory, and has only the expressions in common with the first.

mod number;

use std::{cmp::Ordering, collections::BTreeMap, sync::LazyLock};

use bellwether_api::{
    AggregationError, Aggregator, CombinedResult, Expression, ResultRow, RowError, StatusCollectorSpec,
    TypedValue, ValueType,
};
use bellwether_expr::{Fuel, Program, Scope, Stop, Val};
use bellwether_model::Value;
use jiff::Timestamp;
use regex::Regex;
use serde_json::Value as Json;

use self::number::{NotANumber, Number};
use crate::sample::Variables;

/// In the order of types.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Naive {
    Null,
    Bool(bool),
    Number(Number),
    Time(Timestamp, String),
    Text(String),
    List(Vec<Naive>),
    Map(BTreeMap<String, Naive>),
}

/// A value and how it is printed.
#[derive(Clone)]
struct Shown {
    value: Naive,
    typed: TypedValue,
}

pub(crate) struct NaiveCollector {
    spec: StatusCollectorSpec,
    filter: Option<Program>,
    /// The expressions of the columns, in their order; `None` to count rows.
    columns: Vec<(String, Option<Program>)>,
}

/// A row that the filter lets through: the cluster, and the values of the expressions.
struct Passed<'a> {
    cluster: &'a str,
    values: Vec<Naive>,
}

impl NaiveCollector {
    pub(crate) fn new(spec: &StatusCollectorSpec) -> Self {
        let program = |source: &Expression| match &source.0 {
            Json::String(text) => Program::cel(text, &Scope::row()).expect(text),
            tree => Program::tree(tree, &Scope::row()).expect("a valid tree"),
        };
        let named = spec.group_by.iter().chain(&spec.select);
        let named = named.map(|column| (column.name.clone(), column.def.as_ref().map(program)));
        let combined = spec.combined_fields.iter();
        let combined = combined.map(|field| (field.name.clone(), field.subject.as_ref().map(program)));
        Self {
            spec: spec.clone(),
            filter: spec.filter.as_ref().map(program),
            columns: named.chain(combined).collect(),
        }
    }

    pub(crate) fn result(&self, name: &str, rows: &BTreeMap<String, Variables>) -> CombinedResult {
        let mut errors = Vec::new();
        let mut passed = Vec::new();
        let mut failed_rows = 0;
        for (cluster, variables) in rows {
            match self.evaluate(cluster, variables) {
                Ok(Some(values)) => passed.push(Passed { cluster, values }),
                Ok(None) => {}
                Err(failed) => {
                    failed_rows += 1;
                    errors.extend(failed);
                }
            }
        }
        let mut aggregation_errors = Vec::new();
        let mut table: Vec<(Vec<Shown>, &str)> = if self.spec.select.is_empty() {
            aggregation_errors.extend(self.not_numbers(&passed));
            self.groups(&passed).into_iter().map(|row| (row, "")).collect()
        } else {
            passed.iter().map(|row| (row.values.iter().map(plain).collect(), row.cluster)).collect()
        };
        table.sort_by(|left, right| self.compare(left, right));
        let total = table.len();
        table.truncate(usize::try_from(self.spec.limit).unwrap());
        for (column, (name, _)) in self.columns.iter().enumerate() {
            if table.iter().any(|(row, _)| is_overflow(&row[column])) {
                let error = "the result is too large for a floating-point number".to_owned();
                aggregation_errors.push(AggregationError { column: name.clone(), error });
            }
        }
        let rows = table.into_iter().map(|(row, _)| ResultRow {
            columns: row.into_iter().map(|shown| TypedValue { ..shown.typed }).map(without_mark).collect(),
        });
        let rows: Vec<_> = rows.collect();
        CombinedResult {
            name: name.to_owned(),
            column_names: self.columns.iter().map(|(name, _)| name.clone()).collect(),
            truncated: rows.len() < total,
            total_rows: i64::try_from(total).unwrap(),
            rows,
            failed_rows,
            row_errors: self.some_of(&errors),
            aggregation_errors,
        }
    }

    /// The values of all columns; `None` if the filter leaves the row out.
    fn evaluate(&self, cluster: &str, variables: &Variables) -> Result<Option<Vec<Naive>>, Vec<RowError>> {
        let row = variables.row();
        let error = |column: &str, error: String| RowError {
            cluster: cluster.to_owned(),
            column: column.to_owned(),
            error,
        };
        if let Some(filter) = &self.filter {
            match filter.evaluate(&row, &mut Fuel::default()) {
                Ok(Val::Bool(true)) => {}
                Ok(Val::Bool(false)) | Err(Stop::Missing(_)) => return Ok(None),
                Ok(other) => {
                    let text = format!("the filter must be a bool, not {}", other.type_of().one());
                    return Err(vec![error("", text)]);
                }
                Err(stop) => return Err(vec![error("", filter.describe(&stop))]),
            }
        }
        let mut values = Vec::new();
        let mut errors = Vec::new();
        for (name, program) in &self.columns {
            let Some(program) = program else {
                values.push(Naive::Null);
                continue;
            };
            match program.evaluate(&row, &mut Fuel::default()) {
                Ok(value) => match naive(&value) {
                    Some(value) => values.push(value),
                    None => errors.push(error(name, "the number is not finite".to_owned())),
                },
                Err(Stop::Missing(_)) => values.push(Naive::Null),
                Err(stop) => errors.push(error(name, program.describe(&stop))),
            }
        }
        if errors.is_empty() { Ok(Some(values)) } else { Err(errors) }
    }

    /// One row for each distinct key.
    fn groups(&self, passed: &[Passed<'_>]) -> Vec<Vec<Shown>> {
        let keys = self.spec.group_by.len();
        let mut groups: BTreeMap<&[Naive], Vec<&[Naive]>> = BTreeMap::new();
        if keys == 0 {
            groups.insert(&[], Vec::new());
        }
        for row in passed {
            groups.entry(&row.values[..keys]).or_default().push(&row.values[keys..]);
        }
        let groups = groups.into_iter().map(|(key, rows)| {
            let fields = self.spec.combined_fields.iter().enumerate().map(|(index, field)| {
                let values: Vec<_> = rows.iter().map(|row| row[index].clone()).collect();
                match field.subject {
                    None => plain(&Naive::Number(Number::whole(rows.len()))),
                    Some(_) => aggregate(field.type_, values),
                }
            });
            key.iter().map(plain).chain(fields).collect()
        });
        groups.collect()
    }

    /// Values of SUM and AVG that are not numbers.
    fn not_numbers(&self, passed: &[Passed<'_>]) -> Vec<AggregationError> {
        let fields = self.spec.combined_fields.iter().enumerate();
        let adding = fields.filter(|(_, field)| matches!(field.type_, Aggregator::Sum | Aggregator::Avg));
        let errors = adding.filter_map(|(index, field)| {
            let column = self.spec.group_by.len() + index;
            let errors: Vec<_> = passed
                .iter()
                .filter_map(|row| Some((row.cluster, why_not_a_number(&row.values[column])?)))
                .collect();
            let (cluster, text) = errors.first()?;
            let more = match errors.len() - 1 {
                0 => String::new(),
                1 => " (and 1 other value)".to_owned(),
                more => format!(" (and {more} other values)"),
            };
            let error = format!("cluster {cluster}: {text}{more}");
            Some(AggregationError { column: field.name.clone(), error })
        });
        errors.collect()
    }

    fn compare(&self, left: &(Vec<Shown>, &str), right: &(Vec<Shown>, &str)) -> Ordering {
        for by in &self.spec.order_by {
            let column = self.columns.iter().position(|(name, _)| *name == by.column).unwrap();
            let order = left.0[column].value.cmp(&right.0[column].value);
            let order = if by.descending { order.reverse() } else { order };
            if order.is_ne() {
                return order;
            }
        }
        let keys = self.spec.group_by.len();
        let key = |row: &(Vec<Shown>, &str)| -> Vec<Naive> {
            row.0[..keys].iter().map(|shown| shown.value.clone()).collect()
        };
        key(left).cmp(&key(right)).then_with(|| left.1.cmp(right.1))
    }

    /// Ten errors, or one for each column with errors if those are more.
    fn some_of(&self, errors: &[RowError]) -> Vec<RowError> {
        let names = [""].into_iter().chain(self.columns.iter().map(|(name, _)| &**name));
        let mut by_column: Vec<Vec<RowError>> =
            names.map(|name| errors.iter().filter(|error| error.column == name).cloned().collect()).collect();
        by_column.retain(|errors| !errors.is_empty());
        let mut shown: Vec<usize> = by_column.iter().map(|_| 1).collect();
        for (column, errors) in by_column.iter().enumerate() {
            while shown[column] < errors.len() && shown.iter().sum::<usize>() < 10 {
                shown[column] += 1;
            }
        }
        by_column.into_iter().zip(shown).flat_map(|(errors, shown)| errors.into_iter().take(shown)).collect()
    }
}

/// A copy; `None` for numbers that are not finite.
fn naive(value: &Val<'_>) -> Option<Naive> {
    Some(match value {
        Val::Uint(number) => Naive::Number(Number::whole(*number)),
        other => of_json(&other.to_value().expect("a value of JSON"))?,
    })
}

fn of_json(value: &Value<'_>) -> Option<Naive> {
    Some(match value {
        Value::Null => Naive::Null,
        Value::Bool(truth) => Naive::Bool(*truth),
        Value::Int(number) => Naive::Number(Number::whole(*number)),
        Value::Float(number) => Naive::Number(Number::double(*number)?),
        Value::Text(text) => Naive::Text(text.to_string()),
        Value::List(list) => Naive::List(list.iter().map(of_json).collect::<Option<_>>()?),
        Value::Map(map) => {
            let fields = map.iter().map(|(key, value)| Some((key.to_owned(), of_json(value)?)));
            Naive::Map(fields.collect::<Option<_>>()?)
        }
    })
}

/// A string as the aggregate functions see it.
fn measured(value: Naive) -> Naive {
    static MOMENT: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d([.]\d+)?([Zz]|[+-]\d\d:\d\d)$").unwrap()
    });
    let Naive::Text(text) = value else { return value };
    match Number::text(&text) {
        Ok(number) => Naive::Number(number),
        Err(_) if MOMENT.is_match(&text) => match text.parse() {
            Ok(at) => Naive::Time(at, text),
            Err(_) => Naive::Text(text),
        },
        Err(_) => Naive::Text(text),
    }
}

fn why_not_a_number(value: &Naive) -> Option<String> {
    Some(match value {
        Naive::Null | Naive::Number(_) => return None,
        Naive::Bool(_) => "a bool is not a number".to_owned(),
        Naive::List(_) => "a list is not a number".to_owned(),
        Naive::Map(_) => "a map is not a number".to_owned(),
        Naive::Time(_, text) | Naive::Text(text) => match Number::text(text) {
            Ok(_) => return None,
            Err(NotANumber::TooLarge) => format!("`{text}` is too large"),
            Err(NotANumber::Other) => format!("`{text}` is not a number"),
        },
    })
}

fn aggregate(function: Aggregator, mut values: Vec<Naive>) -> Shown {
    values.retain(|value| *value != Naive::Null);
    let count = values.len();
    let values = values.into_iter().map(measured);
    let numbers = |values: Vec<Naive>| -> Vec<Number> {
        let numbers = values.into_iter().filter_map(|value| match value {
            Naive::Number(number) => Some(number),
            _ => None,
        });
        numbers.collect()
    };
    match function {
        Aggregator::Count => plain(&Naive::Number(Number::whole(count))),
        Aggregator::Min => plain(&values.min().unwrap_or(Naive::Null)),
        Aggregator::Max => plain(&values.max().unwrap_or(Naive::Null)),
        Aggregator::Sum | Aggregator::Avg => {
            let numbers = numbers(values.collect());
            let exact = numbers.iter().all(Number::is_exact);
            let result = match function {
                _ if numbers.is_empty() => return plain(&Naive::Null),
                Aggregator::Sum => Number::sum(&numbers, exact),
                _ => Number::mean(&numbers, exact),
            };
            match result {
                Some((number, text)) => {
                    Shown { value: Naive::Number(number), typed: typed(ValueType::Number, Some(text)) }
                }
                None => {
                    Shown { value: Naive::Null, typed: typed(ValueType::Null, Some(OVERFLOW.to_owned())) }
                }
            }
        }
    }
}

/// Marks the value of a sum beyond the range of doubles until the errors are collected.
const OVERFLOW: &str = "overflow";

fn is_overflow(shown: &Shown) -> bool {
    shown.typed.type_ == ValueType::Null && shown.typed.number.is_some()
}

fn without_mark(mut typed: TypedValue) -> TypedValue {
    typed.number = typed.number.filter(|number| number != OVERFLOW);
    typed
}

fn typed(type_: ValueType, number: Option<String>) -> TypedValue {
    TypedValue { type_, string: None, number, bool: None, object: None, array: None }
}

fn plain(value: &Naive) -> Shown {
    let typed = match value {
        Naive::Null => typed(ValueType::Null, None),
        Naive::Bool(truth) => TypedValue { bool: Some(*truth), ..typed(ValueType::Bool, None) },
        Naive::Number(number) => typed(ValueType::Number, Some(number.shown())),
        Naive::Text(text) | Naive::Time(_, text) => {
            TypedValue { string: Some(text.clone()), ..typed(ValueType::String, None) }
        }
        Naive::List(_) => TypedValue { array: Some(json(value)), ..typed(ValueType::Array, None) },
        Naive::Map(_) => TypedValue { object: Some(json(value)), ..typed(ValueType::Object, None) },
    };
    Shown { value: value.clone(), typed }
}

fn json(value: &Naive) -> Json {
    match value {
        Naive::Null => Json::Null,
        Naive::Bool(truth) => Json::Bool(*truth),
        Naive::Number(number) => {
            let text = number.shown();
            let whole = text.parse::<i64>().map(Json::from).or_else(|_| text.parse::<u64>().map(Json::from));
            whole.unwrap_or_else(|_| Json::from(text.parse::<f64>().unwrap()))
        }
        Naive::Text(text) | Naive::Time(_, text) => Json::String(text.clone()),
        Naive::List(entries) => Json::Array(entries.iter().map(json).collect()),
        Naive::Map(fields) => {
            Json::Object(fields.iter().map(|(key, value)| (key.clone(), json(value))).collect())
        }
    }
}
