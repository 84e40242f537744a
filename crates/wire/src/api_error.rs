//! An error response: the HTTP status, the `Retry-After` header and the `Status` object in the body.
//!
//! [`ReadError`](crate::read_error::ReadError) says what it means for a read,
//! [`WriteResult`](crate::WriteResult) for a write.

use std::{error::Error, fmt, time::Duration};

use bellwether_engine::FieldConflict;
use http::{HeaderMap, StatusCode, header::RETRY_AFTER, response::Parts};
use serde::Deserialize;

use crate::error_text::bounded_line;

/// The upper bound of `Retry-After`.
const MAX_WAIT: Duration = Duration::from_mins(5);

/// An object can be invalid in thousands of places.
const MAX_CAUSES: usize = 64;

const FIELD_MANAGER_CONFLICT: &str = "FieldManagerConflict";

/// A response with an HTTP status other than 2xx.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    pub code: StatusCode,
    pub class: ErrorClass,
    /// `reason` of the `Status`; empty if it has none.
    pub reason: String,
    /// `message` of the `Status` on one line; empty if it has none.
    pub message: String,
    /// The first `details.causes` of the `Status`.
    pub causes: Vec<Cause>,
    /// From the header `Retry-After` or from `details.retryAfterSeconds`, at most five minutes.
    pub retry_after: Option<Duration>,
}

/// The class of an error. API servers distinguish some classes only by the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorClass {
    /// 400: an admission webhook has side effects and does not support dry runs.
    DryRunUnsupported,
    /// 400, 405, 422: retrying does not help.
    Invalid,
    /// 401.
    Unauthorized,
    /// 403: RBAC does not allow it.
    Forbidden,
    /// 403: an admission plugin or webhook denied it.
    AdmissionDenied,
    /// 403: the namespace is being deleted.
    NamespaceTerminating,
    /// 404: the object or its namespace does not exist.
    NotFound,
    /// 404: the path is not served.
    NotServed,
    /// 408, 429: the API server is overloaded.
    Busy,
    /// 409: an object of this name exists.
    AlreadyExists,
    /// 409: server-side apply of fields that [other managers](ApiError::field_conflicts) own.
    FieldConflict,
    /// 409, 422: the object of this name has another UID.
    UidMismatch,
    /// 409: the object has another resourceVersion.
    Conflict,
    /// 410: the resourceVersion or the continue token has expired.
    Expired,
    /// 413, or 5xx because the object exceeds the limit of etcd.
    TooLarge,
    /// 5xx.
    ServerError,
    Other,
}

/// `StatusCause`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Cause {
    pub reason: String,
    pub message: String,
    /// The path of a field of the object.
    pub field: String,
}

/// Fields may be null in the responses of API servers that are not written in Go.
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
    pub fn new(code: StatusCode, reason: &str, message: &str) -> Self {
        let (reason, message) = (Some(reason.to_owned()), Some(message.to_owned()));
        Self::of_status(code, Status { message, reason, details: None }, None)
    }

    pub fn check(response: &Parts, body: &[u8]) -> Result<(), Self> {
        if response.status.is_success() {
            Ok(())
        } else {
            Err(Self::read(response.status, &response.headers, body))
        }
    }

    /// Decodes an error response. A body that is not a complete `Status` comes from a proxy or was cut off;
    /// it is ignored.
    pub fn read(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        // API servers send seconds, never a date.
        let header = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        Self::of_status(code, serde_json::from_slice(body).unwrap_or_default(), header)
    }

    fn of_status(code: StatusCode, status: Status, header: Option<u64>) -> Self {
        let class = status.class(code);
        let Status { message, reason, details } = status;
        let Details { causes, retry_after_seconds, .. } = details.unwrap_or_default();
        let in_body = || retry_after_seconds.and_then(|seconds| seconds.try_into().ok());
        let seconds = header.or_else(in_body).unwrap_or_default();
        let tidy = |text: Option<String>| bounded_line(&text.unwrap_or_default());
        Self {
            code,
            class,
            reason: tidy(reason),
            message: tidy(message),
            causes: causes.into_iter().flatten().take(MAX_CAUSES).map(Cause::tidy).collect(),
            // Zero would disable the backoff.
            retry_after: (seconds > 0).then(|| Duration::from_secs(seconds).min(MAX_WAIT)),
        }
    }

    /// The fields of a server-side apply that other managers own.
    pub fn field_conflicts(&self) -> impl Iterator<Item = FieldConflict> {
        let conflicts = self.causes.iter().filter(|cause| cause.reason == FIELD_MANAGER_CONFLICT);
        conflicts.map(|cause| FieldConflict {
            field: cause.field.as_str().into(),
            manager: manager_in(&cause.message).into(),
        })
    }
}

/// The message, or the HTTP status if the response has no message.
impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.message.is_empty() {
            write!(f, "API server returned {}", self.code)
        } else {
            f.write_str(&self.message)
        }
    }
}

impl Error for ApiError {}

impl Cause {
    fn tidy(self) -> Self {
        let Self { reason, message, field } = self;
        Self { reason: bounded_line(&reason), message: bounded_line(&message), field: bounded_line(&field) }
    }
}

/// The manager in `conflict with "kubectl" with subresource "status" using apps/v1`. The cause has no field
/// for it.
fn manager_in(message: &str) -> &str {
    let Some((_, quoted)) = message.split_once('"') else { return message };
    quoted.split_once('"').map_or(quoted, |(manager, _)| manager)
}

impl Status {
    fn class(&self, code: StatusCode) -> ErrorClass {
        match code {
            _ if self.has_reason(&["Expired", "Gone"]) => ErrorClass::Expired,
            StatusCode::BAD_REQUEST if self.message_contains("does not support dry run") => {
                ErrorClass::DryRunUnsupported
            }
            StatusCode::UNAUTHORIZED => ErrorClass::Unauthorized,
            StatusCode::FORBIDDEN if self.has_cause("NamespaceTerminating") => {
                ErrorClass::NamespaceTerminating
            }
            StatusCode::FORBIDDEN if self.message_contains("is forbidden: User ") => ErrorClass::Forbidden,
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
                let is_too_large =
                    self.message_contains("request is too large") || self.message_contains("larger than max");
                if is_too_large { ErrorClass::TooLarge } else { ErrorClass::ServerError }
            }
            _ => ErrorClass::Other,
        }
    }

    fn has_reason(&self, reasons: &[&str]) -> bool {
        self.reason.as_deref().is_some_and(|reason| reasons.contains(&reason))
    }

    fn message_contains(&self, text: &str) -> bool {
        self.message.as_deref().is_some_and(|message| message.contains(text))
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

    /// A precondition on the UID failed, or a patch would change the UID.
    fn is_about_uid(&self) -> bool {
        (self.message_contains("UID") && self.message_contains("precondition"))
            || self.causes().any(|cause| cause.field == "metadata.uid")
    }
}

#[cfg(test)]
mod tests;
