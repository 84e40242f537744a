//! `status`, `tree`, `wait`, `whose` and `explain` for Applications from files. Rollups and live clusters are
//! in `groups/`.

mod below;
mod duplicates_and_cycles;
mod files;
mod fleet_live;
mod live_cluster;
mod many_clusters;
mod rollup_conditions;
mod rollups;
mod rollups_live_cluster;

use std::process::Command;

use insta::assert_snapshot;
use rstest::rstest;
use serde_json::Value;

use crate::{NOW, Run, bellwether, terminal::on_a_terminal};

/// The command on the directory `applications`, at [`NOW`].
fn applications(arguments: &[&str]) -> Command {
    let mut command = bellwether(arguments);
    command
        .args(["--from", "applications", "--now", NOW])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it"));
    command
}

#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn run(arguments: &[&str]) -> Run {
    applications(arguments).output().expect("the binary runs").into()
}

#[rstest]
#[case::table(&["status"])]
#[case::wide(&["status", "-o", "wide"])]
#[case::json(&["status", "-o", "json"])]
#[case::yaml(&["status", "-n", "infra", "-o", "yaml"])]
#[case::name(&["status", "-o", "name"])]
#[case::of_a_type(&["status", "--type", "wordpress"])]
#[case::of_no_type(&["status", "--type", "nothing"])]
#[case::of_a_namespace(&["status", "-n", "shop"])]
#[case::of_an_empty_namespace(&["status", "-n", "nowhere"])]
fn status_of_all(#[case] arguments: &[&str]) {
    assert_snapshot!(format!("status_{}", arguments.join("_")), run(arguments));
}

#[rstest]
#[case::table(&["status", "checkout"])]
#[case::all(&["status", "checkout", "--all"])]
#[case::wide(&["status", "checkout", "-o", "wide"])]
#[case::json(&["status", "checkout", "-o", "json"])]
#[case::yaml(&["status", "catalog", "-o", "yaml"])]
#[case::name(&["status", "checkout", "-o", "name"])]
#[case::ready(&["status", "application/wordpress"])]
#[case::unknown(&["status", "widgets"])]
#[case::not_found(&["status", "nosuch"])]
#[case::another_kind(&["status", "deploy/web"])]
fn status_of_one(#[case] arguments: &[&str]) {
    assert_snapshot!(format!("status_of_{}", arguments.join("_").replace('/', "_")), run(arguments));
}

#[rstest]
#[case::broken(&["tree", "checkout"])]
#[case::all(&["tree", "checkout", "--all"])]
#[case::wide(&["tree", "checkout", "-o", "wide"])]
#[case::json(&["tree", "catalog", "-o", "json"])]
#[case::yaml(&["tree", "catalog", "-o", "yaml"])]
#[case::name(&["tree", "checkout", "-o", "name"])]
#[case::ready(&["tree", "wordpress"])]
#[case::not_found(&["tree", "nosuch"])]
fn trees(#[case] arguments: &[&str]) {
    assert_snapshot!(format!("tree_{}", arguments.join("_")), run(arguments));
}

/// One case for each reason in the answer.
#[rstest]
#[case::matches_the_selector("svc/checkout-svc", "shop")]
#[case::application_not_found("cm/lost", "shop")]
#[case::selector_mismatch("configmaps/orphan", "shop")]
#[case::not_yet_owned("cm/checkout-settings", "shop")]
#[case::owned("deploy/wordpress", "blog")]
#[case::via_owner("pod/checkout-7d9f-x2k", "shop")]
#[case::not_found("cm/nothing", "shop")]
#[case::unknown_kind("thing/nothing", "shop")]
#[case::without_kind("nothing", "shop")]
fn whose(#[case] object: &str, #[case] namespace: &str) {
    assert_snapshot!(format!("whose_{}", object.replace('/', "_")), run(&["whose", object, "-n", namespace]));
}

#[test]
fn whose_as_json() {
    assert_snapshot!(run(&["whose", "cm/orphan", "-n", "shop", "-o", "json"]));
    assert_snapshot!("whose_as_yaml", run(&["whose", "deploy/wordpress", "-n", "blog", "-o", "yaml"]));
}

/// Files do not change, so that the command ends at once.
#[rstest]
#[case::failed(&["wait", "checkout"])]
#[case::in_progress(&["wait", "catalog"])]
#[case::ready(&["wait", "wordpress"])]
#[case::unknown(&["wait", "widgets"])]
#[case::settled(&["wait", "checkout", "--for", "settled"])]
#[case::not_installed(&["wait", "checkout", "--for", "installed"])]
#[case::not_found(&["wait", "nosuch"])]
fn wait(#[case] arguments: &[&str]) {
    assert_snapshot!(format!("wait_{}", arguments.join("_")), run(arguments));
}

#[rstest]
#[case::with_a_health_rule_in_the_files("gadget/g1", "infra")]
#[case::without_a_rule("widgets.acme.io/w1", "infra")]
#[case::not_found("pod/nothing", "shop")]
fn explain(#[case] object: &str, #[case] namespace: &str) {
    assert_snapshot!(
        format!("explain_{}", object.replace('/', "_")),
        run(&["explain", object, "-n", namespace])
    );
}

