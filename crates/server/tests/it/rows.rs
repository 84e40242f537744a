//! Rows and queries over HTTP, and who may read them.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bellwether_engine::{BoundRow, BoundRowKey, ClusterMetadata, GroupKind, NamespacedName, ServedResource};
use bellwether_model::State;
use bellwether_server::{
    Access, Api, Denied, FullRow, Guard, Permit, QueryRequest, QueryResponse, Refusal, Reviewed, Reviews,
    RowReader, RowsPage, RowsRequest, ServedKind,
};
use http::HeaderMap;
use k8s_openapi::api::authentication::v1::UserInfo;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::{
    join,
    time::{advance, sleep},
};

use crate::{Known, code, exchange};

/// Ten rows of the Deployment `web`; nothing else is bound.
#[derive(Default)]
struct Fleet {
    discoveries: AtomicUsize,
    /// Of queries whose evaluation goes on after the response: those over the collector `slow`.
    evaluations: Mutex<Vec<Permit>>,
}

type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send + 'a>>;

fn served(kind: GroupKind, plural: &str, namespaced: bool) -> ServedKind {
    let served = ServedResource {
        version: "v1".into(),
        versions: Box::default(),
        plural: plural.into(),
        namespaced,
        has_status: true,
    };
    (kind, served)
}

fn deployments() -> ServedKind {
    served(GroupKind::new("apps", "Deployment"), "deployments", true)
}

impl RowReader for Fleet {
    fn kind(&self, word: &str) -> Result<Option<ServedKind>, Refusal> {
        Ok(match word {
            "deployments" | "deployments.apps" => Some(deployments()),
            "nodes" => Some(served(GroupKind::new("", "Node"), "nodes", false)),
            _ => None,
        })
    }

    fn discover<'a>(&'a self, word: &'a str) -> Pending<'a, Option<ServedKind>> {
        self.discoveries.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { Ok(Some(deployments()).filter(|_| word == "deploy")) })
    }

    fn rows(&self, RowsRequest { query, full, .. }: RowsRequest, _permit: Permit) -> Pending<'_, RowsPage> {
        Box::pin(async move {
            if query.names.iter().any(|name| **name == *"unbound") {
                return Err(Refusal::NotBound("no BindingPolicy binds Deployment shop/unbound".to_owned()));
            }
            if query.names.iter().any(|name| **name == *"gone") {
                return Err(Refusal::Absent);
            }
            let first = query
                .after
                .as_ref()
                .map_or(0, |after| after.cluster[1..].parse::<usize>().expect("a number") + 1);
            let all = (first..10).map(|number| FullRow {
                row: row(number),
                object: full.then(|| if number == 0 { Err("no response".to_owned()) } else { Ok(json!({})) }),
            });
            let is_wanted = |row: &FullRow| {
                let states = &query.filter.states;
                states.is_empty() || states.contains(&row.row.state)
            };
            let rows: Vec<_> = all.filter(is_wanted).take(query.limit).collect();
            let next = rows.last().map(|row| row.row.key.clone()).filter(|key| *key.cluster != *"c9");
            Ok(RowsPage { rows, next })
        })
    }

    fn query(&self, request: QueryRequest, kind: GroupKind, permit: Permit) -> Pending<'_, Vec<u8>> {
        let name = &request.collectors[0].name;
        if name == "slow" {
            self.evaluations.lock().expect("no panic").push(permit);
        }
        let results = vec![json!({"collector": name, "kind": kind.to_string()})];
        let response = QueryResponse { results, errors: Vec::new() };
        Box::pin(async move { Ok(serde_json::to_vec(&response).expect("JSON")) })
    }
}

