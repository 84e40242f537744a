//! What Available, Progressing and Degraded mean together.

use std::borrow::Cow;

use bellwether_api::{
    ConditionStatus::{self, False, True, Unknown},
    RollupHealth, State,
};

use crate::condition_types::{AVAILABLE, DEGRADED, PROGRESSING};

/// Of one component, or of a Rollup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Triple {
    pub(super) available: ConditionStatus,
    pub(super) progressing: ConditionStatus,
    pub(super) degraded: ConditionStatus,
}

impl Triple {
    /// Failed, and the operator does not act.
    pub(super) fn requires_intervention(self) -> bool {
        self == Self { available: False, progressing: False, degraded: True }
    }

    pub(super) fn conditions(self) -> [(&'static str, ConditionStatus); 3] {
        [(AVAILABLE, self.available), (PROGRESSING, self.progressing), (DEGRADED, self.degraded)]
    }

    /// One condition as given, the others good.
    pub(super) fn of_one((kind, status): &(&str, ConditionStatus)) -> Self {
        let of = |own: &str, good: ConditionStatus| if *kind == own { *status } else { good };
        Self {
            available: of(AVAILABLE, True),
            progressing: of(PROGRESSING, False),
            degraded: of(DEGRADED, False),
        }
    }

    pub(super) fn health(self) -> RollupHealth {
        let Self { available, progressing, degraded } = self;
        if available == False || degraded == True {
            RollupHealth::Error
        } else if progressing == True || [available, progressing, degraded].contains(&Unknown) {
            RollupHealth::Warning
        } else {
            RollupHealth::Healthy
        }
    }

    /// The same as a `State`. A bad component is `InProgress` while its operator reports `Progressing=True`.
    pub(super) fn state(self) -> State {
        let Self { available, progressing, degraded } = self;
        let is_bad = available == False || degraded == True;
        match progressing {
            True => State::InProgress,
            False | Unknown if is_bad => State::Failed,
            False if available == True && degraded == False => State::Ready,
            False | Unknown => State::Unknown,
        }
    }

    /// As a sentence. The texts are those of the matrix in the design of the HyperConverged Cluster Operator.
    pub(super) fn meaning(self) -> Cow<'static, str> {
        match (self.available, self.progressing, self.degraded) {
            (True, False, False) => "Component is 100% healthy and the Operator is idle".into(),
            (True, True, False) => "Component is functional but, either upgrading or healing".into(),
            (True, True, True) => {
                "Component is functioning below capacity and an upgrade or heal is in progress".into()
            }
            (False, False, True) => {
                "Component and operator are in a failed state that requires human intervention.  \
                                     Failed upgrade or failed heal"
                    .into()
            }
            (False, True, True) => "Component is in a failed state and an operator is healing".into(),
            (False, True, False) => "Operator is deploying the component".into(),
            // Not in that matrix.
            (True, False, True) => "Component is functioning below capacity and the Operator is idle".into(),
            (False, False, False) => "Component is not available and the Operator is idle".into(),
            (available, progressing, degraded) => {
                unknown([("available", available), ("progressing", progressing), ("degraded", degraded)])
            }
        }
    }
}

/// If at least one of them is Unknown.
fn unknown(statuses: [(&str, ConditionStatus); 3]) -> Cow<'static, str> {
    let of = |wanted: ConditionStatus| {
        statuses.iter().filter(move |(_, status)| *status == wanted).map(|(report, _)| *report)
    };
    let known: Vec<_> =
        of(True).map(str::to_owned).chain(of(False).map(|report| format!("not {report}"))).collect();
    let unknown: Vec<_> = of(Unknown).collect();
    let unknown = match unknown.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => unknown.concat(),
    };
    if known.is_empty() {
        format!("Unknown whether the component is {unknown}").into()
    } else {
        format!("Component is {}; unknown whether it is {unknown}", known.join(" and ")).into()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case([True, False, False], State::Ready, RollupHealth::Healthy)]
    #[case([True, True, False], State::InProgress, RollupHealth::Warning)]
    #[case([True, True, True], State::InProgress, RollupHealth::Error)]
    #[case([False, False, True], State::Failed, RollupHealth::Error)]
    #[case([False, True, True], State::InProgress, RollupHealth::Error)]
    #[case([False, True, False], State::InProgress, RollupHealth::Error)]
    #[case([True, False, True], State::Failed, RollupHealth::Error)]
    #[case([False, False, False], State::Failed, RollupHealth::Error)]
    #[case([False, Unknown, Unknown], State::Failed, RollupHealth::Error)]
    #[case([True, Unknown, False], State::Unknown, RollupHealth::Warning)]
    #[case([True, False, Unknown], State::Unknown, RollupHealth::Warning)]
    #[case([Unknown, False, False], State::Unknown, RollupHealth::Warning)]
    #[case([Unknown, Unknown, True], State::Failed, RollupHealth::Error)]
    #[case([Unknown, Unknown, Unknown], State::Unknown, RollupHealth::Warning)]
    fn state_and_health_of_every_combination(
        #[case] statuses: [ConditionStatus; 3],
        #[case] state: State,
        #[case] health: RollupHealth,
    ) {
        let [available, progressing, degraded] = statuses;
        let triple = Triple { available, progressing, degraded };
        assert_eq!((triple.state(), triple.health()), (state, health));
    }

    #[rstest]
    #[case([False, Unknown, Unknown], "Component is not available; unknown whether it is progressing or degraded")]
    #[case([True, True, Unknown], "Component is available and progressing; unknown whether it is degraded")]
    #[case([Unknown, Unknown, Unknown], "Unknown whether the component is available, progressing or degraded")]
    fn the_meaning_with_unknown_conditions(#[case] statuses: [ConditionStatus; 3], #[case] meaning: &str) {
        let [available, progressing, degraded] = statuses;
        assert_eq!(Triple { available, progressing, degraded }.meaning(), meaning);
    }
}
