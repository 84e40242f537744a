//! Conditions as they are written, and when they change.

use std::borrow::Cow;

use bellwether_model::{
    ConditionStatus,
    text::{legal_reason, shorten},
};
use jiff::Timestamp;

use crate::legal::LONGEST_MESSAGE;

/// What a condition says, apart from since when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, in one word for programs.
    pub reason: Cow<'static, str>,
    /// Why, for people.
    pub message: Cow<'static, str>,
}

/// A condition as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its type.
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// Why, in one word for programs.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// Since when its status is what it is.
    pub last_transition_time: Timestamp,
    /// The generation of the object that it speaks of.
    pub observed_generation: Option<i64>,
}

impl Statement {
    /// A statement.
    pub fn new(
        status: ConditionStatus,
        reason: impl Into<Cow<'static, str>>,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { status, reason: reason.into(), message: message.into() }
    }
}

impl Condition {
    /// The condition that makes this statement, after the one that is stored.
    ///
    /// The transition time is the stored one unless the status differs: a restart changes nothing. A new one has
    /// whole seconds, as Kubernetes keeps them. Reason and message are made to fit the limits of Kubernetes.
    pub fn next(
        stored: Option<&Self>,
        type_: impl Into<String>,
        statement: Statement,
        generation: Option<i64>,
        now: Timestamp,
    ) -> Self {
        let kept = stored.filter(|stored| stored.status == statement.status);
        let mut message = statement.message.into_owned();
        shorten(&mut message, LONGEST_MESSAGE);
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
        assert!(next.message.len() <= LONGEST_MESSAGE && next.message.ends_with("ä…"));
    }
}
