//! A property that does not hold, as text for developers.

use std::fmt;

use serde_json::Value;

#[derive(Clone, Debug)]
pub struct Violation(String);

impl Violation {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns a `Violation` with the formatted text unless the condition holds.
macro_rules! must {
    ($holds:expr, $($text:tt)+) => {
        if !$holds {
            return Err(Violation::new(format!($($text)+)));
        }
    };
}

/// One line for each field that differs from the expected status.
pub(crate) fn difference(actual: &Value, expected: &Value) -> String {
    let fields = expected.as_object().into_iter().flatten().filter(|(field, value)| actual[field] != **value);
    let lines: Vec<_> =
        fields.map(|(field, value)| format!("\n  {field}: {}, want {value}", actual[field])).collect();
    lines.concat()
}
