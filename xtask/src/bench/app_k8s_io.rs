//! `cargo xtask bench app-k8s-io`: beside the controller of app.k8s.io that its users have.

use std::{
    path::PathBuf,
    process::{Command as Process, Stdio},
};

use anyhow::{Context as _, Result, ensure};
use clap::Args;

use super::{build_ours, target};
use crate::run::{cargo, root, say, step};

/// The module of that controller.
const MODULE: &str = "sigs.k8s.io/application";

/// What is done.
#[derive(Debug, Args)]
pub(crate) struct AppK8sIo {
    /// Compare what both say of the same objects, and fail where they differ for no good reason
    #[arg(long)]
    compare: bool,
    /// Measure how soon both follow a change, which takes a quarter of an hour
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
                ensure!(ended.success(), "the two do not agree, or could not be asked");
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

/// Builds the controller as it was released.
fn build() -> Result<PathBuf> {
    say("building the controller of app.k8s.io, which takes some minutes the first time");
    let program = target()?.join("bench-peers").join("app-k8s-io");
    let arguments = ["build", "-trimpath", "-mod=readonly", "-buildvcs=false", "-o"];
    let built = go().args(arguments).arg(&program).arg(MODULE).status();
    ensure!(
        built.context("Go is not installed: there is nobody to compare with")?.success(),
        "go build failed"
    );
    Ok(program)
}

/// Where its module is, with its examples.
fn module() -> Result<PathBuf> {
    let listed = go().args(["list", "-m", "-f", "{{.Dir}}", MODULE]).stderr(Stdio::inherit()).output()?;
    ensure!(listed.status.success(), "go list failed");
    Ok(String::from_utf8(listed.stdout)?.trim().into())
}
