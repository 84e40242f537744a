//! What a StatusCollector cannot say.

use bellwether_sql::translate;
use rstest::rstest;

#[rstest]
#[case::having(
    "SELECT COUNT(*) FROM a HAVING COUNT(*) > 1",
    "line 1, column 31: HAVING is not supported; filter rows with WHERE, or order by the aggregate and use LIMIT"
)]
#[case::join(
    "SELECT 1 FROM a JOIN b ON 1 = 1",
    "line 1, column 22: JOIN is not supported; a StatusCollector is one SELECT over one kind of objects"
)]
#[case::tables(
    "SELECT 1 FROM a, b",
    "line 1, column 18: a second table is not supported; a StatusCollector is one SELECT over one kind of objects"
)]
#[case::subquery(
    "SELECT 1 FROM (SELECT 2)",
    "line 1, column 16: a subquery is not supported; a StatusCollector is one SELECT over one kind of objects"
)]
#[case::subquery_in_where(
    "SELECT 1 FROM a WHERE status.x IN (SELECT 1 FROM b)",
    "line 1, column 23: subqueries are not supported; write a collector in CEL if you need it"
)]
#[case::alias(
    "SELECT d.status FROM a AS d",
    "line 1, column 27: an alias after FROM is not supported; write paths such as status.phase without it"
)]
#[case::window(
    "SELECT SUM(status.x) OVER () FROM a",
    "line 1, column 8: window functions are not supported; remove OVER"
)]
#[case::filter(
    "SELECT COUNT(*) FILTER (WHERE status.x) FROM a",
    "line 1, column 8: FILTER is not supported; use WHERE, or GROUP BY the condition"
)]
#[case::count_distinct(
    "SELECT COUNT(DISTINCT status.x) FROM a",
    "line 1, column 8: COUNT(DISTINCT …) is not supported; use SELECT DISTINCT, and count the rows of the result"
)]
#[case::union(
    "SELECT 1 FROM a UNION SELECT 2 FROM b",
    "line 1, column 1: UNION is not supported; a StatusCollector is one SELECT over one kind of objects"
)]
#[case::with(
    "WITH x AS (SELECT 1) SELECT 1 FROM x",
    "line 1, column 1: WITH is not supported; a StatusCollector is one SELECT over one kind of objects"
)]
#[case::update(
    "UPDATE a SET b = 1",
    "line 1, column 1: only SELECT is supported; a query reads clusters and changes nothing"
)]
#[case::two(
    "SELECT 1 FROM a; SELECT 2 FROM b",
    "line 1, column 18: only one statement at a time is supported"
)]
#[case::case(
    "SELECT CASE WHEN status.x THEN 1 END FROM a",
    "line 1, column 8: CASE is not supported; use COALESCE, or write a collector in CEL with a ? b : c"
)]
#[case::null(
    "SELECT 1 FROM a WHERE status.x = NULL",
    "line 1, column 34: a comparison with NULL is never true; write IS NULL or IS NOT NULL"
)]
#[case::double_quotes(
    "SELECT 1 FROM a WHERE status.phase = \"Running\"",
    "line 1, column 38: unknown column \"Running\"; for text, write single quotes: 'Running'"
)]
#[case::unknown_column(
    "SELECT replicas FROM a",
    "line 1, column 8: unknown column \"replicas\"; did you mean spec.replicas?"
)]
#[case::misspelt(
    "SELECT inventry.name FROM a",
    "line 1, column 8: unknown column \"inventry\"; did you mean inventory?"
)]
#[case::unknown_field(
    "SELECT 1 FROM a WHERE propagation.helth = 'Ready'",
    "line 1, column 23: unknown field `helth` of `propagation`; did you mean `health`?"
)]
#[case::unknown_field_of_the_root(
    "SELECT $.inventory.nam FROM a",
    "line 1, column 8: unknown field `nam` of `inventory`; did you mean `name`?"
)]
#[case::field_of_a_text(
    "SELECT MAX(inventory.name.foo) FROM a",
    "line 1, column 12: string does not support field selection"
)]
#[case::other_field(
    "SELECT webhooks FROM a",
    "line 1, column 8: unknown column \"webhooks\"; write a path such as inventory.name, status.phase, spec.replicas, propagation.health or obj.webhooks"
)]
#[case::alias_in_where(
    "SELECT status.x AS y FROM a WHERE y = 1",
    "line 1, column 35: unknown column \"y\"; WHERE needs the expression itself, not its name"
)]
#[case::ungrouped(
    "SELECT inventory.name, COUNT(*) FROM a",
    "line 1, column 8: inventory.name must be in GROUP BY or in an aggregate; add GROUP BY name"
)]
#[case::aggregate_in_where(
    "SELECT 1 FROM a WHERE COUNT(*) > 1",
    "line 1, column 23: COUNT() must stand alone as a column in SELECT; a StatusCollector cannot compute with aggregates"
)]
#[case::computed_aggregate(
    "SELECT SUM(status.x) / COUNT(*) FROM a",
    "line 1, column 8: SUM() must stand alone as a column in SELECT; a StatusCollector cannot compute with aggregates"
)]
#[case::grouped_aggregate(
    "SELECT COUNT(*) AS n FROM a GROUP BY n",
    "line 1, column 38: GROUP BY cannot contain an aggregate"
)]
#[case::unknown_function(
    "SELECT round(status.x) FROM a",
    "line 1, column 8: unknown function ROUND(); use COUNT, SUM, AVG, MIN, MAX, COALESCE, LOWER, UPPER or LENGTH, or write a collector in CEL"
)]
#[case::sum_of_rows(
    "SELECT SUM(*) FROM a",
    "line 1, column 8: SUM() takes one expression; write SUM(status.replicas)"
)]
#[case::nulls_last(
    "SELECT status.x FROM a ORDER BY 1 NULLS LAST",
    "line 1, column 33: NULL comes first in ascending order; filter with IS NOT NULL, or order by COALESCE"
)]
#[case::number(
    "SELECT status.x FROM a ORDER BY 2",
    "line 1, column 33: column 2 does not exist; SELECT has 1 column"
)]
#[case::limit("SELECT status.x FROM a LIMIT 0", "line 1, column 30: LIMIT must be a number of at least 1")]
#[case::duplicate(
    "SELECT status.x AS a, status.y AS a FROM a",
    "line 1, column 23: duplicate column \"a\"; use different names after AS"
)]
#[case::objects(
    "SELECT status.x FROM a/b/c",
    "line 1, column 22: invalid objects \"a/b/c\" after FROM; write a resource such as deployments, deployments.apps or deployments/web"
)]
#[case::operator(
    "SELECT 1 FROM a WHERE status.x ~ 'y'",
    "line 1, column 23: unsupported operator ~; use =, <>, <, <=, >, >=, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL and arithmetic"
)]
#[case::syntax("SELECT 1 FROM a WHERE", "expected an expression, found the end of the statement")]
#[case::quote("SELECT 'a FROM b", "line 1, column 8: unterminated string literal")]
#[case::nothing_after_from("SELECT 1 FROM", "expected identifier, found the end of the statement")]
#[case::slice(
    "SELECT status.x[1:2] FROM a",
    "line 1, column 8: a path takes a quoted field or a number in brackets; write metadata.labels['app.kubernetes.io/name'] or status.conditions[0].type"
)]
fn one_sentence_with_the_place(#[case] sql: &str, #[case] expected: &str) {
    let error = translate(sql).expect_err(sql);
    assert_eq!(error.to_string(), expected);
}

#[test]
fn places_count_lines() {
    let error = translate("SELECT inventory.name\nFROM pods/web-0\n  WHERE phase = 1").expect_err("an error");
    assert_eq!((error.line, error.column), (3, 9));
}

#[test]
fn depth_and_length_are_bounded() {
    let deep = format!("SELECT {}1{} FROM a", "(".repeat(5000), ")".repeat(5000));
    assert!(translate(&deep).is_err());
    let long = format!("SELECT 1{} FROM a", " + 1".repeat(5000));
    assert!(translate(&long).is_err());
    let not = format!("SELECT {}TRUE FROM a", "NOT ".repeat(1500));
    assert!(translate(&not).is_err());
    let chain = format!("SELECT 1 FROM a WHERE status.x{}", " OR status.x".repeat(250));
    assert!(translate(&chain).is_ok());
}
