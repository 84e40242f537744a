//! Trees of operations, on a row and on an object.

use bellwether_expr::{Absence, Program, Scope};
use rstest::rstest;
use serde_json::{Value as Json, json};

use crate::sample::{WIDGET, object, of_row, result};

fn path(path: &str) -> Json {
    json!({"op": "Path", "path": path})
}

fn literal(value: impl Into<Json>) -> Json {
    json!({"op": "Literal", "value": value.into()})
}

fn op(op: &str, args: impl IntoIterator<Item = Json>) -> Json {
    json!({"op": op, "args": args.into_iter().collect::<Vec<_>>()})
}

#[track_caller]
fn gives(tree: &Json, expected: &str) {
    let program =
        Program::tree(tree, &Scope::row()).unwrap_or_else(|compile_error| panic!("{tree}: {compile_error}"));
    let given = of_row(&program);
    let given = if given.starts_with("missing") { "missing".to_owned() } else { given };
    assert_eq!(given, expected, "{tree}");
}

/// `$` is the object of the hub with the status that the cluster reported.
#[rstest]
#[case("$.spec.replicas", "3")]
#[case("$.metadata.name", r#""web""#)]
#[case("$.kind", r#""Deployment""#)]
#[case("$.status.phase", r#""Up""#)]
#[case("$['status']['phase']", r#""Up""#)]
#[case("$.status", r#"{"phase": "Up", "availableReplicas": 2}"#)]
#[case("$.inventory.name", r#""north""#)]
#[case("$.inventory.labels.region", r#""eu""#)]
#[case("$.inventory.annotations", "{}")]
#[case("$.propagation.stale", "false")]
#[case("$.propagation.observedGeneration", "missing")]
#[case("$.status.absent.deeper", "missing")]
#[case("$.absent", "missing")]
#[case("$.obj", "missing")]
#[case("$.returned", "missing")]
#[case("$.kind.deeper", "error: cannot read field `deeper`: obj.kind is not a map")]
fn paths(#[case] from: &str, #[case] expected: &str) {
    gives(&path(from), expected);
}

#[test]
fn the_whole_row_as_one_object() {
    gives(
        &path("$"),
        concat!(
            r#"{"kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": 3}, "#,
            r#""status": {"phase": "Up", "availableReplicas": 2}, "#,
            r#""inventory": {"name": "north", "uid": "u-1", "labels": {"region": "eu"}, "annotations": {}}, "#,
            r#""propagation": {"found": true, "stale": false, "health": "Ready", "observedGeneration": null}}"#,
        ),
    );
}

