//! One request, and the whole of its answer.

use std::time::Duration;

use bellwether_wire::{ApiError, line::root};
use bytes::Bytes;
use http::{Request, response::Parts};
use http_body_util::{BodyExt as _, Limited};
use kube::{Client, client::Body};
use thiserror::Error;
use tokio::time::timeout;

/// How long an API server has for its answer, unless somebody wants it otherwise.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The longest answer that is read. Objects are shorter, and of most of them only the metadata come.
const LONGEST_ANSWER: usize = 4 << 20;

/// Why a request was not answered with a success.
#[derive(Debug, Error)]
pub enum CallError {
    /// It cannot be sent: its path makes no address.
    #[error("no request can be made of it: {0}")]
    Unsendable(#[from] http::Error),
    /// There was no answer. What was asked for may have been done all the same, as for the next two.
    #[error("the API server gave no answer: {}", root(.0))]
    NoAnswer(#[source] kube::Error),
    /// There was none in time.
    #[error("the API server gave no answer within {0:?}")]
    Timeout(Duration),
    /// The answer broke off.
    #[error("the API server's answer broke off: {0}")]
    BrokenOff(String),
    /// The API server answers that it does not do it.
    #[error(transparent)]
    Api(#[from] ApiError),
}

/// Makes a request, and gives the body of its answer.
pub async fn call(
    client: &Client,
    request: http::Result<Request<Vec<u8>>>,
    within: Duration,
) -> Result<Bytes, CallError> {
    let answer = timeout(within, exchange(client, request?)).await;
    let (parts, body) = answer.map_err(|_| CallError::Timeout(within))??;
    ApiError::check(&parts, &body)?;
    Ok(body)
}

/// Makes a request, and gives the whole answer, whatever it is.
pub(super) async fn exchange(
    client: &Client,
    request: Request<Vec<u8>>,
) -> Result<(Parts, Bytes), CallError> {
    let answer = client.send(request.map(Body::from)).await.map_err(CallError::NoAnswer)?;
    let (parts, body) = answer.into_parts();
    let body = Limited::new(body, LONGEST_ANSWER).collect().await;
    let body = body.map_err(|error| CallError::BrokenOff(root(&*error)))?;
    Ok((parts, body.to_bytes()))
}
