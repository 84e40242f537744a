//! An error in an object, with its place.

use std::fmt::{self, Write as _};

use bellwether_expr::Place;
use bellwether_health::user::RuleFieldError;
use bellwether_input::Lines;
use bellwether_terminal::{columns, printable};
use serde::Serialize;

use crate::schema::FieldError;

#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    /// The line in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// The place in the text of the field, if it is an expression or a script.
    #[serde(skip_serializing_if = "Option::is_none")]
    within: Option<Within>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The line of the source with the error.
    #[serde(skip)]
    excerpt: Option<String>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Within {
    line: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
}

impl Finding {
    pub(super) fn plain(message: String) -> Self {
        Self { line: None, field: None, within: None, message, hint: None, excerpt: None }
    }

    pub(crate) fn in_field(error: FieldError) -> Self {
        Self { field: Some(error.field), ..Self::plain(error.message) }
    }

    /// An error in an expression or script.
    pub(crate) fn in_source(error: RuleFieldError) -> Self {
        let RuleFieldError { field, source, compile_error } = error;
        let within = match compile_error.place {
            Place::Text { line, column } => Some(Within { line, column: Some(column) }),
            Place::Line(line) => Some(Within { line, column: None }),
            Place::Tree(_) => None,
        };
        let excerpt = within.and_then(|within| source.lines().nth(within.line - 1)).map(str::to_owned);
        Self {
            line: None,
            field: Some(field),
            within,
            message: compile_error.text,
            hint: compile_error.hint,
            excerpt,
        }
    }

    /// An error in a file that is a script.
    pub(super) fn in_script(error: RuleFieldError) -> Self {
        let finding = Self::in_source(error);
        Self { line: finding.within.map(|within| within.line), field: None, within: None, ..finding }
    }

    /// Sets the line in the file: that of the field, or the first of the object.
    pub(crate) fn located(self, lines: &Lines) -> Self {
        let line = self.field.as_deref().map_or_else(|| lines.first(), |field| lines.of(field));
        self.at(Some(line))
    }

    pub(crate) fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }

    /// Sets the line in the file.
    pub(crate) fn at(self, line: Option<usize>) -> Self {
        Self { line, ..self }
    }

    /// The error with its file, the line of the source, and a mark at the column.
    pub(crate) fn paragraph(&self, file: &str) -> String {
        let mut text = format!("    {}: {}\n", printable(&place(file, self.line)), self.sentence());
        if let Some(excerpt) = &self.excerpt {
            let excerpt: String =
                excerpt.trim_end().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            let _ = writeln!(text, "      {excerpt}");
            if let Some(column) = self.within.and_then(|within| within.column) {
                let before: String = excerpt.chars().take(column - 1).collect();
                let _ = writeln!(text, "      {:width$}^", "", width = columns(&before));
            }
        }
        if let Some(hint) = &self.hint {
            let _ = writeln!(text, "      {}", printable(hint));
        }
        text
    }

    /// `spec.cel[0].when, line 1, column 14: message`
    fn sentence(&self) -> String {
        let mut text = String::new();
        if let Some(field) = &self.field {
            text.push_str(field);
            if let Some(Within { line, column }) = self.within {
                let _ = write!(text, ", line {line}");
                if let Some(column) = column {
                    let _ = write!(text, ", column {column}");
                }
            }
            text.push_str(": ");
        }
        text.push_str(&self.message);
        printable(&text).into_owned()
    }
}

/// In one line, without the file.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence())?;
        match &self.hint {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

/// `rules/widgets.yaml:3`
pub(crate) fn place(file: &str, line: Option<usize>) -> String {
    line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"))
}

pub(crate) fn or_unnamed(name: &str) -> &str {
    if name.is_empty() { "<unnamed>" } else { name }
}
