//! Texts, and the objects and errors in them.

mod quoted_text;

use bellwether_model::{Object, Plan};
use proptest::prelude::*;
use rstest::rstest;

use super::{Origin, Reading, json, read_text, split};

/// The objects as `version Kind name` and the errors as printed, in order.
fn found(text: &str) -> Vec<String> {
    found_in(text, false)
}

fn found_in(text: &str, json_lines: bool) -> Vec<String> {
    found_by(text, json_lines, false)
}

fn found_by(text: &str, json_lines: bool, accepts_duplicate_keys: bool) -> Vec<String> {
    let reading =
        Reading { plan: &Plan::everything(), visit: &name, kind_of_bare: None, accepts_duplicate_keys };
    let (_, found) = read_text(text, json_lines, &reading);
    found.into_iter().map(|entry| entry.unwrap_or_else(|error| format!("({error})"))).collect()
}

fn name(object: &Object<'_>, origin: Origin<'_>) -> String {
    let keys = if origin.duplicate_keys { " with duplicate keys" } else { "" };
    format!("{} {} {}{keys}", object.api_version(), object.kind(), object.name())
}

const A: &str = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n";
const B: &str = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: b\n";

#[rstest]
#[case::one(A.to_owned())]
#[case::marked(format!("---\n{A}"))]
#[case::ended(format!("{A}...\n"))]
#[case::with_a_directive(format!("%YAML 1.2\n---\n{A}"))]
#[case::with_comments(format!("# first\n\n---\n# second\n{A}---\n# third\n"))]
#[case::with_windows_lines(A.replace('\n', "\r\n"))]
#[case::without_a_last_line(A.trim_end().to_owned())]
#[case::in_flow("{apiVersion: v1, kind: Pod, metadata: {name: a}}".to_owned())]
#[case::in_flow_on_the_marker("--- {apiVersion: v1, kind: Pod, metadata: {name: a}}".to_owned())]
#[case::indented("  apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n".to_owned())]
#[case::quoted("\"apiVersion\": \"v1\"\n\"kind\": 'Pod'\nmetadata: {name: \"a\"}\n".to_owned())]
#[case::json(r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#.to_owned())]
#[case::json_of_many_lines("{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"Pod\",\n  \"metadata\": {\n    \"name\": \"a\"\n  }\n}\n".to_owned())]
#[case::kind_last(r#"{"metadata":{"name":"a"},"kind":"Pod","apiVersion":"v1"}"#.to_owned())]
#[case::a_number_without_end(format!("{A}spec:\n  commit: 12e99999\n"))]
fn one_object_in_many_ways(#[case] text: String) {
    assert_eq!(found(&text), ["v1 Pod a"]);
}

#[rstest]
#[case::documents(format!("{A}---\n{B}"))]
#[case::documents_of_json("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}\n---\n{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"b\"}}".to_owned())]
#[case::json_lines("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}}\n{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"b\"}}\n".to_owned())]
#[case::json_in_a_row("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\"}} {\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"b\"}}".to_owned())]
#[case::a_list(list("- ", "  "))]
#[case::a_list_with_indented_items(list("  - ", "    "))]
#[case::a_list_with_dashes_apart(list("-\n  ", "  "))]
#[case::a_list_with_its_kind_first(format!("kind: List\n{}", list("- ", "  ").replace("\nkind: List\n", "\n")))]
#[case::a_list_in_flow("{kind: List, apiVersion: v1, items: [{apiVersion: v1, kind: Pod, metadata: {name: a}}, {apiVersion: v1, kind: Pod, metadata: {name: b}}]}".to_owned())]
#[case::a_list_of_json(r#"{"apiVersion":"v1","items":[{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}},{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}}],"kind":"List"}"#.to_owned())]
#[case::a_typed_list("apiVersion: v1\nitems:\n- metadata:\n    name: a\n- metadata:\n    name: b\nkind: PodList\n".to_owned())]
#[case::a_typed_list_of_json(r#"{"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"b"}}],"apiVersion":"v1","kind":"PodList"}"#.to_owned())]
#[case::a_list_whose_items_point_to_one_another("apiVersion: v1\nkind: List\nitems:\n- &a\n  apiVersion: v1\n  kind: Pod\n  metadata: {name: a}\n- <<: *a\n  metadata: {name: b}\n".to_owned())]
fn two_objects_in_many_ways(#[case] text: String) {
    assert_eq!(found(&text), ["v1 Pod a", "v1 Pod b"]);
}

