//! What a condition says, without the words for as long as nobody wants to read them.

use std::borrow::Cow;

use bellwether_conditions::Statement;
use bellwether_model::ConditionStatus;

/// What a condition says.
pub(crate) struct LazyStatement<'a> {
    pub(crate) status: ConditionStatus,
    reason: Cow<'a, str>,
    words: Box<dyn FnOnce() -> String + 'a>,
}

pub(crate) fn says<'a>(
    status: ConditionStatus,
    reason: impl Into<Cow<'a, str>>,
    words: impl FnOnce() -> String + 'a,
) -> LazyStatement<'a> {
    LazyStatement { status, reason: reason.into(), words: Box::new(words) }
}

impl From<LazyStatement<'_>> for Statement {
    fn from(says: LazyStatement<'_>) -> Self {
        Self::new(says.status, says.reason.into_owned(), (says.words)())
    }
}
