//! Tests of the `bellwether` binary: its output and exit codes.

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
mod lifecycle;
mod lint;
mod plugin;
mod query;
mod rules;
mod terminal;

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

/// The output and exit code of the binary.
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

/// The command, without the environment and terminal of the person who runs the tests.
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

/// The command in the directory `objects`, at [`NOW`].
fn objects_command(arguments: &[&str]) -> Command {
    let mut command = bellwether(arguments);
    command.args(["--now", NOW]).current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/objects"));
    command
}

#[expect(clippy::expect_used, reason = "cargo builds the binary before it runs these tests")]
fn run_on_objects(arguments: &[&str]) -> Run {
    objects_command(arguments).output().expect("the binary runs").into()
}

/// The same with standard input.
#[expect(clippy::expect_used, reason = "the binary reads all of its input")]
fn run_with_input(arguments: &[&str], input: &str) -> Run {
    let mut child = objects_command(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends").into()
}
