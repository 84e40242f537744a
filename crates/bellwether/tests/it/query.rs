//! `bellwether query`.

mod live_clusters;

use std::process::Command;

use insta::assert_snapshot;
use rstest::rstest;
use serde_json::Value;
use tempfile::TempDir;

use crate::{NOW, Run, bellwether, terminal::on_a_terminal};

/// The directory of the fleet in the examples: a hub and three clusters.
const FLEET: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/clusters");

/// The command in [`FLEET`].
fn command(arguments: &[&str]) -> Command {
    let mut command = bellwether(&["query"]);
    command.args(arguments).current_dir(FLEET);
    command
}

#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn run(arguments: &[&str]) -> Run {
    command(arguments).output().expect("the binary runs").into()
}

/// In the clusters of the fleet, without its hub.
fn query(arguments: &[&str]) -> Run {
    let fleet =
        ["--cluster", "east=east", "--cluster", "north=north", "--cluster", "west=west", "--now", NOW];
    run(&[arguments, &fleet].concat())
}

fn seed() -> String {
    format!("{}/tests/it/query/seed.yaml", env!("CARGO_MANIFEST_DIR"))
}

fn library(name: &str) -> String {
    format!("{}/../../deploy/collectors/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
}

/// The first draft's examples as they stand, for one object.
#[test]
fn examples_of_the_first_draft() {
    let run = query(&[&seed(), "deployments/web", "-n", "shop"]);
    let notes = run.stderr.replace(env!("CARGO_MANIFEST_DIR"), "…");
    assert_snapshot!(Run { stderr: notes, ..run });
}

/// An object that one cluster does not have, with the hub's copy of it.
#[test]
fn several_objects_have_a_result_each() {
    assert_snapshot!(query(&[&library("sad-ones"), "deploy", "--from", "hub"]));
}

#[rstest]
#[case("addresses", "services/web")]
#[case("available-replicas-histogram", "deployments/web")]
#[case("by-region", "deployments/web")]
#[case("full-status", "jobs/report")]
#[case("health", "deployments/web")]
#[case("image-drift", "deployments/web")]
#[case("image-versions", "deployments/web")]
#[case("jobs", "jobs/report")]
#[case("missing", "deployments/api")]
#[case("not-observed", "deployments/web")]
#[case("not-ready-by-reason", "pods/db-0")]
#[case("num-wecs", "deployments/web")]
#[case("pod-phase", "pods/db-0")]
#[case("replica-sums", "deployments/web")]
#[case("restarts", "pods/db-0")]
#[case("rollout-progress", "deployments/web")]
#[case("sad-ones", "deployments/api")]
#[case("stale-ones", "deployments/web")]
fn the_library(#[case] collector: &str, #[case] object: &str) {
    let labels = ["east=region=eu", "north=region=eu", "west=region=us"];
    let labels = labels.map(|labels| ["--cluster-labels", labels]).concat();
    let run = query(&[&[&*library(collector), object, "--from", "hub"], &*labels].concat());
    let expected = format!("library_{}", collector.replace('-', "_"));
    assert_snapshot!(expected, run);
}

/// A collector without a test is not in the library.
#[test]
fn every_collector_of_the_library_is_tested() -> std::io::Result<()> {
    let source = include_str!("query.rs");
    for entry in std::fs::read_dir(format!("{}/../../deploy/collectors", env!("CARGO_MANIFEST_DIR")))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let Some(name) = name.strip_suffix(".yaml") else { continue };
        assert!(source.contains(&format!("#[case(\"{name}\", \"")), "{name}");
    }
    Ok(())
}

/// A manifest may leave out a field with a default, which no API server has set in it.
#[test]
fn a_deployment_without_replicas_in_the_hub_has_one() -> std::io::Result<()> {
    let fleet = TempDir::new()?;
    for (cluster, rest) in [
        ("hub", "spec: {}"),
        ("east", "spec: {replicas: 1}, status: {availableReplicas: 1}"),
        ("west", "spec: {replicas: 1}, status: {}"),
    ] {
        let directory = fleet.path().join(cluster);
        std::fs::create_dir(&directory)?;
        let object = format!("{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: web}}, {rest}}}");
        std::fs::write(directory.join("web.yaml"), object)?;
    }
    let mut command = command(&[&library("sad-ones"), "deployments/web", "--from", "hub", "-o", "name"]);
    command.args(["--cluster", "east=east", "--cluster", "west=west"]).current_dir(fleet.path());
    let run = Run::from(command.output()?);
    assert_eq!((run.code, &*run.stdout), (Some(0), "west\n"), "{run}");
    Ok(())
}

