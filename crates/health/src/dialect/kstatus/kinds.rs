//! The rules of kstatus for particular kinds.

use std::borrow::Cow;

use bellwether_model::{Object, Value};
use jiff::{SignedDuration, Timestamp};

use super::{Assessment, generation, observed_generation};
use crate::dialect::go::{self, Typed};

/// `None` for a kind without a rule.
pub(super) fn evaluate(o: &Object<'_>, now: Timestamp) -> go::Result<Option<Assessment>> {
    Ok(Some(match (o.group(), o.kind()) {
        ("", "ConfigMap" | "Secret") | ("batch", "CronJob") => {
            Assessment::current("Resource is always ready")
        }
        ("", "Service") => service(o),
        ("", "PersistentVolumeClaim") => claim(o),
        ("", "Pod") => pod(o, now)?,
        ("apps" | "extensions", "Deployment") => deployment(o)?,
        ("apps" | "extensions", "ReplicaSet") => replica_set(o)?,
        ("apps" | "extensions", "DaemonSet") => daemon_set(o)?,
        ("apps", "StatefulSet") => stateful_set(o),
        ("batch", "Job") => job(o)?,
        // The generation was checked before.
        ("policy", "PodDisruptionBudget") => Assessment::current("AllowedDisruptions has been computed."),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => resource_definition(o)?,
        _ => return Ok(None),
    }))
}

fn service(o: &Object<'_>) -> Assessment {
    if text(o, "spec.type") == Some("LoadBalancer")
        && text(o, "spec.clusterIP").unwrap_or_default().is_empty()
    {
        return Assessment::in_progress("NoIPAssigned", "ClusterIP not set. Service type: LoadBalancer");
    }
    Assessment::current("Service is ready")
}

fn claim(o: &Object<'_>) -> Assessment {
    match text(o, "status.phase").unwrap_or("unknown") {
        "Bound" => Assessment::current("PVC is Bound"),
        phase => Assessment::in_progress("NotBound", format!("PVC is not Bound. phase: {phase}")),
    }
}

/// An unschedulable Pod younger than this is InProgress.
const SCHEDULE_WINDOW: SignedDuration = SignedDuration::from_secs(15);

fn pod(o: &Object<'_>, now: Timestamp) -> go::Result<Assessment> {
    let conditions = go::conditions(Typed::new(o))?;
    match text(o, "status.phase").unwrap_or_default() {
        "Succeeded" => Ok(Assessment::current("Pod has completed successfully")),
        "Failed" => Ok(Assessment::current("Pod has completed, but not successfully")),
        "Running" => {
            if conditions.iter().any(|condition| condition.kind == "Ready" && condition.is_true()) {
                return Ok(Assessment::current("Pod is Ready"));
            }
            let looping = crash_looping(o)?;
            Ok(if looping.is_empty() {
                Assessment::in_progress("PodRunningNotReady", "Pod is running but is not Ready")
            } else {
                let names = looping.join(",");
                Assessment::failed("ContainerCrashLooping", format!("Containers in CrashLoop state: {names}"))
            })
        }
        "Pending" => {
            let unscheduled =
                conditions.iter().find(|condition| condition.kind == "PodScheduled" && condition.is_false());
            if unscheduled.is_none_or(|condition| condition.reason != "Unschedulable") {
                return Ok(Assessment::in_progress("PodPending", "Pod is in the Pending phase"));
            }
            let created = o.time("metadata.creationTimestamp");
            Ok(if created.is_some_and(|created| now.duration_since(created) < SCHEDULE_WINDOW) {
                Assessment::in_progress("PodNotScheduled", "Pod has not been scheduled")
            } else {
                Assessment::failed("PodUnschedulable", "Pod could not be scheduled")
            })
        }
        "" => Ok(Assessment::in_progress("PodNotObserved", "Pod phase not available")),
        phase => Err(format!("unknown phase {phase}")),
    }
}

/// The names of containers in CrashLoopBackOff. kstatus panics on a malformed container; this ignores it.
fn crash_looping<'o>(pod: &'o Object<'_>) -> go::Result<Vec<&'o str>> {
    let containers = go::nested_list(pod, "status.containerStatuses")?;
    let looping = |container: &&Value<'_>| {
        container.at("state.waiting.reason").and_then(Value::as_text) == Some("CrashLoopBackOff")
    };
    Ok(containers.iter().filter(looping).filter_map(|container| container.get("name")?.as_text()).collect())
}

