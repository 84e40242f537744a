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

fn says(status: ConditionStatus, reason: &'static str, message: &'static str) -> Statement {
    Statement::new(status, reason, message)
}

fn no() -> Statement {
    says(ConditionStatus::False, "Migrating", "storage is being migrated")
}

fn condition(kind: &str, status: &str, reason: &str, message: &str, since: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since})
}

/// As it is wanted in [`no`].
fn stored_no(since: &str) -> Value {
    condition("Upgradeable", "False", "Migrating", "storage is being migrated", since)
}

fn theirs() -> Value {
    let mut theirs = condition("Foo", "True", "Bar", "", EARLIER);
    theirs["observedGeneration"] = json!(3);
    theirs["extra"] = json!({"kept": ["as", "it", "is"]});
    theirs
}

#[rstest]
#[case::first(vec![], Some(vec![stored_no("2026-11-14T10:00:00Z")]))]
#[case::as_it_is(vec![stored_no(EARLIER)], None)]
#[case::among_others(vec![theirs(), stored_no(EARLIER)], None)]
#[case::it_turns(
    vec![condition("Upgradeable", "True", "Migrating", "storage is being migrated", EARLIER)],
    Some(vec![stored_no("2026-11-14T10:00:00Z")]),
)]
#[case::another_reason(
    vec![condition("Upgradeable", "False", "Other", "storage is being migrated", EARLIER)],
    Some(vec![stored_no(EARLIER)]),
)]
#[case::another_message(
    vec![condition("Upgradeable", "False", "Migrating", "", EARLIER)], Some(vec![stored_no(EARLIER)]),
)]
#[case::others_stay(
    vec![theirs(), condition("Upgradeable", "Unknown", "A", "", EARLIER), condition("Last", "True", "B", "", EARLIER)],
    Some(vec![theirs(), stored_no("2026-11-14T10:00:00Z"), condition("Last", "True", "B", "", EARLIER)]),
)]
#[case::after_others(vec![theirs()], Some(vec![theirs(), stored_no("2026-11-14T10:00:00Z")]))]
#[case::no_time(
    vec![json!({"type": "Upgradeable", "status": "False"})], Some(vec![stored_no("2026-11-14T10:00:00Z")]),
)]
#[case::nonsense(vec![json!(7), json!({})], Some(vec![json!(7), json!({}), stored_no("2026-11-14T10:00:00Z")]))]
fn only_what_differs_is_written(#[case] stored: Vec<Value>, #[case] expected: Option<Vec<Value>>) {
    let next = put_right(&stored, &no(), now());
    assert_eq!(next, expected);
    // What was written is not written again, by whoever and whenever.
    if let Some(next) = next {
        assert_eq!(put_right(&next, &no(), now() + jiff::SignedDuration::from_hours(1)), None);
    }
}

/// What does not fit into a condition is made to, and is not taken for another one next time.
#[rstest]
#[case::a_long_message(Statement::new(ConditionStatus::True, "Why", "x".repeat(100_000)))]
#[case::a_strange_reason(says(ConditionStatus::Unknown, "not a reason!", "it is so"))]
#[case::no_reason(says(ConditionStatus::Unknown, "", ""))]
fn what_does_not_fit_is_written_once(#[case] wanted: Statement) {
    let written = put_right(&[], &wanted, now()).unwrap();
    assert!(written[0]["message"].as_str().unwrap().len() <= 32_768);
    assert!(!written[0]["reason"].as_str().unwrap().is_empty());
    assert_eq!(put_right(&written, &wanted, now()), None);
}

fn known(conditions: Vec<(&'static str, Statement)>) -> GroupStatus {
    GroupStatus::Known(Box::new(StatusSummary {
        kind: GroupKind::own("Rollup"),
        name: NamespacedName::new("", "all"),
        healthy: true,
        state: State::Ready,
        since: None,
        conditions,
        meaning: None,
    }))
}

#[rstest]
#[case::not_known(GroupStatus::Unknown(vec![(GroupKind::own("Rollup"), None)]), None)]
#[case::absent(
    GroupStatus::NotFound,
    Some(says(
        ConditionStatus::Unknown,
        "RollupNotFound",
        "There is no Rollup all: create it, or name another one with --olm-rollup",
    ))
)]
#[case::not_rolled_up(known(vec![("Available", says(ConditionStatus::True, "A", ""))]), Some(says(
    ConditionStatus::Unknown,
    "UpgradeableNotEnabled",
    "Rollup all does not roll up Upgradeable: set its spec.upgradeable to true",
)))]
#[case::rolled_up(known(vec![("Available", says(ConditionStatus::True, "A", "")), ("Upgradeable", no())]), Some(no()))]
fn what_olm_is_told(#[case] insight: GroupStatus, #[case] expected: Option<Statement>) {
    assert_eq!(upgradeable(&insight, "all"), expected);
}

fn place() -> OperatorCondition {
    OperatorCondition { namespace: "operators".to_owned(), name: "shop.v1.2.0".to_owned() }
}

