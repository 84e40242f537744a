//! How a group is, for probes: a code for programs, and JSON that says why.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Path, State, rejection::PathRejection},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;

use crate::Process;

/// A group, as a path names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Group {
    /// A Rollup.
    Rollup {
        /// Its name.
        name: String,
    },
    /// An Application of `bellwether.dev`.
    Application {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

/// What there is to tell about a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// How it is.
    Known(Outlook),
    /// There is none. The sentence says what is not there.
    Absent(String),
    /// Nobody can tell now. The sentence says what is waited for.
    Unknown(String),
}

/// How a group is as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Outlook {
    /// Whether all is well with it.
    pub healthy: bool,
    /// How it is, in a word.
    pub state: String,
    /// Since when it is well or not, if anybody knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// What its conditions mean together, in a sentence, if there is one for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meaning: Option<String>,
    /// Its conditions, the one that decides first.
    pub conditions: Vec<Condition>,
}

/// What a condition says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Condition {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds: True, False or Unknown.
    pub status: String,
    /// Why, in one word for programs.
    pub reason: String,
    /// Why, for people.
    pub message: String,
}

impl Answer {
    pub(crate) fn is_healthy(&self) -> bool {
        matches!(self, Self::Known(Outlook { healthy: true, .. }))
    }

    fn code(&self) -> StatusCode {
        match self {
            Self::Known(_) if self.is_healthy() => StatusCode::OK,
            Self::Known(_) | Self::Unknown(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Absent(_) => StatusCode::NOT_FOUND,
        }
    }
}

/// What is said of a group, and of which.
#[derive(Serialize)]
struct Body<'a> {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<&'a str>,
    name: &'a str,
    #[serde(flatten)]
    said: Said,
}

/// What is known, or a sentence that says why nothing is.
#[derive(Serialize)]
#[serde(untagged)]
enum Said {
    Known(Outlook),
    Nothing { healthy: bool, message: String },
}

/// The JSON for an answer.
pub(crate) fn body(group: &Group, answer: Answer) -> impl IntoResponse + use<> {
    let (kind, namespace, name) = match group {
        Group::Rollup { name } => ("Rollup", None, name),
        Group::Application { namespace, name } => ("Application", Some(namespace.as_str()), name),
    };
    let said = match answer {
        Answer::Known(outlook) => Said::Known(outlook),
        Answer::Absent(message) | Answer::Unknown(message) => Said::Nothing { healthy: false, message },
    };
    Json(Body { kind, namespace, name, said }).into_response()
}

pub(crate) async fn rollup(
    State(process): State<Arc<dyn Process>>,
    path: Result<Path<String>, PathRejection>,
) -> Response {
    match path {
        Ok(Path(name)) => told(&*process, &Group::Rollup { name }).await,
        Err(_) => refused(),
    }
}

pub(crate) async fn application(
    State(process): State<Arc<dyn Process>>,
    path: Result<Path<(String, String)>, PathRejection>,
) -> Response {
    match path {
        Ok(Path((namespace, name))) => told(&*process, &Group::Application { namespace, name }).await,
        Err(_) => refused(),
    }
}

async fn told(process: &dyn Process, group: &Group) -> Response {
    let answer = process.outlook(group).await;
    (answer.code(), body(group, answer)).into_response()
}

/// What stands in the place of a name is no text.
fn refused() -> Response {
    let message = "the name in the path is no text: write it as kubectl shows it".to_owned();
    (StatusCode::BAD_REQUEST, Json(Said::Nothing { healthy: false, message })).into_response()
}
