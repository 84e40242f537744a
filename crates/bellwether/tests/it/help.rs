//! Help, version and invalid usage.

use insta::assert_snapshot;

use crate::run;

#[test]
fn without_a_command() {
    assert_snapshot!(run(&[]));
}

#[test]
fn help() {
    assert_snapshot!(run(&["--help"]));
}

#[test]
fn help_of_groups() {
    for command in ["status", "tree", "wait", "whose", "adopt", "lint"] {
        assert_snapshot!(format!("help_of_{command}"), run(&[command, "--help"]));
    }
}

#[test]
fn help_of_assess() {
    assert_snapshot!(run(&["assess", "--help"]));
}

#[test]
fn help_of_explain() {
    assert_snapshot!(run(&["explain", "--help"]));
}

#[test]
fn help_of_rules() {
    assert_snapshot!(run(&["rules", "--help"]));
    assert_snapshot!("help_of_rules_lint", run(&["rules", "lint", "--help"]));
    assert_snapshot!("help_of_rules_test", run(&["rules", "test", "--help"]));
}

#[test]
fn help_of_controller() {
    assert_snapshot!(run(&["controller", "--help"]));
}

#[test]
fn help_of_crds() {
    assert_snapshot!(run(&["crds", "--help"]));
}

#[test]
fn help_of_completions() {
    assert_snapshot!(run(&["completions", "--help"]));
}

#[test]
fn help_is_a_command() {
    assert_eq!(run(&["help", "status"]).stdout, run(&["status", "--help"]).stdout);
}

#[test]
fn version() {
    let run = run(&["--version"]);
    assert_eq!(run.stdout, format!("bellwether {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn unknown_command() {
    assert_snapshot!(run(&["crd"]));
}

#[test]
fn unknown_format() {
    assert_snapshot!(run(&["crds", "-o", "table"]));
}
