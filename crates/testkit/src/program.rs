//! A child process that a test starts, stops, kills and pauses, and that never outlives the test process.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    path::PathBuf,
    process::{Child, ExitStatus},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::time::{Instant, sleep};

use crate::guardian::Guardian;

/// How long a program may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(10);

/// A part of a control plane, or the program under test. It is killed when this value is dropped or when the
/// test process ends.
pub struct Program {
    file: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    log: PathBuf,
    child: Mutex<Option<Child>>,
}

impl Program {
    /// Does not start the program. Standard output and standard error go to the same log.
    pub fn new(program: impl Into<PathBuf>) -> Result<Self> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let log = format!("{}.log", COUNT.fetch_add(1, Ordering::Relaxed));
        Ok(Self {
            file: program.into(),
            arguments: Vec::new(),
            environment: Vec::new(),
            log: Guardian::get()?.directory().join(log),
            child: Mutex::new(None),
        })
    }

    #[must_use]
    pub fn arguments<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    #[must_use]
    pub fn environment(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Starts the program. It may be started again after it has ended.
    pub fn start(&self) -> Result<()> {
        let mut slot = crate::lock(&self.child);
        if reap_if_ended(&mut slot) == Running::Yes {
            bail!("{} is running already", self.name());
        }
        // Without this check, the error of the guardian's shell appears only in the log.
        if self.file.is_absolute() && !self.file.is_file() {
            bail!("cannot run {}: file not found", self.file.display());
        }
        let log = File::options().create(true).append(true).open(&self.log)?;
        let child = Guardian::get()?
            .command(&self.file)?
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot run {}", self.file.display()))?;
        *slot = Some(child);
        Ok(())
    }

    /// Sends SIGTERM, and SIGKILL if the program does not end within 10 seconds.
    pub async fn stop(&self) -> Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        let deadline = Instant::now() + GRACE;
        while !crate::lock(&self.child).as_ref().is_none_or(has_ended) && Instant::now() < deadline {
            sleep(Duration::from_millis(20)).await;
        }
        end(&mut crate::lock(&self.child)).with_context(|| format!("{} is not running", self.name()))
    }

    /// Sends SIGKILL. Does nothing if the program is not running.
    pub fn kill(&self) {
        end(&mut crate::lock(&self.child));
    }

    /// Sends SIGSTOP and returns when all threads have stopped. Connections stay open, but the program does
    /// not answer on them.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)?;
        // One thread takes the signal and then stops the others. Under load, those run on for a while.
        if let Some(child) = crate::lock(&self.child).as_ref() {
            wait_until(child, WaitIdOptions::STOPPED | WaitIdOptions::EXITED);
        }
        Ok(())
    }

    /// Sends SIGCONT.
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    pub fn is_running(&self) -> bool {
        reap_if_ended(&mut crate::lock(&self.child)) == Running::Yes
    }

    /// The process id; `None` if the program is not running.
    pub fn id(&self) -> Option<u32> {
        let mut slot = crate::lock(&self.child);
        reap_if_ended(&mut slot);
        slot.as_ref().map(Child::id)
    }

    pub fn name(&self) -> String {
        self.file.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The output of all runs so far.
    pub fn log(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    pub(crate) fn log_tail(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        // Holds the lock until the signal is sent: a process that is reaped meanwhile could lose its id to
        // another.
        let mut slot = crate::lock(&self.child);
        reap_if_ended(&mut slot);
        let child = slot.as_ref().with_context(|| format!("{} is not running", self.name()))?;
        kill_process(Pid::from_child(child), signal).with_context(|| format!("cannot signal {}", self.name()))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

#[derive(PartialEq, Eq)]
enum Running {
    Yes,
    No,
}

fn reap_if_ended(slot: &mut Option<Child>) -> Running {
    match slot {
        Some(child) if !has_ended(child) => Running::Yes,
        Some(_) => {
            end(slot);
            Running::No
        }
        None => Running::No,
    }
}

/// Does not reap the process: until it is reaped, its id cannot belong to another process.
fn has_ended(child: &Child) -> bool {
    wait_until(child, WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
}

/// Waits for a change of state without reaping the process. Returns whether there was one.
fn wait_until(child: &Child, change: WaitIdOptions) -> bool {
    matches!(waitid(WaitId::Pid(Pid::from_child(child)), change | WaitIdOptions::NOWAIT), Ok(Some(_)))
}

/// Kills the process, waits until it is dead, unregisters it and reaps it. The order matters: a dead process
/// cannot register itself any more, and a process that is not reaped keeps its id.
fn end(slot: &mut Option<Child>) -> Option<ExitStatus> {
    let mut child = slot.take()?;
    // Fails only if the process has ended already.
    let _ = child.kill();
    wait_until(&child, WaitIdOptions::EXITED);
    if let Ok(guardian) = Guardian::get() {
        guardian.forget(child.id());
    }
    child.wait().ok()
}
