//! PodDisruptionBudget, HorizontalPodAutoscaler.

use bellwether_model::State;
use jiff::SignedDuration;

use super::{Evaluator, KindRule, grace_period::fail_after};
use crate::{
    generation,
    read::{Condition, Reader},
    reasons,
    verdict::Verdict,
};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "policy/PodDisruptionBudget",
        description: "`Failed` if a condition has reason `SyncFailed`; `Ready` if currentHealthy is at \
                      least desiredHealthy; otherwise `InProgress`.",
        reads: &["status"],
        evaluator: Evaluator::Function(disruption_budget),
    },
    KindRule {
        id: "autoscaling/HorizontalPodAutoscaler",
        description: "`Failed` if `AbleToScale` is False, or if `ScalingActive` has a reason that begins \
                      with Invalid or has not been True for 5 minutes; `Ready` if scaling is active or \
                      disabled; otherwise `InProgress`.",
        reads: &["spec.scaleTargetRef", "status"],
        evaluator: Evaluator::Function(autoscaler),
    },
];

/// Grace period of missing metrics.
const METRICS: SignedDuration = SignedDuration::from_mins(5);

fn disruption_budget(o: &Reader<'_>) -> Verdict {
    if !o.has("status") {
        return Verdict::not_observed();
    }
    // Before the generation: on SyncFailed the controller does not update observedGeneration.
    let failed =
        o.conditions_at("status.conditions").find(|condition| condition.reason() == reasons::SYNC_FAILED);
    if let Some(failed) = failed {
        failed.record();
        return Verdict::failed(reasons::SYNC_FAILED, failed.message_or_reason()).since(failed.since());
    }
    // The API server defaults the counters to 0, and 0 of 0 would be Ready.
    if let Some(behind) = generation::behind(o) {
        return behind;
    }
    let (healthy, desired) = (o.count("status.currentHealthy"), o.count("status.desiredHealthy"));
    let pods = if healthy == 1 { "Pod" } else { "Pods" };
    let message = format!("{healthy} {pods} healthy, want {desired}");
    let verdict = if healthy >= desired {
        let allowed = o.count("status.disruptionsAllowed");
        let plural = if allowed == 1 { "" } else { "s" };
        Verdict::ready(reasons::ENOUGH_PODS, format!("{message}, {allowed} disruption{plural} allowed"))
    } else {
        Verdict::in_progress(reasons::TOO_FEW_PODS, message)
    };
    verdict.progress(healthy, desired)
}

fn autoscaler(o: &Reader<'_>) -> Verdict {
    let target = match (o.text("spec.scaleTargetRef.kind"), o.text("spec.scaleTargetRef.name")) {
        ("", "") => "the scale target".to_owned(),
        (kind, name) => format!("{kind}/{name}"),
    };
    let unless_true = |kind| o.condition(kind).filter(|condition| !condition.is_true());
    if let Some(unable) = unless_true("AbleToScale") {
        let state = if unable.is_false() { State::Failed } else { State::InProgress };
        return Verdict::new(state, unable.reason_or_type().to_owned(), unable.summary())
            .since(unable.since());
    }
    if let Some(inactive) = unless_true("ScalingActive") {
        return inactive_scaling(o, &inactive, &target);
    }
    let replicas = format!(
        "{target}: {} replicas, want {}",
        o.count("status.currentReplicas"),
        o.count("status.desiredReplicas")
    );
    // autoscaling/v1 has counters but no conditions.
    if o.condition("AbleToScale").is_some() || o.has("status.currentReplicas") {
        return Verdict::ready(reasons::SCALING_ACTIVE, replicas);
    }
    Verdict::not_observed()
}

fn inactive_scaling(o: &Reader<'_>, inactive: &Condition<'_>, target: &str) -> Verdict {
    let reason = inactive.reason();
    if reason == reasons::SCALING_DISABLED {
        return Verdict::ready(reasons::SCALING_DISABLED, format!("scaling disabled: {target} scaled to 0"))
            .since(inactive.since());
    }
    let message = inactive.summary();
    if reason.starts_with("Invalid") {
        return Verdict::failed(reason.to_owned(), message).since(inactive.since());
    }
    fail_after(o, inactive.since(), METRICS, |state| {
        Verdict::new(state, inactive.reason_or_type().to_owned(), message.clone())
    })
}
