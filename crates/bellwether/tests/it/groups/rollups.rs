//! `status`, `tree`, `wait`, `whose` and `explain` for Rollups from files.

use insta::assert_snapshot;
use rstest::rstest;
use serde_json::Value;

use super::on;
use crate::{NOW, Run, bellwether, terminal::on_a_terminal};

/// The command on the directory `operators`, at [`NOW`].
fn operators(arguments: &[&str]) -> std::process::Command {
    let mut command = bellwether(arguments);
    command
        .args(["--from", "operators", "--now", NOW])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it"));
    command
}

#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn run(arguments: &[&str]) -> Run {
    operators(arguments).output().expect("the binary runs").into()
}

fn name(arguments: &[&str]) -> String {
    arguments.join("_").replace('/', "_")
}

/// Rollups are cluster-scoped, so that they are listed for each namespace.
#[rstest]
#[case::table(&["status"])]
#[case::wide(&["status", "-o", "wide"])]
#[case::name(&["status", "-o", "name"])]
#[case::of_a_namespace(&["status", "-n", "disks"])]
#[case::of_a_namespace_without_applications(&["status", "-n", "nowhere"])]
#[case::of_a_type(&["status", "--type", "web"])]
fn status_of_all(#[case] arguments: &[&str]) {
    assert_snapshot!(name(arguments), run(arguments));
}

#[rstest]
#[case::failed(&["status", "rollup/platform"])]
#[case::all(&["status", "rollup/platform", "--all"])]
#[case::wide(&["status", "rollup/platform", "-o", "wide"])]
#[case::json(&["status", "rollup/platform", "-o", "json"])]
#[case::name(&["status", "rollup/platform", "-o", "name"])]
#[case::ready(&["status", "fabrics"])]
#[case::missing(&["status", "spare"])]
#[case::nothing_selected(&["status", "bwru/edge"])]
#[case::nothing_selected_yaml(&["status", "edge", "-o", "yaml"])]
#[case::an_application_of_the_name(&["status", "application/platform"])]
#[case::ambiguous(&["status", "platform"])]
#[case::in_a_namespace(&["status", "disks/platform"])]
#[case::not_found(&["status", "rollups.bellwether.dev/nosuch"])]
#[case::neither(&["status", "nosuch"])]
fn status_of_one(#[case] arguments: &[&str]) {
    assert_snapshot!(name(arguments), run(arguments));
}

#[rstest]
#[case::healthy("healthy", Some(0))]
#[case::upgrading("upgrading", Some(1))]
#[case::degraded("degraded", Some(1))]
fn the_hyperconverged_example(#[case] state: &str, #[case] code: Option<i32>) {
    let file = format!("states/{state}.yaml");
    let mut command = bellwether(&["status", "hyperconverged", "--now", NOW, "--from", &file]);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hyperconverged"));
    let run: Run = command.output().expect("the binary runs").into();
    assert_eq!(run.code, code, "{run}");
    assert_snapshot!(format!("the_hyperconverged_example_{state}"), run);
}

#[rstest]
#[case::failed(&["tree", "rollup/platform"])]
#[case::all(&["tree", "rollup/platform", "--all"])]
#[case::json(&["tree", "rollup/platform", "-o", "json"])]
#[case::name(&["tree", "rollup/platform", "-o", "name"])]
#[case::nothing_selected(&["tree", "edge", "--all"])]
#[case::missing(&["tree", "spare"])]
fn trees(#[case] arguments: &[&str]) {
    assert_snapshot!(name(arguments), run(arguments));
}

#[rstest]
#[case::failed(&["wait", "rollup/platform"])]
#[case::ready(&["wait", "fabrics"])]
#[case::missing(&["wait", "spare"])]
#[case::nothing_selected(&["wait", "edge"])]
#[case::unknown_condition(&["wait", "fabrics", "--for", "settled"])]
fn wait(#[case] arguments: &[&str]) {
    assert_snapshot!(name(arguments), run(arguments));
}

#[rstest]
#[case::named(&["whose", "diskpool/pool"])]
#[case::named_and_selected(&["whose", "fabric/fabric"])]
#[case::via_a_named_component(&["whose", "pod/disk-server-6b9f-q7w"])]
#[case::via_a_cluster_scoped_component(&["whose", "ds/fabric-agent"])]
#[case::json(&["whose", "ds/fabric-agent", "-o", "json"])]
#[case::member_of_an_application(&["whose", "svc/console"])]
#[case::not_a_member(&["whose", "rollup/platform"])]
fn whose(#[case] arguments: &[&str]) {
    assert_snapshot!(name(arguments), run(arguments));
}

#[rstest]
#[case::a_rollup(&["explain", "rollup/fabrics"])]
#[case::a_component(&["explain", "diskpool/pool"])]
fn explain(#[case] arguments: &[&str]) {
    assert_snapshot!(name(arguments), run(arguments));
}

#[test]
fn json_has_applications_and_rollups_apart() {
    let all = serde_json::from_str::<Value>(&run(&["status", "-o", "json"]).stdout).expect("JSON");
    let names = |of: &str| -> Vec<_> {
        all[of].as_array().into_iter().flatten().map(|it| it["name"].clone()).collect()
    };
    assert_eq!(names("applications"), ["platform"]);
    assert_eq!(names("rollups"), ["edge", "fabrics", "platform", "spare"]);
    let edge = &all["rollups"][0];
    assert_eq!(edge["objects"][0]["selector"], "site=edge");
    assert_eq!((&edge["namespace"], &edge["objects"][0]["name"]), (&Value::Null, &Value::Null));
    assert_eq!(all["types"].as_array().map(Vec::len), Some(1), "only Applications have types: {all:#}");
}

