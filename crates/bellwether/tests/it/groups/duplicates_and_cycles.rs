//! Duplicate objects, groups that are members of each other, and unknown versions: none of it is reported as
//! Ready.

use std::{fmt::Write as _, fs, process::Command};

use insta::assert_snapshot;
use rstest::rstest;

use super::on;
use crate::{NOW, Run, bellwether, run_with_input};

/// Runs a command on these files.
#[expect(
    clippy::expect_used,
    reason = "files can be made, and cargo builds the binary before it runs these tests"
)]
fn among(files: &[(&str, &str)], arguments: &[&str]) -> Run {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command: Command = bellwether(arguments);
    command.args(["--now", NOW]).current_dir(directory.path());
    for (name, text) in files {
        fs::write(directory.path().join(name), text).expect("a file");
        command.args(["--from", name]);
    }
    command.output().expect("the binary runs").into()
}

/// A Rollup over the Gizmo of this name.
fn rollup(gizmo: &str) -> String {
    format!(
        "apiVersion: bellwether.dev/v1alpha1\nkind: Rollup\nmetadata: {{name: all}}\nspec: {{components: [{{group: acme.io, \
         kind: Gizmo, name: {gizmo}}}]}}\n---\n"
    )
}

/// A Gizmo that is available or not, with more metadata.
fn gizmo(name: &str, available: &str, metadata: &str) -> String {
    format!(
        "apiVersion: acme.io/v1\nkind: Gizmo\nmetadata: {{name: {name}{metadata}}}\nstatus:\n  conditions:\n  - {{type: \
         Available, status: '{available}', reason: Said, message: so}}\n  - {{type: Progressing, status: 'False', reason: \
         Said}}\n  - {{type: Degraded, status: 'False', reason: Said}}\n---\n"
    )
}

/// The stored status of a Rollup that was healthy.
const HEALTHY: &str = "
status:
  health: Healthy
  conditions:
  - {type: Available, status: 'True', reason: AsExpected, message: All components are available, lastTransitionTime: '2026-01-01T00:00:00Z'}
  - {type: Progressing, status: 'False', reason: AsExpected, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}
  - {type: Degraded, status: 'False', reason: AsExpected, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}
";

/// The stored status of each Rollup is healthy and stale: the lowest component is not available.
#[test]
fn rollups_are_evaluated_at_any_depth() {
    let mut objects = gizmo("a", "False", "");
    for number in 0..25 {
        let below = match number {
            0 => "{group: acme.io, kind: Gizmo, name: a}".to_owned(),
            _ => format!("{{group: bellwether.dev, kind: Rollup, name: c{}}}", number - 1),
        };
        let _ = write!(
            objects,
            "apiVersion: bellwether.dev/v1alpha1\nkind: Rollup\nmetadata: {{name: c{number}}}\nspec: {{components: \
             [{below}]}}\n{HEALTHY}---\n"
        );
    }
    let all = on(&objects, &["status"]);
    assert!(all.code == Some(1) && all.stdout.ends_with("\n25 Failed.\n"), "{all}");
    let waited = on(&objects, &["wait", "c24"]);
    assert_eq!(waited.code, Some(1), "{waited}");
}

#[test]
fn membership_cycles_are_an_error() {
    let application = |name: &str, other: &str, ready: &str| {
        format!(
            "apiVersion: bellwether.dev/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: shop, labels: \
             {{in: {other}}}}}\nspec: {{selector: {{matchLabels: {{in: {name}}}}}, componentKinds: [{{group: \
             bellwether.dev, kind: Application}}]}}\nstatus: {{conditions: [{{type: Ready, status: '{ready}', reason: \
             Said, message: so, lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}\n---\n"
        )
    };
    let objects = application("one", "two", "True") + &application("two", "one", "False");
    assert_snapshot!(on(&objects, &["status"]));
    let waited = on(&objects, &["wait", "one"]);
    assert_eq!((waited.stdout.as_str(), waited.code), ("", Some(3)), "{waited}");
    // Other groups are not affected.
    let other = "apiVersion: bellwether.dev/v1alpha1\nkind: Application\nmetadata: {name: three, namespace: shop}\nspec: \
                 {selector: {matchLabels: {in: three}}, componentKinds: [{group: '', kind: Service}]}\n---\napiVersion: \
                 v1\nkind: Service\nmetadata: {name: three, namespace: shop, labels: {in: three}}\n";
    assert_snapshot!("membership_cycle_beside_another_group", on(&(objects + other), &["status"]));
}

#[test]
fn the_last_of_two_duplicates_is_used() {
    let one = rollup("b") + &gizmo("a", "True", "") + &gizmo("b", "False", "");
    let files = [("one.yaml", one.as_str()), ("two.yaml", &rollup("a"))];
    assert_snapshot!("duplicates", among(&files, &["status", "all"]));
    let [first, second] = files;
    assert_snapshot!("duplicates_in_reverse_order", among(&[second, first], &["status", "all"]));
}

