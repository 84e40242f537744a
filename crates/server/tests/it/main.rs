//! Status code and body of every path, as a plain HTTP/1.1 client sees them.

#![expect(clippy::expect_used, reason = "a mistake in the client fails the test that uses it")]

mod rows;

use std::{future::Future, pin::Pin, sync::Arc};

use bellwether_conditions::Statement;
use bellwether_engine::{GroupRef, NamespacedName, OwnKind, StatusSummary};
use bellwether_model::{ConditionStatus, State};
use bellwether_server::{Answer, Api, Process, serve};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

#[derive(Default)]
struct Known {
    waits_for: Vec<String>,
    speaks_for: Option<GroupRef>,
}

impl Process for Known {
    fn waits_for(&self) -> Vec<String> {
        self.waits_for.clone()
    }

    fn speaks_for(&self) -> Option<&GroupRef> {
        self.speaks_for.as_ref()
    }

    fn summary<'a>(&'a self, group: &'a GroupRef) -> Pin<Box<dyn Future<Output = Answer> + Send + 'a>> {
        let answer = match &*group.name.name {
            "well" => Answer::Known(Box::new(summary(group, true))),
            "broken" => Answer::Known(Box::new(summary(group, false))),
            "late" => Answer::Unknown("Pods have not been listed yet".to_owned()),
            name => Answer::Absent(format!("{} {name} not found", group.kind.kind().kind)),
        };
        Box::pin(async { answer })
    }

    fn metrics(&self) -> Pin<Box<dyn Future<Output = String> + Send + '_>> {
        Box::pin(async { "# EOF\n".to_owned() })
    }
}

fn summary(group: &GroupRef, healthy: bool) -> StatusSummary {
    let (state, status) =
        if healthy { (State::Ready, ConditionStatus::True) } else { (State::Failed, ConditionStatus::False) };
    StatusSummary {
        kind: group.kind.kind(),
        name: group.name.clone(),
        healthy,
        state,
        since: healthy.then(|| "2026-11-14T10:00:00Z".parse().expect("a time")),
        conditions: vec![("Ready", Statement::new(status, "Why", "\"so\" <b>it</b> is"))],
        meaning: (group.kind == OwnKind::Rollup).then(|| "It means something.".to_owned()),
    }
}

/// The head and the body of the response.
async fn ask(process: Known, method: &str, path: &str) -> (String, String) {
    exchange(process, Api::default(), method, path, "", "").await
}

/// The same, with lines of headers and a body in the request.
async fn exchange(
    process: Known,
    api: Api,
    method: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> (String, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = tokio::spawn(serve(listener, Arc::new(process), api, std::future::pending()));
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let length = body.len();
    let host = if headers.contains("host: ") { String::new() } else { format!("host: {address}\r\n") };
    let request = format!(
        "{method} {path} HTTP/1.1\r\n{host}connection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    server.abort();
    let (head, body) = answer.split_once("\r\n\r\n").expect("an answer");
    (head.to_owned(), body.to_owned())
}

fn code(head: &str) -> u16 {
    head.split(' ').nth(1).expect("a code").parse().expect("a number")
}

async fn get(process: Known, path: &str) -> (u16, String) {
    let (head, body) = ask(process, "GET", path).await;
    (code(&head), body)
}

/// The status code and the body of a response that must be JSON.
async fn json_at(process: Known, path: &str) -> (u16, Value) {
    let (head, body) = ask(process, "GET", path).await;
    assert!(head.contains("content-type: application/json"), "{head}");
    (code(&head), serde_json::from_str(&body).expect("JSON"))
}

fn conditions(status: &str) -> Value {
    json!([{"type": "Ready", "status": status, "reason": "Why", "message": "\"so\" <b>it</b> is"}])
}

#[rstest]
#[case::well("/readyz/applications/shop/well", 200, json!({
    "apiGroup": "bellwether.dev", "kind": "Application",
    "namespace": "shop", "name": "well", "healthy": true, "state": "Ready",
    "since": "2026-11-14T10:00:00Z", "conditions": conditions("True"),
}))]
#[case::broken("/readyz/applications/shop/broken", 503, json!({
    "apiGroup": "bellwether.dev", "kind": "Application",
    "namespace": "shop", "name": "broken", "healthy": false, "state": "Failed",
    "conditions": conditions("False"),
}))]
#[case::late("/readyz/applications/shop/late", 503, json!({
    "apiGroup": "bellwether.dev", "kind": "Application",
    "namespace": "shop", "name": "late", "healthy": false,
    "message": "Pods have not been listed yet",
}))]
#[case::absent("/readyz/applications/shop/other", 404, json!({
    "apiGroup": "bellwether.dev", "kind": "Application",
    "namespace": "shop", "name": "other", "healthy": false,
    "message": "Application other not found",
}))]
#[case::a_rollup("/readyz/rollups/well", 200, json!({
    "apiGroup": "bellwether.dev", "kind": "Rollup",
    "name": "well", "healthy": true, "state": "Ready", "since": "2026-11-14T10:00:00Z",
    "meaning": "It means something.", "conditions": conditions("True"),
}))]
#[case::a_broken_rollup("/readyz/rollups/broken", 503, json!({
    "apiGroup": "bellwether.dev", "kind": "Rollup",
    "name": "broken", "healthy": false, "state": "Failed", "meaning": "It means something.",
    "conditions": conditions("False"),
}))]
#[case::no_rollup("/readyz/rollups/other", 404, json!({
    "apiGroup": "bellwether.dev", "kind": "Rollup",
    "name": "other", "healthy": false, "message": "Rollup other not found",
}))]
#[tokio::test]
async fn groups(#[case] path: &str, #[case] code: u16, #[case] body: Value) {
    assert_eq!(json_at(Known::default(), path).await, (code, body));
}

