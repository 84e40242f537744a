//! Whether a controller has observed the latest generation of an object: one reading for all rules and
//! groupings.

use bellwether_model::{Object, State, Value};

use crate::{
    read::{Condition, Reader},
    reasons,
    verdict::Verdict,
};

pub use crate::read::number;

/// The `observedGeneration` of a status or of a condition.
pub fn observed(holder: &Value<'_>) -> Option<i64> {
    number(holder.get("observedGeneration")?)
}

/// Whether the controllers of `object` have observed its latest generation. `verdict` is the one on `object`.
///
/// They have not if the verdict says so; if `status.observedGeneration` is older; if the `observedGeneration` of
/// condition `Ready` is, or without that condition that of any other; or if no controller has written a status yet,
/// though the rules wait for one. An object without a generation has nothing to observe.
pub fn is_latest_observed(object: &Object<'_>, verdict: &Verdict) -> bool {
    let Some(generation) = object.at("metadata.generation").and_then(number) else {
        return true;
    };
    if verdict.reason == reasons::LATEST_GENERATION_NOT_OBSERVED {
        return false;
    }
    let status = object.at("status").unwrap_or(&Value::Null);
    let conditions = status.get("conditions").and_then(Value::as_list).unwrap_or_default();
    let is_ready = |condition: &&Value<'_>| condition.get("type").and_then(Value::as_text) == Some("Ready");
    let deciding = match conditions.iter().find(is_ready) {
        Some(ready) => std::slice::from_ref(ready),
        None => conditions,
    };
    let own = observed(status);
    // Go programs write zero for an unset generation.
    let all: Vec<_> = own
        .into_iter()
        .chain(deciding.iter().filter_map(observed))
        .filter(|observed| *observed > 0)
        .collect();
    if all.is_empty() {
        let is_written = status.as_map().is_some_and(|status| !status.is_empty());
        let waits = matches!(verdict.state, State::InProgress | State::Unknown) && !is_written;
        // What is there may be defaults of the API server.
        return !waits && verdict.reason != reasons::NOT_OBSERVED;
    }
    all.iter().all(|observed| *observed >= generation)
}

/// The verdict if `status.observedGeneration` is older than `metadata.generation`, or absent.
///
/// Only for kinds whose controllers always set `observedGeneration`.
pub(crate) fn behind(o: &Reader<'_>) -> Option<Verdict> {
    let generation = o.int("metadata.generation")?;
    let observed = o.int("status.observedGeneration").unwrap_or(0);
    (observed < generation).then(|| not_observed(generation, observed))
}

/// The verdict if `status.observedGeneration` is set and older than `metadata.generation`.
pub(crate) fn reported_behind(o: &Reader<'_>) -> Option<Verdict> {
    let generation = o.int("metadata.generation")?;
    let observed = o.int("status.observedGeneration")?;
    (observed < generation).then(|| not_observed(generation, observed))
}

/// Fields that some controllers have instead of `observedGeneration`.
const EVALUATED: &[&str] = &[
    "status.lastEvaluatedGeneration",
    "status.lastObservedGeneration",
    "status.lastProcessedGeneration",
    "status.lastReconciledGeneration",
    "status.reconciledGeneration",
];

/// The verdict if another field with a generation is older than `metadata.generation`.
pub(crate) fn evaluated_behind(o: &Reader<'_>) -> Option<Verdict> {
    let generation = o.int("metadata.generation")?;
    let evaluated = EVALUATED.iter().find_map(|field| o.int(field))?;
    (evaluated < generation).then(|| not_observed(generation, evaluated))
}

/// The verdict if the `observedGeneration` of a condition is older than `metadata.generation`.
pub(crate) fn stale(o: &Reader<'_>, condition: &Condition<'_>) -> Option<Verdict> {
    let observed = condition.observed_generation()?;
    let generation = o.int("metadata.generation")?;
    (observed < generation).then(|| {
        Verdict::in_progress(
            reasons::LATEST_GENERATION_NOT_OBSERVED,
            format!("condition {}: observed generation {observed}, want {generation}", condition.kind),
        )
    })
}

