//! What can go wrong between a cluster and us.

use std::{fmt, sync::Arc, time::Duration};

use bellwether_engine::Unreadable;
use bellwether_model::text::one_line;

use crate::api_error::{ApiError, ErrorClass};

/// How much of an error's text is kept.
const LONGEST: usize = 256;

/// Why an attempt to read something ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The version from which we wanted to go on is no longer there.
    Gone,
    /// There is nothing at this path.
    Absent {
        /// In the server's words.
        why: Arc<str>,
    },
    /// We may not.
    Forbidden {
        /// In the server's words.
        why: Arc<str>,
    },
    /// The server does not answer, or not now. It is no fault of the kind that we read.
    Away {
        /// In whoever's words.
        why: Arc<str>,
        /// When it wants to be asked again.
        come_back: Option<Duration>,
    },
    /// The server answers that it cannot. That may be all of it for a while, or this kind for good: the webhook that
    /// converts it is down, or the server behind it is.
    Unwell {
        /// In the server's words.
        why: Arc<str>,
        /// When it wants to be asked again.
        come_back: Option<Duration>,
    },
    /// The server answers, but not with what we asked for.
    Refused {
        /// In the server's words, or in ours.
        why: Arc<str>,
    },
    /// The answer is older than what is known already.
    Behind,
}

impl Trouble {
    /// The server cannot be reached, or has stopped in the middle of a sentence.
    pub fn away(why: impl AsRef<str>) -> Self {
        Self::Away { why: short(why.as_ref()), come_back: None }
    }

    /// The server has answered, and the answer is of no use.
    pub fn refused(why: impl AsRef<str>) -> Self {
        Self::Refused { why: short(why.as_ref()) }
    }

    /// When the server wants to be asked again, if it said so.
    pub fn come_back(&self) -> Option<Duration> {
        match self {
            Self::Away { come_back, .. } | Self::Unwell { come_back, .. } => *come_back,
            Self::Gone
            | Self::Absent { .. }
            | Self::Forbidden { .. }
            | Self::Refused { .. }
            | Self::Behind => None,
        }
    }

    /// What it says of the kind whose objects were asked for; nothing if the fault is not the kind's.
    pub fn unreadable(&self, resource: &Arc<str>) -> Option<Unreadable> {
        match self {
            Self::Away { .. } => None,
            Self::Forbidden { .. } => Some(Unreadable::Forbidden { resource: Arc::clone(resource) }),
            Self::Gone | Self::Absent { .. } | Self::Unwell { .. } | Self::Refused { .. } | Self::Behind => {
                Some(Unreadable::Failing { why: self.to_string().into() })
            }
        }
    }
}

impl From<ApiError> for Trouble {
    fn from(error: ApiError) -> Self {
        let (why, come_back) = (short(&error.to_string()), error.retry_after);
        match error.class {
            ErrorClass::Expired => Self::Gone,
            ErrorClass::NotFound | ErrorClass::NotServed => Self::Absent { why },
            ErrorClass::Forbidden | ErrorClass::AdmissionDenied | ErrorClass::NamespaceTerminating => {
                Self::Forbidden { why }
            }
            ErrorClass::Busy => Self::Away { why, come_back },
            // Also that a list is too large for etcd to send: it may be smaller another time.
            _ if error.code.is_server_error() => Self::Unwell { why, come_back },
            _ => Self::Refused { why },
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone => f.write_str("the version has expired"),
            Self::Behind => f.write_str("the API server is behind what is known already"),
            Self::Absent { why }
            | Self::Forbidden { why }
            | Self::Away { why, .. }
            | Self::Unwell { why, .. }
            | Self::Refused { why } => f.write_str(why),
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

    fn answered(code: u16, body: &[u8]) -> Trouble {
        let code = StatusCode::from_u16(code).expect("a status code");
        let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static("7"))]);
        ApiError::read(code, &headers, body).into()
    }

    #[rstest]
    #[case(410, Trouble::Gone)]
    #[case(404, Trouble::Absent { why: "it".into() })]
    #[case(403, Trouble::Forbidden { why: "it".into() })]
    #[case(401, Trouble::Refused { why: "it".into() })]
    #[case(405, Trouble::Refused { why: "it".into() })]
    #[case(429, Trouble::Away { why: "it".into(), come_back: Some(Duration::from_secs(7)) })]
    #[case(500, Trouble::Unwell { why: "it".into(), come_back: Some(Duration::from_secs(7)) })]
    #[case(503, Trouble::Unwell { why: "it".into(), come_back: Some(Duration::from_secs(7)) })]
    fn codes_have_a_meaning(#[case] code: u16, #[case] expected: Trouble) {
        assert_eq!(answered(code, br#"{"kind":"Status","message":"it"}"#), expected);
    }

    #[rstest]
    #[case::no_body(b"", "the API server answers 405 Method Not Allowed")]
    #[case::a_page(b"<html>", "the API server answers 405 Method Not Allowed")]
    #[case::two_lines(br#"{"message":" one\ntwo "}"#, "one two")]
    fn there_is_always_a_reason(#[case] body: &[u8], #[case] why: &str) {
        assert_eq!(answered(405, body), Trouble::Refused { why: why.into() });
    }

    #[rstest]
    #[case::busy(429, None)]
    #[case::forbidden(403, Some(Unreadable::Forbidden { resource: "widgets".into() }))]
    #[case::absent(404, Some(Unreadable::Failing { why: "it".into() }))]
    #[case::unwell(500, Some(Unreadable::Failing { why: "it".into() }))]
    #[case::refused(400, Some(Unreadable::Failing { why: "it".into() }))]
    fn only_what_the_kind_is_to_blame_for_makes_it_unreadable(
        #[case] code: u16,
        #[case] expected: Option<Unreadable>,
    ) {
        assert_eq!(answered(code, br#"{"message":"it"}"#).unreadable(&"widgets".into()), expected);
    }

    #[test]
    fn long_reasons_are_cut() {
        let Trouble::Refused { why } = Trouble::refused("ä".repeat(1000)) else { panic!("it is refused") };
        assert!(why.len() <= LONGEST && why.ends_with("ä…"), "{why}");
    }
}
