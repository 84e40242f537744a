//! Groups that are members of others, for those who look at a cluster that no controller keeps up to date: they count as
//! this engine finds them, not as their stored status says.

use std::collections::BTreeSet;

use bellwether_health::Verdict;
use jiff::Timestamp;

use crate::{
    engine::Engine,
    feeds::ObjectId,
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
            // All of a round are evaluated before the first is judged: what they come to must not depend on their order.
            let due = std::mem::take(&mut nested.due);
            let judged: Vec<_> = due.iter().filter_map(|group| self.judge_as_evaluated(group, now)).collect();
            if judged.is_empty() {
                break;
            }
            let changed = judged.iter().map(|judged| judged.group.clone()).collect();
            for judged in judged {
                self.judge(judged, now);
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

    /// How the object of a group is to be judged; nothing if it is judged so already.
    fn judge_as_evaluated(&self, group: &GroupRef, now: Timestamp) -> Option<Judged> {
        let object = self.feeds.find(&Cluster::hub(), &group.kind.kind(), &group.name)?;
        let (found, facts) = (self.group(now, group)?, &self.feeds.object(object)?.facts);
        let verdict = found.verdict(&facts.verdict)?;
        let operator = facts.operator.as_deref().map(|facts| Box::new(as_operator(&found, facts)));
        let is_so = (&facts.verdict, &facts.operator) == (&verdict, &operator);
        (!is_so).then(|| Judged { group: group.clone(), object, verdict, operator })
    }

    fn judge(&mut self, Judged { object, verdict, operator, .. }: Judged, now: Timestamp) {
        let Some(stored) = self.feeds.object_mut(object) else { return };
        let before = stored.facts.clone();
        (stored.facts.verdict, stored.facts.operator) = (verdict, operator);
        self.changed(object, Some(&before), now);
    }
}

/// How the object of a group is to be judged.
struct Judged {
    group: GroupRef,
    object: ObjectId,
    verdict: Verdict,
    operator: Option<Box<OperatorFacts>>,
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
