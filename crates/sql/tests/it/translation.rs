//! What statements mean.

use bellwether_api::{Aggregator, Expression, StatusCollectorSpec};
use bellwether_expr::{Program, Scope};
use bellwether_sql::{From, Statement, is_statement, translate};
use rstest::rstest;

fn text(expression: &Expression) -> &str {
    expression.0.as_str().unwrap_or("not CEL")
}

/// A collector in one line: `filter | select or groupBy; combinedFields | orderBy`.
fn shown(spec: &StatusCollectorSpec) -> String {
    let columns = |columns: &[bellwether_api::NamedExpression]| {
        let column = |column: &bellwether_api::NamedExpression| {
            format!("{}: {}", column.name, column.def.as_ref().map_or("none", text))
        };
        columns.iter().map(column).collect::<Vec<_>>().join(", ")
    };
    let combined: Vec<_> = spec
        .combined_fields
        .iter()
        .map(|field| {
            let function = match field.type_ {
                Aggregator::Count => "COUNT",
                Aggregator::Sum => "SUM",
                Aggregator::Avg => "AVG",
                Aggregator::Min => "MIN",
                Aggregator::Max => "MAX",
            };
            format!("{}: {function}({})", field.name, field.subject.as_ref().map_or("", text))
        })
        .collect();
    let order: Vec<_> = spec
        .order_by
        .iter()
        .map(|order| format!("{}{}", order.column, if order.descending { " descending" } else { "" }))
        .collect();
    let parts = [
        ("filter", spec.filter.as_ref().map_or(String::new(), |filter| text(filter).to_owned())),
        ("select", columns(&spec.select)),
        ("groupBy", columns(&spec.group_by)),
        ("combinedFields", combined.join(", ")),
        ("orderBy", order.join(", ")),
    ];
    let parts = parts.iter().filter(|(_, text)| !text.is_empty());
    parts.map(|(name, text)| format!("{name} {text}")).collect::<Vec<_>>().join(" | ")
}

