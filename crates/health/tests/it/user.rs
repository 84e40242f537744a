//! User rules: precedence, verdicts, errors.

use std::sync::Arc;

use bellwether_health::{
    Context, Source, Verdict, assess, explain,
    user::{Clause, CompiledRule, Form, RuleFieldError, RuleTarget, UserRule, UserRules},
};
use bellwether_model::{Object, Plan, State};
use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value as Json, json};

fn kind(group: &str, version: Option<&str>, kind: &str) -> RuleTarget {
    RuleTarget {
        group: group.to_owned(),
        version: version.map(str::to_owned),
        kind: Some(kind.to_owned()).filter(|kind| kind != "*"),
    }
}

fn rule(name: &str, kind: RuleTarget, form: Form) -> Arc<CompiledRule> {
    let rule = UserRule { name: name.to_owned(), created: None, kind, form };
    Arc::new(rule.compile().unwrap_or_else(|flaws| panic!("{}", texts(&flaws).join("\n"))))
}

fn texts(flaws: &[RuleFieldError]) -> Vec<String> {
    flaws.iter().map(RuleFieldError::to_string).collect()
}

fn clause(when: &str, state: State) -> Clause {
    Clause { when: when.to_owned(), state, reason: None, message: None }
}

fn widgets(form: Form) -> UserRules {
    UserRules::new([rule("widgets", kind("acme.io", None, "Widget"), form)])
}

fn widget(status: &Json) -> Json {
    json!({"apiVersion": "acme.io/v1", "kind": "Widget", "metadata": {"name": "w", "generation": 2}, "status": status})
}

fn evaluated(rules: &UserRules, object: &Json) -> Verdict {
    let bytes = object.to_string();
    let whole = Object::from_json(bytes.as_bytes(), &Plan::whole()).expect("a JSON object");
    let context = Context { rules: Some(rules), ..Context::at(Timestamp::UNIX_EPOCH) };
    let verdict = assess(&whole, &context);
    let mut plan = Plan::identity();
    rules.add_fields_for(whole.group(), whole.kind(), &mut plan);
    let planned = Object::from_json(bytes.as_bytes(), &plan).expect("a JSON object");
    if verdict.rule.source == Source::User {
        assert_eq!(assess(&planned, &context), verdict, "the plan has the fields of the rule");
    }
    assert_eq!(explain(&whole, &context).verdict, verdict, "the explanation has the same verdict");
    verdict
}

fn text(verdict: &Verdict) -> String {
    format!("{} {}: {}", verdict.state.name(), verdict.reason, verdict.message)
}

fn broken_or_up() -> Form {
    Form::Clauses(vec![
        Clause {
            when: "status.phase == 'Broken'".to_owned(),
            state: State::Failed,
            reason: Some("WidgetBroken".to_owned()),
            message: Some("'broken at ' + status.step".to_owned()),
        },
        clause("status.phase == 'Up'", State::Ready),
        clause("status.paused", State::Suspended),
    ])
}

#[rstest]
#[case::first(json!({"phase": "Broken", "step": "boot"}), "Failed WidgetBroken: broken at boot")]
#[case::second(json!({"phase": "Up"}), "Ready Ready: clause matched: status.phase == 'Up'")]
#[case::after_a_missing_field(json!({"paused": true}), "Suspended Suspended: clause matched: status.paused")]
#[case::none(json!({"phase": "Down", "paused": false}), "InProgress NoClauseTrue: no clause matched")]
#[case::missing_field(json!({}), "InProgress NoClauseTrue: no clause matched (no such key: phase)")]
#[case::no_status(Json::Null, "InProgress NoClauseTrue: no clause matched (no such key: phase)")]
#[case::missing_field_in_message(
    json!({"phase": "Broken"}),
    "Failed WidgetBroken: clause matched: status.phase == 'Broken' (message not evaluated: no such key: step)"
)]
#[case::error_in_message(
    json!({"phase": "Broken", "step": 3}),
    "Failed WidgetBroken: clause matched: status.phase == 'Broken' (message not evaluated: line 1, column 14: no such overload: string + int)"
)]
#[case::not_a_bool(
    json!({"phase": "Down", "paused": "yes"}),
    "Unknown RuleError: `status.paused`: expected bool, got string"
)]
#[case::error(
    json!("Up"),
    "Unknown RuleError: `status.phase == 'Broken'`: line 1, column 7: cannot read field `phase`: status is not a map"
)]
fn clauses(#[case] status: Json, #[case] expected: &str) {
    let verdict = evaluated(&widgets(broken_or_up()), &widget(&status));
    assert_eq!(text(&verdict), expected);
    assert_eq!((verdict.rule.source, &*verdict.rule.id), (Source::User, "widgets"));
    assert_eq!(verdict.progress, if verdict.state == State::Ready { 100 } else { 0 });
}

