//! The controller as a process that a test starts, queries and stops.

use std::{
    ffi::OsStr,
    iter::Sum,
    path::PathBuf,
    str::FromStr,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use tempfile::TempPath;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::{Instant, sleep, timeout},
};

use crate::{access::Access, program::Program};

/// Precedes the address in the controller's log.
const ADDRESS_MARKER: &str = "listen=http://";

const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval between two readiness probes. It limits the precision of benchmarks.
const PROBE_INTERVAL: Duration = Duration::from_millis(10);

/// The controller with its own kubeconfig, on a free port.
pub struct Controller {
    /// Start it with [`Controller::start`], not directly: otherwise requests go to the port of the previous
    /// run.
    pub program: Program,
    /// The length of the log, in bytes, when the process was last started.
    log_before: AtomicUsize,
    _kubeconfig: TempPath,
}

impl Controller {
    /// Prepares a controller from the executable `file` that acts as this user. Does not start it.
    pub fn new(file: impl Into<PathBuf>, access: &Access) -> Result<Self> {
        let kubeconfig = access.kubeconfig_file()?;
        let program = Program::new(file)?
            .arguments(["controller", "--listen", "127.0.0.1:0", "--kubeconfig"])
            .arguments([kubeconfig.as_os_str()]);
        Ok(Self { program, log_before: AtomicUsize::new(0), _kubeconfig: kubeconfig })
    }

    #[must_use]
    pub fn arguments<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.program = self.program.arguments(arguments);
        self
    }

    #[must_use]
    pub fn environment(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.program = self.program.environment(name, value);
        self
    }

    /// Starts the process without waiting for readiness. See [`Controller::ready`].
    pub fn start(&self) -> Result<()> {
        self.log_before.store(self.program.log().len(), Ordering::Relaxed);
        self.program.start()
    }

    /// Waits until `/readyz` returns 200: all watched kinds are listed.
    pub async fn ready(&self, within: Duration) -> Result<()> {
        let deadline = Instant::now() + within;
        loop {
            let answer = self.get("/readyz").await;
            if matches!(answer, Ok((200, _))) {
                return Ok(());
            }
            if Instant::now() >= deadline {
                let log = self.program.log();
                bail!("the controller is not ready after {} s: {answer:?}\n{log}", within.as_secs());
            }
            sleep(PROBE_INTERVAL).await;
        }
    }

    /// Whether the process has logged its address since it was last started.
    pub fn serves(&self) -> bool {
        self.log_since_start().contains(ADDRESS_MARKER)
    }

    pub fn log_since_start(&self) -> String {
        let log = self.program.log();
        log.get(self.log_before.load(Ordering::Relaxed)..).unwrap_or_default().to_owned()
    }

    /// The status code and the body of the response.
    pub async fn get(&self, path: &str) -> Result<(u16, String)> {
        timeout(RESPONSE_TIMEOUT, self.request(path, "")).await.context("timed out")?
    }

    /// The same, with a bearer token.
    pub async fn get_as(&self, token: &str, path: &str) -> Result<(u16, String)> {
        let header = format!("authorization: Bearer {token}\r\n");
        timeout(RESPONSE_TIMEOUT, self.request(path, &header)).await.context("timed out")?
    }

    /// As `127.0.0.1:8080`.
    pub fn address(&self) -> Result<String> {
        let log = self.log_since_start();
        let address = log.rsplit_once(ADDRESS_MARKER).and_then(|(_, rest)| rest.split_whitespace().next());
        let address = address.map(str::to_owned);
        address.with_context(|| format!("the controller has not logged its address yet:\n{log}"))
    }

    /// The sum of all series of a metric, or the one series if `name` includes labels. `None` if it has no
    /// samples.
    pub async fn metric<N>(&self, name: &str) -> Result<Option<N>>
    where
        N: FromStr<Err: std::error::Error + Send + Sync + 'static> + Sum,
    {
        let (code, text) = self.get("/metrics").await?;
        ensure!(code == 200, "/metrics returns {code}: {text}");
        let samples = text.lines().filter_map(|line| line.strip_prefix(name));
        let samples: Vec<_> = samples.filter(|rest| rest.starts_with(['{', ' '])).collect();
        if samples.is_empty() {
            return Ok(None);
        }
        let value = |sample: &str| Ok(sample.rsplit(' ').next().unwrap_or_default().parse::<N>()?);
        samples.into_iter().map(value).sum::<Result<N>>().map(Some)
    }

    async fn request(&self, path: &str, headers: &str) -> Result<(u16, String)> {
        let address = self.address()?;
        let mut stream = TcpStream::connect(&address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, body) = answer.split_once("\r\n\r\n").context("the response has no headers")?;
        let code = head.split(' ').nth(1).context("the response has no status code")?.parse()?;
        Ok((code, body.to_owned()))
    }
}