#[rstest]
#[case::one_table_for_all(
    "SELECT inventory.name AS cluster, metadata.name, status.availableReplicas AS available, propagation.health FROM deployments",
    "CLUSTER  NAME  AVAILABLE  HEALTH\neast     api           2  Ready\neast     web           3  Ready\nnorth    api           \
     2  Ready\nnorth    web           2  InProgress\nwest     web           1  Failed\n"
)]
#[case::histogram(
    "SELECT COUNT(*), status.phase FROM pods GROUP BY status.phase ORDER BY 1",
    "COUNT  PHASE\n    1  Pending\n   11  Running\n"
)]
#[case::absent_in_a_cluster(
    "SELECT inventory.name, propagation.found, propagation.health, metadata.name AS object FROM deployments/api",
    "NAME   FOUND  HEALTH   OBJECT\neast   true   Ready    api\nnorth  true   Ready    api\nwest   false  Missing  api\n"
)]
#[case::hidden_column(
    "SELECT inventory.name FROM deployments/web ORDER BY status.availableReplicas LIMIT 2",
    "NAME\nwest\nnorth\n"
)]
#[case::sums(
    "SELECT COUNT(*), SUM(status.availableReplicas), AVG(status.availableReplicas), MIN(status.availableReplicas), \
     MAX(propagation.lastReturnedUpdateTimestamp) AS last FROM deployments",
    "COUNT  SUM  AVG  MIN  LAST\n    5   10    2    1  2026-11-14T11:59:30Z\n"
)]
#[case::sum_of_nothing(
    "SELECT SUM(status.x) AS s, COUNT(*) FROM deployments WHERE FALSE",
    "S       COUNT\n<none>      0\n"
)]
#[case::no_rows("SELECT inventory.name FROM deployments WHERE status.x = 1", "No rows.\n")]
#[case::three_values(
    "SELECT inventory.name FROM deployments/api WHERE NOT (status.availableReplicas = 1)",
    "NAME\neast\nnorth\n"
)]
#[case::null_is_no_value(
    "SELECT inventory.name FROM deployments/api WHERE status.availableReplicas IS NULL",
    "NAME\nwest\n"
)]
#[case::coalesce(
    "SELECT inventory.name, COALESCE(status.availableReplicas, 0) AS available FROM deployments/api WHERE inventory.name LIKE '%est'",
    "NAME  AVAILABLE\nwest          0\n"
)]
#[case::names_with_dots(
    "SELECT DISTINCT spec.template.spec.containers[0].image FROM deployments WHERE metadata.labels['app'] IN ('web')",
    "IMAGE\nregistry.example/web:1.4\nregistry.example/web:1.5\n"
)]
fn statements(#[case] sql: &str, #[case] expected: &str) {
    let run = query(&[sql]);
    let stderr: Vec<_> = run.stderr.lines().filter(|line| !line.starts_with("note: rows")).collect();
    assert_eq!((run.code, &*run.stdout, &*stderr), (Some(0), expected, &[][..]));
}

#[test]
fn the_hub_decides_which_objects_count() {
    let sql =
        "SELECT inventory.name, metadata.name AS object, propagation.found, spec.replicas FROM deployments";
    assert_snapshot!(query(&[sql, "--from", "hub"]));
}

#[test]
fn every_format() {
    let sql = "SELECT inventory.name AS wec, status.availableReplicas AS available, status.conditions[0] AS condition FROM \
               deployments/api";
    for format in ["wide", "json", "yaml", "csv", "name"] {
        assert_snapshot!(format!("query_as_{format}"), query(&[sql, "-o", format]));
    }
    let run = query(&[&library("sad-ones"), "deploy", "-o", "csv"]);
    assert_eq!(
        run.stdout,
        "namespace,object,wec,available,wanted\r\nshop,api,west,,\r\nshop,web,north,2,3\r\nshop,web,west,1,3\r\n"
    );
}

