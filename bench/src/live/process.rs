//! The controller as a process: started, asked, weighed and stopped.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use bellwether_testkit::{Access, Program};
use tempfile::TempPath;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::sleep,
};

use super::work::{memory_of, work_of};

/// So long it may take until all objects are known.
const PATIENCE: Duration = Duration::from_mins(3);

/// A controller that runs.
pub struct Process {
    program: Program,
    begun: Instant,
    _kubeconfig: TempPath,
}

impl Process {
    /// Starts a controller, and does not wait for it.
    pub fn start(program: &Path, access: &Access) -> Result<Self> {
        let kubeconfig = access.kubeconfig_file()?;
        let program = Program::new(program)?
            .arguments(["controller", "--listen", "127.0.0.1:0", "--kubeconfig"])
            .arguments([kubeconfig.as_os_str()]);
        program.start()?;
        Ok(Self { program, begun: Instant::now(), _kubeconfig: kubeconfig })
    }

    /// When it was started.
    pub fn begun(&self) -> Instant {
        self.begun
    }

    /// Asks it to stop, and waits until it has.
    pub async fn stop(self) -> Result<()> {
        let status = self.program.stop().await?;
        ensure!(status.success(), "the controller ended badly:\n{}", self.program.log());
        Ok(())
    }

    /// How long it took from the start until it said that it is ready.
    pub async fn ready(&self) -> Result<Duration> {
        while self.begun.elapsed() < PATIENCE {
            if let Ok(answer) = self.get("/readyz").await
                && answer.starts_with("HTTP/1.1 200")
            {
                return Ok(self.begun.elapsed());
            }
            sleep(Duration::from_millis(10)).await;
        }
        bail!("the controller is not ready after {} s:\n{}", PATIENCE.as_secs(), self.program.log())
    }

    /// The sum of a metric over all its labels.
    pub async fn metric(&self, name: &str) -> Result<f64> {
        let text = self.get("/metrics").await?;
        let of_metric = text.lines().filter_map(|line| line.strip_prefix(name));
        let values = of_metric.filter(|rest| rest.starts_with(['{', ' ']));
        values.map(|rest| Ok(rest.rsplit(' ').next().unwrap_or_default().parse::<f64>()?)).sum()
    }

    /// How many bytes of memory it has.
    pub fn memory(&self) -> Result<f64> {
        memory_of(self.id()?)
    }

    /// How many seconds it has worked, on all cores together.
    pub fn work(&self) -> Result<f64> {
        work_of(self.id()?)
    }

    /// Its process id.
    fn id(&self) -> Result<u32> {
        self.program.id().with_context(|| format!("the controller ended:\n{}", self.program.log()))
    }

    /// One request, the way the simplest of clients makes it.
    async fn get(&self, path: &str) -> Result<String> {
        let log = self.program.log();
        let address = log.split_once("http://").and_then(|(_, rest)| rest.split_whitespace().next());
        let address = address.context("it has not said where it serves")?;
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok(answer)
    }
}
