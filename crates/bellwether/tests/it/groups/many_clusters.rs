//! `--cluster`: BindingPolicies as groups, and the clusters of the members of other groups, on directories of
//! manifests and with an API server that does not answer.

use std::{fs, net::TcpListener, process::Command};

use insta::assert_snapshot;
use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;

use crate::{NOW, Run, bellwether, terminal::on_a_terminal};

const CLUSTERS: [&str; 6] = ["--cluster", "east=east", "--cluster", "north=north", "--cluster", "west=west"];
const LABELS: [&str; 6] = [
    "--cluster-labels",
    "east=location-group=edge",
    "--cluster-labels",
    "north=location-group=edge",
    "--cluster-labels",
    "west=location-group=edge",
];

/// The command on the hub of `examples/clusters`, at [`NOW`].
fn on_hub(arguments: &[&str]) -> Command {
    let mut command = bellwether(arguments);
    command
        .args(["--from", "hub", "--now", NOW])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/clusters"));
    command
}

/// With all clusters, all of which the policy selects.
fn on_fleet(arguments: &[&str]) -> Command {
    let mut command = on_hub(arguments);
    command.args(CLUSTERS).args(LABELS);
    command
}

#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn run(mut command: Command) -> Run {
    command.output().expect("the binary runs").into()
}

#[rstest]
#[case::all("status", &["status"])]
#[case::all_wide("status_wide", &["status", "-o", "wide"])]
#[case::all_as_json("status_json", &["status", "-o", "json"])]
#[case::policy("status_policy", &["status", "policy/edge"])]
#[case::policy_with_members("status_policy_all", &["status", "policy/edge", "--all"])]
#[case::by_its_bare_name("status_bare_name", &["status", "edge", "-o", "name"])]
#[case::application("status_application", &["status", "shop"])]
#[case::tree("tree", &["tree", "policy/edge"])]
#[case::whole_tree("tree_all", &["tree", "bwbp/edge", "--all"])]
#[case::tree_as_json("tree_json", &["tree", "policy/edge", "-o", "json"])]
#[case::wait("wait", &["wait", "policy/edge"])]
#[case::wait_for_a_condition_of_applications("wait_settled", &["wait", "policy/edge", "--for", "settled"])]
#[case::whose("whose", &["whose", "deploy/web"])]
#[case::whose_as_json("whose_json", &["whose", "deploy/web", "-o", "json"])]
#[case::whose_of_an_unbound_object("whose_unbound", &["whose", "bwbp/edge"])]
#[case::explain("explain", &["explain", "deploy/web"])]
#[case::explain_where_it_is_missing("explain_missing", &["explain", "deploy/api", "-o", "json"])]
fn on_directories(#[case] name: &str, #[case] arguments: &[&str]) {
    assert_snapshot!(format!("fleet_{name}"), run(on_fleet(arguments)));
}

#[rstest]
#[case(80)]
#[case(120)]
#[case(200)]
fn the_output_fits(#[case] columns: u16) {
    for (name, arguments) in [
        ("status", &["status"][..]),
        ("status_policy", &["status", "policy/edge", "--all"]),
        ("tree", &["tree", "policy/edge", "--all"]),
    ] {
        let run = on_a_terminal(&mut on_fleet(arguments), columns);
        // Commands to copy are not cut.
        let text: Vec<_> = run.stdout.lines().filter(|line| !line.contains("--cluster")).collect();
        assert!(text.iter().all(|line| line.chars().count() <= usize::from(columns)), "{run}");
        assert_snapshot!(format!("fleet_{name}_{columns}"), text.join("\n"));
    }
}

