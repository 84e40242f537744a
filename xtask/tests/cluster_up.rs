//! `cargo xtask cluster up` from start to end.

use std::{path::Path, process::Command};

use anyhow::{Context as _, Result};
use bellwether_testkit::{Binary, Program, TIMEOUT, eventually};

#[tokio::test]
async fn clusters_start_and_are_removed() -> Result<()> {
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
    eventually(TIMEOUT, "the kubeconfigs are printed", async || {
        anyhow::ensure!(up.is_running(), "the command ended: {}", up.log());
        let log = up.log();
        let printed = log.lines().find_map(|line| line.trim().strip_prefix("export KUBECONFIG="));
        kubeconfigs = printed.unwrap_or_default().to_owned();
        Ok(printed.is_some())
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
    assert_eq!(kubectl(&["--context=hub", "get", "bwapp", "-o", "name"])?, "", "the hub has the CRDs");
    let explained = kubectl(&["--context=hub", "explain", "bwapp.spec"])?;
    assert!(explained.contains("componentKinds"), "{explained}");

    let first = kubeconfigs.split(':').next().context("no kubeconfig")?;
    let directory = Path::new(first).ancestors().nth(2).context("the kubeconfig has no parent directory")?;
    assert!(directory.exists(), "{} contains the clusters", directory.display());
    assert!(up.stop().await?.success(), "SIGTERM is a regular end");
    assert!(up.log().ends_with("clusters and their files removed\n"), "{}", up.log());
    eventually(TIMEOUT, "the directory is removed", async || Ok(!directory.exists())).await
}
