//! What an API server answers where it does not do what it was asked: the HTTP status, the `Retry-After` header and the
//! `Status` object in the body, read once.
//!
//! What follows from it depends on what was asked. [`ReadError`](crate::trouble::Trouble) says it of a read,
//! [`Done`](crate::Done) of a write.

use std::{error::Error, fmt, time::Duration};

use bellwether_engine::FieldConflict;
use http::{HeaderMap, StatusCode, header::RETRY_AFTER, response::Parts};
use serde::Deserialize;

use crate::line::line;

/// The longest that an API server can make a client wait: one that asks for more is asked again all the same.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// So many causes are kept. An object can be invalid in thousands of places.
const MOST_CAUSES: usize = 64;

/// The reason of a cause that names a field of another manager.
const FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";

/// An answer of an API server that is not a success.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// The HTTP status.
    pub code: StatusCode,
    /// What it is about.
    pub class: ErrorClass,
    /// `reason` of the `Status`: one word for programs. Empty if the answer has none.
    pub reason: String,
    /// `message` of the `Status`, on one line. Empty if the answer has none.
    pub message: String,
    /// `details.causes` of the `Status`.
    pub causes: Vec<Cause>,
    /// How long the API server wants not to be asked again, if it says so.
    pub retry_after: Option<Duration>,
}

/// What an error is about. API servers tell some of these apart only in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// 400: an admission webhook has to be called that has side effects, so there is no dry run.
    DryRunUnsupported,
    /// 400, 405, 422: the request makes no sense to this API server, and will not.
    Invalid,
    /// 401: the API server does not know the user.
    Unauthorized,
    /// 403: the user lacks a right.
    Forbidden,
    /// 403: an admission plugin or webhook denies it.
    AdmissionDenied,
    /// 403: nothing can be created in a namespace that is being deleted.
    NamespaceTerminating,
    /// 404: no such object, or no such namespace.
    NotFound,
    /// 404: nothing is served at this path.
    NotServed,
    /// 408, 429: the API server has too much to do.
    Busy,
    /// 409: there is an object of this name.
    AlreadyExists,
    /// 409: server-side apply of fields that [other managers](ApiError::field_conflicts) have.
    FieldConflict,
    /// 409, 422: the object of this name has another UID than the one that was meant.
    UidMismatch,
    /// 409: the object has another resource version than the one that was meant, or is being changed.
    Conflict,
    /// 410: the resource version or the continue token has expired.
    Expired,
    /// 413, or the limit of etcd, which API servers pass on as an error of their own.
    TooLarge,
    /// 5xx.
    ServerError,
    /// Any other status.
    Other,
}

/// One of the causes of an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Cause {
    /// One word for programs.
    pub reason: String,
    /// In words.
    pub message: String,
    /// The path of the field that it is about.
    pub field: String,
}

/// `Status`, as API servers write it. Fields that others than Go write as null are as good as missing.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    message: Option<String>,
    reason: Option<String>,
    details: Option<Details>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    name: Option<String>,
    causes: Option<Vec<Cause>>,
    retry_after_seconds: Option<i64>,
}

impl ApiError {
    /// An error of which only this is known.
    pub fn new(code: StatusCode, reason: &str, message: &str) -> Self {
        let (reason, message) = (Some(reason.to_owned()), Some(message.to_owned()));
        Self::of_status(code, Status { message, reason, details: None }, None)
    }

    /// What an answer says: the error if it is not a success.
    pub fn check(answer: &Parts, body: &[u8]) -> Result<(), Self> {
        if answer.status.is_success() {
            Ok(())
        } else {
            Err(Self::read(answer.status, &answer.headers, body))
        }
    }

    /// Reads an answer that is not a success. A body that is no `Status`, or only a part of one, comes from something
    /// on the way, or has been cut there: then the HTTP status has to do.
    pub fn read(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        // API servers give seconds. A date would be by a clock that is not ours.
        let header = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        Self::of_status(code, serde_json::from_slice(body).unwrap_or_default(), header)
    }

    fn of_status(code: StatusCode, status: Status, header: Option<u64>) -> Self {
        let class = status.class(code);
        let Status { message, reason, details } = status;
        let Details { causes, retry_after_seconds, .. } = details.unwrap_or_default();
        let told = || retry_after_seconds.and_then(|seconds| seconds.try_into().ok());
        let seconds = header.or_else(told).unwrap_or_default();
        let tidy = |text: Option<String>| line(&text.unwrap_or_default());
        Self {
            code,
            class,
            reason: tidy(reason),
            message: tidy(message),
            causes: causes.into_iter().flatten().take(MOST_CAUSES).map(Cause::tidy).collect(),
            // "At once" would be the next failure at once, too.
            retry_after: (seconds > 0).then(|| Duration::from_secs(seconds).min(LONGEST_WAIT)),
        }
    }

