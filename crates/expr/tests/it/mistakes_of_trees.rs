//! What a person reads who made a slip in a tree: the place is exact, down to the argument and its field.

use bellwether_expr::{Program, Scope};
use rstest::rstest;

use crate::mistakes::told;

fn of_tree(tree: &str) -> String {
    told(Program::tree(&serde_json::from_str(tree).expect("JSON"), &Scope::row()))
}

#[rstest]
#[case(
    r#""status.phase == 'Up'""#,
    "an operation is a map, not text; write {op: Path, path: $.status.phase}, or CEL for the whole expression"
)]
#[case(
    "[]",
    "an operation is a map, not a list; write {op: Path, path: $.status.phase}, or CEL for the whole expression"
)]
#[case(
    "5",
    "an operation is a map, not a number; write {op: Path, path: $.status.phase}, or CEL for the whole expression"
)]
#[case(
    "{}",
    "the operation has no op; there is Path, Literal, Not, And, Or, Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual, In, Exists"
)]
#[case(
    r#"{"path": "$.a"}"#,
    "the operation has no op; there is Path, Literal, Not, And, Or, Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual, In, Exists"
)]
#[case(r#"{"op": 5}"#, "op: op is a word, not a number")]
#[case(r#"{"op": "equal", "args": []}"#, "op: there is no operation `equal`; did you mean Equal?")]
#[case(r#"{"op": "Eq", "args": []}"#, "op: there is no operation `Eq`; did you mean Equal?")]
#[case(r#"{"op": "==", "args": []}"#, "op: there is no operation `==`; did you mean Equal?")]
#[case(r#"{"op": "Equals", "args": []}"#, "op: there is no operation `Equals`; did you mean Equal?")]
#[case(r#"{"op": "EqualTo", "args": []}"#, "op: there is no operation `EqualTo`; did you mean Equal?")]
#[case(
    r#"{"op": "Contains", "args": []}"#,
    "op: there is no operation `Contains`; there is Path, Literal, Not, And, Or, Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual, In, Exists"
)]
#[case(r#"{"op": "Path"}"#, "path: a path is text; write path: $.status.phase")]
#[case(r#"{"op": "Path", "path": 5}"#, "path: a path is text; write path: $.status.phase")]
#[case(
    r#"{"op": "Path", "path": "status.phase"}"#,
    "path: the path `status.phase` does not begin with $; write $.status.phase"
)]
#[case(r#"{"op": "Path", "path": "$.a..b"}"#, "path: a field without a name in the path `$.a..b`")]
#[case(
    r#"{"op": "Path", "path": "$.a[*]"}"#,
    "path: `[*]` in the path `$.a[*]`; a path goes by fields and by entries that are numbered: $.a['b/c'][0]"
)]
#[case(r#"{"op": "Path", "path": "$[0]"}"#, "path: an object has fields, not numbered entries")]
#[case(r#"{"op": "Path", "path": "$.a", "args": []}"#, "args: Path has no `args`; Path takes path")]
#[case(r#"{"op": "Path", "value": "$.a"}"#, "value: Path has no `value`; Path takes path")]
#[case(r#"{"op": "Literal"}"#, "a Literal has a value")]
#[case(r#"{"op": "Literal", "path": "a"}"#, "path: Literal has no `path`; Literal takes value")]
#[case(r#"{"op": "Not", "args": []}"#, "args: Not takes at least one argument")]
#[case(
    r#"{"op": "Not", "args": {"op": "Path", "path": "$.a"}}"#,
    "args: Not takes args, a list of operations"
)]
#[case(r#"{"op": "Not"}"#, "args: Not takes args, a list of operations")]
#[case(
    r#"{"op": "Not", "args": [{"op": "Literal", "value": true}, {"op": "Literal", "value": true}]}"#,
    "args: Not takes 1 argument, not 2"
)]
#[case(r#"{"op": "Equal", "args": [{"op": "Path", "path": "$.a"}]}"#, "args: Equal takes 2 arguments, not 1")]
#[case(
    r#"{"op": "Equal", "args": [{"op": "Path", "path": "$.a"}, "x"]}"#,
    "args[1]: an operation is a map, not text; write {op: Path, path: $.status.phase}, or CEL for the whole expression"
)]
#[case(
    r#"{"op": "Equal", "args": [{"op": "Path", "path": "$.a"}, {"op": "Path", "path": "b"}]}"#,
    "args[1].path: the path `b` does not begin with $; write $.b"
)]
#[case(
    r#"{"op": "And", "args": [{"op": "Literal", "value": true}, {"op": "Not", "args": [{"op": "Eqaul", "args": []}]}]}"#,
    "args[1].args[0].op: there is no operation `Eqaul`; did you mean Equal?"
)]
#[case(r#"{"op": "Exists", "path": "$.a", "args": []}"#, "Exists takes a path or one argument, not both")]
#[case(
    r#"{"op": "Exists", "args": [{"op": "Path", "path": "$.a"}, {"op": "Path", "path": "$.a"}]}"#,
    "args: Exists takes 1 argument, not 2"
)]
#[case(r#"{"op": "Equal", "arguments": []}"#, "arguments: Equal has no `arguments`; Equal takes args")]
#[case(r#"{"op": "path", "path": "$.a"}"#, "op: there is no operation `path`; did you mean Path?")]
#[case(r#"{"op": "Path", "Path": "$.a"}"#, "Path: Path has no `Path`; Path takes path")]
fn slips(#[case] tree: &str, #[case] expected: &str) {
    assert_eq!(of_tree(tree), expected);
}

#[test]
fn the_hint_for_a_name_with_dots_has_the_whole_name() {
    let told = of_tree(r#"{"op": "Path", "path": "$.metadata.labels.app.kubernetes.io/name"}"#);
    assert!(told.ends_with("write ['app.kubernetes.io/name']"), "{told}");
}

/// Who writes trees is not told about the signs and functions of CEL.
#[rstest]
#[case(r#"{"op": "Less", "args": [{"op": "Literal", "value": "1"}, {"op": "Literal", "value": 1}]}"#, "Less")]
#[case(r#"{"op": "In", "args": [{"op": "Path", "path": "$.a"}, {"op": "Literal", "value": "abc"}]}"#, "In")]
#[case(r#"{"op": "Not", "args": [{"op": "Literal", "value": 1}]}"#, "args[0]: ")]
fn trees_are_answered_in_words_of_trees(#[case] tree: &str, #[case] expected: &str) {
    let told = of_tree(tree);
    assert!(
        told.contains(expected) && !["==", "<", "(x)", "contains("].iter().any(|cel| told.contains(cel)),
        "{told}"
    );
}
