//! The state of an object and the status of a condition.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Value;

/// The state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum State {
    /// The object works as specified.
    Ready,
    /// The object is being created, changed or repaired.
    InProgress,
    /// The object does not become ready without intervention.
    Failed,
    /// The object is suspended on purpose.
    Suspended,
    /// The object is being deleted.
    Terminating,
    /// The state cannot be determined.
    Unknown,
    /// The object is required and does not exist.
    Missing,
}

impl State {
    /// All states, worst first.
    pub const WORST_FIRST: [Self; 7] = [
        Self::Failed,
        Self::Missing,
        Self::InProgress,
        Self::Unknown,
        Self::Terminating,
        Self::Suspended,
        Self::Ready,
    ];

    /// The name of the state, as in the API and in all output.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::InProgress => "InProgress",
            Self::Failed => "Failed",
            Self::Suspended => "Suspended",
            Self::Terminating => "Terminating",
            Self::Unknown => "Unknown",
            Self::Missing => "Missing",
        }
    }
}

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// Not known.
    Unknown,
}

impl ConditionStatus {
    /// The status as in the API: `True`, `False` or `Unknown`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// Parses a status: exactly `True` or `False`. Any other text is `Unknown`.
    pub fn of(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }

    /// Reads the `status` of a condition, for every rule and grouping: the texts `True` and `False`, and the
    /// booleans that YAML makes of them without quotes. Anything else is `Unknown`, `true` in lower case
    /// included.
    pub fn read(status: Option<&Value<'_>>) -> Self {
        match status {
            Some(Value::Text(text)) => Self::of(text),
            Some(Value::Bool(true)) => Self::True,
            Some(Value::Bool(false)) => Self::False,
            _ => Self::Unknown,
        }
    }
}