fn row(number: usize) -> BoundRow {
    let cluster = format!("c{number}").into();
    BoundRow {
        key: BoundRowKey { object: NamespacedName::new("shop", "web"), cluster },
        metadata: Arc::new(ClusterMetadata::default()),
        found: Some(true),
        stale: false,
        last_heard: Some("2026-11-14T10:00:00Z".parse().expect("a time")),
        state: if number == 3 { State::Failed } else { State::Ready },
        reason: "Why".into(),
        message: "\"so\" <b>it</b> is".to_owned(),
        progress: Some(100),
        since: None,
        policies: vec!["edge".into()],
        variables: None,
    }
}

/// Tokens are names of users: `viewer` may read the namespace `shop`, `admin` everything. Names with `stolen` are
/// invalid tokens, and for any other, the API server does not respond.
#[derive(Default)]
struct Rights {
    is_revoked: AtomicBool,
    token_reviews: AtomicUsize,
    access_reviews: AtomicUsize,
}

impl Rights {
    /// TokenReviews and SubjectAccessReviews.
    fn reviews(&self) -> [usize; 2] {
        [&self.token_reviews, &self.access_reviews].map(|count| count.load(Ordering::Relaxed))
    }
}

impl Reviews for Rights {
    fn user<'a>(
        &'a self,
        token: &'a str,
    ) -> Pin<Box<dyn Future<Output = Reviewed<Option<UserInfo>>> + Send + 'a>> {
        self.token_reviews.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            sleep(Duration::from_millis(10)).await;
            let user = UserInfo { username: Some(token.to_owned()), ..UserInfo::default() };
            match token {
                "admin" | "viewer" => Ok(Some(user)),
                stolen if stolen.starts_with("stolen") => Ok(None),
                _ => Err("no response from the API server".to_owned()),
            }
        })
    }

    fn may<'a>(
        &'a self,
        user: &'a UserInfo,
        access: &'a Access,
    ) -> Pin<Box<dyn Future<Output = Reviewed<bool>> + Send + 'a>> {
        self.access_reviews.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            sleep(Duration::from_millis(10)).await;
            let is_revoked = self.is_revoked.load(Ordering::Relaxed);
            Ok(user.username.as_deref() == Some("admin") || (access.namespace == "shop" && !is_revoked))
        })
    }
}

fn api(guard: Guard) -> Api {
    Api::default().with_rows(Arc::new(Fleet::default()), Arc::new(guard))
}

/// The status code and the JSON of the response, without a guard.
async fn get(path: &str) -> (u16, Value) {
    let (head, body) = exchange(Known::default(), api(Guard::open()), "GET", path, "", "").await;
    (code(&head), serde_json::from_str(&body).unwrap_or_default())
}

async fn get_as(guard: Guard, token: &str, path: &str) -> (u16, Value) {
    let header = if token.is_empty() { String::new() } else { format!("authorization: Bearer {token}\r\n") };
    let (head, body) = exchange(Known::default(), api(guard), "GET", path, &header, "").await;
    (code(&head), serde_json::from_str(&body).unwrap_or_default())
}

#[tokio::test]
async fn without_tokens_only_addresses_are_served() {
    let path = "/api/v1/rows/deployments.apps/shop/web";
    for (host, expected) in [
        ("localhost:8080", 200),
        ("127.0.0.1:8080", 200),
        ("[::1]:8080", 200),
        ("rebound.example.com:8080", 403),
        ("localhost.example.com", 403),
    ] {
        let header = format!("host: {host}\r\n");
        let (head, _) = exchange(Known::default(), api(Guard::open()), "GET", path, &header, "").await;
        assert_eq!(code(&head), expected, "{host}");
    }
}

#[tokio::test]
async fn long_names_are_refused() {
    let path = format!("/api/v1/rows/deployments.apps/{}/web", "n".repeat(300));
    assert_eq!(get_as(guard(), "viewer", &path).await.0, 400);
}

fn guard() -> Guard {
    Guard::new(Arc::new(Rights::default()))
}

fn clusters(body: &Value) -> Vec<&str> {
    body["rows"].as_array().into_iter().flatten().filter_map(|row| row["cluster"].as_str()).collect()
}

