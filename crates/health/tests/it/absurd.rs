//! Extreme objects: evaluation ends, and in reasonable time.
//!
//! No test asserts a duration. Quadratic time would be noticed: the tests would not end.

use bellwether_health::{Context, assess, explain, plan};
use bellwether_model::{Object, Plan, State};
use rstest::rstest;
use serde_json::{Map, Value, json};

use crate::{
    cases::NOON,
    objects::{conditions_of, put},
};

const MANY: usize = 100_000;

#[rstest]
// Conditions.
#[case::of_any_kind(many_conditions("acme.io/v1", "Widget"), State::Unknown)]
#[case::of_a_deployment(many_conditions("apps/v1", "Deployment"), State::InProgress)]
#[case::of_a_pod(many_conditions("v1", "Pod"), State::InProgress)]
#[case::of_a_gateway_class(many_conditions("gateway.networking.k8s.io/v1", "GatewayClass"), State::Unknown)]
#[case::of_a_kind_with_clauses(many_conditions("keda.sh/v1alpha1", "ScaledObject"), State::InProgress)]
#[case::of_one_type(
    object("acme.io/v1", "Widget", "status.conditions", Value::from(vec![json!({"type": "Ready", "status": "False"}); MANY])),
    State::InProgress
)]
// Lists.
#[case::containers_that_wait(containers(&json!({"waiting": {"reason": "ContainerCreating"}})), State::InProgress)]
#[case::containers_that_ended(containers(&json!({"terminated": {"exitCode": 0}})), State::InProgress)]
#[case::listeners(
    object("gateway.networking.k8s.io/v1", "Gateway", "status", json!({
        "conditions": conditions_of(&["Accepted", "Programmed"]),
        "listeners": entries(|name| json!({"name": name, "conditions": conditions_of(&["Accepted", "Programmed"])})),
    })),
    State::Ready
)]
#[case::parents_and_their_names(
    object("gateway.networking.k8s.io/v1", "HTTPRoute", "status.parents", entries(|name| json!({
        "parentRef": {"name": name}, "conditions": conditions_of(&["Accepted"]),
    }))).with("spec.parentRefs", entries(|name| json!({"name": name}))),
    State::Unknown
)]
#[case::entries_without_an_address(
    object("v1", "Service", "status.loadBalancer.ingress", entries(|_| json!({}))).with("spec.type", json!("LoadBalancer")),
    State::InProgress
)]
#[case::finalizers(
    object("v1", "ConfigMap", "metadata", json!({"deletionTimestamp": NOON, "finalizers": entries(|name| json!(name))})),
    State::Terminating
)]
// Fields.
#[case::phases(object("acme.io/v1", "Widget", "status", fields(|_| json!("Running"))), State::Unknown)]
#[case::parts(
    object("acme.io/v1", "Widget", "status", fields(|name| json!({"name": name, "conditions": conditions_of(&["Ready"])}))),
    State::Unknown
)]
#[case::of_a_spec(object("acme.io/v1", "Widget", "spec", fields(|_| json!(1))), State::InProgress)]
// Text.
#[case::a_message(
    object("acme.io/v1", "Widget", "status.conditions", json!([
        {"type": "Ready", "status": "False", "message": "long ".repeat(1_000_000)},
    ])),
    State::InProgress
)]
#[case::a_reason(
    object("acme.io/v1", "Widget", "status.conditions", json!([
        {"type": "Ready", "status": "False", "reason": "a-".repeat(500_000)},
    ])),
    State::InProgress
)]
#[case::a_phase(object("acme.io/v1", "Widget", "status.phase", json!("x".repeat(1_000_000))), State::Unknown)]
#[case::a_type(
    object("acme.io/v1", "Widget", "status.conditions", conditions_of(&[&"ReadyNot".repeat(125_000)])),
    State::Unknown
)]
#[case::a_kind(object("acme.io/v1", &"Kind".repeat(250_000), "status.phase", json!("Ready")), State::Ready)]
#[case::a_group(object(&format!("{}/v1", "a.".repeat(500_000)), "Widget", "status.phase", json!("Ready")), State::Ready)]
#[case::a_name_of_a_field(object("acme.io/v1", "Widget", "status", json!({"aB".repeat(500_000): "Ready"})), State::Unknown)]
#[case::a_container(
    object("v1", "Pod", "status", json!({
        "phase": "Pending",
        "containerStatuses": [{"name": "a".repeat(1_000_000), "state": {"waiting": {"reason": "ErrImagePull"}}}],
    })),
    State::Failed
)]
fn an_extreme_object_gets_a_verdict(#[case] object: Absurd, #[case] state: State) {
    verdict(&object.0.to_string(), state);
}

