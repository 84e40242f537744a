//! The command line of Bellwether, and what its commands do.
//!
//! It is a library only so that the tools beside the product can use the same definitions: the generated manifests come
//! from the code that `bellwether crds` runs.

mod assess;
pub mod cli;
mod completions;
mod controller;
pub mod crds;
mod evidence;
mod explain;
mod input;
mod output;
mod rules;
mod said;
mod schema;
mod table;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

use crate::{
    cli::{Cli, Command},
    output::Outcome,
    terminal::Screen,
};

/// Runs the command that the process's arguments ask for.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let outcome = match &cli.command {
        Command::Assess(command) => assess::run(command, Screen::of_stdout()),
        Command::Explain(command) => explain::run(command, Screen::of_stdout()),
        Command::Rules(command) => rules::run(command, Screen::of_stdout()),
        Command::Controller(command) => controller::run(command),
        Command::Crds { output } => crds::print(*output).map(Outcome::from),
        Command::Completions { shell } => completions::print(*shell).map(Outcome::from),
    };
    output::finish(outcome)
}