/// A suspended object that is not available blocks, also by the rule of a user.
#[rstest]
#[case::none_available(json!({"replicas": 3, "availableReplicas": 0}), true)]
#[case::all_available(json!({"replicas": 3, "availableReplicas": 3}), false)]
#[case::not_ready(json!({"conditions": [{"type": "Ready", "status": "False", "reason": "NoQuorum"}]}), true)]
#[case::not_ready_because_suspended(
    json!({"conditions": [{"type": "Ready", "status": "False", "reason": "Suspended"}]}),
    false
)]
#[case::failed(json!({"lastError": "disk full"}), true)]
#[case::nothing_known(json!({}), false)]
fn an_unavailable_object_that_a_user_rule_calls_suspended_blocks(
    #[values(
        Form::Clauses(vec![clause("self.spec.mode == 'Paused'", State::Suspended), clause("true", State::Ready)]),
        Form::Lua("return {status = 'Suspended', message = 'paused'}".to_owned())
    )]
    form: Form,
    #[case] status: Json,
    #[case] blocks: bool,
) {
    let mut object = widget(&status);
    object["spec"] = json!({"mode": "Paused", "replicas": 3});
    let verdict = evaluated(&widgets(form), &object);
    assert_eq!((verdict.state, verdict.blocks), (State::Suspended, blocks));
}

#[test]
fn deletion_takes_precedence_over_a_user_rule() {
    let mut object = widget(&json!({"phase": "Up"}));
    object["metadata"]["deletionTimestamp"] = json!("1970-01-01T00:00:00Z");
    assert_eq!(evaluated(&widgets(broken_or_up()), &object).state, State::Terminating);
}

#[test]
fn a_user_rule_takes_precedence_over_a_built_in_rule() {
    let form = Form::Clauses(vec![clause("metadata.name == 'web'", State::Failed)]);
    let rules = UserRules::new([rule("deployments", kind("apps", None, "Deployment"), form)]);
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 0}});
    assert_eq!(evaluated(&rules, &object).state, State::Failed);
    let other = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": {"replicas": 0}});
    assert_eq!(evaluated(&rules, &other).rule.source, Source::Builtin);
}

fn flux(current: &str, in_progress: Option<&str>, failed: Option<&str>) -> Form {
    Form::Flux {
        current: current.to_owned(),
        in_progress: in_progress.map(str::to_owned),
        failed: failed.map(str::to_owned),
    }
}

