//! Output for Rollups with conditions to report although they are Ready, with invalid specs, and with many
//! components.

use std::{fmt::Write as _, process::Command};

use insta::assert_snapshot;
use rstest::rstest;
use serde_json::{Value, json};

use super::on;
use crate::{NOW, Run, bellwether, terminal::on_a_terminal};

/// The command on a file of the directory `rollup_conditions`, at [`NOW`].
fn about(file: &str, arguments: &[&str]) -> Command {
    let mut command = bellwether(arguments);
    command
        .args(["--from", &format!("rollup_conditions/{file}.yaml"), "--now", NOW])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it"));
    command
}

#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn run(file: &str, arguments: &[&str]) -> Run {
    about(file, arguments).output().expect("the binary runs").into()
}

#[expect(clippy::expect_used, reason = "the binary prints JSON if it is asked to")]
fn as_json(file: &str, arguments: &[&str]) -> Value {
    serde_json::from_str(&run(file, &[arguments, &["-o", "json"]].concat()).stdout).expect("JSON")
}

#[rstest]
#[case::held_back("held", &["status", "gizmos"])]
#[case::held_back_in_a_list("held", &["status"])]
#[case::held_back_during_wait("held", &["wait", "gizmos"])]
#[case::worst_is_false("worst_is_false", &["status", "gizmos"])]
#[case::worst_is_false_in_a_list("worst_is_false", &["status"])]
#[case::invalid_entry("itself", &["status", "gizmos", "--all"])]
#[case::invalid_entry_in_a_tree("itself", &["tree", "gizmos"])]
#[case::invalid_entry_as_json("itself", &["tree", "gizmos", "-o", "json"])]
#[case::invalid_entry_has_no_name("itself", &["tree", "gizmos", "-o", "name"])]
#[case::not_upgradeable("objection", &["status", "gizmos", "--all"])]
#[case::not_upgradeable_in_a_list("objection", &["status"])]
fn conditions_and_entries(#[case] file: &str, #[case] arguments: &[&str]) {
    assert_snapshot!(format!("{file}_{}", arguments.join("_")), run(file, arguments));
}

#[test]
fn json_has_held_until() {
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
fn json_has_upgradeable() {
    let rollup = as_json("objection", &["status", "gizmos"]);
    let upgradeable = ["two", "one"].map(|name| {
        let mut objects = rollup["objects"].as_array().into_iter().flatten();
        objects.find(|it| it["name"] == name).map(|it| it["upgradeable"].clone())
    });
    assert_eq!(upgradeable, [Some(json!("False")), Some(Value::Null)], "{rollup:#}");
}

#[test]
fn json_has_the_path_of_an_invalid_entry() {
    let rollup = as_json("itself", &["status", "gizmos"]);
    let entry = &rollup["objects"][0];
    assert_eq!((&entry["name"], &entry["entry"]), (&Value::Null, &json!("spec.components[1]")), "{rollup:#}");
}

/// Gizmos whose names and messages fill a condition.
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

#[test]
fn long_condition_messages_are_shortened() {
    let page = on(&many(), &["status", "gizmos"]);
    let (because, _) = page.stdout.split_once("\n  1  Gizmo/").unwrap_or_default();
    assert!(because.lines().count() <= 13 && because.contains("; and more\n"), "{page}");
    let wide = on(&many(), &["status", "gizmos", "-o", "wide"]);
    assert!(!wide.stdout.contains("; and more\n"), "not with -o wide: {wide}");
}

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
            let (page, _) = page.split_once("  Next:\n").unwrap_or((&page, ""));
            assert!(page.contains("gizmos") && page.lines().all(is_narrow), "{file}: {page}");
        }
    }
}

#[test]
fn colours_do_not_change_line_breaks() {
    let page = |name: &str, value: &str| {
        let mut command = about("held", &["status", "gizmos"]);
        command.env("TERM", "xterm-256color").env(name, value);
        on_a_terminal(&mut command, 60).stdout
    };
    let coloured = page("CLICOLOR", "1");
    assert!(coloured.contains(": \u{1b}[32mReady\u{1b}[0m for "), "{coloured}");
    assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), page("NO_COLOR", "1"));
}
