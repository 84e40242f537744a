//! `bellwether assess`.

use std::fs;

use insta::assert_snapshot;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{judged, judged_from, run};

const READY: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n";

#[test]
fn the_worst_comes_first() {
    assert_snapshot!(judged(&["assess", "-f", "shop.yaml"]));
}

#[test]
fn wide_has_reasons_and_rules() {
    assert_snapshot!(judged(&["assess", "shop.yaml", "-o", "wide"]));
}

#[test]
fn explained() {
    assert_snapshot!(judged_from(&["assess", "-", "--explain"], READY));
}

#[test]
fn as_json() {
    assert_snapshot!(judged(&["assess", "pods.json", "-o", "json"]));
}

#[test]
fn as_yaml_with_evidence() {
    assert_snapshot!(judged(&["assess", "pods.json", "-o", "yaml", "--explain"]));
}

#[test]
fn as_names() {
    assert_snapshot!(judged(&["assess", "shop.yaml", "list.yaml", "-o", "name"]));
}

#[rstest]
#[case::kstatus("kstatus")]
#[case::argo("argo")]
fn in_the_words_of(#[case] dialect: &str) {
    let table = judged(&["assess", "shop.yaml", "--dialect", dialect]);
    assert_snapshot!(format!("table_of_{dialect}"), table);
    let json = judged(&["assess", "pods.json", "--dialect", dialect, "-o", "json"]);
    assert_snapshot!(format!("json_of_{dialect}"), json);
}

#[test]
fn argo_may_have_no_opinion() {
    let widget = "apiVersion: acme.io/v1\nkind: Widget\nmetadata: {name: w1}\n";
    let run = judged_from(&["assess", "-", "--dialect", "argo", "-o", "json"], widget);
    let said: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let expected =
        json!([{"apiVersion": "acme.io/v1", "kind": "Widget", "name": "w1", "status": null, "message": ""}]);
    assert_eq!((said, run.code), (expected, Some(0)));
}

#[test]
fn what_is_broken_does_not_hide_the_rest() {
    assert_snapshot!(judged(&["assess", "broken.yaml", "lines.jsonl", "nowhere.yaml"]));
    assert_snapshot!(
        "broken_as_json",
        judged(&["assess", "broken.yaml", "-o", "json", "--dialect", "kstatus"])
    );
}

/// Escape sequences in names and messages stay text.
#[test]
fn objects_play_no_tricks() {
    assert_snapshot!(judged(&["assess", "tricks.yaml"]));
}

#[rstest]
#[case::all_ready(READY, 0)]
#[case::an_empty_list("apiVersion: v1\nkind: List\nitems: []\n", 0)]
#[case::something_is_not("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nstatus: {phase: Failed}\n", 1)]
#[case::nobody_can_tell("apiVersion: acme.io/v1\nkind: Widget\nmetadata: {name: a}\n", 1)]
#[case::no_object("just text\n", 2)]
#[case::nothing("", 2)]
fn exit_codes(#[case] input: &str, #[case] code: i32) {
    for format in ["table", "wide", "json", "yaml", "name"] {
        assert_eq!(judged_from(&["assess", "-", "-o", format], input).code, Some(code), "{format}");
    }
}

#[rstest]
#[case::dash(&["assess", "-"])]
#[case::flag(&["assess", "-f", "-"])]
#[case::nothing(&["assess"])]
fn standard_input(#[case] arguments: &[&str]) {
    let run = judged_from(&[arguments, &["-o", "name"]].concat(), READY);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str(), run.code), ("service/web\n", "", Some(0)));
}

/// A command that failed prints nothing, and nothing must not look healthy.
#[test]
fn nothing_is_not_well() {
    let run = judged_from(&["assess", "-"], "");
    assert_eq!((run.stdout.as_str(), run.code), ("", Some(2)));
    assert_eq!(run.stderr, "error: no objects in standard input\n");
}

