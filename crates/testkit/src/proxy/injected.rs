//! The faults that are injected now, and how often each has struck.

use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use super::{
    fault::Fault,
    requests::{RequestAttributes, Requests},
};
use crate::lock;

/// The injected faults, oldest first.
#[derive(Clone, Default)]
pub(super) struct Faults(Arc<Mutex<Vec<Arc<ActiveFault>>>>);

struct ActiveFault {
    requests: Requests,
    fault: Fault,
    strikes: watch::Sender<usize>,
    done: watch::Sender<usize>,
    /// Closes when the fault is lifted. Carries no values.
    lifted: watch::Receiver<()>,
}

impl Faults {
    pub(super) fn inject(&self, requests: Requests, fault: Fault) -> Injected {
        let (lift, lifted) = watch::channel(());
        let (strikes, done) = (watch::Sender::new(0), watch::Sender::new(0));
        let active = Arc::new(ActiveFault { requests, fault, strikes, done, lifted });
        lock(&self.0).push(active.clone());
        Injected { faults: self.clone(), active, _lift: lift }
    }

    /// Strikes this request with the oldest fault that matches it and has strikes left.
    pub(super) fn strike(&self, request: &RequestAttributes) -> Option<Strike> {
        let all = lock(&self.0);
        let active = all.iter().find(|active| {
            active.fault.concerns(&request.call)
                && active.requests.matches(request)
                && *active.strikes.borrow() < active.requests.limit()
        })?;
        active.strikes.send_modify(|strikes| *strikes += 1);
        Some(Strike(active.clone()))
    }
}

/// A fault that strikes one request.
pub(super) struct Strike(Arc<ActiveFault>);

impl Strike {
    pub(super) fn fault(&self) -> Fault {
        self.0.fault
    }

    /// Records that the server has handled the request. See [`Injected::done`].
    pub(super) fn done(&self) {
        self.0.done.send_modify(|done| *done += 1);
    }

    /// Waits until the fault is lifted.
    pub(super) fn lifted(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut lifted = self.0.lifted.clone();
        async move { while lifted.changed().await.is_ok() {} }
    }
}

/// Keeps a fault injected until it is dropped.
///
/// Dropping it releases held responses and events. Other struck requests stay struck.
#[must_use = "the fault ends when this is dropped"]
pub struct Injected {
    faults: Faults,
    active: Arc<ActiveFault>,
    /// Dropping it closes the channel on which held responses and events wait.
    _lift: watch::Sender<()>,
}

impl Injected {
    /// How many requests the fault has struck so far.
    pub fn strikes(&self) -> usize {
        *self.active.strikes.borrow()
    }

    /// Waits until the fault has struck at least this many requests.
    pub async fn struck(&self, times: usize) {
        reached(&self.active.strikes, times).await;
    }

    /// Waits until the server has handled at least this many of the struck requests.
    ///
    /// With [`LoseResponse`](Fault::LoseResponse) and [`HoldResponse`](Fault::HoldResponse), a request is
    /// done when the API server has sent its complete response. With other faults it is done when a response
    /// has begun, either that of the API server or that of the fault. It is never done if the client
    /// disconnects before, if the API server is down, or if [`HalfOpen`](Fault::HalfOpen) does not forward
    /// it.
    pub async fn done(&self, times: usize) {
        reached(&self.active.done, times).await;
    }

    pub fn lift(self) {}
}

async fn reached(count: &watch::Sender<usize>, times: usize) {
    // The sender is borrowed, so the channel cannot close.
    let _ = count.subscribe().wait_for(|count| *count >= times).await;
}

impl Drop for Injected {
    fn drop(&mut self) {
        lock(&self.faults.0).retain(|active| !Arc::ptr_eq(active, &self.active));
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use http::{Method, StatusCode};

    use super::*;
    use crate::proxy::call::Call;

    fn request(uri: &str) -> RequestAttributes {
        let call = Call::of(&Method::GET, &uri.parse().unwrap());
        RequestAttributes { call, user: "alice".to_owned(), user_agent: None }
    }

    fn struck(faults: &Faults, uri: &str) -> Option<Fault> {
        faults.strike(&request(uri)).map(|strike| strike.fault())
    }

    #[test]
    fn the_oldest_fault_with_strikes_left_strikes() {
        let faults = Faults::default();
        let pods = "/api/v1/pods";
        let first = faults.inject(Requests::all().times(1), Fault::LoseResponse);
        let second = faults.inject(Requests::all(), Fault::CutMidLine { after_lines: 0 });
        assert_eq!(struck(&faults, pods), Some(Fault::LoseResponse));
        assert_eq!(struck(&faults, pods), Some(Fault::CutMidLine { after_lines: 0 }));
        assert_eq!((first.strikes(), second.strikes()), (1, 1));
        second.lift();
        assert_eq!(struck(&faults, pods), None);
    }

    #[test]
    fn a_fault_does_not_strike_requests_that_it_cannot_affect() {
        let faults = Faults::default();
        let gone = faults.inject(Requests::all(), Fault::ErrorEvent(StatusCode::GONE));
        let behind = faults.inject(Requests::all(), Fault::Past { resource_version: 1 });
        assert_eq!(struck(&faults, "/version"), None);
        assert_eq!(struck(&faults, "/api/v1/namespaces/a/pods/b/log"), None);
        assert_eq!((gone.strikes(), behind.strikes()), (0, 0));
        assert!(struck(&faults, "/api/v1/pods").is_some());
        assert!(struck(&faults, "/api/v1/pods?watch=1").is_some());
        assert_eq!((gone.strikes(), behind.strikes()), (1, 1));
    }

    #[test]
    fn hold_events_strikes_watches_and_hold_response_other_requests() {
        let faults = Faults::default();
        let _answers = faults.inject(Requests::all(), Fault::HoldResponse);
        let _events = faults.inject(Requests::all(), Fault::HoldEvents);
        assert_eq!(struck(&faults, "/api/v1/pods"), Some(Fault::HoldResponse));
        assert_eq!(struck(&faults, "/api/v1/pods?watch=1"), Some(Fault::HoldEvents));
    }

    #[test]
    fn a_strike_notices_that_its_fault_is_lifted() {
        let faults = Faults::default();
        let fault = faults.inject(Requests::all(), Fault::HoldResponse);
        let strike = faults.strike(&request("/version")).unwrap();
        let mut lifted = Box::pin(strike.lifted());
        assert!(lifted.as_mut().now_or_never().is_none());
        assert!(fault.done(1).now_or_never().is_none());
        strike.done();
        assert!(fault.done(1).now_or_never().is_some());
        fault.lift();
        assert!(lifted.now_or_never().is_some());
        assert!(strike.lifted().now_or_never().is_some());
    }
}