#[tokio::test]
async fn a_row_says_what_is_known_of_an_object_in_a_cluster() {
    let (code, body) = get("/api/v1/rows/deployments.apps/shop/web?limit=1").await;
    assert_eq!(code, 200);
    assert_eq!(
        body,
        json!({
            "kind": "Deployment", "group": "apps", "continue": "shop/web/c0",
            "rows": [{
                "namespace": "shop", "name": "web", "cluster": "c0", "clusterLabels": {}, "found": true,
                "stale": false, "lastHeard": "2026-11-14T10:00:00Z", "state": "Ready", "reason": "Why",
                "message": "\"so\" <b>it</b> is", "progress": 100, "policies": ["edge"],
            }],
        })
    );
}

#[tokio::test]
async fn pages_continue_until_the_last_row() {
    let (mut all, mut next) = (Vec::new(), String::new());
    for page in 1.. {
        let (code, body) = get(&format!("/api/v1/rows/deployments.apps/shop?limit=4{next}")).await;
        assert_eq!(code, 200, "{body}");
        all.extend(clusters(&body).into_iter().map(str::to_owned));
        let Some(key) = body["continue"].as_str() else {
            assert_eq!(page, 3);
            break;
        };
        next = format!("&continue={key}");
    }
    assert_eq!(all, (0..10).map(|number| format!("c{number}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn filters_and_full_objects() {
    let (_, body) = get("/api/v1/rows/deployments.apps?state=Failed,Missing&stale=false&cluster=c3").await;
    assert_eq!(clusters(&body), ["c3"]);
    let (_, body) = get("/api/v1/rows/deployments.apps?full=true&limit=2").await;
    assert_eq!(
        (&body["rows"][0]["error"], &body["rows"][0]["object"]),
        (&json!("no response"), &Value::Null)
    );
    assert_eq!((&body["rows"][1]["error"], &body["rows"][1]["object"]), (&Value::Null, &json!({})));
}

#[rstest]
#[case::limit("limit=0", "invalid limit \"0\": use a number from 1 to 500")]
#[case::too_many("limit=501", "invalid limit \"501\": use a number from 1 to 500")]
#[case::state(
    "state=Bad",
    "invalid state \"Bad\": use Failed, Missing, InProgress, Unknown, Terminating, Suspended, Ready"
)]
#[case::stale("stale=yes", "invalid stale \"yes\": use true or false")]
#[case::page("continue=web", "invalid continue \"web\": use the continue of the page before")]
#[case::unknown(
    "sort=name",
    "unknown parameter \"sort\": use cluster, clusterSelector, state, stale, found, full, limit or continue"
)]
#[tokio::test]
async fn invalid_parameters(#[case] parameters: &str, #[case] message: &str) {
    let answer = get(&format!("/api/v1/rows/deployments.apps/shop/web?{parameters}")).await;
    assert_eq!(answer, (400, json!({ "message": message })));
}

#[rstest]
#[case::kind("/api/v1/rows/widgets/shop/web", 404)]
#[case::short_name("/api/v1/rows/deploy/shop/web", 404)]
#[case::object("/api/v1/rows/deployments.apps/shop/gone", 404)]
#[case::cluster_scoped("/api/v1/rows/nodes/n1", 200)]
#[case::no_namespace("/api/v1/rows/nodes/shop/n1", 404)]
#[case::not_utf_8("/api/v1/rows/%FF", 400)]
#[case::no_resource("/api/v1/rows/", 404)]
#[tokio::test]
async fn paths(#[case] path: &str, #[case] expected: u16) {
    let (code, body) = get(path).await;
    assert_eq!(code, expected, "{body}");
}

#[tokio::test]
async fn an_object_that_is_not_bound_is_named() {
    let (code, body) = get("/api/v1/rows/deployments.apps/shop/unbound").await;
    assert_eq!(code, 404);
    assert_eq!(body["message"], "no BindingPolicy binds Deployment shop/unbound");
}