/// A list as kubectl prints it: `kind` follows the items.
fn list(dash: &str, indent: &str) -> String {
    let item = |object: &str| {
        object.lines().enumerate().fold(String::new(), |item, (index, line)| {
            format!("{item}{}{line}\n", if index == 0 { dash } else { indent })
        })
    };
    format!("apiVersion: v1\nitems:\n{}{}kind: List\nmetadata:\n  resourceVersion: \"\"\n", item(A), item(B))
}

#[test]
fn text_that_looks_like_a_document_or_an_item_is_text() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: a\n  \
                other: |\n    ---\n    kind: Pod\n    - item\n\n    ...\n  quoted: \"one\n    - two\"\n- apiVersion: v1\n  \
                kind: ConfigMap\n  metadata:\n    name: b\n";
    assert_eq!(found(text), ["v1 ConfigMap a", "v1 ConfigMap b"]);
}

#[rstest]
#[case::nothing("")]
#[case::blank(" \n\n")]
#[case::comments("# nothing\n---\n# here\n")]
#[case::a_list("apiVersion: v1\nitems: []\nkind: List\n")]
#[case::a_list_of_null("apiVersion: v1\nitems: null\nkind: PodList\n")]
#[case::a_list_of_json(r#"{"apiVersion":"v1","items":[],"kind":"List"}"#)]
fn no_objects(#[case] text: &str) {
    assert_eq!(found(text), [""; 0]);
}

#[rstest]
#[case::not_a_list_by_its_kind(
    "apiVersion: acme.io/v1\nkind: Basket\nmetadata: {name: a}\nitems:\n- apple\n",
    "acme.io/v1 Basket a"
)]
#[case::not_a_list_for_want_of_items(
    "apiVersion: acme.io/v1\nkind: AllowList\nmetadata: {name: a}\n",
    "acme.io/v1 AllowList a"
)]
#[case::not_a_list_in_json(
    r#"{"apiVersion":"acme.io/v1","kind":"AllowList","metadata":{"name":"a"},"items":{"a":1}}"#,
    "acme.io/v1 AllowList a"
)]
fn objects_that_look_like_lists(#[case] text: &str, #[case] object: &str) {
    assert_eq!(found(text), [object]);
}

#[rstest]
#[case::text("just text\n", "(1: not a Kubernetes object: expected a map, found a string)")]
#[case::a_number("---\n# the answer\n42\n", "(3: not a Kubernetes object: expected a map, found a number)")]
#[case::a_list("- a\n- b\n", "(1: not a Kubernetes object: expected a map, found a list)")]
#[case::a_list_of_json("[1, 2]", "(1: not a Kubernetes object: expected a map, found a list)")]
#[case::values("replicas: 3\nimage: web\n", "(1: not a Kubernetes object: apiVersion and kind missing)")]
#[case::no_kind("apiVersion: v1\n", "(1: not a Kubernetes object: kind missing)")]
#[case::no_version("kind: Pod\n", "(1: not a Kubernetes object: apiVersion missing)")]
#[case::a_kind_of_a_wrong_type("apiVersion: v1\nkind: 5\n", "(1: not a Kubernetes object: kind missing)")]
#[case::an_item_of_any_kind(
    "apiVersion: v1\nkind: List\nitems:\n- metadata: {name: a}\n",
    "(4: not a Kubernetes object: apiVersion and kind missing)"
)]
#[case::an_item_that_is_not_an_object(
    "{\"kind\":\"List\",\"items\":[7]}",
    "(1 (item 1): not a Kubernetes object: expected a map, found a number)"
)]
fn not_an_object(#[case] text: &str, #[case] error: &str) {
    assert_eq!(found(text), [error]);
}

/// Usually `---` is missing: the objects must not become one.
#[rstest]
#[case::of_an_object(
    format!("{A}{B}"),
    &["(5: invalid YAML: duplicate key \"apiVersion\"; separate objects with a line of ---)"],
    "v1 Pod b with duplicate keys"
)]
#[case::of_a_field(
    format!("{A}  name: b\n"),
    &["(5: invalid YAML: duplicate key \"name\")"],
    "v1 Pod b with duplicate keys"
)]
#[case::of_a_field_that_is_not_read(
    format!("{A}spec: {{a: [{{b: 1, b: 2}}]}}\n"),
    &["(5: invalid YAML: duplicate key \"b\")"],
    "v1 Pod a with duplicate keys"
)]
#[case::of_an_object_before_a_list(
    format!("{A}{}", list("- ", "  ")),
    &["(5: invalid YAML: duplicate key \"apiVersion\"; separate objects with a line of ---)"],
    "v1 Pod a with duplicate keys, v1 Pod b with duplicate keys"
)]
#[case::of_an_item(
    list("- ", "  ").replace("    name: b\n", "    name: b\n  kind: Node\n"),
    &["v1 Pod a", "(11: invalid YAML: duplicate key \"kind\"; separate objects with a line of ---)"],
    "v1 Pod a, v1 Node b with duplicate keys"
)]
fn duplicate_keys(#[case] text: String, #[case] found: &[&str], #[case] accepted: &str) {
    let then = format!("{text}---\n{A}");
    let and_the_next = |found: &[&str]| [found, &["v1 Pod a"]].concat().join(", ");
    assert_eq!(found_in(&then, false).join(", "), and_the_next(found));
    assert_eq!(found_by(&then, false, true).join(", "), and_the_next(&[accepted]));
}

