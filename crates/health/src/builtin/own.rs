//! Bellwether's own kinds.

use bellwether_model::{
    ConditionStatus::{False, True},
    State::{self, Failed, InProgress, Missing, Ready, Unknown},
};

use crate::{generation, generic::conditions::Conditions, read::Reader, reasons, verdict::Verdict};

use super::{
    Evaluator, KindRule,
    clause::{BuiltinClause, Otherwise, condition},
};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "bellwether.dev/Application",
        description: "`Ready` if condition `Ready` is True; otherwise as `status.state` if that is Failed, Missing or \
                      Unknown, else `InProgress`. Conditions of other types count for nothing.",
        reads: &["status.observedGeneration", "status.conditions", "status.state"],
        evaluator: Evaluator::OwnConditions(application),
    },
    KindRule {
        id: "app.k8s.io/Application",
        description: "`Ready` if condition `Ready` is True; otherwise `Failed` if condition `Error` is True, else \
                      `InProgress`, or `Unknown` as the condition. Conditions of other types count for nothing.",
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
    by_ready(o, |otherwise| match o.text("status.state") {
        "Failed" => Failed,
        "Missing" => Missing,
        "Unknown" => Unknown,
        _ => otherwise,
    })
}

fn app_k8s_io(o: &Reader<'_>) -> Verdict {
    let has_error = || o.condition("Error").is_some_and(|error| error.is_true());
    by_ready(o, |otherwise| if has_error() { Failed } else { otherwise })
}

/// `or`: the state if it is not ready, given the one by the condition.
fn by_ready(o: &Reader<'_>, or: impl Fn(State) -> State) -> Verdict {
    if let Some(behind) = generation::reported_behind(o) {
        return behind;
    }
    let Some(ready) = o.condition("Ready") else {
        return Verdict::not_observed();
    };
    if let Some(stale) = generation::stale(o, &ready) {
        return stale;
    }
    let state = match () {
        () if ready.is_true() => Ready,
        () if ready.is_false() => or(InProgress),
        () => or(Unknown),
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