fn deployment(o: &Object<'_>) -> go::Result<Assessment> {
    // Without a deadline the controller sets no condition Progressing. The maximum means no deadline.
    let mut progressing = int(o, "spec.progressDeadlineSeconds", i32::MAX.into()) == i64::from(i32::MAX);
    let mut available = false;
    for condition in go::conditions(Typed::new(o))? {
        match condition.kind {
            "Progressing" if condition.reason == "ProgressDeadlineExceeded" => {
                let mut failed =
                    Assessment::failed(condition.reason.to_owned(), condition.message.to_owned());
                failed.message = Cow::Borrowed("Progress deadline exceeded");
                return Ok(failed);
            }
            "Progressing" => {
                progressing |= condition.is_true() && condition.reason == "NewReplicaSetAvailable";
            }
            "Available" => available |= condition.is_true(),
            _ => {}
        }
    }
    let wanted = int(o, "spec.replicas", 1);
    let replicas = int(o, "status.replicas", 0);
    let updated = int(o, "status.updatedReplicas", 0);
    let behind = too_few("LessReplicas", "Replicas", replicas, wanted)
        .or_else(|| too_few("LessUpdated", "Updated", updated, wanted))
        .or_else(|| too_many(replicas, wanted))
        .or_else(|| too_few("LessAvailable", "Available", int(o, "status.availableReplicas", 0), updated))
        .or_else(|| too_few("LessReady", "Ready", int(o, "status.readyReplicas", 0), wanted));
    Ok(match behind {
        Some(behind) => behind,
        None if !progressing => Assessment::in_progress("ReplicaSetNotAvailable", "ReplicaSet not Available"),
        None if !available => Assessment::in_progress("DeploymentNotAvailable", "Deployment not Available"),
        None => Assessment::current(format!("Deployment is available. Replicas: {replicas}")),
    })
}

fn replica_set(o: &Object<'_>) -> go::Result<Assessment> {
    let conditions = go::conditions(Typed::new(o))?;
    if conditions.iter().any(|condition| condition.kind == "ReplicaFailure" && condition.is_true()) {
        return Ok(Assessment::in_progress("ReplicaFailure", "Replica Failure condition. Check Pods"));
    }
    let wanted = int(o, "spec.replicas", 1);
    let replicas = int(o, "status.replicas", 0);
    let behind = too_few("LessLabelled", "Labelled", int(o, "status.fullyLabeledReplicas", 0), wanted)
        .or_else(|| too_few("LessAvailable", "Available", int(o, "status.availableReplicas", 0), wanted))
        .or_else(|| too_few("LessReady", "Ready", int(o, "status.readyReplicas", 0), wanted))
        .or_else(|| too_many(replicas, wanted));
    Ok(behind
        .unwrap_or_else(|| Assessment::current(format!("ReplicaSet is available. Replicas: {replicas}"))))
}

fn stateful_set(o: &Object<'_>) -> Assessment {
    if text(o, "spec.updateStrategy.type") == Some("OnDelete") {
        return Assessment::current("StatefulSet is using the ondelete update strategy");
    }
    let wanted = int(o, "spec.replicas", 1);
    let replicas = int(o, "status.replicas", 0);
    let behind = too_few("LessReplicas", "Replicas", replicas, wanted)
        .or_else(|| too_few("LessReady", "Ready", int(o, "status.readyReplicas", 0), wanted))
        .or_else(|| too_many(replicas, wanted));
    if let Some(behind) = behind {
        return behind;
    }
    let partition = int(o, "spec.updateStrategy.rollingUpdate.partition", -1);
    if partition != -1 {
        let updated = int(o, "status.updatedReplicas", 0);
        let behind = too_few("PartitionRollout", "updated", updated, wanted.wrapping_sub(partition));
        let complete = || Assessment::current(format!("Partition rollout complete. updated: {updated}"));
        return behind.unwrap_or_else(complete);
    }
    if let Some(behind) = too_few("LessCurrent", "current", int(o, "status.currentReplicas", 0), wanted) {
        return behind;
    }
    let revision = |path| text(o, path).unwrap_or_default();
    if revision("status.currentRevision") != revision("status.updateRevision") {
        let message = "Waiting for updated revision to match current";
        return Assessment::in_progress("RevisionMismatch", message);
    }
    all_scheduled(replicas)
}

