//! `cargo xtask bench application`: how fast Applications follow their objects, in the engine alone and in a cluster.

use std::{collections::HashMap, fmt::Write as _, process::Command as Process};

use anyhow::{Context as _, Result};
use clap::Args;
use serde::Deserialize;

use super::{build_ours, float, lines_of, micros, target};
use crate::run::{cargo, print, say, step};

/// What is measured.
#[derive(Debug, Args)]
pub(crate) struct Application {
    /// Measure the engine alone
    #[arg(long)]
    engine: bool,
    /// Measure a controller on a real control plane
    #[arg(long)]
    cluster: bool,
    /// How many objects there are in the cluster
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1000..=100_000))]
    objects: u32,
    /// How many of them belong to one Application
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    group: u32,
    /// How many of them change in a second
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rate: u32,
    /// For how many seconds
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
}

impl Application {
    pub(super) fn run(&self) -> Result<()> {
        let neither = !self.engine && !self.cluster;
        let own = build_ours()?;
        if self.engine || neither {
            let times: Vec<Times> = each_population("engine-times")?;
            let memory: Vec<Memory> = each_population("engine-memory")?;
            print(&format!("\n{}", engine(&times, &memory)?));
        }
        if self.cluster || neither {
            step(&mut cargo(&["build", "--release", "--package", "bellwether"]))?;
            let mut program = Process::new(own.join("controller-times"));
            program.arg(own.join("bellwether"));
            program
                .args([self.objects, self.group, self.seconds, self.rate].map(|number| number.to_string()));
            let figures: Vec<Figure> = lines_of(&mut program).context("cannot measure a controller")?;
            let figures = figures.into_iter().map(|figure| (figure.figure, figure.value)).collect();
            print(&format!("\n{}", self.controller(&figures)?));
        }
        Ok(())
    }

    /// The table of the controller on a control plane.
    fn controller(&self, figures: &HashMap<String, f64>) -> Result<String> {
        let mut text = format!(
            "A controller on a control plane with {} objects in {} Applications; {} changes a second\n",
            self.objects,
            self.objects.div_ceil(self.group),
            self.rate
        );
        write!(text, "{:>12}  {:<6}{:>9}  what", "", "", "goal")?;
        for row in &ROWS {
            let Some(value) = figures.get(row.figure) else { continue };
            let goal = row.goal.map(|goal| format!("{goal:.0}")).unwrap_or_default();
            let (value, digits) = (value / row.scale, row.digits);
            write!(text, "\n{value:>12.digits$}  {:<6}{goal:>9}  {}", row.unit, row.what)?;
        }
        Ok(text)
    }
}

/// How many objects there are, and how many of them belong to one Application.
const POPULATIONS: [(u32, u32); 6] =
    [(1_000, 100), (10_000, 100), (100_000, 100), (1_000, 1_000), (10_000, 10_000), (100_000, 100_000)];

/// The memory that an object may need, in bytes.
const MEMORY: f64 = 1024.0;

/// What the engine takes.
#[derive(Debug, Deserialize)]
struct Times {
    objects: u64,
    applications: u64,
    read_ns: u64,
    load_ns: u64,
    one_ns: u64,
    batch_ns: u64,
    words_ns: u64,
}

/// What the engine keeps.
#[derive(Debug, Deserialize)]
struct Memory {
    objects: u64,
    bytes: u64,
}

/// What a controller does.
#[derive(Debug, Deserialize)]
struct Figure {
    figure: String,
    value: f64,
}

/// A line of the table.
struct Row {
    figure: &'static str,
    what: &'static str,
    unit: &'static str,
    /// So much of what was measured is one of the unit.
    scale: f64,
    digits: usize,
    /// At most so much.
    goal: Option<f64>,
}

