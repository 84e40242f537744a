//! The three meanings of a missing field.

use bellwether_expr::{Absence, Program, Scope};
use rstest::rstest;

use crate::sample::{of_row, of_widget};

/// Checks the value of an expression with each meaning: as in CEL, not yet, and SQL's null.
#[track_caller]
fn means(text: &str, expected: [&str; 3]) {
    let given = [Absence::AsInCel, Absence::NotYet, Absence::Null].map(|absence| {
        let given = of_widget(text, absence);
        // `names_of_missing_fields` checks which field is missing.
        if given.starts_with("missing") { "missing".to_owned() } else { given }
    });
    assert_eq!(given, expected, "{text}");
}

const MISSING: [&str; 3] = ["missing"; 3];
const TRUE: [&str; 3] = ["true"; 3];
const FALSE: [&str; 3] = ["false"; 3];

#[rstest]
#[case::of_the_top("has(status)", TRUE)]
#[case::not_of_the_top("has(absent)", ["missing", "false", "false"])]
#[case::of_self("has(self.absent)", ["missing", "false", "false"])]
#[case::last("has(status.absent)", FALSE)]
#[case::before_the_last("has(status.absent.deeper)", ["missing", "false", "false"])]
#[case::far_before_the_last("has(absent.b.c.d)", ["missing", "false", "false"])]
#[case::of_text("has(status.phase.deeper)", [
    "error: line 1, column 1: cannot read field `deeper`: status.phase is not a map", "false", "false"
])]
#[case::of_a_number("has(spec.replicas.deeper)", [
    "error: line 1, column 1: cannot read field `deeper`: spec.replicas is not a map", "false", "false"
])]
#[case::null("has(spec.nothing)", ["true", "true", "false"])]
#[case::under_null("has(spec.nothing.deeper)", FALSE)]
#[case::in_an_entry("has(status.conditions[0].reason)", FALSE)]
#[case::in_no_entry("has(status.conditions[9].reason)", ["missing", "false", "false"])]
#[case::of_a_variable("status.conditions.exists(c, has(c.reason))", TRUE)]
#[case::under_a_variable("status.conditions.exists(c, has(c.absent.deeper))", ["missing", "false", "false"])]
#[case::null_of_a_map_that_was_made("has({'a': null}.a)", ["true", "true", "false"])]
#[case::of_what_may_be_there("has(status.?absent.deeper)", FALSE)]
fn has_macro(#[case] text: &str, #[case] expected: [&str; 3]) {
    means(text, expected);
}

#[rstest]
#[case("status.absent", MISSING)]
#[case("absent", MISSING)]
#[case("absent.deeper", MISSING)]
#[case("!status.absent", MISSING)]
#[case("-status.absent", MISSING)]
#[case("status.absent == 'x'", MISSING)]
#[case("status.absent != 'x'", MISSING)]
#[case("'x' == status.absent", MISSING)]
#[case("status.absent == status.absent", MISSING)]
#[case("status.absent < 1", MISSING)]
#[case("status.absent + 1", MISSING)]
#[case("status.absent in ['x']", MISSING)]
#[case("'x' in status.absent", MISSING)]
#[case("status.absent ? 1 : 2", MISSING)]
#[case("true ? 1 : status.absent", ["1"; 3])]
#[case("size(status.absent)", MISSING)]
#[case("status.absent.startsWith('x')", MISSING)]
#[case("[status.absent]", MISSING)]
#[case("{'a': status.absent}", MISSING)]
#[case("cel.bind(a, status.absent, 1)", MISSING)]
#[case("status.absent.map(x, x)", MISSING)]
#[case("spec.none.map(x, x.absent)", ["[]"; 3])]
#[case("status.conditions.map(c, c.reason)", MISSING)]
#[case("status.conditions.filter(c, c.reason == 'Fine')", MISSING)]
#[case("status.conditions.exists(c, c.reason == 'Fine')", TRUE)]
#[case("status.conditions.exists(c, c.reason == 'Bad')", MISSING)]
#[case("status.conditions.all(c, c.reason != 'Fine')", FALSE)]
#[case("status.conditions.all(c, c.reason == 'Fine')", MISSING)]
#[case("status.conditions.exists_one(c, c.reason == 'Fine')", MISSING)]
#[case("metadata.labels['absent']", MISSING)]
#[case("spec.sizes[3]", MISSING)]
#[case("spec.sizes[spec.replicas]", MISSING)]
fn values(#[case] text: &str, #[case] expected: [&str; 3]) {
    means(text, expected);
}

