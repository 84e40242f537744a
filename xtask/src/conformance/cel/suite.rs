//! Where the suite comes from: a Go module, which a small Go program turns into lines of JSON.

use std::{
    io::ErrorKind,
    process::{Command, Output, Stdio},
};

use anyhow::{Context as _, Result, ensure};

use super::case::Case;
use crate::run::{root, say};

/// The cases, if Go and the module can be had; the developer is told if not.
pub(super) fn read() -> Result<Option<Vec<Case>>> {
    let fetched = match go(&["mod", "download"]).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            say("CEL's suite skipped: Go is not installed");
            return Ok(None);
        }
        fetched => fetched.context("cannot run go")?,
    };
    if !fetched.status.success() {
        let why = String::from_utf8_lossy(&fetched.stderr);
        let why = why.lines().last().unwrap_or("no reason given");
        say(&format!("CEL's suite skipped: its module cannot be had: {why}"));
        return Ok(None);
    }
    // Go keeps what it has built, outside this repository.
    let Output { status, stdout, .. } = go(&["run", "-trimpath", "-mod=readonly", "-buildvcs=false", "."])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run go")?;
    ensure!(status.success(), "the program that reads CEL's suite failed");
    String::from_utf8(stdout)?
        .lines()
        .map(|line| serde_json::from_str(line).with_context(|| format!("cannot read the case {line}")))
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
