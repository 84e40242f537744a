//! `kubectl bellwether`: the same binary, called by another name.

use std::{os::unix::fs::symlink, process::Command};

use anyhow::{Result, ensure};
use bellwether_testkit::Binary;

use crate::{NOW, Run, bellwether};

#[test]
fn kubectl_finds_it_on_the_path() -> Result<()> {
    let directory = tempfile::tempdir()?;
    symlink(env!("CARGO_BIN_EXE_bellwether"), directory.path().join("kubectl-bellwether"))?;
    let kubectl = |arguments: &[&str]| -> Result<Run> {
        let mut command = Command::new(Binary::Kubectl.find()?);
        command.args(arguments).env_clear().env("PATH", directory.path());
        Ok(command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it")).output()?.into())
    };
    let listed = kubectl(&["plugin", "list"])?;
    ensure!(listed.stdout.contains("kubectl-bellwether"), "{listed}");

    let arguments = ["status", "--from", "fleet", "--now", NOW];
    let plugged = kubectl(&[&["bellwether"][..], &arguments].concat())?;
    let mut direct = bellwether(&arguments);
    let direct = Run::from(direct.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it")).output()?);
    ensure!(plugged.to_string() == direct.to_string(), "{plugged}");

    let help = kubectl(&["bellwether", "status", "--help"])?;
    ensure!(help.stdout.contains("Usage: kubectl bellwether status"), "{help}");
    Ok(())
}