#[test]
fn a_merge_key_is_not_a_duplicate_key() {
    let text = format!("{A}spec: {{base: &base {{a: 1, b: 1}}, own: {{<<: *base, a: 2}}}}\n");
    assert_eq!(found(&text), ["v1 Pod a"]);
}

#[test]
fn unreadable_files() {
    let directory = std::env::temp_dir().join(format!("bellwether-input-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let (file, missing) = (directory.join("binary.yaml"), directory.join("missing.yaml"));
    std::fs::write(&file, b"a: b\nc: \xff\n").unwrap();
    let inputs = [file.clone(), missing.clone()];
    let read = crate::read(&inputs, &Plan::everything(), &|_| ());
    let errors: Vec<_> = read.into_iter().map(|entry| entry.unwrap_err().to_string()).collect();
    std::fs::remove_dir_all(&directory).unwrap();
    let expected = [
        format!("{}:2: not UTF-8", file.display()),
        format!("cannot read {}: no such file", missing.display()),
    ];
    assert_eq!(errors, expected);
}

#[rstest]
#[case::a_value("apiVersion: v1\nkind: Pod\nmetadata:\n  name: {{ .Values.name }}\n")]
#[case::a_block("{{- if .Values.enabled }}\napiVersion: v1\nkind: Pod\n{{- end }}\n")]
fn an_unrendered_template_has_a_hint(#[case] text: &str) {
    let found = found(text);
    assert!(found[0].contains(": invalid YAML: "), "{}", found[0]);
    assert!(
        found[0].contains("; render the template first, for example with helm template)"),
        "{}",
        found[0]
    );
}

#[test]
fn a_broken_document_does_not_hide_the_others() {
    let found = found(&format!("{A}---\nkind: [\napiVersion: v1\n---\n{B}"));
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!((found[0].as_str(), found[2].as_str()), ("v1 Pod a", "v1 Pod b"));
    assert!(found[1].starts_with("(6: invalid YAML: "), "{}", found[1]);
}

#[test]
fn a_broken_item_does_not_hide_the_others() {
    let text = list("- ", "  ").replace("name: a", "name: [a");
    let found = found(&text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("(6: invalid YAML: "), "{}", found[0]);
    assert_eq!(found[1], "v1 Pod b");
}

const LINE_A: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}"#;
const LINE_B: &str = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"}}"#;

#[rstest]
#[case::cut_short("{\"apiVersion\":\"v1\",\"kind\":")]
#[case::no_json("{\"apiVersion\":\"v1\",nonsense}")]
#[case::open_text("{\"apiVersion\":\"v1")]
#[case::not_even_a_brace("nonsense")]
fn a_broken_line_does_not_hide_the_others(#[case] line: &str) {
    let found = found(&format!("{LINE_A}\n{line}\n{LINE_B}\n"));
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!((found[0].as_str(), found[2].as_str()), ("v1 Pod a", "v1 Pod b"));
    assert!(found[1].starts_with("(2: invalid JSON: "), "{}", found[1]);
}

#[test]
fn a_broken_first_line_of_json_lines_needs_the_file_extension() {
    let text = format!("nonsense\n{LINE_A}\n");
    assert_eq!(found_in(&text, true)[1], "v1 Pod a");
    assert_eq!(found(&text).len(), 1);
}

#[test]
fn broken_json_of_many_lines_is_one_error() {
    let broken =
        "{\n  \"apiVersion\": \"v1\",\n  \"kind\": oops,\n  \"metadata\": {\n    \"name\": \"x\"\n  }\n}\n";
    let found = found(&format!("{LINE_A}\n{broken}{LINE_B}\n"));
    assert_eq!(found, ["v1 Pod a", "(4: invalid JSON: expected value)", "v1 Pod b"]);
}

#[test]
fn truncated_json_is_reported_at_its_end() {
    let text = "{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"Pod\"";
    assert_eq!(found(text), ["(3: invalid JSON: EOF while parsing an object)"]);
}

/// Many pieces are parsed in parallel.
#[test]
fn many_documents_keep_their_order() {
    let count = 1000;
    let documents: Vec<_> = (0..count)
        .map(|number| format!("apiVersion: v1\nkind: Pod\nmetadata:\n  name: p{number}\n"))
        .collect();
    let expected: Vec<_> = (0..count).map(|number| format!("v1 Pod p{number}")).collect();
    assert_eq!(found(&documents.join("---\n")), expected);
}

/// Nine aliases of nine aliases of nine…: the parser must not expand them all.
#[test]
fn alias_expansion_is_limited() {
    let mut lines = vec![A.to_owned(), "a0: &a0 [x, x, x, x, x, x, x, x, x]".to_owned()];
    for level in 1..20 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        lines.push(format!("a{level}: &a{level} [{aliases}]"));
    }
    let found = found(&lines.join("\n"));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("invalid YAML: aliases expand to more than 100000 values"), "{}", found[0]);
}

