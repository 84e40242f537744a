//! The rows of bound objects as JSON: `GET /api/v1/rows/…` and `POST /api/v1/query`.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, RawQuery, Request, State, rejection::PathRejection},
    http::{HeaderMap, StatusCode},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bellwether_api::StatusCollectorSpec;
use bellwether_engine::{BoundRow, BoundRowKey, BoundRowsQuery, GroupKind, RowFilter, ServedResource};
use bellwether_model::{State as Health, text::one_line};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::{task::spawn_blocking, time::timeout};

use crate::{
    guard::{Access, Guard},
    large_response::large_response,
    limits::{ApiRequests, Busy, Permit, Permits},
    recent::Recent,
};

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 500;

/// In bytes. A StatusCollector of the largest size that the API server accepts is smaller.
const MAX_BODY: usize = 1 << 20;

/// Objects that one query names.
const MAX_NAMES: usize = 100;

const MAX_COLLECTORS: usize = 32;

/// In bytes. Names in Kubernetes are not longer, and messages repeat no more of a request.
const MAX_NAME: usize = 253;

/// Queries and requests with `full=true` at the same time: they need much memory.
const LARGE_REQUESTS: usize = 4;

/// Other requests at the same time: the engine does nothing else while it makes their rows.
const SMALL_REQUESTS: usize = 16;

const TIMEOUT: Duration = Duration::from_secs(30);

/// How long the controller knows a kind by another name than its plural.
const DISCOVERED_FOR: Duration = Duration::from_secs(30);

const UNKNOWN_FOR: Duration = Duration::from_secs(5);

const MAX_DISCOVERED: usize = 256;

/// To the API server of the hub at the same time.
const DISCOVERIES_AT_ONCE: usize = 2;

type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send + 'a>>;

/// A kind, and how the hub serves it.
pub type ServedKind = (GroupKind, ServedResource);

/// Reads the rows of bound objects and evaluates collectors over them. Work that goes on when the future is dropped
/// keeps a clone of the permit.
pub trait RowReader: Send + Sync + 'static {
    /// The kind with this plural; `None` if the hub does not serve it.
    fn kind(&self, word: &str) -> Result<Option<ServedKind>, Refusal>;

    /// The kind with this name, as kubectl accepts it. Sends requests to the API server of the hub.
    fn discover<'a>(&'a self, word: &'a str) -> Pending<'a, Option<ServedKind>>;

    fn rows(&self, request: RowsRequest, permit: Permit) -> Pending<'_, RowsPage>;

    /// The JSON of a [`QueryResponse`].
    fn query(&self, request: QueryRequest, kind: GroupKind, permit: Permit) -> Pending<'_, Vec<u8>>;
}

/// Why a request has no rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The object does not exist. A user who may not read the object gets the same response.
    Absent,
    /// No BindingPolicy binds it.
    NotBound(String),
    Invalid(String),
    /// Not known yet, or not reachable.
    Unavailable(String),
    Busy,
}

#[derive(Clone, Debug)]
pub struct RowsRequest {
    pub query: BoundRowsQuery,
    /// As in `kubectl -l`, for the labels of clusters.
    pub cluster_selector: Option<String>,
    /// With the objects themselves.
    pub full: bool,
}

#[derive(Clone, Debug, Default)]
pub struct RowsPage {
    pub rows: Vec<FullRow>,
    pub next: Option<BoundRowKey>,
}

#[derive(Clone, Debug)]
pub struct FullRow {
    pub row: BoundRow,
    /// With [`RowsRequest::full`]: the object, or why the controller could not read it.
    pub object: Option<Result<Value, String>>,
}

/// The body of `POST /api/v1/query`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QueryRequest {
    pub collectors: Vec<NamedSpec>,
    pub objects: ObjectsRequest,
    /// One result over all objects together, instead of one for each object.
    #[serde(default)]
    pub one_table: bool,
}

/// A StatusCollector.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NamedSpec {
    pub name: String,
    pub spec: StatusCollectorSpec,
    /// The columns to return, in order; all by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// Instead of the limit of the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    #[serde(default)]
    pub offset: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ObjectsRequest {
    /// As kubectl accepts it: `deploy`, `deployments.apps`.
    pub kind: String,
    /// All namespaces by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// All objects by default.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// As in `kubectl -l`, for the labels of the objects in the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label_selector: Option<String>,
}

/// What `bellwether query` prints: to stdout with `-o json`, and to stderr.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct QueryResponse {
    pub results: Vec<Value>,
    #[serde(default)]
    pub errors: Vec<String>,
}

