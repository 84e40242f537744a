//! A separate process that outlives this one and cleans up after it.
//!
//! Destructors do not run for statics, on Ctrl-C, or on `kill -9`. The guardian holds the reading end of a
//! pipe whose writing end only this process has. When the pipe closes, for whatever reason, it kills every
//! process that is still registered and removes the directory of this process.

use std::{
    ffi::OsStr,
    io::Write,
    os::{fd::AsFd as _, unix::process::CommandExt as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Mutex, OnceLock},
};

use anyhow::{Context, Result};

/// A shell script, because the tests of other crates could not find a second binary of this crate.
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

/// Registers its own process id with the guardian, whose pipe is its standard input, then executes the
/// program. It holds the pipe open until it is registered, so the guardian cannot miss it.
const REGISTER_AND_RUN: &str = r#"echo "add $$" >&0 && exec "$@" </dev/null"#;

pub(crate) struct Guardian {
    directory: PathBuf,
    pipe: Mutex<ChildStdin>,
    // Never waited for: it ends after this process.
    _process: Child,
}

static GUARDIAN: OnceLock<Guardian> = OnceLock::new();
static STARTING: Mutex<()> = Mutex::new(());

impl Guardian {
    /// The guardian of this process; the first call starts it.
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
            // Not in the terminal's foreground group: Ctrl-C must end this process, not its guardian.
            .process_group(0)
            .spawn()?;
        let pipe = process.stdin.take().context("the process has no standard input")?;
        Ok(Self { directory, pipe: Mutex::new(pipe), _process: process })
    }

    /// The directory for all files of this process. The guardian removes it.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A command for a program that the guardian kills when this process ends. It has no standard input and
    /// does not receive Ctrl-C: only the test process does.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Result<Command> {
        let pipe = crate::lock(&self.pipe).as_fd().try_clone_to_owned()?;
        let mut command = Command::new("sh");
        command.args(["-c", REGISTER_AND_RUN, "sh"]).arg(program).stdin(pipe).process_group(0);
        Ok(command)
    }

    /// Unregisters a process. Call it before the process is reaped: afterwards its id may belong to another
    /// process.
    pub(crate) fn forget(&self, pid: u32) {
        // Fails only if the guardian has died. The caller reaps the process anyway.
        let _ = writeln!(crate::lock(&self.pipe), "forget {pid}");
    }
}
