//! Bellwether's own kinds.

use bellwether_model::{
    ConditionStatus::{False, True},
    State::{Failed, InProgress, Ready},
};

use crate::{generation, generic::conditions::Conditions, read::Reader, reasons, verdict::Verdict};

use super::{
    Evaluator, KindRule,
    clause::{BuiltinClause, Otherwise, condition},
};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "bellwether.dev/Application",
        description: "`Ready` if condition `Ready` is True; otherwise `Failed` if `status.state` is Failed, else \
                      `InProgress`. Conditions of other types count for nothing.",
        reads: &["status.observedGeneration", "status.conditions", "status.state"],
        evaluator: Evaluator::OwnConditions(application),
    },
    KindRule {
        id: "app.k8s.io/Application",
        description: "`Ready` if condition `Ready` is True; otherwise `Failed` if condition `Error` is True, else \
                      `InProgress`. Conditions of other types count for nothing.",
        reads: &["status.observedGeneration", "status.conditions"],
        evaluator: Evaluator::OwnConditions(app_k8s_io),
    },
    KindRule {
        id: "bellwether.dev/Rollup",
        description: "By conditions `Available`, `Progressing` and `Degraded`.",
        reads: &["status.observedGeneration", "status.conditions"],
        evaluator: Evaluator::OwnConditions(rollup),
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
        evaluator: Evaluator::Clauses(VALID, Otherwise::Is(InProgress)),
    }
}

const VALID: &[BuiltinClause] = &[condition("Valid", True, Ready), condition("Valid", False, Failed)];

/// Other tools may write conditions into the status of an Application. They are not about its members.
fn application(o: &Reader<'_>) -> Verdict {
    by_ready(o, || o.text("status.state") == "Failed")
}

fn app_k8s_io(o: &Reader<'_>) -> Verdict {
    by_ready(o, || o.condition("Error").is_some_and(|error| error.is_true()))
}

fn by_ready(o: &Reader<'_>, has_failed: impl Fn() -> bool) -> Verdict {
    if let Some(behind) = generation::reported_behind(o) {
        return behind;
    }
    let Some(ready) = o.condition("Ready") else {
        return Verdict::not_observed();
    };
    if let Some(stale) = generation::stale(o, &ready) {
        return stale;
    }
    let state = match ready.is_true() {
        true => Ready,
        false if has_failed() => Failed,
        false => InProgress,
    };
    Verdict::new(state, ready.reason_or_type().to_owned(), ready.message_or_reason()).since(ready.since())
}

fn rollup(o: &Reader<'_>) -> Verdict {
    generation::reported_behind(o)
        .or_else(|| Conditions::of(o).triple())
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
