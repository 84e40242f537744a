//! `cargo xtask bench`: benchmarks of Bellwether and of comparable projects on the same input.

mod app_k8s_io;
mod application;
mod combined;
mod expr;
mod memory;
mod pods;
mod rollup;
mod status;

use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::{Command as Process, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use clap::Subcommand;
use serde::{Deserialize, de::DeserializeOwned};

use crate::run::{cargo, log, print, root, step};

#[derive(Debug, Subcommand)]
pub(crate) enum Bench {
    /// Measure decoding and assessing an object, compared with kstatus and Argo CD's Go checks
    Health,
    /// Measure compiling and evaluating expressions, compared with cel-go and the crate `cel`
    Expr,
    /// Measure CombinedStatuses: the tables alone, and a controller with real and with simulated clusters
    Combined(combined::Combined),
    /// Measure Applications: the engine alone, and a controller on a real control plane
    Application(application::Application),
    /// Measure a Rollup over few and many components: the engine alone, and a controller on a real control
    /// plane
    Rollup(rollup::Rollup),
    /// Measure `bellwether status` on a control plane with many Applications
    Status(status::Status),
    /// Measure the peak of a controller's memory with large objects
    Memory(memory::Memory),
    /// Measure a controller with and without the Pods below members
    Pods(pods::Pods),
    /// Compare with the controller of app.k8s.io
    AppK8sIo(app_k8s_io::AppK8sIo),
}

pub(crate) fn run(command: &Bench) -> Result<()> {
    match command {
        Bench::Health => health(),
        Bench::Expr => expr::expr(),
        Bench::Combined(combined) => combined.run(),
        Bench::Application(application) => application.run(),
        Bench::Rollup(rollup) => rollup.run(),
        Bench::Status(status) => status.run(),
        Bench::Memory(memory) => memory.run(),
        Bench::Pods(pods) => pods.run(),
        Bench::AppK8sIo(app_k8s_io) => app_k8s_io.run(),
    }
}

/// A named value that a program measures.
#[derive(Debug, Deserialize)]
struct Figure {
    figure: String,
    value: f64,
}

/// What a program measures for an object. Each program sets only some of the fields.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ObjectLine {
    file: String,
    size: u64,
    /// The verdict; empty if a peer has no rule for the kind and only decodes the object.
    status: String,
    ns: u64,
    decode_ns: u64,
    rule_ns: u64,
    allocs: u64,
    bytes: u64,
}

/// Another project for comparison.
struct Peer {
    name: &'static str,
    /// The directory below `bench/peers`.
    module: &'static str,
    /// The speed-up that Bellwether should reach.
    goal: f64,
}

const PEERS: [Peer; 2] = [
    Peer { name: "kstatus", module: "kstatus", goal: 10.0 },
    Peer { name: "Argo CD", module: "argo", goal: 15.0 },
];

/// Nanoseconds from the bytes to the verdict, for an object of this many bytes.
const GOAL: (f64, f64) = (15_000.0, 6_000.0);

/// The programs run in turn. The load of the machine varies, so the fastest of these turns counts.
const TURNS: usize = 5;

fn health() -> Result<()> {
    let files = objects()?;
    let own = build_ours()?;
    let counted = measure(&own.join("health-allocations"), &files)?;
    let mut programs = vec![own.join("health-times")];
    if has_go() {
        for peer in &PEERS {
            programs
                .push(peer.build().with_context(|| format!("cannot build the program for {}", peer.name))?);
        }
    } else {
        log("Go is not installed: the table has only Bellwether's figures");
    }

    let mut results: Vec<Vec<ObjectLine>> = Vec::new();
    for turn in 1..=TURNS {
        log(&format!("measuring, turn {turn} of {TURNS}"));
        for (position, program) in programs.iter().enumerate() {
            let lines = measure(program, &files)?;
            match results.get_mut(position) {
                Some(before) => {
                    before.iter_mut().zip(lines).for_each(|(before, line)| before.keep_quickest(&line));
                }
                None => results.push(lines),
            }
        }
    }
    let mut results = results.into_iter();
    let mut ours = results.next().unwrap_or_default();
    for (line, counted) in ours.iter_mut().zip(counted) {
        (line.allocs, line.bytes) = (counted.allocs, counted.bytes);
    }
    print(&table(&ours, &PEERS.iter().zip(results).collect::<Vec<_>>())?);
    Ok(())
}

impl ObjectLine {
    fn keep_quickest(&mut self, other: &Self) {
        self.ns = self.ns.min(other.ns);
        self.decode_ns = self.decode_ns.min(other.decode_ns);
        self.rule_ns = self.rule_ns.min(other.rule_ns);
    }
}

fn objects() -> Result<Vec<PathBuf>> {
    let directory = root().join("bench").join("objects");
    let mut files = Vec::new();
    for entry in fs::read_dir(&directory).with_context(|| format!("cannot read {}", directory.display()))? {
        files.push(entry?.path());
    }
    files.sort();
    Ok(files)
}

/// Cargo's target directory.
fn target() -> Result<PathBuf> {
    let own = env::current_exe()?;
    Ok(own.ancestors().nth(2).context("xtask does not run from a target directory")?.to_owned())
}

