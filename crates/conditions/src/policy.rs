//! Policies: what the conditions of one type mean, and how many of them are merged into one.

use std::borrow::Cow;

use bellwether_model::ConditionStatus;

use crate::condition::Statement;

/// How to merge conditions of one type. Plain data: each caller has its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The type of the reported conditions and of the merged one.
    pub type_: Cow<'static, str>,
    /// Which status is the good one.
    pub polarity: Polarity,
    /// The status of a source that does not report the condition.
    pub missing: ConditionStatus,
    /// The reason of a source that does not report the condition.
    pub missing_reason: Cow<'static, str>,
    /// The class of a source that reports Unknown.
    pub unknown: Class,
    /// The result without sources.
    pub empty: Statement,
    /// How to choose the reason.
    pub choice: Choice,
    /// Used if no source gives a reason, or `choice` does not take one.
    pub reasons: Reasons,
    /// The message if all sources are fine.
    pub when_fine: WhenFine,
    /// The longest message, in bytes; capped at [`MAX_MESSAGE`](crate::MAX_MESSAGE).
    pub budget: usize,
}

/// Which status of a condition is the good one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Polarity {
    /// True is good, as for Ready and Available.
    #[default]
    Positive,
    /// False is good, as for Degraded and Stalled.
    Negative,
}

/// How severe a status is, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The bad status.
    Issue,
    /// The status is Unknown.
    Unknown,
    /// The good status.
    Fine,
}

/// How to choose the reason of the merged condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Choice {
    /// The reason that all deciding sources share; otherwise the policy's.
    #[default]
    Common,
    /// Always the policy's.
    Fixed,
    /// The reason of the deciding source with the latest transition; the first by key if several tie.
    Recent,
}

/// The policy's own reason for each class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reasons {
    /// If there is an issue.
    pub issue: Cow<'static, str>,
    /// If something is unknown and there is no issue.
    pub unknown: Cow<'static, str>,
    /// If all sources are fine.
    pub fine: Cow<'static, str>,
}

/// The message if all sources are fine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhenFine {
    /// A fixed text.
    Text(Cow<'static, str>),
    /// The message that all sources with a message share; otherwise empty.
    Agreed,
}

impl Policy {
    /// The default for a type: True is good, a missing condition is Unknown, and so is the result without
    /// sources. Adapt it with struct update syntax.
    pub fn new(type_: impl Into<Cow<'static, str>>) -> Self {
        Self {
            type_: type_.into(),
            polarity: Polarity::Positive,
            missing: ConditionStatus::Unknown,
            missing_reason: Cow::Borrowed("NotReported"),
            unknown: Class::Unknown,
            empty: Statement::new(ConditionStatus::Unknown, "NoSources", ""),
            choice: Choice::Common,
            reasons: Reasons {
                issue: Cow::Borrowed("IssuesReported"),
                unknown: Cow::Borrowed("UnknownReported"),
                fine: Cow::Borrowed("AllAsExpected"),
            },
            when_fine: WhenFine::Agreed,
            budget: 1024,
        }
    }

    /// The class of a source with this status.
    pub fn classify(&self, status: ConditionStatus) -> Class {
        if status == ConditionStatus::Unknown { self.unknown } else { self.class_of(status) }
    }

    /// The status of the merged condition if this class decides.
    pub fn status(&self, class: Class) -> ConditionStatus {
        match class {
            Class::Issue => self.polarity.bad(),
            Class::Unknown => ConditionStatus::Unknown,
            Class::Fine => self.polarity.good(),
        }
    }

    /// The inverse of [`status`](Self::status).
    pub(crate) fn class_of(&self, status: ConditionStatus) -> Class {
        match status {
            ConditionStatus::Unknown => Class::Unknown,
            status if status == self.polarity.good() => Class::Fine,
            _ => Class::Issue,
        }
    }
}

impl Polarity {
    /// The status to hope for.
    pub const fn good(self) -> ConditionStatus {
        match self {
            Self::Positive => ConditionStatus::True,
            Self::Negative => ConditionStatus::False,
        }
    }

    /// The opposite of [`good`](Self::good).
    pub const fn bad(self) -> ConditionStatus {
        match self {
            Self::Positive => ConditionStatus::False,
            Self::Negative => ConditionStatus::True,
        }
    }
}

impl Class {
    /// Worst first.
    pub const ALL: [Self; 3] = [Self::Issue, Self::Unknown, Self::Fine];
}

impl Reasons {
    /// The reason for a class.
    pub fn of(&self, class: Class) -> &Cow<'static, str> {
        match class {
            Class::Issue => &self.issue,
            Class::Unknown => &self.unknown,
            Class::Fine => &self.fine,
        }
    }
}

#[cfg(test)]
mod tests {
    use ConditionStatus::{False, True, Unknown};
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Polarity::Positive, Class::Unknown, [Class::Fine, Class::Issue, Class::Unknown])]
    #[case(Polarity::Positive, Class::Issue, [Class::Fine, Class::Issue, Class::Issue])]
    #[case(Polarity::Positive, Class::Fine, [Class::Fine, Class::Issue, Class::Fine])]
    #[case(Polarity::Negative, Class::Unknown, [Class::Issue, Class::Fine, Class::Unknown])]
    #[case(Polarity::Negative, Class::Issue, [Class::Issue, Class::Fine, Class::Issue])]
    #[case(Polarity::Negative, Class::Fine, [Class::Issue, Class::Fine, Class::Fine])]
    fn true_false_and_unknown_have_classes(
        #[case] polarity: Polarity,
        #[case] unknown: Class,
        #[case] classes: [Class; 3],
    ) {
        let policy = Policy { polarity, unknown, ..Policy::new("T") };
        assert_eq!([True, False, Unknown].map(|status| policy.classify(status)), classes);
    }

    #[rstest]
    #[case(Polarity::Positive, [False, Unknown, True])]
    #[case(Polarity::Negative, [True, Unknown, False])]
    fn classes_have_a_status(#[case] polarity: Polarity, #[case] statuses: [ConditionStatus; 3]) {
        let policy = Policy { polarity, ..Policy::new("T") };
        assert_eq!(Class::ALL.map(|class| policy.status(class)), statuses);
        assert_eq!(statuses.map(|status| policy.class_of(status)), Class::ALL);
    }
}
