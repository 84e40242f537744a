//! A watch that goes on whatever happens to the API server.

use std::{rc::Rc, time::Duration};

use anyhow::{Context as _, Result, bail};
use bellwether_simulation::object::Object;
use futures::{AsyncBufReadExt as _, TryStreamExt as _};
use http::Request;
use kube::Client;
use serde_json::Value as Json;
use tokio::time::{sleep, timeout};

use crate::{cast::Place, chronicle::Revision};

/// How long a list may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait before asking again.
const PAUSE: Duration = Duration::from_millis(200);

/// What is told of the objects of a kind.
pub(crate) enum Told {
    /// All of them, as they are at this revision. What happened since the last word is not known.
    All(Revision, Vec<Rc<Object>>),
    /// The kind is not served.
    NotServed,
    /// One of them has changed, or is gone.
    One(Revision, Rc<Object>, Gone),
    /// Nothing else has happened up to this revision.
    Nothing(Revision),
    /// From now on changes are told, or not any more.
    Hears(bool),
}

/// Whether an object is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It is.
    Yes,
    /// It is not.
    No,
}

/// How a watch ended.
enum Ended {
    /// It can go on from here.
    At(Revision),
    /// What has happened since cannot be had any more.
    Expired,
}

/// Tells all that happens to the objects of a kind, for ever.
pub(crate) async fn follow(client: &Client, place: Place, mut tell: impl FnMut(Told)) {
    loop {
        match list(client, place).await {
            Ok(Some((revision, items))) => {
                tell(Told::All(revision, items));
                let mut at = revision;
                while let Ok(Ended::At(revision)) = watch(client, place, at, &mut tell).await {
                    at = revision;
                    sleep(PAUSE).await;
                }
            }
            Ok(None) => tell(Told::NotServed),
            Err(_) => {}
        }
        sleep(PAUSE).await;
    }
}

/// All objects of a kind, and the revision at which they are so. Nothing where the kind is not served.
pub(crate) async fn list(client: &Client, place: Place) -> Result<Option<(Revision, Vec<Rc<Object>>)>> {
    let request = Request::get(place.path()).body(Vec::new())?;
    let mut answer: Json = match timeout(PATIENCE, client.request(request)).await? {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(None),
        answer => answer?,
    };
    let revision = revision(&answer)?;
    let Json::Array(items) = answer["items"].take() else { bail!("a list without items") };
    let object = |mut item: Json| {
        // The items of a list do not say what they are.
        item["apiVersion"] = place.api_version().into();
        item["kind"] = place.kind.into();
        Rc::new(Object::new(item))
    };
    Ok(Some((revision, items.into_iter().map(object).collect())))
}

/// The number of the last change of an object or a list.
fn revision(object: &Json) -> Result<Revision> {
    Ok(object["metadata"]["resourceVersion"].as_str().context("no resourceVersion")?.parse()?)
}

/// Watches until the watch ends. What cannot be reached is asked again.
async fn watch(client: &Client, place: Place, since: Revision, tell: &mut impl FnMut(Told)) -> Result<Ended> {
    let path = format!(
        "{}?watch=1&allowWatchBookmarks=true&timeoutSeconds=1800&resourceVersion={since}",
        place.path()
    );
    let request = Request::get(path).body(Vec::new())?;
    let mut lines = match timeout(PATIENCE, client.request_stream(request)).await {
        Ok(Ok(stream)) => stream.lines(),
        Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 410) => return Ok(Ended::Expired),
        _ => return Ok(Ended::At(since)),
    };
    tell(Told::Hears(true));
    let ended = hear(&mut lines, since, tell).await;
    tell(Told::Hears(false));
    ended
}

async fn hear(
    lines: &mut (impl futures::TryStream<Ok = String> + Unpin),
    since: Revision,
    tell: &mut impl FnMut(Told),
) -> Result<Ended> {
    let mut at = since;
    while let Ok(Some(line)) = lines.try_next().await {
        // A line that was cut off comes again.
        let Ok(mut event) = serde_json::from_str::<Json>(&line) else { break };
        let object = event["object"].take();
        match event["type"].as_str() {
            Some("ERROR") => return Ok(Ended::Expired),
            Some("BOOKMARK") => {
                at = revision(&object)?;
                tell(Told::Nothing(at));
            }
            what => {
                at = revision(&object)?;
                let gone = if what == Some("DELETED") { Gone::Yes } else { Gone::No };
                tell(Told::One(at, Rc::new(Object::new(object)), gone));
            }
        }
    }
    Ok(Ended::At(at))
}
