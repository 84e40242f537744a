//! Errors of lists, watches and discovery.

use std::{fmt, sync::Arc, time::Duration};

use bellwether_engine::Unreadable;
use bellwether_model::text::one_line;

use crate::api_error::{ApiError, ErrorClass};

/// Longer texts are cut, in bytes.
const MAX_LENGTH: usize = 256;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// 410 Gone: the resourceVersion or the continue token has expired. A relist follows.
    Expired,
    /// 404.
    NotFound { why: Arc<str> },
    /// 403.
    Forbidden { why: Arc<str> },
    /// The API server does not respond, or is overloaded. Nothing is wrong with the kind.
    Unavailable { why: Arc<str>, retry_after: Option<Duration> },
    /// 5xx or 401. The whole API server may be down for a while, or the credentials have expired and are about to
    /// be replaced; or this kind is down for good: its conversion webhook, or its aggregated API server.
    ServerError { why: Arc<str>, retry_after: Option<Duration> },
    /// Any other error response, or a response that cannot be decoded.
    Rejected { why: Arc<str> },
    /// The list has an older resourceVersion than one that was seen before.
    Stale,
}

impl ReadError {
    /// The API server cannot be reached, or the connection broke.
    pub fn unavailable(why: impl AsRef<str>) -> Self {
        Self::Unavailable { why: short(why.as_ref()), retry_after: None }
    }

    pub fn rejected(why: impl AsRef<str>) -> Self {
        Self::Rejected { why: short(why.as_ref()) }
    }

    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Unavailable { retry_after, .. } | Self::ServerError { retry_after, .. } => *retry_after,
            Self::Expired
            | Self::NotFound { .. }
            | Self::Forbidden { .. }
            | Self::Rejected { .. }
            | Self::Stale => None,
        }
    }

    /// Why the kind cannot be read; `None` if the API server, not the kind, is at fault.
    pub fn unreadable(&self, resource: &Arc<str>) -> Option<Unreadable> {
        match self {
            Self::Unavailable { .. } => None,
            Self::Forbidden { .. } => Some(Unreadable::Forbidden { resource: Arc::clone(resource) }),
            Self::Expired
            | Self::NotFound { .. }
            | Self::ServerError { .. }
            | Self::Rejected { .. }
            | Self::Stale => Some(Unreadable::Failing { why: self.to_string().into() }),
        }
    }
}

impl From<ApiError> for ReadError {
    fn from(error: ApiError) -> Self {
        let (why, retry_after) = (short(&error.to_string()), error.retry_after);
        match error.class {
            ErrorClass::Expired => Self::Expired,
            ErrorClass::NotFound | ErrorClass::NotServed => Self::NotFound { why },
            ErrorClass::Forbidden | ErrorClass::AdmissionDenied | ErrorClass::NamespaceTerminating => {
                Self::Forbidden { why }
            }
            ErrorClass::Busy => Self::Unavailable { why, retry_after },
            ErrorClass::Unauthorized => Self::ServerError { why, retry_after },
            // Includes a list that exceeds the limit of etcd: it may be shorter next time.
            _ if error.code.is_server_error() => Self::ServerError { why, retry_after },
            _ => Self::Rejected { why },
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("the resourceVersion has expired"),
            Self::Stale => f.write_str("stale list: older than objects seen before"),
            Self::NotFound { why }
            | Self::Forbidden { why }
            | Self::Unavailable { why, .. }
            | Self::ServerError { why, .. }
            | Self::Rejected { why } => f.write_str(why),
        }
    }
}

fn short(text: &str) -> Arc<str> {
    one_line(text.trim(), MAX_LENGTH).into()
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode, header::RETRY_AFTER};
    use rstest::rstest;

    use super::*;

    fn response(code: u16, body: &[u8]) -> ReadError {
        let code = StatusCode::from_u16(code).expect("a status code");
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("7"))]);
        ApiError::read(code, &headers, body).into()
    }

    #[rstest]
    #[case(410, ReadError::Expired)]
    #[case(404, ReadError::NotFound { why: "it".into() })]
    #[case(403, ReadError::Forbidden { why: "it".into() })]
    #[case(401, ReadError::ServerError { why: "it".into(), retry_after: Some(Duration::from_secs(7)) })]
    #[case(405, ReadError::Rejected { why: "it".into() })]
    #[case(429, ReadError::Unavailable { why: "it".into(), retry_after: Some(Duration::from_secs(7)) })]
    #[case(500, ReadError::ServerError { why: "it".into(), retry_after: Some(Duration::from_secs(7)) })]
    #[case(503, ReadError::ServerError { why: "it".into(), retry_after: Some(Duration::from_secs(7)) })]
    fn each_status_code_has_its_error(#[case] code: u16, #[case] expected: ReadError) {
        assert_eq!(response(code, br#"{"kind":"Status","message":"it"}"#), expected);
    }

    #[rstest]
    #[case::no_body(b"", "API server returned 405 Method Not Allowed")]
    #[case::html(b"<html>", "API server returned 405 Method Not Allowed")]
    #[case::two_lines(br#"{"message":" one\ntwo "}"#, "one two")]
    fn there_is_always_a_message(#[case] body: &[u8], #[case] why: &str) {
        assert_eq!(response(405, body), ReadError::Rejected { why: why.into() });
    }

    #[rstest]
    #[case::busy(429, None)]
    #[case::forbidden(403, Some(Unreadable::Forbidden { resource: "widgets".into() }))]
    #[case::not_found(404, Some(Unreadable::Failing { why: "it".into() }))]
    #[case::server_error(500, Some(Unreadable::Failing { why: "it".into() }))]
    #[case::rejected(400, Some(Unreadable::Failing { why: "it".into() }))]
    fn an_overloaded_server_does_not_make_a_kind_unreadable(
        #[case] code: u16,
        #[case] expected: Option<Unreadable>,
    ) {
        assert_eq!(response(code, br#"{"message":"it"}"#).unreadable(&"widgets".into()), expected);
    }

    #[test]
    fn long_messages_are_cut() {
        let ReadError::Rejected { why } = ReadError::rejected("ä".repeat(1000)) else { panic!("rejected") };
        assert!(why.len() <= MAX_LENGTH && why.ends_with("ä…"), "{why}");
    }
}
