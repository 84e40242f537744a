//! What each part of a collector means.

use std::sync::Arc;

use bellwether_api::CombinedResult;
use rstest::rstest;
use serde_json::{Value as Json, json};

use crate::sample::{NamedTable, fill, reports, rows, shown, table};

/// The only value of a result, over clusters that report these values.
fn aggregate(function: &str, values: &[Json]) -> (String, Vec<String>) {
    let mut table =
        table(&format!("combinedFields: [{{name: it, type: {function}, subject: returned.status.a}}]"));
    for (number, value) in values.iter().enumerate() {
        table.upsert(&format!("c{number}").into(), &reports("any", &json!({"a": value})).row());
    }
    let result = table.result("any");
    assert_eq!((result.rows.len(), result.total_rows, result.truncated), (1, 1, false));
    let errors = result.aggregation_errors.iter().map(|error| format!("{}: {}", error.column, error.error));
    (shown(&result.rows[0].columns[0]), errors.collect())
}

#[rstest]
// Without values.
#[case("COUNT", json!([]), "0")]
#[case("SUM", json!([]), "null")]
#[case("AVG", json!([null, null]), "null")]
#[case("MIN", json!([null]), "null")]
#[case("MAX", json!([]), "null")]
// Nulls are skipped.
#[case("COUNT", json!([1, null, "a", false]), "3")]
#[case("SUM", json!([1, null, 2]), "3")]
#[case("AVG", json!([1, null, 2]), "1.5")]
#[case("MIN", json!([null, 3, 2]), "2")]
#[case("MAX", json!([3, null, 2]), "3")]
// Sums are exact.
#[case("SUM", json!([1_000_000, 0]), "1000000")]
#[case("SUM", json!([9_223_372_036_854_775_807_i64, 9_223_372_036_854_775_807_i64, 1]), "18446744073709551615")]
#[case("SUM", json!([-9_223_372_036_854_775_808_i64, -1]), "-9223372036854775809")]
#[case("SUM", json!(["100m", "0.9"]), "1")]
#[case("SUM", json!(["1n", 9_007_199_254_740_993_i64]), "9007199254740993.000000001")]
#[case("SUM", json!(["250Mi", "6Mi", "-256Mi", 5]), "5")]
#[case("SUM", json!(["0.1", "0.2"]), "0.3")]
#[case("SUM", json!([0.5, 1, "2.25"]), "3.75")]
// Ten doubles of about 0.1 are exactly 1.00000000000000005551, and the nearest double is 1.
#[case("SUM", json!([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]), "1")]
#[case("SUM", json!([0.1, 0.2]), "0.30000000000000004")]
#[case("SUM", json!([1e300, 1.5, -1e300]), "1.5")]
#[case("SUM", json!([1e308, 1e308, -1e308]), "1e308")]
#[case("SUM", json!([5e-324, 5e-324]), "1e-323")]
#[case("SUM", json!([0.1, -0.1]), "0")]
#[case("SUM", json!(["1e-30", "1e-30"]), "2e-30")]
// So are means, if a billionth is enough.
#[case("AVG", json!([9_007_199_254_740_993_i64, 9_007_199_254_740_994_i64]), "9007199254740993.5")]
#[case("AVG", json!([1, 0, 0]), "0.3333333333333333")]
#[case("AVG", json!([-2, 0, 0]), "-0.6666666666666666")]
#[case("AVG", json!([0.1, 0.1, 0.1]), "0.1")]
#[case("AVG", json!([5e-324, 0, 0]), "0")]
#[case("AVG", json!([1e-323, 5e-324]), "1e-323")]
#[case("AVG", json!([1.797_693_134_862_315_7e308, 1.797_693_134_862_315_7e308]), "1.7976931348623157e308")]
// The order of values of different types: bool, number, point in time, string, list, map.
#[case("MIN", json!(["a", 1, true, [], {}]), "true")]
#[case("MAX", json!(["a", 1, true, [], {}]), "{}")]
#[case("MAX", json!(["a", 1, "2026-01-01T00:00:00Z"]), r#""a""#)]
#[case("MIN", json!(["a", "2026-01-01T00:00:00Z", "0"]), "0")]
#[case("MIN", json!(["b", "a", "B"]), r#""B""#)]
// Quantities have the order of their numbers, points in time that of time.
#[case("MAX", json!(["1Gi", "300Mi"]), "1073741824")]
#[case("MIN", json!(["1.10", "1.9"]), "1.1")]
#[case("MIN", json!(["2026-01-01T00:30:00Z", "2026-01-01T01:00:00+01:00"]), r#""2026-01-01T01:00:00+01:00""#)]
#[case("MAX", json!(["2026-01-01T00:00:00.5Z", "2026-01-01T00:00:00Z"]), r#""2026-01-01T00:00:00.5Z""#)]
// A double is compared exactly: 0.1 is a little more than a tenth.
#[case("MIN", json!([0.1, "0.1"]), "0.1")]
#[case("MAX", json!([9_007_199_254_740_993_i64, 9_007_199_254_740_992.0]), "9007199254740993")]
fn aggregates(#[case] function: &str, #[case] values: Json, #[case] expected: &str) {
    let mut values = values.as_array().unwrap().clone();
    for _ in 0..2 {
        assert_eq!(aggregate(function, &values), (expected.to_owned(), vec![]), "{function} of {values:?}");
        values.reverse();
    }
}