#[rstest]
#[case::policy_without_clusters("no_cluster", &["status", "policy/edge"])]
#[case::name_of_a_policy_without_clusters("no_cluster_by_name", &["wait", "edge"])]
#[case::no_such_policy("no_policy", &["status", "policy/core", "--cluster", "east=east"])]
#[case::no_such_group("no_group", &["status", "core", "--cluster", "east=east"])]
#[case::duplicate("duplicate", &["status", "--cluster", "east=east", "--cluster", "east=west"])]
#[case::labels_of_an_unknown_cluster(
    "unknown_labels",
    &["status", "--cluster", "east=east", "--cluster-labels", "west=a=b"]
)]
#[case::labels_without_clusters("only_labels", &["status", "--cluster-labels", "west=a=b"])]
#[case::no_cluster_is_selected("none_selected", &["status", "policy/edge", "--cluster", "east=east"])]
#[case::tree_without_a_cluster("tree_none_selected", &["tree", "policy/edge", "--cluster", "east=east"])]
#[case::waiting_for_no_cluster("wait_none_selected", &["wait", "policy/edge", "--cluster", "east=east"])]
#[case::not_a_kubeconfig("not_a_kubeconfig", &["status", "policy/edge", "--cluster", "east=README.md"])]
#[case::files_to_explain("explain_files", &["explain", "-f", "hub", "--cluster", "east=east"])]
fn bad_input_has_a_way_out(#[case] name: &str, #[case] arguments: &[&str]) {
    let mut command = on_hub(arguments);
    if name == "explain_files" {
        command = bellwether(arguments);
        command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/clusters"));
    }
    assert_snapshot!(format!("fleet_invalid_{name}"), run(command));
}

#[test]
fn a_directory_without_manifests_is_an_error_and_hides_no_other_cluster() {
    let empty = TempDir::new().expect("a directory");
    let west = format!("west={}", empty.path().display());
    let mut command = on_hub(&["status", "policy/edge", "--all"]);
    command.args(["--cluster", "east=east", "--cluster", &west]).args(["--cluster-labels", LABELS[1]]);
    command.args(["--cluster-labels", LABELS[5]]);
    let run = run(command);
    assert!(run.stdout.contains("Deployment/web  east     ✓ Ready"), "{run}");
    assert!(
        run.stdout.contains("west is stale: cannot read Deployment.apps: no object could be read"),
        "{run}"
    );
    assert!(run.stderr.contains("cluster west: no objects in"), "{run}");
    assert!(!run.stdout.contains("no response"), "{run}");
    assert_eq!(run.code, Some(2), "{run}");
}

#[rstest]
#[case::status(&["status", "policy/edge"])]
#[case::tree(&["tree", "policy/edge"])]
#[case::wait(&["wait", "policy/edge"])]
fn the_files_of_a_cluster_that_cannot_be_read_are_the_reason(#[case] arguments: &[&str]) {
    let directory = TempDir::new().expect("a directory");
    fs::write(directory.path().join("west.yaml"), "kind: [").expect("a file");
    let mut command = on_hub(arguments);
    command.args(["--cluster", &format!("west={}", directory.path().display())]);
    command.args(["--cluster-labels", LABELS[5]]);
    let run = run(command);
    assert!(run.stdout.contains("no object could be read from the files"), "{run}");
    assert!(!run.stdout.contains("no response"), "{run}");
    assert!(run.stderr.contains("cluster west: ") && run.stderr.contains("west.yaml"), "{run}");
}

/// The tests have no kubeconfig.
#[rstest]
#[case::everywhere("everywhere", &["explain", "deploy/web", "-n", "shop", "-o", "json"])]
#[case::any_namespace("any_namespace", &["explain", "deploy/api"])]
#[case::another_namespace("another_namespace", &["explain", "deploy/web", "-n", "other"])]
#[case::unknown_kind("unknown_kind", &["explain", "deployx/web"])]
fn explain_needs_no_hub(#[case] name: &str, #[case] arguments: &[&str]) {
    let mut command = bellwether(arguments);
    command.args(["--cluster", "east=east", "--cluster", "west=west", "--now", NOW]);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/clusters"));
    assert_snapshot!(format!("explain_without_hub_{name}"), run(command));
}

