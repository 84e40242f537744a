//! Files that stand for a cluster, as people have them: piped, repeated, half of them.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use rstest::rstest;
use serde_json::Value;

use super::fleet;
use crate::{NOW, Run, bellwether};

/// The command, told these objects through a pipe.
#[expect(clippy::expect_used, reason = "the binary reads all of its input")]
fn piped(arguments: &[&str], objects: &str) -> Run {
    let mut child = bellwether(arguments)
        .args(["--from", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().expect("a pipe").write_all(objects.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends").into()
}

#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn told(mut command: Command) -> Run {
    command.output().expect("the binary runs").into()
}

/// An Application `s` of our own, of these kinds.
fn application(kinds: &str) -> String {
    format!(
        "apiVersion: bellwether.dev/v1alpha1\nkind: Application\nmetadata: {{name: s, uid: s}}\nspec: {{selector: \
         {{matchLabels: {{app: s}}}}, componentKinds: [{kinds}]}}\n"
    )
}

/// A Deployment of it, of which so many of two replicas are ready.
fn deployment(name: &str, ready: u8) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, uid: {name}, generation: 1, labels: {{app: \
         s}}}}\nspec: {{replicas: 2}}\nstatus: {{observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: \
         {ready}, availableReplicas: {ready}}}\n"
    )
}

const DEPLOYMENTS: &str = "{group: apps, kind: Deployment}";
const DEPLOYMENTS_AND_PODS: &str = "{kind: Pod}, {group: apps, kind: Deployment}";

#[test]
fn a_pipe_is_read_once_and_looked_at_as_often_as_needed() {
    let objects = application(DEPLOYMENTS) + &deployment("web", 2);
    let run = piped(&["status"], &objects);
    assert!(run.code == Some(0) && run.stdout.contains("1/1"), "{run}");
    let run = piped(&["whose", "deploy/web"], &objects);
    assert!(run.code == Some(0) && run.stdout.contains("counted by s"), "{run}");
}

/// Without a namespace, all of the files are meant.
#[test]
fn objects_are_found_in_any_namespace() {
    let run = told(fleet(&["whose", "deploy/checkout"]));
    assert!(run.stdout.starts_with("Deployment.apps shop/checkout "), "{run}");
    let run = told(fleet(&["explain", "deploy/checkout"]));
    assert!(run.stdout.starts_with("Deployment shop/checkout is "), "{run}");
    let two = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: one}}\n---\n{apiVersion: v1, kind: \
               ConfigMap, metadata: {name: a, namespace: two}}\n";
    let run = piped(&["whose", "cm/a"], two);
    assert_eq!(run.stderr, "error: ConfigMap \"a\" may be one/a or two/a: say which with -n\n");
    let run = piped(&["whose", "cm/a", "-n", "two"], two);
    assert!(run.stdout.starts_with("ConfigMap two/a "), "{run}");
    let run = piped(&["whose", "cm/b"], two);
    assert_eq!((run.stderr.as_str(), run.code), ("error: there is no ConfigMap \"b\" in -\n", Some(2)));
}

/// A dump over a dump: the newest of an object counts, wherever it stands.
#[rstest]
#[case::newest_first("200", "100", "Ready")]
#[case::newest_last("100", "200", "InProgress")]
#[case::without_versions("", "", "InProgress")]
fn of_two_versions_the_newest_counts(#[case] first: &str, #[case] second: &str, #[case] state: &str) {
    let version = |object: String, version: &str| {
        object.replace("generation: 1,", &format!("generation: 1, resourceVersion: \"{version}\","))
    };
    let objects = application(DEPLOYMENTS_AND_PODS)
        + &version(deployment("web", 2), first)
        + &version(deployment("web", 1), second);
    let tree = piped(&["tree", "s", "-o", "json"], &objects);
    let tree: Value = serde_json::from_str(&tree.stdout).expect("JSON");
    assert_eq!(tree["owns"][0]["state"], state, "{tree:#}");
    let explained = piped(&["explain", "deploy/web", "-o", "json", "--now", NOW], &objects);
    let explained: Value = serde_json::from_str(&explained.stdout).expect("JSON");
    assert_eq!(explained[0]["state"], state, "{explained:#}");
}

/// Definitions say where objects are; of the kinds of Kubernetes everybody knows.
#[rstest]
#[case::cluster("Cluster", "Thing.acme.io t ")]
#[case::namespaced("Namespaced", "Thing.acme.io default/t ")]
fn definitions_decide_where_objects_are(#[case] scope: &str, #[case] told: &str) {
    let objects = format!(
        "{{apiVersion: acme.io/v1, kind: Thing, metadata: {{name: t}}}}\n---\n{{apiVersion: apiextensions.k8s.io/v1, kind: \
         CustomResourceDefinition, metadata: {{name: things.acme.io}}, spec: {{group: acme.io, names: {{kind: Thing}}, scope: \
         {scope}}}}}\n"
    );
    let run = piped(&["whose", "thing/t"], &objects);
    assert!(run.stdout.starts_with(told), "{run}");
}

#[rstest]
#[case("v1", "Node")]
#[case("networking.k8s.io/v1", "IPAddress")]
#[case("networking.k8s.io/v1", "ServiceCIDR")]
#[case("resource.k8s.io/v1", "DeviceClass")]
#[case("storage.k8s.io/v1", "VolumeAttributesClass")]
fn a_stray_namespace_changes_nothing(#[case] api: &str, #[case] kind: &str) {
    let one = |name: &str, more: &str| {
        format!("---\n{{apiVersion: {api}, kind: {kind}, metadata: {{name: {name}{more}}}}}\n")
    };
    let run = piped(&["whose", &format!("{kind}/a")], &(one("a", "") + &one("b", ", namespace: stray")));
    assert!(run.stdout.contains(" a was handed over to no Application"), "{run}");
}