#[rstest]
#[case("SUM", json!(["a", 1]), "1", "it: cluster c0: `a` is not a number")]
#[case("AVG", json!([2, "a", false]), "2", "it: cluster c1: `a` is not a number (and 1 other value)")]
#[case("SUM", json!([[], {}, true]), "null", "it: cluster c0: a list is not a number (and 2 other values)")]
#[case("SUM", json!(["2026-01-01T00:00:00Z"]), "null", "it: cluster c0: `2026-01-01T00:00:00Z` is not a number")]
#[case("SUM", json!(["9999E"]), "null", "it: cluster c0: `9999E` is too large")]
#[case("SUM", json!(["1e400", 1]), "1", "it: cluster c0: `1e400` is too large")]
#[case("SUM", json!([1e308, 1e308]), "null", "it: the result is too large for a floating-point number")]
#[case("SUM", json!(["a\nb"]), "null", "it: cluster c0: `a b` is not a number")]
fn aggregation_errors(
    #[case] function: &str,
    #[case] values: Json,
    #[case] expected: &str,
    #[case] error: &str,
) {
    let values = values.as_array().unwrap();
    assert_eq!(aggregate(function, values), (expected.to_owned(), vec![error.to_owned()]));
}

/// `MIN` and `COUNT` work with all values, so they have no errors.
#[test]
fn only_sums_and_means_have_aggregation_errors() {
    for function in ["COUNT", "MIN", "MAX"] {
        assert_eq!(aggregate(function, &[json!("a"), json!([])]).1, Vec::<String>::new());
    }
}

fn phases(table: &mut NamedTable) {
    let statuses = [
        ("d", json!({"phase": "Up", "n": 1})),
        ("a", json!({"phase": "Down", "n": 5})),
        ("c", json!({"phase": "Up", "n": 2})),
        ("b", json!({"n": 2})),
        ("e", json!(null)),
    ];
    fill(table, &statuses);
}

#[rstest]
// The default order: the cluster, or the values of groupBy.
#[case("select: [{name: n, def: returned.status.n}]", "5\n2\n2\n1\nnull")]
#[case(
    "groupBy: [{name: phase, def: returned.status.phase}]\ncombinedFields: [{name: sum, type: SUM, subject: returned.status.n}]",
    "null | 2\n\"Down\" | 5\n\"Up\" | 3"
)]
#[case("groupBy: [{name: phase, def: returned.status.phase}]", "null\n\"Down\"\n\"Up\"")]
// Null is the least value.
#[case("{select: [{name: n, def: returned.status.n}], orderBy: [{column: n}]}", "null\n1\n2\n2\n5")]
#[case(
    "{select: [{name: n, def: returned.status.n}], orderBy: [{column: n, descending: true}]}",
    "5\n2\n2\n1\nnull"
)]
// Equal rows stay in the default order.
#[case(
    "{select: [{name: c, def: inventory.name}, {name: n, def: returned.status.n}], orderBy: [{column: n, descending: true}]}",
    "\"a\" | 5\n\"b\" | 2\n\"c\" | 2\n\"d\" | 1\n\"e\" | null"
)]
#[case(
    "groupBy: [{name: phase, def: returned.status.phase}]
