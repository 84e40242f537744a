//! The commands about Rollups, from files.

use insta::assert_snapshot;
use rstest::rstest;
use serde_json::Value;

use super::on;
use crate::{NOW, Run, bellwether, terminal::on_a_terminal};

/// The command among the operators of these tests, and at their time.
fn operators(arguments: &[&str]) -> std::process::Command {
    let mut command = bellwether(arguments);
    command
        .args(["--from", "operators", "--now", NOW])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it"));
    command
}

#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn told(arguments: &[&str]) -> Run {
    operators(arguments).output().expect("the binary runs").into()
}

fn name(arguments: &[&str]) -> String {
    arguments.join("_").replace('/', "_")
}

/// They are in no namespace, so that they are told of in each.
#[rstest]
#[case::table(&["status"])]
#[case::wide(&["status", "-o", "wide"])]
#[case::name(&["status", "-o", "name"])]
#[case::of_a_namespace(&["status", "-n", "disks"])]
#[case::of_a_namespace_without_applications(&["status", "-n", "nowhere"])]
#[case::of_a_type(&["status", "--type", "web"])]
fn status_of_all(#[case] arguments: &[&str]) {
    assert_snapshot!(name(arguments), told(arguments));
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
#[case::of_two(&["status", "platform"])]
#[case::in_a_namespace(&["status", "disks/platform"])]
#[case::absent(&["status", "rollups.bellwether.dev/nobody"])]
#[case::neither(&["status", "nobody"])]
fn status_of_one(#[case] arguments: &[&str]) {
    assert_snapshot!(name(arguments), told(arguments));
}

/// The states of the example, which its README has one look at.
#[rstest]
#[case::healthy("healthy", Some(0))]
#[case::upgrading("upgrading", Some(1))]
#[case::degraded("degraded", Some(1))]
fn the_hyperconverged_example(#[case] state: &str, #[case] code: Option<i32>) {
    let file = format!("states/{state}.yaml");
    let mut command = bellwether(&["status", "hyperconverged", "--now", NOW, "--from", &file]);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/hyperconverged"));
    let told: Run = command.output().expect("the binary runs").into();
    assert_eq!(told.code, code, "{told}");
    assert_snapshot!(format!("the_hyperconverged_example_{state}"), told);
}

#[rstest]
#[case::failed(&["tree", "rollup/platform"])]
#[case::all(&["tree", "rollup/platform", "--all"])]
#[case::json(&["tree", "rollup/platform", "-o", "json"])]
#[case::name(&["tree", "rollup/platform", "-o", "name"])]
#[case::nothing_selected(&["tree", "edge", "--all"])]
#[case::missing(&["tree", "spare"])]
fn trees(#[case] arguments: &[&str]) {
    assert_snapshot!(name(arguments), told(arguments));
}

#[rstest]
#[case::failed(&["wait", "rollup/platform"])]
#[case::ready(&["wait", "fabrics"])]
#[case::missing(&["wait", "spare"])]
#[case::nothing_selected(&["wait", "edge"])]
#[case::what_they_do_not_say(&["wait", "fabrics", "--for", "settled"])]
fn wait(#[case] arguments: &[&str]) {
    assert_snapshot!(name(arguments), told(arguments));
}

#[rstest]
#[case::named(&["whose", "diskpool/pool"])]
#[case::named_and_selected(&["whose", "fabric/fabric"])]
#[case::below_one_that_is_named(&["whose", "pod/disk-server-6b9f-q7w"])]
#[case::below_one_of_the_cluster(&["whose", "ds/fabric-agent"])]
#[case::json(&["whose", "ds/fabric-agent", "-o", "json"])]
#[case::of_an_application(&["whose", "svc/console"])]
#[case::of_nobody(&["whose", "rollup/platform"])]
fn whose(#[case] arguments: &[&str]) {
    assert_snapshot!(name(arguments), told(arguments));
}

#[rstest]
#[case::a_rollup(&["explain", "rollup/fabrics"])]
#[case::a_component(&["explain", "diskpool/pool"])]
fn explain(#[case] arguments: &[&str]) {
    assert_snapshot!(name(arguments), told(arguments));
}

/// Programs find each where it was, and Rollups beside.
#[test]
fn applications_and_rollups_are_apart_for_programs() {
    let all = serde_json::from_str::<Value>(&told(&["status", "-o", "json"]).stdout).expect("JSON");
    let names = |of: &str| -> Vec<_> {
        all[of].as_array().into_iter().flatten().map(|it| it["name"].clone()).collect()
    };
    assert_eq!(names("applications"), ["platform"]);
    assert_eq!(names("rollups"), ["edge", "fabrics", "platform", "spare"]);
    let edge = &all["rollups"][0];
    assert_eq!(edge["objects"][0]["selector"], "site=edge");
    assert_eq!((&edge["namespace"], &edge["objects"][0]["name"]), (&Value::Null, &Value::Null));
    assert_eq!(all["types"].as_array().map(Vec::len), Some(1), "types are of Applications: {all:#}");
}

#[rstest]
#[case(60)]
#[case(80)]
#[case(130)]
fn they_fit_on_a_screen(#[case] columns: u16) {
    let is_narrow = |line: &str| line.chars().count() <= usize::from(columns);
    let tree = on_a_terminal(operators(&["tree", "rollup/platform"]).env("NO_COLOR", "1"), columns).stdout;
    assert!(tree.lines().all(is_narrow), "{tree}");
    let one = on_a_terminal(operators(&["status", "rollup/platform"]).env("NO_COLOR", "1"), columns).stdout;
    let (_, causes) = one.split_once("\n\n").unwrap_or_default();
    assert!(!causes.is_empty() && causes.lines().all(is_narrow), "{one}");
}

/// A Rollup over one object of a kind that nothing but these files tells of.
fn over(component: &str, object: &str) -> String {
    format!(
        "apiVersion: bellwether.dev/v1alpha1\nkind: Rollup\nmetadata: {{name: all}}\nspec: {{components: [{component}]}}\n\
         ---\napiVersion: acme.io/v1\nkind: Gizmo\n{object}\nstatus:\n  conditions:\n  - {{type: Available, status: 'True', \
         reason: AsExpected}}\n  - {{type: Progressing, status: 'False', reason: AsExpected}}\n  - {{type: Degraded, status: \
         'False', reason: AsExpected}}\n"
    )
}

/// Where no definition says whether a kind is in namespaces, what is written of it does.
#[rstest]
#[case::of_the_cluster("{group: acme.io, kind: Gizmo, name: a}", "metadata: {name: a}", Some(0))]
#[case::in_a_namespace(
    "{group: acme.io, kind: Gizmo, name: a, namespace: one}",
    "metadata: {name: a, namespace: one}",
    Some(0)
)]
#[case::in_the_default_one(
    "{group: acme.io, kind: Gizmo, name: a, namespace: default}",
    "metadata: {name: a}",
    Some(0)
)]
#[case::kept_by_a_server(
    "{group: acme.io, kind: Gizmo, name: a, namespace: default}",
    "metadata: {name: a, uid: u}",
    Some(1)
)]
#[case::without_its_namespace(
    "{group: acme.io, kind: Gizmo, name: a}",
    "metadata: {name: a, namespace: one}",
    Some(1)
)]
fn namespaces_are_told_by_what_is_written(
    #[case] component: &str,
    #[case] object: &str,
    #[case] code: Option<i32>,
) {
    let run = on(&over(component, object), &["status", "all"]);
    assert_eq!(run.code, code, "{run}");
}

/// The inner one says that it is fine, as somebody wrote long ago. It is not.
#[test]
fn a_rollup_of_rollups_does_not_believe_what_was_written_long_ago() {
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
    assert!(one.stdout.contains("a cog \u{fffd}[31mis jammed"), "nothing plays tricks: {one}");
    assert!(!one.stdout.contains('\u{1b}'), "{one}");
}

#[test]
fn a_rollup_that_makes_no_sense_is_not_passed_over() {
    let run = on(
        "{apiVersion: bellwether.dev/v1alpha1, kind: Rollup, metadata: {name: a}, spec: {components: 3}}",
        &["status"],
    );
    let expected = "error: Rollup a makes no sense: bellwether lint says why\n";
    assert_eq!((run.stdout.as_str(), run.stderr.as_str(), run.code), ("", expected, Some(2)));
}
