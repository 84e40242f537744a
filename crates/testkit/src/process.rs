//! One process of a control plane: started, stopped, killed, paused and started again.

use std::{
    fs::{self, File},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::Mutex,
    time::Duration,
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use crate::guardian::Guardian;

/// How long a process may take to end when asked politely.
const GRACE: Duration = Duration::from_secs(10);

pub(crate) struct Process {
    program: PathBuf,
    arguments: Vec<String>,
    log: PathBuf,
    child: Mutex<Option<Child>>,
}

impl Process {
    /// A process that is not running yet. Its output goes to a file in `directory`.
    pub(crate) fn new(program: PathBuf, arguments: Vec<String>, directory: &Path) -> Self {
        let log = directory.join(program.file_name().unwrap_or_default()).with_extension("log");
        Self { program, arguments, log, child: Mutex::new(None) }
    }

    /// Starts it, for the first time or again.
    pub(crate) fn start(&self) -> Result<()> {
        if self.is_running() {
            bail!("{} is running already", self.name());
        }
        let guardian = Guardian::get()?;
        let log = File::options().create(true).append(true).open(&self.log)?;
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            // Ctrl-C is for the tests; what they started ends with them, in order.
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot run {}", self.program.display()))?;
        let id = child.id();
        *crate::lock(&self.child) = Some(child);
        guardian.add(id)
    }

    /// Asks it to end, and kills it when it does not.
    pub(crate) async fn stop(&self) -> Result<()> {
        self.signal(Signal::TERM)?;
        let deadline = Instant::now() + GRACE;
        while self.is_running() && Instant::now() < deadline {
            sleep(Duration::from_millis(20)).await;
        }
        self.kill();
        Ok(())
    }

    /// `kill -9`. A process that does not run is left as it is.
    pub(crate) fn kill(&self) {
        if let Some(mut child) = crate::lock(&self.child).take() {
            if let Ok(guardian) = Guardian::get() {
                guardian.drop(child.id());
            }
            // Both fail only when it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Sends a signal to the running process.
    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let id = self.id().with_context(|| format!("{} is not running", self.name()))?;
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw).context("no such process id")?;
        kill_process(pid, signal).with_context(|| format!("cannot signal {}", self.name()))
    }

    /// Whether it was started and has not ended since, in whatever way.
    pub(crate) fn is_running(&self) -> bool {
        let mut slot = crate::lock(&self.child);
        let Some(child) = slot.as_mut() else {
            return false;
        };
        if matches!(child.try_wait(), Ok(None)) {
            return true;
        }
        // It ended by itself and is reaped now: its id may soon mean another process.
        if let Ok(guardian) = Guardian::get() {
            guardian.drop(child.id());
        }
        *slot = None;
        false
    }

    /// The process id while it is known.
    pub(crate) fn id(&self) -> Option<u32> {
        crate::lock(&self.child).as_ref().map(Child::id)
    }

    pub(crate) fn name(&self) -> String {
        self.program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The end of what it wrote: why it does not work.
    pub(crate) fn last_words(&self) -> String {
        let text =
            fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