#[rstest]
#[case::no_token("", "/api/v1/rows/deployments.apps/shop/web", 401)]
#[case::no_token_and_no_kind("", "/api/v1/rows/widgets", 401)]
#[case::an_invalid_token("stolen", "/api/v1/rows/deployments.apps/shop/web", 401)]
#[case::no_kind_with_an_invalid_token("stolen", "/api/v1/rows/widgets", 401)]
#[case::an_object("viewer", "/api/v1/rows/deployments.apps/shop/web", 200)]
#[case::a_namespace("viewer", "/api/v1/rows/deployments.apps/shop", 200)]
#[case::another_namespace("viewer", "/api/v1/rows/deployments.apps/infra", 404)]
#[case::all_namespaces("viewer", "/api/v1/rows/deployments.apps", 404)]
#[case::everything("admin", "/api/v1/rows/deployments.apps", 200)]
#[case::no_response("other", "/api/v1/rows/deployments.apps", 503)]
#[tokio::test]
async fn the_api_server_decides_who_may_read(#[case] token: &str, #[case] path: &str, #[case] expected: u16) {
    let (code, body) = get_as(guard(), token, path).await;
    assert_eq!(code, expected, "{body}");
    if code != 200 {
        let message = body["message"].as_str().expect("a message");
        assert!(message.contains(". "), "{message} has no way out");
    }
}

/// Nothing in the answer tells one from the other.
#[tokio::test]
async fn what_may_not_be_read_looks_like_what_is_not_there() {
    let denied = get_as(guard(), "viewer", "/api/v1/rows/deployments.apps/infra/gone").await;
    let absent = get_as(guard(), "admin", "/api/v1/rows/deployments.apps/infra/gone").await;
    assert_eq!(denied.0, 404);
    assert_eq!(denied, absent);
    let unknown = get_as(guard(), "viewer", "/api/v1/rows/widgets/infra/gone").await;
    let text =
        |body: &Value| body["message"].as_str().map(|text| text.replace("widgets", "deployments.apps"));
    assert_eq!(text(&unknown.1), text(&denied.1));
}

fn headers(token: &str) -> HeaderMap {
    let value = format!("Bearer {token}").parse().expect("a value");
    [(http::header::AUTHORIZATION, value)].into_iter().collect()
}

fn watched_guard() -> (Arc<Rights>, Guard) {
    let rights = Arc::new(Rights::default());
    (Arc::clone(&rights), Guard::new(rights))
}

fn web(namespace: &str) -> Access {
    Access::to("apps", "deployments", namespace, Some("web"))
}

#[tokio::test(start_paused = true)]
async fn a_decision_holds_for_a_short_time() {
    let (rights, guard) = watched_guard();
    let viewer = headers("viewer");
    let may_read = async || guard.may_read(&viewer, &web("shop")).await;
    for _ in 0..3 {
        assert_eq!(may_read().await, Ok(true));
    }
    assert_eq!(rights.reviews(), [1, 1]);
    rights.is_revoked.store(true, Ordering::Relaxed);
    advance(Duration::from_secs(14)).await;
    assert_eq!(may_read().await, Ok(true));
    advance(Duration::from_secs(2)).await;
    assert_eq!(may_read().await, Ok(false));
    // A right that is granted counts sooner.
    rights.is_revoked.store(false, Ordering::Relaxed);
    advance(Duration::from_secs(6)).await;
    assert_eq!(may_read().await, Ok(true));
}

#[tokio::test(start_paused = true)]
async fn the_user_of_a_token_is_reviewed_once() {
    let (rights, guard) = watched_guard();
    let viewer = headers("viewer");
    assert_eq!(guard.authenticate(&viewer).await, Ok(()));
    assert_eq!(guard.may_read(&viewer, &web("shop")).await, Ok(true));
    assert_eq!(guard.may_read(&viewer, &web("infra")).await, Ok(false));
    assert_eq!(rights.reviews(), [1, 2]);
}

