//! `bellwether completions`: completion scripts for shells.

use anyhow::Result;
use clap::CommandFactory as _;
use clap_complete::{Shell, generate};

use crate::cli::Cli;

pub(crate) fn print(shell: Shell) -> Result<String> {
    let mut script = Vec::new();
    generate(shell, &mut Cli::command(), "bellwether", &mut script);
    Ok(String::from_utf8(script)?)
}
