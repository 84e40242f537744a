//! Groups that are members of others, for those who look at a cluster that no controller keeps up to date: they count as
//! this engine finds them, not as their stored status says.

use std::collections::BTreeSet;

use bellwether_health::Verdict;

use crate::{
    component_conditions::{ComponentCondition, ComponentConditions},
    condition_types::RESOLVED,
    effect_queue::Changed,
    facts::Facts,
    group_ref::GroupRef,
    view::{Detail, Group},
};

/// The groups whose own objects have to be judged anew.
#[derive(Debug, Default)]
pub(crate) struct Nested {
    pub(crate) due: BTreeSet<GroupRef>,
    /// The groups that count one another and come to no end.
    pub(crate) cyclic: BTreeSet<GroupRef>,
}

impl Nested {
    /// Some groups have changed: their objects have to be judged anew.
    pub(crate) fn due_again(&mut self, changed: &BTreeSet<Changed>) {
        let groups = changed.iter().filter_map(|(kind, name)| Some(GroupRef::new(*kind, name.clone()?)));
        self.due.extend(groups);
    }
}

/// How the object of a group is to be judged.
#[derive(Debug, PartialEq)]
pub(crate) struct Reassessment {
    verdict: Verdict,
    operator: Option<Box<ComponentConditions>>,
}

impl Reassessment {
    /// As the group was evaluated; nothing if its object is judged so already.
    pub(crate) fn of(group: &Group, facts: &Facts) -> Option<Self> {
        let verdict = group.verdict(&facts.verdict)?;
        let operator = facts.operator.as_deref().map(|facts| Box::new(component_conditions(group, facts)));
        let is_unchanged = (&facts.verdict, &facts.operator) == (&verdict, &operator);
        (!is_unchanged).then_some(Self { verdict, operator })
    }

    pub(crate) fn apply(self, facts: &mut Facts) {
        (facts.verdict, facts.operator) = (self.verdict, self.operator);
    }
}

/// What is said of a group in the words of operators. Only a Rollup speaks so; others stay as they were read.
fn component_conditions(group: &Group, before: &ComponentConditions) -> ComponentConditions {
    if let Detail::Application { .. } = group.detail {
        return before.clone();
    }
    let conditions = group.conditions.iter().filter(|condition| condition.type_ != RESOLVED);
    let conditions = conditions.map(|condition| ComponentCondition {
        type_: condition.type_,
        status: condition.statement.status,
        reason: condition.statement.reason.as_ref().into(),
        message: condition.statement.message.as_ref().into(),
        since: group.since,
        observed_generation: before.generation,
    });
    ComponentConditions { conditions: conditions.collect(), ..before.clone() }
}
