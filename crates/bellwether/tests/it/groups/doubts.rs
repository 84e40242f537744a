//! Files that say a thing twice, in a circle, or in a way that is not meant for us: none of it is taken for green.

use std::{fmt::Write as _, fs, process::Command};

use insta::assert_snapshot;
use rstest::rstest;

use super::on;
use crate::{NOW, Run, bellwether, judged_from};

/// Runs a command on files that are written here.
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

/// A Gizmo that is available or not, with more about itself.
fn gizmo(name: &str, available: &str, metadata: &str) -> String {
    format!(
        "apiVersion: acme.io/v1\nkind: Gizmo\nmetadata: {{name: {name}{metadata}}}\nstatus:\n  conditions:\n  - {{type: \
         Available, status: '{available}', reason: Said, message: so}}\n  - {{type: Progressing, status: 'False', reason: \
         Said}}\n  - {{type: Degraded, status: 'False', reason: Said}}\n---\n"
    )
}

/// What somebody stored of a Rollup that was well.
const WELL: &str = "
status:
  health: Healthy
  conditions:
  - {type: Available, status: 'True', reason: AsExpected, message: All components are available, lastTransitionTime: '2026-01-01T00:00:00Z'}
  - {type: Progressing, status: 'False', reason: AsExpected, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}
  - {type: Degraded, status: 'False', reason: AsExpected, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}
";

/// Each believes the one below it to be well, as somebody wrote long ago; the lowest is not.
#[test]
fn rollups_are_looked_into_however_deep_they_are() {
    let mut objects = gizmo("a", "False", "");
    for number in 0..25 {
        let below = match number {
            0 => "{group: acme.io, kind: Gizmo, name: a}".to_owned(),
            _ => format!("{{group: bellwether.dev, kind: Rollup, name: c{}}}", number - 1),
        };
        let _ = write!(
            objects,
            "apiVersion: bellwether.dev/v1alpha1\nkind: Rollup\nmetadata: {{name: c{number}}}\nspec: {{components: \
             [{below}]}}\n{WELL}---\n"
        );
    }
    let all = on(&objects, &["status"]);
    assert!(all.code == Some(1) && all.stdout.ends_with("\n25 failed.\n"), "{all}");
    let waited = on(&objects, &["wait", "c24"]);
    assert_eq!(waited.code, Some(1), "{waited}");
}

/// Neither can be known before the other.
#[test]
fn of_groups_that_count_one_another_nobody_can_tell() {
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
    // What is read after that of another one changes nothing.
    let other = "apiVersion: bellwether.dev/v1alpha1\nkind: Application\nmetadata: {name: three, namespace: shop}\nspec: \
                 {selector: {matchLabels: {in: three}}, componentKinds: [{group: '', kind: Service}]}\n---\napiVersion: \
                 v1\nkind: Service\nmetadata: {name: three, namespace: shop, labels: {in: three}}\n";
    assert_snapshot!("of_groups_that_count_one_another_beside_another", on(&(objects + other), &["status"]));
}

/// Which of two counts does not go without saying.
#[test]
fn the_last_counts_and_is_named() {
    let one = rollup("b") + &gizmo("a", "True", "") + &gizmo("b", "False", "");
    let files = [("one.yaml", one.as_str()), ("two.yaml", &rollup("a"))];
    assert_snapshot!("the_last_counts", among(&files, &["status", "all"]));
    let [first, second] = files;
    assert_snapshot!("the_last_counts_the_other_way", among(&[second, first], &["status", "all"]));
}

/// What there is no doubt about is not worth a word.
#[rstest]
#[case::alike("", "", "True", false)]
#[case::other_words("", "", "False", true)]
#[case::newer(", resourceVersion: '9'", ", resourceVersion: '10'", "False", false)]
#[case::older(", resourceVersion: '10'", ", resourceVersion: '9'", "False", false)]
#[case::of_one_version(", resourceVersion: '9'", ", resourceVersion: '9'", "False", true)]
fn a_doubt_is_told(#[case] first: &str, #[case] second: &str, #[case] available: &str, #[case] doubt: bool) {
    let objects = rollup("a") + &gizmo("a", "True", first) + &gizmo("a", available, second);
    for arguments in [&["status"][..], &["wait", "all"], &["tree", "all"], &["explain", "gizmo/a"]] {
        let run = among(&[("all.yaml", &objects)], arguments);
        let told =
            "note: Gizmo a is also in all.yaml:6, and differs: all.yaml:15 counts, because it is read last\n";
        assert_eq!(run.stderr, if doubt { told } else { "" }, "{arguments:?}: {run}");
    }
}

