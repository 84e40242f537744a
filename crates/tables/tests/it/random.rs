//! Random collectors, rows and events.

use bellwether_api::{Aggregator, CombinedField, Expression, NamedExpression, OrderBy, StatusCollectorSpec};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value as Json, json};

use crate::sample::Variables;

const CLUSTERS: [&str; 6] = ["north", "south", "east", "west", "center", "north-2"];

/// What happens to the row of a cluster.
#[derive(Debug)]
pub(crate) enum Event {
    Upsert(&'static str, Variables),
    Remove(&'static str),
}

/// Filters that are true, false, null or an error for some of the rows.
const FILTERS: [&str; 12] = [
    "propagation.stale",
    "!propagation.stale",
    "returned.status.a != null",
    "has(returned.status.b) || propagation.stale",
    "returned.status.a == returned.status.b",
    "returned.status.a > 1",
    "returned.status.c in ['a', 'b', 1]",
    "!(returned.status.a == obj.spec.x)",
    "returned.status.a",
    "obj.spec.x > 0 && returned.status.c != 'a'",
    "size(returned.status.d) > 0",
    "true",
];

const TREE_FILTERS: [&str; 6] = [
    r#"{"op": "Path", "path": "$.propagation.stale"}"#,
    r#"{"op": "Not", "args": [{"op": "Equal", "args": [{"op": "Path", "path": "$.spec.x"}, {"op": "Path", "path": "$.status.a"}]}]}"#,
    r#"{"op": "Exists", "path": "$.status.b"}"#,
    r#"{"op": "Or", "args": [{"op": "Path", "path": "$.status.a"}, {"op": "Path", "path": "$.propagation.stale"}]}"#,
    r#"{"op": "In", "args": [{"op": "Path", "path": "$.status.c"}, {"op": "Literal", "value": ["a", null, 1]}]}"#,
    r#"{"op": "LessOrEqual", "args": [{"op": "Path", "path": "$.status.a"}, {"op": "Literal", "value": 2}]}"#,
];

/// Expressions with values of every type, and with errors for some of the rows.
const EXPRESSIONS: [&str; 26] = [
    "returned.status.a",
    "returned.status.a",
    "returned.status.b",
    "returned.status.b",
    "returned.status.c",
    "returned.status.d",
    "returned.status",
    "inventory.labels.region",
    "obj.spec.x",
    "returned.status.a + 1",
    "returned.status.a * obj.spec.x",
    "[returned.status.a, returned.status.c]",
    "{'a': returned.status.a, 'c': returned.status.c}",
    "double(obj.spec.x) / 3.0",
    "double(obj.spec.x) / 0.0",
    "0.1",
    "null",
    "18446744073709551615u",
    "returned.status.a == returned.status.b",
    "returned.status.c + 'x'",
    "size(returned.status.d)",
    "timestamp('2026-01-01T00:00:00Z')",
    "quantity('1Gi')",
    "returned.status.?a",
    "propagation.health",
    "has(returned.status.a) ? returned.status.a : returned.status.b",
];

const TREES: [&str; 5] = [
    r#"{"op": "Path", "path": "$.status.a"}"#,
    r#"{"op": "Path", "path": "$.status.d[0]"}"#,
    r#"{"op": "Path", "path": "$"}"#,
    r#"{"op": "Literal", "value": [1.5, {"b": 1, "a": null}]}"#,
    r#"{"op": "Less", "args": [{"op": "Path", "path": "$.status.a"}, {"op": "Path", "path": "$.status.b"}]}"#,
];

/// Values of every type. Many are equal although they are written differently.
const VALUES: [&str; 56] = [
    "null",
    "true",
    "false",
    "0",
    "1",
    "2",
    "3",
    "-1",
    "1.0",
    "-0.0",
    "0.5",
    "0.1",
    "0.2",
    "0.3",
    "-0.1",
    "2.5",
    "0.001953125",
    "1e-9",
    "9007199254740993",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "1e20",
    "1e21",
    "-1e21",
    "1e22",
    "1e300",
    "-1e300",
    "1.7976931348623157e308",
    "-1.7976931348623157e308",
    "5e-324",
    "2.2250738585072014e-308",
    r#""""#,
    r#""a""#,
    r#""b""#,
    r#""A""#,
    r#""1""#,
    r#""1.0""#,
    r#""250Mi""#,
    r#""100m""#,
    r#""-0.5Ki""#,
    r#""1n""#,
    r#""0.12345678901""#,
    r#""1e-30""#,
    r#""1e30""#,
    r#""1e400""#,
    r#""9999E""#,
    r#""2026-01-01T00:00:00Z""#,
    r#""2026-01-01T01:00:00+01:00""#,
    r#""2026-01-01T00:00:00.5Z""#,
    r#""2026-13-01T00:00:00Z""#,
    "[]",
    "[1, null]",
    "[1.0, 2]",
    r#"{"b": 1, "a": [0.1]}"#,
    r#"{"a": [0.1], "b": 1.0}"#,
];

/// Small integers: groups with several rows, and equal sums.
const FEW: [&str; 5] = ["1", "2", "3", "null", "2.0"];

fn json(text: &str) -> Json {
    serde_json::from_str(text).expect(text)
}

fn cel(text: &str) -> Expression {
    Expression::cel(text)
}

fn tree(text: &str) -> Expression {
    Expression(json(text))
}

fn filter() -> impl Strategy<Value = Expression> {
    prop_oneof![select(&FILTERS[..]).prop_map(cel), select(&TREE_FILTERS[..]).prop_map(tree)]
}

fn expression() -> impl Strategy<Value = Expression> {
    prop_oneof![
        3 => select(&EXPRESSIONS[..4]).prop_map(cel),
        4 => select(&EXPRESSIONS[..]).prop_map(cel),
        1 => select(&TREES[..]).prop_map(tree),
    ]
}

fn function() -> impl Strategy<Value = Aggregator> {
    use Aggregator::{Avg, Count, Max, Min, Sum};
    select(vec![Count, Sum, Avg, Min, Max])
}

fn named(prefix: &'static str) -> impl Fn(Vec<Expression>) -> Vec<NamedExpression> {
    move |expressions| {
        let columns = expressions.into_iter().enumerate();
        columns
            .map(|(index, def)| NamedExpression { name: format!("{prefix}{index}"), def: Some(def) })
            .collect()
    }
}

/// Whether the collector refuses to add the values.
fn never_a_number(source: &Expression) -> bool {
    match &source.0 {
        Json::String(text) => {
            text.starts_with(['[', '{']) || text.starts_with("timestamp") || text.contains("==")
        }
        tree => tree["op"] != "Path" || tree["path"] == "$",
    }
}

fn combined() -> impl Strategy<Value = Vec<CombinedField>> {
    let adds = |function| matches!(function, Aggregator::Sum | Aggregator::Avg);
    vec((function(), option::weighted(0.9, expression())), 0..5).prop_map(move |fields| {
        let fields = fields.into_iter().enumerate().map(|(index, (type_, subject))| {
            let default = (type_ != Aggregator::Count).then(|| cel("returned.status.a"));
            let is_left_out = |source: &Expression| adds(type_) && never_a_number(source);
            let subject = subject.filter(|source| !is_left_out(source)).or(default);
            CombinedField { name: format!("field{index}"), type_, subject }
        });
        fields.collect()
    })
}

pub(crate) fn spec() -> impl Strategy<Value = StatusCollectorSpec> {
    let aggregate = (vec(expression(), 0..3).prop_map(named("key")), combined())
        .prop_filter("a collector needs a column", |(keys, fields)| keys.len() + fields.len() > 0);
    let columns = prop_oneof![
        1 => vec(expression(), 1..4).prop_map(named("column")).prop_map(|select| (select, vec![], vec![])),
        3 => aggregate.prop_map(|(keys, fields)| (vec![], keys, fields)),
    ];
    let limit = prop_oneof![1_i64..4, Just(20)];
    let order = vec((any::<prop::sample::Index>(), any::<bool>()), 0..3);
    (option::of(filter()), columns, order, limit).prop_map(|(filter, columns, order, limit)| {
        let (select, group_by, combined_fields) = columns;
        let names = select.iter().chain(&group_by).map(|column: &NamedExpression| column.name.clone());
        let names: Vec<_> =
            names.chain(combined_fields.iter().map(|field: &CombinedField| field.name.clone())).collect();
        let mut order_by: Vec<OrderBy> = Vec::new();
        for (index, descending) in order {
            let column = index.get(&names).clone();
            if order_by.iter().all(|own| own.column != column) {
                order_by.push(OrderBy { column, descending });
            }
        }
        StatusCollectorSpec { filter, group_by, combined_fields, select, order_by, limit }
    })
}

/// A row with values from a list.
fn row(values: &'static [&'static str]) -> impl Strategy<Value = Variables> {
    let value = || option::weighted(0.85, select(values).prop_map(json));
    let status = (value(), value(), value(), value());
    let status = option::weighted(0.9, status).prop_map(|status| {
        status.map_or(Json::Null, |(a, b, c, d)| {
            let fields = [("a", a), ("b", b), ("c", c), ("d", d)];
            let fields = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            Json::Object(fields.collect())
        })
    });
    (status, value(), select(vec!["eu", "us"]), any::<bool>()).prop_map(|(status, x, region, stale)| {
        Variables::new(&json!({
            "inventory": {"name": "the cluster", "labels": {"region": region}},
            "obj": {"kind": "Widget", "spec": x.map_or_else(|| json!({}), |x| json!({"x": x}))},
            "returned": {"status": status},
            "propagation": {"stale": stale, "health": if stale { "Unknown" } else { "Ready" }},
        }))
    })
}

pub(crate) fn events() -> impl Strategy<Value = Vec<Event>> {
    prop_oneof![Just(&FEW[..]), Just(&VALUES[..]), Just(&VALUES[..32]), Just(&VALUES[2..10])].prop_flat_map(
        |values| {
            let cluster = || select(&CLUSTERS[..]);
            let upsert = (cluster(), row(values)).prop_map(|(cluster, row)| Event::Upsert(cluster, row));
            vec(prop_oneof![4 => upsert, 1 => cluster().prop_map(Event::Remove)], 1..14)
        },
    )
}
