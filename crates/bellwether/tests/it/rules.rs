//! `bellwether rules`, and `--rules` of other commands.

use std::{fs, path::Path, process::Command};

use insta::assert_snapshot;
use rstest::rstest;
use serde_json::{Value, json};

use crate::{Run, bellwether, run_with_input};

/// The command in the directory with the rules of these tests.
fn among_rules(arguments: &[&str]) -> Command {
    let mut command = bellwether(arguments);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/rules"));
    command
}

#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn ran(mut command: Command) -> Run {
    command.output().expect("the binary runs").into()
}

/// The command in the root of the repository.
fn in_repository(arguments: &[&str]) -> Run {
    let mut command = bellwether(arguments);
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    ran(command)
}

#[test]
fn errors_in_rules() {
    assert_snapshot!(ran(among_rules(&["rules", "lint", "wrong"])));
}

#[test]
fn errors_in_rules_as_json() {
    assert_snapshot!(ran(among_rules(&["rules", "lint", "wrong/expressions.yaml", "-o", "json"])));
    assert_snapshot!(
        "errors_in_rules_as_yaml",
        ran(among_rules(&["rules", "lint", "wrong/twice.yaml", "-o", "yaml"]))
    );
}

#[test]
fn failed_cases() {
    assert_snapshot!(ran(among_rules(&["rules", "test", "failing"])));
}

#[test]
fn failed_cases_as_json() {
    assert_snapshot!(ran(among_rules(&["rules", "test", "failing/acme.io", "-o", "json"])));
}

#[rstest]
#[case::nowhere("lint", "nowhere", "error: cannot read nowhere: no such file\n")]
#[case::no_rules(
    "lint",
    "failing/acme.io/Widget/testdata/down.yaml",
    "error: no HealthRule and no health.lua in failing/acme.io/Widget/testdata/down.yaml\n"
)]
#[case::no_directory("test", "nowhere", "error: cannot read nowhere: no such file\n")]
#[case::no_tests(
    "test",
    "wrong/acme.io/Gadget/..",
    "error: wrong/acme.io/Gadget/../Gadget/health.lua:2: 'then' expected near '!'; write `~=` for not equal\n\
     error: no test suites (files ending in _test.yaml) in wrong/acme.io/Gadget/..\n"
)]
#[case::a_misplaced_script(
    "lint",
    "stray/check.lua",
    "error: stray/check.lua: not a health script: move it to GROUP/KIND/health.lua\n"
)]
fn input_that_cannot_be_read(#[case] command: &str, #[case] path: &str, #[case] errors: &str) {
    let run = ran(among_rules(&["rules", command, path]));
    assert_eq!((run.code, run.stderr.as_str()), (Some(2), errors));
}

#[rstest]
#[case::no_list("test: []", "tests: required")]
#[case::no_object(
    "tests: [{expect: {state: Ready}}]",
    "tests[0]: set input to the name of a file, or object to an object"
)]
#[case::no_expectation(
    "tests: [{object: {}}]",
    "tests[0]: set exactly one of expect and healthStatus, for example expect: {state: Ready}"
)]
#[case::an_unknown_field(
    "tests: [{object: {}, expect: {status: Ready}}]",
    "tests[0]: expect: unknown field \"status\" (did you mean \"state\"?)"
)]
#[case::empty("tests: []", "tests: must have at least 1 entry, has 0")]
#[case::not_a_string("tests: [{object: {}, expect: {state: 5}}]", "tests[0]: state: must be a string, not 5")]
#[case::an_unknown_state(
    "tests: [{object: {}, expect: {state: Healthy}}]",
    "tests[0]: state: unsupported value \"Healthy\": must be one of Ready, InProgress, Failed, Suspended, Terminating, Unknown"
)]
#[case::not_a_number(
    "tests: [{object: {}, expect: {progress: '50'}}]",
    "tests[0]: progress: must be an integer, not \"50\""
)]
#[case::a_misspelt_field(
    "tests: [{object: {}, expects: {state: Ready}}]",
    "tests[0]: unknown field \"expects\" (did you mean \"expect\"?)"
)]
#[case::not_a_time(
    "tests: [{object: {}, now: noon, expect: {state: Ready}}]",
    "tests[0]: now: invalid time \"noon\": use a time such as 2026-11-14T12:00:00Z"
)]
fn an_invalid_suite(#[case] suite: &str, #[case] error: &str) {
    let run = test_suite(suite);
    assert_eq!((run.code, run.stderr), (Some(2), format!("error: ./my_test.yaml: {error}\n")));
}

#[test]
fn a_suite_that_is_not_yaml() {
    let run = test_suite("tests:\n- {object: [}\n");
    let error = "./my_test.yaml:2: invalid YAML: mismatched bracket '[' closed by '}'";
    assert_eq!((run.code, run.stderr), (Some(2), format!("error: {error}\n")));
}

/// Runs a suite in a directory of its own.
#[expect(clippy::expect_used, reason = "a test without a directory cannot go on")]
fn test_suite(suite: &str) -> Run {
    let directory = tempfile::tempdir().expect("a directory");
    fs::write(directory.path().join("my_test.yaml"), suite).expect("it can be written");
    let mut command = bellwether(&["rules", "test", "."]);
    command.current_dir(directory.path());
    ran(command)
}

#[test]
fn a_suite_by_its_name() {
    let run = ran(among_rules(&["rules", "test", "failing/acme.io/Widget/health_test.yaml"]));
    assert!(run.stdout.ends_with("6 cases in 1 suite: 1 passed, 5 failed.\n"), "{run}");
    assert_eq!(run.code, Some(1));
}