/// Any text is a name, invalid UTF-8 is a bad request, and neither ends the server.
#[rstest]
#[case::encoded("/readyz/rollups/we%6Cl", 200)]
#[case::a_slash("/readyz/rollups/a%2Fb", 404)]
#[case::a_query("/readyz/rollups/well?verbose", 200)]
#[case::markup("/readyz/rollups/%3Cscript%3E%22", 404)]
#[case::a_way_up("/readyz/rollups/..%2f..%2fetc", 404)]
#[case::control_characters("/readyz/applications/%00/%0A", 404)]
#[case::not_utf_8("/readyz/rollups/%FF%FE", 400)]
#[case::half_of_it_not_utf_8("/readyz/applications/shop/%C3", 400)]
#[case::half_an_escape("/readyz/rollups/%4", 404)]
#[tokio::test]
async fn strange_names(#[case] path: &str, #[case] expected: u16) {
    let (code, body) = json_at(Known::default(), path).await;
    assert_eq!(code, expected, "{body}");
    assert_eq!(body["healthy"], code == 200, "{body}");
}

#[tokio::test]
async fn a_very_long_name() {
    let path = format!("/readyz/rollups/{}", "a".repeat(20_000));
    let (code, body) = json_at(Known::default(), &path).await;
    assert_eq!((code, &body["healthy"]), (404, &json!(false)));
}

#[rstest]
#[case::no_name("/readyz/rollups/")]
#[case::nothing_named("/readyz/rollups")]
#[case::no_namespace("/readyz/applications/web")]
#[case::too_deep("/readyz/applications/shop/web/pods")]
#[case::another_kind("/readyz/pods/web")]
#[tokio::test]
async fn unknown_paths(#[case] path: &str) {
    assert_eq!(get(Known::default(), path).await, (404, String::new()));
}

/// HEAD has the code and the length of GET, and no body.
#[rstest]
#[case("/readyz/rollups/well", 200)]
#[case("/readyz/rollups/broken", 503)]
#[case("/readyz/applications/shop/other", 404)]
#[case("/readyz", 200)]
#[tokio::test]
async fn heads(#[case] path: &str, #[case] expected: u16) {
    let (_, body) = get(Known::default(), path).await;
    let (head, nothing) = ask(Known::default(), "HEAD", path).await;
    assert_eq!((code(&head), nothing.as_str()), (expected, ""));
    assert!(head.contains(&format!("content-length: {}", body.len())), "{head}");
    let (head, _) = ask(Known::default(), "POST", path).await;
    assert_eq!(code(&head), 405);
}

#[tokio::test]
async fn by_default_readyz_reports_the_process() {
    assert_eq!(get(Known::default(), "/healthz").await, (200, "ok\n".to_owned()));
    assert_eq!(get(Known::default(), "/metrics").await, (200, "# EOF\n".to_owned()));
    assert_eq!(get(Known::default(), "/readyz").await, (200, "ok\n".to_owned()));
    let waits = Known { waits_for: vec!["one".to_owned(), "two".to_owned()], ..Known::default() };
    assert_eq!(get(waits, "/readyz").await, (503, "one\ntwo\n".to_owned()));
}

/// With a group configured, the readiness of the process does not count, and a missing group is 503, not 404.
#[rstest]
#[case::well("well", 200)]
#[case::broken("broken", 503)]
#[case::late("late", 503)]
#[case::absent("other", 503)]
#[tokio::test]
async fn readyz_reports_a_configured_rollup(#[case] name: &str, #[case] expected: u16) {
    let group = GroupRef::new(OwnKind::Rollup, NamespacedName::new("", name));
    let process = || Known { waits_for: vec!["one".to_owned()], speaks_for: Some(group.clone()) };
    let (code, body) = json_at(process(), "/readyz").await;
    assert_eq!(code, expected);
    let (_, same) = json_at(process(), &format!("/readyz/rollups/{name}")).await;
    assert_eq!(body, same);
}
