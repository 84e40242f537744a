//! `cargo xtask bench expr`: compiling and evaluating expressions, compared with other implementations of
//! CEL.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command as Process,
};

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::{Peer, build_ours, float, has_go, lines_of, median, micros, target};
use crate::run::{log, print};

struct Expression {
    text: &'static str,
    /// Whether it only compares values, as most rules do.
    compares: bool,
}

const EXPRESSIONS: [Expression; 13] = [
    comparison("status.phase == 'Running'"),
    comparison("status.readyReplicas == spec.replicas"),
    comparison("status.readyReplicas >= spec.replicas && metadata.generation == status.observedGeneration"),
    comparison("has(status.phase) && status.phase in ['Running', 'Succeeded']"),
    comparison("has(status.nope)"),
    comparison("(spec.replicas - status.readyReplicas) * 100 <= spec.replicas * 25"),
    other("metadata.labels['app.kubernetes.io/name'].startsWith('web')"),
    other("metadata.name.matches('^web-[0-9]+$')"),
    other("timestamp(status.startTime) < timestamp('2026-01-01T00:20:00Z')"),
    other("status.phase + '/' + string(spec.replicas)"),
    other("status.conditions.exists(c, c.type == 'Ready' && c.status == 'True')"),
    other("status.conditions.filter(c, c.status != 'True').map(c, c.type)"),
    other("spec.template.spec.containers.all(c, c.ports.all(p, p.containerPort > 1024))"),
];

const fn comparison(text: &'static str) -> Expression {
    Expression { text, compares: true }
}

const fn other(text: &'static str) -> Expression {
    Expression { text, compares: false }
}

const ROWS: usize = 64;

const CEL_GO: Peer = Peer { name: "cel-go", module: "cel-go", goal: 3.0 };

/// The programs run in turn; the fastest of these turns counts.
const TURNS: usize = 3;

/// What a program measures for an expression. Each program sets only some of the fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ExpressionLine {
    /// The result for each row.
    values: Vec<Json>,
    compile_ns: u64,
    /// For all rows, as are the fields below.
    ns: u64,
    object_ns: u64,
    allocs: u64,
}

pub(super) fn expr() -> Result<()> {
    let own = build_ours()?;
    let mut programs = vec![own.join("expr-times"), own.join("expr-times-cel")];
    if has_go() {
        programs.push(CEL_GO.build().context("cannot build the program for cel-go")?);
    } else {
        log("Go is not installed: the table has no figures of cel-go");
    }
    let rows = write_rows()?;
    let counted = measure(&own.join("expr-allocations"), &rows)?;

    let mut results: Vec<Vec<ExpressionLine>> = Vec::new();
    for turn in 1..=TURNS {
        log(&format!("measuring, turn {turn} of {TURNS}"));
        for (position, program) in programs.iter().enumerate() {
            let lines = measure(program, &rows)?;
            agree(&counted, &lines).with_context(|| format!("{} has other results", program.display()))?;
            match results.get_mut(position) {
                Some(before) => {
                    before.iter_mut().zip(lines).for_each(|(before, line)| before.keep_quickest(&line));
                }
                None => results.push(lines),
            }
        }
    }
    for (line, counted) in results[0].iter_mut().zip(counted) {
        line.allocs = counted.allocs;
    }
    let rows: Vec<_> = EXPRESSIONS
        .iter()
        .enumerate()
        .map(|(row, expression)| ExpressionRow {
            expression,
            ours: &results[0][row],
            cel: &results[1][row],
            cel_go: results.get(2).map(|lines| &lines[row]),
        })
        .collect();
    print(&format!("{}\n\n{}", table(&rows)?, goals(&rows)?));
    Ok(())
}

impl ExpressionLine {
    fn keep_quickest(&mut self, other: &Self) {
        self.compile_ns = self.compile_ns.min(other.compile_ns);
        self.ns = self.ns.min(other.ns);
        self.object_ns = self.object_ns.min(other.object_ns);
    }
}

