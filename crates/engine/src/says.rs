//! What a condition says, without the words for as long as nobody wants to read them.

use std::borrow::Cow;

use bellwether_conditions::Statement;
use bellwether_model::ConditionStatus;

/// What a condition says.
pub(crate) struct Says<'a> {
    pub(crate) status: ConditionStatus,
    reason: Cow<'a, str>,
    words: Box<dyn FnOnce() -> String + 'a>,
}

pub(crate) fn says<'a>(
    status: ConditionStatus,
    reason: impl Into<Cow<'a, str>>,
    words: impl FnOnce() -> String + 'a,
) -> Says<'a> {
    Says { status, reason: reason.into(), words: Box::new(words) }
}

impl From<Says<'_>> for Statement {
    fn from(says: Says<'_>) -> Self {
        Self::new(says.status, says.reason.into_owned(), (says.words)())
    }
}