struct Rows {
    objects: Arc<dyn RowReader>,
    guard: Arc<Guard>,
    large: Permits,
    small: Permits,
    discovered: Mutex<Recent<String, Option<ServedKind>>>,
    discovery: ApiRequests<String, Result<Option<ServedKind>, Refusal>>,
}

type Shared = State<Arc<Rows>>;

pub(crate) fn routes(objects: Arc<dyn RowReader>, guard: Arc<Guard>) -> Router {
    let rows = Rows {
        objects,
        guard: Arc::clone(&guard),
        large: Permits::new(LARGE_REQUESTS),
        small: Permits::new(SMALL_REQUESTS),
        discovered: Mutex::new(Recent::new(MAX_DISCOVERED)),
        discovery: ApiRequests::new(DISCOVERIES_AT_ONCE),
    };
    Router::new()
        .route("/api/v1/rows/{resource}", get(rows_of_kind))
        .route("/api/v1/rows/{resource}/{place}", get(rows_of_place))
        .route("/api/v1/rows/{resource}/{namespace}/{name}", get(rows_of_object))
        .route("/api/v1/query", post(query))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .route_layer(from_fn_with_state(guard, authenticate))
        .with_state(Arc::new(rows))
}

/// A request without a valid token causes no other request, its body is not read, and its response does not show
/// which kinds the hub serves.
async fn authenticate(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    match guard.authenticate(request.headers()).await {
        Ok(()) => next.run(request).await,
        Err(denied) => denied.into_response(),
    }
}

type Words<T> = Result<Path<T>, PathRejection>;

async fn rows_of_kind(
    State(rows): Shared,
    words: Words<String>,
    RawQuery(parameters): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Ok(Path(resource)) = words else { return not_utf_8() };
    rows.page(&headers, &resource, &[], parameters.as_deref()).await.unwrap_or_else(|response| response)
}

async fn rows_of_place(
    State(rows): Shared,
    words: Words<(String, String)>,
    RawQuery(parameters): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Ok(Path((resource, place))) = words else { return not_utf_8() };
    rows.page(&headers, &resource, &[place], parameters.as_deref()).await.unwrap_or_else(|response| response)
}

async fn rows_of_object(
    State(rows): Shared,
    words: Words<(String, String, String)>,
    RawQuery(parameters): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Ok(Path((resource, namespace, name))) = words else { return not_utf_8() };
    let place = [namespace, name];
    rows.page(&headers, &resource, &place, parameters.as_deref()).await.unwrap_or_else(|response| response)
}

async fn query(State(rows): Shared, headers: HeaderMap, body: Bytes) -> Response {
    rows.query(&headers, &body).await.unwrap_or_else(|response| response)
}

/// Responses are large, and callers return them as they are.
type Answered = Result<Response, Response>;

impl Rows {
    /// `place`: nothing, a namespace, a namespace and a name, or the name of a cluster-scoped object.
    async fn page(
        &self,
        headers: &HeaderMap,
        resource: &str,
        place: &[String],
        parameters: Option<&str>,
    ) -> Answered {
        let absent = || absent(resource, &place.join("/"));
        let words = place.iter().map(String::as_str).chain([resource]);
        check_length(words).map_err(|refusal| refusal.response(absent))?;
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        let kind = self.objects.kind(resource).map_err(|refusal| refusal.response(absent))?;
        let Some((kind, served)) = kind else {
            self.check(headers, &Access::to(group, plural, "", None), absent).await?;
            return Err(absent());
        };
        let (namespace, name) = match place {
            [] if served.namespaced => (None, None),
            [] => (Some(""), None),
            [namespace] if served.namespaced => (Some(&**namespace), None),
            [name] => (Some(""), Some(name)),
            [namespace, name] if served.namespaced => (Some(&**namespace), Some(name)),
            _ => {
                self.check(headers, &Access::to(&kind.group, &served.plural, "", None), absent).await?;
                return Err(absent());
            }
        };
        let name = name.map(String::as_str);
        let access = Access::to(&kind.group, &served.plural, namespace.unwrap_or_default(), name);
        self.check(headers, &access, absent).await?;
        let Parameters { filter, cluster_selector, limit, after, full } =
            Parameters::parse(parameters.unwrap_or_default()).map_err(|error| bad_request(&error))?;
        let query = BoundRowsQuery {
            namespace: namespace.map(Into::into),
            names: name.map(Into::into).into_iter().collect(),
            filter,
            after,
            ..BoundRowsQuery::new(kind.clone(), limit)
        };
        let permits = if full { &self.large } else { &self.small };
        let permit = permits.acquire().await.map_err(IntoResponse::into_response)?;
        let request = RowsRequest { query, cluster_selector, full };
        let page = within(self.objects.rows(request, permit.clone()));
        let page = page.await.map_err(|refusal| refusal.response(absent))?;
        let counts = permit.clone();
        let json = spawn_blocking(move || {
            let _counts = counts;
            serde_json::to_vec(&PageBody {
                kind: &kind.kind,
                group: &kind.group,
                rows: page.rows.iter().map(RowBody::of).collect(),
                next: page.next.map(|next| next.to_string()),
            })
        });
        let json = json.await.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        Ok(large_response(json, permit))
    }

