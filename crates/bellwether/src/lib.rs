//! The command line of Bellwether.
//!
//! It is a library so that `xtask` can use it: the manifests in `deploy` come from [`crds`], and the picture
//! in the docs comes from [`demo`].

mod adopt;
mod assess;
mod assessment;
pub mod cli;
mod collectors;
mod completions;
mod controller;
pub mod crds;
pub mod demo;
mod evidence;
mod explain;
mod lint;
mod output;
mod query;
mod result_table;
mod rules;
mod schema;
mod signals;
mod status;
mod tree;
mod wait;
mod whose;

use std::process::ExitCode;

use bellwether_inspect::shell::program;
use bellwether_terminal::Screen;
use clap::{CommandFactory as _, FromArgMatches as _};

use crate::{
    cli::{Cli, Command},
    output::Outcome,
};

fn parse() -> Result<Cli, clap::Error> {
    let command = with_program_name(Cli::command().bin_name(program()), program());
    Cli::from_arg_matches_mut(&mut command.try_get_matches()?)
}

/// Examples in the help of a kubectl plugin are called through kubectl.
fn with_program_name(command: clap::Command, program: &str) -> clap::Command {
    let command = match command.get_after_help().map(ToString::to_string) {
        Some(help) => command.after_help(help.replace("bellwether ", &format!("{program} "))),
        None => command,
    };
    let subcommands: Vec<_> = command.get_subcommands().map(|it| it.get_name().to_owned()).collect();
    subcommands.into_iter().fold(command, |command, name| {
        command.mut_subcommand(name, |subcommand| with_program_name(subcommand, program))
    })
}

/// Runs the command of the process's arguments.
pub fn run() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let outcome = match &cli.command {
        Command::Demo(command) => demo::run(command, Screen::of_stdout()),
        Command::Status(command) => status::run(command, Screen::of_stdout()),
        Command::Tree(command) => tree::run(command, Screen::of_stdout()),
        Command::Wait(command) => Ok(wait::run(command, Screen::of_stdout())),
        Command::Whose(command) => whose::run(command, Screen::of_stdout()),
        Command::Adopt(command) => adopt::run(command, Screen::of_stdout()),
        Command::Query(command) => query::run(command, Screen::of_stdout()),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of the examples, which begin with spaces.
    fn examples(command: &clap::Command) -> Vec<String> {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let own = help.lines().filter(|line| line.starts_with("  ")).map(str::to_owned);
        own.chain(command.get_subcommands().flat_map(examples)).collect()
    }

    #[test]
    fn examples_of_a_kubectl_plugin_fit_on_80_columns() {
        let examples = examples(&with_program_name(Cli::command(), "kubectl bellwether"));
        assert!(examples.len() > 40, "{examples:#?}");
        let long: Vec<_> = examples.iter().filter(|line| line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:#?}");
    }
}