#[test]
fn json_has_counts_by_type_and_version() {
    let all = serde_json::from_str::<Value>(&run(&["status", "-o", "json"]).stdout).expect("JSON");
    assert_eq!(all["applications"].as_array().map(Vec::len), Some(4), "{all:#}");
    let one =
        |name: &str| all["types"].as_array().into_iter().flatten().find(|it| it["type"] == name).cloned();
    let expected =
        serde_json::json!({ "type": "wordpress", "version": "1.0", "total": 1, "states": { "Ready": 1 } });
    assert_eq!(one("wordpress"), Some(expected), "{all:#}");
}

#[rstest]
#[case::narrow(80)]
#[case::wide(130)]
fn tables_and_trees_fit(#[case] columns: u16) {
    for arguments in [&["status"][..], &["tree", "checkout"]] {
        let run = on_a_terminal(&mut applications(arguments), columns);
        let table = run.stdout.split("\n\n").next().unwrap_or_default();
        assert!(table.lines().all(|line| line.chars().count() <= usize::from(columns)), "{table}");
    }
}

/// On a narrow screen, each line still has the kind, the name and the state.
#[rstest]
#[case(40)]
#[case(60)]
#[case(80)]
fn trees_fit_on_any_screen(#[case] columns: u16) {
    for arguments in [&["tree", "checkout"][..], &["tree", "checkout", "--all"]] {
        let tree = on_a_terminal(applications(arguments).env("NO_COLOR", "1"), columns).stdout;
        assert!(tree.lines().all(|line| line.chars().count() <= usize::from(columns)), "{tree}");
        assert!(tree.contains("─ Pod/check") && tree.contains("x2k ") && tree.contains("✗ Failed"), "{tree}");
    }
}

#[rstest]
#[case::no_color(&[("TERM", "xterm-256color"), ("NO_COLOR", "1")], false)]
#[case::as_usual(&[("TERM", "xterm-256color")], true)]
fn states_have_words_and_colours(#[case] environment: &[(&str, &str)], #[case] color: bool) {
    for arguments in [&["status"][..], &["status", "checkout"], &["tree", "checkout"]] {
        let run = on_a_terminal(applications(arguments).envs(environment.iter().copied()), 100);
        assert_eq!(run.stdout.contains('\u{1b}'), color, "{}", run.stdout);
        assert!(run.stdout.contains("Failed"), "never colour alone: {}", run.stdout);
    }
}

#[test]
fn an_invalid_file_does_not_hide_the_others() {
    let mut command =
        bellwether(&["status", "--from", "applications", "--from", "objects/broken.yaml", "--now", NOW]);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it"));
    let run = Run::from(command.output().expect("the binary runs"));
    assert_eq!(run.code, Some(2), "{run}");
    assert!(run.stdout.contains("checkout") && run.stderr.starts_with("error: objects/broken.yaml"), "{run}");
}

#[test]
fn escape_sequences_in_names_are_replaced() {
    let directory = tempfile::tempdir().expect("a directory");
    let object = "apiVersion: bellwether.dev/v1alpha1\nkind: Application\nmetadata: {name: \"a\\e[31mb\", namespace: one}\nspec:\n  \
                  selector: {}\n  componentKinds: [{kind: ConfigMap}]\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: \
                  \"c\\ed\", namespace: one}\n";
    std::fs::write(directory.path().join("a.yaml"), object).expect("a file");
    for arguments in [
        &["status"][..],
        &["status", "-o", "name"],
        &["status", "a\u{1b}[31mb", "--all"],
        &["status", "a\u{1b}[31mb", "-o", "name"],
        &["tree", "a\u{1b}[31mb", "--all"],
        &["tree", "a\u{1b}[31mb", "-o", "name"],
    ] {
        let mut command = bellwether(arguments);
        let run = Run::from(command.arg("--from").arg(directory.path()).output().expect("the binary runs"));
        assert!(run.stdout.contains('\u{fffd}') && !run.stdout.contains('\u{1b}'), "{run}");
    }
}

#[test]
fn an_invalid_application_is_an_error() {
    let directory = tempfile::tempdir().expect("a directory");
    let object =
        "{apiVersion: bellwether.dev/v1alpha1, kind: Application, metadata: {name: a}, spec: {selector: 3}}";
    std::fs::write(directory.path().join("a.yaml"), object).expect("a file");
    let mut command = bellwether(&["status"]);
    let run = Run::from(command.arg("--from").arg(directory.path()).output().expect("the binary runs"));
    let expected = "error: invalid Application default/a. Check the manifest with: bellwether lint FILE\n";
    assert_eq!((run.stdout.as_str(), run.stderr.as_str(), run.code), ("", expected, Some(2)));
}

