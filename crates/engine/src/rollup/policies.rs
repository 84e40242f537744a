//! The merge policies for the four conditions of operators.

use std::{borrow::Cow, sync::LazyLock};

use bellwether_api::{
    ConditionStatus::{False, True, Unknown},
    ProgressingPolicy,
};
use bellwether_conditions::{Choice, Class, Polarity, Policy, Reasons, Statement, WhenFine};

use crate::{
    condition_types::{AVAILABLE, DEGRADED, PROGRESSING, UPGRADEABLE},
    reasons::rollup as reasons,
};

#[derive(Debug)]
pub(super) struct Policies {
    pub(super) available: Policy,
    pub(super) progressing: Policy,
    pub(super) degraded: Policy,
    pub(super) upgradeable: Policy,
}

static ANY_TRUE: LazyLock<Policies> = LazyLock::new(|| Policies::new(Polarity::Negative));
static WORST_IS_FALSE: LazyLock<Policies> = LazyLock::new(|| Policies::new(Polarity::Positive));

impl Policies {
    /// By `spec.progressing`. The special case of `Matrix` involves three conditions, so
    /// [`RollupState::evaluate`](super::rollup_state::RollupState::evaluate) handles it.
    pub(super) fn of(progressing: ProgressingPolicy) -> &'static Self {
        match progressing {
            ProgressingPolicy::Matrix | ProgressingPolicy::AnyTrue => &ANY_TRUE,
            ProgressingPolicy::WorstIsFalse => &WORST_IS_FALSE,
        }
    }

    fn new(progressing: Polarity) -> Self {
        let policy = |kind: &'static str, fine: &'static str| Policy {
            missing_reason: Cow::Borrowed(reasons::INSTALL_INVALID),
            empty: Statement::new(Unknown, reasons::NO_COMPONENTS, "spec.components is empty"),
            choice: Choice::Recent,
            reasons: Reasons {
                issue: Cow::Borrowed(reasons::INSTALL_INVALID),
                unknown: Cow::Borrowed(reasons::INSTALL_INVALID),
                fine: Cow::Borrowed(reasons::ALL_AS_EXPECTED),
            },
            when_fine: WhenFine::Text(Cow::Borrowed(fine)),
            ..Policy::new(kind)
        };
        let at_rest = match progressing {
            Polarity::Negative => "No component is progressing",
            Polarity::Positive => "All components are progressing",
        };
        Self {
            available: Policy { missing: False, ..policy(AVAILABLE, "All components are available") },
            progressing: Policy { polarity: progressing, ..policy(PROGRESSING, at_rest) },
            degraded: Policy { polarity: Polarity::Negative, ..policy(DEGRADED, "No component is degraded") },
            upgradeable: Policy {
                missing: True,
                unknown: Class::Unknown,
                empty: Statement::new(True, reasons::ALL_AS_EXPECTED, "All components are upgradeable"),
                ..policy(UPGRADEABLE, "All components are upgradeable")
            },
        }
    }
}
