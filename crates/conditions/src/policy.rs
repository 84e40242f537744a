//! Policies: what the conditions of one type mean, and how many of them become one.

use std::borrow::Cow;

use bellwether_model::ConditionStatus;

use crate::condition::Statement;

/// How the conditions of one type become one. It is data: every place where conditions are merged has its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The type of the conditions, and of the one that they become.
    pub type_: Cow<'static, str>,
    /// Which status is the good one.
    pub polarity: Polarity,
    /// What a source counts as that does not report the condition.
    pub missing: ConditionStatus,
    /// The reason of such a source.
    pub missing_reason: Cow<'static, str>,
    /// What Unknown counts as.
    pub unknown: Class,
    /// What is said when there are no sources.
    pub empty: Statement,
    /// How the reason is chosen.
    pub choice: Choice,
    /// The reasons where the sources give none, or none is chosen.
    pub reasons: Reasons,
    /// The message when all is fine.
    pub when_fine: WhenFine,
    /// The longest message, in bytes. More than [`LONGEST_MESSAGE`](crate::LONGEST_MESSAGE) is never written.
    pub budget: usize,
}

/// Which status of a condition is the good one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Polarity {
    /// True is good, as of Ready and Available.
    #[default]
    Positive,
    /// False is good, as of Degraded and Stalled.
    Negative,
}

/// What a status means to whoever looks for trouble. The worst comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// It has the bad status.
    Issue,
    /// Nobody can tell.
    Unknown,
    /// It has the good status.
    Fine,
}

/// How the reason is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Choice {
    /// The one that all deciding sources share, else the policy's.
    #[default]
    Common,
    /// Always the policy's.
    Fixed,
    /// That of the deciding source that changed last; of several that did, the first in their order.
    Recent,
}

/// A reason for each class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reasons {
    /// Something is bad.
    pub issue: Cow<'static, str>,
    /// Something is unknown and nothing is bad.
    pub unknown: Cow<'static, str>,
    /// All is fine.
    pub fine: Cow<'static, str>,
}

/// The message when all is fine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhenFine {
    /// Always this.
    Text(Cow<'static, str>),
    /// What the sources say, if all that say anything say the same; else nothing.
    Agreed,
}

impl Policy {
    /// The policy for a type of which nothing else is known: True is good, what is missing is unknown, and so is
    /// nothing at all. Struct update syntax adapts it.
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

    /// What a status counts as.
    pub fn classify(&self, status: ConditionStatus) -> Class {
        if status == ConditionStatus::Unknown { self.unknown } else { self.class_of(status) }
    }

    /// The status that says so of all sources together.
    pub fn status(&self, class: Class) -> ConditionStatus {
        match class {
            Class::Issue => self.polarity.bad(),
            Class::Unknown => ConditionStatus::Unknown,
            Class::Fine => self.polarity.good(),
        }
    }

    /// What a status says of all sources together: the way back from [`status`](Self::status).
    pub(crate) fn class_of(&self, status: ConditionStatus) -> Class {
        match status {
            ConditionStatus::Unknown => Class::Unknown,
            status if status == self.polarity.good() => Class::Fine,
            _ => Class::Issue,
        }
    }
}

impl Polarity {
    /// The good status.
    pub const fn good(self) -> ConditionStatus {
        match self {
            Self::Positive => ConditionStatus::True,
            Self::Negative => ConditionStatus::False,
        }
    }

    /// The bad status.
    pub const fn bad(self) -> ConditionStatus {
        match self {
            Self::Positive => ConditionStatus::False,
            Self::Negative => ConditionStatus::True,
        }
    }
}

impl Class {
    /// All of them, the worst first.
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
