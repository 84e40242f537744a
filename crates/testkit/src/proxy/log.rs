//! The record of requests to a proxy.

use std::{
    collections::{HashMap, VecDeque},
    sync::Mutex,
};

use http::{StatusCode, Version};
use jiff::Timestamp;

use super::{
    call::Call,
    requests::{RequestAttributes, Requests},
};
use crate::lock;

/// How many requests are kept. It bounds memory.
const KEPT: usize = 100_000;

/// A request that reached the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The time of arrival.
    pub at: Timestamp,
    pub call: Call,
    /// `unknown` for a token without a subject, `system:anonymous` without credentials.
    pub user: String,
    pub user_agent: Option<String>,
    /// The Accept header.
    pub accept: Option<String>,
    /// Path and query.
    pub uri: String,
    /// The HTTP version of the client's connection.
    pub version: Version,
    /// `None` if the client has not received a response (yet).
    pub status: Option<StatusCode>,
    /// Whether a fault struck the request.
    pub struck: bool,
}

/// The requests since the start of the proxy or the last [`forget`](Log::forget).
#[derive(Default)]
pub(super) struct Log(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    /// How many older requests were dropped.
    dropped: usize,
    /// In the order of arrival.
    latest: VecDeque<Recorded>,
    /// The number of equal requests, including dropped ones. Clients repeat the same requests, so the map is
    /// small.
    counts: HashMap<RequestAttributes, usize>,
}

/// The number of an entry. It stays valid when older entries are dropped.
#[derive(Clone, Copy)]
pub(super) struct Entry(usize);

impl Log {
    pub(super) fn open(&self, attributes: RequestAttributes, request: Recorded) -> Entry {
        let mut entries = lock(&self.0);
        *entries.counts.entry(attributes).or_default() += 1;
        if entries.latest.len() == KEPT {
            entries.latest.pop_front();
            entries.dropped += 1;
        }
        entries.latest.push_back(request);
        Entry(entries.dropped + entries.latest.len() - 1)
    }

    pub(super) fn answered(&self, Entry(number): Entry, status: StatusCode) {
        let mut entries = lock(&self.0);
        let index = number.checked_sub(entries.dropped);
        if let Some(request) = index.and_then(|index| entries.latest.get_mut(index)) {
            request.status = Some(status);
        }
    }

    pub(super) fn requests(&self) -> Vec<Recorded> {
        lock(&self.0).latest.iter().cloned().collect()
    }

    pub(super) fn count(&self, which: &Requests) -> usize {
        let entries = lock(&self.0);
        entries.counts.iter().filter(|(request, _)| which.matches(request)).map(|(_, count)| count).sum()
    }

    pub(super) fn forget(&self) {
        let mut entries = lock(&self.0);
        entries.dropped += entries.latest.len();
        entries.latest.clear();
        entries.counts.clear();
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
            accept: None,
            uri: uri.to_owned(),
            version: Version::HTTP_2,
            status: None,
            struck: false,
        }
    }

    fn open(log: &Log, uri: &str) -> Entry {
        let request = request(uri);
        let attributes =
            RequestAttributes { call: request.call.clone(), user: request.user.clone(), user_agent: None };
        log.open(attributes, request)
    }

    #[test]
    fn a_response_to_a_forgotten_request_is_not_recorded_for_another() {
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
    fn the_record_is_bounded_but_not_the_count() {
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
