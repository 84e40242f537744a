//! Limits and scaling: PodDisruptionBudget, HorizontalPodAutoscaler.

use bellwether_model::State;
use jiff::SignedDuration;

use super::{Judge, KindRule, patience::after};
use crate::{
    generation,
    read::{Condition, Reader},
    verdict::Verdict,
};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "policy/PodDisruptionBudget",
        says: "Ready when currentHealthy is at least desiredHealthy. Failed when its controller cannot work it out.",
        reads: &["status"],
        judge: Judge::By(disruption_budget),
    },
    KindRule {
        id: "autoscaling/HorizontalPodAutoscaler",
        says: "Ready when it can scale, or scaling is switched off. Failed when its target or its metrics cannot be used; \
               metrics that cannot be read may come back, so they count as failed after 5 minutes.",
        reads: &["spec.scaleTargetRef", "status"],
        judge: Judge::By(autoscaler),
    },
];

/// How long metrics may be away before that counts as a failure.
const METRICS: SignedDuration = SignedDuration::from_mins(5);

fn disruption_budget(o: &Reader<'_>) -> Verdict {
    if !o.has("status") {
        return Verdict::in_progress("NotObserved", "its controller has not counted the Pods yet");
    }
    // An old server has no condition; one that syncs has one of its type, but any that failed counts. It comes before the
    // generation, because a controller that cannot count observes nothing.
    let failed = o.conditions_at("status.conditions").find(|condition| condition.reason() == "SyncFailed");
    if let Some(failed) = failed {
        failed.look();
        return Verdict::failed("SyncFailed", format!("its Pods cannot be counted: {}", failed.says()))
            .since(failed.since());
    }
    // The server fills in zeros, of which there are enough: only an observed budget has counted.
    if let Some(behind) = generation::behind(o) {
        return behind;
    }
    let (healthy, desired) = (o.count("status.currentHealthy"), o.count("status.desiredHealthy"));
    let pods = if healthy == 1 { "Pod" } else { "Pods" };
    let message = format!("{healthy} {pods} healthy, {desired} needed");
    let verdict = if healthy >= desired {
        let allowed = o.count("status.disruptionsAllowed");
        Verdict::ready("EnoughPods", format!("{message}, {allowed} may be disrupted"))
    } else {
        Verdict::in_progress("TooFewPods", message)
    };
    verdict.progress(healthy, desired)
}

fn autoscaler(o: &Reader<'_>) -> Verdict {
    let target = format!("{} {}", o.text("spec.scaleTargetRef.kind"), o.text("spec.scaleTargetRef.name"));
    let unless_true = |kind| o.condition(kind).filter(|condition| !condition.is_true());
    if let Some(unable) = unless_true("AbleToScale") {
        let state = if unable.is_false() { State::Failed } else { State::InProgress };
        let message = format!("it cannot scale {target}: {}", unable.says());
        return Verdict::new(state, unable.reason_or_type().to_owned(), message).since(unable.since());
    }
    if let Some(inactive) = unless_true("ScalingActive") {
        return inactive_scaling(o, &inactive, &target);
    }
    let replicas = format!(
        "{target} has {} of {} replicas",
        o.count("status.currentReplicas"),
        o.count("status.desiredReplicas")
    );
    // autoscaling/v1 has no conditions, only counters.
    if o.condition("AbleToScale").is_some() || o.has("status.currentReplicas") {
        return Verdict::ready("ScalingActive", replicas);
    }
    Verdict::in_progress("NotObserved", "it has not looked at its target yet")
}

fn inactive_scaling(o: &Reader<'_>, inactive: &Condition<'_>, target: &str) -> Verdict {
    let reason = inactive.reason();
    if reason == "ScalingDisabled" {
        return Verdict::ready("ScalingDisabled", format!("{target} has no replicas, so nothing is scaled"))
            .since(inactive.since());
    }
    let message = format!("it does not scale {target}: {}", inactive.says());
    if reason.starts_with("Invalid") {
        return Verdict::failed(reason.to_owned(), message).since(inactive.since());
    }
    after(o, inactive.since(), METRICS, |state| {
        Verdict::new(state, inactive.reason_or_type().to_owned(), message.clone())
    })
}
