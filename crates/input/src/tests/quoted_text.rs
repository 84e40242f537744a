//! Quoted text that goes on with less indentation.

use proptest::prelude::*;
use rstest::rstest;

use super::{A, FRAGMENTS, found, list};
use crate::{quoted, yaml};

/// As Go's readers accept it.
#[rstest]
#[case::single("a: 'x\ny'", "x y")]
#[case::double("a: \"x\ny\"", "x y")]
#[case::in_a_list("a:\n  - 'x\n  y'", "[x y]")]
#[case::in_a_compact_list("a:\n- b: 'x\n  y'\n  c: z", "[{b: x y, c: z}]")]
#[case::less_than_its_key("a:\n    b: 'x\n  y\n    z'", "{b: x y z}")]
#[case::after_a_tag("a:\n  b: !!str 'x\n  y'", "{b: x y}")]
#[case::after_an_anchor("a:\n  &b b: &c 'x\n  y'", "{b: x y}")]
#[case::on_the_next_line("a:\n  'x\ny'", "x y")]
#[case::indented_by_a_tab("a: 'x\n\ty'", "x y")]
#[case::with_blank_lines("a: 'x\n\n \ny'", "x\n\ny")]
#[case::with_escaped_quotes("a: 'it''s\na ''b'' # c'", "it's a 'b' # c")]
#[case::with_an_escaped_break("a: \"x\\\n\\ny\\\"\nz\"", "x\ny\" z")]
#[case::that_looks_like_a_field("a: 'x\nkind: List\nitems:\n- y'", "x kind: List items: - y")]
#[case::after_text_with_quotes(
    "a: {b: it's, c: \"}\"}\nb: it's \"so\n  \"x\n# it's\nc: |\n  'x\nd: 'x\ny'",
    "{b: it's, c: '}'}"
)]
#[case::after_a_quoted_key("'a': 'x\ny'", "x y")]
#[case::after_a_list_in_flow("a: ['x\ny', [z,\n{b: c}]]\nb: 'x\ny'", "[x y, [z, {b: c}]]")]
fn quoted_text_may_go_on_with_less_indentation(#[case] text: &str, #[case] value: &str) {
    let text = format!("{A}{text}\n");
    assert_eq!(found(&text), ["v1 Pod a"]);
    let read = yaml::value(&text).unwrap();
    let expected: serde_json::Value =
        if value.starts_with(['[', '{']) { serde_saphyr::from_str(value).unwrap() } else { value.into() };
    assert_eq!(read["a"], expected, "{text}");
}

#[test]
fn quoted_text_may_look_like_the_end_of_an_item() {
    let two = list("- ", "  ").replace("    name: a\n", "    name: a\n    note: 'x\nkind: y\n- z'\n");
    assert_eq!(found(&two), ["v1 Pod a", "v1 Pod b"]);
    let only =
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata: {name: 'a\nb'}\n";
    assert_eq!(found(only), ["v1 Pod a b"]);
}

#[test]
fn errors_after_such_text_keep_their_line() {
    let text = format!("{A}a: 'x\n\ny'\nb: [\n");
    let found = found(&text);
    assert!(
        found[0].starts_with("(8: invalid YAML: ") || found[0].starts_with("(9: invalid YAML: "),
        "{found:?}"
    );
}

/// Many short lines of a deep value must not become many long ones.
#[test]
fn added_indentation_is_limited() {
    let text = format!("{A}{}- 'x{}\n'", " ".repeat(10_000), "\ny".repeat(10_000));
    assert_eq!(quoted::indented(&text), None);
}

/// Fragments with quoted, literal and plain text of several lines.
const QUOTED: &[&str] = &[
    "a: ", "b: ", "- ", "  - ", "    ", "  ", " ", "\n", "\n", "\n  ", "\n    ", "'", "'", "''", "\"", "\"",
    "\\\"", "x", "it's", "y z", "# '", " # \"", "|\n", ">\n", "|2-\n", "[", "]", "{", "}", ", ", "? ", ": ",
    "&a ", "!!str ", "*a", "'a': ", "\"b\": ", "http://c",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// What the parser reads without it, it reads as before, and only the start of lines differs.
    #[test]
    fn indentation_of_quoted_text_changes_no_value(
        text in prop_oneof![
            prop::collection::vec(prop::sample::select(FRAGMENTS), 0..14).prop_map(|text| text.concat()),
            prop::collection::vec(prop::sample::select(QUOTED), 0..10).prop_map(|text| text.concat()),
            "(?s).{0,80}",
        ],
    ) {
        if let Some(indented) = quoted::indented(&text) {
            let lines = |text: &str| text.lines().map(|line| line.trim_start().to_owned()).collect::<Vec<_>>();
            prop_assert_eq!(lines(&indented), lines(&text));
            if let Ok(value) = serde_saphyr::from_str::<serde_json::Value>(&text) {
                let after = serde_saphyr::from_str::<serde_json::Value>(&indented);
                prop_assert_eq!(after.ok(), Some(value), "{:?} {:?}", text, indented);
            }
        }
    }
}
