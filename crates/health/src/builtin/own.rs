//! Bellwether's own kinds.

use bellwether_model::State::InProgress;

use crate::{generation, generic::conditions::Conditions, read::Reader, verdict::Verdict};

use super::{
    Judge, KindRule,
    clause::{Clause, Otherwise, no_condition},
};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "bellwether.dev/Application",
        says: "What its condition Ready says.",
        reads: &[],
        judge: Judge::Clauses(&[no_condition("Ready", InProgress)], Otherwise::Generic),
    },
    KindRule {
        id: "bellwether.dev/Rollup",
        says: "What its conditions Available, Progressing and Degraded say together.",
        reads: &["status.observedGeneration", "status.conditions"],
        judge: Judge::By(rollup),
    },
    valid("bellwether.dev/HealthRule"),
    valid("bellwether.dev/StatusCollector"),
    KindRule {
        id: "bellwether.dev/BindingPolicy",
        says: "Failed when a condition is False: somebody asks for what nobody will get. Ready otherwise.",
        reads: &["status.observedGeneration", "status.conditions"],
        judge: Judge::By(policy),
    },
    super::declarative::declarative("bellwether.dev/CombinedStatus"),
];

/// Kinds that are only read: valid is all that they can be.
const fn valid(id: &'static str) -> KindRule {
    KindRule {
        id,
        says: "Ready when it is valid, failed when it is not.",
        reads: &[],
        judge: Judge::Clauses(VALID, Otherwise::Generic),
    }
}

const VALID: &[Clause] = &[no_condition("Valid", InProgress)];

fn rollup(o: &Reader<'_>) -> Verdict {
    generation::reported_behind(o)
        .or_else(|| Conditions::of(o).known(o))
        .unwrap_or_else(|| Verdict::in_progress("NoStatusYet", "its components have not been looked at yet"))
}

fn policy(o: &Reader<'_>) -> Verdict {
    if let Some(behind) = generation::reported_behind(o) {
        return behind;
    }
    let conditions: Vec<_> = o.conditions_at("status.conditions").collect();
    match conditions.iter().find(|condition| condition.is_false()) {
        Some(refused) => {
            refused.look();
            Verdict::failed(refused.reason_or_type().to_owned(), refused.says()).since(refused.since())
        }
        None if conditions.is_empty() => Verdict::in_progress("NoStatusYet", "nobody has looked at it yet"),
        None => Verdict::ready("Applies", "all that it asks for can be had"),
    }
}
