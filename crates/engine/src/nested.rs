//! Nested evaluation, for commands that read a cluster in which no controller runs: a group that is a member
//! of another group counts as evaluated here, not by its stored status.

use std::collections::BTreeSet;

use bellwether_health::Verdict;
use bellwether_model::State;

use crate::{
    component_conditions::{ComponentCondition, ComponentConditions},
    condition_types::RESOLVED,
    effect_queue::Changed,
    facts::Facts,
    group_ref::GroupRef,
    view::{Detail, Group},
};

#[derive(Debug, Default)]
pub(crate) struct Nested {
    pub(crate) due: BTreeSet<GroupRef>,
    /// Groups that contain one another.
    pub(crate) cyclic: BTreeSet<GroupRef>,
}

impl Nested {
    pub(crate) fn due_again(&mut self, changed: &BTreeSet<Changed>) {
        let groups = changed.iter().filter_map(|(kind, name)| Some(GroupRef::new(*kind, name.clone()?)));
        self.due.extend(groups);
    }
}

/// The facts of a group's own object that follow from its evaluation.
#[derive(Debug, PartialEq)]
pub(crate) struct NestedFacts {
    verdict: Verdict,
    component_conditions: Option<Box<ComponentConditions>>,
}

impl NestedFacts {
    /// `None` if the facts say so already.
    pub(crate) fn of(group: &Group, facts: &Facts) -> Option<Self> {
        // A member that is being deleted counts by its own metadata, as any other object.
        let verdict = match facts.verdict.state {
            State::Terminating => facts.verdict.clone(),
            _ => group.verdict(&facts.verdict)?,
        };
        let operator =
            facts.component_conditions.as_deref().map(|facts| Box::new(component_conditions(group, facts)));
        let is_unchanged = (&facts.verdict, &facts.component_conditions) == (&verdict, &operator);
        (!is_unchanged).then_some(Self { verdict, component_conditions: operator })
    }

    pub(crate) fn apply(self, facts: &mut Facts) {
        (facts.verdict, facts.component_conditions) = (self.verdict, self.component_conditions);
    }
}

/// The conditions that a Rollup would publish. Applications do not publish these types: theirs stay as
/// stored.
fn component_conditions(group: &Group, before: &ComponentConditions) -> ComponentConditions {
    if let Detail::Application { .. } | Detail::BindingPolicy { .. } = group.detail {
        return before.clone();
    }
    let conditions = group.conditions.iter().filter(|condition| condition.type_ != RESOLVED);
    let conditions = conditions.map(|condition| ComponentCondition {
        contradicted: false,
        type_: condition.type_,
        status: condition.statement.status,
        reason: condition.statement.reason.as_ref().into(),
        message: condition.statement.message.as_ref().into(),
        since: group.since,
        observed_generation: before.generation,
    });
    ComponentConditions { conditions: conditions.collect(), ..before.clone() }
}