/// Builds the programs of `bench` and returns their directory.
fn build_ours() -> Result<PathBuf> {
    step(&mut cargo(&["build", "--release", "--package", "bellwether-bench"]))?;
    Ok(target()?.join("release"))
}

fn has_go() -> bool {
    Process::new("go").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

impl Peer {
    fn build(&self) -> Result<PathBuf> {
        log(&format!("building {}; the first time takes some minutes", self.name));
        let program = target()?.join("bench-peers").join(self.module);
        let built = Process::new("go")
            .current_dir(root().join("bench").join("peers").join(self.module))
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .args(["build", "-trimpath", "-mod=readonly", "-buildvcs=false", "-o"])
            .arg(&program)
            .arg(".")
            .status()?;
        ensure!(built.success(), "go build failed");
        Ok(program)
    }
}

/// Runs a program and parses each line of its standard output.
fn lines_of<T: DeserializeOwned>(program: &mut Process) -> Result<Vec<T>> {
    let output = program.stderr(Stdio::inherit()).output()?;
    ensure!(output.status.success(), "{}", output.status);
    Ok(String::from_utf8(output.stdout)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

/// Runs a program on the files. It prints a line for each file.
fn measure(program: &Path, files: &[PathBuf]) -> Result<Vec<ObjectLine>> {
    let run = || -> Result<Vec<ObjectLine>> {
        let lines: Vec<ObjectLine> = lines_of(Process::new(program).args(files))?;
        let measured = lines.iter().map(|line| Some(line.file.as_ref()));
        ensure!(measured.eq(files.iter().map(|file| file.file_name())), "the program measured other files");
        Ok(lines)
    };
    run().with_context(|| format!("cannot measure with {}", program.display()))
}

fn table(ours: &[ObjectLine], peers: &[(&Peer, Vec<ObjectLine>)]) -> Result<String> {
    let mut text = format!("{:<24}{:>8}  {:<12}{:^38}", "", "", "", "Bellwether");
    for (peer, _) in peers {
        write!(text, "  {:^25}", peer.name)?;
    }
    let own = ["µs", "decode", "rule", "allocs", "bytes"];
    write!(text, "\n{:<24}{:>8}  {:<12}", "object", "bytes", "verdict")?;
    write!(text, "{:>8}{:>8}{:>7}{:>7}{:>8}", own[0], own[1], own[2], own[3], own[4])?;
    for _ in peers {
        write!(text, "  {:>9}{:>8}{:>8}", "µs", "allocs", "times")?;
    }
    let mut rows: Vec<_> = ours.iter().enumerate().collect();
    rows.sort_by_key(|(_, line)| line.size);
    for (row, own) in rows {
        let object = own.file.trim_end_matches(".json");
        write!(text, "\n{object:<24}{:>8}  {:<12}", own.size, own.status)?;
        write!(text, "{:>8.2}{:>8.2}{:>7.2}", micros(own.ns), micros(own.decode_ns), micros(own.rule_ns))?;
        write!(text, "{:>7}{:>8}", own.allocs, own.bytes)?;
        for (_, lines) in peers {
            let line = &lines[row];
            match slower(line, own) {
                Some(slower) => {
                    write!(text, "  {:>9.2}{:>8}{slower:>7.1}x", micros(line.ns), line.allocs)?;
                }
                None => write!(text, "  {:>25}", "no rule")?,
            }
        }
    }
    write!(text, "\n\n{}", goals(ours, peers)?)?;
    Ok(text)
}

/// How many times as long the peer takes; `None` if it has no rule for the kind.
fn slower(peer: &ObjectLine, ours: &ObjectLine) -> Option<f64> {
    (!peer.status.is_empty()).then(|| micros(peer.ns) / micros(ours.ns))
}

/// Times depend on the machine and its load, so a missed goal is not a failure.
fn goals(ours: &[ObjectLine], peers: &[(&Peer, Vec<ObjectLine>)]) -> Result<String> {
    let (most, size) = GOAL;
    let scaled: Vec<_> = ours.iter().map(|line| float(line.ns) * size / float(line.size)).collect();
    let mut text = format!(
        "Median: {:.2} µs for each 6 KB of an object. Goal: at most {:.0} µs, reached by {} of {} objects.",
        median(&scaled) / 1_000.0,
        most / 1_000.0,
        scaled.iter().filter(|ns| **ns <= most).count(),
        scaled.len()
    );
    for (peer, lines) in peers {
        let all: Vec<_> = lines.iter().zip(ours).filter_map(|(line, own)| slower(line, own)).collect();
        write!(
            text,
            "\nMedian: {:.1} times as fast as {}. Goal: at least {:.0} times, reached by {} of {} objects.",
            median(&all),
            peer.name,
            peer.goal,
            all.iter().filter(|times| **times >= peer.goal).count(),
            all.len()
        )?;
    }
    Ok(text)
}

fn median(all: &[f64]) -> f64 {
    let mut sorted = all.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

fn micros(ns: u64) -> f64 {
    float(ns) / 1_000.0
}

#[expect(clippy::cast_precision_loss, reason = "measurements have fewer digits than a float")]
fn float(number: u64) -> f64 {
    number as f64
}
