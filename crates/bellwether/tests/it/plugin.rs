//! `kubectl bellwether`: the binary as a kubectl plugin, by its name `kubectl-bellwether`.

use std::{os::unix::fs::symlink, process::Command};

use anyhow::{Result, ensure};
use bellwether_testkit::Binary;

use crate::{NOW, Run, bellwether};

#[test]
fn a_kubectl_plugin() -> Result<()> {
    let directory = tempfile::tempdir()?;
    symlink(env!("CARGO_BIN_EXE_bellwether"), directory.path().join("kubectl-bellwether"))?;
    let kubectl = |arguments: &[&str]| -> Result<Run> {
        let mut command = Command::new(Binary::Kubectl.find()?);
        command.args(arguments).env_clear().env("PATH", directory.path());
        Ok(command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it")).output()?.into())
    };
    let listed = kubectl(&["plugin", "list"])?;
    ensure!(listed.stdout.contains("kubectl-bellwether"), "{listed}");

    let arguments = ["status", "checkout", "--from", "applications", "--now", NOW];
    let plugin = kubectl(&[&["bellwether"][..], &arguments].concat())?;
    let mut direct = bellwether(&arguments);
    let direct = Run::from(direct.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it")).output()?);
    let (hint, of_plugin) = ("\n    bellwether tree ", "\n    kubectl bellwether tree ");
    ensure!(direct.stdout.contains(hint), "{direct}");
    ensure!(plugin.to_string() == direct.to_string().replace(hint, of_plugin), "{plugin}");

    let help = kubectl(&["bellwether", "status", "--help"])?;
    ensure!(help.stdout.contains("Usage: kubectl bellwether status"), "{help}");
    ensure!(help.stdout.contains("\n  kubectl bellwether status -A -w\n"), "{help}");
    Ok(())
}