fn daemon_set(o: &Object<'_>) -> go::Result<Assessment> {
    // Unlike for other kinds, an absent generation is InProgress.
    let kind = o.kind();
    if generation(o)?.is_none() {
        return Ok(Assessment::in_progress("NoGeneration", format!("{kind} metadata.generation not found")));
    }
    if observed_generation(o)?.is_none() {
        let message = format!("{kind} status.observedGeneration not found");
        return Ok(Assessment::in_progress("NoObservedGeneration", message));
    }
    let wanted = int(o, "status.desiredNumberScheduled", -1);
    if wanted == -1 {
        return Ok(Assessment::in_progress("NoDesiredNumber", "Missing .status.desiredNumberScheduled"));
    }
    let behind = too_few("LessCurrent", "Current", int(o, "status.currentNumberScheduled", 0), wanted)
        .or_else(|| too_few("LessUpdated", "Updated", int(o, "status.updatedNumberScheduled", 0), wanted))
        .or_else(|| too_few("LessAvailable", "Available", int(o, "status.numberAvailable", 0), wanted))
        .or_else(|| too_few("LessReady", "Ready", int(o, "status.numberReady", 0), wanted));
    Ok(behind.unwrap_or_else(|| all_scheduled(wanted)))
}

fn job(o: &Object<'_>) -> go::Result<Assessment> {
    let completions = int(o, "spec.completions", int(o, "spec.parallelism", 1));
    let succeeded = int(o, "status.succeeded", 0);
    let failed = int(o, "status.failed", 0);
    for condition in go::conditions(Typed::new(o))?.iter().filter(|condition| condition.is_true()) {
        match condition.kind {
            "Complete" => {
                return Ok(Assessment::current(format!(
                    "Job Completed. succeeded: {succeeded}/{completions}"
                )));
            }
            "Failed" => {
                return Ok(Assessment::failed(
                    "JobFailed",
                    format!("Job Failed. failed: {failed}/{completions}"),
                ));
            }
            "Suspended" if is_suspended(o) => return Ok(Assessment::current("Job is suspended")),
            _ => {}
        }
    }
    if text(o, "status.startTime").unwrap_or_default().is_empty() {
        return Ok(Assessment::in_progress("JobNotStarted", "Job not started"));
    }
    let active = int(o, "status.active", 0);
    Ok(Assessment::current(format!(
        "Job in progress. success:{succeeded}, active: {active}, failed: {failed}"
    )))
}

/// Newer than the last release of kstatus and the fork in Flux and Helm. There, a suspended Job counts as not
/// started. Flux's own check of Jobs agrees with the newer rule.
fn is_suspended(job: &Object<'_>) -> bool {
    job.at("spec.suspend").and_then(Value::as_bool) == Some(true)
}

fn resource_definition(o: &Object<'_>) -> go::Result<Assessment> {
    for condition in go::conditions(Typed::new(o))? {
        let refused = match condition.kind {
            "NamesAccepted" => condition.is_false(),
            "Established" if condition.is_true() => return Ok(Assessment::current("CRD is established")),
            "Established" => condition.is_false() && condition.reason != "Installing",
            _ => false,
        };
        if refused {
            return Ok(Assessment::failed(condition.reason.to_owned(), condition.message.to_owned()));
        }
    }
    Ok(Assessment::in_progress("Installing", "Install in progress"))
}

fn too_few(reason: &'static str, what: &str, there: i64, wanted: i64) -> Option<Assessment> {
    (there < wanted).then(|| Assessment::in_progress(reason, format!("{what}: {there}/{wanted}")))
}

fn too_many(there: i64, wanted: i64) -> Option<Assessment> {
    (there > wanted).then(|| {
        let extra = there.wrapping_sub(wanted);
        Assessment::in_progress("ExtraPods", format!("Pending termination: {extra}"))
    })
}

fn all_scheduled(replicas: i64) -> Assessment {
    Assessment::current(format!("All replicas scheduled as expected. Replicas: {replicas}"))
}

/// A wrong type counts as absent.
fn text<'o>(o: &'o Object<'_>, path: &str) -> Option<&'o str> {
    o.at(path).and_then(Value::as_text)
}

/// The default also for a wrong type.
fn int(o: &Object<'_>, path: &str, otherwise: i64) -> i64 {
    o.at(path).and_then(Value::as_int).unwrap_or(otherwise)
}
