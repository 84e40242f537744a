//! `cargo xtask bench app-k8s-io`: comparison with the controller of app.k8s.io.

use std::{
    path::PathBuf,
    process::{Command as Process, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use super::{build_ours, target};
use crate::run::{cargo, log, root, step};

const MODULE: &str = "sigs.k8s.io/application";

#[derive(Debug, Args)]
pub(crate) struct AppK8sIo {
    /// Compare the statuses of both controllers, and fail on unexpected differences
    #[arg(long)]
    compare: bool,
    /// Measure the latency of both controllers (15 minutes)
    #[arg(long)]
    race: bool,
}

impl AppK8sIo {
    pub(super) fn run(&self) -> Result<()> {
        let neither = !self.compare && !self.race;
        let own = build_ours()?;
        step(&mut cargo(&["build", "--release", "--package", "bellwether"]))?;
        let (old, module) = (build()?, module()?);
        for (wanted, what) in [(self.compare, "compare"), (self.race, "race")] {
            if wanted || neither {
                let mut program = Process::new(own.join("app-k8s-io"));
                let ended = program.arg(&old).arg(own.join("bellwether")).arg(&module).arg(what).status()?;
                ensure!(ended.success(), "app-k8s-io {what} failed");
            }
        }
        Ok(())
    }
}

fn go() -> Process {
    let mut go = Process::new("go");
    go.current_dir(root().join("bench").join("peers").join("app-k8s-io"));
    go.env("CGO_ENABLED", "0").env("GOWORK", "off");
    go
}

/// Builds the controller from its released module.
fn build() -> Result<PathBuf> {
    log("building the controller of app.k8s.io; the first time takes some minutes");
    let program = target()?.join("bench-peers").join("app-k8s-io");
    let arguments = ["build", "-trimpath", "-mod=readonly", "-buildvcs=false", "-o"];
    let built = go().args(arguments).arg(&program).arg(MODULE).status();
    ensure!(
        built.context("cannot run go. Install Go to build the controller of app.k8s.io.")?.success(),
        "go build failed"
    );
    Ok(program)
}

/// The directory of the module, with its examples.
fn module() -> Result<PathBuf> {
    let listed = go().args(["list", "-m", "-f", "{{.Dir}}", MODULE]).stderr(Stdio::inherit()).output()?;
    ensure!(listed.status.success(), "go list failed");
    Ok(String::from_utf8(listed.stdout)?.trim().into())
}
