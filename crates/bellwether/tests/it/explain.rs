//! `bellwether explain` of files and standard input. Objects of a cluster are in `groups`.

use insta::assert_snapshot;
use serde_json::Value;

use crate::{Run, bellwether, run_on_objects, run_with_input};

#[test]
fn rule_and_fields() {
    assert_snapshot!(run_on_objects(&["explain", "-f", "shop.yaml"]));
}

#[test]
fn json_and_yaml_are_those_of_assess() {
    let json = run_on_objects(&["explain", "shop.yaml", "-o", "json"]);
    assert_eq!((json.stderr.as_str(), json.code), ("", Some(1)));
    let rows: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(rows.as_array().map(Vec::len), Some(6));
    assert!(rows[0]["evidence"].as_array().is_some_and(|fields| !fields.is_empty()), "{rows:#}");
    let assessed = run_on_objects(&["assess", "shop.yaml", "--explain", "-o", "json"]);
    assert_eq!(json.stdout, assessed.stdout, "of both commands");
    let yaml = run_on_objects(&["explain", "shop.yaml", "-o", "yaml"]);
    let assessed = run_on_objects(&["assess", "shop.yaml", "--explain", "-o", "yaml"]);
    assert_eq!(yaml.stdout, assessed.stdout, "of both commands");
}

/// An unschedulable Pod is Failed after 15 seconds.
#[test]
fn verdicts_that_change_with_time() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nstatus:\n  phase: Pending\n  conditions:\n  \
               - {type: PodScheduled, status: \"False\", reason: Unschedulable, message: no node has room, lastTransitionTime: \
               \"2026-11-14T11:59:50Z\"}\n";
    let run = run_with_input(&["explain", "-"], pod);
    assert!(
        run.stdout.contains("  later     Failed at 2026-11-14T12:00:05Z if the object does not change: "),
        "{}",
        run.stdout
    );
}

#[test]
fn long_values_are_cut() {
    let widget = format!(
        "apiVersion: acme.io/v1\nkind: Widget\nmetadata: {{name: w1}}\nstatus: {{phase: {}}}\n",
        "x".repeat(5000)
    );
    let run = run_with_input(&["explain", "-"], &widget);
    assert!(run.stdout.contains("xxx…\n"), "{}", run.stdout);
    let longest = run.stdout.lines().skip(1).map(|line| line.chars().count()).max();
    assert!(longest < Some(200), "{longest:?}");
}

#[test]
fn an_empty_list_is_not_an_error() {
    let run = run_with_input(&["explain", "-"], "apiVersion: v1\nkind: List\nitems: []\n");
    assert_eq!((run.stdout.as_str(), run.stderr.as_str(), run.code), ("No objects found.\n", "", Some(0)));
}

#[test]
fn empty_input_is_an_error() {
    let run = run_with_input(&["explain", "-"], "");
    assert_eq!((run.stdout.as_str(), run.code), ("", Some(2)));
    assert_eq!(run.stderr, "error: no objects in stdin\n");
}

#[test]
fn a_bare_name_is_not_a_file() {
    let run = Run::from(bellwether(&["explain", "wordpress"]).output().expect("the binary runs"));
    let expected =
        "error: no such file: wordpress. For an object in the cluster, use KIND/NAME, e.g. bwapp/wordpress\n";
    assert_eq!((run.stdout.as_str(), run.stderr.as_str(), run.code), ("", expected, Some(2)));
}
