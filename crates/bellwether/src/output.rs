//! The end of every command: data to standard output, one sentence about each thing that went wrong to standard error.

use std::{
    io::{ErrorKind, Write as _, stderr, stdout},
    process::ExitCode,
};

use anyhow::Result;
use bellwether_terminal::printable;
use serde::Serialize;

/// What a command has to say, and how the process ends.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The data.
    pub(crate) text: String,
    /// What went wrong, a sentence each.
    pub(crate) errors: Vec<String>,
    /// What should be known besides, a sentence each.
    pub(crate) notes: Vec<String>,
    /// The exit code.
    pub(crate) code: u8,
}

impl Outcome {
    /// The command cannot begin with what it was given.
    pub(crate) fn bad_input(error: String) -> Self {
        Self { errors: vec![error], code: BAD_INPUT, ..Self::default() }
    }
}

impl From<String> for Outcome {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// The exit code for input that makes no sense; the parser of the command line has the same.
pub(crate) const BAD_INPUT: u8 = 2;

/// Prints what a command has to say, or why it has nothing to, and says how the process ends.
pub(crate) fn finish(outcome: Result<Outcome>) -> ExitCode {
    let printed = outcome.and_then(|outcome| {
        print(&outcome.text)?;
        Ok(outcome)
    });
    match printed {
        Ok(outcome) => {
            outcome.notes.iter().for_each(|note| say("note", note));
            outcome.errors.iter().for_each(|error| say("error", error));
            ExitCode::from(outcome.code)
        }
        Err(error) => {
            say("error", &format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Prints data. Only who has to be read before the end does so itself.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut stdout = stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).or_else(|error| match error.kind() {
        // Whoever read it, `head` for one, has had enough: that is no failure.
        ErrorKind::BrokenPipe => Ok(()),
        _ => Err(anyhow::Error::from(error).context("cannot write to standard output")),
    })
}

fn say(what: &str, sentence: &str) {
    // Nobody is left to tell when standard error is closed too.
    let _ = writeln!(stderr(), "{what}: {}", printable(sentence));
}

/// An answer for programs.
pub(crate) fn as_json(answer: &impl Serialize) -> Result<String> {
    Ok(format!("{}\n", serde_json::to_string_pretty(answer)?))
}

/// The same as YAML.
pub(crate) fn as_yaml(answer: &impl Serialize) -> Result<String> {
    Ok(serde_saphyr::to_string(answer)?)
}