combinedFields: [{name: count, type: COUNT}]
orderBy: [{column: count}, {column: phase, descending: true}]",
    "\"Down\" | 1\n\"Up\" | 2\nnull | 2"
)]
// The limit comes after the order.
#[case("{select: [{name: n, def: returned.status.n}], orderBy: [{column: n}], limit: 2}", "null\n1")]
#[case(
    "groupBy: [{name: phase, def: returned.status.phase}]
combinedFields: [{name: sum, type: SUM, subject: returned.status.n}]
orderBy: [{column: sum, descending: true}]
limit: 1",
    "\"Down\" | 5"
)]
// A null filter is false.
#[case("{filter: returned.status.n > 1, combinedFields: [{name: c, type: COUNT}]}", "3")]
#[case("{filter: '!(returned.status.n > 1)', combinedFields: [{name: c, type: COUNT}]}", "1")]
#[case("{filter: 'false', combinedFields: [{name: c, type: COUNT}]}", "0")]
#[case(
    "{filter: 'false', groupBy: [{name: a, def: inventory.name}], combinedFields: [{name: c, type: COUNT}]}",
    ""
)]
// An optional is its value, or null.
#[case("{filter: 'returned.?status.?n.optMap(n, n > 1)', combinedFields: [{name: c, type: COUNT}]}", "3")]
#[case("{filter: 'optional.of(optional.of(true))', combinedFields: [{name: c, type: COUNT}]}", "5")]
#[case("{filter: 'optional.none()', combinedFields: [{name: c, type: COUNT}]}", "0")]
fn queries(#[case] yaml: &str, #[case] expected: &str) {
    let mut table = table(yaml);
    phases(&mut table);
    assert_eq!(rows(&table.result("any")), expected, "{yaml}");
}

/// As numbers of JSON: `1` and `1.0` are one number, and fields have no order.
#[test]
fn equal_values_are_one_group() {
    let mut table =
        table("{groupBy: [{name: a, def: returned.status.a}], combinedFields: [{name: c, type: COUNT}]}");
    let values = [
        json!(1),
        json!(1.0),
        json!("1"),
        json!({"a": 1, "b": [2]}),
        json!({"b": [2.0], "a": 1.0}),
        json!([1]),
        json!(null),
    ];
    for (number, value) in values.iter().enumerate() {
        table.upsert(&number.to_string().into(), &reports("any", &json!({"a": value})).row());
    }
    table.upsert(&"without a status".into(), &reports("any", &json!(null)).row());
    let expected = "null | 2\n1 | 2\n\"1\" | 1\n[1] | 1\n{\"a\":1,\"b\":[2]} | 2";
    assert_eq!(rows(&table.result("any")), expected);
}

#[test]
fn the_limit_and_the_number_of_all_rows() {
    let mut table = table("{select: [{name: n, def: returned.status.n}], limit: 5}");
    phases(&mut table);
    let result = table.result("any");
    assert_eq!((result.rows.len(), result.total_rows, result.truncated), (5, 5, false));
    table.upsert(&"f".into(), &reports("f", &json!({})).row());
    let result = table.result("any");
    assert_eq!((result.rows.len(), result.total_rows, result.truncated), (5, 6, true));
    assert!(table.remove("a"));
    assert!(!table.remove("a"));
    let result = table.result("any");
    assert_eq!(
        (rows(&result), result.total_rows, result.truncated),
        ("2\n2\n1\nnull\nnull".into(), 5, false)
    );
}

