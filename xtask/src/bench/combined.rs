//! `cargo xtask bench combined`: the cost of a row's change in the result of a StatusCollector, and controllers
//! with many clusters.

use std::{fmt::Write as _, process::Command as Process};

use anyhow::{Context as _, Result};
use clap::Args;
use serde::Deserialize;

use super::{build_ours, float, lines_of, micros};
use crate::run::{cargo, log, print, step};

#[derive(Debug, Args)]
pub(crate) struct Combined {
    /// Measure the tables alone
    #[arg(long)]
    tables: bool,
    /// Measure controllers with real and with simulated clusters
    #[arg(long)]
    clusters: bool,
    /// Number of single changes for each controller
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    changes: u32,
}

/// The numbers of rows.
const ROWS: [u32; 4] = [100, 1_000, 10_000, 100_000];

/// The programs run in turn; the fastest of these turns counts.
const TURNS: usize = 5;

/// Changes in a second that a table should reach.
const GOAL: f64 = 1_000_000.0;

/// A hub with clusters that report.
struct Fleet {
    /// `real` or `simulated`.
    kind: &'static str,
    clusters: u32,
    deployments: u32,
    /// Whether single changes are measured.
    single: bool,
    /// The number of changes at once.
    burst: u32,
}

const FLEETS: [Fleet; 5] = [
    Fleet { kind: "real", clusters: 3, deployments: 1, single: true, burst: 0 },
    Fleet { kind: "simulated", clusters: 10, deployments: 1, single: true, burst: 10_000 },
    Fleet { kind: "simulated", clusters: 100, deployments: 1, single: true, burst: 10_000 },
    Fleet { kind: "simulated", clusters: 500, deployments: 1, single: true, burst: 10_000 },
    Fleet { kind: "simulated", clusters: 10, deployments: 100, single: false, burst: 1_000 },
];

#[derive(Debug, Deserialize)]
struct TableTimes {
    change_ns: f64,
    render_ns: u64,
}

#[derive(Debug, Deserialize)]
struct TableMemory {
    rows: u64,
    bytes: u64,
}

/// What a controller takes.
#[derive(Debug, Deserialize)]
struct Live {
    start_s: f64,
    start_cpu_s: f64,
    start_writes: f64,
    idle_ms: f64,
    memory: f64,
    memory_after: f64,
    single: Option<Single>,
    burst: Option<Burst>,
}

#[derive(Debug, Deserialize)]
struct Single {
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    request_p50_ms: f64,
    writes: f64,
    cpu_ms: f64,
}

#[derive(Debug, Deserialize)]
struct Burst {
    changes: u64,
    sent_s: f64,
    first_s: f64,
    all_s: f64,
    writes: f64,
    cpu_s: f64,
}

impl Combined {
    pub(super) fn run(&self) -> Result<()> {
        let neither = !self.tables && !self.clusters;
        let own = build_ours()?;
        if self.tables || neither {
            let mut tables: Vec<(TableTimes, TableMemory)> = Vec::new();
            for rows in ROWS {
                log(&format!("a table of {rows} rows"));
                let program = |name: &str| {
                    let mut program = Process::new(own.join(name));
                    program.arg(rows.to_string());
                    program
                };
                let mut turns: Vec<TableTimes> = Vec::new();
                for _ in 0..TURNS {
                    turns.extend(
                        lines_of::<TableTimes>(&mut program("table-times"))
                            .context("cannot measure a table")?,
                    );
                }
                let fastest =
                    turns.into_iter().min_by(|left, right| left.change_ns.total_cmp(&right.change_ns));
                let memory: Vec<TableMemory> =
                    lines_of(&mut program("table-memory")).context("cannot measure the memory of a table")?;
                tables.extend(fastest.into_iter().zip(memory));
            }
            print(&format!("\n{}", table(&tables)?));
        }
        if self.clusters || neither {
            step(&mut cargo(&["build", "--release", "--package", "bellwether"]))?;
            let mut all: Vec<(&Fleet, Live)> = Vec::new();
            for fleet in &FLEETS {
                let Fleet { kind, clusters, deployments, single, burst } = fleet;
                let changes = if *single { self.changes } else { 0 };
                let mut program = Process::new(own.join("combined-live"));
                program.arg(own.join("bellwether")).arg(kind);
                program.args([*clusters, *deployments, changes, *burst].map(|number| number.to_string()));
                let lines: Vec<Live> = lines_of(&mut program).context("cannot measure a controller")?;
                all.extend(lines.into_iter().map(|live| (fleet, live)));
            }
            let changes = self.changes;
            print(&format!("\n{}\n\n{}\n\n{}", single_changes(&all, changes)?, bursts(&all)?, costs(&all)?));
        }
        Ok(())
    }
}