/// A long string counts again for each alias to it.
#[test]
fn alias_expansion_of_strings_is_limited() {
    let text = format!(
        "apiVersion: v1\nkind: Pod\nlong: &long \"{}\\n\"\nmany: [{}]\n",
        "x".repeat(1 << 20),
        vec!["*long"; 90].join(", ")
    );
    let found = found(&text);
    assert!(found[0].contains("invalid YAML: aliases expand to more than 16 MiB"), "{}", found[0]);
}

#[rstest]
#[case::yaml_blocks((0..60).map(|depth| format!("{}a:", " ".repeat(depth))).collect::<Vec<_>>().join("\n"))]
#[case::yaml_flow(format!("a: {}{}\n", "[".repeat(100), "]".repeat(100)))]
fn values_may_nest(#[case] deep: String) {
    assert_eq!(found(&format!("{A}{deep}")), ["v1 Pod a"]);
}

#[rstest]
#[case::yaml(format!("{A}a: {}{}\n", "[".repeat(10_000), "]".repeat(10_000)))]
#[case::yaml_maps(format!("{A}a: {}{}\n", "{a: ".repeat(10_000), "}".repeat(10_000)))]
#[case::json(format!(r#"{{"apiVersion":"v1","kind":{}"#, r#"{"a":["#.repeat(10_000)))]
fn but_only_to_a_limit(#[case] text: String) {
    let found = found(&text);
    assert!(found[0].contains(": invalid "), "{}", found[0]);
}

/// Fragments of YAML, and of lists in particular.
const FRAGMENTS: &[&str] = &[
    "apiVersion: v1\n",
    "kind: List\n",
    "kind: PodList\n",
    "kind: Pod\n",
    "items:\n",
    "items: []\n",
    "- kind: Pod\n",
    "  - ",
    "- ",
    "-\n",
    "  apiVersion: v1\n",
    "  metadata:\n",
    "    name: a\n",
    "  metadata: {name: b}\n",
    " ",
    "  ",
    "\n",
    "a: b\n",
    "a: ",
    "|\n",
    ">-\n",
    "\"",
    "'",
    "[",
    "]",
    "{",
    "}",
    ",",
    "# no\n",
    "&a ",
    "*a\n",
    "? ",
    "!!str ",
    "\t",
    "\r\n",
    "<<: *a\n",
    "é",
    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}",
    "\"kind\": \"List\"\n",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// No text panics. If a document parses as a whole, its pieces give the same objects.
    #[test]
    fn pieces_give_the_same_objects_as_the_whole(
        beginning in prop::sample::select(&["", "kind: List\nitems:\n- kind: Pod\n"][..]),
        fragments in prop::collection::vec(prop::sample::select(FRAGMENTS), 0..14),
    ) {
        let text = format!("{beginning}{}", fragments.concat());
        let reading = Reading { plan: &Plan::everything(), visit: &name, kind_of_bare: None, accepts_duplicate_keys: false };
        let (_, in_pieces) = read_text(&text, false, &reading);
        if let [document] = split::documents(&text).as_slice()
            && !json::looks_like_it(document.text)
            && let Ok(whole) = document.whole().read(&reading)
        {
            let objects = |found: Vec<Result<String, _>>| found.into_iter().map(Result::ok).collect::<Vec<_>>();
            prop_assert_eq!(objects(in_pieces), objects(whole), "{:?}", text);
        }
    }

    #[test]
    fn any_text_is_read_without_panic(text in "(?s).{0,80}", json in any::<bool>()) {
        found_in(&text, json);
        found_in(&format!("{{\"{text}"), json);
    }
}