#[test]
fn an_empty_list_is_no_error() {
    let run = judged_from(&["assess", "-"], r#"{"apiVersion":"v1","items":[],"kind":"List"}"#);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str(), run.code), ("No objects.\n", "", Some(0)));
}

#[test]
fn a_directory_is_read_by_name_and_to_its_depth() {
    let directory = tempfile::tempdir().expect("a directory");
    let object = |name: &str| format!("apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n");
    for (path, name) in [
        ("b.yaml", "second"),
        ("a/deep/x.yml", "first"),
        ("c.json", "third"),
        ("d.jsonl", "fourth"),
        ("notes.txt", "not-an-object"),
        (".git/config.yaml", "hidden"),
    ] {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        let object = if path.extension().is_some_and(|extension| extension == "jsonl") {
            format!(r#"{{"apiVersion":"v1","kind":"Service","metadata":{{"name":"{name}"}}}}"#)
        } else {
            object(name)
        };
        fs::write(path, object).expect("a file");
    }
    // It leads in a circle.
    std::os::unix::fs::symlink(directory.path(), directory.path().join("loop")).expect("a link");
    let run = run(&["assess", directory.path().to_str().expect("a name"), "-o", "name"]);
    assert_eq!(run.stderr, "");
    assert_eq!(run.stdout, "service/first\nservice/second\nservice/third\nservice/fourth\n");
}

#[test]
fn what_is_no_text_is_an_error() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), b"apiVersion: \xff\xfe").expect("a file");
    let run = run(&["assess", file.path().to_str().expect("a name")]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.ends_with(": not UTF-8 (byte 12)\n"), "{}", run.stderr);
}

fn services(count: usize) -> String {
    let documents: Vec<_> = (0..count)
        .map(|number| format!("apiVersion: v1\nkind: Service\nmetadata: {{name: s{number}}}\n"))
        .collect();
    documents.join("---\n")
}

#[rstest]
#[case::a_few(20, &[], 20)]
#[case::many(21, &[], 0)]
#[case::many_and_all(21, &["--all"], 21)]
#[case::many_and_wide(21, &["-o", "wide"], 21)]
fn many_that_are_ready_become_a_number(#[case] count: usize, #[case] more: &[&str], #[case] rows: usize) {
    let run = judged_from(&[&["assess", "-"], more].concat(), &services(count));
    assert_eq!(run.stdout.matches("Service/").count(), rows, "{}", run.stdout);
    let hint = if rows == 0 { " (--all lists them)" } else { "" };
    assert!(run.stdout.ends_with(&format!("{count} ready{hint}.\n")), "{}", run.stdout);
}

#[test]
fn many_errors_are_not_all_listed() {
    let run = judged_from(&["assess", "-"], &"--- text\n".repeat(30));
    assert_eq!(run.stderr.lines().count(), 21, "{}", run.stderr);
    assert!(run.stderr.ends_with("error: and 10 more like these (-o json has them all)\n"), "{}", run.stderr);
    let json = judged_from(&["assess", "-", "-o", "json"], &"--- text\n".repeat(30));
    assert_eq!(json.stdout.matches("\"error\"").count(), 30);
}

/// A Deployment whose status only a rule for Deployments can read.
#[test]
fn generic_rules_alone() {
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, generation: 1}\n\
                      spec: {replicas: 1}\nstatus: {observedGeneration: 1, conditions: [{type: Available, status: \"True\"}]}\n";
    let rule = |more: &[&str]| {
        let run = judged_from(&[&["assess", "-", "-o", "json"], more].concat(), deployment);
        let said: Value = serde_json::from_str(&run.stdout).expect("JSON");
        said[0]["rule"]["source"].clone()
    };
    assert_eq!(rule(&[]), "builtin");
    assert_eq!(rule(&["--no-builtin"]), "generic");
}

#[rstest]
#[case::no_time(&["assess", "shop.yaml", "--now", "yesterday"])]
#[case::no_dialect(&["assess", "shop.yaml", "--dialect", "klingon"])]
#[case::no_format(&["assess", "shop.yaml", "-o", "xml"])]
#[case::evidence_of_others(&["assess", "shop.yaml", "--dialect", "argo", "--explain"])]
fn wrong_usage(#[case] arguments: &[&str]) {
    let run = run(arguments);
    assert_eq!((run.stdout.as_str(), run.code), ("", Some(2)));
    assert_snapshot!(format!("wrong_usage_{}", arguments[arguments.len() - 1].trim_start_matches('-')), run);
}
