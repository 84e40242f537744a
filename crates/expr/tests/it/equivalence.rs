//! CEL and trees are equivalent: the same operation has the same value, missing field or error.

use bellwether_expr::{Fuel, Program, Scope, Stop, Val, Variables};
use bellwether_model::Object;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use crate::sample::{object, shown};

/// Values of every type that an object can have. The last one, empty, is missing from the object.
const OPERANDS: [&str; 27] = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "-1",
    "3",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "0.0",
    "1.0",
    "2.5",
    "9007199254740992.0",
    r#""""#,
    r#""a""#,
    r#""b""#,
    r#""1""#,
    r#""größe""#,
    "[]",
    "[1]",
    "[1.0]",
    r#"["a", null]"#,
    "{}",
    r#"{"a": 1}"#,
    r#"{"a": 1.0, "b": []}"#,
    "",
];

/// Binary operations and their operators in CEL.
const OPERATIONS: [(&str, &str); 9] = [
    ("Equal", "=="),
    ("NotEqual", "!="),
    ("Less", "<"),
    ("LessOrEqual", "<="),
    ("Greater", ">"),
    ("GreaterOrEqual", ">="),
    ("In", "in"),
    ("And", "&&"),
    ("Or", "||"),
];

/// An object with the operands in its spec, as `v0`, `v1` and so on.
fn operands() -> String {
    let fields: Vec<_> = OPERANDS
        .iter()
        .enumerate()
        .filter(|(_, json)| !json.is_empty())
        .map(|(number, json)| format!(r#""v{number}": {json}"#))
        .collect();
    format!(r#"{{"spec": {{{}}}}}"#, fields.join(", "))
}

fn row<'a>(obj: &'a Object<'a>) -> Variables<'a> {
    Variables(vec![None, Some(Val::from(obj.fields())), None, None])
}

/// The outcome without the place of an error, which differs between the two languages.
fn outcome(program: &Program, row: &Variables<'_>) -> String {
    match program.evaluate(row, &mut Fuel::default()) {
        Ok(value) => shown(&value),
        Err(Stop::Missing(_)) => "missing".to_owned(),
        Err(Stop::TooExpensive) => "too expensive".to_owned(),
        Err(stop @ Stop::Error(_)) => {
            let error = program.describe(&stop);
            let sentence =
                error.split_once(": ").filter(|(place, _)| is_place(place)).map_or(&*error, |(_, rest)| rest);
            format!("error: {sentence}")
        }
    }
}

fn is_place(text: &str) -> bool {
    text.is_empty() || text.starts_with("line ") || text.starts_with("args[")
}

/// Compares both forms of an expression, and returns their outcome.
#[track_caller]
fn same(cel: &str, tree: &Json, row: &Variables<'_>) -> String {
    match (Program::cel(cel, &Scope::row()), Program::tree(tree, &Scope::row())) {
        (Ok(left), Ok(right)) => {
            let (left, right) = (outcome(&left, row), outcome(&right, row));
            assert_eq!(left, right, "`{cel}` and {tree}");
            left
        }
        // Both are compile errors. Their texts may differ.
        (Err(_), Err(_)) => "mistake".to_owned(),
        (Ok(_), Err(compile_error)) => panic!("`{cel}` is fine, but {tree} is not: {compile_error}"),
        (Err(compile_error), Ok(_)) => panic!("{tree} is fine, but `{cel}` is not: {compile_error}"),
    }
}

fn read(number: usize) -> (String, Json) {
    (format!("obj.spec.v{number}"), json!({"op": "Path", "path": format!("$.spec.v{number}")}))
}

#[test]
fn every_operation_on_every_pair_of_values() {
    let json = operands();
    let obj = object(&json);
    let row = row(&obj);
    let mut seen = std::collections::BTreeMap::<String, usize>::new();
    for left in 0..OPERANDS.len() {
        for right in 0..OPERANDS.len() {
            let ((left_cel, left_tree), (right_cel, right_tree)) = (read(left), read(right));
            for (op, sign) in OPERATIONS {
                let tree = json!({"op": op, "args": [left_tree.clone(), right_tree.clone()]});
                let outcome = same(&format!("{left_cel} {sign} {right_cel}"), &tree, &row);
                *seen.entry(outcome.split(':').next().unwrap_or_default().to_owned()).or_default() += 1;
            }
        }
    }
    // The grid covers every kind of outcome.
    for kind in ["true", "false", "missing", "error"] {
        assert!(seen.get(kind).is_some_and(|times| *times > 100), "{kind}: {seen:?}");
    }
}

/// The same with a literal operand, which allows type checks. `null` is left out: in CEL a comparison with it
/// is a test, in a tree it is SQL's null.
#[test]
fn every_operation_with_every_literal() {
    let json = operands();
    let obj = object(&json);
    let row = row(&obj);
    for left in 0..OPERANDS.len() {
        for literal in OPERANDS.iter().filter(|json| !json.is_empty() && **json != "null") {
            let (cel, tree) = read(left);
            let value: Json = serde_json::from_str(literal).expect("JSON");
            let literal_tree = json!({"op": "Literal", "value": value});
            for (op, sign) in OPERATIONS {
                let ways = [
                    (format!("{cel} {sign} {literal}"), json!({"op": op, "args": [tree, literal_tree]})),
                    (format!("{literal} {sign} {cel}"), json!({"op": op, "args": [literal_tree, tree]})),
                    (
                        format!("{literal} {sign} {literal}"),
                        json!({"op": op, "args": [literal_tree, literal_tree]}),
                    ),
                ];
                for (cel, tree) in ways {
                    same(&cel, &tree, &row);
                }
            }
        }
    }
}

#[test]
fn operations_on_one_value() {
    let json = operands();
    let obj = object(&json);
    let row = row(&obj);
    for number in 0..OPERANDS.len() {
        let (cel, tree) = read(number);
        same(&cel, &tree, &row);
        same(&format!("!{cel}"), &json!({"op": "Not", "args": [tree]}), &row);
        same(&format!("has({cel})"), &json!({"op": "Exists", "path": tree["path"]}), &row);
        same(&format!("{cel} != null"), &json!({"op": "Exists", "args": [tree]}), &row);
        same(&format!("!({cel} == null)"), &json!({"op": "Exists", "args": [tree]}), &row);
    }
}

/// An expression in both forms.
fn both_forms() -> impl Strategy<Value = (String, Json)> {
    let leaf = prop_oneof![
        3 => (0..OPERANDS.len()).prop_map(read),
        1 => prop::sample::select(vec!["true", "false", "1", "2.5", "\"a\"", "[1]"]).prop_map(|literal| {
            let value: Json = serde_json::from_str(literal).expect("JSON");
            (literal.to_owned(), json!({"op": "Literal", "value": value}))
        }),
    ];
    leaf.prop_recursive(5, 40, 4, |inner| {
        let two = (prop::sample::select(OPERATIONS.to_vec()), inner.clone(), inner.clone());
        let several = (any::<bool>(), prop::collection::vec(inner.clone(), 2..5));
        prop_oneof![
            two.prop_map(|((op, sign), (left, left_tree), (right, right_tree))| {
                (format!("({left}) {sign} ({right})"), json!({"op": op, "args": [left_tree, right_tree]}))
            }),
            several.prop_map(|(all, operands)| {
                let (texts, trees): (Vec<_>, Vec<_>) = operands.into_iter().unzip();
                let texts: Vec<_> = texts.iter().map(|text| format!("({text})")).collect();
                let (op, sign) = if all { ("And", " && ") } else { ("Or", " || ") };
                (texts.join(sign), json!({"op": op, "args": trees}))
            }),
            inner.clone().prop_map(|(cel, tree)| (format!("!({cel})"), json!({"op": "Not", "args": [tree]}))),
            inner.prop_map(|(cel, tree)| (
                format!("({cel}) != null"),
                json!({"op": "Exists", "args": [tree]})
            )),
        ]
    })
}

proptest! {
    #[test]
    fn operations_in_each_other((cel, tree) in both_forms()) {
        let json = operands();
        let obj = object(&json);
        same(&cel, &tree, &row(&obj));
    }
}