    /// The fields of a server-side apply that other managers have.
    pub fn field_conflicts(&self) -> impl Iterator<Item = FieldConflict> {
        let conflicts = self.causes.iter().filter(|cause| cause.reason == FIELD_MANAGER_CONFLICT);
        conflicts.map(|cause| FieldConflict {
            field: cause.field.as_str().into(),
            manager: manager_in(&cause.message).into(),
        })
    }
}

/// What the API server says, or at least its status.
impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            write!(f, "the API server answers {}", self.code)
        } else {
            f.write_str(&self.message)
        }
    }
}

impl Error for ApiError {}

impl Cause {
    fn tidy(self) -> Self {
        let Self { reason, message, field } = self;
        Self { reason: line(&reason), message: line(&message), field: line(&field) }
    }
}

/// The manager in `conflict with "kubectl" with subresource "status" using apps/v1`: the cause has it nowhere else.
fn manager_in(message: &str) -> &str {
    let Some((_, quoted)) = message.split_once('"') else { return message };
    quoted.split_once('"').map_or(quoted, |(manager, _)| manager)
}

impl Status {
    fn class(&self, code: StatusCode) -> ErrorClass {
        match code {
            _ if self.has_reason(&["Expired", "Gone"]) => ErrorClass::Expired,
            StatusCode::BAD_REQUEST if self.says("does not support dry run") => ErrorClass::DryRunUnsupported,
            StatusCode::UNAUTHORIZED => ErrorClass::Unauthorized,
            StatusCode::FORBIDDEN if self.has_cause("NamespaceTerminating") => {
                ErrorClass::NamespaceTerminating
            }
            StatusCode::FORBIDDEN if self.says("is forbidden: User ") => ErrorClass::Forbidden,
            StatusCode::FORBIDDEN => ErrorClass::AdmissionDenied,
            StatusCode::NOT_FOUND if self.names_an_object() => ErrorClass::NotFound,
            StatusCode::NOT_FOUND => ErrorClass::NotServed,
            StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => ErrorClass::Busy,
            StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY if self.is_about_uid() => {
                ErrorClass::UidMismatch
            }
            StatusCode::CONFLICT if self.has_reason(&["AlreadyExists"]) => ErrorClass::AlreadyExists,
            StatusCode::CONFLICT if self.has_cause(FIELD_MANAGER_CONFLICT) => ErrorClass::FieldConflict,
            StatusCode::CONFLICT => ErrorClass::Conflict,
            StatusCode::GONE => ErrorClass::Expired,
            StatusCode::PAYLOAD_TOO_LARGE => ErrorClass::TooLarge,
            StatusCode::BAD_REQUEST | StatusCode::METHOD_NOT_ALLOWED | StatusCode::UNPROCESSABLE_ENTITY => {
                ErrorClass::Invalid
            }
            code if code.is_server_error() => {
                let is_too_large = self.says("request is too large") || self.says("larger than max");
                if is_too_large { ErrorClass::TooLarge } else { ErrorClass::ServerError }
            }
            _ => ErrorClass::Other,
        }
    }

    fn has_reason(&self, reasons: &[&str]) -> bool {
        self.reason.as_deref().is_some_and(|reason| reasons.contains(&reason))
    }

    fn says(&self, words: &str) -> bool {
        self.message.as_deref().is_some_and(|message| message.contains(words))
    }

    fn causes(&self) -> impl Iterator<Item = &Cause> {
        self.details.iter().flat_map(|details| details.causes.iter().flatten())
    }

    fn has_cause(&self, reason: &str) -> bool {
        self.causes().any(|cause| cause.reason == reason)
    }

    fn names_an_object(&self) -> bool {
        let name = self.details.as_ref().and_then(|details| details.name.as_deref());
        name.is_some_and(|name| !name.is_empty())
    }

    /// Whether a precondition on the UID is not met, or a patch would change the UID.
    fn is_about_uid(&self) -> bool {
        (self.says("UID") && self.says("precondition"))
            || self.causes().any(|cause| cause.field == "metadata.uid")
    }
}

#[cfg(test)]
mod tests;
