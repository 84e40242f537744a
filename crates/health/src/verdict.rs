//! The result of evaluating an object.

use std::borrow::Cow;

use bellwether_model::{
    State,
    text::{legal_reason, one_line},
};
use jiff::Timestamp;
use serde::Serialize;

use crate::reasons;

/// The health of an object: state, reason and the rule that decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Never `Missing`: the object exists.
    pub state: State,
    /// Percent. `Ready` is always 100, any other state at most 99.
    pub progress: u8,
    /// CamelCase, valid as the `reason` of a condition.
    pub reason: Cow<'static, str>,
    /// One line, never empty. The reason where the object reports no message.
    pub message: Cow<'static, str>,
    /// Start of the state, if the object reports it.
    pub since: Option<Timestamp>,
    /// Whether a `Suspended` object counts against its group: what runs of it is not available, or it had
    /// failed before it was suspended. False in every other state, and where nothing of it should run.
    pub blocks: bool,
    /// The rule that decided.
    pub rule: Rule,
    /// The next verdict if the object does not change, for example after a grace period.
    pub later: Option<Box<Later>>,
}

/// A verdict that takes effect at a later time.
#[derive(Clone, Debug, PartialEq)]
pub struct Later {
    /// The first moment at which the verdict holds.
    pub at: Timestamp,
    /// The verdict from then on.
    pub verdict: Verdict,
}

/// Identifies the rule that decided.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Rule {
    /// The set that the rule belongs to.
    pub source: Source,
    /// The name of a user rule or a generic rule; `group/Kind` of a built-in rule.
    pub id: Cow<'static, str>,
}

/// A set of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Written by a user, for example as a HealthRule.
    User,
    /// Part of Bellwether, for one kind or one API group.
    Builtin,
    /// Part of Bellwether, for any kind.
    Generic,
    /// No rule matched.
    None,
}

impl Rule {
    pub(crate) const fn generic(id: &'static str) -> Self {
        Self { source: Source::Generic, id: Cow::Borrowed(id) }
    }
}

/// In bytes. Bounds text from clusters.
const MAX_MESSAGE: usize = 1024;

impl Verdict {
    pub(crate) fn new(
        state: State,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        let reason = legal_reason(reason);
        let message = one_line(message, MAX_MESSAGE);
        Self {
            state,
            progress: if state == State::Ready { 100 } else { 0 },
            // A message of invisible characters counts as empty.
            message: if message.trim().is_empty() { one_line(reason.clone(), MAX_MESSAGE) } else { message },
            reason,
            since: None,
            blocks: false,
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

    /// For kinds that no controller reports on: such an object is ready as soon as it exists.
    pub(crate) fn no_status_expected() -> Self {
        Self::ready(reasons::NO_STATUS_EXPECTED, "no status expected")
    }

    /// For objects whose controller has not reported yet.
    pub(crate) fn not_observed() -> Self {
        Self::in_progress(reasons::NOT_OBSERVED, "no status reported yet")
    }

    pub(crate) fn unrecognized_phase(phase: &str) -> Self {
        Self::unknown(reasons::UNRECOGNIZED_PHASE, format!("unrecognized phase {phase:?}"))
    }

    /// Sets the progress to `done` out of `of`: nothing is complete before it is `Ready`.
    pub(crate) fn progress(mut self, done: i64, of: i64) -> Self {
        self.progress = if self.state == State::Ready { 100 } else { percent(done, of).min(99) };
        self
    }

    /// Sets [`blocks`](Self::blocks) of a `Suspended` verdict.
    pub(crate) fn blocks(mut self, blocks: bool) -> Self {
        self.blocks = blocks && self.state == State::Suspended;
        self
    }

    pub(crate) fn since(mut self, since: Option<Timestamp>) -> Self {
        self.since = since;
        self
    }

    /// Changes to `verdict` at `at`.
    pub(crate) fn until(mut self, at: Timestamp, verdict: Self) -> Self {
        self.later = Some(Box::new(Later { at, verdict }));
        self
    }

    /// Prefixes the message with the part of the object that the verdict is about.
    pub(crate) fn about(mut self, part: &str) -> Self {
        self.message = one_line(format!("{part}: {}", self.message), MAX_MESSAGE);
        self
    }

    /// Attributes this verdict and the later one to a rule.
    pub(crate) fn by(mut self, rule: &Rule) -> Self {
        self.rule = rule.clone();
        self.later =
            self.later.map(|later| Box::new(Later { at: later.at, verdict: later.verdict.by(rule) }));
        self
    }
}

/// The worst verdict; the first of equals.
pub(crate) fn worst(verdicts: impl IntoIterator<Item = Verdict>) -> Option<Verdict> {
    worst_by(verdicts, |verdict| verdict.state)
}

/// The thing with the worst state; the first of equals.
pub(crate) fn worst_by<T>(things: impl IntoIterator<Item = T>, state: impl Fn(&T) -> State) -> Option<T> {
    things
        .into_iter()
        .reduce(|worst, next| if badness(state(&next)) > badness(state(&worst)) { next } else { worst })
}

fn badness(state: State) -> u8 {
    match state {
        State::Ready => 0,
        State::Suspended => 1,
        State::Unknown => 2,
        State::InProgress | State::Missing => 3,
        State::Terminating => 4,
        State::Failed => 5,
    }
}

/// 100 if there is nothing to do.
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
