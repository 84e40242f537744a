//! `cargo xtask soak`: random load and faults on a real control plane.

use std::{
    env,
    path::PathBuf,
    process::Command,
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use crate::run::{cargo, step};

#[derive(Debug, Args)]
pub(crate) struct Soak {
    /// Duration in minutes
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// Seed of the random choices; the default is the current time
    #[arg(long)]
    seed: Option<u64>,
}

impl Soak {
    pub(crate) fn run(&self) -> Result<()> {
        // Not in one build: feature unification would put the planted bugs of the simulation into the
        // controller.
        for package in ["bellwether", "bellwether-soak"] {
            step(&mut cargo(&["build", "--release", "--package", package]))?;
        }
        let own = env::current_exe()?;
        let target: PathBuf =
            own.ancestors().nth(2).context("xtask does not run from a target directory")?.to_owned();
        let seed = match self.seed {
            Some(seed) => seed,
            None => SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs(),
        };
        let programs = target.join("release");
        let status = Command::new(programs.join("soak"))
            .arg(programs.join("bellwether"))
            .args([self.minutes.to_string(), seed.to_string()])
            .arg(target.join("soak").join(seed.to_string()))
            .status()
            .context("cannot run the soak")?;
        ensure!(status.success(), "the soak with seed {seed} failed");
        Ok(())
    }
}
