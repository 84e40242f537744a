//! `cargo xtask simulate`: the controller against a cluster in memory.

use anyhow::Result;
use clap::Args;

use crate::run::{cargo, step};

/// For so long every change is tried with histories that nobody has seen before.
const SECONDS: &str = "120";

/// So many runs at most until a planted bug is found, from a seed that is the same every time.
const PLANTED_RUNS: &str = "50000";

#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// Arguments for the simulation: `--help` tells which
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Simulate {
    pub(crate) fn run(&self) -> Result<()> {
        simulate(&self.arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// New histories, and all planted bugs.
pub(crate) fn check() -> Result<()> {
    simulate(&["--seconds", SECONDS])?;
    simulate(&["--planted", PLANTED_RUNS, "--first", "1"])
}

fn simulate(arguments: &[&str]) -> Result<()> {
    let run = [
        "run",
        "--quiet",
        "--profile",
        "simulation",
        "--package",
        "bellwether-simulation",
        "--bin",
        "simulate",
    ];
    step(cargo(&run).arg("--").args(arguments))
}