fn answer(upkeep: &mut Upkeep, code: u16, body: &Value) -> Option<Result<UpkeepOutcome, ReadError>> {
    let (parts, ()) = Response::builder().status(code).body(()).unwrap().into_parts();
    upkeep.answered(&parts, body.to_string().as_bytes(), now())
}

/// A request in a line, and its body.
fn asked(upkeep: &Upkeep) -> (String, Value) {
    let request = upkeep.request().unwrap();
    let body = serde_json::from_slice(request.body()).unwrap_or_default();
    (format!("{} {}", request.method(), request.uri()), body)
}

fn stored(version: &str, conditions: &Value) -> Value {
    let spec = json!({"deployments": ["shop"], "conditions": conditions});
    json!({"metadata": {"name": "shop.v1.2.0", "resourceVersion": version}, "spec": spec})
}

const GET: &str = "GET /apis/operators.coreos.com/v2/namespaces/operators/operatorconditions/shop.v1.2.0";

#[test]
fn it_is_looked_at_and_then_written() {
    let mut upkeep = Upkeep::new(place(), no());
    assert_eq!(asked(&upkeep), (GET.to_owned(), Value::Null));
    assert_eq!(answer(&mut upkeep, 200, &stored("7", &json!([theirs()]))), None);
    let (request, body) = asked(&upkeep);
    assert_eq!(request, format!("{GET}?fieldManager=bellwether").replace("GET", "PATCH"));
    let conditions = json!([theirs(), stored_no("2026-11-14T10:00:00Z")]);
    // Nothing else of the spec is touched, and another version is not overwritten.
    assert_eq!(body, json!({"metadata": {"resourceVersion": "7"}, "spec": {"conditions": conditions}}));
    assert_eq!(answer(&mut upkeep, 200, &json!({})), Some(Ok(UpkeepOutcome::Written)));
}

#[test]
fn what_is_so_already_is_not_written() {
    let mut upkeep = Upkeep::new(place(), no());
    let answered = answer(&mut upkeep, 200, &stored("7", &json!([stored_no(EARLIER)])));
    assert_eq!(answered, Some(Ok(UpkeepOutcome::Unchanged)));
}

/// Whoever was quicker is looked at, and not for ever.
#[test]
fn after_a_conflict_it_is_looked_at_again() {
    let mut upkeep = Upkeep::new(place(), no());
    let mut versions = Vec::new();
    let end = loop {
        assert_eq!(asked(&upkeep).0, GET);
        let version = versions.len().to_string();
        assert_eq!(answer(&mut upkeep, 200, &stored(&version, &Value::Null)), None);
        versions.push(asked(&upkeep).1["metadata"]["resourceVersion"].clone());
        if let Some(end) = answer(&mut upkeep, 409, &json!({"message": "it has been modified"})) {
            break end;
        }
    };
    assert_eq!(versions, ["0", "1", "2", "3", "4"]);
    assert_eq!(end, Err(ReadError::rejected("it has been modified")));
    // Somebody else may have written the same.
    let mut upkeep = Upkeep::new(place(), no());
    assert_eq!(answer(&mut upkeep, 200, &stored("7", &json!([]))), None);
    assert_eq!(answer(&mut upkeep, 409, &json!({})), None);
    assert_eq!(
        answer(&mut upkeep, 200, &stored("8", &json!([stored_no(EARLIER)]))),
        Some(Ok(UpkeepOutcome::Unchanged))
    );
}

#[rstest]
#[case::forbidden(403, "grant it the verbs get and patch on operatorconditions")]
#[case::absent(404, "see that OLM is installed")]
#[case::invalid(422, "in their words")]
#[case::server_error(500, "in their words")]
fn what_goes_wrong_is_said(#[case] code: u16, #[case] expected: &str, #[values(false, true)] late: bool) {
    let mut upkeep = Upkeep::new(place(), no());
    if late {
        assert_eq!(answer(&mut upkeep, 200, &stored("7", &json!([]))), None);
    }
    let end = answer(&mut upkeep, code, &json!({"message": "in their words"}));
    let trouble = end.expect("it ends").expect_err("it fails");
    let sentence = place().explain(&trouble);
    assert!(sentence.contains(expected), "{sentence}");
}

#[rstest]
#[case(json!([]))]
#[case(json!({}))]
#[case(json!({"metadata": {}}))]
#[case(json!({"metadata": {"resourceVersion": "7"}, "spec": {"conditions": "all"}}))]
fn what_is_no_operator_condition_is_left_alone(#[case] body: Value) {
    let mut upkeep = Upkeep::new(place(), no());
    let end = answer(&mut upkeep, 200, &body);
    assert_eq!(end, Some(Err(ReadError::rejected("what the API server answers is no OperatorCondition"))));
}

#[test]
fn a_spec_without_conditions_gets_them() {
    for spec in [json!({}), json!({"conditions": null})] {
        let mut upkeep = Upkeep::new(place(), no());
        let body = json!({"metadata": {"resourceVersion": "7"}, "spec": spec});
        assert_eq!(answer(&mut upkeep, 200, &body), None);
        assert_eq!(asked(&upkeep).1["spec"]["conditions"], json!([stored_no("2026-11-14T10:00:00Z")]));
    }
}