/// In the scope of one object, `$` is that object.
#[rstest]
#[case("$.status.phase", r#""Up""#)]
#[case("$.spec.sizes[1]", "1")]
#[case("$.metadata.labels['app.kubernetes.io/name']", r#""wheel""#)]
#[case("$.inventory.name", "missing: no such attribute(s): inventory.name")]
fn paths_of_an_object(#[case] from: &str, #[case] expected: &str) {
    let widget = object(WIDGET);
    let program = Program::tree(&path(from), &Scope::object(Absence::NotYet)).expect("a tree");
    assert_eq!(result(&program, &widget), expected);
    let whole = Program::tree(&path("$"), &Scope::object(Absence::NotYet)).expect("a tree");
    assert!(result(&whole, &widget).starts_with(r#"{"apiVersion": "acme.io/v1""#));
}

#[rstest]
#[case(json!("a"), r#""a""#)]
#[case(json!(3), "3")]
#[case(json!(3.5), "3.5")]
#[case(json!(3.0), "3.0")]
#[case(json!(true), "true")]
#[case(json!(["a", 1, null]), r#"["a", 1, null]"#)]
#[case(json!({"a": {"b": []}}), r#"{"a": {"b": []}}"#)]
#[case(json!(null), "missing")]
#[case(json!(9_223_372_036_854_775_807_i64), "9223372036854775807")]
#[case(json!(18_446_744_073_709_551_615_u64), "1.8446744073709552e19")]
fn literals(#[case] value: Json, #[case] expected: &str) {
    gives(&literal(value), expected);
}

#[rstest]
#[case("Equal", "3", "true")]
#[case("Equal", "3.0", "true")]
#[case("Equal", "4", "false")]
#[case("NotEqual", "3", "false")]
#[case("NotEqual", "4", "true")]
#[case("Less", "4", "true")]
#[case("Less", "3", "false")]
#[case("LessOrEqual", "3", "true")]
#[case("LessOrEqual", "2.5", "false")]
#[case("Greater", "2", "true")]
#[case("Greater", "3", "false")]
#[case("GreaterOrEqual", "3", "true")]
#[case("GreaterOrEqual", "4", "false")]
#[case("In", "[1, 2, 3]", "true")]
#[case("In", "[1, 2]", "false")]
#[case("In", "[]", "false")]
#[case("In", r#"{"three": 3}"#, "false")]
fn comparing_three_replicas(#[case] name: &str, #[case] with: &str, #[case] expected: &str) {
    let with: Json = serde_json::from_str(with).expect("JSON");
    gives(&op(name, [path("$.spec.replicas"), literal(with)]), expected);
}

#[rstest]
#[case("Equal", "$.status.phase", "$.spec.replicas", "false")]
#[case("Less", "$.status.phase", "$.spec.replicas", "error: cannot order string and int")]
#[case("Equal", "$.status", "$.status", "true")]
#[case("Equal", "$.status.absent", "$.status.absent", "missing")]
#[case("NotEqual", "$.status.absent", "$.spec.replicas", "missing")]
#[case("In", "$.status.absent", "$.status", "missing")]
#[case("In", "$.status.phase", "$.spec.replicas", "error: no such overload: in(string, int)")]
fn comparing_paths(#[case] name: &str, #[case] left: &str, #[case] right: &str, #[case] expected: &str) {
    gives(&op(name, [path(left), path(right)]), expected);
}

#[test]
fn a_key_of_a_map_is_in_it() {
    gives(&op("In", [literal("region"), path("$.inventory.labels")]), "true");
    gives(&op("In", [literal("zone"), path("$.inventory.labels")]), "false");
}

#[rstest]
#[case("$.spec.replicas", "true")]
#[case("$.status.absent", "false")]
#[case("$.absent.deeper", "false")]
#[case("$.propagation.observedGeneration", "false")]
#[case("$.inventory.annotations", "true")]
#[case("$.propagation.stale", "true")]
fn exists(#[case] at: &str, #[case] expected: &str) {
    gives(&json!({"op": "Exists", "path": at}), expected);
    gives(&op("Exists", [path(at)]), expected);
}

#[test]
fn exists_on_a_comparison() {
    gives(&op("Exists", [op("Equal", [path("$.status.absent"), literal(1)])]), "false");
    gives(&op("Exists", [op("Equal", [path("$.spec.replicas"), literal(1)])]), "true");
    gives(&op("Exists", [literal(Json::Null)]), "false");
}

/// Three-valued logic, for two and three operands.
#[test]
fn three_valued_logic() {
    let truths = [
        (path("$.propagation.found"), Some(true)),
        (path("$.propagation.stale"), Some(false)),
        (path("$.propagation.observedGeneration"), None),
        (literal(true), Some(true)),
    ];
    let shown = |truth: Option<bool>| truth.map_or("missing", |truth| if truth { "true" } else { "false" });
    let and = |values: &[Option<bool>]| {
        if values.contains(&Some(false)) {
            Some(false)
        } else {
            values.iter().all(Option::is_some).then_some(true)
        }
    };
    let or = |values: &[Option<bool>]| {
        if values.contains(&Some(true)) {
            Some(true)
        } else {
            values.iter().all(Option::is_some).then_some(false)
        }
    };
    for (one, a) in &truths {
        gives(&op("Not", [one.clone()]), shown(a.map(|a| !a)));
        gives(&op("And", [one.clone()]), shown(*a));
        gives(&op("Or", [one.clone()]), shown(*a));
        for (two, b) in &truths {
            for (three, c) in &truths {
                let (args, values) = ([one.clone(), two.clone(), three.clone()], [*a, *b, *c]);
                gives(&op("And", args.clone()), shown(and(&values)));
                gives(&op("Or", args), shown(or(&values)));
            }
        }
    }
}

/// A decisive operand wins over the others, and an error over a missing field.
#[rstest]
#[case("And", "$.propagation.stale", "false")]
#[case("And", "$.propagation.found", "error: args[0]: no such overload: &&(string)")]
#[case("And", "$.propagation.progress", "error: args[0]: no such overload: &&(string)")]
#[case("Or", "$.propagation.found", "true")]
#[case("Or", "$.propagation.stale", "error: args[0]: no such overload: ||(string)")]
#[case("Or", "$.propagation.progress", "error: args[0]: no such overload: ||(string)")]
fn string_operands(#[case] name: &str, #[case] beside: &str, #[case] expected: &str) {
    gives(&op(name, [path("$.status.phase"), path(beside)]), expected);
}

#[test]
fn an_error_has_a_place_in_the_tree() {
    let wrong = op("Not", [path("$.status.phase")]);
    let tree = op("And", [literal(true), op("Or", [literal(false), wrong])]);
    gives(&tree, "error: args[1].args[1]: no such overload: !(string)");
}

/// The collectors of the documentation.
#[test]
fn the_usual_collectors() {
    // The clusters that have not reported lately.
    gives(&path("$.propagation.stale"), "false");
    gives(&path("$.inventory.name"), r#""north""#);
    // The number of Pods by phase.
    gives(&path("$.status.phase"), r#""Up""#);
    // The number of clusters by available replicas.
    gives(&path("$.status.availableReplicas"), "2");
    // The clusters where a Deployment has too few replicas.
    let lacking = op("Not", [op("Equal", [path("$.spec.replicas"), path("$.status.availableReplicas")])]);
    gives(&lacking, "true");
    // The whole reported status.
    gives(&path("$.status"), r#"{"phase": "Up", "availableReplicas": 2}"#);
}

#[test]
fn paths_of_a_tree() {
    let tree = op("Equal", [path("$.spec.replicas"), path("$.status.availableReplicas")]);
    let tree =
        op("And", [tree, path("$.propagation.found"), op("Equal", [path("$.spec.replicas"), literal(3)])]);
    let program = Program::tree(&tree, &Scope::row()).expect("a tree");
    let read: Vec<_> = program.paths().iter().map(|path| (path.root(), path.to_string())).collect();
    let expected =
        [(1, "obj.spec.replicas"), (2, "returned.status.availableReplicas"), (3, "propagation.found")];
    assert_eq!(read, expected.map(|(root, path)| (root, path.to_owned())));
}
