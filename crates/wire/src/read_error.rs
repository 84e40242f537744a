//! What can go wrong between a cluster and us.

use std::{fmt, sync::Arc, time::Duration};

use bellwether_engine::Unreadable;
use bellwether_model::text::one_line;

use crate::api_error::{ApiError, ErrorClass};

/// How much of an error's text is kept.
const LONGEST: usize = 256;

/// Why an attempt to read something ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// The version from which we wanted to go on is no longer there.
    Expired,
    /// There is nothing at this path.
    NotFound {
        /// In the server's words.
        why: Arc<str>,
    },
    /// We may not.
    Forbidden {
        /// In the server's words.
        why: Arc<str>,
    },
    /// The server does not answer, or not now. It is no fault of the kind that we read.
    Unavailable {
        /// In whoever's words.
        why: Arc<str>,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// The server answers that it cannot. That may be all of it for a while, or this kind for good: the webhook that
    /// converts it is down, or the server behind it is.
    ServerError {
        /// In the server's words.
        why: Arc<str>,
        /// When it wants to be asked again.
        retry_after: Option<Duration>,
    },
    /// The server answers, but not with what we asked for.
    Rejected {
        /// In the server's words, or in ours.
        why: Arc<str>,
    },
    /// The answer is older than what is known already.
    Stale,
}

impl ReadError {
    /// The server cannot be reached, or has stopped in the middle of a sentence.
    pub fn unavailable(why: impl AsRef<str>) -> Self {
        Self::Unavailable { why: short(why.as_ref()), retry_after: None }
    }

    /// The server has answered, and the answer is of no use.
    pub fn rejected(why: impl AsRef<str>) -> Self {
        Self::Rejected { why: short(why.as_ref()) }
    }

    /// When the server wants to be asked again, if it said so.
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

    /// What it says of the kind whose objects were asked for; nothing if the fault is not the kind's.
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
            // Also that a list is too large for etcd to send: it may be smaller another time.
            _ if error.code.is_server_error() => Self::ServerError { why, retry_after },
            _ => Self::Rejected { why },
        }
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired => f.write_str("the version has expired"),
            Self::Stale => f.write_str("the API server is behind what is known already"),
            Self::NotFound { why }
            | Self::Forbidden { why }
            | Self::Unavailable { why, .. }
            | Self::ServerError { why, .. }
            | Self::Rejected { why } => f.write_str(why),
        }
    }
}

/// Text from a cluster, on one line and not too long.
fn short(text: &str) -> Arc<str> {
    one_line(text.trim(), LONGEST).into()
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderValue, StatusCode, header::RETRY_AFTER};
    use rstest::rstest;

    use super::*;

    fn answered(code: u16, body: &[u8]) -> ReadError {
        let code = StatusCode::from_u16(code).expect("a status code");
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("7"))]);
        ApiError::read(code, &headers, body).into()
    }

    #[rstest]
    #[case(410, ReadError::Expired)]
    #[case(404, ReadError::NotFound { why: "it".into() })]
    #[case(403, ReadError::Forbidden { why: "it".into() })]
    #[case(401, ReadError::Rejected { why: "it".into() })]
    #[case(405, ReadError::Rejected { why: "it".into() })]
    #[case(429, ReadError::Unavailable { why: "it".into(), retry_after: Some(Duration::from_secs(7)) })]
    #[case(500, ReadError::ServerError { why: "it".into(), retry_after: Some(Duration::from_secs(7)) })]
    #[case(503, ReadError::ServerError { why: "it".into(), retry_after: Some(Duration::from_secs(7)) })]
    fn codes_have_a_meaning(#[case] code: u16, #[case] expected: ReadError) {
        assert_eq!(answered(code, br#"{"kind":"Status","message":"it"}"#), expected);
    }

    #[rstest]
    #[case::no_body(b"", "the API server answers 405 Method Not Allowed")]
    #[case::a_page(b"<html>", "the API server answers 405 Method Not Allowed")]
    #[case::two_lines(br#"{"message":" one\ntwo "}"#, "one two")]
    fn there_is_always_a_reason(#[case] body: &[u8], #[case] why: &str) {
        assert_eq!(answered(405, body), ReadError::Rejected { why: why.into() });
    }

    #[rstest]
    #[case::busy(429, None)]
    #[case::forbidden(403, Some(Unreadable::Forbidden { resource: "widgets".into() }))]
    #[case::absent(404, Some(Unreadable::Failing { why: "it".into() }))]
    #[case::server_error(500, Some(Unreadable::Failing { why: "it".into() }))]
    #[case::refused(400, Some(Unreadable::Failing { why: "it".into() }))]
    fn only_what_the_kind_is_to_blame_for_makes_it_unreadable(
        #[case] code: u16,
        #[case] expected: Option<Unreadable>,
    ) {
        assert_eq!(answered(code, br#"{"message":"it"}"#).unreadable(&"widgets".into()), expected);
    }

    #[test]
    fn long_reasons_are_cut() {
        let ReadError::Rejected { why } = ReadError::rejected("ä".repeat(1000)) else {
            panic!("it is refused")
        };
        assert!(why.len() <= LONGEST && why.ends_with("ä…"), "{why}");
    }
}
