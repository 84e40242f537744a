//! Syntax errors.

use mlua::Error;

use crate::{failure, hint};

/// A syntax error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text}{}", .hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default())]
pub struct CompileError {
    /// The line, counted from 1.
    pub line: usize,
    /// Lua's message.
    pub text: String,
    /// What to write instead, where that is obvious.
    pub hint: Option<String>,
}

impl CompileError {
    pub(crate) fn too_long(longest: usize) -> Self {
        Self {
            line: 1,
            text: format!("the script is longer than {} KiB", longest >> 10),
            hint: Some("remove code that the health check does not use".to_owned()),
        }
    }

    pub(crate) fn from_error(error: &Error, source: &str) -> Self {
        let said = match error {
            Error::SyntaxError { message, .. } => message.clone(),
            error => failure::root_text(error),
        };
        let (line, text) = failure::split_line(&said).unwrap_or((1, &said));
        let text = if text.starts_with("attempt to load a binary chunk") {
            "the script is not Lua source: binary chunks are not supported"
        } else {
            text
        };
        let hint = hint::in_source(source, line, text).map(str::to_owned);
        Self { line, text: text.to_owned(), hint }
    }
}
