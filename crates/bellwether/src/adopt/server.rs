//! The requests of `bellwether adopt`, and what their errors mean.

use std::time::Duration;

use bellwether_engine::{GroupKind, NamespacedName, ServedResource};
use bellwether_inspect::observe::denied_user;
use bellwether_kube_io::{
    read::ClusterSnapshot,
    write::{CallError, REQUEST_TIMEOUT, call},
};
use bellwether_wire::{ApiError, ErrorClass, Verb};
use kube::Client;
use serde_json::{Value, json};

use super::plan::{Existing, Metadata, RequestedObject};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerFailure {
    /// The object does not exist, or another one has its name by now.
    Absent,
    Exists,
    Conflict,
    /// A webhook does not support dry runs.
    DryRunUnsupported,
    /// The change was not made, and a retry will not help.
    Refused(String),
    /// The change may have been made, or a retry may help.
    Unclear(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Real,
    DryRun,
}

pub(super) struct Server<'a> {
    pub(super) client: &'a Client,
    pub(super) snapshot: &'a ClusterSnapshot,
}

impl Server<'_> {
    pub(super) async fn metadata(&self, object: &RequestedObject) -> Result<Metadata, ServerFailure> {
        let response = self.send(Verb::Get, &object.kind, &object.name, Mode::Real, None).await?;
        Metadata::of_json(response).ok_or_else(invalid_response)
    }

    /// The patch has the UID, so that it never changes another object of the same name.
    pub(super) async fn patch(
        &self,
        object: &RequestedObject,
        patch: &Value,
        mode: Mode,
    ) -> Result<(), ServerFailure> {
        self.send(Verb::MergePatch, &object.kind, &object.name, mode, Some(patch)).await.map(drop)
    }

    pub(super) async fn create(
        &self,
        name: &NamespacedName,
        manifest: &Value,
        mode: Mode,
    ) -> Result<(), ServerFailure> {
        let kind = GroupKind::bellwether("Application");
        self.send(Verb::Create, &kind, name, mode, Some(manifest)).await.map(drop)
    }

    pub(super) async fn application(&self, name: &NamespacedName) -> Result<Existing, ServerFailure> {
        let kind = GroupKind::bellwether("Application");
        self.send(Verb::Get, &kind, name, Mode::Real, None).await.map(Existing::of_json)
    }

    /// Deletes an Application, and orphans the objects that it owns.
    pub(super) async fn delete_alone(&self, name: &NamespacedName, uid: &str) -> Result<(), ServerFailure> {
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": { "uid": uid },
            "propagationPolicy": "Orphan",
        });
        let kind = GroupKind::bellwether("Application");
        self.send(Verb::Delete, &kind, name, Mode::Real, Some(&options)).await.map(drop)
    }

    async fn send(
        &self,
        verb: Verb,
        kind: &GroupKind,
        name: &NamespacedName,
        mode: Mode,
        body: Option<&Value>,
    ) -> Result<Value, ServerFailure> {
        let served = self.snapshot.served(kind);
        let served =
            served.ok_or_else(|| ServerFailure::Refused(format!("kind {kind} not found in the cluster")))?;
        let has_name = verb != Verb::Create;
        let path = served.path(&kind.group, Some(&name.namespace), has_name.then_some(&*name.name));
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = match mode {
            Mode::Real => verb.request(&path, body),
            Mode::DryRun => verb.dry_run(&path, body),
        };
        match call(self.client, request, REQUEST_TIMEOUT).await {
            Ok(response) => serde_json::from_slice(&response).map_err(|_| invalid_response()),
            Err(CallError::Api(error)) => Err(ServerFailure::of(&error, &right(verb, served, kind, name))),
            Err(CallError::InvalidRequest(error)) => {
                Err(ServerFailure::Refused(format!("invalid name: {error}")))
            }
            Err(error) => Err(ServerFailure::Unclear(error.to_string())),
        }
    }
}

fn invalid_response() -> ServerFailure {
    ServerFailure::Unclear("invalid response from the API server".to_owned())
}

/// `patch deployments.apps in namespace shop`
fn right(verb: Verb, served: &ServedResource, kind: &GroupKind, name: &NamespacedName) -> String {
    let dot = if kind.group.is_empty() { "" } else { "." };
    format!("{} {}{dot}{} in namespace {}", verb.name(), served.plural, kind.group, name.namespace)
}

impl ServerFailure {
    fn of(error: &ApiError, right: &str) -> Self {
        match error.class {
            ErrorClass::NotFound | ErrorClass::NotServed | ErrorClass::UidMismatch => Self::Absent,
            ErrorClass::AlreadyExists => Self::Exists,
            ErrorClass::Conflict | ErrorClass::FieldConflict => Self::Conflict,
            ErrorClass::Forbidden => {
                Self::Refused(format!("{} cannot {right}", denied_user(&error.to_string())))
            }
            ErrorClass::DryRunUnsupported => Self::DryRunUnsupported,
            ErrorClass::Busy | ErrorClass::ServerError => Self::Unclear(error.to_string()),
            ErrorClass::Invalid
            | ErrorClass::Unauthorized
            | ErrorClass::AdmissionDenied
            | ErrorClass::NamespaceTerminating
            | ErrorClass::Expired
            | ErrorClass::TooLarge
            | ErrorClass::Other => Self::Refused(error.to_string()),
        }
    }
}

/// The exponential backoff before a retry.
pub(super) fn backoff(retry: u32) -> Duration {
    Duration::from_millis(100) * 2_u32.saturating_pow(retry.min(5))
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::absent(404, "NotFound", "not found", ServerFailure::Absent)]
    #[case::exists(409, "AlreadyExists", "already exists", ServerFailure::Exists)]
    #[case::another_version(409, "Conflict", "the object has been modified", ServerFailure::Conflict)]
    #[case::another_object(
        409,
        "Conflict",
        "Precondition failed: UID in precondition: a, UID in object meta: b",
        ServerFailure::Absent
    )]
    #[case::invalid(422, "Invalid", "is\ninvalid", ServerFailure::Refused("is invalid".to_owned()))]
    #[case::forbidden(
        403, "Forbidden", "pods \"a\" is forbidden: User \"u\" cannot patch", ServerFailure::Refused("user \"u\" cannot patch".to_owned()),
    )]
    #[case::a_policy(403, "Forbidden", "denied by policy", ServerFailure::Refused("denied by policy".to_owned()))]
    #[case::a_webhook(
        400,
        "BadRequest",
        "admission webhook \"w\" does not support dry run",
        ServerFailure::DryRunUnsupported
    )]
    #[case::busy(429, "TooManyRequests", "later", ServerFailure::Unclear("later".to_owned()))]
    #[case::too_large(
        500, "", "etcdserver: request is too large", ServerFailure::Refused("etcdserver: request is too large".to_owned()),
    )]
    #[case::no_message(502, "", "", ServerFailure::Unclear("API server returned 502 Bad Gateway".to_owned()))]
    fn failures_by_status_and_reason(
        #[case] code: u16,
        #[case] reason: &str,
        #[case] message: &str,
        #[case] expected: ServerFailure,
    ) {
        let error = ApiError::new(StatusCode::from_u16(code).unwrap(), reason, message);
        assert_eq!(ServerFailure::of(&error, "patch"), expected);
    }
}