#[track_caller]
#[expect(clippy::panic, reason = "the failure of a test")]
fn translated(sql: &str) -> Statement {
    translate(sql).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// Every expression compiles.
#[track_caller]
#[expect(clippy::panic, reason = "the failure of a test")]
fn check(spec: &StatusCollectorSpec) {
    let columns = spec.select.iter().chain(&spec.group_by).filter_map(|column| column.def.as_ref());
    let subjects = spec.combined_fields.iter().filter_map(|field| field.subject.as_ref());
    for expression in columns.chain(subjects).chain(&spec.filter) {
        if let Err(error) = Program::cel(text(expression), &Scope::row()) {
            panic!("{}: {error}", text(expression));
        }
    }
}

#[rstest]
#[case::columns(
    "SELECT inventory.name, returned.status.phase FROM pods",
    "select name: inventory.name, phase: returned.status.phase"
)]
#[case::shorthand(
    "SELECT metadata.name, spec.replicas, status.replicas, kind FROM deployments",
    "select name: obj.metadata.name, replicas: obj.spec.replicas, replicas_2: returned.status.replicas, kind: obj.kind"
)]
#[case::of_the_seed(
    "SELECT $.inventory.name AS wec, $.status, $.spec.replicas, $.propagation.stale, $.data.x FROM a",
    "select wec: inventory.name, status: returned.status, replicas: obj.spec.replicas, stale: propagation.stale, x: obj.data.x"
)]
#[case::odd_fields(
    "SELECT metadata.labels['app.kubernetes.io/name'], obj.metadata.labels.\"a b\", metadata.namespace, status.conditions[0].type FROM a",
    "select name: obj.metadata.labels['app.kubernetes.io/name'], column2: obj.metadata.labels['a b'], namespace: obj.metadata.namespace, type: returned.status.conditions[0].type"
)]
#[case::keywords_as_fields(
    "SELECT spec.limit, spec.group, status.end, spec.in FROM a",
    "select limit: obj.spec.limit, group: obj.spec.group, end: returned.status.end, in: obj.spec['in']"
)]
#[case::everything(
    "SELECT * FROM a",
    "select cluster: inventory.name, namespace: obj.metadata.namespace, name: obj.metadata.name, health: propagation.health, progress: propagation.progress, stale: propagation.stale, status: returned.status"
)]
#[case::histogram(
    "SELECT status.phase, COUNT(*) FROM pods GROUP BY status.phase",
    "groupBy phase: returned.status.phase | combinedFields count: COUNT()"
)]
#[case::by_alias(
    "SELECT returned.status.availableReplicas AS available, COUNT(*) FROM deployments/web GROUP BY available",
    "groupBy available: returned.status.availableReplicas | combinedFields count: COUNT()"
)]
#[case::by_number(
    "select status.phase, count(*) from pods group by 1 order by 2 desc, 1",
    "groupBy phase: returned.status.phase | combinedFields count: COUNT() | orderBy count descending, phase"
)]
#[case::all_aggregates(
    "SELECT COUNT(status.x), SUM(status.x) AS total, AVG(status.x), MIN(status.x), MAX(status.x), COUNT(*) FROM a",
    "combinedFields count: COUNT(returned.status.x), total: SUM(returned.status.x), avg: AVG(returned.status.x), min: MIN(returned.status.x), max: MAX(returned.status.x), count_2: COUNT()"
)]
#[case::hidden_group(
    "SELECT COUNT(*) FROM a GROUP BY status.phase, inventory.labels['region']",
    "groupBy phase: returned.status.phase, region: inventory.labels.region | combinedFields count: COUNT()"
)]
#[case::hidden_order(
    "SELECT inventory.name FROM a ORDER BY status.replicas DESC",
    "select name: inventory.name, replicas: returned.status.replicas | orderBy replicas descending"
)]
#[case::order_by_an_aggregate(
    "SELECT status.phase FROM a GROUP BY status.phase ORDER BY COUNT(*) DESC",
    "groupBy phase: returned.status.phase | combinedFields count: COUNT() | orderBy count descending"
)]
#[case::order_of_nulls(
    "SELECT kind FROM a ORDER BY kind ASC NULLS FIRST, spec.x DESC NULLS LAST",
    "select kind: obj.kind, x: obj.spec.x | orderBy kind, x descending"
)]
#[case::distinct("SELECT DISTINCT status.phase FROM a", "groupBy phase: returned.status.phase")]
fn columns_and_clauses(#[case] sql: &str, #[case] expected: &str) {
    let statement = translated(sql);
    assert_eq!(shown(&statement.spec), expected);
    check(&statement.spec);
}

