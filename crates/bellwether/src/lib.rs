//! The command line of Bellwether, and what its commands do.
//!
//! It is a library only so that the tools beside the product can use the same definitions: the generated manifests come
//! from the code that `bellwether crds` runs, and a picture from what `bellwether demo` shows.

mod adopt;
mod assess;
mod assessment;
pub mod cli;
mod completions;
mod controller;
pub mod crds;
pub mod demo;
mod evidence;
mod explain;
mod lint;
mod output;
mod rules;
mod schema;
mod signals;
mod status;
mod tree;
mod wait;
mod whose;

use std::{env, path::Path, process::ExitCode};

use bellwether_terminal::Screen;
use clap::{CommandFactory as _, FromArgMatches as _};

use crate::{
    cli::{Cli, Command},
    output::Outcome,
};

/// What the arguments ask for. Whoever calls it as a plugin of kubectl reads so in the help.
fn parse() -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    let called = env::args_os().next().unwrap_or_default();
    if Path::new(&called).file_name().is_some_and(|name| name == "kubectl-bellwether") {
        command = command.bin_name("kubectl bellwether");
    }
    Cli::from_arg_matches_mut(&mut command.try_get_matches()?)
}

/// Runs the command that the process's arguments ask for.
pub fn run() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(wrong) => wrong.exit(),
    };
    let outcome = match &cli.command {
        Command::Demo(command) => demo::run(command, Screen::of_stdout()),
        Command::Status(command) => status::run(command, Screen::of_stdout()),
        Command::Tree(command) => tree::run(command, Screen::of_stdout()),
        Command::Wait(command) => Ok(wait::run(command, Screen::of_stdout())),
        Command::Whose(command) => whose::run(command, Screen::of_stdout()),
        Command::Adopt(command) => adopt::run(command, Screen::of_stdout()),
        Command::Lint(command) => lint::run(command, Screen::of_stdout()),
        Command::Assess(command) => assess::run(command, Screen::of_stdout()),
        Command::Explain(command) => explain::run(command, Screen::of_stdout()),
        Command::Rules(command) => rules::run(command, Screen::of_stdout()),
        Command::Controller(command) => controller::run(command),
        Command::Crds { output } => crds::print(*output).map(Outcome::from),
        Command::Completions { shell } => completions::print(*shell).map(Outcome::from),
    };
    output::finish(outcome)
}