#[test]
fn nobody_reads_of_a_hundred_doubts() {
    let gizmos =
        |available| (10..17).map(|number| gizmo(&format!("g{number}"), available, "")).collect::<String>();
    let objects = gizmos("True") + &gizmos("False") + &rollup("g10") + &rollup("g11");
    let run = among(&[("all.yaml", &objects)], &["status"]);
    assert!(run.stderr.starts_with("note: Rollup all is also in "), "our own come first: {run}");
    assert_eq!(run.stderr.lines().count(), 6, "{run}");
    assert!(run.stderr.ends_with("\nnote: and 3 more like these\n"), "{run}");
}

/// Other versions may mean something else, and what has no name is nothing that a cluster could have.
#[rstest]
#[case::another_version("bellwether.dev/v1alpha1", "bellwether.dev/v2")]
#[case::no_name("metadata: {name: all}", "metadata: {}")]
fn what_is_not_meant_for_us_is_no_green_light(#[case] right: &str, #[case] wrong: &str) {
    let objects = rollup("a") + &gizmo("a", "True", "") + &rollup("a").replace("all", "other");
    let run = among(&[("all.yaml", &objects)], &["status"]);
    assert_eq!(run.code, Some(0), "{run}");
    let run = among(&[("all.yaml", &objects.replacen(right, wrong, 1))], &["status"]);
    let name = if wrong.starts_with("metadata") { "no_name" } else { "another_version" };
    assert_snapshot!(format!("not_meant_{name}"), run);
}

/// Who asks for what was passed over is told why it is not there.
#[test]
fn what_is_passed_over_is_not_denied() {
    let wrong = rollup("a").replace("v1alpha1", "v2") + &gizmo("a", "True", "");
    for arguments in [&["status", "rollup/all"][..], &["explain", "rollup/all"], &["wait", "all"]] {
        let run = among(&[("all.yaml", &wrong)], arguments);
        let why = "all.yaml, document 1, line 1: no Rollup of bellwether.dev/v2 is known here";
        assert!(run.stdout.is_empty() && run.stderr.contains(why), "{arguments:?}: {run}");
    }
}

/// What has no name and is nobody's group, such as a Kustomization, is nobody's business.
#[test]
fn a_kustomization_may_be_among_the_files() {
    let kustomization = |resource: &str| {
        format!(
            "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [{resource}]\n---\n"
        )
    };
    let objects = kustomization("a") + &rollup("a") + &gizmo("a", "True", "") + &kustomization("b");
    let run = among(&[("all.yaml", &objects)], &["status"]);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{run}");
}

/// It can be copied, whatever the files are called.
#[test]
fn the_next_command_runs() {
    let files = [("one.yaml", rollup("a")), ("bo's dump.yaml", gizmo("a", "False", ""))];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    let run = among(&files, &["status", "all", "-o", "wide"]);
    let next = r"  Next: bellwether tree rollup/all --from one.yaml --from 'bo'\''s dump.yaml'";
    assert!(run.stdout.lines().any(|line| line == next), "{run}");
}

/// A Rollup that was well when somebody stored its status, over a Gizmo that is available or not.
fn once_well(available: &str) -> String {
    rollup("a").replacen("---\n", &format!("{WELL}---\n"), 1) + &gizmo("a", available, "")
}

/// The commands say the same of the same files.
#[test]
fn what_is_stored_is_not_explained_as_if_it_were_so() {
    let explained = |available| among(&[("all.yaml", &once_well(available))], &["explain", "rollup/all"]);
    assert_snapshot!("explained_anew", explained("False"));
    let run = explained("True");
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "it is so: {run}");
}

/// Where only one object is looked at, it is said that this is so.
#[rstest]
#[case("assess")]
#[case("explain")]
fn one_by_one_groups_are_as_they_were_stored(#[case] command: &str) {
    let told = |objects: &str| judged_from(&[command, "-"], objects);
    let run = told(&once_well("False"));
    let expected = "note: Applications and Rollups, such as Rollup all, are judged by what is stored in them: bellwether \
                    status --from FILE looks at what they count\n";
    assert_eq!(run.stderr, expected, "{run}");
    let run = told(&gizmo("a", "False", ""));
    assert_eq!(run.stderr, "", "{run}");
}
