//! How a group is, for probes: a code for programs, and JSON that says why.

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

/// What there is to tell about a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// How it is.
    Known(Box<StatusSummary>),
    /// There is none. The sentence says what is not there.
    Absent(String),
    /// Nobody can tell now. The sentence says what is waited for.
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

/// A sentence that says why nothing is known of a group, and of which.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Nothing<'a> {
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

/// The JSON for an answer.
pub(crate) fn body(group: &GroupRef, answer: &Answer) -> Response {
    match answer {
        Answer::Known(summary) => Json(summary).into_response(),
        Answer::Absent(message) | Answer::Unknown(message) => {
            let kind = group.kind.kind();
            let NamespacedName { namespace, name } = &group.name;
            let (api_group, kind) = (&*kind.group, &*kind.kind);
            Json(Nothing { api_group, kind, namespace, name, healthy: false, message }).into_response()
        }
    }
}

pub(crate) async fn rollup(
    State(process): State<Arc<dyn Process>>,
    path: Result<Path<String>, PathRejection>,
) -> Response {
    match path {
        Ok(Path(name)) => {
            told(&*process, &GroupRef::new(OwnKind::Rollup, NamespacedName::new("", &name))).await
        }
        Err(_) => refused(),
    }
}

pub(crate) async fn application(
    State(process): State<Arc<dyn Process>>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Response {
    match path {
        Ok(Path((namespace, name))) => {
            let kind = OwnKind::Application(Dialect::Bellwether);
            told(&*process, &GroupRef::new(kind, NamespacedName::new(&namespace, &name))).await
        }
        Err(_) => refused(),
    }
}

async fn told(process: &dyn Process, group: &GroupRef) -> Response {
    let answer = process.summary(group).await;
    (answer.code(), body(group, &answer)).into_response()
}

/// What stands in the place of a name is no text.
fn refused() -> Response {
    let message = "the name in the path is no text: write it as kubectl shows it";
    let nothing = Nothing { api_group: "", kind: "", namespace: "", name: "", healthy: false, message };
    (StatusCode::BAD_REQUEST, Json(nothing)).into_response()
}
