//! What went through a proxy.

use std::{
    collections::{HashMap, VecDeque},
    sync::Mutex,
};

use http::{StatusCode, Version};
use jiff::Timestamp;

use super::{
    call::Call,
    requests::{Asked, Requests},
};
use crate::lock;

/// How many requests stay on record: hours of a quiet client, minutes of a flood, and never all of the memory.
const KEPT: usize = 100_000;

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

/// The requests since the proxy's start, or since they were last forgotten.
#[derive(Default)]
pub(super) struct Log(Mutex<Pages>);

#[derive(Default)]
struct Pages {
    /// How many came before the first that is still on record.
    gone: usize,
    /// The latest, in the order in which they came.
    latest: VecDeque<Recorded>,
    /// How often each was asked, also of those that are no longer on record. Clients ask for the same things over and
    /// over, so that this is short and quickly added up.
    tally: HashMap<Asked, usize>,
}

/// The number of an entry, good also after older ones are gone.
#[derive(Clone, Copy)]
pub(super) struct Entry(usize);

impl Log {
    pub(super) fn open(&self, asked: Asked, request: Recorded) -> Entry {
        let mut pages = lock(&self.0);
        *pages.tally.entry(asked).or_default() += 1;
        if pages.latest.len() == KEPT {
            pages.latest.pop_front();
            pages.gone += 1;
        }
        pages.latest.push_back(request);
        Entry(pages.gone + pages.latest.len() - 1)
    }

    pub(super) fn answered(&self, Entry(number): Entry, status: StatusCode) {
        let mut pages = lock(&self.0);
        let index = number.checked_sub(pages.gone);
        if let Some(request) = index.and_then(|index| pages.latest.get_mut(index)) {
            request.status = Some(status);
        }
    }

    pub(super) fn requests(&self) -> Vec<Recorded> {
        lock(&self.0).latest.iter().cloned().collect()
    }

    pub(super) fn count(&self, which: &Requests) -> usize {
        let pages = lock(&self.0);
        pages.tally.iter().filter(|(asked, _)| which.matches(asked)).map(|(_, times)| times).sum()
    }

    pub(super) fn forget(&self) {
        let mut pages = lock(&self.0);
        pages.gone += pages.latest.len();
        pages.latest.clear();
        pages.tally.clear();
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

    fn open(log: &Log, uri: &str) -> Entry {
        let request = request(uri);
        let asked = Asked { call: request.call.clone(), user: request.user.clone(), user_agent: None };
        log.open(asked, request)
    }

    #[test]
    fn an_answer_to_a_forgotten_request_is_no_answer_to_another() {
        let log = Log::default();
        let old = open(&log, "/api/v1/pods");
        log.forget();
        let new = open(&log, "/version");
        log.answered(old, StatusCode::GONE);
        assert_eq!(log.requests(), [request("/version")]);
        log.answered(new, StatusCode::OK);
        assert_eq!(log.requests()[0].status, Some(StatusCode::OK));
    }

    #[test]
    fn the_record_is_bounded_and_the_count_is_not() {
        let log = Log::default();
        let oldest = open(&log, "/version");
        for _ in 0..KEPT {
            open(&log, "/api/v1/pods");
        }
        log.answered(oldest, StatusCode::GONE);
        let newest = open(&log, "/readyz");
        log.answered(newest, StatusCode::OK);

        let requests = log.requests();
        assert_eq!(requests.len(), KEPT);
        assert_eq!(requests[0], request("/api/v1/pods"));
        assert_eq!(requests[KEPT - 1], Recorded { status: Some(StatusCode::OK), ..request("/readyz") });
        assert_eq!(log.count(&Requests::all()), KEPT + 2);
        assert_eq!(log.count(&Requests::all().path("/version")), 1);
        log.forget();
        assert_eq!((log.requests().len(), log.count(&Requests::all())), (0, 0));
    }
}
