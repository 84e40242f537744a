//! Validation of objects, compared with the API server.

use rstest::rstest;

use bellwether_api::crds;
use bellwether_expr::{Absence, Program, Scope};
use bellwether_model::{Object, Plan};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps as Schema, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{KindSchema, cel::with_patterns, not_one_of};

fn errors(spec: &str) -> Vec<String> {
    let json = format!(
        r#"{{"apiVersion":"bellwether.dev/v1alpha1","kind":"HealthRule","metadata":{{"name":"a"}},"spec":{spec}}}"#
    );
    let object = Object::from_json(json.as_bytes(), &Plan::whole()).expect("an object");
    let schema = KindSchema::of("HealthRule").expect("a kind of bellwether.dev");
    schema.check(object.fields()).iter().map(|error| format!("{}: {}", error.field, error.message)).collect()
}

/// All rules in a schema.
fn rules_of(schema: &Schema, rules: &mut Vec<String>) {
    rules.extend(schema.x_kubernetes_validations.iter().flatten().map(|rule| rule.rule.clone()));
    for schema in schema.properties.iter().flat_map(|properties| properties.values()) {
        rules_of(schema, rules);
    }
    if let Some(JSONSchemaPropsOrArray::Schema(schema)) = &schema.items {
        rules_of(schema, rules);
    }
    if let Some(JSONSchemaPropsOrBool::Schema(schema)) = &schema.additional_properties {
        rules_of(schema, rules);
    }
}

#[test]
fn every_rule_of_our_kinds_can_be_evaluated_here() {
    let scope = Scope::variables(["self", "oldSelf"], Absence::AsInCel);
    let mut all = Vec::new();
    for crd in crds() {
        let schema = &KindSchema::of(&crd.spec.names.kind).expect("a kind of bellwether.dev").schema;
        rules_of(schema, &mut all);
    }
    assert!(all.len() > 20, "{} rules", all.len());
    for rule in all {
        let program = Program::cel(&with_patterns(&rule), &scope);
        assert!(
            program.is_ok(),
            "{rule}: {}",
            program.err().map(|compile_error| compile_error.to_string()).unwrap_or_default()
        );
    }
}

#[rstest]
#[case::valid(r#"{"for":{"group":"acme.io","kind":"Widget"},"lua":"return {}"}"#, &[])]
#[case::nothing("{}", &["spec.for: required"])]
#[case::a_text(r#""x""#, &["spec: must be a map, not a string"])]
#[case::two_forms(r#"{"for":{"kind":"W"},"lua":"x","cel":[{"when":"true","state":"Ready"}]}"#, &["spec: set exactly one of cel, expressions and lua"])]
#[case::no_form(r#"{"for":{"kind":"W"}}"#, &["spec: set exactly one of cel, expressions and lua"])]
#[case::a_state(r#"{"for":{"kind":"W"},"cel":[{"when":"true","state":"Healthy"}]}"#, &["spec.cel[0].state: unsupported value \"Healthy\": must be one of Ready, InProgress, Failed, Suspended, Terminating, Unknown"])]
#[case::a_field(r#"{"for":{"kind":"W"},"cell":[]}"#, &["spec.cell: unknown field \"cell\" (did you mean \"cel\"?)"])]
#[case::a_type(r#"{"for":{"kind":"W"},"lua":3}"#, &["spec.lua: must be a string, not a number"])]
#[case::empty(r#"{"for":{"kind":"W"},"cel":[]}"#, &["spec.cel: must have at least 1 entry, has 0"])]
#[case::a_reason(r#"{"for":{"kind":"W"},"cel":[{"when":"true","state":"Ready","reason":"not a word"}]}"#, &["spec.cel[0].reason: invalid reason \"not a word\": use one word such as WidgetBroken, of letters, digits, '_', ',' and ':', starting with a letter"])]
#[case::a_kind(r#"{"for":{"kind":"widgets.acme.io"},"lua":"x"}"#, &["spec.for.kind: invalid kind \"widgets.acme.io\": use a kind such as Widget, or '*' for every kind of the group"])]
#[case::a_group(r#"{"for":{"group":"acme.io/v1","kind":"W"},"lua":"x"}"#, &["spec.for.group: invalid API group \"acme.io/v1\": use a name such as apps or acme.io without a version, or omit it for the core group"])]
#[case::a_version(r#"{"for":{"group":"acme.io","version":"*","kind":"W"},"lua":"x"}"#, &["spec.for.version: invalid API version \"*\": use a version such as v1 or v1beta1 without the group, or omit it for every version"])]
#[case::a_null(r#"{"for":{"kind":"W"},"lua":"x","cel":null}"#, &[])]
fn rules(#[case] spec: &str, #[case] expected: &[&str]) {
    assert_eq!(errors(spec), expected);
}

#[rstest]
#[case::one_letter_missing("Aplication", "x (did you mean \"Application\"?)")]
#[case::plural("rollups", "x (did you mean \"Rollup\"?)")]
#[case::case_only("url", "x (did you mean \"URL\"?)")]
#[case::swapped("Rolulp", "x (did you mean \"Rollup\"?)")]
#[case::too_short("ur", "x: must be one of Application, Rollup, URL")]
#[case::too_far("Widget", "x: must be one of Application, Rollup, URL")]
fn suggestions(#[case] word: &str, #[case] expected: &str) {
    assert_eq!(not_one_of("x", word, &["Application", "Rollup", "URL"]), expected);
}

/// A row of the table for tests on a real API server.
#[derive(Deserialize)]
struct AdmissionCase {
    #[serde(rename = "case")]
    shows: String,
    object: Value,
    change: Option<Value>,
    rejected: Option<String>,
}

/// Rejects an object exactly if an API server does.
#[rstest]
#[case::application("Application", include_str!("../../../api/tests/it/cases/application.yaml"))]
#[case::rollup("Rollup", include_str!("../../../api/tests/it/cases/rollup.yaml"))]
#[case::health_rule("HealthRule", include_str!("../../../api/tests/it/cases/health_rule.yaml"))]
#[case::status_collector("StatusCollector", include_str!("../../../api/tests/it/cases/status_collector.yaml"))]
#[case::binding_policy("BindingPolicy", include_str!("../../../api/tests/it/cases/binding_policy.yaml"))]
#[case::combined_status("CombinedStatus", include_str!("../../../api/tests/it/cases/combined_status.yaml"))]
fn rejects_what_an_api_server_rejects(#[case] kind: &str, #[case] table: &str) {
    let cases: Vec<AdmissionCase> = serde_saphyr::from_str(table).expect("a table");
    assert!(cases.len() > 5);
    let mut wrong = Vec::new();
    for AdmissionCase { shows, object, change, rejected } in cases {
        let mut manifest =
            json!({ "apiVersion": "bellwether.dev/v1alpha1", "kind": kind, "metadata": { "name": "a" } });
        for (name, value) in object.as_object().into_iter().flatten() {
            manifest[name] = value.clone();
        }
        // A change is rejected by a transition rule, which needs the stored object.
        let rejected = rejected.is_some() && change.is_none();
        let errors = super::errors_in(&manifest);
        if errors.is_empty() == rejected {
            wrong.push(format!("{shows}: {errors:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
