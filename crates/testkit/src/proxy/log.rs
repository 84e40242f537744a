//! What went through a proxy.

use std::sync::Mutex;

use http::{StatusCode, Version};
use jiff::Timestamp;

use super::{call::Call, requests::Requests};
use crate::lock;

/// A request that reached the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// When it came.
    pub at: Timestamp,
    /// What it asked for.
    pub call: Call,
    /// Who sent it; `unknown` for a token that does not say, `system:anonymous` for nobody.
    pub user: String,
    /// The program that sent it, in its own words.
    pub user_agent: Option<String>,
    /// Its path and query.
    pub uri: String,
    /// The HTTP that the client speaks.
    pub version: Version,
    /// The status that the client was answered; none as long as it was not, or if it never was.
    pub status: Option<StatusCode>,
    /// Whether a fault struck it.
    pub struck: bool,
}

/// The requests since the proxy's start, or since they were last forgotten, in the order in which they came.
#[derive(Default)]
pub(super) struct Log(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    forgotten: usize,
    requests: Vec<Recorded>,
}

/// The number of an entry, good also after older ones were forgotten.
#[derive(Clone, Copy)]
pub(super) struct Entry(usize);

impl Log {
    pub(super) fn open(&self, request: Recorded) -> Entry {
        let mut pages = lock(&self.0);
        pages.requests.push(request);
        Entry(pages.forgotten + pages.requests.len() - 1)
    }

    pub(super) fn answered(&self, Entry(number): Entry, status: StatusCode) {
        let mut pages = lock(&self.0);
        let index = number.checked_sub(pages.forgotten);
        if let Some(request) = index.and_then(|index| pages.requests.get_mut(index)) {
            request.status = Some(status);
        }
    }

    pub(super) fn requests(&self) -> Vec<Recorded> {
        lock(&self.0).requests.clone()
    }

    pub(super) fn count(&self, which: &Requests) -> usize {
        let pages = lock(&self.0);
        pages.requests.iter().filter(|request| which.matches(&request.call, &request.user)).count()
    }

    pub(super) fn forget(&self) {
        let mut pages = lock(&self.0);
        pages.forgotten += pages.requests.len();
        pages.requests.clear();
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn request(uri: &str) -> Recorded {
        Recorded {
            at: Timestamp::UNIX_EPOCH,
            call: Call::of(&Method::GET, &uri.parse().unwrap()),
            user: "alice".to_owned(),
            user_agent: None,
            uri: uri.to_owned(),
            version: Version::HTTP_2,
            status: None,
            struck: false,
        }
    }

    #[test]
    fn an_answer_to_a_forgotten_request_is_no_answer_to_another() {
        let log = Log::default();
        let old = log.open(request("/api/v1/pods"));
        log.forget();
        let new = log.open(request("/version"));
        log.answered(old, StatusCode::GONE);
        assert_eq!(log.requests(), [request("/version")]);
        log.answered(new, StatusCode::OK);
        assert_eq!(log.requests()[0].status, Some(StatusCode::OK));
    }
}
