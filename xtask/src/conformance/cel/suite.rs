//! Reads the suite from its Go module. A small Go program prints it as lines of JSON.

use std::{
    io::ErrorKind,
    process::{Command, Output, Stdio},
};

use anyhow::{Context as _, Result, ensure};

use super::case::CelCase;
use crate::run::{log, root};

/// `None` if Go is not installed or the module cannot be downloaded. Prints the reason.
pub(super) fn read() -> Result<Option<Vec<CelCase>>> {
    let fetched = match go(&["mod", "download"]).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            log("CEL suite skipped: Go is not installed");
            return Ok(None);
        }
        fetched => fetched.context("cannot run go")?,
    };
    if !fetched.status.success() {
        let why = String::from_utf8_lossy(&fetched.stderr);
        let why = why.lines().last().unwrap_or("unknown error");
        log(&format!("CEL suite skipped: cannot download its module: {why}"));
        return Ok(None);
    }
    // Go caches the build outside this repository.
    let Output { status, stdout, .. } = go(&["run", "-trimpath", "-mod=readonly", "-buildvcs=false", "."])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run go")?;
    ensure!(status.success(), "bench/peers/cel-suite failed");
    String::from_utf8(stdout)?
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("invalid case {line}")))
        .collect::<Result<_>>()
        .map(Some)
}

fn go(arguments: &[&str]) -> Command {
    let mut command = Command::new("go");
    command
        .current_dir(root().join("bench").join("peers").join("cel-suite"))
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .args(arguments);
    command
}
