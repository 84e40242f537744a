//! `cargo xtask bench application`: latency and cost of Applications, in the engine alone and in a cluster.

use std::{collections::HashMap, fmt::Write as _, path::Path, process::Command as Process};

use anyhow::{Context as _, Result};
use clap::Args;
use serde::Deserialize;

use super::{Figure, build_ours, float, lines_of, micros, target};
use crate::run::{cargo, log, print, step};

#[derive(Debug, Args)]
pub(crate) struct Application {
    /// Measure the engine alone
    #[arg(long)]
    engine: bool,
    /// Measure a controller on a real control plane
    #[arg(long)]
    cluster: bool,
    /// Number of objects in the cluster
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1000..=100_000))]
    objects: u32,
    /// Number of objects in one Application
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    group: u32,
    /// Number of changes in a second
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rate: u32,
    /// Duration in seconds
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
}

impl Application {
    pub(super) fn run(&self) -> Result<()> {
        let neither = !self.engine && !self.cluster;
        let own = build_ours()?;
        if self.engine || neither {
            let times: Vec<EngineTimes> = each_population("engine-times")?;
            let memory: Vec<EngineMemory> = each_population("engine-memory")?;
            print(&format!("\n{}", engine(&times, &memory)?));
            print(&format!("\n{}", chains(&chain_times(&own)?)?));
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

    fn controller(&self, figures: &HashMap<String, f64>) -> Result<String> {
        let mut text = format!(
            "A controller on a control plane with {} objects in {} Applications; {} changes a second\n",
            self.objects,
            self.objects.div_ceil(self.group),
            self.rate
        );
        write!(text, "{:>12}  {:<6}{:>9}  what", "", "", "goal")?;
        for row in &FIGURES {
            let Some(value) = figures.get(row.figure) else { continue };
            let goal = row.goal.map(|goal| format!("{goal:.0}")).unwrap_or_default();
            let (value, digits) = (value / row.scale, row.digits);
            write!(text, "\n{value:>12.digits$}  {:<6}{goal:>9}  {}", row.unit, row.what)?;
        }
        Ok(text)
    }
}

/// The number of objects, and the number of objects in one Application.
const POPULATIONS: [(u32, u32); 6] =
    [(1_000, 100), (10_000, 100), (100_000, 100), (1_000, 1_000), (10_000, 10_000), (100_000, 100_000)];

/// The goal for the memory of an object, in bytes.
const MEMORY: f64 = 1024.0;

#[derive(Debug, Deserialize)]
struct EngineTimes {
    objects: u64,
    applications: u64,
    read_ns: u64,
    load_ns: u64,
    one_ns: u64,
    batch_ns: u64,
    words_ns: u64,
}

/// The lengths of chains of dependencies.
const CHAINS: [u32; 3] = [10, 2_000, 20_000];

#[derive(Debug, Deserialize)]
struct ChainTimes {
    length: u64,
    load_ns: u64,
    change_ns: u64,
    close_ns: u64,
    render_ns: u64,
    open_ns: u64,
    circle_bytes: u64,
}

#[derive(Debug, Deserialize)]
struct EngineMemory {
    objects: u64,
    bytes: u64,
}

/// A line of the table of the controller.
struct FigureRow {
    figure: &'static str,
    what: &'static str,
    unit: &'static str,
    /// The measured value is divided by this.
    scale: f64,
    digits: usize,
    /// The maximum.
    goal: Option<f64>,
}

const FIGURES: [FigureRow; 36] = [
    FigureRow::new(
        "turn_p50_ms",
        "ms",
        1,
        "latency from an accepted change to the status on a watch, median",
    )
    .at_most(20.0),
    FigureRow::new("turn_p99_ms", "ms", 1, "99th percentile").at_most(150.0),
    FigureRow::new("turn_max_ms", "ms", 1, "maximum"),
    FigureRow::new("turn_changes", "", 0, "changes, each of which makes an Application ready or not ready"),
    FigureRow::new("turn_unseen", "", 0, "changes that the next change superseded"),
    FigureRow::new("turn_rate", "1/s", 1, "changes in a second"),
    FigureRow::new("turn_writes", "", 2, "status writes for each change"),
    FigureRow::new("turn_events", "", 2, "Events for each change"),
    FigureRow::new("turn_step_ms", "ms", 2, "engine step, mean"),
    FigureRow::new("turn_write_ms", "ms", 2, "status write request, mean"),
    FigureRow::new("turn_accept_p50_ms", "ms", 1, "change request, median"),
    FigureRow::new("turn_accept_p99_ms", "ms", 1, "99th percentile"),
    FigureRow::new("turn_percent", "%", 1, "of a core for the controller, meanwhile"),
    FigureRow::new("turn_server_percent", "%", 1, "of a core for the API server and etcd"),
    FigureRow::new("turn_others_percent", "%", 1, "of a core for other processes and the hypervisor"),
    FigureRow::new(
        "words_p50_ms",
        "ms",
        1,
        "latency if only messages change, which may wait for a second, median",
    ),
    FigureRow::new("words_p99_ms", "ms", 1, "99th percentile"),
    FigureRow::new("words_max_ms", "ms", 1, "maximum"),
    FigureRow::new("words_writes", "", 2, "status writes for each change"),
    FigureRow::new("burst_changes", "", 0, "changes to the objects of one Application in a burst"),
    FigureRow::new("burst_s", "s", 1, "duration of the burst"),
    FigureRow::new("burst_writes", "", 0, "status writes").at_most(20.0),
    FigureRow::new("idle_changes", "", 0, "changes without effect on a status"),
    FigureRow::new("idle_writes", "", 0, "status writes after them").at_most(0.0),
    FigureRow::new("idle_percent", "%", 2, "of a core while idle").at_most(1.0),
    FigureRow::new("memory_empty", "MiB", 1, "memory without objects").of(MIB).at_most(40.0),
    FigureRow::new("memory_full", "MiB", 1, "memory with all objects").of(MIB),
    FigureRow::new("memory_each", "bytes", 0, "memory for each object").at_most(MEMORY),
    FigureRow::new("memory_later", "MiB", 1, "memory after all changes").of(MIB),
    FigureRow::new("restart_memory", "MiB", 1, "memory after a restart").of(MIB),
    FigureRow::new("first_ready_s", "s", 2, "from the first start until ready"),
    FigureRow::new("first_right_s", "s", 2, "from the first start until all statuses are right"),
    FigureRow::new("restart_ready_s", "s", 2, "from a restart until ready"),
    FigureRow::new("restart_writes", "", 0, "status writes after it").at_most(0.0),
    FigureRow::new("changed_right_s", "s", 2, "from a restart with all statuses wrong until all are right")
        .at_most(30.0),
    FigureRow::new("changed_writes", "", 0, "status writes after it"),
];

const MIB: f64 = 1_048_576.0;

impl FigureRow {
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

/// Runs a program for each population, in a new process each time: memory must not carry over.
fn each_population<T: for<'a> Deserialize<'a>>(program: &str) -> Result<Vec<T>> {
    let mut lines = Vec::new();
    for (objects, group) in POPULATIONS {
        log(&format!("{program}: {objects} objects, {group} in each Application"));
        let path = target()?.join("release").join(program);
        let mut process = Process::new(&path);
        process.args([objects, group].map(|number| number.to_string()));
        lines.extend(
            lines_of(&mut process).with_context(|| format!("cannot measure with {}", path.display()))?,
        );
    }
    Ok(lines)
}

fn engine(times: &[EngineTimes], memory: &[EngineMemory]) -> Result<String> {
    let mut text = format!(
        "{:^23}{:>21}{:>21}{:>15}{:>26}\n",
        "engine alone", "single changes", "batches of 1,024", "one status", "all objects"
    );
    for (heading, width) in [("objects", 9), ("Applications", 14)] {
        write!(text, "{heading:>width$}")?;
    }
    for (heading, width) in [("µs", 9), ("per second", 12), ("µs", 9), ("per second", 12)] {
        write!(text, "{heading:>width$}")?;
    }
    for (heading, width) in [("render, µs", 15), ("decode, µs each", 16), ("load, s", 9), ("bytes each", 12)]
    {
        write!(text, "{heading:>width$}")?;
    }
    for (times, memory) in times.iter().zip(memory) {
        let EngineTimes { objects, applications, one_ns, batch_ns, words_ns, read_ns, load_ns } = times;
        write!(text, "\n{objects:>9}{applications:>14}")?;
        for ns in [*one_ns, *batch_ns] {
            write!(text, "{:>9.2}{:>12.0}", micros(ns), 1e9 / float(ns))?;
        }
        write!(text, "{:>15.0}{:>16.2}", micros(*words_ns), micros(*read_ns))?;
        write!(text, "{:>9.3}{:>12.0}", micros(*load_ns) / 1e6, memory.each())?;
    }
    let (least, most) = one_by_one(times);
    write!(
        text,
        "\n\nSingle changes: the slowest row takes {:.1} times as long as the fastest. Goal: independent of the number of \
         objects.\nMemory: at most {MEMORY:.0} bytes for each object in {} of {} rows.",
        most / least,
        memory.iter().filter(|memory| memory.each() <= MEMORY).count(),
        memory.len()
    )?;
    Ok(text)
}

fn chain_times(programs: &Path) -> Result<Vec<ChainTimes>> {
    let mut all = Vec::new();
    for length in CHAINS {
        log(&format!("chain-times: {length} Applications"));
        let mut program = Process::new(programs.join("chain-times"));
        all.extend(lines_of::<ChainTimes>(program.arg(length.to_string()))?);
    }
    Ok(all)
}

fn chains(times: &[ChainTimes]) -> Result<String> {
    let mut text = "an unrelated Application beside a chain of dependencies\n".to_owned();
    for (heading, width) in [
        ("length", 9),
        ("load, s", 9),
        ("a change, µs", 14),
        ("close the circle, ms", 22),
        ("its statuses, ms", 18),
        ("its memory, MiB", 17),
        ("open it, ms", 13),
    ] {
        write!(text, "{heading:>width$}")?;
    }
    for times in times {
        let ChainTimes { length, load_ns, change_ns, close_ns, render_ns, open_ns, circle_bytes } = times;
        write!(text, "\n{length:>9}{:>9.3}{:>14.2}", micros(*load_ns) / 1e6, micros(*change_ns))?;
        write!(text, "{:>22.2}{:>18.1}", micros(*close_ns) / 1e3, micros(*render_ns) / 1e3)?;
        let memory = float(*circle_bytes) / f64::from(1 << 20);
        write!(text, "{memory:>17.1}{:>13.2}", micros(*open_ns) / 1e3)?;
    }
    Ok(text)
}

impl EngineMemory {
    fn each(&self) -> f64 {
        float(self.bytes) / float(self.objects)
    }
}

/// The minimum and the maximum time of a single change.
fn one_by_one(times: &[EngineTimes]) -> (f64, f64) {
    let all = times.iter().map(|times| float(times.one_ns));
    all.fold((f64::INFINITY, 0.0), |(least, most), time| (time.min(least), time.max(most)))
}