/// The documentation refers to the examples.
#[test]
fn the_examples_pass() {
    assert_snapshot!(in_repository(&["rules", "lint", "examples/rules"]));
    assert_snapshot!("tests_of_the_examples", in_repository(&["rules", "test", "examples/rules"]));
    let now = "2026-11-14T12:00:00Z";
    assert_snapshot!(
        "assessed_by_the_examples",
        in_repository(&[
            "assess",
            "--rules",
            "examples/rules",
            "examples/rules/testdata",
            "--now",
            now,
            "-o",
            "wide"
        ])
    );
    assert_snapshot!(
        "explained_by_the_examples",
        in_repository(&[
            "explain",
            "--rules",
            "examples/rules",
            "examples/rules/testdata/widget-broken.yaml",
            "--now",
            now
        ])
    );
}

/// Another rule would decide in the place of one that cannot be read or compiled.
#[rstest]
#[case::does_not_compile(
    "wrong/expressions.yaml",
    "rule several-mistakes: spec.cel[0].when, line 1, column 14: "
)]
#[case::does_not_exist("nowhere", "error: cannot read ")]
#[case::is_no_rule("failing/acme.io/Widget/testdata/down.yaml", "error: no rules in ")]
fn nothing_is_assessed_if_a_rule_is_invalid(#[case] rules: &str, #[case] error: &str) {
    let rules = format!("{}/tests/it/rules/{rules}", env!("CARGO_MANIFEST_DIR"));
    let object = "apiVersion: acme.io/v1\nkind: Widget\nmetadata: {name: w}\nstatus: {phase: Ready}\n";
    for command in ["assess", "explain"] {
        let run = run_with_input(&[command, "-", "--rules", &rules], object);
        assert_eq!((run.stdout.as_str(), run.code), ("", Some(2)), "{run}");
        assert!(run.stderr.contains(error), "{run}");
    }
}

/// A kind in lower case, tests of actions beside, and YAML as Go's readers accept it.
#[test]
fn suites_of_argo_cd_run_as_they_are() {
    let run = ran(among_rules(&["rules", "test", "as_in_argo_cd"]));
    assert_eq!(run.stderr, "");
    assert_eq!(run.stdout, "✓ gadgets.acme.io/gadget (3 cases)\n3 cases in 1 suite: 3 passed, 0 failed.\n");
    let lint = ran(among_rules(&["rules", "lint", "as_in_argo_cd"]));
    assert_eq!(lint.code, Some(0), "{lint}");
    let gadget = "as_in_argo_cd/gadgets.acme.io/gadget/testdata/healthy.yaml";
    let assessed = ran(among_rules(&["assess", gadget, "--rules", "as_in_argo_cd", "-o", "json"]));
    let rows: Value = serde_json::from_str(&assessed.stdout).expect("JSON");
    assert_eq!(rows[0]["rule"]["source"], "user", "{assessed}");
}

#[rstest]
#[case("acme.io/gadget", true)]
#[case("apps/Gadget", true)]
#[case("acme.io/_", true)]
#[case("rules/gadget", false)]
#[case("acme.io/my_gadget", false)]
fn directories_of_scripts_name_kinds(#[case] path: &str, #[case] is_kind: bool) {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join(path);
    fs::create_dir_all(&place).expect("it can be made");
    fs::write(place.join("health.lua"), "return nil\n").expect("it can be written");
    let run = ran(bellwether(&["rules", "lint", directory.path().to_str().expect("a path")]));
    assert_eq!(run.code, Some(if is_kind { 0 } else { 2 }), "{run}");
}

#[test]
fn rules_are_for_the_native_dialect() {
    let run = run_with_input(&["assess", "-", "--rules", ".", "--dialect", "argo"], "");
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("--rules"), "{}", run.stderr);
}

/// The kinds with scripts in the layout of Argo CD among the examples.
const SCRIPTED: [&str; 3] =
    ["keda.sh/ScaledObject", "keda.sh/ScaledJob", "proclaim.dogmatiq.io/DNSSDServiceInstance"];

/// The cases of Argo CD for three kinds, with our own scripts. The cases are not part of this repository.
#[test]
fn argo_cd_cases_pass_with_our_scripts() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let cases = std::env::var_os("BELLWETHER_CONFORMANCE")
        .map_or_else(|| repository.join("../shared/conformance"), Into::into)
        .join("argo.jsonl");
    let Ok(cases) = fs::read_to_string(&cases) else {
        println!("skipped: no cases in {}", cases.display());
        return;
    };
    let directory = tempfile::tempdir().expect("a directory");
    let mut count = 0;
    for kind in SCRIPTED {
        let suite = directory.path().join(kind);
        fs::create_dir_all(&suite).expect("it can be made");
        let script = repository.join("examples/rules/from-argo-cd").join(kind).join("health.lua");
        fs::copy(script, suite.join("health.lua")).expect("there is a script");
        let mut tests = Vec::new();
        for case in cases.lines().map(|line| serde_json::from_str::<Value>(line).expect("a case")) {
            if format!("{}/{}", case["group"].as_str().unwrap_or(""), case["kind"].as_str().unwrap_or(""))
                != kind
            {
                continue;
            }
            let input = format!("{}.yaml", tests.len());
            fs::write(suite.join(&input), case["object"].to_string()).expect("it can be written");
            tests.push(json!({
                "inputPath": input,
                "healthStatus": {"status": case["status"], "message": case["message"]},
            }));
            count += 1;
        }
        fs::write(suite.join("health_test.yaml"), json!({ "tests": tests }).to_string())
            .expect("it can be written");
    }
    let run = ran(bellwether(&["rules", "test", directory.path().to_str().expect("a path")]));
    assert!(
        run.stdout.ends_with(&format!("{count} cases in 3 suites: {count} passed, 0 failed.\n")),
        "{run}"
    );
    assert_eq!(run.code, Some(0), "{run}");
}
