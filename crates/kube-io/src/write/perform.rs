//! One attempt at a write.

use std::time::Duration;

use bellwether_engine::Outcome;
use bellwether_wire::{Attempt, WriteResult};
use kube::Client;
use tokio::time::timeout;

use super::call::{CallError, exchange};

/// Makes one attempt at a write, without retries.
///
/// After a timeout, the API server may still have carried out the write. A retry is safe: a patch names the
/// resourceVersion, a creation the name, a deletion the UID.
pub async fn perform(client: &Client, attempt: Attempt, within: Duration) -> WriteResult {
    let done = timeout(within, send_all(client, attempt)).await;
    done.unwrap_or(Err(CallError::Timeout(within)))
        .unwrap_or_else(|error| Outcome::Failed(error.to_string().into()).into())
}

async fn send_all(client: &Client, mut attempt: Attempt) -> Result<WriteResult, CallError> {
    loop {
        let request = match attempt.request() {
            Ok(request) => request,
            Err(done) => return Ok(done),
        };
        let (parts, body) = exchange(client, request).await?;
        if let Some(done) = attempt.answered(&parts, &body) {
            return Ok(done);
        }
    }
}
