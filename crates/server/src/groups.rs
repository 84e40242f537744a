//! The health of a group for probes: a status code for programs, and JSON that says why.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use bellwether_engine::{Dialect, GroupRef, NamespacedName, OwnKind, StatusSummary};
use serde::Serialize;

use crate::Process;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Known(Box<StatusSummary>),
    /// The group does not exist; the message names it. 404.
    Absent(String),
    /// The state of the group is not known yet; the message says what is missing. 503.
    Unknown(String),
}

impl Answer {
    pub(crate) fn is_healthy(&self) -> bool {
        matches!(self, Self::Known(summary) if summary.healthy)
    }

    fn code(&self) -> StatusCode {
        match self {
            Self::Known(_) if self.is_healthy() => StatusCode::OK,
            Self::Known(_) | Self::Unknown(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Absent(_) => StatusCode::NOT_FOUND,
        }
    }
}

/// The body where a group has no summary.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorBody<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    api_group: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    kind: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    healthy: bool,
    message: &'a str,
}

pub(crate) fn body(group: &GroupRef, answer: &Answer) -> Response {
    match answer {
        Answer::Known(summary) => Json(summary).into_response(),
        Answer::Absent(message) | Answer::Unknown(message) => {
            let kind = group.kind.kind();
            let NamespacedName { namespace, name } = &group.name;
            let (api_group, kind) = (&*kind.group, &*kind.kind);
            Json(ErrorBody { api_group, kind, namespace, name, healthy: false, message }).into_response()
        }
    }
}

pub(crate) async fn rollup(
    State(process): State<Arc<dyn Process>>,
    path: Result<Path<String>, PathRejection>,
) -> Response {
    match path {
        Ok(Path(name)) => {
            respond(&*process, &GroupRef::new(OwnKind::Rollup, NamespacedName::new("", &name))).await
        }
        Err(_) => bad_request(),
    }
}

pub(crate) async fn application(
    State(process): State<Arc<dyn Process>>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Response {
    match path {
        Ok(Path((namespace, name))) => {
            let kind = OwnKind::Application(Dialect::Bellwether);
            respond(&*process, &GroupRef::new(kind, NamespacedName::new(&namespace, &name))).await
        }
        Err(_) => bad_request(),
    }
}

async fn respond(process: &dyn Process, group: &GroupRef) -> Response {
    let answer = process.summary(group).await;
    (answer.code(), body(group, &answer)).into_response()
}

fn bad_request() -> Response {
    let message = "invalid path: the name is not valid UTF-8";
    let body = ErrorBody { api_group: "", kind: "", namespace: "", name: "", healthy: false, message };
    (StatusCode::BAD_REQUEST, Json(body)).into_response()
}
