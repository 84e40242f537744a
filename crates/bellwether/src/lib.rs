//! The command line of Bellwether, and what its commands do.
//!
//! It is a library only so that the tools beside the product can use the same definitions: the generated manifests come
//! from the code that `bellwether crds` runs.

pub mod cli;
mod completions;
pub mod crds;
mod output;

use std::process::ExitCode;

use clap::Parser as _;

use crate::cli::{Cli, Command};

/// Runs the command that the process's arguments ask for.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let text = match cli.command {
        Command::Crds { output } => crds::print(output),
        Command::Completions { shell } => completions::print(shell),
    };
    output::finish(text)
}
