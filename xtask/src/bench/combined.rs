//! `cargo xtask bench combined`: the cost of a row's change in the result of a StatusCollector.

use std::{fmt::Write as _, process::Command as Process};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use super::{build_ours, float, lines_of, micros};
use crate::run::{log, print};

/// The numbers of rows.
const ROWS: [u32; 4] = [100, 1_000, 10_000, 100_000];

/// The programs run in turn; the fastest of these turns counts.
const TURNS: usize = 3;

/// Changes in a second that a table should reach.
const GOAL: f64 = 1_000_000.0;

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

pub(super) fn combined() -> Result<()> {
    let own = build_ours()?;
    let mut tables: Vec<(TableTimes, TableMemory)> = Vec::new();
    for rows in ROWS {
        log(&format!("a table of {rows} rows"));
        let mut turns: Vec<TableTimes> = Vec::new();
        for _ in 0..TURNS {
            let mut program = Process::new(own.join("table-times"));
            turns.extend(
                lines_of::<TableTimes>(program.arg(rows.to_string())).context("cannot measure a table")?,
            );
        }
        let fastest = turns.into_iter().min_by(|left, right| left.change_ns.total_cmp(&right.change_ns));
        let mut program = Process::new(own.join("table-memory"));
        let memory: Vec<TableMemory> =
            lines_of(program.arg(rows.to_string())).context("cannot measure the memory of a table")?;
        tables.extend(fastest.into_iter().zip(memory));
    }
    print(&format!("\n{}", table(&tables)?));
    Ok(())
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
