//! What can go wrong between a cluster and us.

use std::{fmt, sync::Arc, time::Duration};

use bellwether_model::text::one_line;
use http::StatusCode;
use serde::Deserialize;

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

    /// What an answer with this code means.
    pub fn of_code(code: StatusCode, message: &str, come_back: Option<Duration>) -> Self {
        let why = if message.is_empty() { short(&code.to_string()) } else { short(message) };
        match code {
            StatusCode::GONE => Self::Gone,
            StatusCode::NOT_FOUND => Self::Absent { why },
            StatusCode::FORBIDDEN => Self::Forbidden { why },
            StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => Self::Away { why, come_back },
            code if code.is_server_error() => Self::Unwell { why, come_back },
            _ => Self::Refused { why },
        }
    }

    /// What an answer that is no success means: `body` is a `Status`, or whatever a proxy on the way has written.
    pub fn of_answer(code: StatusCode, body: &[u8], come_back: Option<Duration>) -> Self {
        let status: Status = serde_json::from_slice(body).unwrap_or_default();
        Self::of_code(code, &status.message, come_back)
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

/// What API servers answer when they refuse something.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    message: String,
}

/// Text from a cluster, on one line and not too long.
fn short(text: &str) -> Arc<str> {
    one_line(text.trim(), LONGEST).into()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

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
        let body = br#"{"kind":"Status","message":"it"}"#;
        let code = StatusCode::from_u16(code).expect("a status code");
        assert_eq!(Trouble::of_answer(code, body, Some(Duration::from_secs(7))), expected);
    }

    #[rstest]
    #[case::no_body(b"", "405 Method Not Allowed")]
    #[case::a_page(b"<html>", "405 Method Not Allowed")]
    #[case::two_lines(br#"{"message":" one\ntwo "}"#, "one two")]
    fn there_is_always_a_reason(#[case] body: &[u8], #[case] why: &str) {
        let trouble = Trouble::of_answer(StatusCode::METHOD_NOT_ALLOWED, body, None);
        assert_eq!(trouble, Trouble::Refused { why: why.into() });
    }

    #[test]
    fn long_reasons_are_cut() {
        let Trouble::Refused { why } = Trouble::refused("ä".repeat(1000)) else { panic!("it is refused") };
        assert!(why.len() <= LONGEST && why.ends_with("ä…"), "{why}");
    }
}