fn not_observed(generation: i64, observed: i64) -> Verdict {
    let message = match observed {
        0 => format!("generation {generation} not observed yet"),
        observed => format!("observed generation {observed}, want {generation}"),
    };
    Verdict::in_progress(reasons::LATEST_GENERATION_NOT_OBSERVED, message)
}

#[cfg(test)]
mod tests {
    use bellwether_model::Plan;
    use rstest::rstest;
    use serde_json::{Value as Json, json};

    use super::*;
    use crate::{Context, assess};

    #[rstest]
    #[case::caught_up("acme.io/v1", "Widget", json!({"observedGeneration": 2}), true)]
    #[case::behind("acme.io/v1", "Widget", json!({"observedGeneration": 1}), false)]
    #[case::behind_as_text("acme.io/v1", "Widget", json!({"observedGeneration": "1"}), false)]
    #[case::caught_up_as_text("acme.io/v1", "Widget", json!({"observedGeneration": "2"}), true)]
    #[case::a_condition_behind(
        "acme.io/v1",
        "Widget",
        json!({"observedGeneration": 2, "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]}),
        false
    )]
    #[case::another_condition_behind_ready(
        "acme.io/v1",
        "Widget",
        json!({"conditions": [
            {"type": "Stored", "status": "True", "observedGeneration": 1},
            {"type": "Ready", "status": "True", "observedGeneration": "2"},
        ]}),
        true
    )]
    #[case::no_status("acme.io/v1", "Widget", Json::Null, false)]
    #[case::a_status_without_generations("acme.io/v1", "Widget", json!({"phase": "Ready"}), true)]
    #[case::a_new_deployment("apps/v1", "Deployment", json!({}), false)]
    #[case::a_new_daemon_set("apps/v1", "DaemonSet", json!({"desiredNumberScheduled": 0, "numberReady": 0}), false)]
    #[case::a_stale_condition_beside_a_fresh_one(
        "acme.io/v1",
        "Widget",
        json!({"conditions": [
            {"type": "Stalled", "status": "True", "observedGeneration": 1},
            {"type": "Ready", "status": "False", "observedGeneration": 2},
        ]}),
        false
    )]
    #[case::behind_by_another_field("acme.io/v1", "Widget", json!({"lastReconciledGeneration": 1, "phase": "Ready"}), false)]
    #[case::behind_as_a_fraction("acme.io/v1", "Widget", json!({"observedGeneration": 1.0, "phase": "Ready"}), false)]
    #[case::caught_up_as_a_fraction("acme.io/v1", "Widget", json!({"observedGeneration": 2.0, "phase": "Ready"}), true)]
    #[case::a_new_autoscaler(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        json!({"desiredReplicas": 0, "currentMetrics": null}),
        false
    )]
    #[case::a_new_gateway(
        "gateway.networking.k8s.io/v1",
        "Gateway",
        json!({"conditions": [
            {"type": "Accepted", "status": "Unknown", "reason": "Pending", "lastTransitionTime": "1970-01-01T00:00:00Z"},
            {"type": "Programmed", "status": "Unknown", "reason": "Pending", "lastTransitionTime": "1970-01-01T00:00:00Z"},
        ]}),
        false
    )]
    #[case::a_gateway_that_waits(
        "gateway.networking.k8s.io/v1",
        "Gateway",
        json!({"conditions": [
            {"type": "Accepted", "status": "True", "reason": "Accepted", "observedGeneration": 2},
            {"type": "Programmed", "status": "Unknown", "reason": "Pending", "observedGeneration": 2},
        ]}),
        true
    )]
    #[case::no_status_expected("networking.k8s.io/v1", "NetworkPolicy", Json::Null, true)]
    fn generations(#[case] version: &str, #[case] kind: &str, #[case] status: Json, #[case] expected: bool) {
        let object = json!({
            "apiVersion": version, "kind": kind, "metadata": {"generation": 2}, "spec": {"size": 1}, "status": status,
        });
        let bytes = object.to_string();
        let object = Object::from_json(bytes.as_bytes(), &Plan::everything()).expect("a map is an object");
        let verdict = assess(&object, &Context::at("2026-03-01T12:00:00Z".parse().expect("a time")));
        assert_eq!(is_latest_observed(&object, &verdict), expected, "{verdict:?}");
    }
}
