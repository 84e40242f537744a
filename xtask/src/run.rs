//! Running cargo from the top of the repository, and telling the developer what is going on.

use std::{
    env,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use anyhow::{Context, Result, bail};
use rustix::process::nice;

/// The top of the repository.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

/// A cargo command, with the cargo that runs this program.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
}

/// From now on, what this thread computes or starts leaves the cores to all others that want them. Tests have deadlines.
pub(crate) fn yield_cores() -> Result<()> {
    // On Linux this is about the thread, and what it starts inherits it.
    nice(10).map(drop).context("cannot lower the priority")
}

/// Runs a step whose output the developer sees; it fails the whole if it fails.
pub(crate) fn step(command: &mut Command) -> Result<()> {
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    let line = format!("cargo {}", words.join(" "));
    say(&format!("\n$ {line}"));
    let begin = Instant::now();
    let status = command.status().with_context(|| format!("cannot run {line}"))?;
    if !status.success() {
        bail!("{line} failed");
    }
    say(&format!("\n$ {line}: ok after {} s", begin.elapsed().as_secs()));
    Ok(())
}

/// What is going on: to standard error, in order with the output of the steps.
#[expect(clippy::print_stderr, reason = "the one place of this program that talks to the developer")]
pub(crate) fn say(text: &str) {
    eprintln!("{text}");
}

/// What was asked for: to standard output. Whoever reads it may stop reading at any time.
pub(crate) fn print(text: &str) {
    let _ = writeln!(io::stdout(), "{text}");
}
