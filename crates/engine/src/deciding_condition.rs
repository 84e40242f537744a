//! Which condition of a group decides its state, and which conditions are worth showing.

use bellwether_conditions::Statement;
use bellwether_model::ConditionStatus;

use crate::{
    condition_types::{AVAILABLE, DEGRADED, PROGRESSING, RESOLVED, UPGRADEABLE},
    view::{Condition, Detail, Group},
};

/// Most significant first, with the good status of each.
const BY_SIGNIFICANCE: [(&str, ConditionStatus); 5] = [
    (AVAILABLE, ConditionStatus::True),
    (DEGRADED, ConditionStatus::False),
    (PROGRESSING, ConditionStatus::False),
    (UPGRADEABLE, ConditionStatus::True),
    (RESOLVED, ConditionStatus::True),
];

impl Group {
    /// Ready of an Application; the most significant bad condition of a Rollup, or Available; what stands for Ready
    /// of a BindingPolicy.
    pub fn deciding_condition(&self) -> Option<&Statement> {
        let decides = match &self.detail {
            Detail::Application { .. } => self.conditions.first(),
            Detail::Rollup { .. } => deciding_condition(&self.conditions),
            Detail::BindingPolicy { ready, .. } => return Some(ready),
        };
        decides.map(|condition| &condition.statement)
    }

    /// Rollup conditions worth showing, most significant first: those not at their good status, those whose
    /// degradation is held back, and `Progressing` while Available=False and Degraded=True. Empty for
    /// Applications.
    pub fn notable_conditions(&self) -> impl Iterator<Item = &Condition> {
        notable_conditions(match &self.detail {
            Detail::Application { .. } | Detail::BindingPolicy { .. } => &[],
            Detail::Rollup { .. } => &self.conditions,
        })
    }

    /// The first one that damping holds back.
    pub fn held_back(&self) -> Option<&Condition> {
        self.notable_conditions().find(|condition| condition.held_until.is_some())
    }
}

fn deciding_condition(conditions: &[Condition]) -> Option<&Condition> {
    let find = |type_: &str| conditions.iter().find(|condition| condition.type_ == type_);
    find(deciding_type(|type_| Some(find(type_)?.statement.status))).or(conditions.first())
}

/// The type of the condition that decides the state of a Rollup.
pub(crate) fn deciding_type(status: impl Fn(&str) -> Option<ConditionStatus>) -> &'static str {
    // Upgradeable does not affect the state.
    let is_bad = |(type_, fine): &&(&str, ConditionStatus)| {
        *type_ != UPGRADEABLE && status(type_).is_some_and(|status| status != *fine)
    };
    BY_SIGNIFICANCE.iter().find(is_bad).map_or(AVAILABLE, |(type_, _)| *type_)
}

fn notable_conditions(conditions: &[Condition]) -> impl Iterator<Item = &Condition> {
    let is = |type_: &str, status: ConditionStatus| {
        conditions.iter().any(|condition| condition.type_ == type_ && condition.statement.status == status)
    };
    let is_broken = is(AVAILABLE, ConditionStatus::False) && is(DEGRADED, ConditionStatus::True);
    let is_notable = move |(condition, fine): &(&Condition, bool)| {
        !fine || condition.held_until.is_some() || is_broken && condition.type_ == PROGRESSING
    };
    in_order(conditions).filter(is_notable).map(|(condition, _)| condition)
}

/// The conditions by significance, and whether each has its good status.
fn in_order(conditions: &[Condition]) -> impl Iterator<Item = (&Condition, bool)> {
    BY_SIGNIFICANCE.iter().filter_map(|(type_, fine)| {
        let condition = conditions.iter().find(|condition| condition.type_ == *type_)?;
        Some((condition, condition.statement.status == *fine))
    })
}

#[cfg(test)]
mod tests {
    use bellwether_api::{ObjectCounts, RollupHealth};
    use bellwether_model::State;
    use jiff::Timestamp;
    use rstest::rstest;