    async fn check(
        &self,
        headers: &HeaderMap,
        access: &Access,
        absent: impl FnOnce() -> Response,
    ) -> Result<(), Response> {
        match self.guard.may_read(headers, access).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(absent()),
            Err(denied) => Err(denied.into_response()),
        }
    }

    /// By its plural, or otherwise as kubectl accepts it.
    async fn kind(&self, word: &str) -> Result<Option<ServedKind>, Refusal> {
        if let Some(kind) = self.objects.kind(word)? {
            return Ok(Some(kind));
        }
        let discovered = || self.discovered.lock().unwrap_or_else(PoisonError::into_inner);
        let word = word.to_owned();
        if let Some(kind) = discovered().get(&word) {
            return Ok(kind);
        }
        let discover = async {
            let kind = self.objects.discover(&word).await?;
            let holds = if kind.is_some() { DISCOVERED_FOR } else { UNKNOWN_FOR };
            discovered().put(word.clone(), kind.clone(), holds);
            Ok(kind)
        };
        self.discovery.send(word.clone(), discover).await?
    }

    async fn query(&self, headers: &HeaderMap, body: &[u8]) -> Answered {
        let request: QueryRequest = serde_json::from_slice(body).map_err(|error| {
            bad_request(&format!("invalid body: {}", one_line(error.to_string(), MAX_NAME)))
        })?;
        let ObjectsRequest { kind: word, namespace, names, .. } = request.objects.clone();
        if request.collectors.is_empty() {
            return Err(bad_request("no collectors. Give at least one in the field collectors"));
        }
        if request.collectors.len() > MAX_COLLECTORS {
            let message = format!(
                "{} collectors. Give at most {MAX_COLLECTORS} in one request",
                request.collectors.len()
            );
            return Err(bad_request(&message));
        }
        if names.len() > MAX_NAMES {
            let message =
                format!("{} objects named. Name at most {MAX_NAMES}, or use labelSelector", names.len());
            return Err(bad_request(&message));
        }
        let place =
            namespace.iter().map(String::as_str).chain([&*names.join(",")]).collect::<Vec<_>>().join("/");
        let absent = || absent(&word, place.trim_matches('/'));
        let words = names.iter().chain(&namespace).map(String::as_str).chain([&*word]);
        check_length(words).map_err(|refusal| refusal.response(absent))?;
        let kind = self.kind(&word).await.map_err(|refusal| refusal.response(absent))?;
        let Some((kind, served)) = kind else { return Err(absent()) };
        let namespace = namespace.as_deref().filter(|_| served.namespaced).unwrap_or_default();
        // A name in any namespace is a list.
        let by_name = !names.is_empty() && (!served.namespaced || !namespace.is_empty());
        let names: Vec<_> =
            if by_name { names.iter().map(|name| Some(&**name)).collect() } else { vec![None] };
        for name in names {
            let access = Access::to(&kind.group, &served.plural, namespace, name);
            self.check(headers, &access, absent).await?;
        }
        let permit = self.large.acquire().await.map_err(IntoResponse::into_response)?;
        let response = within(self.objects.query(request, kind, permit.clone()));
        let response = response.await.map_err(|refusal| refusal.response(absent))?;
        Ok(large_response(response, permit))
    }
}

async fn within<T>(pending: Pending<'_, T>) -> Result<T, Refusal> {
    let too_slow = |_| Refusal::Unavailable(format!("no response within {TIMEOUT:?}. Ask for fewer objects"));
    timeout(TIMEOUT, pending).await.map_err(too_slow)?
}

