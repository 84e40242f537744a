//! The faults, and which of them are in force.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use http::StatusCode;
use tokio::sync::watch;

use super::{
    call::{Call, Verb},
    requests::Requests,
};
use crate::lock;

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request is held for so long before it goes on to the API server.
    Delay(Duration),
    /// Every event of a watch arrives late by this much; their order stays.
    DelayEvents(Duration),
    /// The answer breaks off together with its connection (in HTTP/2 its stream): so many whole lines arrive, then half
    /// of the next. A list is one line; so is every event of a watch, bookmarks included.
    CutMidLine {
        /// The lines that arrive whole.
        after_lines: usize,
    },
    /// The answer falls silent for ever after so many lines while the connection stays open. What is not a watch and
    /// shall be silent from the start does not reach the API server.
    HalfOpen {
        /// The lines that arrive before the silence.
        after_lines: usize,
    },
    /// The API server is not asked; this failure is the answer.
    Answer {
        /// The failure's code, which also decides its reason.
        status: StatusCode,
        /// When the client is told to come back, in whole seconds, rounded up.
        retry_after: Option<Duration>,
    },
    /// A watch starts well, and then its only event is this failure: the way in which API servers mostly say that a
    /// resource version has expired.
    ErrorEvent(StatusCode),
    /// The API server does what the request asks, but the connection breaks before any of its answer arrives. Meant
    /// for answers that end; the one to a watch is lost when the API server ends the watch.
    LoseResponse,
    /// The answer comes from an API server that is behind the others: reads see the state at this resource version,
    /// which etcd must still have. Watches start at that state and then catch up; who asks for something newer is told
    /// to come back later.
    Past {
        /// The state that is seen.
        resource_version: u64,
    },
}

impl Fault {
    /// Whether this fault can do anything to such a call; it does not strike others.
    fn concerns(self, call: &Call) -> bool {
        match self {
            Self::DelayEvents(_) | Self::ErrorEvent(_) => call.verb == Verb::Watch,
            Self::Past { .. } => {
                matches!(call.verb, Verb::Get | Verb::List | Verb::Watch)
                    && call.resource.as_ref().is_some_and(|resource| {
                        matches!(resource.subresource.as_deref(), None | Some("status"))
                    })
            }
            Self::Delay(_)
            | Self::CutMidLine { .. }
            | Self::HalfOpen { .. }
            | Self::Answer { .. }
            | Self::LoseResponse => true,
        }
    }
}

/// The faults in force, the oldest first.
#[derive(Clone, Default)]
pub(super) struct Faults(Arc<Mutex<Vec<Arc<Threat>>>>);

struct Threat {
    requests: Requests,
    fault: Fault,
    strikes: watch::Sender<usize>,
}

impl Faults {
    pub(super) fn inject(&self, requests: Requests, fault: Fault) -> Injected {
        let threat = Arc::new(Threat { requests, fault, strikes: watch::Sender::new(0) });
        lock(&self.0).push(threat.clone());
        Injected { faults: self.clone(), threat }
    }

    /// The fault that strikes this call: the oldest that means it and has strikes left.
    pub(super) fn strike(&self, call: &Call, user: &str) -> Option<Fault> {
        let threats = lock(&self.0);
        let threat = threats.iter().find(|threat| {
            threat.fault.concerns(call)
                && threat.requests.matches(call, user)
                && *threat.strikes.borrow() < threat.requests.limit()
        })?;
        threat.strikes.send_modify(|strikes| *strikes += 1);
        Some(threat.fault)
    }
}

/// A fault that is in force until this is dropped.
///
/// Requests that it has struck by then stay struck.
#[must_use = "the fault ends when this is dropped"]
pub struct Injected {
    faults: Faults,
    threat: Arc<Threat>,
}

impl Injected {
    /// How many requests it has struck so far.
    pub fn strikes(&self) -> usize {
        *self.threat.strikes.borrow()
    }

    /// Waits until it has struck at least so many requests.
    pub async fn struck(&self, times: usize) {
        // The sender is a part of `self`, so the channel cannot close meanwhile.
        let _ = self.threat.strikes.subscribe().wait_for(|strikes| *strikes >= times).await;
    }

    /// Ends the fault.
    pub fn lift(self) {}
}

impl Drop for Injected {
    fn drop(&mut self) {
        lock(&self.faults.0).retain(|threat| !Arc::ptr_eq(threat, &self.threat));
    }
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;

    fn call(uri: &str) -> Call {
        Call::of(&Method::GET, &uri.parse().unwrap())
    }

    #[test]
    fn the_oldest_fault_with_strikes_left_strikes() {
        let faults = Faults::default();
        let pods = call("/api/v1/pods");
        let first = faults.inject(Requests::all().times(1), Fault::LoseResponse);
        let second = faults.inject(Requests::all(), Fault::CutMidLine { after_lines: 0 });
        assert_eq!(faults.strike(&pods, "alice"), Some(Fault::LoseResponse));
        assert_eq!(faults.strike(&pods, "alice"), Some(Fault::CutMidLine { after_lines: 0 }));
        assert_eq!((first.strikes(), second.strikes()), (1, 1));
        second.lift();
        assert_eq!(faults.strike(&pods, "alice"), None);
    }

    #[test]
    fn a_fault_does_not_strike_where_it_can_do_nothing() {
        let faults = Faults::default();
        let gone = faults.inject(Requests::all(), Fault::ErrorEvent(StatusCode::GONE));
        let behind = faults.inject(Requests::all(), Fault::Past { resource_version: 1 });
        assert_eq!(faults.strike(&call("/version"), "alice"), None);
        assert_eq!(faults.strike(&call("/api/v1/namespaces/a/pods/b/log"), "alice"), None);
        assert_eq!((gone.strikes(), behind.strikes()), (0, 0));
        assert!(faults.strike(&call("/api/v1/pods"), "alice").is_some());
        assert!(faults.strike(&call("/api/v1/pods?watch=1"), "alice").is_some());
        assert_eq!((gone.strikes(), behind.strikes()), (1, 1));
    }
}