/// A row that cannot be evaluated is left out and named.
#[rstest]
#[case("{filter: returned.status.n > 1, combinedFields: [{name: c, type: COUNT}]}", "1", &["bad : line 1, column 19: cannot order string and int"])]
#[case("{filter: returned.status.n, combinedFields: [{name: c, type: COUNT}]}", "0", &["bad : the filter must be a bool, not a string", "good : the filter must be a bool, not an int"])]
#[case("{select: [{name: c, def: inventory.name}, {name: n, def: returned.status.n + 1}]}", "\"good\" | 3", &["bad n: line 1, column 19: no such overload: string + int"])]
#[case("{groupBy: [{name: n, def: returned.status.n - 1}]}", "1", &["bad n: line 1, column 19: no such overload: string - int"])]
#[case(
    "{combinedFields: [{name: all, type: COUNT}, {name: a, type: SUM, subject: returned.status.n + 1}, {name: b, type: MAX, subject: returned.status.n + 1}]}",
    "1 | 3 | 3",
    &["bad a: line 1, column 19: no such overload: string + int", "bad b: line 1, column 19: no such overload: string + int"]
)]
#[case("{select: [{name: n, def: 1.0 / 0.0}]}", "", &["bad n: the number is not finite", "good n: the number is not finite"])]
#[case("{select: [{name: n, def: type(obj)}]}", "", &["bad n: a type cannot be the value of a column", "good n: a type cannot be the value of a column"])]
#[case("{select: [{name: n, def: '{1: 2}'}]}", "", &["bad n: a map cannot be the value of a column", "good n: a map cannot be the value of a column"])]
#[case(
    "{select: [{name: n, def: \"[1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(a, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(b, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(c, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(d, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(e, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(f, 1))))))\"}, {name: m, def: '1 + 1'}]}",
    "",
    &["bad n: expression exceeded its cost limit", "good n: expression exceeded its cost limit"]
)]
fn row_errors(#[case] yaml: &str, #[case] expected: &str, #[case] errors: &[&str]) {
    let mut table = table(yaml);
    fill(&mut table, &[("good", json!({"n": 2})), ("bad", json!({"n": "two"}))]);
    let result = table.result("any");
    let shown: Vec<_> = result
        .row_errors
        .iter()
        .map(|error| format!("{} {}: {}", error.cluster, error.column, error.error))
        .collect();
    assert_eq!(shown, errors);
    assert_eq!(rows(&result), expected);
    fill(&mut table, &[("bad", json!({"n": 2}))]);
    let repaired = table.result("any").row_errors.iter().any(|error| error.error.contains("string"));
    assert!(!repaired, "an error of a replaced row stays");
}

/// A value whose parts are shared is small while it is computed, and large as JSON.
#[test]
fn a_value_that_is_too_large() {
    let doubled = (0..30).rev().fold("a30".to_owned(), |inner, level| {
        format!("cel.bind(a{}, [a{level}, a{level}], {inner})", level + 1)
    });
    let mut table = table(&format!("select: [{{name: n, def: \"cel.bind(a0, [1], {doubled})\"}}]"));
    fill(&mut table, &[("north", json!({}))]);
    assert_eq!(table.result("any").row_errors[0].error, "the value is larger than 256 KiB");
}

#[test]
fn at_least_one_row_error_for_each_column() {
    let mut table = table(
        "select: [{name: a, def: returned.status.a + 1}, {name: b, def: returned.status.b + 1}, {name: c, def: returned.status.c + 1}]",
    );
    for number in 0..20 {
        let column = if number == 19 { "c" } else { "a" };
        table.upsert(&format!("c{number:02}").into(), &reports("any", &json!({column: "x"})).row());
    }
    let result = table.result("any");
    assert_eq!(result.failed_rows, 20);
    let errors = result.row_errors;
    let shown: Vec<_> = errors.iter().map(|error| (&*error.column, &*error.cluster)).collect();
    let mut expected: Vec<_> = (0..9).map(|number| ("a", format!("c{number:02}"))).collect();
    expected.push(("c", "c19".to_owned()));
    assert_eq!(shown, expected.iter().map(|(column, cluster)| (*column, &**cluster)).collect::<Vec<_>>());
}

