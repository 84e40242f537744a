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

#[test]
fn standard_input() {
    let text = include_str!("lint/application.json");
    for arguments in [&["-"] as &[&str], &[]] {
        let mut child = command(arguments);
        let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().expect("the binary runs");
        child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
        let run = Run::from(child.wait_with_output().expect("it ends"));
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
