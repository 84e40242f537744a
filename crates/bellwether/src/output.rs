//! The end of every command: data to standard output, notes and errors to standard error.

use std::{
    io::{ErrorKind, Write as _, stderr, stdout},
    process::ExitCode,
};

use anyhow::Result;
use bellwether_terminal::printable;
use serde::Serialize;

/// What a command prints, and its exit code.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// For standard output.
    pub(crate) text: String,
    pub(crate) errors: Vec<String>,
    pub(crate) notes: Vec<String>,
    pub(crate) code: u8,
}

impl Outcome {
    /// An error before the command has output.
    pub(crate) fn bad_input(error: String) -> Self {
        Self { errors: vec![error], code: BAD_INPUT, ..Self::default() }
    }
}

impl From<String> for Outcome {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// The exit code for invalid input, as clap has it for invalid arguments.
pub(crate) const BAD_INPUT: u8 = 2;

pub(crate) fn finish(outcome: Result<Outcome>) -> ExitCode {
    let printed = outcome.and_then(|outcome| {
        print(&outcome.text)?;
        Ok(outcome)
    });
    match printed {
        Ok(outcome) => {
            outcome.notes.iter().for_each(|note| print_to_stderr("note", note));
            outcome.errors.iter().for_each(|error| print_to_stderr("error", error));
            ExitCode::from(outcome.code)
        }
        Err(error) => {
            print_to_stderr("error", &format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// For commands that print before their end.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).or_else(|error| match error.kind() {
        // The reader, such as `head`, has closed the pipe. That is not a failure.
        ErrorKind::BrokenPipe => Ok(()),
        _ => Err(anyhow::Error::from(error).context("cannot write to standard output")),
    })
}

fn print_to_stderr(label: &str, sentence: &str) {
    // If standard error is closed as well, there is nowhere to report that.
    let _ = writeln!(stderr(), "{label}: {}", printable(sentence));
}

pub(crate) fn as_json(answer: &impl Serialize) -> Result<String> {
    Ok(format!("{}\n", serde_json::to_string_pretty(answer)?))
}

pub(crate) fn as_yaml(answer: &impl Serialize) -> Result<String> {
    Ok(serde_saphyr::to_string(answer)?)
}
