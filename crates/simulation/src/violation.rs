//! Something that must not be, and the words for it.

use std::fmt;

use serde_json::Value;

/// Something that must not be.
#[derive(Clone, Debug)]
pub struct Violation(String);

impl Violation {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! must {
    ($so:expr, $($words:tt)+) => {
        if !$so {
            return Err(Violation::new(format!($($words)+)));
        }
    };
}

/// Where two statuses differ.
pub(crate) fn difference(said: &Value, expected: &Value) -> String {
    let fields = expected.as_object().into_iter().flatten().filter(|(field, value)| said[field] != **value);
    let lines: Vec<_> =
        fields.map(|(field, value)| format!("\n  {field} {}, and it is {value}", said[field])).collect();
    lines.concat()
}
