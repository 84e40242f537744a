//! `--from` with dumps and manifests: pipes, duplicates, missing namespaces, owner references.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use rstest::rstest;
use serde_json::Value;

use super::applications;
use crate::{NOW, Run, bellwether};

/// Runs a command with these objects on standard input.
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
fn output(mut command: Command) -> Run {
    command.output().expect("the binary runs").into()
}

/// The Application `s` with members of these kinds.
fn application(kinds: &str) -> String {
    format!(
        "apiVersion: bellwether.dev/v1alpha1\nkind: Application\nmetadata: {{name: s, uid: s}}\nspec: {{selector: \
         {{matchLabels: {{app: s}}}}, componentKinds: [{kinds}]}}\n"
    )
}

/// An evicted Pod with this owner.
fn pod(name: &str, owner: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, uid: {name}, labels: {{app: s}}, ownerReferences: \
         [{{apiVersion: v1, kind: Any, name: {owner}, uid: {owner}}}]}}\nstatus: {{phase: Failed, reason: Evicted}}\n"
    )
}

/// A Deployment with two replicas, of which so many are ready.
fn deployment(name: &str, ready: u8) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: {name}, uid: {name}, generation: 1, labels: {{app: \
         s}}}}\nspec: {{replicas: 2}}\nstatus: {{observedGeneration: 1, replicas: 2, updatedReplicas: 2, readyReplicas: \
         {ready}, availableReplicas: {ready}}}\n"
    )
}

const DEPLOYMENTS: &str = "{group: apps, kind: Deployment}";
const DEPLOYMENTS_AND_PODS: &str = "{kind: Pod}, {group: apps, kind: Deployment}";

/// A Pod that is a member is shown even if it is below a Deployment that is Ready.
#[test]
fn members_that_are_not_ready_are_shown_once() {
    let objects = application(DEPLOYMENTS_AND_PODS)
        + &deployment("web", 2)
        + &deployment("api", 1)
        + &pod("evicted", "web");
    for arguments in [&["status", "s"][..], &["tree", "s"], &["tree", "s", "--all"]] {
        let run = piped(arguments, &objects);
        assert!(run.stdout.contains("Pod/evicted"), "{arguments:?}: {run}");
        assert_eq!(run.stdout.matches("Pod/evicted").count(), 1, "{arguments:?}: {run}");
    }
}

#[test]
fn cycles_of_owner_references_are_shown_once() {
    let objects = application(DEPLOYMENTS_AND_PODS)
        + &deployment("web", 1)
        + &pod("a", "b")
        + &pod("b", "a")
        + &pod("c", "c");
    let run = piped(&["tree", "s"], &objects);
    for pod in ["Pod/a ", "Pod/b ", "Pod/c "] {
        assert_eq!(run.stdout.matches(pod).count(), 1, "{run}");
    }
    assert!(piped(&["status", "s"], &objects).stdout.contains("Pod/c"), "{run}");
}

/// Objects must not be able to crash the process.
#[rstest]
#[case::drawn(&[])]
#[case::as_json(&["-o", "json"])]
#[case::as_names(&["-o", "name"])]
fn a_long_chain_of_owner_references_is_cut(#[case] format: &[&str]) {
    let mut objects = application(DEPLOYMENTS_AND_PODS) + &deployment("web", 1) + &pod("p0", "web");
    for number in 1..3_000 {
        objects += &pod(&format!("p{number}"), &format!("p{}", number - 1));
    }
    let run = piped(&[&["tree", "s"][..], format].concat(), &objects);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stdout.contains("p14") && !run.stdout.contains("p15"), "{}", run.stdout);
    let more = match format {
        ["-o", "json"] => "\"omittedDescendants\": 2985",
        ["-o", "name"] => "",
        _ => "… 2985 more objects below",
    };
    assert!(run.stdout.contains(more), "{}", run.stdout);
}

#[test]
fn standard_input_is_read_once() {
    let objects = application(DEPLOYMENTS) + &deployment("web", 2);
    let run = piped(&["status"], &objects);
    assert!(run.code == Some(0) && run.stdout.contains("1/1"), "{run}");
    let run = piped(&["whose", "deploy/web"], &objects);
    assert!(
        run.code == Some(0) && run.stdout.starts_with("Deployment/web belongs to Application default/s\n"),
        "{run}"
    );
}

#[test]
fn rollups_from_standard_input() {
    let objects = "apiVersion: bellwether.dev/v1alpha1\nkind: Rollup\nmetadata: {name: all}\nspec: {components: [{group: apps, \
                   kind: Deployment, selector: {}}]}\n"
        .to_owned()
        + &deployment("web", 2);
    let run = piped(&["status", "rollup/all"], &objects);
    assert!(
        run.code == Some(1) && run.stdout.contains("  1  Deployment/web -n default  ◐ InProgress"),
        "{run}"
    );
}