#[tokio::test(start_paused = true)]
async fn equal_requests_at_the_same_time_are_reviewed_once() {
    let (rights, guard) = watched_guard();
    let (viewer, shop) = (headers("viewer"), web("shop"));
    let may_read = || guard.may_read(&viewer, &shop);
    let all = join!(may_read(), may_read(), may_read());
    assert_eq!(all, (Ok(true), Ok(true), Ok(true)));
    assert_eq!(rights.reviews(), [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn invalid_tokens_do_not_take_the_places_of_users() {
    let (rights, guard) = watched_guard();
    assert_eq!(guard.may_read(&headers("viewer"), &web("shop")).await, Ok(true));
    let before = rights.reviews();
    let tokens: Vec<_> = (0..5000).map(|number| headers(&format!("stolen-{number}"))).collect();
    for tokens in tokens.chunks(8) {
        let all = futures::future::join_all(tokens.iter().map(|token| guard.authenticate(token))).await;
        assert!(all.iter().all(|result| *result == Err(Denied::InvalidToken)));
    }
    assert_eq!(guard.authenticate(&tokens[4999]).await, Err(Denied::InvalidToken));
    assert_eq!(guard.may_read(&headers("viewer"), &web("shop")).await, Ok(true));
    assert_eq!(rights.reviews(), [before[0] + 5000, before[1]]);
}

/// The API server responds to nothing for a minute.
struct Hanging;

impl Reviews for Hanging {
    fn user<'a>(
        &'a self,
        _token: &'a str,
    ) -> Pin<Box<dyn Future<Output = Reviewed<Option<UserInfo>>> + Send + 'a>> {
        Box::pin(async {
            sleep(Duration::from_mins(1)).await;
            Err("no response".to_owned())
        })
    }

    fn may<'a>(
        &'a self,
        _user: &'a UserInfo,
        _access: &'a Access,
    ) -> Pin<Box<dyn Future<Output = Reviewed<bool>> + Send + 'a>> {
        Box::pin(async { Ok(true) })
    }
}

#[tokio::test(start_paused = true)]
async fn few_reviews_are_in_flight() {
    let guard = Guard::new(Arc::new(Hanging));
    let tokens: Vec<_> = (0..20).map(|number| headers(&format!("t{number}"))).collect();
    let all = futures::future::join_all(tokens.iter().map(|token| guard.authenticate(token))).await;
    let busy = all.iter().filter(|result| **result == Err(Denied::Busy)).count();
    let asked = all.iter().filter(|result| matches!(result, Err(Denied::Unavailable(_)))).count();
    assert_eq!((asked, busy), (8, 12));
}

#[tokio::test]
async fn discovery_is_not_repeated_for_the_same_word() {
    let fleet = Arc::new(Fleet::default());
    let objects = json!({"kind": "deploy", "namespace": "shop", "names": ["web"]});
    let api = Api::default().with_rows(Arc::clone(&fleet) as Arc<dyn RowReader>, Arc::new(guard()));
    for _ in 0..3 {
        assert_eq!(post_to(&api, "viewer", &query(&objects)).await.0, 200);
    }
    assert_eq!(fleet.discoveries.load(Ordering::Relaxed), 1);
}

