//! What adopting asks of an API server, and what its answers mean.

use std::time::Duration;

use bellwether_engine::{GroupKind, NamespacedName, Served};
use bellwether_kube_io::{
    read::ClusterSnapshot,
    write::{CallError, PATIENCE, call},
};
use bellwether_wire::{ApiError, ErrorClass, Verb};
use kube::Client;
use serde_json::{Value, json};

use super::plan::{Existing, Marks, RequestedObject};

/// Why a request was not answered as hoped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerFailure {
    /// There is no such object, or another one has its name.
    Absent,
    /// There is one of this name already.
    Exists,
    /// It is in another version by now.
    Conflict,
    /// It cannot be tried out: a webhook has to be asked that can only be asked for real.
    Untried,
    /// It was not done, and will not be: in words.
    Refused(String),
    /// It may have been done, or may be another time: in words.
    Unclear(String),
}

/// Whether a change is made, or only tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Real,
    DryRun,
}

/// An API server.
pub(super) struct Server<'a> {
    pub(super) client: &'a Client,
    pub(super) glance: &'a ClusterSnapshot,
}

impl Server<'_> {
    /// What an object has now.
    pub(super) async fn marks(&self, object: &RequestedObject) -> Result<Marks, ServerFailure> {
        let answer = self.ask(Verb::Get, &object.kind, &object.name, Mode::Real, None).await?;
        Marks::of_json(answer).ok_or_else(nonsense)
    }

    /// Changes an object, if it is the one that the patch is for.
    pub(super) async fn patch(
        &self,
        object: &RequestedObject,
        patch: &Value,
        mode: Mode,
    ) -> Result<(), ServerFailure> {
        self.ask(Verb::MergePatch, &object.kind, &object.name, mode, Some(patch)).await.map(drop)
    }

    /// Creates the Application.
    pub(super) async fn create(
        &self,
        name: &NamespacedName,
        manifest: &Value,
        mode: Mode,
    ) -> Result<(), ServerFailure> {
        let kind = GroupKind::own("Application");
        self.ask(Verb::Create, &kind, name, mode, Some(manifest)).await.map(drop)
    }

    /// The Application of this name.
    pub(super) async fn application(&self, name: &NamespacedName) -> Result<Existing, ServerFailure> {
        let kind = GroupKind::own("Application");
        self.ask(Verb::Get, &kind, name, Mode::Real, None).await.map(Existing::of_json)
    }

    /// Deletes an Application and nothing of what it may own.
    pub(super) async fn delete_alone(&self, name: &NamespacedName, uid: &str) -> Result<(), ServerFailure> {
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": { "uid": uid },
            "propagationPolicy": "Orphan",
        });
        let kind = GroupKind::own("Application");
        self.ask(Verb::Delete, &kind, name, Mode::Real, Some(&options)).await.map(drop)
    }

    async fn ask(
        &self,
        verb: Verb,
        kind: &GroupKind,
        name: &NamespacedName,
        mode: Mode,
        body: Option<&Value>,
    ) -> Result<Value, ServerFailure> {
        let served = self.glance.served(kind);
        let served =
            served.ok_or_else(|| ServerFailure::Refused(format!("the cluster does not serve {kind}")))?;
        let is_there = verb != Verb::Create;
        let path = served.path(&kind.group, Some(&name.namespace), is_there.then_some(&*name.name));
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = match mode {
            Mode::Real => verb.request(&path, body),
            Mode::DryRun => verb.dry_run(&path, body),
        };
        match call(self.client, request, PATIENCE).await {
            Ok(answer) => serde_json::from_slice(&answer).map_err(|_| nonsense()),
            Err(CallError::Api(error)) => Err(ServerFailure::of(&error, &right(verb, served, kind, name))),
            Err(CallError::Unsendable(error)) => {
                Err(ServerFailure::Refused(format!("no request can be made of its name: {error}")))
            }
            Err(error) => Err(ServerFailure::Unclear(error.to_string())),
        }
    }
}

fn nonsense() -> ServerFailure {
    ServerFailure::Unclear("its answer makes no sense".to_owned())
}

/// The sentence for somebody who lacks a right.
fn right(verb: Verb, served: &Served, kind: &GroupKind, name: &NamespacedName) -> String {
    let dot = if kind.group.is_empty() { "" } else { "." };
    format!(
        "you may not {} {}{dot}{} in namespace {}: ask for that right",
        verb.name(),
        served.plural,
        kind.group,
        name.namespace
    )
}

impl ServerFailure {
    fn of(error: &ApiError, right: &str) -> Self {
        match error.class {
            ErrorClass::NotFound | ErrorClass::NotServed | ErrorClass::UidMismatch => Self::Absent,
            ErrorClass::AlreadyExists => Self::Exists,
            ErrorClass::Conflict | ErrorClass::FieldConflict => Self::Conflict,
            ErrorClass::Forbidden => Self::Refused(right.to_owned()),
            ErrorClass::DryRunUnsupported => Self::Untried,
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

/// How long to wait before a request is made again for this time.
pub(super) fn pause(again: u32) -> Duration {
    Duration::from_millis(100) * 2_u32.saturating_pow(again.min(5))
}

#[cfg(test)]
mod tests {
    use http::StatusCode;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::absent(404, "NotFound", "not found", ServerFailure::Absent)]
    #[case::there(409, "AlreadyExists", "already exists", ServerFailure::Exists)]
    #[case::another_version(409, "Conflict", "the object has been modified", ServerFailure::Conflict)]
    #[case::another_object(
        409,
        "Conflict",
        "Precondition failed: UID in precondition: a, UID in object meta: b",
        ServerFailure::Absent
    )]
    #[case::invalid(422, "Invalid", "is\ninvalid", ServerFailure::Refused("is invalid".to_owned()))]
    #[case::no_right(
        403, "Forbidden", "pods \"a\" is forbidden: User \"u\" cannot patch", ServerFailure::Refused("ask".to_owned()),
    )]
    #[case::a_policy(403, "Forbidden", "denied by policy", ServerFailure::Refused("denied by policy".to_owned()))]
    #[case::a_webhook(
        400,
        "BadRequest",
        "admission webhook \"w\" does not support dry run",
        ServerFailure::Untried
    )]
    #[case::busy(429, "TooManyRequests", "later", ServerFailure::Unclear("later".to_owned()))]
    #[case::too_large(
        500, "", "etcdserver: request is too large", ServerFailure::Refused("etcdserver: request is too large".to_owned()),
    )]
    #[case::no_words(502, "", "", ServerFailure::Unclear("the API server answers 502 Bad Gateway".to_owned()))]
    fn what_an_answer_means(
        #[case] code: u16,
        #[case] reason: &str,
        #[case] message: &str,
        #[case] expected: ServerFailure,
    ) {
        let error = ApiError::new(StatusCode::from_u16(code).unwrap(), reason, message);
        assert_eq!(ServerFailure::of(&error, "ask"), expected);
    }
}
