//! Argo CD's checks of workloads, close to `kubectl rollout status`.

use super::{Health, HealthStatusCode};
use crate::dialect::go::{self, Typed};

pub(super) fn deployment(o: Typed<'_>) -> go::Result<Health> {
    let conditions = go::conditions(o)?;
    let wanted = o.count("spec.replicas")?;
    let replicas = count(o, "status.replicas")?;
    let updated = count(o, "status.updatedReplicas")?;
    let available = count(o, "status.availableReplicas")?;
    if o.flag("spec.paused")? {
        return Ok(Health::new(HealthStatusCode::Suspended, "Deployment is paused"));
    }
    if is_behind(o)? {
        return Ok(Health::progressing(
            "Waiting for rollout to finish: observed deployment generation less than desired generation",
        ));
    }
    let progressing = conditions.iter().find(|condition| condition.kind == "Progressing");
    if progressing.is_some_and(|condition| condition.reason == "ProgressDeadlineExceeded") {
        let name = o.text("metadata.name")?;
        return Ok(Health::degraded(format!("Deployment {name:?} exceeded its progress deadline")));
    }
    if let Some(wanted) = wanted.filter(|wanted| updated < *wanted) {
        return Ok(rollout(&format!("{updated} out of {wanted} new replicas have been updated")));
    }
    if replicas > updated {
        let old = replicas.wrapping_sub(updated);
        return Ok(rollout(&format!("{old} old replicas are pending termination")));
    }
    if available < updated {
        return Ok(rollout(&format!("{available} of {updated} updated replicas are available")));
    }
    Ok(Health::healthy(""))
}

pub(super) fn replica_set(o: Typed<'_>) -> go::Result<Health> {
    let conditions = go::conditions(o)?;
    let wanted = o.count("spec.replicas")?;
    let available = count(o, "status.availableReplicas")?;
    if is_behind(o)? {
        return Ok(Health::progressing(
            "Waiting for rollout to finish: observed replica set generation less than desired generation",
        ));
    }
    let failure = conditions.iter().find(|condition| condition.kind == "ReplicaFailure");
    if let Some(failure) = failure.filter(|failure| failure.is_true()) {
        return Ok(Health::degraded(failure.message.to_owned()));
    }
    if let Some(wanted) = wanted.filter(|wanted| available < *wanted) {
        return Ok(rollout(&format!("{available} out of {wanted} new replicas are available")));
    }
    Ok(Health::healthy(""))
}

pub(super) fn stateful_set(o: Typed<'_>) -> go::Result<Health> {
    let wanted = o.count("spec.replicas")?;
    let ready = count(o, "status.readyReplicas")?;
    let updated = count(o, "status.updatedReplicas")?;
    let current = count(o, "status.currentReplicas")?;
    let strategy = o.text("spec.updateStrategy.type")?;
    let rolling = o.at("spec.updateStrategy.rollingUpdate")?;
    let partition = rolling.count("partition")?;
    let (old, new) = (o.text("status.currentRevision")?, o.text("status.updateRevision")?);

    if o.int("status.observedGeneration")?.unwrap_or(0) == 0 || is_behind(o)? {
        return Ok(Health::progressing("Waiting for statefulset spec update to be observed..."));
    }
    if let Some(wanted) = wanted.filter(|wanted| ready < *wanted) {
        let missing = wanted.wrapping_sub(ready);
        return Ok(Health::progressing(format!("Waiting for {missing} pods to be ready...")));
    }
    if strategy == "RollingUpdate" && rolling.exists()? {
        let due = wanted.zip(partition).map(|(wanted, partition)| wanted.wrapping_sub(partition));
        return Ok(match due.filter(|due| updated < *due) {
            Some(due) => Health::progressing(format!(
                "Waiting for partitioned roll out to finish: {updated} out of {due} new pods have been updated..."
            )),
            None => Health::healthy(format!(
                "partitioned roll out complete: {updated} new pods have been updated..."
            )),
        });
    }
    if strategy == "OnDelete" {
        return Ok(Health::healthy(format!("statefulset has {ready} ready pods")));
    }
    Ok(if new == old {
        Health::healthy(format!("statefulset rolling update complete {current} pods at revision {old}..."))
    } else {
        Health::progressing(format!(
            "waiting for statefulset rolling update to complete {updated} pods at revision {new}..."
        ))
    })
}

pub(super) fn daemon_set(o: Typed<'_>) -> go::Result<Health> {
    let wanted = count(o, "status.desiredNumberScheduled")?;
    let updated = count(o, "status.updatedNumberScheduled")?;
    let available = count(o, "status.numberAvailable")?;
    let on_delete = o.text("spec.updateStrategy.type")? == "OnDelete";
    let name = o.text("metadata.name")?;
    if is_behind(o)? {
        return Ok(Health::progressing(
            "Waiting for rollout to finish: observed daemon set generation less than desired generation",
        ));
    }
    if on_delete {
        let message = format!("daemon set {updated} out of {wanted} new pods have been updated");
        return Ok(Health::healthy(message));
    }
    let waiting = |what: String| {
        Health::progressing(format!("Waiting for daemon set {name:?} rollout to finish: {what}..."))
    };
    if updated < wanted {
        return Ok(waiting(format!("{updated} out of {wanted} new pods have been updated")));
    }
    if available < wanted {
        return Ok(waiting(format!("{available} of {wanted} updated pods are available")));
    }
    Ok(Health::healthy(""))
}

/// Argo CD ignores the status of the conditions Failed and Complete. A suspended Job has no message.
pub(super) fn job(o: Typed<'_>) -> go::Result<Health> {
    let mut ended = None;
    let mut failure = None;
    let mut suspended = false;
    for condition in go::conditions(o)? {
        match condition.kind {
            "Failed" => failure = Some(condition.message),
            "Complete" => ended = Some(condition.message),
            "Suspended" => {
                ended = Some(condition.message);
                suspended |= condition.is_true();
            }
            _ => {}
        }
    }
    Ok(match (failure, ended) {
        (Some(failure), _) => Health::degraded(failure.to_owned()),
        (None, Some(_)) if suspended => Health::new(HealthStatusCode::Suspended, ""),
        (None, Some(message)) => Health::healthy(message.to_owned()),
        (None, None) => Health::progressing(""),
    })
}

fn is_behind(o: Typed<'_>) -> go::Result<bool> {
    Ok(o.int("metadata.generation")?.unwrap_or(0) > o.int("status.observedGeneration")?.unwrap_or(0))
}

fn rollout(what: &str) -> Health {
    Health::progressing(format!("Waiting for rollout to finish: {what}..."))
}

fn count(o: Typed<'_>, path: &str) -> go::Result<i32> {
    Ok(o.count(path)?.unwrap_or(0))
}
