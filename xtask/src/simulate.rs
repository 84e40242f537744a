//! `cargo xtask simulate`: controllers on an in-memory cluster.

use anyhow::Result;
use clap::Args;

use crate::run::{cargo, step};

/// The first seed in `cargo xtask test`, which is deterministic. `cargo xtask simulate` draws random seeds.
const FIRST: &str = "1";

/// Takes about half a minute on two cores.
const RUNS: &str = "6000";

/// The maximum number of runs until a planted bug is found.
const PLANTED_RUNS: &str = "50000";

#[derive(Debug, Args)]
pub(crate) struct Simulate {
    /// Arguments for the simulation; see `--help` of the simulation
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

impl Simulate {
    pub(crate) fn run(&self) -> Result<()> {
        simulate(&self.arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// Runs the stored histories, a fixed number of seeds, and all planted bugs.
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
    /// `.cargo/config.toml` sets it. Without it, property tests would use a different seed in each run.
    #[test]
    fn property_tests_have_a_fixed_seed() {
        let seed = std::env::var("PROPTEST_RNG_SEED").unwrap_or_default();
        assert!(seed.parse::<u64>().is_ok(), "PROPTEST_RNG_SEED is {seed:?}, want a number");
    }
}
