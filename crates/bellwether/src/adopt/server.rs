//! What adopting asks of an API server, and what its answers mean.

use std::time::Duration;

use bellwether_engine::{Kind, Name, Served};
use bellwether_kube_io::{
    read::Glance,
    write::{FIELD_MANAGER, PATIENCE},
};
use bellwether_model::text::one_line;
use http::{
    Method, Request,
    header::{ACCEPT, CONTENT_TYPE},
};
use kube::Client;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::plan::{Existing, Marks, Sought};

/// How much of what a server says is passed on.
const LONGEST: usize = 512;

/// Of an object that was changed only the metadata are wanted; who cannot leave the rest out may send it.
const ONLY_METADATA: &str =
    "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;q=0.9";

const JSON: &str = "application/json";
const MERGE_PATCH: &str = "application/merge-patch+json";

/// Why a request was not answered as hoped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
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
    pub(super) glance: &'a Glance,
}

impl Server<'_> {
    /// What an object has now.
    pub(super) async fn marks(&self, object: &Sought) -> Result<Marks, Failure> {
        let answer = self.ask(Method::GET, &object.kind, &object.name, "", None).await?;
        Marks::of_json(answer).ok_or_else(|| Failure::Unclear("its answer makes no sense".to_owned()))
    }

    /// Changes an object, if it is the one that the patch is for.
    pub(super) async fn patch(&self, object: &Sought, patch: &Value, mode: Mode) -> Result<(), Failure> {
        let query = mode.query();
        self.ask(Method::PATCH, &object.kind, &object.name, &query, Some(patch)).await.map(drop)
    }

    /// Creates the Application.
    pub(super) async fn create(&self, name: &Name, manifest: &Value, mode: Mode) -> Result<(), Failure> {
        let kind = Kind::own("Application");
        self.ask(Method::POST, &kind, name, &mode.query(), Some(manifest)).await.map(drop)
    }

    /// The Application of this name.
    pub(super) async fn application(&self, name: &Name) -> Result<Existing, Failure> {
        let kind = Kind::own("Application");
        self.ask(Method::GET, &kind, name, "", None).await.map(Existing::of_json)
    }

    /// Deletes an Application and nothing of what it may own.
    pub(super) async fn delete_alone(&self, name: &Name, uid: &str) -> Result<(), Failure> {
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": { "uid": uid },
            "propagationPolicy": "Orphan",
        });
        let kind = Kind::own("Application");
        self.ask(Method::DELETE, &kind, name, "", Some(&options)).await.map(drop)
    }

    async fn ask(
        &self,
        method: Method,
        kind: &Kind,
        name: &Name,
        query: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let served = self.glance.served(kind);
        let served = served.ok_or_else(|| Failure::Refused(format!("the cluster does not serve {kind}")))?;
        let is_there = method != Method::POST;
        let path = served.path(&kind.group, Some(&name.namespace), is_there.then_some(&*name.name));
        let content = if method == Method::PATCH { MERGE_PATCH } else { JSON };
        // What was read is wanted whole, and what is told of a deletion is no object.
        let accept = if matches!(method, Method::PATCH | Method::POST) { ONLY_METADATA } else { JSON };
        let request = Request::builder()
            .method(&method)
            .uri(path + query)
            .header(CONTENT_TYPE, content)
            .header(ACCEPT, accept)
            .body(body.map(|body| body.to_string().into_bytes()).unwrap_or_default())
            .map_err(|error| Failure::Refused(format!("no request can be made of its name: {error}")))?;
        match timeout(PATIENCE, self.client.request(request)).await {
            Ok(answer) => answer.map_err(|error| meaning(&error, &right(&method, served, kind, name))),
            Err(_) => Err(Failure::Unclear(format!("the API server gave no answer within {PATIENCE:?}"))),
        }
    }
}

impl Mode {
    /// Who writes, and whether.
    fn query(self) -> String {
        match self {
            Self::Real => format!("?fieldManager={FIELD_MANAGER}"),
            Self::DryRun => format!("?fieldManager={FIELD_MANAGER}&dryRun=All"),
        }
    }
}