#[rstest]
#[case("spec.nothing", ["null", "null", "missing"])]
#[case("spec.nothing == null", TRUE)]
#[case("null == spec.nothing", TRUE)]
#[case("spec.nothing != null", FALSE)]
#[case("status.absent == null", ["missing", "missing", "true"])]
#[case("null == status.absent", ["missing", "missing", "true"])]
#[case("status.absent != null", ["missing", "missing", "false"])]
#[case("status.phase == null", FALSE)]
#[case("status.phase != null", TRUE)]
#[case("null == null", TRUE)]
#[case("null != null", FALSE)]
#[case("spec.nothing == spec.nothing", ["true", "true", "missing"])]
#[case("spec.nothing == status.phase", ["false", "false", "missing"])]
#[case("spec.nothing.deeper", MISSING)]
#[case("spec.nothing.deeper == null", ["missing", "missing", "true"])]
#[case("spec.nothing < 1", [
    "error: line 1, column 14: cannot order null and int",
    "error: line 1, column 14: cannot order null and int",
    "missing",
])]
#[case("spec.holes[1]", ["null", "null", "missing"])]
#[case("spec.holes[1] == null", TRUE)]
#[case("{'a': null}.a", ["null", "null", "missing"])]
#[case("{'a': null}['a']", ["null", "null", "missing"])]
#[case("{'a': null}.a == null", TRUE)]
fn null_in_the_data(#[case] text: &str, #[case] expected: [&str; 3]) {
    means(text, expected);
}

/// The variable of a loop can be null. With SQL's null, nothing equals it.
#[rstest]
#[case("spec.holes.exists(x, x == null)", TRUE)]
#[case("spec.holes.filter(x, x != null)", ["[1]"; 3])]
#[case("spec.holes.map(x, x == null)", ["[false, true]"; 3])]
#[case("spec.holes.all(x, x == 1)", ["false", "false", "missing"])]
#[case("spec.holes.exists(x, x > 1)", [
    "error: line 1, column 24: cannot order null and int",
    "error: line 1, column 24: cannot order null and int",
    "missing",
])]
fn null_in_a_loop(#[case] text: &str, #[case] expected: [&str; 3]) {
    means(text, expected);
}

#[rstest]
#[case("status.?absent.orValue(1)", ["1"; 3])]
#[case("absent.?deeper.orValue(1)", ["missing", "1", "1"])]
#[case("status.absent.?deeper.orValue(1)", ["missing", "1", "1"])]
#[case("status.absent[?0].orValue(1)", ["missing", "1", "1"])]
#[case("spec.nothing.?deeper.orValue(1)", [
    "error: line 1, column 13: cannot read field `deeper` of null", "1", "1"
])]
#[case("spec.?nothing.orValue(1)", ["null", "null", "1"])]
#[case("spec.holes[?1].orValue(1)", ["null", "null", "1"])]
fn optionals(#[case] text: &str, #[case] expected: [&str; 3]) {
    means(text, expected);
}

#[rstest]
#[case("status.absent", "no such key: absent")]
#[case("status.absent.deeper", "no such key: absent")]
#[case("status.conditions[9].type", "index out of bounds: 9")]
#[case("absent.deeper", "no such attribute(s): absent.deeper")]
#[case("{'a': 1}.b", "no such key: b")]
#[case("{'a': 1}[2]", "no such key: 2")]
fn names_of_missing_fields(#[case] text: &str, #[case] expected: &str) {
    for absence in [Absence::AsInCel, Absence::NotYet, Absence::Null] {
        assert_eq!(of_widget(text, absence), format!("missing: {expected}"), "{text}");
    }
}

/// Operands with the three truth values of SQL: true, false and null.
const TRUTHS: [(&str, Option<bool>); 4] = [
    ("propagation.found", Some(true)),
    ("propagation.stale", Some(false)),
    ("propagation.progress", None),
    ("propagation.observedGeneration", None),
];

#[track_caller]
fn truth_of_row(text: &str) -> Option<bool> {
    match of_row(&Program::cel(text, &Scope::row()).expect(text)).as_str() {
        "true" => Some(true),
        "false" => Some(false),
        other => {
            assert!(other.starts_with("missing: "), "{text}: {other}");
            None
        }
    }
}

#[test]
fn truth_tables_of_a_row() {
    for (left, a) in TRUTHS {
        assert_eq!(truth_of_row(&format!("!{left}")), a.map(|a| !a), "!{left}");
        for (right, b) in TRUTHS {
            let both = match (a, b) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (Some(true), Some(true)) => Some(true),
                _ => None,
            };
            let either = match (a, b) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            };
            let equal = a.zip(b).map(|(a, b)| a == b);
            for (sign, expected) in
                [("&&", both), ("||", either), ("==", equal), ("!=", equal.map(|equal| !equal))]
            {
                let text = format!("{left} {sign} {right}");
                assert_eq!(truth_of_row(&text), expected, "{text}");
            }
        }
    }
}

/// A column has no value if its cluster never reported.
#[test]
fn a_row_without_a_report() {
    use bellwether_expr::{Val, Variables};

    let row = Variables(vec![None, Some(Val::Null), None]);
    for (text, expected) in [
        ("has(returned.status)", "false"),
        ("returned.status == null", "true"),
        ("returned == null", "true"),
        ("obj == null", "true"),
        ("has(obj.spec.replicas)", "false"),
        ("propagation.found", "missing: no such key: found"),
        ("propagation != null", "false"),
    ] {
        let program = Program::cel(text, &Scope::row()).expect(text);
        assert_eq!(crate::sample::result(&program, &row), expected, "{text}");
    }
}
