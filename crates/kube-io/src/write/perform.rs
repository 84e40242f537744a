//! One change, made.

use std::time::Duration;

use bellwether_engine::Outcome;
use bellwether_wire::{Attempt, Done};
use kube::Client;
use tokio::time::timeout;

use super::call::{CallError, exchange};

/// Makes a change, and says how it ended, within this time. It is tried once: who wants it tried again decides when.
///
/// What takes longer may have been done all the same. That does no harm: a change to an object names the version that it
/// is meant for, and nothing is created or deleted twice.
pub async fn perform(client: &Client, attempt: Attempt, within: Duration) -> Done {
    let made = timeout(within, make(client, attempt)).await;
    made.unwrap_or(Err(CallError::Timeout(within)))
        .unwrap_or_else(|error| Outcome::Failed(error.to_string().into()).into())
}

async fn make(client: &Client, mut attempt: Attempt) -> Result<Done, CallError> {
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
