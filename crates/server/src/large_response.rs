//! Responses that may be large.
//!
//! A response counts for the permit of its request until it is sent, so that the permits bound the memory of all
//! responses. The client has [`SEND_TIMEOUT`] to read it, so that a slow one does not keep the permit: then the
//! rest is dropped, and the connection is closed.

use std::{convert::Infallible, time::Duration};

use axum::{
    body::{Body, Bytes},
    http::header::{CONTENT_LENGTH, CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use futures::stream;
use tokio::{sync::mpsc, time::timeout};

use crate::limits::Permit;

const SEND_TIMEOUT: Duration = Duration::from_mins(1);

/// What hyper keeps of a response for a client that does not read is a few of these.
const CHUNK: usize = 64 << 10;

pub(crate) fn large_response(json: Vec<u8>, permit: Permit) -> Response {
    let length = json.len();
    let (sender, receiver) = mpsc::channel(1);
    // hyper does not poll the body while the client does not read, so that the body cannot end by itself.
    tokio::spawn(async move {
        let _permit = permit;
        let send = async {
            for chunk in json.chunks(CHUNK) {
                // A slice would keep all of the text.
                if sender.send(Bytes::copy_from_slice(chunk)).await.is_err() {
                    break;
                }
            }
        };
        let _ = timeout(SEND_TIMEOUT, send).await;
    });
    let chunks = stream::unfold(receiver, async |mut receiver| {
        Some((Ok::<_, Infallible>(receiver.recv().await?), receiver))
    });
    // By the length, the client and hyper notice a body that ends too early.
    let headers = [(CONTENT_TYPE, "application/json".to_owned()), (CONTENT_LENGTH, length.to_string())];
    (headers, Body::from_stream(chunks)).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;
    use tokio::time::advance;

    use super::*;
    use crate::limits::{Busy, Permits};

    fn json() -> Vec<u8> {
        (0..10 * CHUNK).map(|number| b"0123456789"[number % 10]).collect()
    }

    #[tokio::test]
    async fn a_response_counts_until_it_is_read() {
        let permits = Permits::new(1);
        let response = large_response(json(), permits.acquire().await.unwrap());
        let read = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert!(read == json());
        assert!(permits.acquire().await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_gets_the_beginning_only() {
        let permits = Permits::new(1);
        let response = large_response(json(), permits.acquire().await.unwrap());
        assert_eq!(permits.acquire().await.err(), Some(Busy));
        advance(SEND_TIMEOUT).await;
        assert!(permits.acquire().await.is_ok());
        let read = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        assert!(read.len() < json().len());
    }
}
