//! `cargo xtask`: the development tasks of this repository.

mod bench;
mod check;
mod cluster;
mod conformance;
mod executables;
mod faketime;
mod faults;
mod fuzz;
mod generate;
mod layers;
mod picture;
mod run;
mod simulate;
mod soak;
mod words;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Run the development tasks of this repository
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
    /// Check everything that needs no cluster: format, lints, docs, generated files, words, crate
    /// dependencies, conformance
    Check,
    /// Run `check` and all tests, on real control planes that are built first if necessary
    Test {
        /// Arguments for the test executables, such as a part of a test name
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Compare verdicts with the test cases of other projects, and CEL with its conformance suite
    Conformance(conformance::Conformance),
    /// Run benchmarks and print the figures, also those of comparable projects
    #[command(subcommand)]
    Bench(bench::Bench),
    /// Inject every fault on real control planes and print the recovery times
    ///
    /// Runs the end-to-end tests of faults for a number of rounds, and stops at the first failure. The table
    /// has the best, the median and the worst time from the end of each fault (or from the event in its name)
    /// until a watch shows the right status. Tests that set the clock need libfaketime: installed, available
    /// as a Debian package, or named in BELLWETHER_FAKETIME.
    Faults(faults::Faults),
    /// Fuzz decoders and evaluators; needs a nightly toolchain and cargo-fuzz
    Fuzz(fuzz::Fuzz),
    /// Simulate controllers with faults on an in-memory cluster
    Simulate(simulate::Simulate),
    /// Run controllers under random load and faults on a real control plane, and check every published status
    Soak(soak::Soak),
    /// Manage local control planes
    #[command(subcommand)]
    Cluster(cluster::ClusterCommand),
    /// Find forbidden words in texts and comments
    Words,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            run::log(&format!("error: {error:#}"));
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
        Command::Words => words::check(),
    }
}
