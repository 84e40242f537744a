//! One change, made.

use std::time::Duration;

use bellwether_engine::Outcome;
use bellwether_wire::{Attempt, Done, line::root};
use bytes::Bytes;
use http::{Request, response::Parts};
use http_body_util::{BodyExt as _, Limited};
use kube::{Client, client::Body};
use tokio::time::timeout;

/// How long an API server has for its answer, unless somebody wants it otherwise.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The longest answer that is read. Objects are shorter, and of most of them only the metadata come.
const LONGEST_ANSWER: usize = 4 << 20;

/// Makes a change, and says how it ended, within this time. It is tried once: who wants it tried again decides when.
///
/// What takes longer may have been done all the same. That does no harm: a change to an object names the version that it
/// is meant for, and nothing is created or deleted twice.
pub async fn perform(client: &Client, attempt: Attempt, within: Duration) -> Done {
    let made = timeout(within, make(client, attempt)).await;
    made.unwrap_or_else(|_| Err(format!("the API server gave no answer within {within:?}")))
        .unwrap_or_else(|why| Outcome::Failed(why.into()).into())
}

async fn make(client: &Client, mut attempt: Attempt) -> Result<Done, String> {
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

/// Asks, and reads the whole answer.
pub(super) async fn exchange(client: &Client, request: Request<Vec<u8>>) -> Result<(Parts, Bytes), String> {
    let answer = client.send(request.map(Body::from)).await;
    let answer = answer.map_err(|error| format!("the API server gave no answer: {}", root(&error)))?;
    let (parts, body) = answer.into_parts();
    let body = Limited::new(body, LONGEST_ANSWER).collect().await;
    let body = body.map_err(|error| format!("the API server's answer broke off: {}", root(&*error)))?;
    Ok((parts, body.to_bytes()))
}