#[test]
fn without_a_namespace_all_of_them_are_searched() {
    let run = output(applications(&["whose", "deploy/checkout"]));
    assert!(run.stdout.starts_with("Deployment/checkout belongs to Application shop/checkout\n"), "{run}");
    let run = output(applications(&["explain", "deploy/checkout"]));
    assert!(run.stdout.starts_with("Deployment shop/checkout: "), "{run}");
    let two = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: one}}\n---\n{apiVersion: v1, kind: \
               ConfigMap, metadata: {name: a, namespace: two}}\n";
    let run = piped(&["whose", "cm/a"], two);
    assert_eq!(
        run.stderr,
        "error: ambiguous name \"a\": ConfigMap in namespaces one, two. Choose one with -n\n"
    );
    let run = piped(&["whose", "cm/a", "-n", "two"], two);
    assert!(run.stdout.starts_with("ConfigMap/a in namespace two is not a member of "), "{run}");
    let run = piped(&["whose", "cm/b"], two);
    assert_eq!((run.stderr.as_str(), run.code), ("error: ConfigMap/b not found in stdin\n", Some(2)));
}

/// Two dumps of an object: the newer one is used, whatever the order.
#[rstest]
#[case::newest_first("200", "100", "Ready")]
#[case::newest_last("100", "200", "InProgress")]
#[case::without_versions("", "", "InProgress")]
fn the_newest_of_two_versions_is_used(#[case] first: &str, #[case] second: &str, #[case] state: &str) {
    let version = |object: String, version: &str| {
        object.replace("generation: 1,", &format!("generation: 1, resourceVersion: \"{version}\","))
    };
    let objects = application(DEPLOYMENTS_AND_PODS)
        + &version(deployment("web", 2), first)
        + &version(deployment("web", 1), second);
    let tree = piped(&["tree", "s", "-o", "json"], &objects);
    let tree: Value = serde_json::from_str(&tree.stdout).expect("JSON");
    assert_eq!(tree["children"][0]["state"], state, "{tree:#}");
    let explained = piped(&["explain", "deploy/web", "-o", "json", "--now", NOW], &objects);
    let explained: Value = serde_json::from_str(&explained.stdout).expect("JSON");
    assert_eq!(explained[0]["state"], state, "{explained:#}");
}

#[rstest]
#[case::cluster("Cluster", "Thing/t is not a member of ")]
#[case::namespaced("Namespaced", "Thing/t in namespace default is not a member of ")]
fn a_crd_decides_whether_objects_have_a_namespace(#[case] scope: &str, #[case] answer: &str) {
    let objects = format!(
        "{{apiVersion: acme.io/v1, kind: Thing, metadata: {{name: t}}}}\n---\n{{apiVersion: apiextensions.k8s.io/v1, kind: \
         CustomResourceDefinition, metadata: {{name: things.acme.io}}, spec: {{group: acme.io, names: {{kind: Thing}}, scope: \
         {scope}}}}}\n"
    );
    let run = piped(&["whose", "thing/t"], &objects);
    assert!(run.stdout.starts_with(answer), "{run}");
}

#[rstest]
#[case("v1", "Node")]
#[case("networking.k8s.io/v1", "IPAddress")]
#[case("networking.k8s.io/v1", "ServiceCIDR")]
#[case("resource.k8s.io/v1", "DeviceClass")]
#[case("storage.k8s.io/v1", "VolumeAttributesClass")]
fn the_namespace_of_a_cluster_scoped_object_is_ignored(#[case] api: &str, #[case] kind: &str) {
    let one = |name: &str, more: &str| {
        format!("---\n{{apiVersion: {api}, kind: {kind}, metadata: {{name: {name}{more}}}}}\n")
    };
    let run = piped(&["whose", &format!("{kind}/a")], &(one("a", "") + &one("b", ", namespace: stray")));
    assert!(run.stdout.starts_with(&format!("{kind}/a is not a member of ")), "{run}");
}

/// Two Applications of the same name in two APIs, and cluster-scoped objects.
const BOTH: &str = "
apiVersion: app.k8s.io/v1beta1
kind: Application
metadata: {name: s, namespace: blog, uid: theirs}
spec:
  selector: {matchLabels: {a: c}}
  addOwnerRef: true
  componentKinds: [{group: rbac.authorization.k8s.io, kind: ClusterRole}, {kind: ConfigMap}]
