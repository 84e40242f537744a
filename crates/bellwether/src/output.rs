//! The end of every command: data to stdout, notes and errors to stderr.

use std::{
    io::{self, ErrorKind, Write as _, stderr, stdout},
    path::Path,
    process::ExitCode,
};

use anyhow::Result;
use bellwether_terminal::printable;
use serde::Serialize;

/// What a command prints, and its exit code.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// For stdout.
    pub(crate) text: String,
    pub(crate) errors: Vec<String>,
    pub(crate) notes: Vec<String>,
    /// Commands for the user to run, printed after the errors.
    pub(crate) next: Vec<String>,
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
            outcome.notes.iter().for_each(|sentence| note(sentence));
            outcome.errors.iter().for_each(|error| print_to_stderr("error", error));
            print_next(&outcome.next);
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
        _ => Err(anyhow::Error::from(error).context("cannot write to stdout")),
    })
}

/// The same, for notes.
pub(crate) fn note(sentence: &str) {
    print_to_stderr("note", sentence);
}

fn print_to_stderr(label: &str, sentence: &str) {
    // If stderr is closed as well, there is nowhere to report that.
    let _ = writeln!(stderr(), "{label}: {}", printable(sentence));
}

/// A line for each command, so that it can be copied.
fn print_next(commands: &[String]) {
    if !commands.is_empty() {
        let _ = writeln!(stderr(), "Next:");
    }
    for command in commands {
        let _ = writeln!(stderr(), "  {}", printable(command));
    }
}

pub(crate) fn cannot_read(path: &Path, error: &io::Error) -> String {
    format!("cannot read {}: {}", path.display(), cause(error))
}

/// The cause of an error without its number: `permission denied`.
pub(crate) fn cause(error: &io::Error) -> String {
    if error.kind() == ErrorKind::NotFound {
        return "no such file".to_owned();
    }
    let text = error.to_string();
    let text = text.split_once(" (os error ").map_or(text.as_str(), |(text, _)| text);
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

pub(crate) fn as_json(answer: &impl Serialize) -> Result<String> {
    Ok(format!("{}\n", serde_json::to_string_pretty(answer)?))
}

pub(crate) fn as_yaml(answer: &impl Serialize) -> Result<String> {
    Ok(serde_saphyr::to_string(answer)?)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::not_found(2, "no such file")]
    #[case::permission_denied(13, "permission denied")]
    #[case::address_in_use(98, "address already in use")]
    fn causes_have_no_numbers(#[case] code: i32, #[case] expected: &str) {
        assert_eq!(cause(&io::Error::from_raw_os_error(code)), expected);
    }
}
