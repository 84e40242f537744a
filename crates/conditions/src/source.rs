//! Turns what a source reports, or fails to report, into a [`Contribution`].

use std::borrow::Cow;

use bellwether_model::ConditionStatus;
use jiff::Timestamp;

use crate::policy::{Class, Policy};

/// A condition as an object has it. No field is validated; a missing text is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported<'a> {
    /// Compared exactly.
    pub type_: &'a str,
    /// Anything but `True` and `False` counts as Unknown.
    pub status: &'a str,
    /// May be illegal or empty.
    pub reason: &'a str,
    /// May be empty.
    pub message: &'a str,
    /// When `status` last changed, if the object says so.
    pub last_transition_time: Option<Timestamp>,
    /// The generation that the condition describes. Zero counts as missing.
    pub observed_generation: Option<i64>,
}

/// An object that reports conditions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Source<'a> {
    /// Of any types, in the order of the object.
    pub conditions: &'a [Reported<'a>],
    /// `metadata.generation`, if the object has one.
    pub generation: Option<i64>,
    /// `metadata.creationTimestamp`. A missing condition has been missing since then at the earliest.
    pub created: Option<Timestamp>,
    /// True if its cluster has been silent for too long to trust the last report.
    pub unreachable: bool,
}

/// What a source contributes to the merged condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contribution<'a> {
    /// The reported status, or what the policy assumes.
    pub status: ConditionStatus,
    /// The class of `status` under the policy.
    pub class: Class,
    /// As the source wrote it; never empty.
    pub reason: Cow<'a, str>,
    /// Empty if the source gives none.
    pub message: Cow<'a, str>,
    /// Since when the source has this status, if known.
    pub since: Option<Timestamp>,
    /// How many further conditions of the type the source has. Only the first counts; callers should say so.
    pub repeated: usize,
}

/// What a source contributes under a policy.
pub fn normalise<'a>(policy: &Policy, source: &Source<'a>) -> Contribution<'a> {
    let mut same_type = source.conditions.iter().filter(|condition| condition.type_ == policy.type_);
    let Some(condition) = same_type.next() else {
        let missing = Contribution::missing(policy, format!("no {} condition", policy.type_), source.created);
        return if source.unreachable { missing.unknown(policy, CLUSTER_UNREACHABLE) } else { missing };
    };
    let status = ConditionStatus::of(condition.status);
    let class = policy.classify(status);
    let reason = match condition.reason.trim() {
        "" => policy.reasons.of(class).clone(),
        reason => Cow::Borrowed(reason),
    };
    let contribution = Contribution {
        status,
        class,
        reason,
        message: Cow::Borrowed(condition.message.trim()),
        since: condition.last_transition_time,
        repeated: same_type.count(),
    };
    if source.unreachable {
        return contribution.unknown(policy, CLUSTER_UNREACHABLE);
    }
    match (condition.observed_generation, source.generation) {
        // Go programs write zero for an unset generation.
        (Some(observed @ 1..), Some(generation)) if observed < generation => Contribution {
            message: Cow::Owned(format!(
                "{} condition observed generation {observed}, want {generation}",
                policy.type_
            )),
            ..contribution.unknown(policy, OBSERVED_GENERATION_STALE)
        },
        _ => contribution,
    }
}

/// The reason of a condition whose `observedGeneration` is behind its object.
pub const OBSERVED_GENERATION_STALE: &str = "ObservedGenerationStale";

const CLUSTER_UNREACHABLE: &str = "ClusterUnreachable";

impl<'a> Contribution<'a> {
    /// The contribution of a source that does not exist, or does not report the condition.
    pub fn missing(policy: &Policy, message: impl Into<Cow<'a, str>>, since: Option<Timestamp>) -> Self {
        Self {
            status: policy.missing,
            class: policy.classify(policy.missing),
            reason: policy.missing_reason.clone(),
            message: message.into(),
            since,
            repeated: 0,
        }
    }

