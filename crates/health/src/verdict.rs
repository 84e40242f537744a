//! What is said of an object.

use std::borrow::Cow;

use bellwether_model::{
    State,
    text::{legal_reason, one_line},
};
use jiff::Timestamp;
use serde::Serialize;

/// What is said of an object: its state, why, and who says so.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The state.
    pub state: State,
    /// How far along it is, from 0 to 100.
    pub progress: u8,
    /// Why, in one CamelCase word that is legal as the reason of a condition.
    pub reason: Cow<'static, str>,
    /// Why, in one line for a person.
    pub message: Cow<'static, str>,
    /// Since when, if the object says.
    pub since: Option<Timestamp>,
    /// Which rule decided.
    pub rule: Rule,
    /// What it turns into, and when, if the object does not change until then.
    pub later: Option<Box<Later>>,
}

/// What a verdict turns into by the passing of time alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Later {
    /// From this moment on.
    pub at: Timestamp,
    /// What is said then.
    pub verdict: Verdict,
}

/// The rule that decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Rule {
    /// Where it comes from.
    pub source: Source,
    /// Its name there.
    pub id: Cow<'static, str>,
}

/// Where a rule comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A user wrote it.
    User,
    /// It is for this kind, and comes with Bellwether.
    Builtin,
    /// It is for any kind.
    Generic,
    /// No rule applies.
    None,
}

impl Rule {
    pub(crate) const fn generic(id: &'static str) -> Self {
        Self { source: Source::Generic, id: Cow::Borrowed(id) }
    }
}

/// The longest message, in bytes. Text from clusters is bounded.
const LONGEST_MESSAGE: usize = 1024;

impl Verdict {
    pub(crate) fn new(
        state: State,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        let reason = legal_reason(reason);
        let message = one_line(message, LONGEST_MESSAGE);
        Self {
            state,
            progress: if state == State::Ready { 100 } else { 0 },
            // A message of nothing that can be seen is none.
            message: if message.trim().is_empty() {
                one_line(reason.clone(), LONGEST_MESSAGE)
            } else {
                message
            },
            reason,
            since: None,
            rule: Rule { source: Source::None, id: Cow::Borrowed("none") },
            later: None,
        }
    }

    pub(crate) fn ready(reason: impl Into<Cow<'static, str>>, message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(State::Ready, reason, message)
    }

    pub(crate) fn in_progress(
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(State::InProgress, reason, message)
    }

    pub(crate) fn failed(
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(State::Failed, reason, message)
    }

    pub(crate) fn suspended(
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(State::Suspended, reason, message)
    }

    pub(crate) fn unknown(
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::new(State::Unknown, reason, message)
    }

    /// Nothing in the object will ever say that it is ready, because nothing has to happen.
    pub(crate) fn no_status_expected() -> Self {
        Self::ready("NoStatusExpected", "this kind has no status: it is ready as soon as it exists")
    }

    /// So many of so many are done.
    pub(crate) fn progress(mut self, done: i64, of: i64) -> Self {
        self.progress = percent(done, of);
        self
    }

    pub(crate) fn since(mut self, since: Option<Timestamp>) -> Self {
        self.since = since;
        self
    }

    /// It is `verdict` from `at` on.
    pub(crate) fn until(mut self, at: Timestamp, verdict: Self) -> Self {
        self.later = Some(Box::new(Later { at, verdict }));
        self
    }

    /// The same, of a part of the object.
    pub(crate) fn about(mut self, part: &str) -> Self {
        self.message = one_line(format!("{part}: {}", self.message), LONGEST_MESSAGE);
        self
    }

    /// The same, and what it turns into, by this rule.
    pub(crate) fn by(mut self, rule: &Rule) -> Self {
        self.rule = rule.clone();
        self.later =
            self.later.map(|later| Box::new(Later { at: later.at, verdict: later.verdict.by(rule) }));
        self
    }
}

/// Nothing to do is all done.
fn percent(done: i64, of: i64) -> u8 {
    if of <= 0 {
        return 100;
    }
    let percent = i128::from(done.max(0)) * 100 / i128::from(of);
    u8::try_from(percent.min(100)).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::percent;

    #[rstest]
    #[case(0, 0, 100)]
    #[case(0, 3, 0)]
    #[case(1, 3, 33)]
    #[case(3, 3, 100)]
    #[case(7, 3, 100)]
    #[case(-1, 3, 0)]
    #[case(5, -3, 100)]
    #[case(i64::MAX, i64::MAX, 100)]
    fn progress(#[case] done: i64, #[case] of: i64, #[case] percents: u8) {
        assert_eq!(percent(done, of), percents);
    }
}
