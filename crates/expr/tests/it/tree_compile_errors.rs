//! Compile errors of trees: the place names the argument and its field.

use bellwether_expr::{Program, Scope};
use rstest::rstest;

use crate::compile_errors::message;

fn of_tree(tree: &str) -> String {
    message(Program::tree(&serde_json::from_str(tree).expect("JSON"), &Scope::row()))
}

#[rstest]
#[case(
    r#""status.phase == 'Up'""#,
    "an operation must be a map, not a string; write {op: Path, path: $.status.phase}, or use CEL for the whole expression"
)]
#[case(
    "[]",
    "an operation must be a map, not a list; write {op: Path, path: $.status.phase}, or use CEL for the whole expression"
)]
#[case(
    "5",
    "an operation must be a map, not a number; write {op: Path, path: $.status.phase}, or use CEL for the whole expression"
)]
#[case(
    "{}",
    "op is required; write one of Path, Literal, Not, And, Or, Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual, In, Exists"
)]
#[case(
    r#"{"path": "$.a"}"#,
    "op is required; write one of Path, Literal, Not, And, Or, Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual, In, Exists"
)]
#[case(r#"{"op": 5}"#, "op: must be a string, not a number")]
#[case(r#"{"op": "equal", "args": []}"#, "op: unknown operation `equal`; did you mean Equal?")]
#[case(r#"{"op": "Eq", "args": []}"#, "op: unknown operation `Eq`; did you mean Equal?")]
#[case(r#"{"op": "==", "args": []}"#, "op: unknown operation `==`; did you mean Equal?")]
#[case(r#"{"op": "Equals", "args": []}"#, "op: unknown operation `Equals`; did you mean Equal?")]
#[case(r#"{"op": "EqualTo", "args": []}"#, "op: unknown operation `EqualTo`; did you mean Equal?")]
#[case(
    r#"{"op": "Contains", "args": []}"#,
    "op: unknown operation `Contains`; write one of Path, Literal, Not, And, Or, Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual, In, Exists"
)]
#[case(r#"{"op": "Path"}"#, "path: must be a string; write path: $.status.phase")]
#[case(r#"{"op": "Path", "path": 5}"#, "path: must be a string; write path: $.status.phase")]
#[case(
    r#"{"op": "Path", "path": "status.phase"}"#,
    "path: `status.phase` must start with $; write $.status.phase"
)]
#[case(r#"{"op": "Path", "path": "$.a..b"}"#, "path: invalid path `$.a..b`: empty field name")]
#[case(
    r#"{"op": "Path", "path": "$.a[*]"}"#,
    "path: invalid path `$.a[*]`: unexpected `[*]`; write a quoted field or an index in brackets: $.a['b/c'][0]"
)]
#[case(r#"{"op": "Path", "path": "$[0]"}"#, "path: a path must start with a field, not with an index")]
#[case(
    r#"{"op": "Path", "path": "$.inventory.nam"}"#,
    "path: unknown field `nam` of `inventory`; did you mean `name`?"
)]
#[case(
    r#"{"op": "Not", "args": [{"op": "Exists", "path": "$.propagation.helth"}]}"#,
    "args[0].path: unknown field `helth` of `propagation`; did you mean `health`?"
)]
#[case(
    r#"{"op": "Path", "path": "$.propagation['lastGeneration']"}"#,
    "path: unknown field `lastGeneration` of `propagation`; known fields: `found`, `stale`, `health`, `progress`, `observedGeneration`, `lastReturnedUpdateTimestamp`"
)]
#[case(r#"{"op": "Path", "path": "$.inventory.name.foo"}"#, "path: string does not support field selection")]
#[case(r#"{"op": "Path", "path": "$.inventory.labels['example.com/any']"}"#, "valid")]
#[case(r#"{"op": "Path", "path": "$.a", "args": []}"#, "args: unknown field `args`; Path takes path")]
#[case(r#"{"op": "Path", "value": "$.a"}"#, "value: unknown field `value`; Path takes path")]
#[case(r#"{"op": "Literal"}"#, "Literal requires a value")]
#[case(r#"{"op": "Literal", "path": "a"}"#, "path: unknown field `path`; Literal takes value")]
#[case(r#"{"op": "Not", "args": []}"#, "args: Not takes 1 argument, found 0")]
#[case(r#"{"op": "And", "args": []}"#, "args: And requires at least one argument")]
#[case(r#"{"op": "Less", "args": []}"#, "args: Less takes 2 arguments, found 0")]
#[case(
    r#"{"op": "Not", "args": {"op": "Path", "path": "$.a"}}"#,
    "args: Not requires args, a list of operations"
)]
#[case(r#"{"op": "Not"}"#, "args: Not requires args, a list of operations")]
#[case(
    r#"{"op": "Not", "args": [{"op": "Literal", "value": true}, {"op": "Literal", "value": true}]}"#,
    "args: Not takes 1 argument, found 2"
)]
#[case(
    r#"{"op": "Equal", "args": [{"op": "Path", "path": "$.a"}]}"#,
    "args: Equal takes 2 arguments, found 1"
)]
#[case(
    r#"{"op": "Equal", "args": [{"op": "Path", "path": "$.a"}, "x"]}"#,
    "args[1]: an operation must be a map, not a string; write {op: Path, path: $.status.phase}, or use CEL for the whole expression"
)]
#[case(
    r#"{"op": "Equal", "args": [{"op": "Path", "path": "$.a"}, {"op": "Path", "path": "b"}]}"#,
    "args[1].path: `b` must start with $; write $.b"
)]
#[case(
    r#"{"op": "And", "args": [{"op": "Literal", "value": true}, {"op": "Not", "args": [{"op": "Eqaul", "args": []}]}]}"#,
    "args[1].args[0].op: unknown operation `Eqaul`; did you mean Equal?"
)]
#[case(r#"{"op": "Exists", "path": "$.a", "args": []}"#, "Exists takes a path or one argument, not both")]
#[case(r#"{"op": "Exists"}"#, "Exists requires a path; write {op: Exists, path: $.status.phase}")]
#[case(r#"{"op": "Exists", "args": []}"#, "Exists requires a path; write {op: Exists, path: $.status.phase}")]
#[case(
    r#"{"op": "In", "args": [{"op": "Path", "path": "$.a"}, {"op": "Literal", "value": "abc"}]}"#,
    "args[1]: `In` expects list or map, found string"
)]
#[case(
    r#"{"op": "Not", "args": [{"op": "Less", "args": [{"op": "Path", "path": "$.a"}, {"op": "Literal", "value": null}]}]}"#,
    "args[0].args[1]: a comparison with null is never true; write {op: Exists, path: $.status.phase}, or Not with it"
)]
#[case(
    r#"{"op": "Equal", "args": [{"op": "Literal", "value": null}, {"op": "Path", "path": "$.a"}]}"#,
    "args[0]: a comparison with null is never true; write {op: Exists, path: $.status.phase}, or Not with it"
)]
#[case(
    r#"{"op": "In", "args": [{"op": "Path", "path": "$.a"}, {"op": "Literal", "value": null}]}"#,
    "args[1]: a comparison with null is never true; write {op: Exists, path: $.status.phase}, or Not with it"
)]
#[case(
    r#"{"op": "And", "args": [{"op": "Literal", "value": null}]}"#,
    "args[0]: `And` expects bool, found null"
)]
#[case(
    r#"{"op": "Exists", "args": [{"op": "Path", "path": "$.a"}, {"op": "Path", "path": "$.a"}]}"#,
    "args: Exists takes 1 argument, found 2"
)]
#[case(r#"{"op": "Equal", "arguments": []}"#, "arguments: unknown field `arguments`; Equal takes args")]
#[case(r#"{"op": "path", "path": "$.a"}"#, "op: unknown operation `path`; did you mean Path?")]
#[case(r#"{"op": "Path", "Path": "$.a"}"#, "Path: unknown field `Path`; Path takes path")]
fn errors(#[case] tree: &str, #[case] expected: &str) {
    assert_eq!(of_tree(tree), expected);
}

#[test]
fn the_hint_for_a_name_with_dots_has_the_whole_name() {
    let error = of_tree(r#"{"op": "Path", "path": "$.metadata.labels.app.kubernetes.io/name"}"#);
    assert!(error.ends_with("write ['app.kubernetes.io/name']"), "{error}");
}

/// Errors of trees do not mention operators and functions of CEL.
#[rstest]
#[case(r#"{"op": "Less", "args": [{"op": "Literal", "value": "1"}, {"op": "Literal", "value": 1}]}"#, "Less")]
#[case(r#"{"op": "In", "args": [{"op": "Path", "path": "$.a"}, {"op": "Literal", "value": "abc"}]}"#, "In")]
#[case(r#"{"op": "Not", "args": [{"op": "Literal", "value": 1}]}"#, "args[0]: ")]
fn errors_of_trees_do_not_mention_cel(#[case] tree: &str, #[case] expected: &str) {
    let error = of_tree(tree);
    assert!(
        error.contains(expected) && !["==", "<", "(x)", "contains("].iter().any(|cel| error.contains(cel)),
        "{error}"
    );
}
