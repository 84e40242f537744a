//! Finds the kinds of the hub that have objects with a label, in one short list of each kind.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use bellwether_engine::{DiscoveredKinds, GroupKind, ServedResource, can_be_singleton};
use bellwether_wire::{
    backoff::{Backoff, BackoffLimits},
    read_error::ReadError,
};
use kube::{Client, api::ListParams, core::Request};
use serde::Deserialize;
use serde_json::Value;
use tokio::{sync::mpsc, time::sleep};
use tracing::debug;

use crate::{
    read::{KindsReceiver, send_and_read},
    rights::Rights,
    write::REQUEST_TIMEOUT,
};

/// A kind whose webhook or API server is down may stay so for days.
const BACKOFF: BackoffLimits =
    BackoffLimits { first: Duration::from_millis(100), longest: Duration::from_mins(5) };

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    items: Vec<Value>,
}

/// Which kinds are searched.
pub(crate) enum SearchScope {
    All,
    /// Those whose objects this process may patch. Others cannot have got a label from it, unless its rights have
    /// changed, or are for single namespaces.
    Patchable {
        /// Of this process.
        namespace: String,
    },
}

/// The search for kinds with a status of which an object has a label.
pub(crate) struct LabelledKinds {
    pub(crate) scope: SearchScope,
    pub(crate) client: Client,
    pub(crate) kinds: KindsReceiver,
    /// The search waits until the hub serves this kind.
    pub(crate) required: GroupKind,
    /// As in a list request: `KEY=VALUE`.
    pub(crate) selector: String,
    pub(crate) found: mpsc::Sender<GroupKind>,
}

impl LabelledKinds {
    /// Sends the kinds. Completes after each kind that discovery finds was listed once. A failed list is
    /// repeated, unless the kind cannot be listed at all.
    pub(crate) async fn find(mut self) {
        let mut searched = BTreeSet::new();
        let mut backoff = Backoff::new(BACKOFF);
        let mut rights = None;
        loop {
            let is_required = |kinds: &Arc<DiscoveredKinds>| kinds.served.contains_key(&self.required);
            let kinds = self.kinds.wait_for(|kinds| kinds.as_ref().is_some_and(is_required)).await;
            let Some(kinds) = kinds.ok().and_then(|kinds| kinds.clone()) else { return };
            if rights.is_none() {
                rights = self.rights().await;
            }
            let is_in_scope = |kind: &GroupKind, served: &ServedResource| {
                served.has_status
                    && can_be_singleton(kind)
                    && rights.as_ref().is_none_or(|rights| rights.may_patch(kind, served))
            };
            let mut failure = None;
            for (kind, served) in &kinds.served {
                if searched.contains(kind) || !is_in_scope(kind, served) {
                    continue;
                }
                match self.has_labelled(kind, served).await {
                    Ok(false) => {}
                    Ok(true) => {
                        if self.found.send(kind.clone()).await.is_err() {
                            return;
                        }
                    }
                    Err(error) => {
                        debug!(%kind, %error, "cannot list labelled objects");
                        if is_temporary(&error) {
                            failure = Some(error);
                            continue;
                        }
                    }
                }
                searched.insert(kind.clone());
            }
            match failure {
                Some(error) => {
                    let pause = backoff.next_delay(error.retry_after(), &mut rand::rng());
                    sleep(pause).await;
                }
                None if kinds.unavailable_groups.is_empty() => return,
                // Kinds may be missing.
                None => {
                    if self.kinds.changed().await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// `None` if all kinds are to be searched, or if the API server does not tell.
    async fn rights(&self) -> Option<Rights> {
        let SearchScope::Patchable { namespace } = &self.scope else { return None };
        Rights::request(&self.client, namespace)
            .await
            .inspect_err(|error| debug!(%error, "cannot request the rights of this process"))
            .ok()
    }

    async fn has_labelled(&self, kind: &GroupKind, served: &ServedResource) -> Result<bool, ReadError> {
        let parameters = ListParams::default().labels(&self.selector).limit(1);
        let request = Request::new(served.path(&kind.group, None, None)).list_metadata(&parameters);
        let page = send_and_read(&self.client, request, REQUEST_TIMEOUT).await?;
        Ok(serde_json::from_slice::<Page>(&page).is_ok_and(|page| !page.items.is_empty()))
    }
}

fn is_temporary(error: &ReadError) -> bool {
    matches!(error, ReadError::Unavailable { .. } | ReadError::ServerError { .. })
}