/// Only duplicates of which none is known to be newer have a note.
#[rstest]
#[case::same_content("", "", "True", false)]
#[case::different_content("", "", "False", true)]
#[case::newer(", resourceVersion: '9'", ", resourceVersion: '10'", "False", false)]
#[case::older(", resourceVersion: '10'", ", resourceVersion: '9'", "False", false)]
#[case::same_version(", resourceVersion: '9'", ", resourceVersion: '9'", "False", true)]
fn notes_about_duplicates(
    #[case] first: &str,
    #[case] second: &str,
    #[case] available: &str,
    #[case] has_note: bool,
) {
    let objects = rollup("a") + &gizmo("a", "True", first) + &gizmo("a", available, second);
    for arguments in [&["status"][..], &["wait", "all"], &["tree", "all"], &["explain", "gizmo/a"]] {
        let run = among(&[("all.yaml", &objects)], arguments);
        let note = "note: duplicate Gizmo a in all.yaml:6 and all.yaml:15 with different content; using all.yaml:15 (read \
                    last)\n";
        assert_eq!(run.stderr, if has_note { note } else { "" }, "{arguments:?}: {run}");
    }
}

#[test]
fn at_most_five_notes_about_duplicates() {
    let gizmos =
        |available| (10..17).map(|number| gizmo(&format!("g{number}"), available, "")).collect::<String>();
    let objects = gizmos("True") + &gizmos("False") + &rollup("g10") + &rollup("g11");
    let run = among(&[("all.yaml", &objects)], &["status"]);
    assert!(run.stderr.starts_with("note: duplicate Rollup all in "), "groups come first: {run}");
    assert_eq!(run.stderr.lines().count(), 6, "{run}");
    assert!(run.stderr.lines().last().is_some_and(|note| note.starts_with("note: and 3 more")), "{run}");
}

#[rstest]
#[case::another_version("bellwether.dev/v1alpha1", "bellwether.dev/v2")]
#[case::without_name("metadata: {name: all}", "metadata: {}")]
fn unknown_versions_and_missing_names_are_errors(#[case] right: &str, #[case] wrong: &str) {
    let objects = rollup("a") + &gizmo("a", "True", "") + &rollup("a").replace("all", "other");
    let run = among(&[("all.yaml", &objects)], &["status"]);
    assert_eq!(run.code, Some(0), "{run}");
    let run = among(&[("all.yaml", &objects.replacen(right, wrong, 1))], &["status"]);
    let name = if wrong.starts_with("metadata") { "without_name" } else { "another_version" };
    assert_snapshot!(format!("invalid_group_{name}"), run);
}

#[test]
fn the_error_of_a_skipped_group_is_repeated_if_it_is_named() {
    let wrong = rollup("a").replace("v1alpha1", "v2") + &gizmo("a", "True", "");
    for arguments in [&["status", "rollup/all"][..], &["explain", "rollup/all"], &["wait", "all"]] {
        let run = among(&[("all.yaml", &wrong)], arguments);
        let why = "all.yaml:1: Rollup: apiVersion: must be bellwether.dev/v1alpha1, not bellwether.dev/v2";
        assert!(run.stdout.is_empty() && run.stderr.contains(why), "{arguments:?}: {run}");
    }
}

#[test]
fn objects_without_a_name_such_as_a_kustomization_are_ignored() {
    let kustomization = |resource: &str| {
        format!(
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [{resource}]\n---\n"
        )
    };
    let objects = kustomization("a") + &rollup("a") + &gizmo("a", "True", "") + &kustomization("b");
    let run = among(&[("all.yaml", &objects)], &["status"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run}");
}

#[test]
fn hints_quote_the_names_of_files() {
    let files = [("one.yaml", rollup("a")), ("bo's dump.yaml", gizmo("a", "False", ""))];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let run = among(&files, &["status", "all", "-o", "wide"]);
    let hint = "  Next:\n    bellwether tree rollup/all --from one.yaml --from 'bo'\\''s dump.yaml'\n";
    assert!(run.stdout.ends_with(hint), "{run}");
}

/// A Rollup whose stored status is healthy, over a Gizmo that is available or not.
fn stored_healthy(available: &str) -> String {
    rollup("a").replacen("---\n", &format!("{HEALTHY}---\n"), 1) + &gizmo("a", available, "")
}

/// As `status` does.
#[test]
fn explain_evaluates_groups() {
    let explained =
        |available| among(&[("all.yaml", &stored_healthy(available))], &["explain", "rollup/all"]);
    assert_snapshot!("explain_stale_status", explained("False"));
    let run = explained("True");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run}");
}

/// Without the members, only the stored status is known.
#[rstest]
#[case("assess")]
#[case("explain")]
fn assess_and_explain_use_the_stored_status_of_groups_in_files(#[case] command: &str) {
    let run_on = |objects: &str| run_with_input(&[command, "-"], objects);
    let run = run_on(&stored_healthy("False"));
    let expected = "note: Applications and Rollups (e.g. Rollup all) are assessed by their stored status. To assess their \
                    members, run: bellwether status --from FILE\n";
    assert_eq!(run.stderr, expected, "{run}");
    let run = run_on(&gizmo("a", "False", ""));
    assert_eq!(run.stderr, "", "{run}");
}
