//! The built-in health checks of Argo CD, as of release 3.6.
//!
//! Only for the kinds in [`CHECKS`]. For other kinds Argo CD runs Lua scripts, which are not part of this
//! module.

mod others;
mod pod;
#[cfg(test)]
mod tests;
mod workloads;

use std::borrow::Cow;

use bellwether_model::{Object, Value};
use serde::Serialize;

use super::go::{self, Typed};

/// The health of an object in Argo CD.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Health {
    /// One of the statuses for existing objects.
    pub status: HealthStatusCode,
    /// Often empty.
    pub message: Cow<'static, str>,
}

/// Argo CD's `HealthStatusCode`, without `Missing`: the object exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum HealthStatusCode {
    /// Works as specified.
    Healthy,
    /// Suspended or paused by a user.
    Suspended,
    /// Not healthy yet, may become healthy.
    Progressing,
    /// Failed, or exceeded a deadline.
    Degraded,
    /// The check failed; the message may have the error.
    Unknown,
}

/// A health check for one kind.
struct Check {
    group: &'static str,
    kind: &'static str,
    /// Supported versions. Empty if Argo CD does not decode the object into a type.
    versions: &'static [&'static str],
    /// The name in error messages.
    name: &'static str,
    evaluate: fn(Typed<'_>) -> go::Result<Health>,
}

#[rustfmt::skip]
const CHECKS: &[Check] = &[
    Check { group: "", kind: "Pod", versions: &["v1"], name: "Pod", evaluate: pod::pod },
    Check { group: "", kind: "Service", versions: &["v1"], name: "Service", evaluate: others::service },
    Check { group: "", kind: "PersistentVolumeClaim", versions: &["v1"], name: "PersistentVolumeClaim", evaluate: others::claim },
    Check { group: "apps", kind: "Deployment", versions: &["v1"], name: "Deployment", evaluate: workloads::deployment },
    Check { group: "apps", kind: "ReplicaSet", versions: &["v1"], name: "ReplicaSet", evaluate: workloads::replica_set },
    Check { group: "apps", kind: "StatefulSet", versions: &["v1"], name: "StatefulSet", evaluate: workloads::stateful_set },
    Check { group: "apps", kind: "DaemonSet", versions: &["v1"], name: "DaemonSet", evaluate: workloads::daemon_set },
    Check { group: "batch", kind: "Job", versions: &["v1"], name: "Job", evaluate: workloads::job },
    Check { group: "autoscaling", kind: "HorizontalPodAutoscaler", versions: &["v1", "v2"], name: "HPA", evaluate: others::autoscaler },
    Check { group: "apiregistration.k8s.io", kind: "APIService", versions: &["v1", "v1beta1"], name: "APIService", evaluate: others::api_service },
    Check { group: "networking.k8s.io", kind: "Ingress", versions: &[], name: "Ingress", evaluate: others::ingress },
    Check { group: "extensions", kind: "Ingress", versions: &[], name: "Ingress", evaluate: others::ingress },
    Check { group: "argoproj.io", kind: "Workflow", versions: &[], name: "Workflow", evaluate: others::workflow },
];

/// `None` for a kind without a check.
///
/// Argo CD decodes an object into its Go type. A field of a wrong type makes it `Unknown`, with the error as
/// message. This reproduces that for annotations, labels, conditions and the fields that checks read. An API
/// server rejects such fields, but files may have them, for example an annotation without quotes.
pub fn assess(object: &Object<'_>) -> Option<Health> {
    if object.time("metadata.deletionTimestamp").is_some() && !has_hook_finalizer(object) {
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
    Some(decoded.and_then(|()| (check.evaluate)(typed)).unwrap_or_else(|error| {
        Health::unknown(format!("failed to convert unstructured {name} to typed: {error}"))
    }))
}

/// Decodes the fields that all kinds have, for the errors.
fn decode(o: Typed<'_>) -> go::Result<()> {
    o.at("metadata.annotations")?.all_text()?;
    o.at("metadata.labels")?.all_text()?;
    go::conditions(o).map(drop)
}

/// Whether Argo CD's hook finalizer keeps the object until its result is known.
fn has_hook_finalizer(object: &Object<'_>) -> bool {
    let finalizers = object.at("metadata.finalizers").and_then(Value::as_list).unwrap_or_default();
    finalizers.iter().any(|finalizer| finalizer.as_text() == Some("argocd.argoproj.io/hook-finalizer"))
}

impl Health {
    fn new(status: HealthStatusCode, message: impl Into<Cow<'static, str>>) -> Self {
        Self { status, message: message.into() }
    }

    fn healthy(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(HealthStatusCode::Healthy, message)
    }

    fn progressing(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(HealthStatusCode::Progressing, message)
    }

    fn degraded(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(HealthStatusCode::Degraded, message)
    }

    fn unknown(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(HealthStatusCode::Unknown, message)
    }
}
