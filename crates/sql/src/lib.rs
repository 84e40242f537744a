//! SELECT statements as StatusCollectors.
//!
//! [`translate`] parses a statement with `sqlparser` and writes it as a [`StatusCollectorSpec`] in CEL, so that
//! one evaluator answers both. What a StatusCollector cannot say is an error with its place, never a
//! different answer.

#![warn(missing_docs)]

mod cel;
mod columns;
mod error;
mod expression;
mod path;
mod select;
mod source;

use bellwether_api::StatusCollectorSpec;

pub use error::SqlError;
pub use path::last_field;

/// The maximum number of rows in the result of a StatusCollector.
pub const MAX_LIMIT: u64 = 1000;

/// A translated statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// What follows FROM.
    pub from: Option<From>,
    /// The statement as a StatusCollector. Its limit is at most [`MAX_LIMIT`], and [`MAX_LIMIT`] without
    /// LIMIT.
    pub spec: StatusCollectorSpec,
    /// The columns in the order of SELECT. The collector has all of them, and may have more, to group or order
    /// by.
    pub columns: Vec<String>,
    /// LIMIT.
    pub limit: Option<u64>,
    /// OFFSET, which a StatusCollector does not have.
    pub offset: u64,
}

/// The objects of a statement: `deployments`, `deployments.apps/web`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct From {
    /// The kind as the user writes it.
    pub kind: String,
    /// The name of one object.
    pub name: Option<String>,
}

/// Whether a text is meant as a statement, not as the name of a file.
pub fn is_statement(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    let rest = text.trim_start().get(first.len()..).unwrap_or_default();
    ["select", "with", "explain", "insert", "update", "delete"]
        .iter()
        .any(|word| first.eq_ignore_ascii_case(word))
        && !rest.trim().is_empty()
}

/// Translates a SELECT statement.
pub fn translate(text: &str) -> Result<Statement, SqlError> {
    let source = source::Source::of(text)?;
    select::translate(&source)
}
