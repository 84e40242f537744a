//! However the test process ends, no process, port or directory of its cluster remains.

use std::{
    env,
    io::{BufRead as _, BufReader},
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use anyhow::{Context, Result, bail};
use bellwether_testkit::{Cluster, TIMEOUT, eventually};
use rstest::rstest;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// How the victim ends. Without this variable the victim does nothing.
const ENDING: &str = "BELLWETHER_TESTKIT_ENDING";

/// The process that ends badly: this test binary, run again with only this test.
#[tokio::test]
#[ignore = "the tests below run it in a separate process"]
async fn victim() -> Result<()> {
    let Ok(ending) = env::var(ENDING) else {
        return Ok(());
    };
    let cluster = Cluster::builder().controllers().start().await?;
    let ids: Vec<_> = cluster.parts().filter_map(|part| cluster.process_id(part)).collect();
    println!("\n{}", serde_json::to_string(&(cluster.directory(), cluster.address(), ids))?);
    match ending.as_str() {
        "success" => Ok(()),
        "panic" => panic!("requested by the test"),
        // Destructors do not run, as for a shared cluster, which is never dropped.
        "exit" => std::process::exit(0),
        _ => std::future::pending().await,
    }
}

/// What the victim reported of its cluster.
struct Remains {
    directory: PathBuf,
    address: SocketAddr,
    processes: Vec<Pid>,
}

impl Remains {
    fn any(&self) -> bool {
        self.directory.exists()
            || self.directory.parent().is_some_and(std::path::Path::exists)
            || TcpStream::connect(self.address).is_ok()
            || self.processes.iter().any(|&process| test_kill_process(process).is_ok())
    }
}

/// Killed when dropped, also when the test fails.
struct Victim(Child);

impl Drop for Victim {
    fn drop(&mut self) {
        // Both fail only if the process has ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_victim(ending: &str) -> Result<(Victim, Remains)> {
    let victim = Command::new(env::current_exe()?)
        .args(["--exact", "leftovers::victim", "--include-ignored", "--nocapture"])
        .env(ENDING, ending)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut victim = Victim(victim);
    let output = BufReader::new(victim.0.stdout.take().context("no pipe")?);
    for line in output.lines() {
        let Ok((directory, address, ids)) = serde_json::from_str::<(PathBuf, SocketAddr, Vec<i32>)>(&line?)
        else {
            continue;
        };
        assert_eq!(ids.len(), 3, "etcd, API server and controller manager");
        let processes = ids.into_iter().filter_map(Pid::from_raw).collect();
        return Ok((victim, Remains { directory, address, processes }));
    }
    bail!("the victim did not report its cluster")
}

#[rstest]
#[case::success("success", None)]
#[case::panic("panic", None)]
#[case::exit_without_destructors("exit", None)]
#[case::ctrl_c("wait", Some(Signal::INT))]
#[case::terminated("wait", Some(Signal::TERM))]
#[case::killed("wait", Some(Signal::KILL))]
#[tokio::test]
async fn nothing_is_left_behind(#[case] ending: &str, #[case] signal: Option<Signal>) -> Result<()> {
    let (mut victim, remains) = start_victim(ending)?;
    if let Some(signal) = signal {
        assert!(remains.any(), "the cluster exists while its process runs");
        kill_process(Pid::from_child(&victim.0), signal)?;
    }
    victim.0.wait()?;
    eventually(TIMEOUT, "nothing is left", async || Ok(!remains.any())).await
}
