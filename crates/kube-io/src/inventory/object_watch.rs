//! Lists and watches the objects of the hub from which the inventory is made.

use std::convert::Infallible;

use bellwether_engine::ResourceVersion;
use bellwether_wire::{
    list_watch_policy::{ListWatchEnd, ListWatchPolicy, ReadState, ReadStep},
    read_error::ReadError,
};
use kube::{
    Client,
    api::{ListParams, WatchParams},
    core::{Request, WatchEvent},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::time::sleep;
use tracing::{debug, info};

use crate::{
    clock::now,
    read::{ReaderSettings, Watch, send_and_read},
};

const PAGE_SIZE: u32 = 100;

/// A change of the watched objects.
#[derive(Debug)]
pub(super) enum Change<T> {
    /// All objects that there are.
    Listed(Vec<T>),
    Applied(T),
    Deleted(T),
}

/// Takes in the changes of objects.
pub(super) trait Follower<T> {
    fn changed(&self, change: Change<T>) -> impl Future<Output = ()> + Send;

    /// The right to list or watch them is missing.
    fn forbidden(&self) -> impl Future<Output = ()> + Send;
}

/// The objects at a path, such as `/api/v1/namespaces/default/secrets`.
pub(super) struct Objects<'a> {
    pub(super) client: &'a Client,
    pub(super) settings: &'a ReaderSettings,
    pub(super) path: &'a str,
    pub(super) label_selector: Option<&'a str>,
    /// Logged if the right to list and watch them is missing.
    pub(super) if_forbidden: &'a str,
}

#[derive(Deserialize)]
struct Page {
    metadata: ListMetadata,
    #[serde(default)]
    items: Vec<Value>,
}

#[derive(Deserialize)]
struct ListMetadata {
    #[serde(rename = "resourceVersion", default)]
    resource_version: String,
    #[serde(rename = "continue", default)]
    continue_token: String,
}

/// The part of the objects of all kinds that a watch needs.
#[derive(Deserialize)]
struct Versioned {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    resource_version: String,
}

impl Objects<'_> {
    /// Never ends: errors are retried. Until the API server responds again, what was reported stays.
    pub(super) async fn watch<T: DeserializeOwned>(&self, follower: &impl Follower<T>) -> Infallible {
        let mut policy = ListWatchPolicy::new(self.settings.backoff);
        loop {
            let ended = match policy.step() {
                ReadStep::List => match self.list(&mut policy).await {
                    Ok(objects) => {
                        follower.changed(Change::Listed(objects)).await;
                        continue;
                    }
                    Err(error) => error.into(),
                },
                ReadStep::Watch(since) => self.watch_from(&since, &mut policy, follower).await,
            };
            let reaction = policy.ended(&ended, now().passed, &mut rand::rng());
            if let Some(error) = &ended.error {
                debug!(path = self.path, %error, after = ?reaction.pause, "list or watch failed: retrying");
                if reaction.new_state == Some(ReadState::Forbidden) {
                    info!(%error, "{}", self.if_forbidden);
                    follower.forbidden().await;
                }
            }
            sleep(reaction.pause).await;
        }
    }

    async fn list<T: DeserializeOwned>(&self, policy: &mut ListWatchPolicy) -> Result<Vec<T>, ReadError> {
        let mut objects = Vec::new();
        let mut parameters =
            ListParams { label_selector: self.label_selector.map(str::to_owned), ..ListParams::default() }
                .limit(PAGE_SIZE);
        let mut version = None;
        loop {
            let request = Request::new(self.path).list(&parameters);
            let response = send_and_read(self.client, request, self.settings.response_timeout).await?;
            let page: Page = serde_json::from_slice(&response)
                .map_err(|_| ReadError::rejected("cannot decode the list"))?;
            objects.extend(page.items.into_iter().filter_map(|item| self.decode(item)));
            if version.is_none() {
                let first = ResourceVersion::new(&page.metadata.resource_version);
                policy.accept(&first, now().passed)?;
                version = Some(first);
            }
            parameters.continue_token = Some(page.metadata.continue_token).filter(|token| !token.is_empty());
            if parameters.continue_token.is_none() {
                policy.listed(version.unwrap_or_else(|| ResourceVersion::new("")));
                return Ok(objects);
            }
        }
    }

    async fn watch_from<T: DeserializeOwned>(
        &self,
        since: &ResourceVersion,
        policy: &mut ListWatchPolicy,
        follower: &impl Follower<T>,
    ) -> ListWatchEnd {
        let request = |parameters: &WatchParams| {
            let parameters =
                WatchParams { label_selector: self.label_selector.map(str::to_owned), ..parameters.clone() };
            Request::new(self.path).watch(&parameters, since.as_str())
        };
        match Watch::start(self.client, self.settings, request).await {
            Ok(_) if !policy.opened() => ListWatchEnd { lasted: true, error: None },
            Ok(mut watch) => {
                let error = self.receive(&mut watch, policy, follower).await.err();
                ListWatchEnd { lasted: watch.has_lasted(), error }
            }
            Err(error) => error.into(),
        }
    }

    async fn receive<T: DeserializeOwned>(
        &self,
        watch: &mut Watch,
        policy: &mut ListWatchPolicy,
        follower: &impl Follower<T>,
    ) -> Result<(), ReadError> {
        while watch.next().await? {
            let event: WatchEvent<Value> = serde_json::from_slice(watch.line())
                .map_err(|_| ReadError::rejected("cannot decode a watch event"))?;
            let (object, is_deleted) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(bookmark) => {
                    watch.sends_bookmarks();
                    policy.observe_version(&ResourceVersion::new(&bookmark.metadata.resource_version));
                    policy.watch_succeeded();
                    continue;
                }
                WatchEvent::Error(status) => {
                    let is_expired = status.code == 410;
                    return Err(if is_expired {
                        ReadError::Expired
                    } else {
                        ReadError::unavailable(status.message)
                    });
                }
            };
            if let Ok(Versioned { metadata }) = Versioned::deserialize(&object) {
                policy.observe_version(&ResourceVersion::new(&metadata.resource_version));
            }
            policy.watch_succeeded();
            match self.decode(object) {
                Some(object) if is_deleted => follower.changed(Change::Deleted(object)).await,
                Some(object) => follower.changed(Change::Applied(object)).await,
                None => {}
            }
        }
        Ok(())
    }

    /// The error is not logged: it may quote the content of a Secret.
    fn decode<T: DeserializeOwned>(&self, object: Value) -> Option<T> {
        let decoded = serde_json::from_value(object);
        if decoded.is_err() {
            debug!(path = self.path, "ignored a malformed object");
        }
        decoded.ok()
    }
}