fn check_length<'w>(mut words: impl Iterator<Item = &'w str>) -> Result<(), Refusal> {
    if words.any(|word| word.len() > MAX_NAME) {
        return Err(Refusal::Invalid(format!("a name is longer than {MAX_NAME} bytes")));
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Parameters {
    filter: RowFilter,
    cluster_selector: Option<String>,
    limit: usize,
    after: Option<BoundRowKey>,
    full: bool,
}

impl Parameters {
    fn parse(text: &str) -> Result<Self, String> {
        let mut parameters = Self { limit: DEFAULT_LIMIT, ..Self::default() };
        for (name, value) in form_urlencoded::parse(text.as_bytes()) {
            let invalid =
                |use_: &str| format!("invalid {name} {:?}: use {use_}", one_line(&*value, MAX_NAME));
            let bool = || value.parse().map_err(|_| invalid("true or false"));
            let list = || value.split(',').map(str::trim).filter(|item| !item.is_empty());
            match &*name {
                "cluster" => parameters.filter.clusters.extend(list().map(str::to_owned)),
                "clusterSelector" => parameters.cluster_selector = Some(value.into_owned()),
                "state" => {
                    let states = list().map(|name| state(name).ok_or_else(|| invalid(&states())));
                    parameters.filter.states.extend(states.collect::<Result<BTreeSet<_>, _>>()?);
                }
                "stale" => parameters.filter.stale = Some(bool()?),
                "found" => parameters.filter.found = Some(bool()?),
                "full" => parameters.full = bool()?,
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
                    parameters.limit =
                        limit.ok_or_else(|| invalid(&format!("a number from 1 to {MAX_LIMIT}")))?;
                }
                "continue" => {
                    let key = value.parse().map_err(|_| invalid("the continue of the page before"))?;
                    parameters.after = Some(key);
                }
                _ => {
                    return Err(format!(
                        "unknown parameter {:?}: use cluster, clusterSelector, state, stale, found, full, limit or \
                         continue",
                        one_line(&*name, MAX_NAME)
                    ));
                }
            }
        }
        Ok(parameters)
    }
}

fn state(name: &str) -> Option<Health> {
    Health::WORST_FIRST.into_iter().find(|state| state.name() == name)
}

fn states() -> String {
    Health::WORST_FIRST.map(Health::name).join(", ")
}

#[derive(Serialize)]
struct PageBody<'a> {
    kind: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    group: &'a str,
    rows: Vec<RowBody<'a>>,
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RowBody<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    namespace: &'a str,
    name: &'a str,
    cluster: &'a str,
    cluster_labels: &'a std::collections::BTreeMap<String, String>,
    found: Option<bool>,
    stale: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_heard: Option<String>,
    state: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    reason: &'a str,
    message: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    policies: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

impl<'a> RowBody<'a> {
    fn of(FullRow { row, object }: &'a FullRow) -> Self {
        Self {
            namespace: &row.key.object.namespace,
            name: &row.key.object.name,
            cluster: &row.key.cluster,
            cluster_labels: &row.metadata.labels,
            found: row.found,
            stale: row.stale,
            last_heard: row.last_heard.map(|time| time.to_string()),
            state: row.state.name(),
            reason: &row.reason,
            message: Cow::Borrowed(&row.message),
            progress: row.progress,
            since: row.since.map(|time| time.to_string()),
            policies: row.policies.iter().map(|name| &**name).collect(),
            object: object.as_ref().and_then(|object| object.as_ref().ok()),
            error: object.as_ref().and_then(|object| object.as_ref().err()).map(String::as_str),
        }
    }
}

impl Refusal {
    fn response(self, absent: impl FnOnce() -> Response) -> Response {
        match self {
            Self::Absent => absent(),
            Self::NotBound(text) => message(StatusCode::NOT_FOUND, &text),
            Self::Invalid(text) => bad_request(&text),
            Self::Unavailable(text) => message(StatusCode::SERVICE_UNAVAILABLE, &text),
            Self::Busy => Busy.into_response(),
        }
    }
}

impl From<Busy> for Refusal {
    fn from(_: Busy) -> Self {
        Self::Busy
    }
}

/// The same for what does not exist and for what the user may not read.
fn absent(resource: &str, place: &str) -> Response {
    let objects = one_line(resource, MAX_NAME);
    let place = one_line(place, MAX_NAME);
    let what = if place.is_empty() { objects.into_owned() } else { format!("{objects} {place}") };
    let text = format!(
        "{what} not found. Check the name, and with kubectl auth can-i that you may read it in the hub"
    );
    message(StatusCode::NOT_FOUND, &text)
}

fn failed(error: &dyn std::error::Error) -> Response {
    message(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string())
}

fn bad_request(text: &str) -> Response {
    message(StatusCode::BAD_REQUEST, text)
}

fn not_utf_8() -> Response {
    bad_request("invalid path: not valid UTF-8")
}

fn message(code: StatusCode, text: &str) -> Response {
    (code, Json(json!({ "message": text }))).into_response()
}