    /// A copy that borrows nothing.
    pub fn into_owned(self) -> Contribution<'static> {
        Contribution {
            status: self.status,
            class: self.class,
            reason: Cow::Owned(self.reason.into_owned()),
            message: Cow::Owned(self.message.into_owned()),
            since: self.since,
            repeated: self.repeated,
        }
    }

    /// The same source, no longer trusted. Since when is unknown.
    fn unknown(self, policy: &Policy, reason: &'static str) -> Self {
        Self {
            status: ConditionStatus::Unknown,
            class: policy.classify(ConditionStatus::Unknown),
            reason: Cow::Borrowed(reason),
            since: None,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use ConditionStatus::{False, True, Unknown};
    use rstest::rstest;

    use super::*;

    const CREATED: Option<Timestamp> = Some(Timestamp::UNIX_EPOCH);

    fn time() -> Option<Timestamp> {
        Timestamp::from_second(1000).ok()
    }

    fn reported(status: &'static str) -> Reported<'static> {
        Reported {
            type_: "Ready",
            status,
            reason: "Why",
            message: "because",
            last_transition_time: time(),
            observed_generation: None,
        }
    }

    /// Status, class, reason, message and since when.
    type Expected = (ConditionStatus, Class, &'static str, &'static str, Option<Timestamp>);

    #[rstest]
    #[case::good(reported("True"), (True, Class::Fine, "Why", "because", time()))]
    #[case::bad(reported("False"), (False, Class::Issue, "Why", "because", time()))]
    #[case::unknown(reported("Unknown"), (Unknown, Class::Unknown, "Why", "because", time()))]
    #[case::illegal(reported("true"), (Unknown, Class::Unknown, "Why", "because", time()))]
    #[case::no_status(reported(""), (Unknown, Class::Unknown, "Why", "because", time()))]
    #[case::other_type(
        Reported { type_: "Readier", ..reported("True") },
        (Unknown, Class::Unknown, "NotReported", "no Ready condition", CREATED)
    )]
    #[case::no_text_good(
        Reported { reason: " ", message: "\n", ..reported("True") },
        (True, Class::Fine, "AllAsExpected", "", time())
    )]
    #[case::no_text_bad(
        Reported { reason: "", message: "", ..reported("False") },
        (False, Class::Issue, "IssuesReported", "", time())
    )]
    #[case::behind(
        Reported { observed_generation: Some(2), ..reported("True") },
        (Unknown, Class::Unknown, "ObservedGenerationStale", "Ready condition observed generation 2, want 3", None)
    )]
    #[case::in_step(
        Reported { observed_generation: Some(3), ..reported("True") },
        (True, Class::Fine, "Why", "because", time())
    )]
    #[case::ahead(
        Reported { observed_generation: Some(4), ..reported("True") },
        (True, Class::Fine, "Why", "because", time())
    )]
    #[case::zero_means_unset(
        Reported { observed_generation: Some(0), ..reported("True") },
        (True, Class::Fine, "Why", "because", time())
    )]
    fn sources(#[case] condition: Reported<'static>, #[case] expected: Expected) {
        let conditions = [condition];
        let source =
            Source { conditions: &conditions, generation: Some(3), created: CREATED, unreachable: false };
        let contribution = normalise(&Policy::new("Ready"), &source);
        assert_eq!(
            (
                contribution.status,
                contribution.class,
                &*contribution.reason,
                &*contribution.message,
                contribution.since
            ),
            expected
        );
        assert_eq!(contribution.repeated, 0);
    }

    #[rstest]
    #[case::contribution(&[reported("True")], "because")]
    #[case::behind(&[Reported { observed_generation: Some(1), ..reported("False") }], "because")]
    #[case::missing(&[], "no Ready condition")]
    fn an_unreachable_cluster_keeps_its_last_message(
        #[case] conditions: &[Reported<'_>],
        #[case] message: &str,
    ) {
        let source = Source { conditions, generation: Some(3), created: CREATED, unreachable: true };
        let policy = Policy { missing: False, ..Policy::new("Ready") };
        let contribution = normalise(&policy, &source);
        assert_eq!((contribution.status, contribution.class), (Unknown, Class::Unknown));
        assert_eq!(
            (&*contribution.reason, &*contribution.message, contribution.since),
            ("ClusterUnreachable", message, None)
        );
    }

    #[test]
    fn the_first_of_a_type_counts() {
        let other = Reported { type_: "Other", ..reported("False") };
        let conditions = [other, reported("True"), reported("False"), other, reported("Unknown")];
        let contribution =
            normalise(&Policy::new("Ready"), &Source { conditions: &conditions, ..Source::default() });
        assert_eq!((contribution.status, contribution.repeated), (True, 2));
    }

    #[rstest]
    #[case(False, Class::Unknown, Class::Issue)]
    #[case(True, Class::Unknown, Class::Fine)]
    #[case(Unknown, Class::Unknown, Class::Unknown)]
    #[case(Unknown, Class::Issue, Class::Issue)]
    fn the_policy_defines_a_missing_condition(
        #[case] missing: ConditionStatus,
        #[case] unknown: Class,
        #[case] class: Class,
    ) {
        let policy =
            Policy { missing, unknown, missing_reason: "InstallInvalid".into(), ..Policy::new("Available") };
        let contribution = normalise(&policy, &Source::default());
        assert_eq!(
            (contribution.status, contribution.class, &*contribution.reason),
            (missing, class, "InstallInvalid")
        );
        assert_eq!(Contribution::missing(&policy, "not found", None).message, "not found");
    }
}