---
apiVersion: bellwether.dev/v1alpha1
kind: Application
metadata: {name: s, namespace: blog, uid: ours}
spec: {selector: {matchLabels: {b: c}}, componentKinds: [{kind: ConfigMap}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: both, namespace: blog, labels: {a: c, b: c}, annotations: {kubernetes.io/application: s}}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: theirs
  namespace: blog
  labels: {a: c}
  ownerReferences: [{apiVersion: app.k8s.io/v1beta1, kind: Application, name: s, uid: theirs}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader, labels: {a: c}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: unused}
---
apiVersion: v1
kind: Pod
metadata:
  name: check
  namespace: blog
  labels: {bellwether.dev/health-check: abc}
  ownerReferences: [{apiVersion: bellwether.dev/v1alpha1, kind: Application, name: s, uid: ours}]
";

#[rstest]
#[case::member_of_both(
    "cm/both",
    "ConfigMap/both belongs to Application.app.k8s.io blog/s\nConfigMap/both belongs to Application blog/s\n  not owned yet: \
     the controller has not set the owner reference\n  If no controller is running, start one:\n    bellwether controller\n",
    0
)]
#[case::owned(
    "cm/theirs",
    "ConfigMap/theirs belongs to Application.app.k8s.io blog/s\n  owned: deleted together with Application.app.k8s.io \
     blog/s\n",
    0
)]
#[case::health_check(
    "pod/check",
    "Pod/check belongs to Application blog/s (health check)\n  owned: deleted together with the Application\n",
    0
)]
#[case::cluster_scoped(
    "clusterrole/reader",
    "ClusterRole/reader belongs to Application.app.k8s.io blog/s\n",
    0
)]
#[case::not_a_member(
    "clusterrole/unused",
    "ClusterRole/unused is not a member of any Application in stdin or of any Rollup\n",
    1
)]
fn whose_with_applications_of_two_apis(#[case] object: &str, #[case] expected: &str, #[case] code: i32) {
    let run = piped(&["whose", object], BOTH);
    assert_eq!(run.stdout, expected, "{run}");
    assert_eq!(run.code, Some(code), "{run}");
}

#[test]
fn whose_has_the_api_group_in_json() {
    let run = piped(&["whose", "cm/both", "-o", "json"], BOTH);
    let answer: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let expected = serde_json::json!([
        { "group": "app.k8s.io", "kind": "Application", "name": "s", "owner": false },
        { "group": "bellwether.dev", "kind": "Application", "name": "s", "owner": false },
    ]);
    assert_eq!(answer["applications"], expected, "{answer:#}");
}

/// The object may be a member of the Application that is invalid.
#[test]
fn whose_cannot_tell_with_an_invalid_application() {
    let objects = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {kubernetes.io/application: s}}}\n---\n\
                   {apiVersion: bellwether.dev/v1alpha1, kind: Application, metadata: {name: s}, spec: {selector: 3}}\n";
    let run = piped(&["whose", "cm/a"], objects);
    assert_eq!(run.code, Some(2), "{run}");
    assert_eq!(
        run.stdout,
        "cannot determine the Application or Rollup of ConfigMap/a: cannot list all Applications and Rollups\n  annotation \
         kubernetes.io/application names Application s, which cannot be read\n"
    );
}

#[rstest]
#[case::its_namespace("shop/checkout")]
#[case::its_short_name("bwapp/checkout")]
fn names_of_applications(#[case] name: &str) {
    let run = output(applications(&["status", name, "-o", "name"]));
    assert_eq!(run.stdout, "application.bellwether.dev/checkout\n", "{run}");
}

#[test]
fn a_name_with_another_namespace_than_the_flag() {
    let run = output(applications(&["tree", "shop/checkout", "-n", "blog"]));
    let expected = "error: \"shop/checkout\" is not in namespace blog. Use -n shop\n";
    assert_eq!((run.stderr.as_str(), run.code), (expected, Some(2)));
}

/// The name of a missing file is not taken for an object in the cluster.
#[rstest]
#[case("applications/nothing.yaml")]
#[case("applications/nothing/else")]
fn a_missing_file_is_not_an_object(#[case] file: &str) {
    let run = output(bellwether(&["explain", file]));
    assert!(run.stderr.starts_with("error: ") && run.stderr.contains(file), "{run}");
    assert_eq!(run.code, Some(2), "{run}");
}

#[test]
fn explain_files_with_from() {
    let run = output(applications(&["explain", "applications/checkout.yaml"]));
    let expected =
        "error: --from requires objects as KIND/NAME. To explain the files themselves, remove --from\n";
    assert_eq!((run.stderr.as_str(), run.code), (expected, Some(2)));
}
