//! Finds the kinds of the hub that have objects with a label, in one short list of each kind.

use std::collections::BTreeMap;

use bellwether_engine::{GroupKind, ServedResource};
use bellwether_wire::{
    backoff::{Backoff, BackoffLimits},
    read_error::ReadError,
};
use kube::{Client, api::ListParams, core::Request};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::sleep;
use tracing::debug;

use crate::{
    read::{KindsReceiver, send_and_read},
    write::REQUEST_TIMEOUT,
};

/// A kind that cannot be listed after so many attempts is left out.
const ATTEMPTS: u32 = 8;

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    items: Vec<Value>,
}

/// The kinds with a status of which an object has the label `selector`. Waits until discovery has completed.
pub(crate) async fn labelled_kinds(
    client: Client,
    mut kinds: KindsReceiver,
    selector: String,
) -> Vec<GroupKind> {
    let served = match kinds.wait_for(Option::is_some).await {
        Ok(kinds) => kinds.clone().unwrap_or_default(),
        Err(_) => return Vec::new(),
    };
    let with_status = served.iter().filter(|(_, served)| served.has_status);
    let mut found = Vec::new();
    for (kind, served) in with_status.collect::<BTreeMap<_, _>>() {
        if has_labelled(&client, kind, served, &selector).await {
            found.push(kind.clone());
        }
    }
    found
}

async fn has_labelled(client: &Client, kind: &GroupKind, served: &ServedResource, selector: &str) -> bool {
    let parameters = ListParams::default().labels(selector).limit(1);
    let mut backoff = Backoff::new(BackoffLimits::default());
    for _ in 0..ATTEMPTS {
        let request = Request::new(served.path(&kind.group, None, None)).list_metadata(&parameters);
        let error = match send_and_read(client, request, REQUEST_TIMEOUT).await {
            Ok(page) => {
                return serde_json::from_slice::<Page>(&page).is_ok_and(|page| !page.items.is_empty());
            }
            Err(error) => error,
        };
        debug!(%kind, %error, "cannot list labelled objects");
        if !matches!(error, ReadError::Unavailable { .. } | ReadError::ServerError { .. }) {
            return false;
        }
        let pause = backoff.next_delay(error.retry_after(), &mut rand::rng());
        sleep(pause).await;
    }
    false
}
