//! Workloads that keep replicas: Deployment, StatefulSet, DaemonSet, ReplicaSet, ReplicationController.

use bellwether_model::State;

use super::{Judge, KindRule};
use crate::{
    generation,
    read::{Condition, Reader},
    verdict::Verdict,
};

pub(super) const RULES: &[KindRule] = &[
    KindRule {
        id: "apps/Deployment",
        says: "Ready when every replica is updated, available and ready and no old one is left. Suspended when paused. \
               Failed when the progress deadline is exceeded or replicas cannot be created.",
        reads: &["spec.replicas", "spec.paused", "status"],
        judge: Judge::By(deployment),
    },
    KindRule {
        id: "apps/StatefulSet",
        says: "Ready when readyReplicas and currentReplicas are spec.replicas. With a partition, only the replicas from \
               the partition on must be updated; with OnDelete, none.",
        reads: &["spec.replicas", "spec.minReadySeconds", "spec.updateStrategy", "status"],
        judge: Judge::By(stateful_set),
    },
    KindRule {
        id: "apps/DaemonSet",
        says: "Ready when the Pod of every node that should have one is updated (unless OnDelete), available and ready. \
               No node that should have one is ready too.",
        reads: &["spec.updateStrategy", "status"],
        judge: Judge::By(daemon_set),
    },
    KindRule {
        id: "apps/ReplicaSet",
        says: "Ready when all replicas are available and ready and none is left over. Failed when replicas cannot be \
               created.",
        reads: &["spec.replicas", "status"],
        judge: Judge::By(replica_set),
    },
    KindRule {
        id: "ReplicationController",
        says: "As ReplicaSet.",
        reads: &["spec.replicas", "status"],
        judge: Judge::By(replica_set),
    },
];

fn deployment(o: &Reader<'_>) -> Verdict {
    let desired = desired(o);
    let ready = o.count("status.readyReplicas");
    if o.flag("spec.paused") {
        return Verdict::suspended("Paused", format!("paused with {} ready", of(ready, desired, REPLICA)))
            .progress(ready, desired);
    }
    if let Some(behind) = generation::behind(o) {
        return behind.progress(ready, desired);
    }
    let progressing = o.condition("Progressing");
    if let Some(stuck) = progressing.filter(|condition| condition.reason() == "ProgressDeadlineExceeded") {
        let updated = o.count("status.updatedReplicas");
        let deadline = format!(
            "no progress within the deadline, {} updated, {ready} ready: {}",
            of(updated, desired, REPLICA),
            stuck.says()
        );
        return Verdict::failed("ProgressDeadlineExceeded", deadline)
            .since(stuck.since())
            .progress(ready, desired);
    }
    let counts = Counts {
        desired,
        ready,
        existing: o.count("status.replicas"),
        updated: Some(o.count("status.updatedReplicas")),
        available: o.count("status.availableReplicas"),
        what: REPLICA,
    };
    counts.judge(o)
}

fn stateful_set(o: &Reader<'_>) -> Verdict {
    let desired = desired(o);
    let ready = o.count("status.readyReplicas");
    let updated = o.count("status.updatedReplicas");
    if let Some(behind) = generation::behind(o) {
        return behind.progress(ready, desired);
    }
    // Before 1.22 there is no counter of available replicas, and without minReadySeconds it says nothing new.
    let available =
        if o.count("spec.minReadySeconds") > 0 { o.count("status.availableReplicas") } else { ready };
    let counts = Counts {
        desired,
        ready,
        existing: o.count("status.replicas"),
        updated: None,
        available,
        what: REPLICA,
    };
    let verdict = counts.judge(o);
    if verdict.state != State::Ready || o.text("spec.updateStrategy.type") == "OnDelete" {
        return verdict;
    }
    let partition = o.count("spec.updateStrategy.rollingUpdate.partition");
    if partition > 0 {
        let due = (desired - partition).max(0);
        return if updated < due {
            let message = format!("{} above the partition updated", of(updated, due, REPLICA));
            Verdict::in_progress("RollingOut", message).progress(ready, desired)
        } else {
            verdict
        };
    }
    let revisions = (o.text("status.currentRevision"), o.text("status.updateRevision"));
    if o.count("status.currentReplicas") != desired || revisions.0 != revisions.1 {
        let message = format!("{} updated", of(updated, desired, REPLICA));
        return Verdict::in_progress("RollingOut", message).progress(ready, desired);
    }
    verdict
}