#[rstest]
#[case::both_apis(&["status"])]
#[case::as_json(&["status", "applications.app.k8s.io/blog", "-o", "json"])]
#[case::by_its_api(&["status", "application.app.k8s.io/blog"])]
#[case::of_two(&["status", "blog"])]
#[case::tree(&["tree", "application.app.k8s.io/blog"])]
#[case::whose(&["whose", "deploy/blog", "-n", "blog"])]
fn applications_of_app_k8s_io(#[case] arguments: &[&str]) {
    let mut command = bellwether(arguments);
    command
        .args(["--from", "app_k8s_io", "--now", NOW])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it"));
    let run = Run::from(command.output().expect("the binary runs"));
    assert_snapshot!(format!("app_k8s_io_{}", arguments.join("_").replace('/', "_")), run);
}

/// Runs a command on these objects.
#[expect(
    clippy::expect_used,
    reason = "files can be made, and cargo builds the binary before it runs these tests"
)]
fn on(objects: &str, arguments: &[&str]) -> Run {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("objects.yaml"), objects).expect("a file");
    let mut command = bellwether(arguments);
    Run::from(command.args(["--now", NOW, "--from"]).arg(directory.path()).output().expect("the binary runs"))
}

/// The stored status of the inner Application is stale: it is not ready.
const NESTED: &str = "
apiVersion: bellwether.dev/v1alpha1
kind: Application
metadata: {name: outer, namespace: shop}
spec: {selector: {matchLabels: {part: outer}}, componentKinds: [{group: bellwether.dev, kind: Application}]}
---
apiVersion: bellwether.dev/v1alpha1
kind: Application
metadata: {name: inner, namespace: shop, labels: {part: outer}}
spec: {selector: {matchLabels: {part: inner}}, componentKinds: [{group: apps, kind: Deployment}]}
status:
  conditions:
    - {type: Ready, status: 'True', reason: ComponentsReady, message: fine, lastTransitionTime: '2026-01-01T00:00:00Z'}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, generation: 1, labels: {part: inner}}
spec: {replicas: 2}
status: {observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: 1, availableReplicas: 1}
";

#[test]
fn an_application_of_applications_ignores_their_stored_status() {
    assert_snapshot!(
        on(NESTED, &["status"]).to_string().replace(std::env::temp_dir().to_str().unwrap_or("/"), "TMP")
    );
    let waited = on(NESTED, &["wait", "outer"]);
    assert_eq!(waited.code, Some(2), "{waited}");
}

/// Not since the transition in the stored status.
#[test]
fn ready_since_the_last_member_became_ready() {
    let ready = NESTED.replace(
        "readyReplicas: 1, availableReplicas: 1}",
        "readyReplicas: 2, availableReplicas: 2, conditions: \
        [{type: Available, status: 'True', lastTransitionTime: '2026-11-14T11:58:00Z'}]}",
    );
    let one = on(&ready, &["status", "inner"]);
    assert!(one.stdout.starts_with("Application shop/inner: Ready for 2m (since "), "{one}");
}

#[test]
fn wait_ends_if_the_group_is_being_deleted() {
    let deleting = NESTED.replace(
        "name: outer, namespace: shop}",
        "name: outer, namespace: shop, deletionTimestamp: '2026-11-14T11:59:00Z'}",
    );
    let waited = on(&deleting, &["wait", "outer"]);
    let expected = "Application shop/outer: unknown: being deleted\n";
    assert_eq!((waited.stdout.as_str(), waited.code), (expected, Some(3)));
    assert!(on(&deleting, &["status"]).stdout.contains("being deleted"));
}

/// A member that is being deleted may come back, as in a rollout.
#[test]
fn wait_goes_on_while_a_member_is_being_deleted() {
    let deleting = NESTED.replace(
        "name: web, namespace: shop,",
        "name: web, namespace: shop, deletionTimestamp: '2026-11-14T11:59:00Z',",
    );
    let waited = on(&deleting, &["wait", "inner"]);
    assert!(waited.stdout.starts_with("Application shop/inner: not ready: Deployment/web: "), "{waited}");
    assert_eq!(waited.code, Some(2), "{waited}");
    let listed = on(&deleting, &["status", "inner"]);
    assert!(listed.stdout.contains("  1  Deployment/web  ↓ Terminating"), "{listed}");
}

/// The invalid document may be a member that is not ready.
#[test]
fn wait_does_not_succeed_with_an_invalid_file() {
    let mut command = bellwether(&[
        "wait",
        "wordpress",
        "--from",
        "applications",
        "--from",
        "objects/broken.yaml",
        "--now",
        NOW,
    ]);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it"));
    let run = Run::from(command.output().expect("the binary runs"));
    assert_eq!(run.code, Some(3), "{run}");
    assert!(run.stderr.starts_with("error: objects/broken.yaml"), "{run}");
}

#[test]
fn wait_for_a_condition_that_the_kind_does_not_have() {
    let mut command =
        bellwether(&["wait", "application.app.k8s.io/blog", "--for", "settled", "--from", "app_k8s_io"]);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it"));
    let run = Run::from(command.output().expect("the binary runs"));
    let expected = "error: Application.app.k8s.io has no condition Settled. Use --for ready\n";
    assert_eq!((run.stderr.as_str(), run.code), (expected, Some(3)));
}
