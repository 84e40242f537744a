//! `bellwether lint`.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use insta::assert_snapshot;
use rstest::rstest;

use crate::{Run, bellwether};

/// The command in the directory with the test files.
fn command(arguments: &[&str]) -> Command {
    let mut command = bellwether(&["lint"]);
    command.args(arguments).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/lint"));
    command
}

#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn lint(arguments: &[&str]) -> Run {
    command(arguments).output().expect("the binary runs").into()
}

#[test]
fn valid_objects() {
    assert_snapshot!(lint(&["-f", "good.yaml"]));
}

/// Errors that the API server would find too, in several documents of a file.
#[test]
fn errors_of_every_type_have_a_line() {
    assert_snapshot!(lint(&["invalid.yaml"]));
}

/// Errors that the API server does not find.
#[test]
fn errors_beyond_the_schema() {
    assert_snapshot!(lint(&["ours.yaml"]));
}

#[test]
fn json_has_lines_too() {
    assert_snapshot!(lint(&["application.json"]));
}

/// In a YAML list, a JSON list and a typed list.
#[test]
fn items_of_lists_have_lines_too() {
    assert_snapshot!(lint(&["list.yaml"]));
}

#[test]
fn a_broken_document_does_not_hide_the_others() {
    assert_snapshot!(lint(&["broken.yaml"]));
}

#[test]
fn a_directory() {
    assert_snapshot!(lint(&["several"]));
}

#[test]
fn errors_as_json() {
    assert_snapshot!(lint(&["ours.yaml", "good.yaml", "-o", "json"]));
    assert_snapshot!("lint_errors_as_yaml", lint(&["application.json", "-o", "yaml"]));
}

#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn lint_input(arguments: &[&str], text: &str) -> Run {
    let mut child = command(arguments);
    let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().expect("the binary runs");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends").into()
}

#[test]
fn standard_input() {
    let text = include_str!("lint/application.json");
    for arguments in [&["-"] as &[&str], &[]] {
        let run = lint_input(arguments, text);
        assert_eq!(run.code, Some(1), "{run}");
        assert!(
            run.stdout.contains("\n    stdin:14: spec.ownership: unsupported value \"Own\": must be one of "),
            "{run}"
        );
    }
}

#[rstest]
#[case::nothing_of_ours("../adopt/shop.yaml", "no objects of bellwether.dev in ../adopt/shop.yaml")]
#[case::nowhere("nowhere.yaml", "cannot read nowhere.yaml: no such file")]
#[case::no_objects(
    "several/notes.txt",
    "several/notes.txt:1: not a Kubernetes object: apiVersion and kind missing"
)]
fn input_that_cannot_be_checked(#[case] file: &str, #[case] error: &str) {
    let run = lint(&[file]);
    let expected = format!("error: {error}\n");
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(2), "", expected.as_str()));
}

/// An object of our kinds may disappear in one of another kind if `---` is missing.
#[test]
fn duplicate_keys_of_other_kinds_are_errors() {
    let application = include_str!("lint/good.yaml").split("---").next().unwrap_or_default();
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    let run = lint_input(
        &["-"],
        &format!("{service}apiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\n---\n{application}"),
    );
    assert!(run.stdout.ends_with("1 object, valid.\n"), "{run}");
    let error =
        "error: stdin:4: invalid YAML: duplicate key \"apiVersion\"; separate objects with a line of ---\n";
    assert_eq!((run.code, run.stderr.as_str()), (Some(2), error));
}

#[test]
fn metadata_has_lines_too() {
    let text = "apiVersion: bellwether.dev/v1alpha1\nkind: Application\nmetadata:\n  name: x\n  label: {}\n  labels:\n    \
                a: b\n    x: 1\nspec: {selector: {matchLabels: {a: b}}, componentKinds: [{kind: Pod}]}\n";
    let run = lint_input(&["-"], text);
    assert_eq!(
        run.stdout,
        "✗ Application x (stdin:1)\n    stdin:5: metadata.label: unknown field \"label\" (did you mean \"labels\"?)\n    \
         stdin:8: metadata.labels.x: must be a string, not a number\n1 object, 1 invalid.\n"
    );
}

