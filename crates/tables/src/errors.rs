//! Rows and values that a result leaves out.

use std::{collections::BTreeMap, sync::Arc};

use bellwether_api::{AggregationError, RowError};
use bellwether_model::text;

use crate::{
    cell::Cell,
    evaluate::Failure,
    number::{NotANumber, Number},
};

/// The maximum number of row errors in a result, unless more columns have errors.
const MOST_ROW_ERRORS: usize = 10;

/// The maximum length of a value in an error, in bytes.
const LONGEST_VALUE: usize = 64;

/// At most one error for each column and cluster. Which of them are shown does not depend on the order in
/// which they came.
#[derive(Debug)]
pub(crate) struct Errors {
    /// The first is for the filter, the others for the columns.
    by_column: Box<[BTreeMap<Arc<str>, Box<str>>]>,
    /// The number of rows with failures.
    pub(crate) failed_rows: usize,
}

impl Errors {
    pub(crate) fn new(columns: usize) -> Self {
        Self { by_column: (0..=columns).map(|_| BTreeMap::new()).collect(), failed_rows: 0 }
    }

    /// Adds a row that is left out because of its failures.
    pub(crate) fn add_row(&mut self, cluster: &Arc<str>, failures: &[Failure]) {
        self.failed_rows += 1;
        for failure in failures {
            self.insert(failure.column, cluster, failure.text.clone());
        }
    }

    pub(crate) fn retract_row(&mut self, cluster: &str, failures: &[Failure]) {
        self.failed_rows -= 1;
        for failure in failures {
            self.remove(failure.column, cluster);
        }
    }

    /// `column` is `None` for the filter.
    pub(crate) fn insert(&mut self, column: Option<usize>, cluster: &Arc<str>, text: Box<str>) {
        self.by_column[column.map_or(0, |column| column + 1)].insert(Arc::clone(cluster), text);
    }

    pub(crate) fn remove(&mut self, column: Option<usize>, cluster: &str) {
        self.by_column[column.map_or(0, |column| column + 1)].remove(cluster);
    }

    /// For each column with errors at least one, in the order of columns and clusters.
    pub(crate) fn row_errors(&self, names: &[Box<str>]) -> Vec<RowError> {
        let columns = self.by_column.iter().filter(|errors| !errors.is_empty()).count();
        let mut room = MOST_ROW_ERRORS.saturating_sub(columns);
        let mut shown = Vec::new();
        for (column, errors) in self.by_column.iter().enumerate() {
            let more = errors.len().saturating_sub(1).min(room);
            room -= more;
            let name = column.checked_sub(1).map(|column| names[column].to_string()).unwrap_or_default();
            shown.extend(errors.iter().take(1 + more).map(|(cluster, text)| RowError {
                cluster: cluster.to_string(),
                column: name.clone(),
                error: text.to_string(),
            }));
        }
        shown
    }

    /// For each column with errors one, in the order of columns.
    pub(crate) fn aggregation_errors(&self, names: &[Box<str>]) -> Vec<AggregationError> {
        let errors = names.iter().zip(self.by_column.iter().skip(1));
        let errors = errors.filter_map(|(name, errors)| {
            let (cluster, text) = errors.first_key_value()?;
            let more = match errors.len() - 1 {
                0 => String::new(),
                1 => " (and 1 other value)".to_owned(),
                more => format!(" (and {more} other values)"),
            };
            let error = format!("cluster {cluster}: {text}{more}");
            Some(AggregationError { column: name.to_string(), error })
        });
        errors.collect()
    }
}

/// Why a value of an aggregate function that adds is left out; `None` for numbers and null.
pub(crate) fn not_a_number(value: &Cell) -> Option<Box<str>> {
    let text = match value {
        Cell::Null | Cell::Number(_) => return None,
        Cell::Text(text) => text,
        Cell::Moment(moment) => &moment.text,
        Cell::Bool(_) | Cell::List(_) | Cell::Map(_) => {
            return Some(format!("{} is not a number", value.one()).into());
        }
    };
    let why = match Number::from_text(text) {
        Err(NotANumber::TooLarge) => "is too large",
        _ => "is not a number",
    };
    Some(format!("`{}` {why}", text::one_line(&**text, LONGEST_VALUE)).into())
}
