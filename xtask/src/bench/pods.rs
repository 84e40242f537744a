//! `cargo xtask bench pods`: the cost of following Pods.

use std::{fmt::Write as _, process::Command as Process};

use anyhow::{Context as _, Result};
use clap::Args;
use serde::Deserialize;

use super::{build_ours, lines_of};
use crate::run::{cargo, print, step};

#[derive(Debug, Args)]
pub(crate) struct Pods {
    /// Number of Deployments
    #[arg(long, default_value_t = 1_000)]
    deployments: u32,
    /// Number of Deployments in one Application
    #[arg(long, default_value_t = 20)]
    group: u32,
    /// Number of Pods of each Deployment
    #[arg(long = "pods", value_name = "PODS", default_value_t = 10)]
    replicas: u32,
}

/// What the program measures with or without Pods.
#[derive(Debug, Deserialize)]
struct Run {
    what: String,
    ready_s: f64,
    start_cpu_s: f64,
    lists: f64,
    list_bytes: f64,
    watches: f64,
    idle_lists: f64,
    idle_percent: f64,
    memory: f64,
    peak: f64,
    memory_after: f64,
    changes: f64,
    change_cpu_s: f64,
    writes: f64,
}

type Figure = fn(&Run) -> f64;

const MIB: f64 = 1_048_576.0;

/// Unit, description, figure.
const ROWS: [(&str, &str, Figure); 12] = [
    ("s", "from the start until ready", |run| run.ready_s),
    ("s", "of CPU time until then", |run| run.start_cpu_s),
    ("", "list requests until then", |run| run.lists),
    ("MiB", "of responses to them", |run| run.list_bytes / MIB),
    ("", "watches", |run| run.watches),
    ("MiB", "memory", |run| run.memory / MIB),
    ("MiB", "peak of it", |run| run.peak / MIB),
    ("", "list requests in a minute while idle", |run| run.idle_lists),
    ("%", "of a core meanwhile", |run| run.idle_percent),
    ("µs", "of CPU time for a change of a Pod without effect", |run| 1e6 * run.change_cpu_s / run.changes),
    ("", "status writes and Events for all these changes", |run| run.writes),
    ("MiB", "memory after them", |run| run.memory_after / MIB),
];

impl Pods {
    pub(super) fn run(&self) -> Result<()> {
        let own = build_ours()?;
        step(&mut cargo(&["build", "--release", "--package", "bellwether"]))?;
        let mut program = Process::new(own.join("pods-times"));
        program.arg(own.join("bellwether"));
        program.args([self.deployments, self.group, self.replicas].map(|number| number.to_string()));
        let runs: Vec<Run> = lines_of(&mut program).context("cannot measure the cost of Pods")?;
        print(&format!("\n{}", self.table(&runs)?));
        Ok(())
    }

    fn table(&self, runs: &[Run]) -> Result<String> {
        let Self { deployments, group, replicas } = *self;
        let mut text = format!(
            "{} Applications, {deployments} Deployments with a ReplicaSet, {} Pods\n",
            deployments.div_ceil(group),
            deployments * replicas
        );
        for run in runs {
            write!(text, "{:>12}", run.what)?;
        }
        for (unit, what, figure) in ROWS {
            text.push('\n');
            for run in runs {
                write!(text, "{:>12.2}", figure(run))?;
            }
            write!(text, "  {unit:<4} {what}")?;
        }
        Ok(text)
    }
}
