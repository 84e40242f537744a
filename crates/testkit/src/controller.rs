//! The controller as a process: started, asked and stopped, as often as a test wants.

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

/// The log line that names the address has this before it.
const SERVES: &str = "listen=http://";

/// How long one answer may take.
const ANSWER: Duration = Duration::from_secs(10);

/// How long to wait between two questions whether it is ready. Benchmarks measure with this precision.
const PAUSE: Duration = Duration::from_millis(10);

/// The controller, with a kubeconfig of its own and a port that it chooses itself.
pub struct Controller {
    /// The process. It is started with [`Controller::start`], so that an address of an earlier start is never asked.
    pub program: Program,
    /// The length of the log when the process was last started.
    log_before: AtomicUsize,
    _kubeconfig: TempPath,
}

impl Controller {
    /// A controller that does what this user may do, from the executable `file`. It is not running yet.
    pub fn new(file: impl Into<PathBuf>, access: &Access) -> Result<Self> {
        let kubeconfig = access.kubeconfig_file()?;
        let program = Program::new(file)?
            .arguments(["controller", "--listen", "127.0.0.1:0", "--kubeconfig"])
            .arguments([kubeconfig.as_os_str()]);
        Ok(Self { program, log_before: AtomicUsize::new(0), _kubeconfig: kubeconfig })
    }

    /// With further arguments.
    #[must_use]
    pub fn arguments<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.program = self.program.arguments(arguments);
        self
    }

    /// With a variable in its environment.
    #[must_use]
    pub fn environment(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.program = self.program.environment(name, value);
        self
    }

    /// Starts the process, for the first time or again, and does not wait until it is ready.
    pub fn start(&self) -> Result<()> {
        self.log_before.store(self.program.log().len(), Ordering::Relaxed);
        self.program.start()
    }

    /// Waits until `/readyz` answers 200: all objects are known.
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
            sleep(PAUSE).await;
        }
    }

    /// Whether the process has opened its port since it was last started.
    pub fn serves(&self) -> bool {
        self.log_since_start().contains(SERVES)
    }

    /// The log of the process since it was last started.
    pub fn log_since_start(&self) -> String {
        let log = self.program.log();
        log.get(self.log_before.load(Ordering::Relaxed)..).unwrap_or_default().to_owned()
    }

    /// The status code and the body of an answer.
    pub async fn get(&self, path: &str) -> Result<(u16, String)> {
        timeout(ANSWER, self.request(path)).await.context("no answer")?
    }

    /// The value of a metric, summed over its labels unless the name has them; none if nothing was counted yet.
    pub async fn metric<N>(&self, name: &str) -> Result<Option<N>>
    where
        N: FromStr<Err: std::error::Error + Send + Sync + 'static> + Sum,
    {
        let (code, text) = self.get("/metrics").await?;
        ensure!(code == 200, "/metrics answers {code}: {text}");
        let samples = text.lines().filter_map(|line| line.strip_prefix(name));
        let samples: Vec<_> = samples.filter(|rest| rest.starts_with(['{', ' '])).collect();
        if samples.is_empty() {
            return Ok(None);
        }
        let value = |sample: &str| Ok(sample.rsplit(' ').next().unwrap_or_default().parse::<N>()?);
        samples.into_iter().map(value).sum::<Result<N>>().map(Some)
    }

    async fn request(&self, path: &str) -> Result<(u16, String)> {
        let log = self.log_since_start();
        let address = log.rsplit_once(SERVES).and_then(|(_, rest)| rest.split_whitespace().next());
        let address = address.with_context(|| format!("the controller does not serve yet:\n{log}"))?;
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        let (head, body) = answer.split_once("\r\n\r\n").context("the answer has no head")?;
        let code = head.split(' ').nth(1).context("the answer has no status code")?.parse()?;
        Ok((code, body.to_owned()))
    }
}
