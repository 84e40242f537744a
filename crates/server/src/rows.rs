//! The rows of bound objects as JSON: `GET /api/v1/rows/…` and `POST /api/v1/query`.

use std::{borrow::Cow, collections::BTreeSet, future::Future, pin::Pin, sync::Arc};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{DefaultBodyLimit, Path, RawQuery, State, rejection::PathRejection},
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bellwether_api::StatusCollectorSpec;
use bellwether_engine::{BoundRow, BoundRowKey, BoundRowsQuery, GroupKind, RowFilter, ServedResource};
use bellwether_model::{State as Health, text::one_line};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::guard::{Access, Denied, Guard};

const DEFAULT_LIMIT: usize = 100;
const MAX_LIMIT: usize = 500;

/// In bytes. A StatusCollector of the largest size that the API server accepts is smaller.
const MAX_BODY: usize = 1 << 20;

/// Objects that one query names.
const MAX_NAMES: usize = 100;

const MAX_COLLECTORS: usize = 32;

/// Of texts of a request in a message.
const MAX_ECHO: usize = 253;

type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send + 'a>>;

/// Reads bound objects and evaluates collectors over them.
pub trait BoundObjects: Send + Sync + 'static {
    /// The kind that a word means, and how the hub serves it; `None` if it does not. Only with `as_kubectl`, the
    /// word may be a short name, which costs a request.
    fn kind<'a>(
        &'a self,
        word: &'a str,
        as_kubectl: bool,
    ) -> Pending<'a, Option<(GroupKind, ServedResource)>>;

    fn rows(&self, request: RowsRequest) -> Pending<'_, RowsPage>;

    fn query(&self, request: QueryRequest, kind: GroupKind) -> Pending<'_, QueryResponse>;
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The object does not exist, as far as a user is concerned who may not read it either.
    Absent,
    /// No BindingPolicy binds it.
    NotBound(String),
    Invalid(String),
    /// Not known yet, or not reachable.
    Unavailable(String),
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
    /// If it was asked for: the object, or why it could not be read.
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

#[derive(Clone)]
struct Shared {
    objects: Arc<dyn BoundObjects>,
    guard: Arc<Guard>,
}

pub(crate) fn routes(objects: Arc<dyn BoundObjects>, guard: Arc<Guard>) -> Router {
    Router::new()
        .route("/api/v1/rows/{resource}", get(rows_of_kind))
        .route("/api/v1/rows/{resource}/{place}", get(rows_of_place))
        .route("/api/v1/rows/{resource}/{namespace}/{name}", get(rows_of_object))
        .route("/api/v1/query", post(query))
        .layer(DefaultBodyLimit::max(MAX_BODY))
        .with_state(Shared { objects, guard })
}

type Words<T> = Result<Path<T>, PathRejection>;

async fn rows_of_kind(
    State(shared): State<Shared>,
    words: Words<String>,
    RawQuery(parameters): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Ok(Path(resource)) = words else { return not_utf_8() };
    shared.rows(&headers, &resource, &[], parameters.as_deref()).await.unwrap_or_else(|response| response)
}

async fn rows_of_place(
    State(shared): State<Shared>,
    words: Words<(String, String)>,
    RawQuery(parameters): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Ok(Path((resource, place))) = words else { return not_utf_8() };
    shared
        .rows(&headers, &resource, &[place], parameters.as_deref())
        .await
        .unwrap_or_else(|response| response)
}

async fn rows_of_object(
    State(shared): State<Shared>,
    words: Words<(String, String, String)>,
    RawQuery(parameters): RawQuery,
    headers: HeaderMap,
) -> Response {
    let Ok(Path((resource, namespace, name))) = words else { return not_utf_8() };
    let place = [namespace, name];
    shared.rows(&headers, &resource, &place, parameters.as_deref()).await.unwrap_or_else(|response| response)
}

async fn query(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    shared.query(&headers, &body).await.unwrap_or_else(|response| response)
}

/// Responses are large, and callers return them as they are.
type Answered = Result<Response, Response>;

