//! A condition statement whose message is rendered on demand. Evaluating a group needs only the status; a
//! message can name a hundred members, and is rendered only when the status is written or queried.

use std::borrow::Cow;

use bellwether_conditions::Statement;
use bellwether_model::ConditionStatus;

pub(crate) struct LazyStatement<'a> {
    pub(crate) status: ConditionStatus,
    reason: Cow<'a, str>,
    message: Box<dyn FnOnce() -> String + 'a>,
}

impl<'a> LazyStatement<'a> {
    pub(crate) fn new(
        status: ConditionStatus,
        reason: impl Into<Cow<'a, str>>,
        message: impl FnOnce() -> String + 'a,
    ) -> Self {
        Self { status, reason: reason.into(), message: Box::new(message) }
    }
}

impl From<LazyStatement<'_>> for Statement {
    fn from(lazy: LazyStatement<'_>) -> Self {
        Self::new(lazy.status, lazy.reason.into_owned(), (lazy.message)())
    }
}