/// The response says so, and not that the request is too large. An evaluation counts until it ends.
#[tokio::test]
async fn a_controller_with_too_many_queries_is_busy() {
    let fleet = Arc::new(Fleet::default());
    let api = Api::default().with_rows(Arc::clone(&fleet) as Arc<dyn RowReader>, Arc::new(guard()));
    let mut slow = query(&json!({"kind": "deployments"}));
    slow["collectors"][0]["name"] = json!("slow");
    for _ in 0..4 {
        assert_eq!(post_to(&api, "admin", &slow).await.0, 200);
    }
    let header = "authorization: Bearer admin\r\n";
    let (head, body) =
        exchange(Known::default(), api.clone(), "POST", "/api/v1/query", header, &slow.to_string()).await;
    assert_eq!(code(&head), 503);
    assert!(head.contains("retry-after: 5"), "{head}");
    assert!(body.contains("too many requests at the same time. Try again later"), "{body}");
    // Rows without objects do not wait for queries.
    let path = "/api/v1/rows/deployments.apps";
    let (head, _) = exchange(Known::default(), api.clone(), "GET", path, header, "").await;
    assert_eq!(code(&head), 200);
    fleet.evaluations.lock().expect("no panic").clear();
    assert_eq!(post_to(&api, "admin", &slow).await.0, 200);
}

async fn post(token: &str, body: &Value) -> (u16, Value) {
    post_to(&api(guard()), token, body).await
}

async fn post_to(api: &Api, token: &str, body: &Value) -> (u16, Value) {
    let header = format!("authorization: Bearer {token}\r\n");
    let (head, body) =
        exchange(Known::default(), api.clone(), "POST", "/api/v1/query", &header, &body.to_string()).await;
    (code(&head), serde_json::from_str(&body).unwrap_or_default())
}

fn query(objects: &Value) -> Value {
    let spec = json!({"combinedFields": [{"name": "count", "type": "COUNT"}]});
    json!({"collectors": [{"name": "count", "spec": spec}], "objects": objects})
}

#[rstest]
#[case::an_object("viewer", json!({"kind": "deploy", "namespace": "shop", "names": ["web"]}), 200)]
#[case::a_name_anywhere("viewer", json!({"kind": "deploy", "names": ["web"]}), 404)]
#[case::all_namespaces("viewer", json!({"kind": "deploy"}), 404)]
#[case::an_admin("admin", json!({"kind": "deploy"}), 200)]
#[case::no_kind("admin", json!({"kind": "widgets"}), 404)]
#[case::an_invalid_token("stolen", json!({"kind": "widgets"}), 401)]
#[tokio::test]
async fn queries_are_guarded(#[case] token: &str, #[case] objects: Value, #[case] expected: u16) {
    let (code, body) = post(token, &query(&objects)).await;
    assert_eq!(code, expected, "{body}");
    if code == 200 {
        assert_eq!(body["results"], json!([{"collector": "count", "kind": "Deployment.apps"}]));
    }
}

#[rstest]
#[case::nothing(json!({}), "invalid body: missing field `collectors`")]
#[case::a_typing_error(json!({"collector": []}), "invalid body: unknown field `collector`")]
#[case::no_collectors(json!({"collectors": [], "objects": {"kind": "deploy"}}), "no collectors. ")]
#[tokio::test]
async fn invalid_queries(#[case] body: Value, #[case] message: &str) {
    let (code, body) = post("admin", &body).await;
    assert_eq!(code, 400);
    assert!(body["message"].as_str().is_some_and(|text| text.starts_with(message)), "{body}");
}

#[tokio::test]
async fn a_query_has_a_bounded_size() {
    let names: Vec<_> = (0..101).map(|number| format!("n{number}")).collect();
    let (code, body) = post("admin", &query(&json!({"kind": "deploy", "names": names}))).await;
    assert_eq!(
        (code, &body["message"]),
        (400, &json!("101 objects named. Name at most 100, or use labelSelector"))
    );
    let (code, _) = post("admin", &json!("x".repeat((1 << 20) - 1))).await;
    assert_eq!(code, 413);
}

#[tokio::test]
async fn without_rows_there_are_none() {
    let (head, _) =
        exchange(Known::default(), Api::default(), "GET", "/api/v1/rows/deployments.apps", "", "").await;
    assert_eq!(code(&head), 404);
}