/// Writes the input objects to a file, one in each line, and returns its path.
fn write_rows() -> Result<PathBuf> {
    let directory = target()?.join("bench-peers");
    fs::create_dir_all(&directory)?;
    let path = directory.join("rows.jsonl");
    let rows: Vec<_> = (0..ROWS).map(|number| row(number).to_string()).collect();
    fs::write(&path, rows.join("\n")).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// An object with a state that depends on its number.
fn row(number: usize) -> Json {
    let pick = |choices: [&'static str; 4]| choices[number % 4];
    let replicas = 1 + number % 7;
    let is_every = |rows: usize| number.is_multiple_of(rows);
    let truth = |truth: bool| if truth { "True" } else { "False" };
    let condition = |name: &str, status: bool| {
        json!({
            "type": name, "status": truth(status), "reason": "Observed", "message": format!("{name} of {number}"),
            "lastTransitionTime": format!("2026-01-01T00:{:02}:00Z", number % 60),
        })
    };
    let container = |name: &str, port: usize| {
        json!({
            "name": name, "image": format!("registry.example/{name}:{number}"),
            "ports": [{"name": "http", "containerPort": port}, {"name": "metrics", "containerPort": 9090}],
        })
    };
    json!({
        "apiVersion": "example.com/v1",
        "kind": "Shop",
        "metadata": {
            "name": format!("{}-{number}", pick(["web", "web", "queue", "web-blue"])),
            "namespace": format!("team-{}", number % 5),
            "uid": format!("5b1d3a52-0000-4000-8000-{number:012}"),
            "generation": 1 + number % 3,
            "labels": {
                "app.kubernetes.io/name": pick(["web", "web", "queue", "web-blue"]),
                "app.kubernetes.io/part-of": "town",
                "tier": pick(["gold", "silver", "gold", "bronze"]),
            },
        },
        "spec": {
            "replicas": replicas,
            "paused": is_every(16),
            "selector": {"matchLabels": {"app.kubernetes.io/name": "web"}},
            "template": {"spec": {"containers": [
                container("server", 8000 + number),
                container("proxy", if is_every(8) { 80 } else { 8443 }),
            ]}},
        },
        "status": {
            "phase": pick(["Running", "Pending", "Running", "Failed"]),
            "observedGeneration": 1 + number % 2,
            "replicas": replicas,
            "readyReplicas": replicas - usize::from(is_every(5)),
            "startTime": format!("2026-01-01T00:{:02}:00Z", number % 60),
            "conditions": [
                condition("Progressing", true),
                condition("Available", !is_every(3)),
                condition("Ready", !is_every(5)),
            ],
        },
    })
}

/// Runs a program on the expressions. It prints a line for each expression.
fn measure(program: &Path, rows: &Path) -> Result<Vec<ExpressionLine>> {
    let expressions = EXPRESSIONS.iter().map(|expression| expression.text);
    let lines: Vec<ExpressionLine> = lines_of(Process::new(program).arg(rows).args(expressions))
        .with_context(|| format!("cannot measure with {}", program.display()))?;
    ensure!(lines.len() == EXPRESSIONS.len(), "{} did not measure all expressions", program.display());
    Ok(lines)
}

/// Fails if two programs have different results: their times would not be comparable.
fn agree(ours: &[ExpressionLine], theirs: &[ExpressionLine]) -> Result<()> {
    for ((expression, ours), theirs) in EXPRESSIONS.iter().zip(ours).zip(theirs) {
        let text = expression.text;
        ensure!(
            ours.values.len() == ROWS && theirs.values.len() == ROWS,
            "`{text}` was not evaluated for all rows"
        );
        for (row, (ours, theirs)) in ours.values.iter().zip(&theirs.values).enumerate() {
            ensure!(ours == theirs, "`{text}`, row {row}: {theirs}, want {ours}");
        }
    }
    Ok(())
}

/// The figures of all programs for an expression.
struct ExpressionRow<'a> {
    expression: &'a Expression,
    ours: &'a ExpressionLine,
    cel: &'a ExpressionLine,
    cel_go: Option<&'a ExpressionLine>,
}

impl ExpressionRow<'_> {
    /// The evaluation time of cel-go divided by Bellwether's over facts.
    fn times(&self) -> Option<f64> {
        self.cel_go.map(|line| float(line.ns) / float(self.ours.ns))
    }
}

fn table(rows: &[ExpressionRow<'_>]) -> Result<String> {
    let mut text = format!("{:^28}{:^49}\n", "compile, µs", "evaluate one row, ns");
    for (heading, width) in [("ours", 8), ("cel", 10), ("cel-go", 10)] {
        write!(text, "{heading:>width$}")?;
    }
    for (heading, width) in
        [("facts", 9), ("object", 8), ("cel", 9), ("cel-go", 9), ("allocs", 8), ("times", 8)]
    {
        write!(text, "{heading:>width$}")?;
    }
    text.push_str("  expression");
    for row in rows {
        let (ours, cel) = (row.ours, row.cel);
        write!(text, "\n{:>8.2}{:>10.2}", micros(ours.compile_ns), micros(cel.compile_ns))?;
        write!(text, "{:>10}", written(row.cel_go.map(|line| micros(line.compile_ns)), 2))?;
        write!(text, "{:>9.1}{:>8.1}{:>9.1}", each(ours.ns), each(ours.object_ns), each(cel.ns))?;
        write!(text, "{:>9}", written(row.cel_go.map(|line| each(line.ns)), 1))?;
        write!(text, "{:>8.1}{:>8}  {}", each(ours.allocs), written(row.times(), 1), row.expression.text)?;
    }
    Ok(text)
}

/// Times depend on the machine, so a missed goal is not a failure.
fn goals(rows: &[ExpressionRow<'_>]) -> Result<String> {
    let comparisons: Vec<_> = rows.iter().filter(|row| row.expression.compares).collect();
    let mut text = format!(
        "Goal: a comparison does not allocate, reached by {} of {} expressions.",
        comparisons.iter().filter(|row| row.ours.allocs == 0).count(),
        comparisons.len()
    );
    let times: Vec<_> = comparisons.iter().filter_map(|row| row.times()).collect();
    if !times.is_empty() {
        write!(
            text,
            "\nMedian: comparisons over facts are {:.1} times as fast as in {}. Goal: at least {:.0} times, \
             reached by {} of {} expressions.",
            median(&times),
            CEL_GO.name,
            CEL_GO.goal,
            times.iter().filter(|times| **times >= CEL_GO.goal).count(),
            times.len()
        )?;
    }
    Ok(text)
}

/// The mean for one row.
fn each(all: u64) -> f64 {
    float(all) / float(ROWS as u64)
}

fn written(number: Option<f64>, digits: usize) -> String {
    number.map_or_else(|| "-".to_owned(), |number| format!("{number:.digits$}"))
}
