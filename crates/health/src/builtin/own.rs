//! Bellwether's own kinds.

use bellwether_model::State::InProgress;

use crate::{generation, generic::conditions::Conditions, read::Reader, reasons, verdict::Verdict};

use super::{
    Evaluator, KindRule,
    clause::{BuiltinClause, Otherwise, no_condition},
};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "bellwether.dev/Application",
        description: "By condition `Ready`.",
        reads: &[],
        evaluator: Evaluator::Clauses(&[no_condition("Ready", InProgress)], Otherwise::Generic),
    },
    KindRule {
        id: "bellwether.dev/Rollup",
        description: "By conditions `Available`, `Progressing` and `Degraded`.",
        reads: &["status.observedGeneration", "status.conditions"],
        evaluator: Evaluator::Function(rollup),
    },
    valid("bellwether.dev/HealthRule"),
    valid("bellwether.dev/StatusCollector"),
    KindRule {
        id: "bellwether.dev/BindingPolicy",
        description: "`Failed` if any condition is False; `InProgress` without conditions; otherwise \
                      `Ready`.",
        reads: &["status.observedGeneration", "status.conditions"],
        evaluator: Evaluator::Function(policy),
    },
    super::declarative::declarative("bellwether.dev/CombinedStatus"),
];

/// Kinds that Bellwether only reads: their one condition is `Valid`.
const fn valid(id: &'static str) -> KindRule {
    KindRule {
        id,
        description: "`Ready` if condition `Valid` is True; `Failed` if it is False; otherwise `InProgress`.",
        reads: &[],
        evaluator: Evaluator::Clauses(VALID, Otherwise::Generic),
    }
}

const VALID: &[BuiltinClause] = &[no_condition("Valid", InProgress)];

fn rollup(o: &Reader<'_>) -> Verdict {
    generation::reported_behind(o)
        .or_else(|| Conditions::of(o).known(o))
        .unwrap_or_else(Verdict::not_observed)
}

fn policy(o: &Reader<'_>) -> Verdict {
    if let Some(behind) = generation::reported_behind(o) {
        return behind;
    }
    let conditions: Vec<_> = o.conditions_at("status.conditions").collect();
    match conditions.iter().find(|condition| condition.is_false()) {
        Some(failed) => {
            failed.record();
            Verdict::failed(failed.reason_or_type().to_owned(), failed.message_or_reason())
                .since(failed.since())
        }
        None if conditions.is_empty() => Verdict::not_observed(),
        None => Verdict::ready(reasons::NO_FAILED_CONDITION, "no condition is False"),
    }
}