#[rstest]
#[case::of_maps(r#"{"status":"#, "{}", "}")]
#[case::of_lists("[", "{}", "]")]
#[case::of_parts(r#"{"parents":[{"conditions":["#, r#"{"type":"Ready"}"#, "]}]}")]
fn deep_nesting_is_accepted(#[case] open: &str, #[case] inside: &str, #[case] close: &str) {
    let (depth, kept) = (10_000, r#""kind":"Widget","apiVersion":"acme.io/v1""#);
    let status = format!("{}{inside}{}", open.repeat(depth), close.repeat(depth));
    verdict(&format!(r#"{{{kept},"status":{{"phase":"Ready","deep":{status}}}}}"#), State::Ready);
    verdict(&format!(r#"{{{kept},"spec":{status},"status":{{"phase":"Ready"}}}}"#), State::Ready);
}

#[test]
fn the_last_of_duplicate_fields_wins() {
    let kept = r#""kind":"Widget","apiVersion":"acme.io/v1""#;
    verdict(
        &format!(r#"{{{kept},"status":{{"phase":"Failed"}},"status":{{"phase":"Ready"}}}}"#),
        State::Ready,
    );
    verdict(
        &format!(r#"{{{kept},"spec":{{"paused":true,"paused":false}},"status":{{"phase":"Ready"}}}}"#),
        State::Ready,
    );
    verdict(&format!(r#"{{{kept},"status":{{"phase":"Failed","phase":"Ready"}}}}"#), State::Ready);
}

/// Evaluates the whole object, the planned fields and the explanation.
fn verdict(json: &str, state: State) {
    let context = Context::at(NOON.parse().expect("a time"));
    let whole = Object::from_json(json.as_bytes(), &Plan::everything()).expect("an object");
    let own = plan(whole.group(), whole.kind());
    let pruned = Object::from_json(json.as_bytes(), &own).expect("an object");
    assert_eq!(assess(&whole, &context).state, state);
    assert_eq!(assess(&pruned, &context).state, state);
    assert_eq!(explain(&whole, &context).verdict.state, state);
}

struct Absurd(Value);

impl Absurd {
    fn with(mut self, path: &str, value: Value) -> Self {
        put(&mut self.0, path, Some(value));
        self
    }
}

fn object(api_version: &str, kind: &str, path: &str, value: Value) -> Absurd {
    Absurd(json!({"apiVersion": api_version, "kind": kind})).with(path, value)
}

/// All true, each of another type.
fn many_conditions(api_version: &str, kind: &str) -> Absurd {
    let types: Vec<_> = (0..MANY).map(|number| format!("Part{number}Ready")).collect();
    let types: Vec<_> = types.iter().map(String::as_str).collect();
    object(api_version, kind, "status.conditions", conditions_of(&types))
}

fn containers(state: &Value) -> Absurd {
    let containers: Vec<_> = (0..10_000)
        .map(|number| json!({"name": format!("c{number}"), "ready": true, "state": state}))
        .collect();
    object("v1", "Pod", "status", json!({"phase": "Pending", "containerStatuses": containers}))
}

fn entries(entry: impl Fn(&str) -> Value) -> Value {
    (0..10_000).map(|number| entry(&format!("e{number}"))).collect()
}

fn fields(field: impl Fn(&str) -> Value) -> Value {
    (0..MANY)
        .map(|number| (format!("f{number}State"), field(&number.to_string())))
        .collect::<Map<_, _>>()
        .into()
}