const ROWS: [Row; 36] = [
    Row::new("turn_p50_ms", "ms", 1, "from an accepted change to the status on a watch, half of them")
        .at_most(20.0),
    Row::new("turn_p99_ms", "ms", 1, "99 of 100").at_most(150.0),
    Row::new("turn_max_ms", "ms", 1, "all of them"),
    Row::new("turn_changes", "", 0, "changes, each of which makes an Application ready or unready"),
    Row::new("turn_unseen", "", 0, "of which so many were overtaken by the next before they showed"),
    Row::new("turn_rate", "1/s", 1, "of them in a second"),
    Row::new("turn_writes", "", 2, "writes of a status for each change"),
    Row::new("turn_events", "", 2, "Events for each change"),
    Row::new("turn_step_ms", "ms", 2, "a step of the engine, on average"),
    Row::new("turn_write_ms", "ms", 2, "a write, until the API server has answered, on average"),
    Row::new("turn_accept_p50_ms", "ms", 1, "a change, until the API server has accepted it, half of them"),
    Row::new("turn_accept_p99_ms", "ms", 1, "99 of 100"),
    Row::new("turn_percent", "%", 1, "of a core for the controller, meanwhile"),
    Row::new("turn_server_percent", "%", 1, "of a core for the API server and etcd"),
    Row::new("turn_others_percent", "%", 1, "of a core that others had, on this machine or on its host"),
    Row::new(
        "words_p50_ms",
        "ms",
        1,
        "the same when words alone change, which may wait for a second, half of them",
    ),
    Row::new("words_p99_ms", "ms", 1, "99 of 100"),
    Row::new("words_max_ms", "ms", 1, "all of them"),
    Row::new("words_writes", "", 2, "writes of a status for each change"),
    Row::new("burst_changes", "", 0, "changes of the objects of one Application in a burst"),
    Row::new("burst_s", "s", 1, "in so long"),
    Row::new("burst_writes", "", 0, "writes of its status").at_most(20.0),
    Row::new("idle_changes", "", 0, "changes that mean nothing"),
    Row::new("idle_writes", "", 0, "writes after them").at_most(0.0),
    Row::new("idle_percent", "%", 2, "of a core when nothing happens").at_most(1.0),
    Row::new("memory_empty", "MiB", 1, "of memory without objects").of(MIB).at_most(40.0),
    Row::new("memory_full", "MiB", 1, "of memory with them").of(MIB),
    Row::new("memory_each", "bytes", 0, "more for each object").at_most(MEMORY),
    Row::new("memory_later", "MiB", 1, "of memory after all changes").of(MIB),
    Row::new("restart_memory", "MiB", 1, "of memory after a restart").of(MIB),
    Row::new("first_ready_s", "s", 2, "from the first start until it is ready"),
    Row::new("first_right_s", "s", 2, "until all statuses are right"),
    Row::new("restart_ready_s", "s", 2, "from a restart until it is ready"),
    Row::new("restart_writes", "", 0, "writes by it").at_most(0.0),
    Row::new(
        "changed_right_s",
        "s",
        2,
        "from a restart until all statuses are right, of which each was wrong",
    )
    .at_most(30.0),
    Row::new("changed_writes", "", 0, "writes by it"),
];

const MIB: f64 = 1_048_576.0;

impl Row {
    const fn new(figure: &'static str, unit: &'static str, digits: usize, what: &'static str) -> Self {
        Self { figure, what, unit, scale: 1.0, digits, goal: None }
    }

    const fn of(self, scale: f64) -> Self {
        Self { scale, ..self }
    }

    const fn at_most(self, goal: f64) -> Self {
        Self { goal: Some(goal), ..self }
    }
}

/// What a program says of each population, each in a process of its own, so that none inherits another's memory.
fn each_population<T: for<'a> Deserialize<'a>>(program: &str) -> Result<Vec<T>> {
    let mut lines = Vec::new();
    for (objects, group) in POPULATIONS {
        say(&format!("{program}: {objects} objects, {group} to an Application"));
        let path = target()?.join("release").join(program);
        let mut process = Process::new(&path);
        process.args([objects, group].map(|number| number.to_string()));
        lines.extend(
            lines_of(&mut process).with_context(|| format!("cannot measure with {}", path.display()))?,
        );
    }
    Ok(lines)
}

/// The table of the engine alone.
fn engine(times: &[Times], memory: &[Memory]) -> Result<String> {
    let mut text = format!(
        "{:^23}{:>21}{:>21}{:>15}{:>26}\n",
        "the engine alone", "one by one", "1,024 at a time", "its status", "all objects"
    );
    for (heading, width) in [("objects", 9), ("Applications", 14)] {
        write!(text, "{heading:>width$}")?;
    }
    for (heading, width) in [("µs", 9), ("per second", 12), ("µs", 9), ("per second", 12)] {
        write!(text, "{heading:>width$}")?;
    }
    for (heading, width) in [("in words, µs", 15), ("read, µs each", 15), ("load, s", 9), ("bytes each", 12)]
    {
        write!(text, "{heading:>width$}")?;
    }
    for (times, memory) in times.iter().zip(memory) {
        let Times { objects, applications, one_ns, batch_ns, words_ns, read_ns, load_ns } = times;
        write!(text, "\n{objects:>9}{applications:>14}")?;
        for ns in [*one_ns, *batch_ns] {
            write!(text, "{:>9.2}{:>12.0}", micros(ns), 1e9 / float(ns))?;
        }
        write!(text, "{:>15.0}{:>15.2}", micros(*words_ns), micros(*read_ns))?;
        write!(text, "{:>9.3}{:>12.0}", micros(*load_ns) / 1e6, memory.each())?;
    }
    let (least, most) = one_by_one(times);
    write!(
        text,
        "\n\nOne by one, the slowest takes {:.1} times as long as the quickest. Goal: no longer with more objects.\nAn object \
         takes at most {MEMORY:.0} bytes in {} of {}.",
        most / least,
        memory.iter().filter(|memory| memory.each() <= MEMORY).count(),
        memory.len()
    )?;
    Ok(text)
}

impl Memory {
    fn each(&self) -> f64 {
        float(self.bytes) / float(self.objects)
    }
}

/// The least and the longest time of a change.
fn one_by_one(times: &[Times]) -> (f64, f64) {
    let all = times.iter().map(|times| float(times.one_ns));
    all.fold((f64::INFINITY, 0.0), |(least, most), time| (time.min(least), time.max(most)))
}
