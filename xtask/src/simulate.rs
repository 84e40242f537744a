//! `cargo xtask simulate`: the controller against a cluster in memory.

use anyhow::Result;
use clap::Args;

use crate::run::{cargo, step};

/// The seed of the first run of `cargo xtask test`. It runs the same histories for everybody; `cargo xtask simulate` explores
/// others.
const FIRST: &str = "1";

/// So many runs take about half a minute on two cores.
const RUNS: &str = "10000";

/// So many runs at most until a planted bug is found.
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

/// The stored histories, a fixed number of others, and all planted bugs.
pub(crate) fn check() -> Result<()> {
    simulate(&["--runs", RUNS, "--first", FIRST])?;
    simulate(&["--planted", PLANTED_RUNS, "--first", FIRST])
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

#[cfg(test)]
mod tests {
    /// It stands in `.cargo/config.toml`. Without it, property tests would draw from another seed each time.
    #[test]
    fn cargo_gives_property_tests_their_seed() {
        let seed = std::env::var("PROPTEST_RNG_SEED").unwrap_or_default();
        assert!(seed.parse::<u64>().is_ok(), "PROPTEST_RNG_SEED is {seed:?}, want a number");
    }
}