#[rstest]
#[case::current(json!({"a": false, "b": false, "c": true}), "Ready Ready: current: status.c")]
#[case::failed_before_current(json!({"a": false, "b": true, "c": true}), "Failed Failed: failed: status.b")]
#[case::in_progress_before_all(json!({"a": true, "b": true, "c": true}), "InProgress InProgress: inProgress: status.a")]
#[case::none(json!({"a": false, "b": false, "c": false}), "InProgress NoExpressionTrue: no expression matched")]
#[case::missing(json!({"a": false}), "Unknown RuleError: failed to evaluate the CEL expression 'status.b': no such key: b")]
#[case::no_status(
    Json::Null,
    "Unknown RuleError: failed to evaluate the CEL expression 'status.a': no such key: a"
)]
#[case::not_a_bool(json!({"a": 1}), "Unknown RuleError: failed to evaluate CEL expression as boolean: 'status.a'")]
#[case::not_observed(json!({"observedGeneration": 1, "c": true}), "InProgress LatestGenerationNotObserved: observed generation 1, want 2")]
#[case::ahead(json!({"observedGeneration": 3, "c": true}), "InProgress LatestGenerationNotObserved: observed generation 3, want 2")]
#[case::observed(json!({"observedGeneration": 2, "a": false, "b": false, "c": true}), "Ready Ready: current: status.c")]
fn flux_expressions(#[case] status: Json, #[case] expected: &str) {
    let rules = widgets(flux("status.c", Some("status.a"), Some("status.b")));
    assert_eq!(text(&evaluated(&rules, &widget(&status))), expected);
}

#[test]
fn a_missing_top_level_field_has_the_error_of_flux() {
    let rules = widgets(flux("status.c", None, None));
    let object = json!({"apiVersion": "acme.io/v1", "kind": "Widget"});
    assert_eq!(
        text(&evaluated(&rules, &object)),
        "Unknown RuleError: failed to evaluate the CEL expression 'status.c': no such attribute(s): status.c"
    );
}

const SCRIPT: &str = r#"
hs = { status = "Progressing", message = "waiting" }
if obj.status ~= nil and obj.status.say ~= nil then
  hs.status = obj.status.say
  hs.message = "message"
end
if obj.status ~= nil and obj.status.loop then
  while true do end
end
if obj.status ~= nil and obj.status.fail then
  return obj.status.fail.no.such.field
end
if obj.status ~= nil and obj.status.empty then
  return nil
end
return hs
"#;

#[rstest]
#[case(json!({"say": "Healthy"}), "Ready Healthy: message")]
#[case(json!({"say": "Degraded"}), "Failed Degraded: message")]
#[case(json!({"say": "Suspended"}), "Suspended Suspended: message")]
#[case(json!({"say": "Missing"}), "InProgress Missing: message")]
#[case(json!({"say": "Unknown"}), "Unknown Unknown: message")]
#[case(json!({}), "InProgress Progressing: waiting")]
#[case(Json::Null, "InProgress Progressing: waiting")]
#[case(json!({"say": "Splendid"}), "Unknown RuleError: Lua script returned invalid status \"Splendid\", expected Healthy, Progressing, Degraded, Suspended, Missing or Unknown")]
#[case(json!({"empty": true}), "Unknown RuleError: Lua script returned no status")]
fn scripts(#[case] status: Json, #[case] expected: &str) {
    assert_eq!(text(&evaluated(&widgets(Form::Lua(SCRIPT.to_owned())), &widget(&status))), expected);
}

#[test]
fn a_script_error_has_a_line() {
    let verdict = evaluated(&widgets(Form::Lua(SCRIPT.to_owned())), &widget(&json!({"fail": true})));
    assert_eq!((verdict.state, &*verdict.reason), (State::Unknown, "RuleError"));
    assert!(verdict.message.starts_with("line 11: attempt to index a"), "{}", verdict.message);
}

#[rstest]
#[case::a_script(Form::Lua(SCRIPT.to_owned()))]
#[case::clauses(Form::Clauses(vec![clause(
    "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, a + b + c >= 0)))",
    State::Ready,
)]))]
#[case::flux(flux("lists.range(1000).all(a, lists.range(1000).all(b, a + b >= 0))", None, None))]
fn a_rule_that_exceeds_its_limit_is_unknown(#[case] form: Form) {
    let verdict = evaluated(&widgets(form), &widget(&json!({"loop": true})));
    assert_eq!((verdict.state, &*verdict.reason), (State::Unknown, "RuleTooExpensive"));
    assert!(verdict.message.contains(" exceeded its "), "{}", verdict.message);
}

