//! A program under watch: started, stopped, killed, paused and started again, and never left behind.

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

/// How long a program may take to end when asked politely.
const GRACE: Duration = Duration::from_secs(10);

/// A program that a test runs: a part of a control plane, or what is tested. It ends when this is dropped, and also when
/// the test's process ends in any other way.
pub struct Program {
    file: PathBuf,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    log: PathBuf,
    child: Mutex<Option<Child>>,
}

impl Program {
    /// A program that is not running yet. Both of its outputs go to one log.
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

    /// With further arguments.
    #[must_use]
    pub fn arguments<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// With a variable in its environment.
    #[must_use]
    pub fn environment(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Starts it, for the first time or again.
    pub fn start(&self) -> Result<()> {
        let mut slot = crate::lock(&self.child);
        if reap_if_ended(&mut slot) == Running::Yes {
            bail!("{} is running already", self.name());
        }
        // The guardian's shell would say so too, but only in the log.
        if self.file.is_absolute() && !self.file.is_file() {
            bail!("there is no program {}", self.file.display());
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

    /// Asks it to end, kills it if it does not, and says how it ended.
    pub async fn stop(&self) -> Result<ExitStatus> {
        self.signal(Signal::TERM)?;
        let deadline = Instant::now() + GRACE;
        while !crate::lock(&self.child).as_ref().is_none_or(has_ended) && Instant::now() < deadline {
            sleep(Duration::from_millis(20)).await;
        }
        end(&mut crate::lock(&self.child)).with_context(|| format!("{} is not running", self.name()))
    }

    /// `kill -9`: it ends at once and has no say in it. One that does not run is left as it is.
    pub fn kill(&self) {
        end(&mut crate::lock(&self.child));
    }

    /// Freezes it, and comes back when all of it stands still: its connections stay open, and nothing answers on them.
    pub fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)?;
        // One thread takes the signal and then stops the others, which under load work on for a while.
        if let Some(child) = crate::lock(&self.child).as_ref() {
            wait_until(child, WaitIdOptions::STOPPED | WaitIdOptions::EXITED);
        }
        Ok(())
    }

    /// Lets it go on after a pause.
    pub fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Whether it was started and has not ended since, in whatever way.
    pub fn is_running(&self) -> bool {
        reap_if_ended(&mut crate::lock(&self.child)) == Running::Yes
    }

    /// Its process id, while it runs.
    pub fn id(&self) -> Option<u32> {
        let mut slot = crate::lock(&self.child);
        reap_if_ended(&mut slot);
        slot.as_ref().map(Child::id)
    }

    /// The name of its file.
    pub fn name(&self) -> String {
        self.file.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Everything that it has written so far, in all of its lives.
    pub fn log(&self) -> String {
        fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// The end of the log: why it does not work.
    pub(crate) fn last_words(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        // Locked until the signal is sent, so that the process cannot be reaped, and its id mean another, meanwhile.
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

/// Looks without reaping: until it is reaped, its id means no other process.
fn has_ended(child: &Child) -> bool {
    wait_until(child, WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
}

/// Waits for a change without reaping, and says whether there was one.
fn wait_until(child: &Child, change: WaitIdOptions) -> bool {
    matches!(waitid(WaitId::Pid(Pid::from_child(child)), change | WaitIdOptions::NOWAIT), Ok(Some(_)))
}

/// Kills what may still run, waits until it is dead, has the guardian forget it, and reaps it, in this order: a dead
/// process registers itself no more, and one that is not reaped keeps its id.
fn end(slot: &mut Option<Child>) -> Option<ExitStatus> {
    let mut child = slot.take()?;
    // It fails only when the process has ended already.
    let _ = child.kill();
    wait_until(&child, WaitIdOptions::EXITED);
    if let Ok(guardian) = Guardian::get() {
        guardian.forget(child.id());
    }
    child.wait().ok()
}
