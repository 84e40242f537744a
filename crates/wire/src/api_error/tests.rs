use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn read(code: u16, header: Option<&str>, body: &[u8]) -> ApiError {
    let mut headers = HeaderMap::new();
    if let Some(header) = header {
        headers.insert(RETRY_AFTER, header.parse().unwrap());
    }
    ApiError::read(StatusCode::from_u16(code).unwrap(), &headers, body)
}

fn class(code: u16, status: &Value) -> ErrorClass {
    read(code, None, status.to_string().as_bytes()).class
}

#[test]
fn a_success_is_not_an_error() {
    let (parts, ()) = http::Response::builder().status(201).body(()).unwrap().into_parts();
    assert_eq!(ApiError::check(&parts, br#"{"kind":"Status","status":"Success"}"#), Ok(()));
}

/// Responses of a Kubernetes 1.36 API server, without the fields that all of them have.
#[rstest]
#[case::bad_request(
    400,
    json!({"reason": "BadRequest", "message": "the object provided is unrecognized"}),
    ErrorClass::Invalid
)]
#[case::unknown_field(
    400,
    json!({"reason": "Invalid", "message": "strict decoding error: unknown field \"spec.x\"", "details": {"causes": [
        {"reason": "FieldValueInvalid", "message": "unknown field", "field": "spec.x"},
    ]}}),
    ErrorClass::Invalid
)]
#[case::no_dry_run(
    400,
    json!({"reason": "BadRequest", "message": "admission webhook \"w.acme.io\" does not support dry run"}),
    ErrorClass::DryRunUnsupported
)]
#[case::unauthorized(401, json!({"reason": "Unauthorized", "message": "Unauthorized"}), ErrorClass::Unauthorized)]
#[case::forbidden(
    403,
    json!({
        "reason": "Forbidden", "details": {"name": "web", "kind": "pods"},
        "message": "pods \"web\" is forbidden: User \"bob\" cannot patch resource \"pods\" in API group \"\" in the \
                    namespace \"shop\"",
    }),
    ErrorClass::Forbidden
)]
#[case::quota(
    403,
    json!({"reason": "Forbidden", "message": "pods \"web\" is forbidden: exceeded quota: q, requested: pods=1"}),
    ErrorClass::AdmissionDenied
)]
#[case::namespace_terminating(
    403,
    json!({
        "reason": "Forbidden",
        "message": "pods \"web\" is forbidden: unable to create new content in namespace shop because it is being \
                    terminated",
        "details": {"name": "web", "kind": "pods", "causes": [
            {"reason": "NamespaceTerminating", "message": "namespace shop is being terminated",
             "field": "metadata.namespace"},
        ]},
    }),
    ErrorClass::NamespaceTerminating
)]
#[case::no_object(
    404,
    json!({"reason": "NotFound", "message": "pods \"web\" not found", "details": {"name": "web", "kind": "pods"}}),
    ErrorClass::NotFound
)]
#[case::no_kind(
    404,
    json!({"reason": "NotFound", "message": "the server could not find the requested resource", "details": {}}),
    ErrorClass::NotServed
)]
#[case::method(405, json!({"reason": "MethodNotAllowed"}), ErrorClass::Invalid)]
#[case::not_acceptable(406, json!({"reason": "NotAcceptable"}), ErrorClass::Other)]
#[case::timeout(408, json!({"reason": "Timeout"}), ErrorClass::Busy)]
#[case::another_version(
    409,
    json!({
        "reason": "Conflict",
        "message": "Operation cannot be fulfilled on pods \"web\": the object has been modified; please apply your \
                    changes to the latest version and try again",
        "details": {"name": "web", "kind": "pods"},
    }),
    ErrorClass::Conflict
)]
#[case::already_exists(
    409,
    json!({"reason": "AlreadyExists", "message": "pods \"web\" already exists", "details": {"name": "web"}}),
    ErrorClass::AlreadyExists
)]
#[case::uid_of_a_deletion(
    409,
    json!({
        "reason": "Conflict",
        "message": "Operation cannot be fulfilled on pods \"web\": Precondition failed: UID in precondition: a, UID in \
                    object meta: b",
    }),
    ErrorClass::UidMismatch
)]
#[case::uid_of_a_patch(
    422,
    json!({"reason": "Invalid", "message": "pods \"web\" is invalid", "details": {"causes": [
        {"reason": "FieldValueInvalid", "message": "field is immutable", "field": "metadata.uid"},
    ]}}),
    ErrorClass::UidMismatch
)]
#[case::expired(410, json!({"reason": "Expired", "message": "too old resource version: 1 (5)"}), ErrorClass::Expired)]
#[case::gone(410, json!({}), ErrorClass::Expired)]
#[case::expired_by_reason(500, json!({"reason": "Expired"}), ErrorClass::Expired)]
#[case::too_large(413, json!({"reason": "RequestEntityTooLarge"}), ErrorClass::TooLarge)]
#[case::too_large_for_etcd(500, json!({"message": "etcdserver: request is too large"}), ErrorClass::TooLarge)]
#[case::media_type(415, json!({"reason": "UnsupportedMediaType"}), ErrorClass::Other)]
#[case::invalid(
    422,
    json!({"reason": "Invalid", "details": {"causes": [{"reason": "FieldValueRequired", "field": "spec"}]}}),
    ErrorClass::Invalid
)]
#[case::too_many(429, json!({"reason": "TooManyRequests"}), ErrorClass::Busy)]
#[case::internal(500, json!({"reason": "InternalError"}), ErrorClass::ServerError)]
#[case::unavailable(503, json!({"reason": "ServiceUnavailable"}), ErrorClass::ServerError)]
#[case::redirect(302, json!({}), ErrorClass::Other)]
fn each_error_has_its_class(#[case] code: u16, #[case] status: Value, #[case] expected: ErrorClass) {
    assert_eq!(class(code, &status), expected);
}

