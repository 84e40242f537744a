//! Argo CD: its built-in health checks, as of release 3.6.
//!
//! Argo CD has an opinion only on the kinds in [`CHECKS`]. For others it runs a script in Lua, of a user or its own: those
//! are no part of this.

mod others;
mod pod;
#[cfg(test)]
mod tests;
mod workloads;

use std::borrow::Cow;

use bellwether_model::{Object, Value};
use serde::Serialize;

use super::go::{self, Typed};

/// What Argo CD says of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// The status.
    pub status: Status,
    /// Why; often empty.
    pub message: Cow<'static, str>,
}

/// The words of Argo CD for the health of an object that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum Status {
    /// It is well.
    Healthy,
    /// It was suspended or paused on purpose.
    Suspended,
    /// It is not yet well, and may become so.
    Progressing,
    /// It has failed, or takes too long.
    Degraded,
    /// Argo CD cannot tell; the message may say why.
    Unknown,
}

/// What Argo CD knows of a kind.
struct Check {
    group: &'static str,
    kind: &'static str,
    /// The versions that it can decode; none if it does not care.
    versions: &'static [&'static str],
    /// What it calls the kind when it complains.
    name: &'static str,
    judge: fn(Typed<'_>) -> go::Result<Health>,
}

#[rustfmt::skip]
const CHECKS: &[Check] = &[
    Check { group: "", kind: "Pod", versions: &["v1"], name: "Pod", judge: pod::pod },
    Check { group: "", kind: "Service", versions: &["v1"], name: "Service", judge: others::service },
    Check { group: "", kind: "PersistentVolumeClaim", versions: &["v1"], name: "PersistentVolumeClaim", judge: others::claim },
    Check { group: "apps", kind: "Deployment", versions: &["v1"], name: "Deployment", judge: workloads::deployment },
    Check { group: "apps", kind: "ReplicaSet", versions: &["v1"], name: "ReplicaSet", judge: workloads::replica_set },
    Check { group: "apps", kind: "StatefulSet", versions: &["v1"], name: "StatefulSet", judge: workloads::stateful_set },
    Check { group: "apps", kind: "DaemonSet", versions: &["v1"], name: "DaemonSet", judge: workloads::daemon_set },
    Check { group: "batch", kind: "Job", versions: &["v1"], name: "Job", judge: workloads::job },
    Check { group: "autoscaling", kind: "HorizontalPodAutoscaler", versions: &["v1", "v2"], name: "HPA", judge: others::autoscaler },
    Check { group: "apiregistration.k8s.io", kind: "APIService", versions: &["v1", "v1beta1"], name: "APIService", judge: others::api_service },
    Check { group: "networking.k8s.io", kind: "Ingress", versions: &[], name: "Ingress", judge: others::ingress },
    Check { group: "extensions", kind: "Ingress", versions: &[], name: "Ingress", judge: others::ingress },
    Check { group: "argoproj.io", kind: "Workflow", versions: &[], name: "Workflow", judge: others::workflow },
];

/// Says what Argo CD says of an object; nothing if it has no opinion.
///
/// Argo CD decodes an object into its type and gives up on a field of a wrong type: `Unknown`, with the text of the error.
/// So does this, for the fields that checks look at, the conditions and the annotations: from a cluster such a field never
/// comes, but in a file it is easy to forget the quotes of an annotation.
pub fn assess(object: &Object<'_>) -> Option<Health> {
    if object.time("metadata.deletionTimestamp").is_some() && !is_hook_at_work(object) {
        return Some(Health::progressing("Pending deletion"));
    }
    let (group, version, kind) = (object.group(), object.version(), object.kind());
    let check = CHECKS.iter().find(|check| check.group == group && check.kind == kind)?;
    let name = check.name;
    if !check.versions.is_empty() && !check.versions.contains(&version) {
        return Some(Health::unknown(format!("unsupported {name} GVK: {group}/{version}, Kind={kind}")));
    }
    let typed = Typed::new(object);
    let decoded = if check.versions.is_empty() { Ok(()) } else { decode(typed) };
    Some(decoded.and_then(|()| (check.judge)(typed)).unwrap_or_else(|error| {
        Health::unknown(format!("failed to convert unstructured {name} to typed: {error}"))
    }))
}

/// Fails on what all kinds have in common.
fn decode(o: Typed<'_>) -> go::Result<()> {
    o.at("metadata.annotations")?.all_text()?;
    o.at("metadata.labels")?.all_text()?;
    go::conditions(o).map(drop)
}

/// Whether this is a hook that Argo CD itself keeps from going until it has seen how it ended.
fn is_hook_at_work(object: &Object<'_>) -> bool {
    let finalizers = object.at("metadata.finalizers").and_then(Value::as_list).unwrap_or_default();
    finalizers.iter().any(|finalizer| finalizer.as_text() == Some("argocd.argoproj.io/hook-finalizer"))
}

impl Health {
    fn new(status: Status, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, message: message.into() }
    }

    fn healthy(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Status::Healthy, message)
    }

    fn progressing(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Status::Progressing, message)
    }

    fn degraded(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Status::Degraded, message)
    }

    fn unknown(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Status::Unknown, message)
    }
}
