//! A reflector that survives every failure of the API server.

use std::{rc::Rc, time::Duration};

use anyhow::{Context as _, Result, bail};
use bellwether_simulation::object::Object;
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use http::Request;
use kube::Client;
use serde_json::Value as Json;
use tokio::time::{sleep, timeout};

use crate::{history::Revision, objects::ApiResource};

/// The timeout of a list, and of the start of a watch.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The pause before a retry.
const PAUSE: Duration = Duration::from_millis(200);

pub(crate) enum WatchEvent {
    /// All objects at this revision. Changes since the last event may be missing.
    Listed(Revision, Vec<Rc<Object>>),
    /// The kind is not served.
    NotServed,
    Changed(Revision, Rc<Object>, Gone),
    /// No other change has happened up to this revision.
    Bookmark(Revision),
    /// A watch has started or ended.
    Connected(bool),
}

/// Whether an object is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    Yes,
    No,
}

enum WatchEnd {
    /// The watch can resume from this revision.
    At(Revision),
    /// A relist is necessary.
    Expired,
}

/// Lists and watches a kind for ever.
pub(crate) async fn follow(client: &Client, resource: ApiResource, mut emit: impl FnMut(WatchEvent)) {
    loop {
        match list(client, resource).await {
            Ok(Some((revision, items))) => {
                emit(WatchEvent::Listed(revision, items));
                let mut at = revision;
                while let Ok(WatchEnd::At(revision)) = watch(client, resource, at, &mut emit).await {
                    at = revision;
                    sleep(PAUSE).await;
                }
            }
            Ok(None) => emit(WatchEvent::NotServed),
            Err(_) => {}
        }
        sleep(PAUSE).await;
    }
}

/// All objects of a kind and the revision of the list. `None` if the kind is not served.
pub(crate) async fn list(
    client: &Client,
    resource: ApiResource,
) -> Result<Option<(Revision, Vec<Rc<Object>>)>> {
    let request = Request::get(resource.path()).body(Vec::new())?;
    let mut answer: Json = match timeout(TIMEOUT, client.request(request)).await? {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
        answer => answer?,
    };
    let revision = revision(&answer)?;
    let Json::Array(items) = answer["items"].take() else { bail!("the list has no items") };
    let object = |mut item: Json| {
        // Items of a list have neither apiVersion nor kind.
        item["apiVersion"] = resource.api_version().into();
        item["kind"] = resource.kind.into();
        Rc::new(Object::new(item))
    };
    Ok(Some((revision, items.into_iter().map(object).collect())))
}

fn revision(object: &Json) -> Result<Revision> {
    Ok(object["metadata"]["resourceVersion"].as_str().context("no resourceVersion")?.parse()?)
}

/// Watches until the watch ends. Returns `At(since)` if the API server cannot be reached.
async fn watch(
    client: &Client,
    resource: ApiResource,
    since: Revision,
    emit: &mut impl FnMut(WatchEvent),
) -> Result<WatchEnd> {
    let path = format!(
        "{}?watch=1&allowWatchBookmarks=true&timeoutSeconds=1800&resourceVersion={since}",
        resource.path()
    );
    let request = Request::get(path).body(Vec::new())?;
    let mut lines = match timeout(TIMEOUT, client.request_stream(request)).await {
        Ok(Ok(stream)) => stream.lines(),
        Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 410) => {
            return Ok(WatchEnd::Expired);
        }
        _ => return Ok(WatchEnd::At(since)),
    };
    emit(WatchEvent::Connected(true));
    let end = read_events(&mut lines, since, emit).await;
    emit(WatchEvent::Connected(false));
    end
}

async fn read_events(
    lines: &mut (impl futures::TryStream<Ok = String> + Unpin),
    since: Revision,
    emit: &mut impl FnMut(WatchEvent),
) -> Result<WatchEnd> {
    let mut at = since;
    while let Ok(Some(line)) = lines.try_next().await {
        // A truncated line: the next watch repeats the event.
        let Ok(mut event) = serde_json::from_str::<Json>(&line) else { break };
        let object = event["object"].take();
        match event["type"].as_str() {
            Some("ERROR") => return Ok(WatchEnd::Expired),
            Some("BOOKMARK") => {
                at = revision(&object)?;
                emit(WatchEvent::Bookmark(at));
            }
            what => {
                at = revision(&object)?;
                let gone = if what == Some("DELETED") { Gone::Yes } else { Gone::No };
                emit(WatchEvent::Changed(at, Rc::new(Object::new(object)), gone));
            }
        }
    }
    Ok(WatchEnd::At(at))
}
