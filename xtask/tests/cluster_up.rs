//! `cargo xtask cluster up`, from the first line to its end.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result};
use bellwether_testkit::{Binary, PATIENCE, Program, eventually};

#[tokio::test]
async fn clusters_come_up_and_leave_no_trace() -> Result<()> {
    let up = Program::new(env!("CARGO_BIN_EXE_xtask"))?.arguments([
        "cluster",
        "up",
        "--clusters",
        "2",
        "--nodes",
        "1",
    ]);
    up.start()?;
    let mut kubeconfigs = String::new();
    eventually(PATIENCE, "it says how to reach the clusters", async || {
        anyhow::ensure!(up.is_running(), "it ended: {}", up.log());
        let log = up.log();
        let said = log.lines().find_map(|line| line.trim().strip_prefix("export KUBECONFIG="));
        kubeconfigs = said.unwrap_or_default().to_owned();
        Ok(said.is_some())
    })
    .await?;
    let kubectl = |arguments: &[&str]| -> Result<String> {
        let output =
            Command::new(Binary::Kubectl.find()?).env("KUBECONFIG", &kubeconfigs).args(arguments).output()?;
        anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(String::from_utf8(output.stdout)?)
    };
    assert_eq!(kubectl(&["config", "get-contexts", "-o", "name"])?, "cluster-1\nhub\n");
    assert_eq!(kubectl(&["--context=hub", "get", "nodes", "-o", "name"])?, "node/node-0\n");
    assert_eq!(kubectl(&["--context=cluster-1", "get", "nodes", "-o", "name"])?, "node/node-0\n");
    assert_eq!(kubectl(&["--context=hub", "get", "bwapp", "-o", "name"])?, "", "the hub has the kinds");

    let first = kubeconfigs.split(':').next().context("no kubeconfig")?;
    let directory = Path::new(first).ancestors().nth(2).context("a file in no directory")?;
    assert!(directory.exists(), "{} holds the clusters", directory.display());
    assert!(up.stop().await?.success(), "being asked is how it is meant to end");
    assert!(up.log().ends_with("The clusters and their files are gone.\n"), "{}", up.log());
    eventually(PATIENCE, "its directory is gone", async || Ok(!directory.exists())).await
}
