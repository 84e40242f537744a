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

/// A Pod of it that was evicted, with this owner.
fn pod(name: &str, owner: &str) -> String {
    format!(
        "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, uid: {name}, labels: {{app: s}}, ownerReferences: \
         [{{apiVersion: v1, kind: Any, name: {owner}, uid: {owner}}}]}}\nstatus: {{phase: Failed, reason: Evicted}}\n"
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

/// A Deployment may be fine while one of its Pods is not: who counts Pods wants to see that one.
#[test]
fn a_member_that_is_not_ready_is_told_wherever_it_is() {
    let objects = application(DEPLOYMENTS_AND_PODS)
        + &deployment("web", 2)
        + &deployment("api", 1)
        + &pod("evicted", "web");
    for arguments in [&["status", "s"][..], &["tree", "s"], &["tree", "s", "--all"]] {
        let run = piped(arguments, &objects);
        assert!(run.stdout.contains("Pod evicted"), "{arguments:?}: {run}");
        assert_eq!(run.stdout.matches("Pod evicted").count(), 1, "{arguments:?}: {run}");
    }
}

#[test]
fn owners_in_a_circle_are_told_once() {
    let objects = application(DEPLOYMENTS_AND_PODS)
        + &deployment("web", 1)
        + &pod("a", "b")
        + &pod("b", "a")
        + &pod("c", "c");
    let run = piped(&["tree", "s"], &objects);
    for pod in ["Pod a ", "Pod b ", "Pod c "] {
        assert_eq!(run.stdout.matches(pod).count(), 1, "{run}");
    }
    assert!(piped(&["status", "s"], &objects).stdout.contains("Pod c"), "{run}");
}

/// Whoever may write objects must not be able to end the process of who looks at them.
#[rstest]
#[case::drawn(&[])]
#[case::as_json(&["-o", "json"])]
#[case::as_names(&["-o", "name"])]
fn a_long_chain_of_owners_is_told_as_deep_as_it_matters(#[case] format: &[&str]) {
    let mut objects = application(DEPLOYMENTS_AND_PODS) + &deployment("web", 1) + &pod("p0", "web");
    for number in 1..3_000 {
        objects += &pod(&format!("p{number}"), &format!("p{}", number - 1));
    }
    let run = piped(&[&["tree", "s"][..], format].concat(), &objects);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stdout.contains("p14") && !run.stdout.contains("p15"), "{}", run.stdout);
    let more = match format {
        ["-o", "json"] => "\"moreBelow\": 2985",
        ["-o", "name"] => "",
        _ => "… and 2985 more below",
    };
    assert!(run.stdout.contains(more), "{}", run.stdout);
}

#[test]
fn a_pipe_is_read_once_and_looked_at_as_often_as_needed() {
    let objects = application(DEPLOYMENTS) + &deployment("web", 2);
    let run = piped(&["status"], &objects);
    assert!(run.code == Some(0) && run.stdout.contains("1/1"), "{run}");
    let run = piped(&["whose", "deploy/web"], &objects);
    assert!(run.code == Some(0) && run.stdout.contains("counted by s"), "{run}");
}

#[test]
fn rollups_come_through_a_pipe_too() {
    let objects = "apiVersion: bellwether.dev/v1alpha1\nkind: Rollup\nmetadata: {name: all}\nspec: {components: [{group: apps, \
                   kind: Deployment, selector: {}}]}\n"
        .to_owned()
        + &deployment("web", 2);
    let run = piped(&["status", "rollup/all"], &objects);
    assert!(run.code == Some(1) && run.stdout.contains("  1  Deployment default/web  ? Unknown"), "{run}");
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

/// Two Applications of one name, in two APIs; and what is in no namespace.
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
metadata: {name: nobodys}
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
#[case::counted_by_both("cm/both", "By its labels it is counted by s (Application.app.k8s.io).\n", 0)]
#[case::theirs("cm/theirs", "It is a member of s (Application.app.k8s.io), and is deleted with it.\n", 0)]
#[case::a_health_check(
    "pod/check",
    "Pod blog/check is the health check of Application s, and is deleted with it.\n",
    0
)]
#[case::in_no_namespace(
    "clusterrole/reader",
    "By its labels it is counted by s (Application.app.k8s.io).\n",
    0
)]
#[case::in_no_namespace_and_nobodys("clusterrole/nobodys", "No Application in - counts it.\n", 1)]
fn whose_among_applications_of_two_apis(#[case] object: &str, #[case] last: &str, #[case] code: i32) {
    let run = piped(&["whose", object], BOTH);
    assert!(run.stdout.ends_with(last) && !run.stdout.contains(" /"), "{run}");
    assert_eq!(run.code, Some(code), "{run}");
}

#[test]
fn whose_names_the_api_for_programs() {
    let run = piped(&["whose", "cm/both", "-o", "json"], BOTH);
    let told: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let expected = serde_json::json!([
        { "kind": "Application.app.k8s.io", "name": "s", "owns": false },
        { "kind": "Application.bellwether.dev", "name": "s", "owns": false },
    ]);
    assert_eq!(told["countedBy"], expected, "{told:#}");
}

/// What could not be read may have been what counts it.
#[test]
fn whose_denies_nothing_that_it_could_not_read() {
    let objects = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {kubernetes.io/application: s}}}\n---\n\
                   {apiVersion: bellwether.dev/v1alpha1, kind: Application, metadata: {name: s}, spec: {selector: 3}}\n";
    let run = piped(&["whose", "cm/a"], objects);
    assert_eq!(run.code, Some(2), "{run}");
    assert!(!run.stdout.contains("No Application") && !run.stdout.contains("not there"), "{run}");
    assert!(run.stdout.contains("of which nothing could be read"), "{run}");
}

#[rstest]
#[case::its_namespace("shop/checkout")]
#[case::its_short_name("bwapp/checkout")]
fn applications_are_named_as_they_are_listed(#[case] name: &str) {
    let run = told(fleet(&["status", name, "-o", "name"]));
    assert_eq!(run.stdout, "application.bellwether.dev/checkout\n", "{run}");
}

#[test]
fn one_namespace_at_a_time() {
    let run = told(fleet(&["tree", "shop/checkout", "-n", "blog"]));
    let expected = "error: \"shop/checkout\" is not in namespace blog: choose the namespace with -n shop\n";
    assert_eq!((run.stderr.as_str(), run.code), (expected, Some(2)));
}

/// Whoever misspells a file does not mean a cluster.
#[rstest]
#[case("fleet/nothing.yaml")]
#[case("fleet/nothing/else")]
fn a_file_that_is_missing_is_a_file(#[case] file: &str) {
    let run = told(bellwether(&["explain", file]));
    assert!(run.stderr.starts_with(&format!("error: cannot read {file}: ")), "{run}");
    assert_eq!(run.code, Some(2), "{run}");
}

#[test]
fn files_are_no_objects_of_files() {
    let run = told(fleet(&["explain", "fleet/checkout.yaml"]));
    let expected = "error: --from stands for a cluster: name objects in it as KIND/NAME, or leave --from out to explain \
                    files\n";
    assert_eq!((run.stderr.as_str(), run.code), (expected, Some(2)));
}
