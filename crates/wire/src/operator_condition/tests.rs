use bellwether_engine::{GroupKind, NamespacedName, StatusSummary};
use bellwether_model::State;
use http::Response;
use rstest::rstest;

use super::*;

const NOW: &str = "2026-11-14T10:00:00.7Z";
const EARLIER: &str = "2026-11-01T08:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

fn statement(status: ConditionStatus, reason: &'static str, message: &'static str) -> Statement {
    Statement::new(status, reason, message)
}

fn not_upgradeable() -> Statement {
    statement(ConditionStatus::False, "Migrating", "storage is being migrated")
}

fn condition(kind: &str, status: &str, reason: &str, message: &str, since: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
}

/// [`not_upgradeable`] as stored.
fn stored_false(since: &str) -> Value {
    condition("Upgradeable", "False", "Migrating", "storage is being migrated", since)
}

fn theirs() -> Value {
    let mut theirs = condition("Foo", "True", "Bar", "", EARLIER);
    theirs["observedGeneration"] = json!(3);
    theirs["extra"] = json!({"kept": ["as", "it", "is"]});
    theirs
}

#[rstest]
#[case::first(vec![], Some(vec![stored_false("2026-11-14T10:00:00Z")]))]
#[case::unchanged(vec![stored_false(EARLIER)], None)]
#[case::unchanged_among_others(vec![theirs(), stored_false(EARLIER)], None)]
#[case::transition(
    vec![condition("Upgradeable", "True", "Migrating", "storage is being migrated", EARLIER)],
    Some(vec![stored_false("2026-11-14T10:00:00Z")]),
)]
#[case::another_reason(
    vec![condition("Upgradeable", "False", "Other", "storage is being migrated", EARLIER)],
    Some(vec![stored_false(EARLIER)]),
)]
#[case::another_message(
    vec![condition("Upgradeable", "False", "Migrating", "", EARLIER)], Some(vec![stored_false(EARLIER)]),
)]
#[case::others_stay(
    vec![theirs(), condition("Upgradeable", "Unknown", "A", "", EARLIER), condition("Last", "True", "B", "", EARLIER)],
    Some(vec![theirs(), stored_false("2026-11-14T10:00:00Z"), condition("Last", "True", "B", "", EARLIER)]),
)]
#[case::after_others(vec![theirs()], Some(vec![theirs(), stored_false("2026-11-14T10:00:00Z")]))]
#[case::no_time(
    vec![json!({"type": "Upgradeable", "status": "False"})], Some(vec![stored_false("2026-11-14T10:00:00Z")]),
)]
#[case::malformed(vec![json!(7), json!({})], Some(vec![json!(7), json!({}), stored_false("2026-11-14T10:00:00Z")]))]
fn only_what_differs_is_written(#[case] stored: Vec<Value>, #[case] expected: Option<Vec<Value>>) {
    let next = update_conditions(&stored, &not_upgradeable(), now());
    assert_eq!(next, expected);
    // A second update changes nothing.
    if let Some(next) = next {
        assert_eq!(
            update_conditions(&next, &not_upgradeable(), now() + jiff::SignedDuration::from_hours(1)),
            None
        );
    }
}

/// Texts that exceed the limits are cut, and compare equal the next time.
#[rstest]
#[case::a_long_message(Statement::new(ConditionStatus::True, "Why", "x".repeat(100_000)))]
#[case::an_invalid_reason(statement(ConditionStatus::Unknown, "not a reason!", "it is so"))]
#[case::no_reason(statement(ConditionStatus::Unknown, "", ""))]
fn a_statement_beyond_the_limits_is_written_once(#[case] wanted: Statement) {
    let written = update_conditions(&[], &wanted, now()).unwrap();
    assert!(written[0]["message"].as_str().unwrap().len() <= 32_768);
    assert!(!written[0]["reason"].as_str().unwrap().is_empty());
    assert_eq!(update_conditions(&written, &wanted, now()), None);
}

fn known(conditions: Vec<(&'static str, Statement)>) -> GroupStatus {
    GroupStatus::Known(Box::new(StatusSummary {
        kind: GroupKind::bellwether("Rollup"),
        name: NamespacedName::new("", "all"),
        healthy: true,
        state: State::Ready,
        since: None,
        conditions,
        meaning: None,
    }))
}

#[rstest]
#[case::unknown(GroupStatus::Unknown(vec![(GroupKind::bellwether("Rollup"), None)]), None)]
#[case::not_found(
    GroupStatus::NotFound,
    Some(statement(
        ConditionStatus::Unknown,
        "RollupNotFound",
        "Rollup/all not found. Create it, or set --olm-rollup to another Rollup.",
    ))
)]
#[case::not_enabled(known(vec![("Available", statement(ConditionStatus::True, "A", ""))]), Some(statement(
    ConditionStatus::Unknown,
    "UpgradeableNotEnabled",
    "Rollup/all does not report Upgradeable. Set its spec.upgradeable to true.",
)))]
#[case::reported(known(vec![("Available", statement(ConditionStatus::True, "A", "")), ("Upgradeable", not_upgradeable())]), Some(not_upgradeable()))]
fn upgradeable_follows_the_rollup(#[case] status: GroupStatus, #[case] expected: Option<Statement>) {
    assert_eq!(upgradeable(&status, "all"), expected);
}

fn target() -> OperatorCondition {
    OperatorCondition { namespace: "operators".to_owned(), name: "shop.v1.2.0".to_owned() }
}

