//! Bounds of what requests over HTTP cause at the same time.

use std::{
    collections::HashMap,
    future::Future,
    hash::Hash,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use axum::{
    Json,
    http::{StatusCode, header::RETRY_AFTER},
    response::{IntoResponse, Response},
};
use serde_json::json;
use tokio::{
    sync::{OnceCell, OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// For a permit.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// No permit was free within [`MAX_WAIT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy;

/// Counts until its last clone is dropped.
#[derive(Clone, Debug)]
pub struct Permit(#[expect(dead_code, reason = "it counts")] Arc<OwnedSemaphorePermit>);

pub(crate) struct Permits(Arc<Semaphore>);

impl Permits {
    pub(crate) fn new(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count)))
    }

    pub(crate) async fn acquire(&self) -> Result<Permit, Busy> {
        match timeout(MAX_WAIT, Arc::clone(&self.0).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Permit(Arc::new(permit))),
            // The semaphore is never closed.
            Ok(Err(_)) | Err(_) => Err(Busy),
        }
    }
}

impl IntoResponse for Busy {
    fn into_response(self) -> Response {
        let body =
            json!({ "message": "the controller has too many requests at the same time. Try again later" });
        let retry_after = [(RETRY_AFTER, MAX_WAIT.as_secs().to_string())];
        (StatusCode::SERVICE_UNAVAILABLE, retry_after, Json(body)).into_response()
    }
}

/// Different requests to the API server that are sent or wait for a permit.
const MAX_IN_FLIGHT: usize = 1024;

/// Requests to the API server. Few are sent at the same time, and equal ones are sent once.
pub(crate) struct ApiRequests<K, V> {
    in_flight: Mutex<HashMap<K, Weak<Shared<V>>>>,
    permits: Permits,
}

type Shared<V> = OnceCell<Result<V, Busy>>;

impl<K: Eq + Hash, V: Clone> ApiRequests<K, V> {
    pub(crate) fn new(count: usize) -> Self {
        Self { in_flight: Mutex::default(), permits: Permits::new(count) }
    }

    pub(crate) async fn send(&self, key: K, request: impl Future<Output = V>) -> Result<V, Busy> {
        let with_permit = async || {
            let _permit = self.permits.acquire().await?;
            Ok(request.await)
        };
        // If the client whose request is sent disconnects, that of another client is.
        self.shared(key)?.get_or_init(with_permit).await.clone()
    }

    fn shared(&self, key: K) -> Result<Arc<Shared<V>>, Busy> {
        let mut in_flight = self.in_flight.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = in_flight.get(&key).and_then(Weak::upgrade) {
            return Ok(shared);
        }
        in_flight.retain(|_, shared| shared.strong_count() > 0);
        if in_flight.len() >= MAX_IN_FLIGHT {
            return Err(Busy);
        }
        let shared = Arc::default();
        in_flight.insert(key, Arc::downgrade(&shared));
        Ok(shared)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        future::pending,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_permit_counts_until_its_last_clone_is_dropped() {
        let permits = Permits::new(1);
        let permit = permits.acquire().await.unwrap();
        let abandoned = permit.clone();
        drop(permit);
        assert_eq!(permits.acquire().await.err(), Some(Busy));
        drop(abandoned);
        assert!(permits.acquire().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn equal_requests_are_sent_once() {
        let (requests, sent) = (ApiRequests::new(1), AtomicUsize::new(0));
        let request = async || {
            sent.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_secs(1)).await;
            "response"
        };
        let (one, other) = tokio::join!(requests.send("a", request()), requests.send("a", request()));
        assert_eq!((one, other, sent.load(Ordering::Relaxed)), (Ok("response"), Ok("response"), 1));
        assert_eq!(requests.send("a", request()).await, Ok("response"));
        assert_eq!(sent.load(Ordering::Relaxed), 2, "it is not kept");
    }

    #[tokio::test(start_paused = true)]
    async fn a_disconnected_client_does_not_keep_others_waiting() {
        let requests = ApiRequests::new(1);
        let disconnected = timeout(Duration::from_secs(1), requests.send("a", pending()));
        let other = requests.send("a", async { "response" });
        let (disconnected, other) = tokio::join!(disconnected, other);
        assert!(disconnected.is_err());
        assert_eq!(other, Ok("response"));
    }

    #[tokio::test(start_paused = true)]
    async fn few_requests_are_sent_at_the_same_time() {
        let (requests, in_flight) = (ApiRequests::new(2), AtomicUsize::new(0));
        let request = async || {
            let before = in_flight.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_secs(2)).await;
            in_flight.fetch_sub(1, Ordering::Relaxed);
            before < 2
        };
        let send = |key: usize| requests.send(key, request());
        let responses = tokio::join!(send(0), send(1), send(2), send(3), send(4), send(5), send(6));
        let (first, last) = (responses.0, responses.6);
        assert_eq!((first, responses.2, responses.4), (Ok(true), Ok(true), Ok(true)));
        assert_eq!(last, Err(Busy), "it waits for longer than five seconds");
    }
}
