//! Which fields are kept of large, unusual and secret objects.

use std::borrow::Cow;

use bellwether_model::{Object, Plan, Value};
use rstest::rstest;

fn status_plan() -> Plan {
    Plan::identity().with("status")
}

#[rstest]
#[case::lists("[", "]")]
#[case::maps("{\"a\":", "}")]
fn deep_values_are_truncated(#[case] open: &str, #[case] close: &str) {
    const DEPTH: usize = 50_000;
    let deep = format!("{}1{}", open.repeat(DEPTH), close.repeat(DEPTH));
    let json = format!(r#"{{"kind":"Deep","status":{deep},"dropped":{deep},"metadata":{{"name":"x"}}}}"#);
    let object = Object::from_json(json.as_bytes(), &status_plan()).unwrap();
    assert_eq!((object.kind(), object.name()), ("Deep", "x"));

    let mut value = object.at("status").unwrap();
    let mut depth = 1;
    while let Some(inner) = value.as_list().map_or_else(|| value.get("a"), |list| list.first()) {
        value = inner;
        depth += 1;
    }
    assert_eq!((value, depth), (&Value::Null, 64));
    assert_eq!(object.to_static(), object);
}

#[test]
fn large_strings_are_borrowed_or_skipped() {
    let large = "a \u{1f40f} flock ".repeat(400_000);
    let json = format!(
        r#"{{"kind":"Large","dropped":"{large}","status":{{"message":"{large}"}},"more":["{large}"]}}"#
    );
    let object = Object::from_json(json.as_bytes(), &status_plan()).unwrap();
    assert!(
        matches!(object.at("status.message"), Some(Value::Text(Cow::Borrowed(text))) if **text == *large)
    );
    assert_eq!(object.at("dropped"), None);
    assert_eq!(object.kind(), "Large");
}

#[rstest]
#[case::at_the_top(r#"{"kind":"A","status":1,"kind":"B","status":{"a":2}}"#, "B", 2)]
#[case::inside(r#"{"kind":"B","status":{"a":1,"a":{"x":1},"a":3}}"#, "B", 3)]
#[case::of_maps(r#"{"kind":"B","status":{"b":1,"a":1},"status":{"a":4}}"#, "B", 4)]
fn the_last_duplicate_field_counts(#[case] json: &str, #[case] kind: &str, #[case] a: i64) {
    let object = Object::from_json(json.as_bytes(), &status_plan()).unwrap();
    assert_eq!((object.kind(), object.at("status.a").and_then(Value::as_int)), (kind, Some(a)));
    assert_eq!(object.at("status.b"), None);
}

/// A field of the wrong type does not fail the object; it reads as empty.
#[rstest]
fn identity_of_the_wrong_type(
    #[values("apiVersion", "kind", "metadata", "metadata.name", "metadata.namespace")] field: &str,
    #[values("null", "true", "7", "-1.5e300", "[]", "[\"x\"]", "{}", "{\"name\":{}}")] wrong: &str,
) {
    let json = match field.split_once('.') {
        Some((_, inner)) => format!(r#"{{"metadata":{{"{inner}":{wrong}}}}}"#),
        None => format!(r#"{{"{field}":{wrong}}}"#),
    };
    let object = Object::from_json(json.as_bytes(), &Plan::identity()).unwrap();
    let said = [
        object.api_version(),
        object.group(),
        object.version(),
        object.kind(),
        object.name(),
        object.namespace(),
    ];
    assert_eq!(said, [""; 6], "{json}");
    assert_eq!(object.time("metadata.creationTimestamp"), None);
}

#[rstest]
#[case("0", Value::Int(0))]
#[case("-0", Value::Float(-0.0))]
#[case("-7", Value::Int(-7))]
#[case("10.50", Value::Float(10.5))]
#[case("2E3", Value::Float(2000.0))]
#[case("999999999999999999", Value::Int(999_999_999_999_999_999))]
#[case("9223372036854775807", Value::Int(i64::MAX))]
#[case("-9223372036854775808", Value::Int(i64::MIN))]
#[case("9223372036854775808", Value::Float(9_223_372_036_854_775_808.0))]
#[case("1000000000000000000000000", Value::Float(1e24))]
fn numbers(#[case] text: &str, #[case] number: Value<'_>) {
    let json = format!(r#"{{"status":{text}}}"#);
    let object = Object::from_json(json.as_bytes(), &status_plan()).unwrap();
    assert_eq!(object.at("status"), Some(&number));
}

#[rstest]
#[case::fraction(r#"{"metadata":{"creationTimestamp":"2026-03-01T02:03:04.5Z"}}"#, true)]
#[case::not_a_time(r#"{"metadata":{"creationTimestamp":"yesterday"}}"#, false)]
#[case::number(r#"{"metadata":{"creationTimestamp":1772330584}}"#, false)]
#[case::null(r#"{"metadata":{"creationTimestamp":null}}"#, false)]
fn times(#[case] json: &str, #[case] is_time: bool) {
    let object = Object::from_json(json.as_bytes(), &Plan::identity()).unwrap();
    assert_eq!(object.time("metadata.creationTimestamp").is_some(), is_time);
}

/// Secret and large fields are not kept in memory.
#[rstest]
#[case::managed_fields(
    r#"{"metadata":{"name":"kept","managedFields":[{"manager":"SECRET","fieldsV1":{"f:SECRET":{}}}]}}"#
)]
#[case::last_applied(
    r#"{"metadata":{"name":"kept","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"SECRET\":1}"}}}"#
)]
#[case::data(r#"{"kind":"Secret","data":{"password":"SECRET"},"type":"kept"}"#)]
#[case::string_data(r#"{"kind":"Secret","stringData":{"password":"SECRET"},"type":"kept"}"#)]
#[case::binary_data(r#"{"kind":"ConfigMap","binaryData":{"key":"SECRET"},"metadata":{"name":"kept"}}"#)]
#[case::pod(r#"{"spec":{"containers":[{"name":"kept","env":[{"name":"PASSWORD","value":"SECRET"}]}]}}"#)]
#[case::pod_init(
    r#"{"spec":{"initContainers":[{"name":"kept","env":[{"name":"PASSWORD","value":"SECRET"}]}]}}"#
)]
#[case::pod_ephemeral(
    r#"{"spec":{"ephemeralContainers":[{"name":"kept","env":[{"name":"P","value":"SECRET"}]}]}}"#
)]
#[case::template(
    r#"{"spec":{"template":{"spec":{"containers":[{"name":"kept","env":[{"value":"SECRET"}]}]}}}}"#
)]
#[case::template_init(
    r#"{"spec":{"template":{"spec":{"initContainers":[{"name":"kept","env":[{"value":"SECRET"}]}]}}}}"#
)]
#[case::cron_job(
    r#"{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"kept","env":[{"value":"SECRET"}]}]}}}}}}"#
)]
#[case::cron_job_init(
    r#"{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"initContainers":[{"name":"kept","env":[{"value":"SECRET"}]}]}}}}}}"#
)]
fn everything_drops_secrets(#[case] json: &str) {
    let object = Object::from_json(json.as_bytes(), &Plan::everything()).unwrap();
    let kept = object.fields().to_string();
    assert!(kept.contains("kept") && !kept.contains("SECRET"), "{kept}");
}

#[test]
fn an_outline_has_scalars_and_empty_lists_and_maps() {
    let json = r#"{"spec":{"replicas":3,"class":"a","tags":["SECRET"],"users":[{"a":"SECRET"}],"auth":{"a":"SECRET"}}}"#;
    let object = Object::from_json(json.as_bytes(), &Plan::identity().with("spec.*")).unwrap();
    let kept = object.fields().to_string();
    assert_eq!(kept, r#"{"spec":{"replicas":3,"class":"a","tags":[],"users":[],"auth":{}}}"#);
}
