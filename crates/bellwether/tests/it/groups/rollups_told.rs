//! What people are told of Rollups that are ready, and of which there is more to be said; and of those of which there is too
//! much.

use std::{fmt::Write as _, process::Command};

use insta::assert_snapshot;
use rstest::rstest;
use serde_json::{Value, json};

use super::on;
use crate::{NOW, Run, bellwether, terminal::on_a_terminal};

/// The command about the Rollup of a file, at the time of these tests.
fn about(file: &str, arguments: &[&str]) -> Command {
    let mut command = bellwether(arguments);
    command
        .args(["--from", &format!("told/{file}.yaml"), "--now", NOW])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it"));
    command
}

#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn told(file: &str, arguments: &[&str]) -> Run {
    about(file, arguments).output().expect("the binary runs").into()
}

#[expect(clippy::expect_used, reason = "the binary prints JSON if it is asked to")]
fn as_json(file: &str, arguments: &[&str]) -> Value {
    serde_json::from_str(&told(file, &[arguments, &["-o", "json"]].concat()).stdout).expect("JSON")
}

#[rstest]
#[case::held_back("held", &["status", "gizmos"])]
#[case::held_back_in_a_list("held", &["status"])]
#[case::held_back_while_somebody_waits("held", &["wait", "gizmos"])]
#[case::worst_is_false("worst_is_false", &["status", "gizmos"])]
#[case::worst_is_false_in_a_list("worst_is_false", &["status"])]
#[case::not_understood("itself", &["status", "gizmos", "--all"])]
#[case::not_understood_in_a_tree("itself", &["tree", "gizmos"])]
#[case::not_understood_as_json("itself", &["tree", "gizmos", "-o", "json"])]
#[case::not_understood_has_no_name("itself", &["tree", "gizmos", "-o", "name"])]
#[case::an_objection("objection", &["status", "gizmos", "--all"])]
#[case::an_objection_in_a_list("objection", &["status"])]
fn more_than_ready(#[case] file: &str, #[case] arguments: &[&str]) {
    assert_snapshot!(format!("{file}_{}", arguments.join("_")), told(file, arguments));
}

/// Programs need not read sentences.
#[test]
fn what_is_held_back_for_programs() {
    let rollup = as_json("held", &["status", "gizmos"]);
    assert_eq!((&rollup["state"], &rollup["health"]), (&json!("Ready"), &json!("Healthy")), "{rollup:#}");
    let condition = |kind: &str| {
        let mut conditions = rollup["conditions"].as_array().into_iter().flatten();
        conditions.find(|it| it["type"] == kind).cloned().unwrap_or_default()
    };
    for kind in ["Available", "Degraded"] {
        assert_eq!(condition(kind)["heldUntil"], "2026-11-14T12:01:30Z", "{rollup:#}");
        assert_eq!(condition(kind)["since"], "2026-11-14T09:10:00Z", "{rollup:#}");
    }
    assert_eq!(condition("Progressing")["heldUntil"], Value::Null, "{rollup:#}");
}

#[test]
fn objections_for_programs() {
    let rollup = as_json("objection", &["status", "gizmos"]);
    let said = ["two", "one"].map(|name| {
        let mut objects = rollup["objects"].as_array().into_iter().flatten();
        objects.find(|it| it["name"] == name).map(|it| it["upgradeable"].clone())
    });
    assert_eq!(said, [Some(json!("False")), Some(Value::Null)], "{rollup:#}");
}

#[test]
fn what_nobody_understands_is_no_object_for_programs() {
    let rollup = as_json("itself", &["status", "gizmos"]);
    let entry = &rollup["objects"][0];
    assert_eq!((&entry["name"], &entry["entry"]), (&Value::Null, &json!("spec.components[1]")), "{rollup:#}");
}

/// So many Gizmos that a condition that names them is as long as one may be.
fn many() -> String {
    let mut objects =
        "{apiVersion: bellwether.dev/v1alpha1, kind: Rollup, metadata: {name: gizmos}, spec: {components: \
                       [{group: acme.io, kind: Gizmo, selector: {}}]}}\n"
            .to_owned();
    for number in 0..200 {
        let _ = writeln!(
            objects,
            "---\n{{apiVersion: acme.io/v1, kind: Gizmo, metadata: {{name: gizmo-{number}, namespace: works}}, status: \
             {{conditions: [{{type: Available, status: 'False', reason: Jammed, message: a cog is jammed}}, {{type: \
             Progressing, status: 'False', reason: Jammed}}, {{type: Degraded, status: 'True', reason: Jammed}}]}}}}"
        );
    }
    objects
}

/// Each of them is told below, the worst first.
#[test]
fn a_page_is_no_wall_of_text() {
    let page = on(&many(), &["status", "gizmos"]);
    let (because, _) = page.stdout.split_once("\n  1  Gizmo ").unwrap_or_default();
    assert!(because.lines().count() <= 13 && because.contains("; and more\n"), "{page}");
    let wide = on(&many(), &["status", "gizmos", "-o", "wide"]);
    assert!(!wide.stdout.contains("; and more\n"), "who wants it whole has it: {wide}");
}

/// Names may be as long as four lines of a terminal.
#[rstest]
#[case(60)]
#[case(80)]
fn a_list_of_long_names_fits(#[case] columns: u16) {
    let name = format!("{}-the-end", "long".repeat(61));
    let objects = format!(
        "{{apiVersion: bellwether.dev/v1alpha1, kind: Rollup, metadata: {{name: {name}}}, spec: {{components: [{{group: \
         acme.io, kind: Gizmo, name: {name}}}]}}}}"
    );
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("objects.yaml"), objects).expect("a file");
    let mut command = bellwether(&["status", "--from"]);
    command.arg(directory.path()).env("NO_COLOR", "1");
    let list = on_a_terminal(&mut command, columns).stdout;
    let is_narrow = |line: &str| line.chars().count() <= usize::from(columns);
    assert!(list.lines().all(is_narrow) && list.contains("…") && list.contains("end  "), "{list}");
}

#[rstest]
#[case(60)]
#[case(80)]
fn pages_fit_on_narrow_screens(#[case] columns: u16) {
    let is_narrow = |line: &str| line.chars().count() <= usize::from(columns);
    for file in ["held", "objection", "itself", "worst_is_false"] {
        for arguments in [&["status", "gizmos", "--all"][..], &["status", "gizmos"], &["status"]] {
            let page = on_a_terminal(about(file, arguments).env("NO_COLOR", "1"), columns).stdout;
            assert!(page.contains("rollup/gizmos ") && page.lines().all(is_narrow), "{file}: {page}");
        }
    }
}

/// A word of a colour is as wide as one without.
#[test]
fn a_sentence_in_colours_is_broken_where_it_is_without() {
    let page = |name: &str, value: &str| {
        let mut command = about("held", &["status", "gizmos"]);
        command.env("TERM", "xterm-256color").env(name, value);
        on_a_terminal(&mut command, 60).stdout
    };
    let coloured = page("CLICOLOR", "1");
    assert!(coloured.contains("\u{1b}[32mhas\u{1b}[0m"), "{coloured}");
    assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), page("NO_COLOR", "1"));
}