fn named(name: &str, kind: RuleTarget, created: Option<&str>) -> Arc<CompiledRule> {
    let created = created.map(|created| created.parse().expect("a time"));
    let form = Form::Clauses(vec![clause("true", State::Ready)]);
    Arc::new(UserRule { name: name.to_owned(), created, kind, form }.compile().expect("a valid rule"))
}

#[rstest]
#[case::kind_and_version("acme.io/v1", "Widget", Some("widget-v1"))]
#[case::kind("acme.io/v2", "Widget", Some("widget"))]
#[case::group_and_version("acme.io/v1", "Gadget", Some("group-v1"))]
#[case::group("acme.io/v2", "Gadget", Some("group"))]
#[case::another_group("other.io/v1", "Widget", None)]
#[case::group_suffix("a.many.io/v1", "Widget", Some("many"))]
#[case::suffix_does_not_match("many.io/v1", "Widget", None)]
#[case::core_group("v1", "Widget", None)]
fn the_most_specific_rule_takes_precedence(
    #[case] api_version: &str,
    #[case] of: &str,
    #[case] expected: Option<&str>,
) {
    let mut rules = vec![
        named("group", kind("acme.io", None, "*"), None),
        named("group-v1", kind("acme.io", Some("v1"), "*"), None),
        named("many", kind("*.many.io", None, "*"), None),
        named("widget", kind("acme.io", None, "Widget"), None),
        named("widget-v1", kind("acme.io", Some("v1"), "Widget"), None),
    ];
    let object = json!({"apiVersion": api_version, "kind": of, "metadata": {"name": "w"}});
    for _ in 0..rules.len() {
        rules.rotate_left(1);
        let book = UserRules::new(rules.clone());
        let verdict = evaluated(&book, &object);
        let by = (verdict.rule.source == Source::User).then_some(&*verdict.rule.id);
        assert_eq!(by, expected);
        assert!(book.overridden().is_empty());
    }
}

#[rstest]
#[case::by_age(("a", Some("2026-01-02T00:00:00Z")), ("b", Some("2026-01-01T00:00:00Z")), "b")]
#[case::by_name(("a", Some("2026-01-01T00:00:00Z")), ("b", Some("2026-01-01T00:00:00Z")), "a")]
#[case::by_name_without_age(("b", None), ("a", None), "a")]
#[case::one_without_age(("a", None), ("b", Some("2026-01-01T00:00:00Z")), "b")]
fn of_two_rules_for_the_same_target_one_takes_precedence(
    #[case] one: (&str, Option<&str>),
    #[case] other: (&str, Option<&str>),
    #[case] winner: &str,
) {
    let rules = [one, other].map(|(name, created)| named(name, kind("acme.io", None, "Widget"), created));
    for order in [[0, 1], [1, 0]] {
        let book = UserRules::new(order.map(|index| Arc::clone(&rules[index])));
        assert_eq!(evaluated(&book, &widget(&json!({}))).rule.id, winner);
        let [overridden] = book.overridden() else { panic!("one is overridden") };
        assert_eq!(overridden.by.name(), winner);
        assert_ne!(overridden.rule.name(), winner);
    }
}

fn flaws(form: Form, kind: RuleTarget) -> Vec<String> {
    let rule = UserRule { name: "r".to_owned(), created: None, kind, form };
    texts(&rule.compile().expect_err("an invalid rule"))
}

#[test]
fn all_errors_of_a_rule_are_reported() {
    let form = Form::Clauses(vec![
        Clause { message: Some("it broke".to_owned()), ..clause("status.phase = 'x'", State::Failed) },
        clause("'text'", State::Ready),
        clause("status.phase == 'Up'", State::Ready),
    ]);
    assert_eq!(
        flaws(form, kind("acme.io", None, "Widget")),
        [
            "spec.cel[0].when: line 1, column 14: unexpected `=`; to compare, write ==",
            "spec.cel[0].message: line 1, column 4: expected an operator or end of expression, found `broke`; plain text needs inner quotes: \"'it broke'\"",
            "spec.cel[1].when: line 1, column 1: the expression must evaluate to bool; write a comparison, for example \
             status.phase == 'Up'",
        ]
    );
}