fn answer(
    upkeep: &mut UpgradeableUpdate,
    code: u16,
    body: &Value,
) -> Option<Result<UpgradeableUpdateOutcome, ReadError>> {
    let (parts, ()) = Response::builder().status(code).body(()).unwrap().into_parts();
    upkeep.answered(&parts, body.to_string().as_bytes(), now())
}

/// The request line and the body.
fn request(upkeep: &UpgradeableUpdate) -> (String, Value) {
    let request = upkeep.request().unwrap();
    let body = serde_json::from_slice(request.body()).unwrap_or_default();
    (format!("{} {}", request.method(), request.uri()), body)
}

fn response(version: &str, conditions: &Value) -> Value {
    let spec = json!({"deployments": ["shop"], "conditions": conditions});
    json!({"metadata": {"name": "shop.v1.2.0", "resourceVersion": version}, "spec": spec})
}

const GET: &str = "GET /apis/operators.coreos.com/v2/namespaces/operators/operatorconditions/shop.v1.2.0";

#[test]
fn a_read_precedes_the_write() {
    let mut upkeep = UpgradeableUpdate::new(target(), not_upgradeable());
    assert_eq!(request(&upkeep), (GET.to_owned(), Value::Null));
    assert_eq!(answer(&mut upkeep, 200, &response("7", &json!([theirs()]))), None);
    let (line, body) = request(&upkeep);
    assert_eq!(line, format!("{GET}?fieldManager=bellwether").replace("GET", "PATCH"));
    let conditions = json!([theirs(), stored_false("2026-11-14T10:00:00Z")]);
    // Other fields of the spec are not written, and the resourceVersion guards against lost updates.
    assert_eq!(body, json!({"metadata": {"resourceVersion": "7"}, "spec": {"conditions": conditions}}));
    assert_eq!(answer(&mut upkeep, 200, &json!({})), Some(Ok(UpgradeableUpdateOutcome::Written)));
}

#[test]
fn an_unchanged_condition_is_not_written() {
    let mut upkeep = UpgradeableUpdate::new(target(), not_upgradeable());
    let result = answer(&mut upkeep, 200, &response("7", &json!([stored_false(EARLIER)])));
    assert_eq!(result, Some(Ok(UpgradeableUpdateOutcome::Unchanged)));
}

/// 409: the next attempt reads the newer object. The number of attempts is limited.
#[test]
fn after_a_conflict_it_is_read_again() {
    let mut upkeep = UpgradeableUpdate::new(target(), not_upgradeable());
    let mut versions = Vec::new();
    let end = loop {
        assert_eq!(request(&upkeep).0, GET);
        let version = versions.len().to_string();
        assert_eq!(answer(&mut upkeep, 200, &response(&version, &Value::Null)), None);
        versions.push(request(&upkeep).1["metadata"]["resourceVersion"].clone());
        if let Some(end) = answer(&mut upkeep, 409, &json!({"message": "it has been modified"})) {
            break end;
        }
    };
    assert_eq!(versions, ["0", "1", "2", "3", "4"]);
    assert_eq!(end, Err(ReadError::rejected("it has been modified")));
    // Another writer may have written the same.
    let mut upkeep = UpgradeableUpdate::new(target(), not_upgradeable());
    assert_eq!(answer(&mut upkeep, 200, &response("7", &json!([]))), None);
    assert_eq!(answer(&mut upkeep, 409, &json!({})), None);
    assert_eq!(
        answer(&mut upkeep, 200, &response("8", &json!([stored_false(EARLIER)]))),
        Some(Ok(UpgradeableUpdateOutcome::Unchanged))
    );
}

#[rstest]
#[case::forbidden(403, "Grant Bellwether the verbs get and patch on operatorconditions")]
#[case::not_found(404, "Check that OLM is installed")]
#[case::invalid(422, "in their words")]
#[case::server_error(500, "in their words")]
fn errors_name_the_way_out(#[case] code: u16, #[case] expected: &str, #[values(false, true)] late: bool) {
    let mut upkeep = UpgradeableUpdate::new(target(), not_upgradeable());
    if late {
        assert_eq!(answer(&mut upkeep, 200, &response("7", &json!([]))), None);
    }
    let end = answer(&mut upkeep, code, &json!({"message": "in their words"}));
    let error = end.expect("it ends").expect_err("it fails");
    let message = target().explain(&error);
    assert!(message.contains(expected), "{message}");
}

#[rstest]
#[case(json!([]))]
#[case(json!({}))]
#[case(json!({"metadata": {}}))]
#[case(json!({"metadata": {"resourceVersion": "7"}, "spec": {"conditions": "all"}}))]
fn a_malformed_operator_condition_is_left_alone(#[case] body: Value) {
    let mut upkeep = UpgradeableUpdate::new(target(), not_upgradeable());
    let end = answer(&mut upkeep, 200, &body);
    assert_eq!(end, Some(Err(ReadError::rejected("the response is not an OperatorCondition"))));
}

#[test]
fn a_spec_without_conditions_gets_them() {
    for spec in [json!({}), json!({"conditions": null})] {
        let mut upkeep = UpgradeableUpdate::new(target(), not_upgradeable());
        let body = json!({"metadata": {"resourceVersion": "7"}, "spec": spec});
        assert_eq!(answer(&mut upkeep, 200, &body), None);
        assert_eq!(request(&upkeep).1["spec"]["conditions"], json!([stored_false("2026-11-14T10:00:00Z")]));
    }
}
