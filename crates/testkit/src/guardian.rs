//! Leaves nothing behind: a process of its own that outlives this one, and then cleans up after it.
//!
//! Destructors do not run for statics, on Ctrl-C, or on `kill -9`. The guardian holds the reading end of a pipe whose
//! writing end only this process has. When the pipe closes, for whatever reason, it kills every process that is still
//! registered and removes this process's directory.

use std::{
    ffi::OsStr,
    io::Write,
    os::{fd::AsFd as _, unix::process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Mutex, OnceLock},
};

use anyhow::{Context, Result};

/// A few lines of shell, because a second program of ours could not be found from every crate's tests.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
pids=
while read -r verb pid; do
  case $verb in
    add) pids="$pids $pid" ;;
    forget)
      rest=
      for other in $pids; do [ "$other" = "$pid" ] || rest="$rest $other"; done
      pids=$rest ;;
  esac
done
[ -z "$pids" ] || kill -KILL $pids 2>/dev/null
for try in 1 2 3 4 5 6 7 8 9 10; do
  rm -rf "$1" 2>/dev/null && break
  sleep 0.1
done
"#;

/// Registers itself with the guardian, whose pipe is its standard input, and becomes the program. The pipe stays open
/// until the registration is in it, so there is no moment at which the program could be left behind.
const REGISTER_AND_RUN: &str = r#"echo "add $$" >&0 && exec "$@" </dev/null"#;

pub(crate) struct Guardian {
    directory: PathBuf,
    orders: Mutex<ChildStdin>,
    // Held so that the process is not forgotten; it ends after this one.
    _process: Child,
}

static GUARDIAN: OnceLock<Guardian> = OnceLock::new();
static STARTING: Mutex<()> = Mutex::new(());

impl Guardian {
    /// The guardian of this process.
    pub(crate) fn get() -> Result<&'static Self> {
        let _one_at_a_time = crate::lock(&STARTING);
        if let Some(guardian) = GUARDIAN.get() {
            return Ok(guardian);
        }
        let guardian = Self::start().context("cannot start the process that cleans up after this one")?;
        Ok(GUARDIAN.get_or_init(|| guardian))
    }

    fn start() -> Result<Self> {
        let directory = tempfile::Builder::new().prefix("bellwether-testkit-").tempdir()?.keep();
        let mut process = Command::new("sh")
            .args(["-c", SCRIPT, "bellwether-testkit-guardian"])
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Out of the terminal's foreground group: Ctrl-C must end this process, not its guardian.
            .process_group(0)
            .spawn()?;
        let orders = process.stdin.take().context("no pipe to it")?;
        Ok(Self { directory, orders: Mutex::new(orders), _process: process })
    }

    /// The directory for everything that this process writes; it goes when the process goes.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A command for a program that is killed when this process ends. It has no standard input, and Ctrl-C does not
    /// reach it: that is for the tests, and what they started ends with them, in order.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        let pipe = crate::lock(&self.orders).as_fd().try_clone_to_owned()?;
        let mut command = Command::new("sh");
        command.args(["-c", REGISTER_AND_RUN, "sh"]).arg(program).stdin(pipe).process_group(0);
        Ok(command)
    }

    /// Forgets a process. Call it before the process is reaped, while its id cannot yet mean another.
    pub(crate) fn forget(&self, pid: u32) {
        // Without a guardian there is nobody to tell, and the process is about to be reaped anyway.
        let _ = writeln!(crate::lock(&self.orders), "forget {pid}");
    }
}
