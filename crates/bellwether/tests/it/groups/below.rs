//! What counts below members: the commands agree with the JSON, which has what the controller stores.

use rstest::rstest;
use serde_json::Value;

use crate::{NOW, Run, bellwether};

/// A command on one file of the directory `below`, at [`NOW`].
#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn on(file: &str, arguments: &[&str]) -> Run {
    let mut command = bellwether(arguments);
    command.args(["--now", NOW, "--from", &format!("below/{file}.yaml")]);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it"));
    command.output().expect("the binary runs").into()
}

#[expect(clippy::expect_used, reason = "the flag -o json")]
fn json(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).expect("JSON")
}

/// The state of the workload, by each command that has one, and the reason.
fn states(file: &str, kind: &str, flags: &[&str]) -> Vec<(String, String)> {
    let object = format!("{kind}/work");
    let workload = |arguments: &[&str], path: &str| {
        let answer = json(&on(file, &[arguments, &["-o", "json"], flags].concat()));
        let workload = &answer.pointer(path).cloned().unwrap_or(answer);
        let text = |field: &str| workload[field].as_str().unwrap_or_default().to_owned();
        (text("state"), text("reason"))
    };
    vec![
        workload(&["status", "shop"], "/objects/0"),
        workload(&["tree", "shop"], "/children/0"),
        workload(&["explain", &object, "-n", "shop"], "/0"),
    ]
}

/// Pods that do not count are no causes: those that their owner has replaced, and those of an old revision.
#[rstest]
#[case::job("job", "Job")]
#[case::stateful_set("stateful_set", "StatefulSet")]
#[case::daemon_set("daemon_set", "DaemonSet")]
fn pods_that_do_not_count_are_no_causes(#[case] file: &str, #[case] kind: &str) {
    let status = json(&on(file, &["status", "shop", "-o", "json"]));
    assert_eq!(status["objects"][0]["state"], "InProgress", "{status:#}");
    assert!(status["objects"][0]["cause"].is_null(), "{status:#}");
    let one = on(file, &["status", "shop"]);
    assert!(one.stdout.contains(&format!("  1  {kind}/work  ◐ InProgress")), "{one}");
    assert!(!one.stdout.contains("Pod/"), "{one}");
    let waited = on(file, &["wait", "shop"]);
    assert!(!waited.stdout.contains("cause: "), "{waited}");
    let tree = on(file, &["tree", "shop"]);
    assert!(tree.stdout.contains("Pod/work-"), "the tree shows what is there: {tree}");
}

#[test]
fn a_pod_that_counts_is_the_cause() {
    let status = json(&on("deployment", &["status", "shop", "-o", "json"]));
    assert_eq!(status["objects"][0]["cause"]["name"], "work-4-a", "{status:#}");
    let one = on("deployment", &["status", "shop"]);
    assert!(one.stdout.contains("  1  Pod/work-4-a  ✗ Failed for 2m"), "{one}");
    let waited = on("deployment", &["wait", "shop"]);
    assert!(waited.stdout.starts_with("cause: Pod/work-4-a: ImagePullBackOff"), "{waited}");
}

/// With the flags of the controller, the commands give the controller's answer.
#[rstest]
#[case::as_by_default(&[], ("Failed", "ImagePullBackOff"), Some(1))]
#[case::not_for_long(&["--failed-after", "5m"], ("InProgress", "ReplicasNotReady"), Some(2))]
#[case::not_below(&["--look-below=false"], ("InProgress", "ReplicasNotReady"), Some(2))]
fn commands_take_the_flags_of_the_controller(
    #[case] flags: &[&str],
    #[case] expected: (&str, &str),
    #[case] code: Option<i32>,
) {
    for (state, reason) in states("deployment", "deploy", flags) {
        assert_eq!((state.as_str(), reason.as_str()), expected);
    }
    let waited = on("deployment", &[&["wait", "shop"], flags].concat());
    assert_eq!(waited.code, code, "{waited}");
    let next = on("deployment", &[&["status", "shop"], flags].concat());
    let command = format!("bellwether tree shop -n shop --from below/deployment.yaml {}", flags.join(" "));
    assert!(next.stdout.contains(command.trim()), "{next}");
}

#[test]
fn the_environment_sets_the_flags_of_all_commands() {
    for (variable, value) in [("BELLWETHER_FAILED_AFTER", "5m"), ("BELLWETHER_LOOK_BELOW", "false")] {
        let mut command = bellwether(&["status", "--from", "below/deployment.yaml", "--now", NOW]);
        command.env(variable, value).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it"));
        let run = Run::from(command.output().expect("the binary runs"));
        assert!(run.stdout.contains("InProgress"), "{variable}: {run}");
    }
}

/// A workload that belongs to no Application counts as if it did.
#[rstest]
#[case::its_pod_has_failed(&[], "Failed", "ImagePullBackOff")]
#[case::not_for_long(&["--failed-after", "5m"], "InProgress", "ReplicasNotReady")]
#[case::not_below(&["--look-below=false"], "InProgress", "ReplicasNotReady")]
#[case::by_its_own_rule(&["--no-builtin"], "InProgress", "")]
fn explain_a_workload_without_an_application(
    #[case] flags: &[&str],
    #[case] state: &str,
    #[case] reason: &str,
) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/below/deployment.yaml");
    let objects = std::fs::read_to_string(path).expect("the file");
    let (_, objects) = objects.split_once("\n---\n").expect("an Application first");
    for annotation in ["", "kubernetes.io/application: another, "] {
        let objects = objects.replacen("annotations: {", &format!("annotations: {{{annotation}"), 1);
        let arguments = [&["explain", "deploy/work", "-n", "shop", "-o", "json"], flags].concat();
        let explained = super::on(&objects, &arguments);
        let answer = &json(&explained)[0];
        assert_eq!(answer["state"], state, "{explained}");
        assert!(reason.is_empty() || answer["reason"] == reason, "{explained}");
    }
}

/// Deployments keep old ReplicaSets for a rollback.
#[test]
fn replica_sets_scaled_to_0_are_one_line() {
    let tree = on("deployment", &["tree", "shop"]);
    assert!(tree.stdout.contains("\n   └─ 3 ReplicaSets scaled to 0\n"), "{tree}");
    assert!(tree.stdout.contains("ReplicaSet/work-4") && !tree.stdout.contains("work-3"), "{tree}");
    let all = on("deployment", &["tree", "shop", "--all"]);
    assert!(
        all.stdout.contains("ReplicaSet/work-3  ✓ Ready") && all.stdout.contains("scaled to 0\n"),
        "{all}"
    );
}