fn daemon_set(o: &Reader<'_>) -> Verdict {
    let desired = o.count("status.desiredNumberScheduled");
    let ready = o.count("status.numberReady");
    if let Some(behind) = generation::behind(o) {
        // The server fills in zeros: nobody has counted the nodes yet.
        return if desired == 0 { behind } else { behind.progress(ready, desired) };
    }
    if !o.has("status.desiredNumberScheduled") {
        return Verdict::in_progress("NotObserved", "the controller has not counted its nodes yet");
    }
    if desired == 0 {
        return Verdict::ready("NoNodes", "no node should have a Pod of it");
    }
    let on_delete = o.text("spec.updateStrategy.type") == "OnDelete";
    let counts = Counts {
        desired,
        ready,
        // Pods on nodes that should have none are no business of the roll-out.
        existing: desired.min(o.count("status.currentNumberScheduled")),
        updated: (!on_delete).then(|| o.count("status.updatedNumberScheduled")),
        available: o.count("status.numberAvailable"),
        what: "Pod",
    };
    counts.judge(o)
}

fn replica_set(o: &Reader<'_>) -> Verdict {
    let desired = desired(o);
    let ready = o.count("status.readyReplicas");
    if let Some(behind) = generation::behind(o) {
        return behind.progress(ready, desired);
    }
    let counts = Counts {
        desired,
        ready,
        existing: o.count("status.replicas"),
        updated: None,
        available: o.count("status.availableReplicas"),
        what: REPLICA,
    };
    counts.judge(o)
}

/// The replicas of a workload as its controller counts them.
struct Counts {
    desired: i64,
    ready: i64,
    existing: i64,
    /// Those of the newest template, where that matters.
    updated: Option<i64>,
    available: i64,
    /// What one of them is called.
    what: &'static str,
}

const REPLICA: &str = "replica";

impl Counts {
    fn judge(&self, o: &Reader<'_>) -> Verdict {
        let verdict = self.verdict(o).progress(self.ready, self.desired);
        // Deployments say since when enough of them are available, or not.
        let available = o.condition("Available").filter(|available| {
            verdict.since.is_none() && available.is_true() == (verdict.state == State::Ready)
        });
        match available {
            Some(available) => verdict.since(available.since()),
            None => verdict,
        }
    }

    fn verdict(&self, o: &Reader<'_>) -> Verdict {
        let Self { desired, ready, existing, updated, available, what } = *self;
        let of_all = |some| of(some, desired, what);
        if let Some(failure) = o.condition("ReplicaFailure").filter(Condition::is_true) {
            let message = format!("{} ready, and no more can be created: {}", of_all(ready), failure.says());
            return Verdict::failed(failure.reason_or_type().to_owned(), message).since(failure.since());
        }
        if let Some(updated) = updated.filter(|updated| *updated < desired) {
            return Verdict::in_progress("RollingOut", format!("{} updated", of_all(updated)));
        }
        if let Some(old) = updated.map(|updated| existing - updated).filter(|old| *old > 0) {
            return Verdict::in_progress("OldReplicas", format!("{} still there", some(old, "old ", what)));
        }
        if existing > desired {
            let more = some(existing - desired, "", what);
            return Verdict::in_progress("ScalingDown", format!("{more} left over, {desired} wanted"));
        }
        if ready < desired {
            return Verdict::in_progress("ReplicasNotReady", format!("{} ready", of_all(ready)));
        }
        if available < desired {
            return Verdict::in_progress("ReplicasNotAvailable", format!("{} available", of_all(available)));
        }
        match desired {
            0 => Verdict::ready("ScaledToZero", "no replica is wanted, and there is none"),
            _ => Verdict::ready("ReplicasReady", format!("{} ready", of_all(ready))),
        }
    }
}

/// An unset number of replicas is 1.
fn desired(o: &Reader<'_>) -> i64 {
    o.int("spec.replicas").unwrap_or(1).max(0)
}

fn of(some: i64, all: i64, what: &str) -> String {
    format!("{some} of {all} {what}{}", plural(all))
}

/// So many of something.
pub(super) fn some(count: i64, which: &str, what: &str) -> String {
    format!("{count} {which}{what}{}", plural(count))
}

fn plural(count: i64) -> &'static str {
    if count == 1 { "" } else { "s" }
}