#[test]
fn a_result_within_a_size() {
    let mut table = table("{select: [{name: n, def: returned.status.n}], limit: 1000}");
    for number in 0..100 {
        let status = json!({"n": "x".repeat(number)});
        table.upsert(&format!("c{number:03}").into(), &reports("any", &status).row());
    }
    let full = table.result("any");
    let size = |result: &CombinedResult| serde_json::to_string(result).unwrap().len();
    assert_eq!(table.result_within("any", size(&full)), full);
    for bytes in (0..size(&full)).step_by(97) {
        let cut = table.result_within("any", bytes);
        assert!(cut.truncated && cut.total_rows == 100);
        assert!(cut.rows.is_empty() || size(&cut) <= bytes, "{} bytes instead of {bytes}", size(&cut));
        assert_eq!(full.rows[..cut.rows.len()], cut.rows);
        // Another row would not fit.
        let next = size(&cut) + serde_json::to_string(&full.rows[cut.rows.len()]).unwrap().len();
        assert!(next + 2 > bytes, "{next} of {bytes} bytes");
    }
}

/// Errors and the names of columns have a bounded size, too.
#[test]
fn errors_within_a_size() {
    let columns: Vec<_> = (0..32)
        .map(|number| format!("{{name: c{number}, type: SUM, subject: returned.status.c{number}}}"))
        .collect();
    let mut table = table(&format!(
        "{{groupBy: [{{name: key, def: \"returned.status.key + 'x'\"}}], combinedFields: [{}]}}",
        columns.join(", ")
    ));
    for cluster in ["east", "north", "south", "west"] {
        let values = (0..32).map(|number| (format!("c{number}"), json!("many")));
        let mut status: Json = values.collect::<serde_json::Map<_, _>>().into();
        status["key"] = if cluster == "west" { json!(1) } else { json!(cluster) };
        table.upsert(&cluster.into(), &reports("any", &status).row());
    }
    let full = table.result("any");
    assert_eq!((full.rows.len(), full.row_errors.len(), full.aggregation_errors.len()), (3, 1, 32));
    let size = |result: &CombinedResult| serde_json::to_string(result).unwrap().len();
    assert_eq!(table.result_within("any", size(&full)), full);
    let least = size(&CombinedResult {
        name: "any".to_owned(),
        total_rows: 3,
        failed_rows: 1,
        truncated: true,
        ..CombinedResult::default()
    });
    let mut before = full.clone();
    for bytes in (least..size(&full)).rev().step_by(41) {
        let cut = table.result_within("any", bytes);
        assert!(cut.truncated && size(&cut) <= bytes, "{} bytes instead of {bytes}", size(&cut));
        let parts = |result: &CombinedResult| {
            let errors = (result.aggregation_errors.len(), result.row_errors.len());
            (result.column_names.len(), errors.0, errors.1, result.rows.len())
        };
        let (now, earlier) = (parts(&cut), parts(&before));
        assert!(now.0 <= earlier.0 && now.1 <= earlier.1, "{now:?} after {earlier:?}");
        assert!(cut.rows.is_empty() || (now.1, now.2) == (32, 1), "rows are left out first: {now:?}");
        assert!(now.1 == 0 || now.0 == 33, "names are left out last: {now:?}");
        before = cut;
    }
}

#[test]
fn a_change_without_effect() {
    let mut table = table(
        "{filter: returned.status.n != 9, combinedFields: [{name: s, type: SUM, subject: returned.status.n}]}",
    );
    let north: Arc<str> = "north".into();
    let mut upsert = |status: Json| table.upsert(&north, &reports("north", &status).row());
    assert!(!upsert(json!({"n": 9})), "left out");
    assert!(upsert(json!({"n": 1})), "new");
    assert!(!upsert(json!({"n": 1, "other": 5})), "a field that no expression reads");
    assert!(!upsert(json!({"n": 1.0})), "the same number");
    assert!(upsert(json!({"n": 2})), "another value");
    assert!(upsert(json!({"n": [1] })), "not a number");
    assert!(!upsert(json!({"n": [1.0] })), "the same list");
    assert!(upsert(json!({"n": 9})), "left out again");
    assert!(!upsert(json!({"n": 9})), "still left out");
}
