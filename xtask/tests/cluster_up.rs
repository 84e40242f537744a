//! `cargo xtask cluster up`, from the first line to Ctrl-C.

use std::{
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result};
use bellwether_testkit::{Binary, eventually};
use rustix::process::{Pid, Signal, kill_process};

#[tokio::test]
async fn clusters_come_up_and_leave_no_trace() -> Result<()> {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"))
        .args(["cluster", "up", "--clusters", "2", "--nodes", "1"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut lines = BufReader::new(xtask.stderr.take().context("no pipe")?).lines();
    let kubeconfigs = loop {
        let line = lines.next().context("it ended without saying how to reach the clusters")??;
        if let Some((_, kubeconfigs)) = line.split_once("export KUBECONFIG=") {
            break kubeconfigs.to_owned();
        }
    };
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
    kill_process(Pid::from_child(&xtask), Signal::INT)?;
    assert!(lines.any(|line| line.is_ok_and(|line| line == "The clusters and their files are gone.")));
    assert!(xtask.wait()?.success(), "Ctrl-C is how it is meant to end");
    eventually(Duration::from_secs(10), "its directory is gone", async || Ok(!directory.exists())).await
}
