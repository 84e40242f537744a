//! What is said of objects, and that API servers say the same.

use rstest::rstest;

use bellwether_api::crds;
use bellwether_expr::{Absence, Program, Scope};
use bellwether_model::{Object, Plan};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps as Schema, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{KindSchema, cel::spelled_out};

fn faults(spec: &str) -> Vec<String> {
    let json = format!(
        r#"{{"apiVersion":"bellwether.dev/v1alpha1","kind":"HealthRule","metadata":{{"name":"a"}},"spec":{spec}}}"#
    );
    let object = Object::from_json(json.as_bytes(), &Plan::whole()).expect("it is an object");
    let schema = KindSchema::of("HealthRule").expect("it is one of ours");
    schema.check(object.fields()).iter().map(|fault| format!("{}: {}", fault.field, fault.text)).collect()
}

/// All rules below a schema.
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
        let schema = &KindSchema::of(&crd.spec.names.kind).expect("it is one of ours").schema;
        rules_of(schema, &mut all);
    }
    assert!(all.len() > 20, "{} rules", all.len());
    for rule in all {
        let program = Program::cel(&spelled_out(&rule), &scope);
        assert!(
            program.is_ok(),
            "{rule}: {}",
            program.err().map(|mistake| mistake.to_string()).unwrap_or_default()
        );
    }
}

#[rstest]
#[case::fine(r#"{"for":{"group":"acme.io","kind":"Widget"},"lua":"return {}"}"#, &[])]
#[case::nothing("{}", &["spec.for: it is missing"])]
#[case::a_text(r#""x""#, &["spec: it must be a map, not text"])]
#[case::two_forms(r#"{"for":{"kind":"W"},"lua":"x","cel":[{"when":"true","state":"Ready"}]}"#, &["spec: a HealthRule has exactly one form: give one of cel, expressions and lua"])]
#[case::no_form(r#"{"for":{"kind":"W"}}"#, &["spec: a HealthRule has exactly one form: give one of cel, expressions and lua"])]
#[case::a_state(r#"{"for":{"kind":"W"},"cel":[{"when":"true","state":"Healthy"}]}"#, &["spec.cel[0].state: `Healthy` is none of Ready, InProgress, Failed, Suspended, Terminating, Unknown"])]
#[case::a_field(r#"{"for":{"kind":"W"},"cell":[]}"#, &["spec.cell: there is no such field; there is cel, expressions, for, lua"])]
#[case::a_type(r#"{"for":{"kind":"W"},"lua":3}"#, &["spec.lua: it must be text, not a number"])]
#[case::empty(r#"{"for":{"kind":"W"},"cel":[]}"#, &["spec.cel: it has 0 entries, fewer than 1"])]
#[case::a_reason(r#"{"for":{"kind":"W"},"cel":[{"when":"true","state":"Ready","reason":"not a word"}]}"#, &["spec.cel[0].reason: reason must be one word such as WidgetBroken: letters, digits, '_', ',' and ':', beginning with a letter"])]
#[case::a_kind(r#"{"for":{"kind":"widgets.acme.io"},"lua":"x"}"#, &["spec.for.kind: kind must be a kind such as Widget, or '*' for every kind of the group"])]
#[case::a_group(r#"{"for":{"group":"acme.io/v1","kind":"W"},"lua":"x"}"#, &["spec.for.group: group must be the name of an API group such as apps or acme.io, without a version; leave it out for the core group"])]
#[case::a_version(r#"{"for":{"group":"acme.io","version":"*","kind":"W"},"lua":"x"}"#, &["spec.for.version: version must be the version of an API such as v1 or v1beta1, without the group; leave it out for every version"])]
#[case::a_null(r#"{"for":{"kind":"W"},"lua":"x","cel":null}"#, &[])]
fn rules(#[case] spec: &str, #[case] expected: &[&str]) {
    assert_eq!(faults(spec), expected);
}

/// A row of the table with which real API servers are tested.
#[derive(Deserialize)]
struct Case {
    #[serde(rename = "case")]
    shows: String,
    object: Value,
    change: Option<Value>,
    refused: Option<String>,
}

/// Whatever an API server refuses is refused here, and nothing else.
#[rstest]
#[case::application("Application", include_str!("../../../api/tests/it/cases/application.yaml"))]
#[case::rollup("Rollup", include_str!("../../../api/tests/it/cases/rollup.yaml"))]
#[case::health_rule("HealthRule", include_str!("../../../api/tests/it/cases/health_rule.yaml"))]
#[case::status_collector("StatusCollector", include_str!("../../../api/tests/it/cases/status_collector.yaml"))]
#[case::binding_policy("BindingPolicy", include_str!("../../../api/tests/it/cases/binding_policy.yaml"))]
#[case::combined_status("CombinedStatus", include_str!("../../../api/tests/it/cases/combined_status.yaml"))]
fn it_is_as_on_an_api_server(#[case] kind: &str, #[case] table: &str) {
    let cases: Vec<Case> = serde_saphyr::from_str(table).expect("a table");
    assert!(cases.len() > 5);
    let mut wrong = Vec::new();
    for Case { shows, object, change, refused } in cases {
        let mut manifest =
            json!({ "apiVersion": "bellwether.dev/v1alpha1", "kind": kind, "metadata": { "name": "a" } });
        for (name, value) in object.as_object().into_iter().flatten() {
            manifest[name] = value.clone();
        }
        // A change is refused because of what was there before.
        let refused = refused.is_some() && change.is_none();
        let faults = super::faults_in(&manifest);
        if faults.is_empty() == refused {
            wrong.push(format!("{shows}: {faults:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
