//! Runs cargo from the root of the repository, and prints.

use std::{
    env,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, bail};
use rustix::process::nice;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// A command of the same cargo that runs this program.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
}

/// Lowers the priority of this thread and of the processes that it starts: tests on control planes have
/// deadlines.
pub(crate) fn yield_cores() -> Result<()> {
    // On Linux, nice applies to the thread, and child processes inherit it.
    nice(10).map(drop).context("cannot lower the priority")
}

/// Runs a cargo command with its output visible. Fails if the command fails.
pub(crate) fn step(command: &mut Command) -> Result<()> {
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    let line = format!("cargo {}", words.join(" "));
    log(&format!("\n$ {line}"));
    let begin = Instant::now();
    let status = command.status().with_context(|| format!("cannot run {line}"))?;
    if !status.success() {
        bail!("{line} failed");
    }
    log(&format!("\n$ {line}: ok after {} s", begin.elapsed().as_secs()));
    Ok(())
}

/// Prints progress to standard error, in order with the output of the steps.
#[expect(clippy::print_stderr, reason = "the only place that prints to standard error")]
pub(crate) fn log(text: &str) {
    eprintln!("{text}");
}

/// Prints results to standard output. A closed pipe is not an error.
pub(crate) fn print(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}
