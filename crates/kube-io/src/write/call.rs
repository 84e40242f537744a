//! One request and its response.

use std::time::Duration;

use bellwether_wire::{ApiError, error_text::root_cause};
use bytes::Bytes;
use http::{Request, response::Parts};
use http_body_util::{BodyExt as _, Limited};
use kube::{Client, client::Body};
use thiserror::Error;
use tokio::time::timeout;

/// The default timeout of a request.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// In bytes. Objects are smaller, and most responses contain metadata only.
const MAX_RESPONSE: usize = 4 << 20;

/// Why a request got no 2xx response. After `NoResponse`, `Timeout` and `BrokenOff`, the API server may have
/// carried it out.
#[derive(Debug, Error)]
pub enum CallError {
    /// The path is not valid in a URI.
    #[error("cannot build the request: {0}")]
    InvalidRequest(#[from] http::Error),
    #[error("no response from the API server: {}", root_cause(.0))]
    NoResponse(#[source] kube::Error),
    #[error("no response from the API server within {0:?}")]
    Timeout(Duration),
    #[error("incomplete response from the API server: {0}")]
    IncompleteResponse(String),
    #[error(transparent)]
    Api(#[from] ApiError),
}

/// Returns the body of a 2xx response.
pub async fn call(
    client: &Client,
    request: http::Result<Request<Vec<u8>>>,
    within: Duration,
) -> Result<Bytes, CallError> {
    let response = timeout(within, exchange(client, request?)).await;
    let (parts, body) = response.map_err(|_| CallError::Timeout(within))??;
    ApiError::check(&parts, &body)?;
    Ok(body)
}

/// Returns the response, whatever its status.
pub(super) async fn exchange(
    client: &Client,
    request: Request<Vec<u8>>,
) -> Result<(Parts, Bytes), CallError> {
    let response = client.send(request.map(Body::from)).await.map_err(CallError::NoResponse)?;
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, MAX_RESPONSE).collect().await;
    let body = body.map_err(|error| CallError::IncompleteResponse(root_cause(&*error)))?;
    Ok((parts, body.to_bytes()))
}
