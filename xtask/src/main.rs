//! `cargo xtask`: everything in this repository that is not plain cargo.

mod bench;
mod check;
mod cluster;
mod conformance;
mod executables;
mod faketime;
mod faults;
mod floors;
mod fuzz;
mod generate;
mod picture;
mod run;
mod simulate;
mod soak;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Everything in this repository that is not plain cargo.
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask",
    bin_name = "cargo xtask",
    max_term_width = 100,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the generated files: deploy/crds, docs/health-rules.md, docs/demo.svg
    Generate {
        /// Write nothing; fail if a file is not up to date
        #[arg(long)]
        check: bool,
    },
    /// Check what needs no cluster: format, lints, documentation, generated files, dependencies between crates, conformance
    Check,
    /// Check everything: `check`, then every test, on real control planes that are built first if need be
    Test {
        /// Arguments for the test programs, such as a part of the tests' names
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Compare our verdicts with those that other projects wrote down for their objects, and our CEL with CEL's own suite
    Conformance(conformance::Conformance),
    /// Measure how fast we are, beside others on the same bytes; fails on no time
    #[command(subcommand)]
    Bench(bench::Command),
    /// Let a controller suffer every fault on real control planes; print how long it takes to be right again
    ///
    /// Runs the end-to-end stories about faults as often as wanted, and stops at the first that fails. The table has the
    /// best, the median and the worst time from the end of each fault, or from what its name says, until the right status
    /// was seen on a watch. Clocks jump only where libfaketime is installed, can be fetched as a package of
    /// Debian, or BELLWETHER_FAKETIME names its file.
    Faults(faults::Faults),
    /// Look for objects, expressions and scripts that break a promise; needs a nightly compiler and cargo-fuzz
    Fuzz(fuzz::Fuzz),
    /// Run the controller against a cluster in memory, over and over, with everything going wrong that can
    Simulate(simulate::Simulate),
    /// Change and break things on a real control plane for a long time, and look whether what is published is true
    Soak(soak::Soak),
    /// Control planes to play with
    #[command(subcommand)]
    Cluster(cluster::Command),
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            run::say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Generate { check: false } => generate::write(),
        Command::Generate { check: true } => generate::check(),
        Command::Check => check::check(),
        Command::Test { arguments } => check::test(&arguments),
        Command::Conformance(conformance) => conformance.run(),
        Command::Bench(command) => bench::run(&command),
        Command::Faults(faults) => faults.run(),
        Command::Fuzz(fuzz) => fuzz.run(),
        Command::Simulate(simulate) => simulate.run(),
        Command::Soak(soak) => soak.run(),
        Command::Cluster(command) => cluster::run(command),
    }
}
