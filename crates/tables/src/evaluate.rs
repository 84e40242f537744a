//! Evaluates the expressions of a collector for one row.

use bellwether_expr::{Fuel, Stop, Val};
use bellwether_model::text;

use crate::{
    cell::{Cell, LARGEST, NotACell},
    collector::{Collector, Query},
    row::Row,
};

/// The maximum length of the text of an error, in bytes.
const LONGEST_ERROR: usize = 1024;

/// What the expressions say of a row.
pub(crate) enum Evaluated {
    /// The filter is false or null.
    LeftOut,
    /// The filter is true, and each expression has a value.
    Values,
    Failed(Vec<Failure>),
}

/// An expression that has no value for a row.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Index of the column; `None` for the filter.
    pub(crate) column: Option<usize>,
    pub(crate) text: Box<str>,
}

impl Collector {
    /// Evaluates each expression once, for as long as they all stay within one cost limit. `values` has an entry
    /// for each program.
    pub(crate) fn evaluate(&self, row: &Row<'_>, values: &mut [Cell]) -> Evaluated {
        let mut fuel = Fuel::USUAL;
        let mut failures = Vec::new();
        if let Some(filter) = self.filter {
            let program = &self.programs[filter];
            match program.evaluate(row, &mut fuel).map(unwrapped) {
                Ok(Val::Bool(true)) => values[filter] = Cell::Bool(true),
                Ok(Val::Bool(false) | Val::Null | Val::Optional(None)) | Err(Stop::Missing(_)) => {
                    return Evaluated::LeftOut;
                }
                Ok(other) => {
                    let text = format!("the filter must be a bool, not {}", other.type_of().one());
                    return Evaluated::Failed(vec![Failure::new(None, &text)]);
                }
                Err(stop) => return Evaluated::Failed(vec![Failure::new(None, &program.describe(&stop))]),
            }
        }
        for (index, program) in self.programs.iter().enumerate() {
            if self.filter == Some(index) {
                continue;
            }
            let (text, is_last) = match program.evaluate(row, &mut fuel) {
                Ok(value) => match values[index].set(&value) {
                    Ok(()) => continue,
                    Err(error) => (describe(error), false),
                },
                Err(Stop::Missing(_)) => {
                    values[index] = Cell::Null;
                    continue;
                }
                // Nothing is left for the other expressions.
                Err(stop @ Stop::TooExpensive) => (program.describe(&stop), true),
                Err(stop) => (program.describe(&stop), false),
            };
            let columns = self.columns_of(index);
            failures.extend(columns.map(|column| Failure::new(Some(column), &text)));
            if is_last {
                break;
            }
        }
        if failures.is_empty() { Evaluated::Values } else { Evaluated::Failed(failures) }
    }

    /// The columns that use a program.
    fn columns_of(&self, program: usize) -> impl Iterator<Item = usize> {
        let programs: Vec<Option<usize>> = match &self.query {
            Query::Select(select) => select.columns.iter().copied().map(Some).collect(),
            Query::Aggregate(aggregate) => {
                let group_by = aggregate.group_by.iter().copied().map(Some);
                let fields = aggregate.fields.iter();
                let subjects =
                    fields.map(|field| field.subject.map(|subject| aggregate.subjects[subject].program));
                group_by.chain(subjects).collect()
            }
        };
        let columns = programs.into_iter().enumerate();
        columns.filter(move |(_, own)| *own == Some(program)).map(|(column, _)| column)
    }
}

impl Failure {
    fn new(column: Option<usize>, error: &str) -> Self {
        Self { column, text: text::one_line(error, LONGEST_ERROR).into() }
    }
}

/// The value of an optional, as in a column.
fn unwrapped(mut value: Val<'_>) -> Val<'_> {
    while let Val::Optional(Some(inner)) = value {
        value = (*inner).clone();
    }
    value
}

fn describe(error: NotACell) -> String {
    match error {
        NotACell::Type(own) => format!("{} cannot be the value of a column", own.one()),
        NotACell::NotFinite => "the number is not finite".to_owned(),
        NotACell::TooLarge => format!("the value is larger than {} KiB", LARGEST >> 10),
    }
}