/// Pages are parts of the whole, without gaps and without repetition.
#[test]
fn pages() {
    let sql = "SELECT inventory.name AS cluster, metadata.name FROM pods";
    let whole = query(&[sql, "-o", "csv"]);
    assert_eq!(whole.stdout.lines().count(), 13, "{whole}");
    let mut all = vec!["cluster,name".to_owned()];
    for (offset, note) in [
        ("0", "note: rows 1 to 5 of 12. For the next, use --offset 5\n"),
        ("5", "note: rows 6 to 10 of 12. For the next, use --offset 10\n"),
        ("10", "note: rows 11 to 12 of 12\n"),
        ("20", "note: no rows after 20; there are 12\n"),
    ] {
        let page = query(&[sql, "-o", "csv", "--limit", "5", "--offset", offset]);
        assert_eq!((page.code, &*page.stderr), (Some(0), note));
        all.extend(page.stdout.lines().skip(1).map(str::to_owned));
        let statement = format!("{sql} LIMIT 5 OFFSET {offset}");
        assert_eq!(query(&[&statement, "-o", "csv"]).stdout, page.stdout);
    }
    assert_eq!(all, whole.stdout.lines().collect::<Vec<_>>());
}

#[rstest]
#[case::both(&["SELECT inventory.name FROM pods", "pods"], "objects given twice: after FROM, and as pods. Remove one")]
#[case::none(&["SELECT inventory.name"], "no objects. Give a kind, or objects as KIND/NAME, e.g. deployments or deployments/web")]
#[case::sql(&["SELECT inventory.name FROM pods HAVING 1"], "invalid statement: line 1, column 40: HAVING is not supported; filter rows with WHERE, or order by the aggregate and use LIMIT")]
#[case::unknown_field(&["SELECT inventory.name FROM pods WHERE propagation.helth = 'Ready'"], "invalid statement: line 1, column 39: unknown field `helth` of `propagation`; did you mean `health`?")]
#[case::type_error(&["SELECT inventory.name FROM pods WHERE 1"], "invalid statement: spec.filter: the expression must evaluate to bool; write a comparison, for example propagation.health == 'Ready'")]
#[case::no_file(&["nowhere.yaml", "pods"], "cannot read nowhere.yaml: no such file")]
#[case::no_collector(&["hub/shop.yaml", "pods"], "no StatusCollector in hub/shop.yaml")]
#[case::labels(&["SELECT inventory.name FROM pods", "--cluster-labels", "south=a=b"], "--cluster-labels for unknown cluster \"south\". Add --cluster south=…")]
#[case::selector(&["SELECT inventory.name FROM pods", "-l", "a b"], "invalid label selector \"a b\": use KEY=VALUE, KEY!=VALUE, KEY, !KEY, or KEY in (A, B)")]
fn invalid_input(#[case] arguments: &[&str], #[case] error: &str) {
    let run = query(arguments);
    assert_eq!((run.code, &*run.stdout, &*run.stderr), (Some(2), "", &*format!("error: {error}\n")));
}

#[test]
fn a_collector_of_kubestellar() {
    let run = query(&[concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/query/kubestellar.yaml"), "pods"]);
    assert_snapshot!(Run { stderr: run.stderr.replace(env!("CARGO_MANIFEST_DIR"), "…"), ..run });
}

#[test]
fn invalid_collectors_have_all_their_errors() {
    let run = query(&[concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/query/invalid.yaml"), "pods"]);
    assert_snapshot!(Run { stderr: run.stderr.replace(env!("CARGO_MANIFEST_DIR"), "…"), ..run });
}

#[rstest]
#[case::object(
    "SELECT inventory.name FROM deployments/absent -- none",
    "error: deployments/absent not found in any cluster\n"
)]
#[case::kind(
    "SELECT inventory.name FROM deploymens",
    "error: no objects of kind \"deploymens\" in any cluster\n"
)]
fn what_is_not_there(#[case] sql: &str, #[case] error: &str) {
    let run = query(&[sql]);
    assert_eq!((run.code, &*run.stderr), (Some(3), error));
}

/// The cluster has its row, and the others theirs.
#[test]
fn a_cluster_that_cannot_be_read_is_stale() {
    let sql = "SELECT inventory.name, propagation.found, propagation.stale, propagation.health FROM deployments/web";
    assert_snapshot!(query(&[sql, "--cluster", "south=nowhere.yaml"]));
    let run =
        query(&["SELECT COUNT(*), COUNT(status) AS reporting FROM pods", "--cluster", "south=nowhere.yaml"]);
    assert_eq!(run.stdout, "COUNT  REPORTING\n   13         12\n");
}

/// A row that fails is named and not counted.
#[test]
fn a_row_that_cannot_be_evaluated() {
    assert_snapshot!(query(&[
        "SELECT inventory.name, 1 / (status.availableReplicas - 1) AS x FROM deployments/web"
    ]));
    assert_snapshot!(
        "query_aggregation_error",
        query(&["SELECT SUM(inventory.name) AS x FROM deployments/web"])
    );
}

