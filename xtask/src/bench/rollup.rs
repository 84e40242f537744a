//! `cargo xtask bench rollup`: the cost of a change to one of many components.

use std::{fmt::Write as _, process::Command as Process};

use anyhow::{Context as _, Result};
use clap::Args;
use serde::Deserialize;

use super::{build_ours, lines_of, micros};
use crate::run::{cargo, log, print, step};

#[derive(Debug, Args)]
pub(crate) struct Rollup {
    /// Number of changes on each control plane
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(2..=10_000))]
    changes: u32,
}

/// The numbers of components for the engine alone.
const ALONE: [u32; 5] = [5, 50, 500, 5_000, 50_000];

/// The numbers of components on a control plane. A status lists at most a hundred of them.
const LIVE: [u32; 3] = [5, 100, 5_000];

/// The numbers of Rollups in one another.
const NESTED: [u32; 3] = [3, 50, 400];

#[derive(Debug, Deserialize)]
struct RollupTimes {
    components: u64,
    one_ns: u64,
    words_ns: u64,
    writes: u64,
}

#[derive(Debug, Deserialize)]
struct LiveTimes {
    components: u64,
    changes: u64,
    half_ms: f64,
    longest_ms: f64,
    writes: f64,
    memory: f64,
}

#[derive(Debug, Deserialize)]
struct NestedTimes {
    depth: u64,
    start_s: f64,
    start_writes: f64,
    change_s: f64,
    change_writes: f64,
}

impl Rollup {
    pub(super) fn run(&self) -> Result<()> {
        let own = build_ours()?;
        step(&mut cargo(&["build", "--release", "--package", "bellwether"]))?;
        let mut times: Vec<RollupTimes> = Vec::new();
        for components in ALONE {
            log(&format!("engine alone, {components} components"));
            let mut program = Process::new(own.join("rollup-times"));
            program.arg(components.to_string());
            times.extend(lines_of::<RollupTimes>(&mut program).context("cannot measure the engine")?);
        }
        let mut live: Vec<LiveTimes> = Vec::new();
        for components in LIVE {
            log(&format!("controller, {components} components"));
            let mut program = Process::new(own.join("rollup-live"));
            program
                .arg(own.join("bellwether"))
                .args([components, self.changes].map(|number| number.to_string()));
            live.extend(lines_of::<LiveTimes>(&mut program).context("cannot measure a controller")?);
        }
        let mut nested: Vec<NestedTimes> = Vec::new();
        for depth in NESTED {
            log(&format!("controller, {depth} nested Rollups"));
            let mut program = Process::new(own.join("rollup-nested"));
            program.arg(own.join("bellwether")).arg(depth.to_string());
            nested.extend(lines_of::<NestedTimes>(&mut program).context("cannot measure nested Rollups")?);
        }
        print(&format!("\n{}\n\n{}", table(&times, &live)?, nested_table(&nested)?));
        Ok(())
    }
}

fn table(times: &[RollupTimes], live: &[LiveTimes]) -> Result<String> {
    let mut text = format!(
        "{:>12}{:>16}{:>20}{:>10}   engine alone",
        "components", "change, µs", "render status, µs", "writes"
    );
    for RollupTimes { components, one_ns, words_ns, writes } in times {
        write!(text, "\n{components:>12}{:>16.2}{:>20.0}{writes:>10}", micros(*one_ns), micros(*words_ns))?;
    }
    write!(
        text,
        "\n\n{:>12}{:>16}{:>20}{:>10}{:>14}   controller on a control plane",
        "components", "median, ms", "maximum, ms", "writes", "memory, MiB"
    )?;
    for LiveTimes { components, changes, half_ms, longest_ms, writes, memory } in live {
        let memory = memory / 1_048_576.0;
        write!(
            text,
            "\n{components:>12}{half_ms:>16.1}{longest_ms:>20.1}{writes:>10.2}{memory:>14.1}   {changes} changes"
        )?;
    }
    Ok(text)
}

fn nested_table(nested: &[NestedTimes]) -> Result<String> {
    let mut text = format!(
        "{:>12}{:>16}{:>20}{:>12}{:>10}   nested Rollups, until the outermost one follows",
        "depth", "start, s", "writes", "change, s", "writes"
    );
    for NestedTimes { depth, start_s, start_writes, change_s, change_writes } in nested {
        write!(
            text,
            "\n{depth:>12}{start_s:>16.2}{start_writes:>20.0}{change_s:>12.2}{change_writes:>10.0}"
        )?;
    }
    Ok(text)
}
