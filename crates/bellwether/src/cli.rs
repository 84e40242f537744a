//! The commands and their flags: the one definition from which parsing, help and completions come.

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

/// One trustworthy status for many Kubernetes objects.
///
/// Bellwether says what is true of an application, of the components under an operator, or of one object in many
/// clusters: whether it is ready, why not, since when, and how far along.
#[derive(Debug, Parser)]
#[command(
    name = "bellwether",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "Exit codes: 0 success, 1 failure, 2 wrong usage."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What Bellwether can do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Print the CustomResourceDefinitions of Bellwether's kinds
    ///
    /// Install them with: bellwether crds | kubectl apply --server-side -f -
    #[command(
        after_help = "Examples:\n  bellwether crds | kubectl apply --server-side -f -\n  bellwether crds -o name"
    )]
    Crds {
        /// How to print them
        #[arg(short, long, value_enum, default_value_t = CrdFormat::Yaml)]
        output: CrdFormat,
    },

    /// Print a completion script for a shell
    ///
    /// Load it in the current shell, or put it where the shell looks for completions.
    #[command(
        after_help = "Examples:\n  source <(bellwether completions bash)\n  bellwether completions fish > \
                      ~/.config/fish/completions/bellwether.fish"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
}

/// The formats of `bellwether crds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CrdFormat {
    /// One document for each kind
    Yaml,
    /// A single List
    Json,
    /// Their names, one on a line
    Name,
}
