//! `bellwether explain`.

use insta::assert_snapshot;
use serde_json::Value;

use crate::{judged, judged_from};

#[test]
fn how_a_verdict_came_about() {
    assert_snapshot!(judged(&["explain", "-f", "shop.yaml"]));
}

#[test]
fn for_programs() {
    let json = judged(&["explain", "shop.yaml", "-o", "json"]);
    assert_eq!((json.stderr.as_str(), json.code), ("", Some(1)));
    let said: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(said.as_array().map(Vec::len), Some(6));
    assert!(said[0]["evidence"].as_array().is_some_and(|fields| !fields.is_empty()), "{said:#}");
    let assessed = judged(&["assess", "shop.yaml", "--explain", "-o", "json"]);
    assert_eq!(json.stdout, assessed.stdout, "the two commands say the same");
    let yaml = judged(&["explain", "shop.yaml", "-o", "yaml"]);
    let assessed = judged(&["assess", "shop.yaml", "--explain", "-o", "yaml"]);
    assert_eq!(yaml.stdout, assessed.stdout, "also in YAML");
}

/// Unschedulable Pods are given a little time.
#[test]
fn what_time_alone_will_change() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop}\nstatus:\n  phase: Pending\n  conditions:\n  \
               - {type: PodScheduled, status: \"False\", reason: Unschedulable, message: no node has room, lastTransitionTime: \
               \"2026-11-14T11:59:50Z\"}\n";
    let run = judged_from(&["explain", "-"], pod);
    assert!(
        run.stdout.contains("  later     Failed from 2026-11-14T12:00:05Z on if nothing changes: "),
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
    let run = judged_from(&["explain", "-"], &widget);
    assert!(run.stdout.contains("xxx…\n"), "{}", run.stdout);
    let longest = run.stdout.lines().skip(1).map(|line| line.chars().count()).max();
    assert!(longest < Some(200), "{longest:?}");
}

#[test]
fn an_empty_list_is_no_error() {
    let run = judged_from(&["explain", "-"], "apiVersion: v1\nkind: List\nitems: []\n");
    assert_eq!((run.stdout.as_str(), run.stderr.as_str(), run.code), ("No objects.\n", "", Some(0)));
}

#[test]
fn nothing_is_not_well() {
    let run = judged_from(&["explain", "-"], "");
    assert_eq!((run.stdout.as_str(), run.code), ("", Some(2)));
    assert_eq!(run.stderr, "error: no objects in standard input\n");
}