#[test]
fn a_field_conflict_names_fields_and_managers() {
    let conflict = |message: &str, field: &str| json!({"reason": "FieldManagerConflict", "message": message, "field": field});
    let status = json!({
        "reason": "Conflict",
        "message": "Apply failed with 3 conflicts: conflicts with \"kubectl\":\n- .spec.replicas\n- …",
        "details": {"causes": [
            conflict("conflict with \"kubectl\" using apps/v1 at 2026-11-14T10:00:00Z", ".spec.replicas"),
            conflict(
                "conflict with \"kube-controller-manager\" with subresource \"status\" using apps/v1",
                ".status.conditions[type=\"Available\"].status",
            ),
            conflict("conflict with \"flux\"", ".metadata.labels.a"),
        ]},
    });
    let error = read(409, None, status.to_string().as_bytes());
    assert_eq!(error.class, ErrorClass::FieldConflict);
    let of = |manager: &str, field: &str| FieldConflict { field: field.into(), manager: manager.into() };
    assert_eq!(
        error.field_conflicts().collect::<Vec<_>>(),
        [
            of("kubectl", ".spec.replicas"),
            of("kube-controller-manager", ".status.conditions[type=\"Available\"].status"),
            of("flux", ".metadata.labels.a"),
        ]
    );
    let other =
        read(409, None, json!({"details": {"causes": [conflict("words", ".a")]}}).to_string().as_bytes());
    assert_eq!(other.field_conflicts().next(), Some(of("words", ".a")));
}

#[rstest]
#[case::header(429, Some("3"), json!({}), Some(3))]
#[case::body(503, None, json!({"details": {"retryAfterSeconds": 2}}), Some(2))]
#[case::header_first(504, Some("3"), json!({"details": {"retryAfterSeconds": 2}}), Some(3))]
#[case::date(503, Some("Fri, 31 Dec 1999 23:59:59 GMT"), json!({}), None)]
#[case::at_once(503, Some("0"), json!({}), None)]
#[case::negative(503, None, json!({"details": {"retryAfterSeconds": -5}}), None)]
#[case::largest(429, Some("18446744073709551615"), json!({}), Some(300))]
#[case::above_the_limit(429, None, json!({"details": {"retryAfterSeconds": 301}}), Some(300))]
#[case::none(500, None, json!({}), None)]
fn retry_after_comes_from_header_or_body(
    #[case] code: u16,
    #[case] header: Option<&str>,
    #[case] status: Value,
    #[case] seconds: Option<u64>,
) {
    let error = read(code, header, status.to_string().as_bytes());
    assert_eq!(error.retry_after, seconds.map(Duration::from_secs));
}

#[rstest]
#[case::no_body(b"", 502, "API server returned 502 Bad Gateway")]
#[case::html(b"<html>", 404, "API server returned 404 Not Found")]
#[case::text(b"404 page not found\n", 404, "API server returned 404 Not Found")]
#[case::other_json(br#"{"error":"no"}"#, 500, "API server returned 500 Internal Server Error")]
#[case::not_an_object(b"[1]", 500, "API server returned 500 Internal Server Error")]
#[case::cut_off(
    br#"{"kind":"Status","message":"pods \"web\" is for"#,
    403,
    "API server returned 403 Forbidden"
)]
#[case::not_utf8(b"{\"message\":\"\xff\"}", 500, "API server returned 500 Internal Server Error")]
#[case::nulls(br#"{"message":"oh","reason":null,"details":null}"#, 500, "oh")]
#[case::null_causes(br#"{"message":"oh","details":{"causes":null,"retryAfterSeconds":null}}"#, 500, "oh")]
#[case::two_lines(br#"{"message":" one\ntwo\u001b[2J "}"#, 500, "one two [2J")]
#[case::unknown_code(b"", 599, "API server returned 599 <unknown status code>")]
fn there_is_always_a_message(#[case] body: &[u8], #[case] code: u16, #[case] message: &str) {
    assert_eq!(read(code, None, body).to_string(), message);
}

#[test]
fn a_huge_response_is_truncated() {
    let cause =
        json!({"reason": "FieldValueInvalid", "message": "m".repeat(4096), "field": "f".repeat(4096)});
    let mut causes = vec![cause; 1000];
    causes.push(json!({"field": "metadata.uid"}));
    let status = json!({
        "message": "é".repeat(1 << 20), "reason": "R".repeat(1 << 20), "details": {"causes": causes},
    });
    let error = read(422, None, status.to_string().as_bytes());
    assert_eq!((error.class, error.causes.len()), (ErrorClass::UidMismatch, MAX_CAUSES));
    let texts = error.causes.iter().flat_map(|cause| [&cause.reason, &cause.message, &cause.field]);
    for text in texts.chain([&error.message, &error.reason]) {
        assert!(text.len() <= 1024, "{}", text.len());
    }
}