#[rstest]
#[case(60)]
#[case(80)]
#[case(130)]
fn lines_fit_on_a_screen(#[case] columns: u16) {
    // The path of a field is not broken.
    let is_narrow =
        |line: &str| line.chars().count() <= usize::from(columns) || !line.trim_start().contains(' ');
    let tree = on_a_terminal(operators(&["tree", "rollup/platform"]).env("NO_COLOR", "1"), columns).stdout;
    assert!(tree.lines().all(is_narrow), "{tree}");
    let one = on_a_terminal(operators(&["status", "rollup/platform"]).env("NO_COLOR", "1"), columns).stdout;
    let (_, causes) = one.split_once("\n\n").unwrap_or_default();
    let (causes, _) = causes.split_once("  Next:\n").unwrap_or((causes, ""));
    assert!(!causes.is_empty() && causes.lines().all(is_narrow), "{one}");
}

/// A name is copied. Messages are cut instead.
#[rstest]
#[case::table(&["status", "rollup/platform", "--all"], &["disks      DiskPool/pool ", "guests     Hypervisor/hypervisor "])]
#[case::tree(
    &["tree", "rollup/platform", "--all"],
    &["─ Pod/disk-server-6b9f-q7w ", "─ DaemonSet/fabric-agent -n net-system "]
)]
#[case::selector(&["tree", "edge"], &["─ Hypervisor (selector site=edge) -n edge "])]
fn names_are_not_cut(#[case] arguments: &[&str], #[case] names: &[&str]) {
    let run = on_a_terminal(operators(arguments).env("NO_COLOR", "1"), 80);
    for name in names {
        assert!(run.stdout.contains(name), "{name}: {run}");
    }
}

/// A Rollup with one component of a kind without a CRD.
fn over(component: &str, object: &str) -> String {
    format!(
        "apiVersion: bellwether.dev/v1alpha1\nkind: Rollup\nmetadata: {{name: all}}\nspec: {{components: [{component}]}}\n\
         ---\napiVersion: acme.io/v1\nkind: Gizmo\n{object}\nstatus:\n  conditions:\n  - {{type: Available, status: 'True', \
         reason: AsExpected}}\n  - {{type: Progressing, status: 'False', reason: AsExpected}}\n  - {{type: Degraded, status: \
         'False', reason: AsExpected}}\n"
    )
}

/// Without a CRD, the manifests show whether a kind is namespaced.
#[rstest]
#[case::cluster_scoped("{group: acme.io, kind: Gizmo, name: a}", "metadata: {name: a}", Some(0))]
#[case::in_a_namespace(
    "{group: acme.io, kind: Gizmo, name: a, namespace: one}",
    "metadata: {name: a, namespace: one}",
    Some(0)
)]
#[case::in_the_default_namespace(
    "{group: acme.io, kind: Gizmo, name: a, namespace: default}",
    "metadata: {name: a}",
    Some(0)
)]
#[case::stored_by_an_api_server(
    "{group: acme.io, kind: Gizmo, name: a, namespace: default}",
    "metadata: {name: a, uid: u}",
    Some(1)
)]
#[case::without_its_namespace(
    "{group: acme.io, kind: Gizmo, name: a}",
    "metadata: {name: a, namespace: one}",
    Some(1)
)]
fn namespaced_kinds_are_inferred(#[case] component: &str, #[case] object: &str, #[case] code: Option<i32>) {
    let run = on(&over(component, object), &["status", "all"]);
    assert_eq!(run.code, code, "{run}");
}

/// The stored status of the inner Rollup is healthy and stale.
#[test]
fn a_rollup_of_rollups_ignores_their_stored_status() {
    let objects = "
apiVersion: bellwether.dev/v1alpha1
kind: Rollup
metadata: {name: outer}
spec: {components: [{group: bellwether.dev, kind: Rollup, name: inner}]}
---
apiVersion: bellwether.dev/v1alpha1
kind: Rollup
metadata: {name: inner}
spec: {components: [{group: acme.io, kind: Gizmo, name: a}]}
status:
  conditions:
  - {type: Available, status: 'True', reason: Fine, message: fine, lastTransitionTime: '2026-01-01T00:00:00Z'}
  - {type: Progressing, status: 'False', reason: Fine, message: fine, lastTransitionTime: '2026-01-01T00:00:00Z'}
  - {type: Degraded, status: 'False', reason: Fine, message: fine, lastTransitionTime: '2026-01-01T00:00:00Z'}
---
apiVersion: acme.io/v1
kind: Gizmo
metadata: {name: a}
status:
  conditions:
  - {type: Available, status: 'True', reason: AsExpected}
  - {type: Progressing, status: 'False', reason: AsExpected}
  - {type: Degraded, status: 'True', reason: HealFailed, message: \"a cog \\e[31mis jammed\"}
";
    let run = on(objects, &["status"]);
    for name in ["rollup/inner", "rollup/outer"] {
        assert!(run.stdout.contains(&format!("{name}  ✗ Failed")), "{run}");
    }
    let one = on(objects, &["status", "inner", "--all"]);
    assert!(one.stdout.contains("a cog \u{fffd}[31mis jammed"), "escape sequences are replaced: {one}");
    assert!(!one.stdout.contains('\u{1b}'), "{one}");
}

#[test]
fn an_invalid_rollup_is_an_error() {
    let run = on(
        "{apiVersion: bellwether.dev/v1alpha1, kind: Rollup, metadata: {name: a}, spec: {components: 3}}",
        &["status"],
    );
    let expected = "error: invalid Rollup a. Check the manifest with: bellwether lint FILE\n";
    assert_eq!((run.stdout.as_str(), run.stderr.as_str(), run.code), ("", expected, Some(2)));
}
