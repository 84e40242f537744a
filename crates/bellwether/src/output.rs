//! The end of every command: data to standard output, one sentence about what went wrong to standard error.

use std::{
    io::{ErrorKind, Write as _, stderr, stdout},
    process::ExitCode,
};

use anyhow::Result;

/// Prints the text, or why there is none, and says how the process ends.
pub(crate) fn finish(text: Result<String>) -> ExitCode {
    let printed = text.and_then(|text| {
        let mut stdout = stdout().lock();
        stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).or_else(|error| match error.kind() {
            // Whoever read it, `head` for one, has had enough: that is no failure.
            ErrorKind::BrokenPipe => Ok(()),
            _ => Err(anyhow::Error::from(error).context("cannot write to standard output")),
        })
    });
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is left to tell when standard error is closed too.
            let _ = writeln!(stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
