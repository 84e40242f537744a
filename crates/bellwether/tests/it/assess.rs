//! `bellwether assess`: tables, JSON, dialects, exit codes and errors.

use std::fs;

use insta::assert_snapshot;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{NOW, Run, bellwether, run, run_on_objects, run_with_input};

const READY: &str = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n";

#[test]
fn failed_objects_come_first() {
    assert_snapshot!(run_on_objects(&["assess", "-f", "shop.yaml"]));
}

#[test]
fn wide_has_reasons_and_rules() {
    assert_snapshot!(run_on_objects(&["assess", "shop.yaml", "-o", "wide"]));
}

#[test]
fn with_fields() {
    assert_snapshot!(run_with_input(&["assess", "-", "--explain"], READY));
}

#[test]
fn as_json() {
    assert_snapshot!(run_on_objects(&["assess", "pods.json", "-o", "json"]));
}

#[test]
fn as_yaml_with_evidence() {
    assert_snapshot!(run_on_objects(&["assess", "pods.json", "-o", "yaml", "--explain"]));
}

#[test]
fn as_names() {
    assert_snapshot!(run_on_objects(&["assess", "shop.yaml", "list.yaml", "-o", "name"]));
}

/// The directories of the fleet in the examples.
const CLUSTERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/clusters");

#[rstest]
#[case::table("table", &[])]
#[case::json("json", &["-o", "json"])]
#[case::both_clusters_have_the_name("same_name", &["--cluster", "east=north"])]
#[case::no_directory("no_directory", &["--cluster", "north=README.md"])]
#[case::with_a_file("with_a_file", &["README.md"])]
fn clusters(#[case] name: &str, #[case] arguments: &[&str]) -> std::io::Result<()> {
    let mut command =
        bellwether(&["assess", "--cluster", "east=east", "--cluster", "west=west", "--now", NOW]);
    let run = Run::from(command.args(arguments).current_dir(CLUSTERS).output()?);
    // The JSON has many fields, of which only one is tested here.
    if name == "json" {
        let rows: Vec<Value> = serde_json::from_str(&run.stdout)?;
        let of = |cluster: &str| rows.iter().filter(|row| row["cluster"] == cluster).count();
        assert!(of("east") > 0 && of("east") + of("west") == rows.len(), "{run}");
    } else {
        assert_snapshot!(format!("clusters_{name}"), run);
    }
    Ok(())
}

#[rstest]
#[case::kstatus("kstatus")]
#[case::argo("argo")]
fn dialects(#[case] dialect: &str) {
    let table = run_on_objects(&["assess", "shop.yaml", "--dialect", dialect]);
    assert_snapshot!(format!("table_of_{dialect}"), table);
    let json = run_on_objects(&["assess", "pods.json", "--dialect", dialect, "-o", "json"]);
    assert_snapshot!(format!("json_of_{dialect}"), json);
}

#[test]
fn argo_has_no_check_for_custom_kinds() {
    let widget = "apiVersion: acme.io/v1\nkind: Widget\nmetadata: {name: w1}\n";
    let run = run_with_input(&["assess", "-", "--dialect", "argo", "-o", "json"], widget);
    let rows: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let expected =
        json!([{"apiVersion": "acme.io/v1", "kind": "Widget", "name": "w1", "status": null, "message": ""}]);
    assert_eq!((rows, run.code), (expected, Some(0)));
}

#[test]
fn invalid_documents_do_not_hide_the_others() {
    assert_snapshot!(run_on_objects(&["assess", "broken.yaml", "lines.jsonl", "nowhere.yaml"]));
    assert_snapshot!(
        "broken_as_json",
        run_on_objects(&["assess", "broken.yaml", "-o", "json", "--dialect", "kstatus"])
    );
}

#[test]
fn escape_sequences_in_objects_are_replaced() {
    assert_snapshot!(run_on_objects(&["assess", "tricks.yaml"]));
}

#[rstest]
#[case::all_ready(READY, 0)]
#[case::an_empty_list("apiVersion: v1\nkind: List\nitems: []\n", 0)]
#[case::failed("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nstatus: {phase: Failed}\n", 1)]
#[case::no_rule("apiVersion: acme.io/v1\nkind: Widget\nmetadata: {name: a}\n", 1)]
#[case::not_an_object("just text\n", 2)]
#[case::nothing("", 2)]
fn exit_codes(#[case] input: &str, #[case] code: i32) {
    for format in ["table", "wide", "json", "yaml", "name"] {
        assert_eq!(run_with_input(&["assess", "-", "-o", format], input).code, Some(code), "{format}");
    }
}

#[rstest]
#[case::dash(&["assess", "-"])]
#[case::flag(&["assess", "-f", "-"])]
#[case::nothing(&["assess"])]
fn standard_input(#[case] arguments: &[&str]) {
    let run = run_with_input(&[arguments, &["-o", "name"]].concat(), READY);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str(), run.code), ("service/web\n", "", Some(0)));
}

/// A failed command in front of the pipe prints nothing. That must not look healthy.
#[test]
fn empty_input_is_an_error() {
    let run = run_with_input(&["assess", "-"], "");
    assert_eq!((run.stdout.as_str(), run.code), ("", Some(2)));
    assert_eq!(run.stderr, "error: no objects in stdin\n");
}