/// The sentence for somebody who lacks a right.
fn right(method: &Method, served: &Served, kind: &Kind, name: &Name) -> String {
    let verb = match *method {
        Method::GET => "get",
        Method::POST => "create",
        Method::PATCH => "patch",
        _ => "delete",
    };
    let dot = if kind.group.is_empty() { "" } else { "." };
    format!(
        "you may not {verb} {}{dot}{} in namespace {}: ask for that right",
        served.plural, kind.group, name.namespace
    )
}

fn meaning(error: &kube::Error, right: &str) -> Failure {
    let kube::Error::Api(status) = error else {
        let mut root: &dyn std::error::Error = error;
        while let Some(source) = root.source() {
            root = source;
        }
        return Failure::Unclear(one_line(root.to_string(), LONGEST).into());
    };
    let said = || match one_line(status.message.trim(), LONGEST) {
        said if said.is_empty() => format!("the API server answers {}", status.code),
        said => said.into(),
    };
    let is_about_another =
        status.details.iter().flat_map(|details| &details.causes).any(|cause| cause.field == "metadata.uid");
    match status.code {
        404 => Failure::Absent,
        409 if status.reason == "AlreadyExists" => Failure::Exists,
        409 => Failure::Conflict,
        422 if is_about_another => Failure::Absent,
        403 if status.message.contains("is forbidden: User ") => Failure::Refused(right.to_owned()),
        400 if status.message.contains("does not support dry run") => Failure::Untried,
        429 | 500.. => Failure::Unclear(said()),
        _ => Failure::Refused(said()),
    }
}

/// How long to wait before a request is made again for this time.
pub(super) fn pause(again: u32) -> Duration {
    Duration::from_millis(100) * 2_u32.saturating_pow(again.min(5))
}

#[cfg(test)]
mod tests {
    use kube::core::{
        Status,
        response::{StatusCause, StatusDetails},
    };
    use rstest::rstest;

    use super::*;

    fn about(field: &str) -> StatusDetails {
        let cause = StatusCause { reason: String::new(), message: String::new(), field: field.to_owned() };
        let (name, group, kind, uid) = Default::default();
        StatusDetails { name, group, kind, uid, causes: vec![cause], retry_after_seconds: 0 }
    }

    #[rstest]
    #[case::absent(404, "NotFound", "not found", None, Failure::Absent)]
    #[case::there(409, "AlreadyExists", "already exists", None, Failure::Exists)]
    #[case::another_version(409, "Conflict", "the object has been modified", None, Failure::Conflict)]
    #[case::another_object(422, "Invalid", "is invalid", Some("metadata.uid"), Failure::Absent)]
    #[case::invalid(422, "Invalid", "is\ninvalid", Some("spec"), Failure::Refused("is invalid".to_owned()))]
    #[case::no_right(
        403, "Forbidden", "pods \"a\" is forbidden: User \"u\" cannot patch", None, Failure::Refused("ask".to_owned()),
    )]
    #[case::a_policy(403, "Forbidden", "denied by policy", None, Failure::Refused("denied by policy".to_owned()))]
    #[case::a_webhook(
        400,
        "BadRequest",
        "admission webhook \"w\" does not support dry run",
        None,
        Failure::Untried
    )]
    #[case::busy(429, "TooManyRequests", "later", None, Failure::Unclear("later".to_owned()))]
    #[case::no_words(502, "", "", None, Failure::Unclear("the API server answers 502".to_owned()))]
    fn what_an_answer_means(
        #[case] code: u16,
        #[case] reason: &str,
        #[case] message: &str,
        #[case] field: Option<&str>,
        #[case] expected: Failure,
    ) {
        let mut status = Status::failure(message, reason).with_code(code);
        status.details = field.map(about);
        assert_eq!(meaning(&kube::Error::Api(status.boxed()), "ask"), expected);
    }
}