/// A cluster with several rows counts once, by the worst of them.
#[rstest]
#[case::without_a_hub(&[], (3, 3, 0, 0), "")]
#[case::an_object_is_missing_in_one(&["--from", "hub"], (3, 2, 0, 1), "west Missing")]
#[case::one_is_not_read(
    &["--from", "hub", "--cluster", "south=nowhere.yaml"],
    (4, 2, 1, 1),
    "south Stale, west Missing"
)]
fn clusters_are_counted_once(
    #[case] arguments: &[&str],
    #[case] expected: (u64, u64, u64, u64),
    #[case] not_reporting: &str,
) -> serde_json::Result<()> {
    let sql = "SELECT inventory.name FROM deployments";
    let run = query(&[&[sql, "-o", "json"], arguments].concat());
    let answers: Value = serde_json::from_str(&run.stdout)?;
    let clusters = &answers[0]["clusters"];
    let [bound, reporting, stale, missing] =
        ["bound", "reporting", "stale", "missing"].map(|field| clusters[field].as_u64().unwrap_or_default());
    let named = clusters["notReporting"].as_array().into_iter().flatten();
    let named: Vec<_> = named
        .map(|it| [&it["name"], &it["reason"]].map(|text| text.as_str().unwrap_or_default()).join(" "))
        .collect();
    let counts = (bound, reporting, stale, missing);
    assert_eq!((counts, &*named.join(", ")), (expected, not_reporting), "{run}");
    Ok(())
}

/// As from an API server: only the metadata is read, and of the annotations not the one with the data.
#[rstest]
#[case("SELECT data.password FROM secrets")]
#[case("SELECT data, obj.stringData.password FROM secrets/db")]
#[case("SELECT obj, returned, propagation.health FROM secrets")]
#[case("SELECT metadata.annotations, returned.metadata FROM secrets")]
#[case("SELECT metadata.annotations['kubectl.kubernetes.io/last-applied-configuration'] AS a FROM secrets")]
fn the_data_of_secrets_is_not_read(#[case] sql: &str) -> std::io::Result<()> {
    let cluster = TempDir::new()?;
    let secret = r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "annotations": {"a": "b",
        "kubectl.kubernetes.io/last-applied-configuration": "{\"data\": {\"password\": \"SECRET\"}}"}},
        "data": {"password": "SECRET"}, "stringData": {"password": "SECRET"}}"#;
    std::fs::write(cluster.path().join("secret.json"), secret)?;
    let directory = cluster.path().to_string_lossy();
    for place in [&["--from", &directory][..], &["--cluster", &format!("east={directory}")]] {
        let run = run(&[&[sql, "-o", "json", "--now", NOW], place].concat());
        assert!(run.code == Some(0) && !run.stdout.contains("SECRET"), "{run}");
        assert!(run.stdout.contains("\"totalRows\": 1"), "{run}");
    }
    Ok(())
}

/// Ten errors are shown; the other rows are counted.
#[test]
fn rows_that_cannot_be_evaluated() {
    let sql = "SELECT inventory.name, 1 / (LENGTH(status.phase) - 7) AS x FROM pods";
    assert_snapshot!(query(&[sql]));
    let run = query(&[sql, "-o", "json"]);
    assert!(run.stdout.contains("\"failedRows\": 12"), "{run}");
}

/// A terminal cuts the widest columns; `-o wide` does not.
#[rstest]
#[case("table", "east     Ready    2026-11-14T09:00:00Z  {\"availableReplicas\":2,\"conditions\":[{\"…")]
#[case(
    "wide",
    "east     Ready    2026-11-14T09:00:00Z  {\"availableReplicas\":2,\"conditions\":[{\"message\":"
)]
fn on_a_terminal_of_80_columns(#[case] format: &str, #[case] expected: &str) {
    let sql = "SELECT inventory.name AS cluster, propagation.health, propagation.lastReturnedUpdateTimestamp AS updated, status \
               FROM deployments/api";
    let fleet =
        ["--cluster", "east=east", "--cluster", "north=north", "--cluster", "west=west", "--now", NOW];
    let run = on_a_terminal(&mut command(&[&[sql, "-o", format], &fleet[..]].concat()), 80);
    let line = run.stdout.lines().nth(1).unwrap_or_default();
    assert!(line.starts_with(expected), "{run}");
    assert_eq!(run.stdout.lines().all(|line| line.chars().count() <= 80), format == "table", "{run}");
}

