//! Errors in collectors: each with its place and a way out.

use bellwether_tables::{Collector, Variable};
use rstest::rstest;

use crate::sample::{collector, spec};

#[rstest]
#[case::nothing(
    "{}",
    "spec: select is required; set select to list clusters one by one, or groupBy or combinedFields to combine them"
)]
#[case::two_queries(
    "{select: [{name: a, def: inventory.name}], combinedFields: [{name: b, type: COUNT}]}",
    "spec.select: not allowed with groupBy or combinedFields; use select to list clusters one by one, groupBy and combinedFields to combine them"
)]
#[case::no_def(
    "{select: [{name: a, def: inventory.name}, {name: b}]}",
    "spec.select[1].def: required; write an expression, for example inventory.name"
)]
#[case::no_key(
    "{groupBy: [{name: a}]}",
    "spec.groupBy[0].def: required; write an expression, for example inventory.name"
)]
#[case::no_subject(
    "{combinedFields: [{name: a, type: COUNT}, {name: b, type: MAX}]}",
    "spec.combinedFields[1].subject: required for MAX; write the expression that MAX combines"
)]
#[case::cel(
    "{filter: returned.status. == 1, combinedFields: [{name: a, type: COUNT}]}",
    "spec.filter: line 1, column 18: expected a field name, found `==`"
)]
#[case::cel_over_several_lines(
    "{select: [{name: a, def: \"returned\\n + nope\"}]}",
    "spec.select[0].def: line 2, column 4: undeclared reference to `nope`; declared variables: `inventory`, `obj`, `returned`, `propagation`"
)]
#[case::tree(
    "combinedFields: [{name: a, type: SUM, subject: {op: Or, args: [{op: Path, path: $.status.a}, {op: Path, path: status}]}}]",
    "spec.combinedFields[0].subject.args[1].path: `status` must start with $; write $.status"
)]
#[case::tree_at_its_root(
    "filter: {op: Whether}\nselect: [{name: a, def: obj}]",
    "spec.filter.op: unknown operation `Whether`; write one of Path, Literal, Not, And, Or, Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual, In, Exists"
)]
#[case::neither_cel_nor_a_tree(
    "{filter: 1, select: [{name: a, def: obj}]}",
    "spec.filter: an operation must be a map, not a number; write {op: Path, path: $.status.phase}, or use CEL for the whole expression"
)]
#[case::filter_of_another_type(
    "{filter: size(returned), select: [{name: a, def: obj}]}",
    "spec.filter: the expression must evaluate to bool; write a comparison, for example propagation.health == 'Ready'"
)]
#[case::null_as_filter(
    "{filter: {op: Literal, value: null}, select: [{name: a, def: obj}]}",
    "spec.filter: the expression must evaluate to bool; write a comparison, for example propagation.health == 'Ready'"
)]
#[case::unknown_field(
    "{select: [{name: a, def: obj}, {name: b, def: {op: Not, args: [{op: Path, path: $.propagation.fund}]}}]}",
    "spec.select[1].def.args[0].path: unknown field `fund` of `propagation`; did you mean `found`?"
)]
#[case::sum_of_bools(
    "{combinedFields: [{name: a, type: SUM, subject: propagation.found == true}]}",
    "spec.combinedFields[0].subject: SUM expects a number; use COUNT with a filter to count rows for which something is true"
)]
#[case::limit("{limit: 0, select: [{name: a, def: obj}]}", "spec.limit: must be from 1 to 1000, found 0")]
#[case::limit(
    "{limit: 1001, select: [{name: a, def: obj}]}",
    "spec.limit: must be from 1 to 1000, found 1001"
)]
#[case::duplicate(
    "{groupBy: [{name: a, def: obj}], combinedFields: [{name: a, type: COUNT}]}",
    "spec.combinedFields[0].name: duplicate column `a`; use different names"
)]
#[case::no_name(
    "{select: [{name: '', def: obj}]}",
    "spec.select[0].name: invalid column name; use 1 to 63 characters, without spaces at the start or end"
)]
#[case::name_with_a_space(
    "{select: [{name: 'a ', def: obj}]}",
    "spec.select[0].name: invalid column name; use 1 to 63 characters, without spaces at the start or end"
)]
#[case::order_by_an_unknown_column(
    "{select: [{name: a, def: obj}, {name: b, def: obj}], orderBy: [{column: c}]}",
    "spec.orderBy[0].column: unknown column `c`; use one of `a`, `b`"
)]
#[case::order_by_a_column_twice(
    "{select: [{name: a, def: obj}], orderBy: [{column: a}, {column: a, descending: true}]}",
    "spec.orderBy[1].column: duplicate column `a`; name each column once"
)]
fn refused(#[case] yaml: &str, #[case] expected: &str) {
    let errors = Collector::compile(&spec(yaml)).expect_err(yaml);
    assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected], "{yaml}");
}

#[test]
fn all_errors_are_reported() {
    let yaml = "
        filter: 1 +
        select: [{name: a}, {name: a, def: nope}]
        orderBy: [{column: b}]
        limit: -1";
    let errors = Collector::compile(&spec(yaml)).expect_err(yaml);
    let places: Vec<_> = errors.iter().map(|error| &*error.place).collect();
    let expected = [
        "spec.limit",
        "spec.select[1].name",
        "spec.orderBy[0].column",
        "spec.filter: line 1, column 4",
        "spec.select[0].def",
        "spec.select[1].def: line 1, column 1",
    ];
    assert_eq!(places, expected);
}

#[test]
fn too_many_columns() {
    let columns: Vec<_> = (0..33).map(|number| format!("{{name: c{number}, def: obj}}")).collect();
    let yaml = format!("select: [{}]", columns.join(", "));
    let errors = Collector::compile(&spec(&yaml)).expect_err("too many");
    assert_eq!(errors[0].to_string(), "spec.select: at most 32 entries, found 33");
}

#[test]
fn paths_of_all_expressions() {
    let collector = collector(
        "filter: has(propagation.stale) && returned.status.conditions[0].type == 'Ready'
groupBy: [{name: a, def: {op: Path, path: $.spec.a}}]
combinedFields:
- {name: b, type: SUM, subject: obj.spec.a}
- {name: c, type: MAX, subject: inventory}",
    );
    let paths =
        |variable| -> Vec<String> { collector.paths(variable).iter().map(|path| path.join(".")).collect() };
    assert_eq!(paths(Variable::Inventory), [""]);
    assert_eq!(paths(Variable::Obj), ["spec.a"]);
    assert_eq!(paths(Variable::Returned), ["status.conditions.type"]);
    assert_eq!(paths(Variable::Propagation), ["stale"]);
    assert_eq!(collector.column_names().collect::<Vec<_>>(), ["a", "b", "c"]);
}

/// Tables of many threads use one collector.
#[test]
fn collectors_are_shared() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    is_shared(&collector("{combinedFields: [{name: a, type: COUNT}]}"));
}