impl Shared {
    /// `place`: nothing, a namespace, a namespace and a name, or the name of a cluster-scoped object.
    async fn rows(
        &self,
        headers: &HeaderMap,
        resource: &str,
        place: &[String],
        parameters: Option<&str>,
    ) -> Answered {
        let absent = || absent(resource, &place.join("/"));
        let words = place.iter().map(String::as_str).chain([resource]);
        self.check_token(headers, resource, "", words).await?;
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        let kind = self.objects.kind(resource, false).await.map_err(|refusal| refusal.response(absent))?;
        let Some((kind, served)) = kind else {
            let all = Access::to(group, plural, "", None);
            self.guard.check(headers, &all).await.map_err(|denied| denied.response(absent))?;
            return Err(absent());
        };
        let (namespace, name) = match place {
            [] => (None, None),
            [namespace] if served.namespaced => (Some(namespace), None),
            [name] => (None, Some(name)),
            [namespace, name] if served.namespaced => (Some(namespace), Some(name)),
            _ => {
                let all = Access::to(&kind.group, &served.plural, "", None);
                self.guard.check(headers, &all).await.map_err(|denied| denied.response(absent))?;
                return Err(absent());
            }
        };
        let access = Access::to(
            &kind.group,
            &served.plural,
            namespace.map_or("", String::as_str),
            name.map(String::as_str),
        );
        self.guard.check(headers, &access).await.map_err(|denied| denied.response(absent))?;
        let Parameters { filter, cluster_selector, limit, after, full } =
            Parameters::parse(parameters.unwrap_or_default()).map_err(|error| bad_request(&error))?;
        let query = BoundRowsQuery {
            namespace: namespace.map(|namespace| namespace.as_str().into()),
            names: name.map(|name| name.as_str().into()).into_iter().collect(),
            filter,
            after,
            ..BoundRowsQuery::new(kind.clone(), limit)
        };
        let request = RowsRequest { query, cluster_selector, full };
        let page = self.objects.rows(request).await.map_err(|refusal| refusal.response(absent))?;
        let body = PageBody {
            kind: &kind.kind,
            group: &kind.group,
            rows: page.rows.iter().map(RowBody::of).collect(),
            next: page.next.map(|next| next.to_string()),
        };
        Ok(Json(body).into_response())
    }

    /// A request without a valid token neither causes discovery nor shows which kinds are served.
    async fn check_token<'w>(
        &self,
        headers: &HeaderMap,
        resource: &str,
        namespace: &str,
        mut words: impl Iterator<Item = &'w str>,
    ) -> Result<(), Response> {
        // The guard remembers them.
        if words.any(|word| word.len() > MAX_ECHO) {
            return Err(bad_request(&format!("a name is longer than {MAX_ECHO} bytes")));
        }
        let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
        match self.guard.check(headers, &Access::to(group, plural, namespace, None)).await {
            Ok(()) | Err(Denied::NotAllowed) => Ok(()),
            Err(denied) => Err(denied.response(|| absent(resource, namespace))),
        }
    }

    async fn query(&self, headers: &HeaderMap, body: &[u8]) -> Answered {
        let request: QueryRequest = serde_json::from_slice(body).map_err(|error| {
            bad_request(&format!("invalid body: {}", one_line(error.to_string(), MAX_ECHO)))
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
        self.check_token(headers, &word, namespace.as_deref().unwrap_or_default(), words).await?;
        let kind = self.objects.kind(&word, true).await.map_err(|refusal| refusal.response(absent))?;
        let Some((kind, served)) = kind else { return Err(absent()) };
        let namespace = namespace.as_deref().filter(|_| served.namespaced).unwrap_or_default();
        // A name in any namespace is a list.
        let by_name = !names.is_empty() && (!served.namespaced || !namespace.is_empty());
        let names: Vec<_> =
            if by_name { names.iter().map(|name| Some(&**name)).collect() } else { vec![None] };
        for name in names {
            let access = Access::to(&kind.group, &served.plural, namespace, name);
            self.guard.check(headers, &access).await.map_err(|denied| denied.response(absent))?;
        }
        let response = self.objects.query(request, kind).await.map_err(|refusal| refusal.response(absent))?;
        Ok(Json(response).into_response())
    }
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
                |use_: &str| format!("invalid {name} {:?}: use {use_}", one_line(&*value, MAX_ECHO));
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
                        one_line(&*name, MAX_ECHO)
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
        }
    }
}

/// The same for what does not exist and for what the user may not read.
fn absent(resource: &str, place: &str) -> Response {
    let objects = one_line(resource, MAX_ECHO);
    let place = one_line(place, MAX_ECHO);
    let what = if place.is_empty() { objects.into_owned() } else { format!("{objects} {place}") };
    let text = format!(
        "{what} not found. Check the name, and with kubectl auth can-i that you may read it in the hub"
    );
    message(StatusCode::NOT_FOUND, &text)
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
