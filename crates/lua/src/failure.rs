//! Why a run has no outcome.

use std::fmt;

use mlua::{Error, Value};

use crate::{hint, object::type_name};

/// Why a run has no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A run-time error: Lua's own, or one that the script raised.
    #[error("{}{text}", at(*line))]
    Error {
        /// The line of the script, counted from 1; `None` if the error has none.
        line: Option<usize>,
        /// The message, with a hint where there is one.
        text: String,
    },
    /// The script exceeded its budget.
    #[error("{text}")]
    TooExpensive {
        /// The resource that was exhausted.
        of: Resource,
        /// The message.
        text: String,
    },
}

/// A limited resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// Instructions, or work that is charged as instructions.
    Instructions,
    /// Bytes of the Lua state.
    Memory,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Instructions => "instruction",
            Self::Memory => "memory",
        })
    }
}

/// The chunk name of the script in Lua's messages.
pub(crate) const NAME: &str = "script";

/// Lua's message for a failed allocation.
const NO_MEMORY: &str = "not enough memory";

/// The maximum length of an error message, in bytes. A script can raise one of megabytes.
const LONGEST: usize = 2_048;

fn at(line: Option<usize>) -> String {
    line.map(|line| format!("line {line}: ")).unwrap_or_default()
}

impl Failure {
    pub(crate) fn too_expensive(of: Resource) -> Self {
        Self::TooExpensive { of, text: format!("Lua script exceeded its {of} limit") }
    }

    /// Converts an error of mlua.
    pub(crate) fn from_error(error: &Error) -> Self {
        if is_no_memory(error) {
            return Self::too_expensive(Resource::Memory);
        }
        Self::from_text(&root_text(error))
    }

    /// Converts the value that the script raised.
    pub(crate) fn from_thrown(thrown: &Value) -> Self {
        match thrown {
            Value::String(text) if *text == NO_MEMORY => Self::too_expensive(Resource::Memory),
            Value::String(text) => Self::from_text(&String::from_utf8_lossy(&text.as_bytes())),
            Value::Integer(number) => Self::from_text(&number.to_string()),
            Value::Number(number) => Self::from_text(&number.to_string()),
            Value::Error(error) => Self::from_error(error),
            other => Self::from_text(&error_object(other)),
        }
    }

    fn from_text(text: &str) -> Self {
        let (line, text) = match split_line(text) {
            Some((line, text)) => (Some(line), text),
            None => (None, text),
        };
        let text = if text.contains("stack overflow") {
            "stack overflow: calls are nested too deeply"
        } else {
            text
        };
        let text = text.replace(&format!("{NAME}:"), "line ");
        let mut text = hint::at_run_time(&text).map_or(text.clone(), |hint| format!("{text} ({hint})"));
        if text.len() > LONGEST {
            text.truncate(text.floor_char_boundary(LONGEST));
            text.push('…');
        }
        Self::Error { line, text }
    }
}

/// Lua's own words for an error that is not a string.
pub(crate) fn error_object(thrown: &Value) -> String {
    format!("error object is a {} value", type_name(thrown))
}

/// Splits `script:3: message` into line and message.
pub(crate) fn split_line(text: &str) -> Option<(usize, &str)> {
    let (line, text) = text.strip_prefix(NAME)?.strip_prefix(':')?.split_once(':')?;
    Some((line.parse().ok()?, text.trim_start()))
}

pub(crate) fn is_no_memory_thrown(thrown: &Value) -> bool {
    match thrown {
        Value::String(text) => *text == NO_MEMORY,
        Value::Error(error) => is_no_memory(error),
        _ => false,
    }
}

/// Whether an allocation failed. mlua reports a stack that cannot grow as a `StackError`, whether memory or
/// slots ran out. A stack of a million slots is memory, too.
pub(crate) fn is_no_memory(error: &Error) -> bool {
    matches!(root(error), Error::MemoryError(_) | Error::StackError)
}

/// The message of the innermost error, without a traceback.
pub(crate) fn root_text(error: &Error) -> String {
    match root(error) {
        Error::RuntimeError(text) => without_trace(text).to_owned(),
        other => without_trace(&other.to_string()).to_owned(),
    }
}

fn root(error: &Error) -> &Error {
    match error {
        Error::CallbackError { cause, .. } | Error::WithContext { cause, .. } => root(cause),
        error => error,
    }
}

fn without_trace(text: &str) -> &str {
    text.rfind("\nstack traceback:").map_or(text, |end| &text[..end])
}