#[test]
fn errors_of_flux_and_lua_name_the_field() {
    assert_eq!(
        flaws(flux("status.c &&", Some("stauts.a"), None), kind("acme.io", None, "Widget")),
        [
            "spec.expressions.inProgress: line 1, column 1: undeclared reference to `stauts`; did you mean `status`?",
            "spec.expressions.current: line 1, column 12: expected a value, found end of expression",
        ]
    );
    let lua = flaws(Form::Lua("if obj.status then\nreturn {".to_owned()), kind("acme.io", None, "Widget"));
    assert!(lua[0].starts_with("spec.lua: line 2"), "{lua:?}");
}

#[test]
fn rules_cannot_read_secret_data() {
    let form = || Form::Clauses(vec![clause("data.password == 'x'", State::Ready)]);
    assert_eq!(
        flaws(form(), kind("", None, "Secret")),
        ["spec: cannot read `data.password` of a Secret; use only metadata"]
    );
    for (expression, read) in [
        ("self.type == 'Opaque'", "type"),
        ("self.exists(f, self[f] == 'a')", "self"),
        ("has(immutable)", "immutable"),
    ] {
        assert_eq!(
            flaws(Form::Clauses(vec![clause(expression, State::Ready)]), kind("", None, "Secret")),
            [format!("spec: cannot read `{read}` of a Secret; use only metadata")]
        );
    }
    for group in ["", "*"] {
        assert_eq!(
            flaws(form(), kind(group, None, "*")),
            [
                "spec: cannot read `data.password` of a Secret; name a kind other than Secret in spec.for, or use only \
                 other fields"
            ],
        );
    }
    assert_eq!(
        flaws(Form::Lua("return {status = obj.data.password}".to_owned()), kind("", None, "Secret")),
        ["spec: cannot read `data` of a Secret; use only metadata"]
    );
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"password": "x"}, "type": "y"});
    let hidden =
        Form::Lua("return {status = 'Healthy', message = obj.data and 'read' or 'hidden'}".to_owned());
    let rules = UserRules::new([rule("all", kind("", None, "*"), hidden)]);
    let mut plan = Plan::identity();
    rules.add_fields_for("", "Secret", &mut plan);
    let bytes = object.to_string();
    let kept = Object::from_json(bytes.as_bytes(), &plan).expect("a JSON object");
    assert!(kept.at("data").is_none_or(|data| data.as_map().is_none_or(bellwether_model::Map::is_empty)));
    assert_eq!(evaluated(&rules, &object).message, "hidden");
    // A rule for all kinds is accepted, and sees the metadata of a Secret.
    for expression in ["self.type == 'y'", "self.exists(f, self[f] == 'y')"] {
        let form = Form::Clauses(vec![clause(expression, State::Failed), clause("true", State::Ready)]);
        let rules = UserRules::new([rule("all", kind("", None, "*"), form)]);
        assert_eq!(evaluated(&rules, &object).state, State::Ready, "{expression}");
    }
}

#[test]
fn an_explanation_has_the_fields_that_expressions_read() {
    let bytes = widget(&json!({"phase": "Broken", "step": "boot"})).to_string();
    let object = Object::from_json(bytes.as_bytes(), &Plan::whole()).expect("a JSON object");
    let rules = widgets(broken_or_up());
    let context = Context { rules: Some(&rules), ..Context::at(Timestamp::UNIX_EPOCH) };
    let evidence = explain(&object, &context).evidence;
    let read: Vec<_> = evidence
        .iter()
        .map(|field| (field.path.as_str(), field.value.as_ref().map(ToString::to_string)))
        .collect();
    assert_eq!(
        read,
        [
            ("metadata.deletionTimestamp", None),
            ("status.phase", Some("Broken".to_owned())),
            ("status.step", Some("boot".to_owned())),
        ]
    );
}
