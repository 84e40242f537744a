//! `bellwether lint`: what is wrong with objects of our kinds, and on which lines.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use insta::assert_snapshot;
use rstest::rstest;

use crate::{Run, bellwether};

/// The command among the files of these tests.
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
fn nothing_wrong() {
    assert_snapshot!(lint(&["-f", "good.yaml"]));
}

/// What the API server would refuse, in several documents of a file.
#[test]
fn every_sort_of_fault_has_its_line() {
    assert_snapshot!(lint(&["faults.yaml"]));
}

/// What the API server would let pass.
#[test]
fn what_only_we_can_tell() {
    assert_snapshot!(lint(&["ours.yaml"]));
}

#[test]
fn json_has_lines_too() {
    assert_snapshot!(lint(&["application.json"]));
}

/// Of a YAML list, of a JSON list, and of one whose items need not say their kind.
#[test]
fn so_have_the_items_of_lists() {
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
fn faults_for_programs() {
    assert_snapshot!(lint(&["ours.yaml", "good.yaml", "-o", "json"]));
    assert_snapshot!("lint_for_programs_as_yaml", lint(&["application.json", "-o", "yaml"]));
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
        assert!(run.stdout.contains("\n    standard input:14: spec.ownership: `Own` is none of "), "{run}");
    }
}

#[rstest]
#[case::nothing_of_ours(
    "../adopt/shop.yaml",
    "there is no object of Bellwether's kinds in ../adopt/shop.yaml"
)]
#[case::nowhere("nowhere.yaml", "cannot read nowhere.yaml: No such file or directory (os error 2)")]
#[case::no_objects(
    "several/notes.txt",
    "several/notes.txt, document 1, line 1: it has neither apiVersion nor kind, so it is no Kubernetes object"
)]
fn what_cannot_be_looked_at(#[case] file: &str, #[case] error: &str) {
    let run = lint(&[file]);
    let expected = format!("error: {error}\n");
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (Some(2), "", expected.as_str()));
}

/// The documentation says how to use them.
#[test]
fn the_examples_are_right() {
    let examples = "../../../../../examples";
    let wordpress = format!("{examples}/wordpress");
    let rule = format!("{examples}/rules/widgets.yaml");
    let run = lint(&[&wordpress, &rule]);
    // One of them is there in two ways, to choose from.
    let is_choice = |line: &str| line.contains("wordpress.yaml:2: the same Application is also in ");
    assert!(run.code == Some(0) && run.stderr.lines().all(is_choice), "{run}");
}

/// A cluster has only the one that was applied last. What is in two files may be meant for two clusters.
#[test]
fn of_two_that_are_one_for_a_cluster() {
    assert_snapshot!(lint(&["together.yaml", "several/a.yaml", "./several/a.yaml"]));
}