    use super::{
        ConditionStatus::{False, True, Unknown},
        *,
    };
    use crate::id::{GroupKind, NamespacedName};

    fn group(kind: &str, conditions: &[(&'static str, ConditionStatus)], detail: Detail) -> Group {
        let condition = |(type_, status): &(&'static str, ConditionStatus)| Condition {
            type_,
            statement: Statement::new(*status, *type_, ""),
            since: None,
            held_until: None,
        };
        Group {
            kind: GroupKind::bellwether(kind),
            name: NamespacedName::new("", "a"),
            state: State::Unknown,
            deleting: false,
            since: None,
            conditions: conditions.iter().map(condition).collect(),
            counts: ObjectCounts::default(),
            progress: None,
            members: Vec::new(),
            clusters: None,
            detail,
        }
    }

    fn rollup([available, progressing, degraded, upgradeable, resolved]: [ConditionStatus; 5]) -> Group {
        let conditions = [
            ("Available", available),
            ("Progressing", progressing),
            ("Degraded", degraded),
            ("Upgradeable", upgradeable),
            ("Resolved", resolved),
        ];
        let detail = Detail::Rollup { health: RollupHealth::Warning, meaning: String::new() };
        group("Rollup", &conditions, detail)
    }

    #[rstest]
    #[case::all_fine([True, False, False, True], "Available")]
    #[case::not_available([False, True, True, False], "Available")]
    #[case::available_unknown([Unknown, False, True, True], "Available")]
    #[case::degraded([True, True, True, True], "Degraded")]
    #[case::progressing([True, True, False, False], "Progressing")]
    #[case::not_resolved([True, False, False, False], "Resolved")]
    fn the_deciding_condition_of_a_rollup(#[case] statuses: [ConditionStatus; 4], #[case] deciding: &str) {
        let [available, progressing, degraded, resolved] = statuses;
        let rollup = rollup([available, progressing, degraded, False, resolved]);
        assert_eq!(rollup.deciding_condition().map(|statement| &*statement.reason), Some(deciding));
    }

    #[rstest]
    #[case::all_fine([True, False, False, True, True], &[])]
    #[case::repairing([False, True, True, True, True], &["Available", "Degraded", "Progressing"])]
    #[case::requires_intervention([False, False, True, True, True], &["Available", "Degraded", "Progressing"])]
    #[case::at_rest([True, False, True, True, True], &["Degraded"])]
    #[case::not_to_be_upgraded([True, False, False, False, True], &["Upgradeable"])]
    #[case::not_resolved([True, False, False, Unknown, False], &["Upgradeable", "Resolved"])]
    fn the_remarkable_conditions_of_a_rollup(
        #[case] statuses: [ConditionStatus; 5],
        #[case] expected: &[&str],
    ) {
        let rollup = rollup(statuses);
        assert_eq!(
            rollup.notable_conditions().map(|condition| condition.type_).collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn a_held_condition_is_remarkable_and_does_not_decide() {
        let mut rollup = rollup([True, True, False, True, True]);
        for condition in rollup.conditions.iter_mut().filter(|condition| condition.type_ == "Degraded") {
            condition.held_until = Some(Timestamp::UNIX_EPOCH);
        }
        assert_eq!(rollup.held_back().map(|condition| condition.type_), Some("Degraded"));
        assert_eq!(rollup.deciding_condition().map(|statement| &*statement.reason), Some("Progressing"));
    }

    /// Although it has conditions of types that decide for a Rollup.
    #[test]
    fn the_deciding_condition_of_an_application() {
        let conditions = [("Ready", True), ("Resolved", False), ("Degraded", True)];
        let detail = Detail::Application { type_: None, version: None, dependencies: Vec::new() };
        let application = group("Application", &conditions, detail);
        assert_eq!(application.deciding_condition().map(|statement| &*statement.reason), Some("Ready"));
        assert_eq!(application.notable_conditions().count(), 0);
    }
}
