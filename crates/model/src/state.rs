//! Words that several kinds use for states.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum State {
    /// It does what it is for.
    Ready,
    /// It is on its way.
    InProgress,
    /// It will not mend itself.
    Failed,
    /// It was suspended on purpose.
    Suspended,
    /// It is being deleted.
    Terminating,
    /// Nobody can tell.
    Unknown,
    /// It should exist and does not.
    Missing,
}

impl State {
    /// All states, from the worst to the best.
    pub const WORST_FIRST: [Self; 7] = [
        Self::Failed,
        Self::Missing,
        Self::InProgress,
        Self::Unknown,
        Self::Terminating,
        Self::Suspended,
        Self::Ready,
    ];

    /// Its name, as it is written everywhere.
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
    /// It holds.
    True,
    /// It does not.
    False,
    /// Nobody can tell.
    Unknown,
}

impl ConditionStatus {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// The one that was written so. What is no status says nothing.
    pub fn of(text: &str) -> Self {
        match text {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}
