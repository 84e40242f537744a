//! Groups that are members of others, for those who look at a cluster that no controller keeps up to date: they count as
//! this engine finds them, not as their stored status says.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::{
    engine::Engine,
    group_ref::{GroupRef, OwnKind},
    id::Cluster,
    operator::{OperatorCondition, OperatorFacts},
    view::Group,
};

/// The groups whose own objects have to be judged anew.
#[derive(Debug, Default)]
pub(crate) struct Nested {
    pub(crate) due: BTreeSet<GroupRef>,
    /// The groups that count one another and come to no end.
    cyclic: BTreeSet<GroupRef>,
}

impl Engine {
    /// Judges groups that are members of others by this engine's own evaluation.
    #[must_use]
    pub fn with_nested_evaluation(mut self) -> Self {
        self.nested = Some(Nested::default());
        self
    }

    /// The groups that count one another, so that no evaluation of them comes to an end.
    pub fn cyclic_groups(&self) -> impl Iterator<Item = &GroupRef> {
        self.nested.iter().flat_map(|nested| &nested.cyclic)
    }

    /// Judges the objects of groups as the groups were evaluated, from the inside out, until nothing changes any more.
    pub(crate) fn settle_nested(&mut self, now: Timestamp) {
        let Some(mut nested) = self.nested.take() else { return };
        let mut settled = 0;
        loop {
            nested.due.extend(self.desk.changed_groups());
            let due = std::mem::take(&mut nested.due);
            let changed: BTreeSet<_> =
                due.into_iter().filter(|group| self.judge_as_evaluated(group, now)).collect();
            if changed.is_empty() {
                break;
            }
            self.flush(now);
            // Each round is right about the groups that count only what the one before was right about: there are never
            // more rounds than groups, unless some count one another.
            settled += 1;
            if settled > self.group_count() {
                nested.cyclic = changed;
                break;
            }
            nested.cyclic.clear();
        }
        self.nested = Some(nested);
    }

    /// Gives back whether its object was judged otherwise before.
    fn judge_as_evaluated(&mut self, group: &GroupRef, now: Timestamp) -> bool {
        let kind = group.kind.kind();
        let Some(object) = self.feeds.find(&Cluster::hub(), &kind, &group.name) else { return false };
        let Some(found) = self.group(now, group) else { return false };
        let Some(stored) = self.feeds.object_mut(object) else { return false };
        let Some(verdict) = found.verdict(&stored.facts.verdict) else { return false };
        let operator = stored.facts.operator.as_deref().map(|facts| Box::new(as_operator(&found, facts)));
        if (&stored.facts.verdict, &stored.facts.operator) == (&verdict, &operator) {
            return false;
        }
        let before = stored.facts.clone();
        (stored.facts.verdict, stored.facts.operator) = (verdict, operator);
        self.changed(object, Some(&before), now);
        true
    }
}

/// What is said of a group in the words of operators. Only a Rollup speaks so; others stay as they were read.
fn as_operator(group: &Group, before: &OperatorFacts) -> OperatorFacts {
    if OwnKind::of(&group.kind) != Some(OwnKind::Rollup) {
        return before.clone();
    }
    let conditions = group.conditions.iter().filter(|condition| condition.kind != "Resolved");
    let conditions = conditions.map(|condition| OperatorCondition {
        kind: condition.kind,
        status: condition.says.status,
        reason: condition.says.reason.as_ref().into(),
        message: condition.says.message.as_ref().into(),
        since: group.since,
        observed_generation: before.generation,
    });
    OperatorFacts { conditions: conditions.collect(), ..before.clone() }
}
