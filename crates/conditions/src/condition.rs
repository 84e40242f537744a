//! A condition as a status stores it, and when its `lastTransitionTime` moves.

use std::borrow::Cow;

use bellwether_model::{
    ConditionStatus,
    text::{legal_reason, shorten},
};
use jiff::Timestamp;

use crate::legal::MAX_MESSAGE;

/// Status, reason and message of a condition, without a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// True, False or Unknown.
    pub status: ConditionStatus,
    /// CamelCase, for programs.
    pub reason: Cow<'static, str>,
    /// For people.
    pub message: Cow<'static, str>,
}

/// A condition as a controller writes it into a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Such as `Ready`.
    pub type_: String,
    /// True, False or Unknown.
    pub status: ConditionStatus,
    /// CamelCase, for programs.
    pub reason: String,
    /// For people. At most [`MAX_MESSAGE`] bytes.
    pub message: String,
    /// When `status` last changed.
    pub last_transition_time: Timestamp,
    /// The `metadata.generation` that the condition describes.
    pub observed_generation: Option<i64>,
}

impl Statement {
    /// Takes any text: [`Condition::next`] makes reason and message legal.
    pub fn new(
        status: ConditionStatus,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { status, reason: reason.into(), message: message.into() }
    }
}

impl Condition {
    /// The condition to write after the stored one.
    ///
    /// `lastTransitionTime` stays unless the status differs, so a restart changes nothing. A new time has
    /// whole seconds, as Kubernetes stores them. An illegal reason or an overlong message is made to fit the
    /// limits of Kubernetes.
    pub fn next(
        stored: Option<&Self>,
        type_: impl Into<String>,
        statement: Statement,
        generation: Option<i64>,
        now: Timestamp,
    ) -> Self {
        let kept = stored.filter(|stored| stored.status == statement.status);
        let mut message = statement.message.into_owned();
        shorten(&mut message, MAX_MESSAGE);
        Self {
            type_: type_.into(),
            status: statement.status,
            reason: legal_reason(&*statement.reason).into_owned(),
            message,
            last_transition_time: kept
                .map_or_else(|| whole_seconds(now), |stored| stored.last_transition_time),
            observed_generation: generation,
        }
    }
}

fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use ConditionStatus::{False, True, Unknown};
    use rstest::rstest;

    use super::*;

    fn stored(status: ConditionStatus) -> Condition {
        Condition {
            type_: "Ready".into(),
            status,
            reason: "Some".into(),
            message: "some".into(),
            last_transition_time: Timestamp::from_second(1000).unwrap(),
            observed_generation: Some(4),
        }
    }

    #[rstest]
    #[case::first(None, True, 2000)]
    #[case::same(Some(True), True, 1000)]
    #[case::flip(Some(False), True, 2000)]
    #[case::to_unknown(Some(True), Unknown, 2000)]
    #[case::still_unknown(Some(Unknown), Unknown, 1000)]
    fn the_time_changes_with_the_status_only(
        #[case] before: Option<ConditionStatus>,
        #[case] status: ConditionStatus,
        #[case] since: i64,
    ) {
        let before = before.map(stored);
        let now = Timestamp::from_millisecond(2_000_999).unwrap();
        let next =
            Condition::next(before.as_ref(), "Ready", Statement::new(status, "Other", "else"), Some(5), now);
        let expected = Condition {
            reason: "Other".into(),
            message: "else".into(),
            last_transition_time: Timestamp::from_second(since).unwrap(),
            observed_generation: Some(5),
            ..stored(status)
        };
        assert_eq!(next, expected);
    }

    #[test]
    fn what_kubernetes_would_refuse_is_made_to_fit() {
        let statement = Statement::new(False, "not legal", "ä".repeat(20_000));
        let next = Condition::next(None, "Ready", statement, None, Timestamp::UNIX_EPOCH);
        assert_eq!(next.reason, "NotLegal");
        assert!(next.message.len() <= MAX_MESSAGE && next.message.ends_with("ä…"));
    }
}
