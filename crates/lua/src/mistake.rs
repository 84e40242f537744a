//! What is wrong with the text of a script.

use mlua::Error;

use crate::{failure, hint};

/// What is wrong with the text of a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {text}{}", .hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default())]
pub struct Mistake {
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong.
    pub text: String,
    /// What was probably meant.
    pub hint: Option<String>,
}

impl Mistake {
    pub(crate) fn too_long(longest: usize) -> Self {
        Self {
            line: 1,
            text: format!("the script is longer than {} KiB", longest >> 10),
            hint: Some("a health check looks at one object; leave out what it does not need".to_owned()),
        }
    }

    pub(crate) fn from_error(error: &Error, source: &str) -> Self {
        let said = match error {
            Error::SyntaxError { message, .. } => message.clone(),
            error => failure::root_text(error),
        };
        let (line, text) = failure::split_line(&said).unwrap_or((1, &said));
        let text = reworded(text);
        Self { line, hint: hint::in_source(source, line, &text).map(str::to_owned), text }
    }
}

/// Lua's words, except where they speak of things that only its authors know.
fn reworded(text: &str) -> String {
    if text.starts_with("attempt to load a binary chunk") {
        return "the script is not text".to_owned();
    }
    text.replace("near <eof>", "before the end of the script")
        .replace("<eof> expected near", "the script should have ended near")
}
