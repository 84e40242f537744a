//! The binary as its users meet it.

mod adopt;
mod assess;
mod completions;
mod controller;
mod crds;
mod demo;
mod docs;
mod explain;
mod groups;
mod help;
mod lint;
mod living;
mod plugin;
mod rules;
mod terminal;

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

/// What the binary printed, and how it ended.
struct Run {
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code(),
        }
    }
}

impl std::fmt::Display for Run {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let code = self.code.map_or_else(|| "none".to_owned(), |code| code.to_string());
        write!(formatter, "exit code: {code}\n--- stdout\n{}--- stderr\n{}", self.stdout, self.stderr)
    }
}

/// The command, away from the person's own settings and terminal.
fn bellwether(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellwether"));
    command.args(arguments).env_clear().stdin(Stdio::null());
    command
}

#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn run(arguments: &[&str]) -> Run {
    bellwether(arguments).output().expect("the binary runs").into()
}

/// The time of these tests.
const NOW: &str = "2026-11-14T12:00:00Z";

/// The command among the objects of these tests, and at their time.
fn judge(arguments: &[&str]) -> Command {
    let mut command = bellwether(arguments);
    command.args(["--now", NOW]).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/objects"));
    command
}

#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn judged(arguments: &[&str]) -> Run {
    judge(arguments).output().expect("the binary runs").into()
}

/// The same with objects on standard input.
#[expect(clippy::expect_used, reason = "the binary reads all of its input")]
fn judged_from(arguments: &[&str], input: &str) -> Run {
    let mut child = judge(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends").into()
}