fn table(tables: &[(TableTimes, TableMemory)]) -> Result<String> {
    let mut text = format!(
        "{:>8}{:>12}{:>16}{:>18}{:>14}   six aggregate functions",
        "rows", "change, ns", "per second", "render result, µs", "bytes a row"
    );
    for (TableTimes { change_ns, render_ns }, TableMemory { rows, bytes }) in tables {
        write!(
            text,
            "\n{rows:>8}{change_ns:>12.0}{:>16.0}{:>18.1}{:>14.0}",
            1e9 / change_ns,
            micros(*render_ns),
            float(*bytes) / float(*rows)
        )?;
    }
    let reached = tables.iter().filter(|(table, _)| 1e9 / table.change_ns >= GOAL).count();
    write!(text, "\n\nGoal: at least {GOAL:.0} changes a second, reached by {reached} of {}.", tables.len())?;
    Ok(text)
}

/// The first columns of each table.
fn fleet(text: &mut String, Fleet { kind, clusters, deployments, .. }: &Fleet) -> Result<()> {
    Ok(write!(text, "\n{clusters:>9} {kind:<10}{deployments:>12}")?)
}

const FLEET: &str = " clusters           Deployments";

fn single_changes(all: &[(&Fleet, Live)], changes: u32) -> Result<String> {
    let mut text = format!(
        "{FLEET}{:>12}{:>10}{:>10}{:>13}{:>9}{:>9}   {changes} single changes",
        "median, ms", "99 %, ms", "max., ms", "request, ms", "writes", "CPU, ms"
    );
    for (own, Live { single, .. }) in all {
        let Some(Single { p50_ms, p99_ms, max_ms, request_p50_ms, writes, cpu_ms }) = single else {
            continue;
        };
        fleet(&mut text, own)?;
        write!(
            text,
            "{p50_ms:>12.1}{p99_ms:>10.1}{max_ms:>10.1}{request_p50_ms:>13.1}{writes:>9.2}{cpu_ms:>9.2}"
        )?;
    }
    Ok(text)
}

fn bursts(all: &[(&Fleet, Live)]) -> Result<String> {
    let mut text = format!(
        "{FLEET}{:>10}{:>10}{:>16}{:>14}{:>9}{:>10}   changes at once",
        "changes", "sent, s", "first right, s", "all right, s", "writes", "CPU, s"
    );
    for (own, Live { burst, .. }) in all {
        let Some(Burst { changes, sent_s, first_s, all_s, writes, cpu_s }) = burst else { continue };
        fleet(&mut text, own)?;
        write!(text, "{changes:>10}{sent_s:>10.2}{first_s:>16.2}{all_s:>14.2}{writes:>9.0}{cpu_s:>10.2}")?;
    }
    Ok(text)
}

fn costs(all: &[(&Fleet, Live)]) -> Result<String> {
    const MIB: f64 = 1_048_576.0;
    let mut text = format!(
        "{FLEET}{:>10}{:>10}{:>9}{:>14}{:>13}{:>12}   from the start of the controller",
        "right, s", "CPU, s", "writes", "idle, ms/s", "memory, MiB", "later, MiB"
    );
    for (own, Live { start_s, start_cpu_s, start_writes, idle_ms, memory, memory_after, .. }) in all {
        let (memory, later) = (memory / MIB, memory_after / MIB);
        fleet(&mut text, own)?;
        write!(
            text,
            "{start_s:>10.2}{start_cpu_s:>10.2}{start_writes:>9.0}{idle_ms:>14.1}{memory:>13.1}{later:>12.1}"
        )?;
    }
    Ok(text)
}
