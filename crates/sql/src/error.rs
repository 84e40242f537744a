//! Errors in statements.

use std::{error::Error, fmt};

use sqlparser::tokenizer::Location;

/// An error in a statement: its place, its cause, and often a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlError {
    /// The line, counted from 1; 0 if the place is unknown.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The cause, in one sentence.
    pub text: String,
    /// What to write instead.
    pub hint: Option<String>,
}

impl SqlError {
    pub(crate) fn at(location: Location, text: impl Into<String>) -> Self {
        let number = |number: u64| usize::try_from(number).unwrap_or_default();
        Self { line: number(location.line), column: number(location.column), text: text.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// An error of the parser, which has its place in its text.
    pub(crate) fn of_parser(text: &str) -> Self {
        let text = text.trim_start_matches("sql parser error: ");
        let (text, place) = text.rsplit_once(" at Line: ").unwrap_or((text, ""));
        let (line, column) = place.split_once(", Column: ").unwrap_or(("0", "0"));
        let number = |text: &str| text.trim().parse().unwrap_or_default();
        let (first, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
        let text = format!("{}{rest}", first.to_lowercase());
        let text =
            text.replace("expected: ", "expected ").replace("found: EOF", "found the end of the statement");
        let text = text.replace("found: ", "found ");
        Self { line: number(line), column: number(column), text, hint: None }
    }
}

/// `line 1, column 8: text; hint`
impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}, column {}: ", self.line, self.column)?;
        }
        f.write_str(&self.text)?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

impl Error for SqlError {}
