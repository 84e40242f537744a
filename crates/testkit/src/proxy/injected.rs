//! Which faults are in force, and what they have done.

use std::sync::{Arc, Mutex};

use tokio::sync::watch;

use super::{
    fault::Fault,
    requests::{Asked, Requests},
};
use crate::lock;

/// The faults in force, the oldest first.
#[derive(Clone, Default)]
pub(super) struct Faults(Arc<Mutex<Vec<Arc<Threat>>>>);

struct Threat {
    requests: Requests,
    fault: Fault,
    strikes: watch::Sender<usize>,
    done: watch::Sender<usize>,
    /// Open as long as the fault is in force; nothing is sent.
    in_force: watch::Receiver<()>,
}

impl Faults {
    pub(super) fn inject(&self, requests: Requests, fault: Fault) -> Injected {
        let (end, in_force) = watch::channel(());
        let (strikes, done) = (watch::Sender::new(0), watch::Sender::new(0));
        let threat = Arc::new(Threat { requests, fault, strikes, done, in_force });
        lock(&self.0).push(threat.clone());
        Injected { faults: self.clone(), threat, _end: end }
    }

    /// The strike that this request gets: from the oldest fault that means it and has strikes left.
    pub(super) fn strike(&self, asked: &Asked) -> Option<Strike> {
        let threats = lock(&self.0);
        let threat = threats.iter().find(|threat| {
            threat.fault.concerns(&asked.call)
                && threat.requests.matches(asked)
                && *threat.strikes.borrow() < threat.requests.limit()
        })?;
        threat.strikes.send_modify(|strikes| *strikes += 1);
        Some(Strike(threat.clone()))
    }
}

/// A fault upon one request.
pub(super) struct Strike(Arc<Threat>);

impl Strike {
    pub(super) fn fault(&self) -> Fault {
        self.0.fault
    }

    /// Says that the server's part in the request is over.
    pub(super) fn done(&self) {
        self.0.done.send_modify(|done| *done += 1);
    }

    /// Waits until the fault is no longer in force.
    pub(super) fn lifted(&self) -> impl Future<Output = ()> + Send + use<> {
        let mut in_force = self.0.in_force.clone();
        async move { while in_force.changed().await.is_ok() {} }
    }
}

/// A fault that is in force until this is dropped.
///
/// What it holds back until then goes on; other requests that it has struck stay struck.
#[must_use = "the fault ends when this is dropped"]
pub struct Injected {
    faults: Faults,
    threat: Arc<Threat>,
    /// Closes the channel from which those who are held back learn of the end.
    _end: watch::Sender<()>,
}

impl Injected {
    /// How many requests it has struck so far.
    pub fn strikes(&self) -> usize {
        *self.threat.strikes.borrow()
    }

    /// Waits until it has struck at least so many requests.
    pub async fn struck(&self, times: usize) {
        reached(&self.threat.strikes, times).await;
    }

    /// Waits until at least so many of the struck requests are done, whatever their clients know of it.
    ///
    /// With [`LoseResponse`](Fault::LoseResponse) and [`HoldResponse`](Fault::HoldResponse) a request is done when the
    /// API server has carried it out and given its whole answer, with other faults when an answer has begun, be it the
    /// API server's or the fault's own. It is never done if its client goes before that, if the API server is away, or
    /// if a [`HalfOpen`](Fault::HalfOpen) keeps it from the API server.
    pub async fn done(&self, times: usize) {
        reached(&self.threat.done, times).await;
    }

    /// Ends the fault.
    pub fn lift(self) {}
}

async fn reached(count: &watch::Sender<usize>, times: usize) {
    // The sender is borrowed, so the channel cannot close meanwhile.
    let _ = count.subscribe().wait_for(|count| *count >= times).await;
}

impl Drop for Injected {
    fn drop(&mut self) {
        lock(&self.faults.0).retain(|threat| !Arc::ptr_eq(threat, &self.threat));
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use http::{Method, StatusCode};

    use super::*;
    use crate::proxy::call::Call;

    fn asked(uri: &str) -> Asked {
        let call = Call::of(&Method::GET, &uri.parse().unwrap());
        Asked { call, user: "alice".to_owned(), user_agent: None }
    }

    fn struck(faults: &Faults, uri: &str) -> Option<Fault> {
        faults.strike(&asked(uri)).map(|strike| strike.fault())
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
    fn a_fault_does_not_strike_where_it_can_do_nothing() {
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
    fn watches_have_their_events_held_and_others_their_answers() {
        let faults = Faults::default();
        let _answers = faults.inject(Requests::all(), Fault::HoldResponse);
        let _events = faults.inject(Requests::all(), Fault::HoldEvents);
        assert_eq!(struck(&faults, "/api/v1/pods"), Some(Fault::HoldResponse));
        assert_eq!(struck(&faults, "/api/v1/pods?watch=1"), Some(Fault::HoldEvents));
    }

    #[test]
    fn a_strike_sees_the_end_of_its_fault() {
        let faults = Faults::default();
        let fault = faults.inject(Requests::all(), Fault::HoldResponse);
        let strike = faults.strike(&asked("/version")).unwrap();
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
