//! Reads as a stale API server answers them.

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header::ACCEPT};
use http_body_util::BodyExt;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Body,
    call::{Call, Verb},
    injected::Strike,
    lines,
    query::Query,
    status,
    upstream::Upstream,
};

/// A read of the state at `resource_version`.
pub(super) struct StaleRead<'a> {
    pub(super) resource_version: u64,
    pub(super) call: &'a Call,
    pub(super) strike: &'a Strike,
    /// The API server, reached as the client. It checks the client's rights.
    pub(super) client: &'a Upstream,
    /// The API server, reached as an administrator, for reads that the client did not request and may not be
    /// allowed.
    pub(super) admin: &'a Upstream,
}

/// A list at an exact resourceVersion.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Snapshot {
    kind: String,
    api_version: String,
    items: Vec<Value>,
}

impl StaleRead<'_> {
    pub(super) async fn answer(&self, request: Request<Bytes>) -> Result<Response<Body>> {
        let query = Query::of(request.uri());
        let wanted = query.get("resourceVersion").and_then(|version| version.parse().ok()).unwrap_or(0);
        if wanted > self.resource_version {
            return self.too_new(request, &query, wanted).await;
        }
        match self.call.verb {
            Verb::Get => self.get(request).await,
            Verb::List => self.list(request, query).await,
            Verb::Watch if query.is_true("sendInitialEvents") => self.watch(request, query, true).await,
            Verb::Watch if wanted == 0 => self.watch(request, query, false).await,
            _ => self.client.send(request).await,
        }
    }

    /// The response to a request for a newer resourceVersion.
    async fn too_new(&self, request: Request<Bytes>, query: &Query, wanted: u64) -> Result<Response<Body>> {
        let too_large = status::too_large_resource_version(wanted, self.resource_version);
        match self.call.verb {
            Verb::Watch if query.is_true("sendInitialEvents") => status::event(&too_large),
            Verb::Watch => {
                let changes = self.client.send(request).await?;
                Ok(lines::of_events(changes, |events| lines::hold(events, self.strike.lifted())))
            }
            _ => status::answer(&too_large),
        }
    }

    async fn list(&self, mut request: Request<Bytes>, query: Query) -> Result<Response<Body>> {
        // A continue token carries the resourceVersion of the first page, and an exact read is the same on
        // every API server.
        let exact = query.get("resourceVersionMatch") == Some("Exact");
        if query.get("continue").is_none() && !exact {
            *request.uri_mut() = self.exactly(query).to_uri(request.uri().path())?;
        }
        self.client.send(request).await
    }

    async fn get(&self, request: Request<Bytes>) -> Result<Response<Body>> {
        let name = self.call.name.as_deref().context("a get without a name")?;
        let path = collection(request.uri().path(), self.call).to_owned();
        let query = Query::default().with("fieldSelector", format!("metadata.name={name}"));
        let accept = plain_json(&request);

        let current = self.client.send(request).await?;
        if !current.status().is_success() && current.status() != StatusCode::NOT_FOUND {
            return Ok(current);
        }
        let snapshot = match self.snapshot(&path, query, &accept).await? {
            Ok(snapshot) => snapshot,
            Err(error) => return Ok(error),
        };
        let Some(object) = snapshot.objects().next() else {
            let resource = self.call.resource.as_ref().map(ToString::to_string);
            let message = format!("{} \"{name}\" not found", resource.unwrap_or_default());
            return status::answer(&status::failure(StatusCode::NOT_FOUND, self.call, message));
        };
        Ok(status::json_response(StatusCode::OK, serde_json::to_vec(&object)?))
    }

    /// A watch that begins with the stale state and continues with all events since.
    async fn watch(
        &self,
        mut request: Request<Bytes>,
        query: Query,
        bookmark: bool,
    ) -> Result<Response<Body>> {
        let path = request.uri().path().to_owned();
        let accept = plain_json(&request);
        let query = query.without(&["sendInitialEvents", "resourceVersionMatch"]);
        let since = query.clone().with("resourceVersion", self.resource_version.to_string());
        *request.uri_mut() = since.to_uri(&path)?;
        request.headers_mut().insert(ACCEPT, accept.clone());
        let changes = self.client.send(request).await?;
        if !changes.status().is_success() {
            return Ok(changes);
        }

        let query = query.without(&["watch", "allowWatchBookmarks", "timeoutSeconds"]);
        let snapshot = match self.snapshot(&path, query, &accept).await? {
            Ok(snapshot) => snapshot,
            Err(error) => return Ok(error),
        };
        let mut events = Vec::new();
        let end =
            bookmark.then(|| json!({ "type": "BOOKMARK", "object": snapshot.end(self.resource_version) }));
        let added = snapshot.objects().map(|object| json!({ "type": "ADDED", "object": object }));
        for event in added.chain(end) {
            serde_json::to_writer(&mut events, &event)?;
            events.push(b'\n');
        }
        Ok(changes.map(|body| lines::prepend(events.into(), body)))
    }

    /// The list at `resource_version`, or the error response of the API server.
    async fn snapshot(
        &self,
        path: &str,
        query: Query,
        accept: &HeaderValue,
    ) -> Result<Result<Snapshot, Response<Body>>> {
        let mut request = Request::new(Bytes::new());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = self.exactly(query).to_uri(path)?;
        request.headers_mut().insert(ACCEPT, list_of(accept));
        let response = self.admin.send(request).await?;
        if !response.status().is_success() {
            return Ok(Err(response));
        }
        let document = response.into_body().collect().await?.to_bytes();
        Ok(Ok(serde_json::from_slice(&document).context("cannot decode a list")?))
    }

    fn exactly(&self, query: Query) -> Query {
        query.with("resourceVersion", self.resource_version.to_string()).with("resourceVersionMatch", "Exact")
    }
}

impl Snapshot {
    /// The items with `kind` and `apiVersion`, which lists of built-in kinds leave out.
    fn objects(self) -> impl Iterator<Item = Value> {
        let (kind, api_version) = (self.item_kind().to_owned(), self.api_version);
        self.items.into_iter().map(move |mut object| {
            if let Some(fields) = object.as_object_mut() {
                fields.entry("kind").or_insert_with(|| kind.clone().into());
                fields.entry("apiVersion").or_insert_with(|| api_version.clone().into());
            }
            object
        })
    }

    /// The object of the bookmark that ends the initial events.
    fn end(&self, resource_version: u64) -> Value {
        json!({
            "kind": self.item_kind(),
            "apiVersion": self.api_version,
            "metadata": {
                "resourceVersion": resource_version.to_string(),
                "annotations": { "k8s.io/initial-events-end": "true" },
            },
        })
    }

    fn item_kind(&self) -> &str {
        self.kind.strip_suffix("List").unwrap_or(&self.kind)
    }
}

/// The path of the collection that contains the object of the call.
fn collection<'a>(path: &'a str, call: &Call) -> &'a str {
    let subresource = call.resource.as_ref().is_some_and(|resource| resource.subresource.is_some());
    let mut path = path.trim_end_matches('/');
    for _ in 0..=usize::from(subresource) {
        path = path.rsplit_once('/').map_or(path, |(parent, _)| parent);
    }
    path
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const METADATA: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
const METADATA_LIST: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");

/// Full objects or their metadata, as the client prefers, but never tables.
fn plain_json(request: &Request<Bytes>) -> HeaderValue {
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if accept.contains("as=PartialObjectMetadata") { METADATA } else { JSON }
}

fn list_of(accept: &HeaderValue) -> HeaderValue {
    if accept == METADATA { METADATA_LIST } else { JSON }
}