/// As in `query`: a directory has all that its cluster has.
#[test]
fn an_object_of_a_kind_that_a_directory_does_not_have_is_missing_there() {
    let west = TempDir::new().expect("a directory");
    let other = "{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: shop}}";
    fs::write(west.path().join("west.yaml"), other).expect("a file");
    let west = format!("west={}", west.path().display());
    let mut command = on_hub(&["status", "policy/edge", "--cluster", &west]);
    command.args(["--cluster-labels", LABELS[5]]);
    let run = run(command);
    assert!(run.stdout.contains("Deployment/web -n shop @west  ∅ Missing"), "{run}");
    assert!(run.stdout.contains("west does not have all bound objects"), "{run}");
}

/// Its members are Unknown, and those of the others are shown.
#[test]
fn a_cluster_that_does_not_answer_is_named() {
    // The system accepts connections, and nothing answers.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    let kubeconfig = TempDir::new().expect("a directory");
    let path = kubeconfig.path().join("west.yaml");
    let text = format!(
        "{{apiVersion: v1, kind: Config, current-context: w, contexts: [{{name: w, context: {{cluster: w, user: w}}}}], \
         clusters: [{{name: w, cluster: {{server: 'http://{address}'}}}}], users: [{{name: w, user: {{}}}}]}}"
    );
    fs::write(&path, text).expect("a kubeconfig");
    let west = format!("west={}", path.display());
    let mut command = on_hub(&["status", "--request-timeout", "1s", "-o", "json"]);
    command.args(["--cluster", "east=east", "--cluster", &west, "--cluster-labels", LABELS[1]]);
    command.args(["--cluster-labels", LABELS[5]]);
    let run = run(command);
    assert_eq!(run.code, Some(2), "{run}");
    assert!(
        run.stderr.contains(&format!("cluster west: cannot connect to the API server at http://{address}")),
        "{run}"
    );
    let answer: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let policy = &answer["bindingPolicies"][0];
    assert_eq!(policy["state"], "Unknown", "{policy:#}");
    assert_eq!(policy["clusters"]["notReporting"][0]["name"], "west", "{policy:#}");
    let of = |cluster: &str| -> Vec<_> {
        let members = policy["objects"].as_array().into_iter().flatten();
        members.filter(|it| it["cluster"] == cluster).map(|it| it["state"].clone()).collect()
    };
    assert_eq!((of("east"), of("west")), (vec!["Ready".into(); 2], vec!["Unknown".into(); 2]), "{policy:#}");
    let application = &answer["applications"][0];
    assert_eq!(application["clusters"]["reporting"], 1, "{application:#}");
}

/// Where no cluster is named, the stored CombinedStatuses say how the clusters report.
#[test]
fn the_clusters_of_an_application_come_from_stored_combined_statuses() {
    let dump = TempDir::new().expect("a directory");
    let objects = "
apiVersion: bellwether.dev/v1alpha1
kind: Application
metadata: {name: shop, namespace: shop, uid: a}
spec: {selector: {}, components: {web: {group: apps, kind: Deployment, name: web}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop, uid: u1}
spec: {replicas: 1}
status: {replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1}
---
apiVersion: bellwether.dev/v1alpha1
kind: CombinedStatus
metadata:
  name: u1.p1
  namespace: shop
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: web, uid: u1}]
clusters:
  bound: 3
  reporting: 1
  stale: 1
  missing: 1
  notReporting: [{name: west, reason: Stale}, {name: north, reason: Missing}]
";
    fs::write(dump.path().join("dump.yaml"), objects).expect("a file");
    let of = |arguments: &[&str]| {
        let mut command = bellwether(arguments);
        command.args(["--from", "dump.yaml", "--now", NOW]).current_dir(dump.path());
        run(command)
    };
    assert_snapshot!("fleet_stored", of(&["status"]));
    assert_snapshot!("fleet_stored_of_one", of(&["status", "shop"]));
}