#[rstest]
#[case("status.phase = 'Running'", "returned.status.phase == 'Running'")]
#[case("status.phase <> 'it''s'", r"returned.status.phase != 'it\'s'")]
#[case("propagation.stale", "propagation.stale")]
#[case("NOT propagation.stale", "!propagation.stale")]
#[case("NOT status.a = status.b", "!(returned.status.a == returned.status.b)")]
#[case(
    "status.a < 1 AND status.b >= -2 OR status.c",
    "returned.status.a < 1 && returned.status.b >= -2 || returned.status.c"
)]
#[case(
    "status.a AND (status.b OR status.c)",
    "returned.status.a && (returned.status.b || returned.status.c)"
)]
#[case("(status.a = status.b) = status.c", "(returned.status.a == returned.status.b) == returned.status.c")]
#[case("status.a IS NULL", "returned.status.a == null")]
#[case("status.a IS NOT NULL", "returned.status.a != null")]
#[case("(status.a > 1) IS NULL", "(returned.status.a > 1) == null")]
#[case("status.a IS TRUE", "returned.status.a != null && returned.status.a == true")]
#[case("status.a IS NOT FALSE", "!(returned.status.a != null && returned.status.a == false)")]
#[case("status.phase IN ('a', 'b')", "returned.status.phase in ['a', 'b']")]
#[case("status.phase NOT IN ('a')", "!(returned.status.phase in ['a'])")]
#[case("status.a BETWEEN 1 AND 2.5", "returned.status.a >= 1 && returned.status.a <= 2.5")]
#[case("status.a NOT BETWEEN 1 AND 2", "!(returned.status.a >= 1 && returned.status.a <= 2)")]
#[case("inventory.name LIKE 'eu-%'", "inventory.name.startsWith('eu-')")]
#[case("inventory.name LIKE '%-1'", "inventory.name.endsWith('-1')")]
#[case("inventory.name NOT LIKE '%a%'", "!inventory.name.contains('a')")]
#[case("inventory.name LIKE 'a'", "inventory.name == 'a'")]
#[case("inventory.name LIKE 'e_-%.x'", r"inventory.name.matches('(?s)^e.\\-.*\\.x$')")]
#[case("inventory.name ILIKE 'EU-%'", r"inventory.name.matches('(?is)^EU\\-.*$')")]
#[case(
    "spec.replicas - status.replicas > 2 * (1 + 1)",
    "obj.spec.replicas - returned.status.replicas > 2 * (1 + 1)"
)]
#[case::integer_beside_a_double(
    "spec.replicas * 1.5 - 1 > -7.0 / (2 + spec.replicas)",
    "double(obj.spec.replicas) * 1.5 - 1.0 > -7.0 / double(2 + obj.spec.replicas)"
)]
#[case("status.a - (status.b - 1) = 0", "returned.status.a - (returned.status.b - 1) == 0")]
#[case(
    "COALESCE(status.a, status.b, 0) < 1",
    "(returned.status.a != null ? returned.status.a : returned.status.b != null ? returned.status.b : 0) < 1"
)]
#[case("LOWER(status.phase) = 'x'", "returned.status.phase.lowerAscii() == 'x'")]
#[case("LENGTH(status.conditions) > 1", "size(returned.status.conditions) > 1")]
#[case("TRUE", "true")]
fn conditions(#[case] sql: &str, #[case] expected: &str) {
    let statement = translated(&format!("SELECT inventory.name FROM a WHERE {sql}"));
    assert_eq!(statement.spec.filter.as_ref().map(text), Some(expected));
    check(&statement.spec);
}

#[rstest]
#[case("SELECT 1 FROM deployments", "deployments", None)]
#[case("SELECT 1 FROM deployments.apps/web-0 WHERE 1 = 1", "deployments.apps", Some("web-0"))]
#[case("SELECT 1 from  pods/a--b\nWHERE 1 = 1", "pods", Some("a--b"))]
#[case("SELECT 1 FROM \"deployments/web\";", "deployments", Some("web"))]
#[case("SELECT 1 FROM clusterroles/system:node", "clusterroles", Some("system:node"))]
fn objects(#[case] sql: &str, #[case] kind: &str, #[case] name: Option<&str>) {
    let expected = From { kind: kind.to_owned(), name: name.map(str::to_owned) };
    assert_eq!(translated(sql).from, Some(expected));
}

#[test]
fn columns_are_in_the_order_of_select() {
    let statement = translated("SELECT COUNT(*), status.phase AS p FROM a GROUP BY p, inventory.name");
    assert_eq!(statement.columns, ["count", "p"]);
    assert_eq!(
        shown(&statement.spec),
        "groupBy p: returned.status.phase, name: inventory.name | combinedFields count: COUNT()"
    );
}

#[rstest]
#[case("", None, 0, 1000)]
#[case("LIMIT 5", Some(5), 0, 5)]
#[case("LIMIT 5 OFFSET 10", Some(5), 10, 5)]
#[case("LIMIT 5000", Some(5000), 0, 1000)]
#[case("OFFSET 3", None, 3, 1000)]
fn limits(#[case] clause: &str, #[case] limit: Option<u64>, #[case] offset: u64, #[case] of_spec: i64) {
    let statement = translated(&format!("SELECT inventory.name FROM a {clause}"));
    assert_eq!((statement.limit, statement.offset, statement.spec.limit), (limit, offset, of_spec));
}

#[test]
fn without_from() {
    assert_eq!(translated("SELECT inventory.name").from, None);
}

#[rstest]
#[case("SELECT 1", true)]
#[case("  select\n1", true)]
#[case("select", false)]
#[case("collector.yaml", false)]
#[case("selectors.yaml", false)]
fn statements(#[case] text: &str, #[case] expected: bool) {
    assert_eq!(is_statement(text), expected);
}