#[rstest]
#[case(
    "StatusCollector",
    "limit: 100000000000000000000",
    "must be a 64-bit integer, not 100000000000000000000"
)]
#[case("StatusCollector", "limit: 1.5", "must be an integer, not 1.5")]
#[case("BindingPolicy", "stalenessThreshold: -5s", "invalid duration \"-5s\": write 90s, 5m or 1h30m")]
#[case("BindingPolicy", "stalenessThreshold: 0s", "must be greater than 0s: write a duration such as 120s")]
#[case("BindingPolicy", "stalenessThreshold: 99999999999999h", "too large: a number has at most 9 digits")]
fn numbers_and_durations(#[case] kind: &str, #[case] field: &str, #[case] expected: &str) {
    let text = format!(
        "apiVersion: bellwether.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: a}}\nspec:\n  {field}\n"
    );
    let run = lint_input(&["-"], &text);
    let name = field.split(':').next().unwrap_or_default();
    assert!(run.stdout.contains(&format!("    stdin:5: spec.{name}: {expected}\n")), "{run}");
}

/// As for `assess`: an empty list has nothing wrong, no input at all is an error.
#[rstest]
#[case::an_empty_list("apiVersion: v1\nkind: List\nitems: []\n", 0, "No objects found.\n", "")]
#[case::nothing("", 2, "", "error: no objects in stdin\n")]
fn without_objects(#[case] text: &str, #[case] code: i32, #[case] stdout: &str, #[case] stderr: &str) {
    let run = lint_input(&["-"], text);
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(code), stdout, stderr));
}

/// The documentation refers to the examples.
#[test]
fn the_examples_are_valid() {
    let examples = "../../../../../examples";
    let wordpress = format!("{examples}/wordpress");
    let rule = format!("{examples}/rules/widgets.yaml");
    let run = lint(&[&wordpress, &rule]);
    // The Application wordpress has two variants.
    let is_variant =
        |line: &str| line.contains("wordpress.yaml:2: duplicate Application \"wordpress\": also in ");
    assert!(run.code == Some(0) && run.stderr.lines().all(is_variant), "{run}");
}

/// A duplicate is an error in one file and a note in two, which may be for two clusters.
#[test]
fn duplicates_and_cycles() {
    assert_snapshot!(lint(&["together.yaml", "several/a.yaml", "./several/a.yaml"]));
}

/// Unknown collectors, clauses that match everything, selectors that match nothing.
#[test]
fn policies() {
    assert_snapshot!(lint(&["policy.yaml"]));
}

/// Every error of every expression, in both forms, with the place.
#[test]
fn collectors() {
    assert_snapshot!(lint(&["../query/invalid.yaml"]));
    assert_snapshot!("lint_collectors_as_json", lint(&["../query/invalid.yaml", "-o", "json"]));
}

/// Names that nothing has, and operations that are never true.
#[test]
fn typos_in_collectors() {
    assert_snapshot!("lint_typos", lint(&["../query/typos.yaml"]));
}

/// Skipped like any other object, but with the way out.
#[test]
fn objects_of_kubestellar() {
    assert_snapshot!("lint_kubestellar", lint(&["../query/kubestellar.yaml"]));
    assert_snapshot!("lint_kubestellar_beside_ours", lint(&["../query/kubestellar.yaml", "several/a.yaml"]));
}

/// The examples of the first draft of the kind, as they stand.
#[test]
fn collectors_of_the_first_draft() {
    assert_snapshot!(lint(&["../query/seed.yaml"]));
}

/// A slip in an object that is otherwise complete, beside an error.
#[test]
fn slips_in_complete_objects() {
    let collector = "apiVersion: bellwether.dev/v1alpha1\nkind: StatusCollector\nmetadata: {name: a}\nspec:\n  name: b\n  \
                     select: inventory.name\n";
    let run = lint_input(&["-"], collector);
    assert_snapshot!("lint_slips", run);
    let run = lint_input(&["-"], &format!("{collector}  filter: inventory.nam = 1\n"));
    assert_eq!(run.code, Some(1), "{run}");
    assert!(run.stdout.contains("    stdin:7: spec.filter, line 1, column 15: "), "{run}");
    assert!(!run.stdout.contains("Corrected"), "{run}");
}

#[test]
fn the_library_of_collectors_is_valid() {
    let run = lint(&["../../../../../deploy/collectors"]);
    assert!(run.code == Some(0) && run.stderr.is_empty(), "{run}");
}
