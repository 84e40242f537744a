//! Workloads with replicas: Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController.

use bellwether_model::State;

use super::{Evaluator, KindRule, missing_pods};
use crate::{
    generation,
    read::{Condition, Reader},
    reasons,
    verdict::Verdict,
};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "apps/Deployment",
        description: "`Suspended` if paused; `Failed` if the progress deadline is exceeded or condition \
                      `ReplicaFailure` is True; `Ready` if all replicas are updated, ready and available \
                      and no other replica exists; otherwise `InProgress`.",
        reads: &["spec.replicas", "spec.paused", "status"],
        evaluator: Evaluator::Function(deployment),
    },
    KindRule {
        id: "apps/StatefulSet",
        description: "`Failed` if condition `ReplicaFailure` is True, or if Pods have not been created for a \
                      minute although all others are available; `Ready` if all replicas are ready and \
                      of the update revision; otherwise `InProgress`. With a partition, only replicas from \
                      that ordinal on must be updated; with OnDelete, none.",
        reads: &[
            "spec.replicas",
            "spec.minReadySeconds",
            "spec.updateStrategy",
            "status",
            missing_pods::SUBRESOURCES,
            missing_pods::TIMES,
        ],
        evaluator: Evaluator::Function(stateful_set),
    },
    KindRule {
        id: "apps/DaemonSet",
        description: "`Ready` if the Pod of every matching node is updated (unless OnDelete), ready and \
                      available, or if no node matches; `Failed` if Pods have not been created for a minute \
                      although all others are available; otherwise `InProgress`.",
        reads: &["spec.updateStrategy", "status", missing_pods::SUBRESOURCES, missing_pods::TIMES],
        evaluator: Evaluator::Function(daemon_set),
    },
    KindRule {
        id: "apps/ReplicaSet",
        description: "`Failed` if condition `ReplicaFailure` is True; `Ready` if all replicas are ready and \
                      available and no other replica exists; otherwise `InProgress`.",
        reads: &["spec.replicas", "status"],
        evaluator: Evaluator::Function(replica_set),
    },
    KindRule {
        id: "ReplicationController",
        description: "The same as `apps/ReplicaSet`.",
        reads: &["spec.replicas", "status"],
        evaluator: Evaluator::Function(replica_set),
    },
];

fn deployment(o: &Reader<'_>) -> Verdict {
    let desired = desired(o);
    let ready = o.count("status.readyReplicas");
    let updated = o.count("status.updatedReplicas");
    let available = o.count("status.availableReplicas");
    let done = updated.min(available);
    let stuck = o
        .condition("Progressing")
        .filter(|condition| condition.reason() == reasons::PROGRESS_DEADLINE_EXCEEDED);
    if o.flag("spec.paused") {
        let failed = stuck.is_some() || replica_failure(o).is_some();
        if desired == 0 && o.count("status.replicas") == 0 {
            return Verdict::suspended(reasons::SCALED_TO_ZERO, "paused, scaled to 0")
                .progress(done, desired);
        }
        return Verdict::suspended(reasons::PAUSED, format!("paused, {} ready", of(ready, desired, REPLICA)))
            .progress(done, desired)
            .blocks(failed || available < desired);
    }
    if let Some(behind) = generation::behind(o) {
        return behind.progress(done, desired);
    }
    if let Some(stuck) = stuck {
        let counts = format!("{} updated, {ready} ready", of(updated, desired, REPLICA));
        let message = match stuck.message().trim() {
            "" => counts,
            _ => format!("{counts}: {}", stuck.quoted()),
        };
        return Verdict::failed(reasons::PROGRESS_DEADLINE_EXCEEDED, message)
            .since(stuck.since())
            .progress(done, desired);
    }
    let counts = Counts {
        desired,
        ready,
        existing: o.count("status.replicas"),
        updated: Some(updated),
        available,
        what: REPLICA,
    };
    counts.evaluate(o).progress(done, desired)
}

fn stateful_set(o: &Reader<'_>) -> Verdict {
    let desired = desired(o);
    let ready = o.count("status.readyReplicas");
    let updated = o.count("status.updatedReplicas");
    // availableReplicas is absent before Kubernetes 1.22, and equals readyReplicas without minReadySeconds.
    let available =
        if o.count("spec.minReadySeconds") > 0 { o.count("status.availableReplicas") } else { ready };
    let on_delete = o.text("spec.updateStrategy.type") == "OnDelete";
    let partition = o.count("spec.updateStrategy.rollingUpdate.partition");
    let due = if on_delete { 0 } else { (desired - partition).max(0) };
    let revisions = (o.text("status.currentRevision"), o.text("status.updateRevision"));
    // Replicas that need not be updated count as updated.
    let done = if revisions.0 == revisions.1 {
        available
    } else {
        available.min(updated.saturating_add(desired - due))
    };
    if let Some(behind) = generation::behind(o) {
        return behind.progress(done, desired);
    }
    let counts = Counts {
        desired,
        ready,
        existing: o.count("status.replicas"),
        updated: None,
        available,
        what: REPLICA,
    };
    let verdict = counts.evaluate(o).progress(done, desired);
    if verdict.state == State::InProgress {
        return counts.with_missing_pods(o, verdict);
    }
    if verdict.state != State::Ready || on_delete {
        return verdict;
    }
    if partition > 0 {
        return if updated < due {
            let message = format!("{} updated (partition {partition})", of(updated, due, REPLICA));
            Verdict::in_progress(reasons::ROLLING_OUT, message).progress(done, desired)
        } else {
            verdict
        };
    }
    if o.count("status.currentReplicas") != desired || revisions.0 != revisions.1 {
        let message = format!("{} updated", of(updated, desired, REPLICA));
        return Verdict::in_progress(reasons::ROLLING_OUT, message).progress(done, desired);
    }
    verdict
}

