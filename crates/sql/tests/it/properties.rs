//! Any text is a statement or an error; every statement is a collector.

use std::fmt::Write as _;

use bellwether_expr::{Program, Scope};
use bellwether_sql::translate;
use proptest::{collection::vec, prelude::*, sample::select};

/// Parts of statements, and what is near to them.
const WORDS: &[&str] = &[
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "LIMIT",
    "OFFSET",
    "AND",
    "OR",
    "NOT",
    "IS NULL",
    "IS NOT NULL",
    "IN",
    "(",
    ")",
    ",",
    "*",
    "=",
    "<>",
    "<",
    ">=",
    "+",
    "-",
    "/",
    "LIKE",
    "BETWEEN",
    "AS",
    "DESC",
    "DISTINCT",
    "COUNT(*)",
    "SUM(",
    "COALESCE(",
    "CASE",
    "status.phase",
    "inventory.name",
    "propagation.stale",
    "spec.replicas",
    "$.status.x",
    "$",
    "metadata.labels['a/b']",
    "x",
    "1",
    "2.5",
    "0",
    "'text'",
    "'%a_'",
    "\"q\"",
    "NULL",
    "TRUE",
    "deployments/web-0",
    "pods",
    ";",
    "--",
    "é",
    "\n",
    "[",
    "]",
    ".",
    "'",
];

fn words() -> impl Strategy<Value = String> {
    vec(select(WORDS), 0..24).prop_map(|words| words.join(" "))
}

/// With the clauses in their order, so that many are valid.
fn statement() -> impl Strategy<Value = String> {
    let expression = || vec(select(&WORDS[7..]), 1..5).prop_map(|words| words.join(" "));
    let path = || {
        select(
            &["status.phase", "inventory.name", "spec.replicas", "COUNT(*)", "SUM(status.x)", "1", "*"][..],
        )
    };
    (vec(path(), 1..4), expression(), vec(path(), 0..3), any::<[bool; 3]>()).prop_map(
        |(columns, condition, groups, [has_where, has_groups, has_order])| {
            let mut text = format!("SELECT {} FROM pods", columns.join(", "));
            if has_where {
                let _ = write!(text, " WHERE {condition}");
            }
            if has_groups && !groups.is_empty() {
                let _ = write!(text, " GROUP BY {}", groups.join(", "));
            }
            if has_order {
                let _ = write!(text, " ORDER BY {}", columns.join(", "));
            }
            text
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_text_makes_it_panic(text in prop_oneof![words(), "\\PC{0,60}", statement()]) {
        let Ok(translated) = translate(&text) else { return Ok(()) };
        let spec = &translated.spec;
        let columns = spec.select.iter().chain(&spec.group_by).map(|column| &column.name);
        let names: Vec<_> = columns.chain(spec.combined_fields.iter().map(|field| &field.name)).collect();
        // Columns are unique, and those of SELECT are among them.
        for (index, name) in names.iter().enumerate() {
            prop_assert!(!names[..index].contains(name), "{text}: {name}");
        }
        for column in &translated.columns {
            prop_assert!(names.contains(&column), "{text}: {column}");
        }
        prop_assert!(spec.select.is_empty() || names.len() == spec.select.len(), "{text}");
        // Each expression is in the syntax of CEL, whatever its types.
        let expressions = spec.select.iter().chain(&spec.group_by).filter_map(|column| column.def.as_ref());
        let subjects = spec.combined_fields.iter().filter_map(|field| field.subject.as_ref());
        for expression in expressions.chain(subjects).chain(&spec.filter) {
            let cel = expression.0.as_str().unwrap_or_default();
            if let Err(error) = Program::cel(cel, &Scope::row()) {
                let error = error.to_string();
                prop_assert!(!error.contains("expected"), "{text}: {cel}: {error}");
            }
        }
    }
}