/// Where the table is read by a person, counts of groups have bars, if there is room for them.
#[rstest]
#[case(40)]
#[case(80)]
#[case(120)]
fn bars(#[case] columns: u16) {
    let fleet =
        ["--cluster", "east=east", "--cluster", "north=north", "--cluster", "west=west", "--now", NOW];
    let histogram = "SELECT propagation.health, COUNT(*), SUM(status.availableReplicas) AS available FROM deployments GROUP \
                     BY 1 ORDER BY 2 DESC";
    let run = on_a_terminal(&mut command(&[&[histogram], &fleet[..]].concat()), columns);
    assert!(run.stdout.lines().all(|line| line.chars().count() <= usize::from(columns)), "{run}");
    assert_snapshot!(format!("bars_{columns}"), run);
}

/// Programs read the table in a pipe and `-o wide`; a total has nothing to be compared with.
#[rstest]
#[case::wide(&["SELECT propagation.health, COUNT(*) FROM deployments GROUP BY 1", "-o", "wide"])]
#[case::not_grouped(&["SELECT COUNT(*) FROM deployments"])]
#[case::not_counted(&["SELECT propagation.health, SUM(status.availableReplicas) FROM deployments GROUP BY 1"])]
fn no_bars(#[case] arguments: &[&str]) {
    let fleet = ["--cluster", "east=east", "--cluster", "west=west", "--now", NOW];
    let run = on_a_terminal(&mut command(&[arguments, &fleet[..]].concat()), 80);
    assert!(run.code == Some(0) && !run.stdout.contains('█'), "{run}");
}

#[test]
fn a_statement_as_a_collector() {
    let sql = "SELECT COUNT(*), inventory.labels['region'] AS region FROM deployments WHERE propagation.health <> 'Ready' GROUP \
               BY 2 ORDER BY 1 DESC LIMIT 5";
    let shown = run(&[sql, "--show"]);
    assert_snapshot!(shown);
}

/// Only what is left out is named.
#[rstest]
#[case::limit("LIMIT 5000", "note: the limit of a StatusCollector is at most 1000\n")]
#[case::offset("OFFSET 5", "note: a StatusCollector has no OFFSET\n")]
#[case::both(
    "LIMIT 5000 OFFSET 5",
    "note: a StatusCollector has no OFFSET\nnote: the limit of a StatusCollector is at most 1000\n"
)]
#[case::neither("LIMIT 1000", "")]
fn what_a_collector_cannot_say(#[case] clauses: &str, #[case] notes: &str) {
    let run = run(&[&format!("SELECT inventory.name FROM pods {clauses}"), "--show"]);
    assert_eq!((run.code, &*run.stderr), (Some(0), notes), "{run}");
}

const STATEMENT: &str = "SELECT COUNT(*) FROM deployments";

/// What cannot be asked of a controller, and what keeps it from answering.
#[rstest]
#[case::with_a_cluster("with_a_cluster", &["--controller", "http://127.0.0.1:1", "--cluster", "east=east"])]
#[case::with_files("with_files", &["--controller", "http://127.0.0.1:1", "--from", "hub"])]
#[case::with_a_time("with_a_time", &["--controller", "http://127.0.0.1:1", "--now", NOW])]
#[case::with_rules("with_rules", &["--controller", "http://127.0.0.1:1", "--rules", "hub"])]
#[case::no_controller("no_controller", &["--controller", "http://127.0.0.1:1"])]
#[case::invalid_address("invalid_address", &["--controller", "127.0.0.1:8080"])]
#[case::over_a_network("over_a_network", &["--controller", "http://10.0.0.1:8080"])]
#[case::no_token_file("no_token_file", &["--controller", "http://127.0.0.1:1", "--token-file", "nowhere"])]
#[case::only_a_token("only_a_token", &["--token-file", "nowhere"])]
#[case::invalid_selector("invalid_selector", &["--controller", "http://127.0.0.1:1", "-l", "a b"])]
fn controllers(#[case] name: &str, #[case] arguments: &[&str]) -> std::io::Result<()> {
    let mut command = command(&[&[STATEMENT][..], arguments].concat());
    let run = Run::from(command.env("BELLWETHER_TOKEN", "secret").output()?);
    assert!(!run.to_string().contains("secret"), "{run}");
    assert_snapshot!(format!("controller_{name}"), run);
    Ok(())
}