fn daemon_set(o: &Reader<'_>) -> Verdict {
    let desired = o.count("status.desiredNumberScheduled");
    let ready = o.count("status.numberReady");
    let on_delete = o.text("spec.updateStrategy.type") == "OnDelete";
    let updated = (!on_delete).then(|| o.count("status.updatedNumberScheduled"));
    let available = o.count("status.numberAvailable");
    let done = available.min(updated.unwrap_or(available));
    if let Some(behind) = generation::behind(o) {
        // The API server defaults the counters to 0: the controller has not set them yet.
        return if desired == 0 { behind } else { behind.progress(done, desired) };
    }
    if !o.has("status.desiredNumberScheduled") {
        return Verdict::not_observed();
    }
    if desired == 0 {
        return Verdict::ready(reasons::NO_MATCHING_NODES, "no matching nodes");
    }
    let counts = Counts {
        desired,
        ready,
        // Misscheduled Pods do not count.
        existing: desired.min(o.count("status.currentNumberScheduled")),
        updated,
        available,
        what: "Pod",
    };
    let verdict = counts.evaluate(o).progress(done, desired);
    if verdict.state == State::InProgress { counts.with_missing_pods(o, verdict) } else { verdict }
}

fn replica_set(o: &Reader<'_>) -> Verdict {
    let desired = desired(o);
    let available = o.count("status.availableReplicas");
    if let Some(behind) = generation::behind(o) {
        return behind.progress(available, desired);
    }
    let counts = Counts {
        desired,
        ready: o.count("status.readyReplicas"),
        existing: o.count("status.replicas"),
        updated: None,
        available,
        what: REPLICA,
    };
    counts.evaluate(o).progress(available, desired)
}

/// Replica counters from the status of a workload.
struct Counts {
    desired: i64,
    ready: i64,
    existing: i64,
    /// `None` if replicas need not be updated.
    updated: Option<i64>,
    available: i64,
    /// Singular noun for messages.
    what: &'static str,
}

pub(super) const REPLICA: &str = "replica";

impl Counts {
    fn evaluate(&self, o: &Reader<'_>) -> Verdict {
        let verdict = self.verdict(o);
        // The Available condition of a Deployment has the time of the last change.
        let available = o.condition("Available").filter(|available| {
            verdict.since.is_none() && available.is_true() == (verdict.state == State::Ready)
        });
        match available {
            Some(available) => verdict.since(available.since()),
            None => verdict,
        }
    }

    /// For kinds without the condition `ReplicaFailure`.
    fn with_missing_pods(&self, o: &Reader<'_>, verdict: Verdict) -> Verdict {
        let missing = self.desired - self.existing;
        if missing <= 0 || self.available < self.existing {
            return verdict;
        }
        let ready = of(self.ready, self.desired, self.what);
        missing_pods::fail_later(o, verdict, format!("{ready} ready, {missing} not created"))
    }

    fn verdict(&self, o: &Reader<'_>) -> Verdict {
        let Self { desired, ready, existing, updated, available, what } = *self;
        let of_all = |some| of(some, desired, what);
        if let Some(failure) = replica_failure(o) {
            let message = format!("{} ready: {}", of_all(ready), failure.quoted());
            return Verdict::failed(failure.reason_or_type().to_owned(), message).since(failure.since());
        }
        if let Some(updated) = updated.filter(|updated| *updated < desired) {
            return Verdict::in_progress(reasons::ROLLING_OUT, format!("{} updated", of_all(updated)));
        }
        if let Some(old) = updated.map(|updated| existing - updated).filter(|old| *old > 0) {
            return Verdict::in_progress(reasons::OLD_REPLICAS_TERMINATING, old_replicas(old, what));
        }
        if existing > desired {
            let message = format!("{existing} {what}{}, want {desired}", plural(existing));
            return Verdict::in_progress(reasons::SCALING_DOWN, message);
        }
        if ready < desired {
            return Verdict::in_progress(reasons::REPLICAS_NOT_READY, format!("{} ready", of_all(ready)));
        }
        if available < desired {
            return Verdict::in_progress(
                reasons::REPLICAS_NOT_AVAILABLE,
                format!("{} available", of_all(available)),
            );
        }
        match desired {
            0 => Verdict::ready(reasons::SCALED_TO_ZERO, "scaled to 0"),
            _ => Verdict::ready(reasons::REPLICAS_READY, format!("{} ready", of_all(ready))),
        }
    }
}

fn replica_failure<'o>(o: &Reader<'o>) -> Option<Condition<'o>> {
    o.condition("ReplicaFailure").filter(Condition::is_true)
}

/// The API server defaults replicas to 1.
fn desired(o: &Reader<'_>) -> i64 {
    o.int("spec.replicas").unwrap_or(1).max(0)
}

fn of(some: i64, all: i64, what: &str) -> String {
    format!("{some} of {all} {what}{}", plural(all))
}

pub(super) fn old_replicas(count: i64, what: &str) -> String {
    format!("{count} old {what}{} pending termination", plural(count))
}

fn plural(count: i64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