#[test]
fn an_empty_list_is_not_an_error() {
    let run = run_with_input(&["assess", "-"], r#"{"apiVersion":"v1","items":[],"kind":"List"}"#);
    assert_eq!((run.stdout.as_str(), run.stderr.as_str(), run.code), ("No objects found.\n", "", Some(0)));
}

/// Two objects without `---` in between: neither may disappear in the other.
#[test]
fn duplicate_keys_are_errors() {
    let pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nstatus: {phase: Failed}\n";
    let application = "apiVersion: bellwether.dev/v1alpha1\nkind: Application\nmetadata: {name: shop, namespace: shop}\n\
                       spec: {selector: {}, componentKinds: [{kind: Service}]}\n";
    let text = format!("{pod}{READY}---\n{READY}---\n{application}");
    let error =
        "error: stdin:5: invalid YAML: duplicate key \"apiVersion\"; separate objects with a line of ---\n";
    for (arguments, shown) in [
        (&["assess", "-", "-o", "name"] as &[&str], "service/web\napplication.bellwether.dev/shop\n"),
        (&["explain", "-"], "Service shop/web: Ready"),
        (&["status", "-n", "shop", "--from", "-"], "shop  "),
        (&["tree", "shop", "-n", "shop", "--from", "-"], "Application shop/shop"),
        (&["explain", "service/web", "-n", "shop", "--from", "-"], "Service shop/web: Ready"),
    ] {
        let run = run_with_input(arguments, &text);
        assert!(run.stdout.contains(shown), "{arguments:?}: {run}");
        assert!(run.stderr.contains(error), "{arguments:?}: {run}");
        assert_eq!(run.code, Some(2), "{arguments:?}: {run}");
    }
}

/// A failed command in front of the pipe must not look healthy to any command.
#[rstest]
#[case::explain(&["explain", "-"], 2)]
#[case::status(&["status", "--from", "-"], 2)]
#[case::tree(&["tree", "web", "--from", "-"], 2)]
#[case::whose(&["whose", "pod/a", "--from", "-"], 2)]
#[case::wait(&["wait", "web", "--from", "-"], 3)]
fn empty_input_is_an_error_everywhere(#[case] arguments: &[&str], #[case] code: i32) {
    let run = run_with_input(arguments, "");
    assert_eq!((run.stdout.as_str(), run.code), ("", Some(code)), "{run}");
    assert!(run.stderr.contains("no objects in stdin\n"), "{run}");
}

#[test]
fn a_directory_is_read_recursively_by_name() {
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
    // A cycle of symbolic links.
    std::os::unix::fs::symlink(directory.path(), directory.path().join("loop")).expect("a link");
    let run = run(&["assess", directory.path().to_str().expect("a name"), "-o", "name"]);
    assert_eq!(run.stderr, "");
    assert_eq!(run.stdout, "service/first\nservice/second\nservice/third\nservice/fourth\n");
}

#[test]
fn input_that_is_not_utf_8_is_an_error() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), b"apiVersion: \xff\xfe").expect("a file");
    let run = run(&["assess", file.path().to_str().expect("a name")]);
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.ends_with(":1: not UTF-8\n"), "{}", run.stderr);
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
fn many_ready_objects_are_only_counted(#[case] count: usize, #[case] more: &[&str], #[case] rows: usize) {
    let run = run_with_input(&[&["assess", "-"], more].concat(), &services(count));
    assert_eq!(run.stdout.matches("Service/").count(), rows, "{}", run.stdout);
    let hint = if rows == 0 { " (use --all to list them)" } else { "" };
    assert!(run.stdout.ends_with(&format!("{count} Ready{hint}.\n")), "{}", run.stdout);
}

#[test]
fn at_most_20_errors_are_listed() {
    let run = run_with_input(&["assess", "-"], &"--- text\n".repeat(30));
    assert_eq!(run.stderr.lines().count(), 21, "{}", run.stderr);
    assert!(run.stderr.ends_with("error: and 10 more (use -o json to list them all)\n"), "{}", run.stderr);
    let json = run_with_input(&["assess", "-", "-o", "json"], &"--- text\n".repeat(30));
    assert_eq!(json.stdout.matches("\"error\"").count(), 30);
}

#[test]
fn without_built_in_rules() {
    let deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, generation: 1}\n\
                      spec: {replicas: 1}\nstatus: {observedGeneration: 1, conditions: [{type: Available, status: \"True\"}]}\n";
    let rule = |more: &[&str]| {
        let run = run_with_input(&[&["assess", "-", "-o", "json"], more].concat(), deployment);
        let rows: Value = serde_json::from_str(&run.stdout).expect("JSON");
        rows[0]["rule"]["source"].clone()
    };
    assert_eq!(rule(&[]), "builtin");
    assert_eq!(rule(&["--no-builtin"]), "generic");
}

#[rstest]
#[case::time(&["assess", "shop.yaml", "--now", "yesterday"])]
#[case::dialect(&["assess", "shop.yaml", "--dialect", "klingon"])]
#[case::format(&["assess", "shop.yaml", "-o", "xml"])]
#[case::fields_of_argo(&["assess", "shop.yaml", "--dialect", "argo", "--explain"])]
fn invalid_usage(#[case] arguments: &[&str]) {
    let run = run(arguments);
    assert_eq!((run.stdout.as_str(), run.code), ("", Some(2)));
    assert_snapshot!(
        format!("invalid_usage_{}", arguments[arguments.len() - 1].trim_start_matches('-')),
        run
    );
}
