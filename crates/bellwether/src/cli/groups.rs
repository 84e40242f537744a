//! Arguments of the commands about groups, and where these commands read objects.

use std::path::PathBuf;

use bellwether_inspect::{observe::Location, wait};
use bellwether_kube_io::client::ClientOptions;
use clap::{Args, ValueEnum, ValueHint};
use jiff::{SignedDuration, Timestamp};

use super::{ObjectFormat, time};

/// A cluster, or files instead of one.
#[derive(Clone, Debug, Args)]
pub struct LocationArgs {
    /// The kubeconfig file; defaults to that of kubectl
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "from")]
    pub kubeconfig: Option<PathBuf>,

    /// The context in the kubeconfig
    #[arg(long, value_name = "NAME", conflicts_with = "from")]
    pub context: Option<String>,

    /// The namespace; defaults to that of the context
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,

    /// Read a file or directory instead of a cluster: a dump, or a repository of manifests
    #[arg(long, value_name = "DIR", value_hint = ValueHint::AnyPath)]
    pub from: Vec<PathBuf>,
}

impl LocationArgs {
    pub(crate) fn location(&self) -> Location {
        let Self { kubeconfig, context, namespace, from } = self.clone();
        if from.is_empty() {
            Location::Cluster { login: ClientOptions { kubeconfig, context }, namespace }
        } else {
            Location::Files { paths: from, namespace }
        }
    }
}

/// Where objects are read, and as of when they are assessed.
#[derive(Clone, Debug, Args)]
pub struct InputArgs {
    #[command(flatten)]
    pub location: LocationArgs,

    /// Assess the objects of --from as of this time, e.g. 2026-11-14T12:00:00Z; defaults to now
    #[arg(long, value_name = "TIME", value_parser = time, requires = "from")]
    pub now: Option<Timestamp>,
}

impl InputArgs {
    pub(crate) fn location(&self) -> Location {
        self.location.location()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now.unwrap_or_else(Timestamp::now)
    }
}

pub(super) const STATUS_HELP: &str = "Examples:
  bellwether status                      all groups in the namespace, the worst first
  bellwether status -A -w                all namespaces, updated on each change
  bellwether status wordpress            one group, with causes and the fields behind them
  bellwether status rollup/platform      a Rollup, if an Application has the same name
  bellwether status --from dump/         read files instead of a cluster
  bellwether status -A --type wordpress -o json

Exit codes: 0 all groups are Ready, 1 a group is not Ready or none was found, 2 not all could be read.";

#[derive(Debug, Args)]
pub struct Status {
    /// The Application or Rollup; defaults to all
    pub name: Option<String>,

    /// List the groups of all namespaces
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "name"])]
    pub all_namespaces: bool,

    /// List only Applications of this type, e.g. wordpress
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "name")]
    pub type_: Option<String>,

    /// Watch, and print each change
    #[arg(short, long, conflicts_with = "from")]
    pub watch: bool,

    /// List Ready groups or members, too
    #[arg(long)]
    pub all: bool,

    /// The output format
    #[arg(short, long, value_enum, default_value_t = GroupFormat::Table)]
    pub output: GroupFormat,

    #[command(flatten)]
    pub input: InputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GroupFormat {
    /// Text, cut to the width of the terminal
    Table,
    /// Text with more columns, not cut
    Wide,
    /// JSON
    Json,
    /// YAML
    Yaml,
    /// The names only, one per line
    Name,
}

pub(super) const TREE_HELP: &str = "Examples:
  bellwether tree wordpress
  bellwether tree wordpress --all --from dump/
  bellwether tree rollup/platform

Exit codes: 0 the group is Ready, 1 it is not, 2 not all could be read.";

#[derive(Debug, Args)]
pub struct Tree {
    /// The Application or Rollup
    pub name: String,

    /// Show Ready objects, too
    #[arg(long)]
    pub all: bool,

    /// The output format
    #[arg(short, long, value_enum, default_value_t = GroupFormat::Table)]
    pub output: GroupFormat,

    #[command(flatten)]
    pub input: InputArgs,
}

pub(super) const WAIT_HELP: &str = "Examples:
  bellwether wait wordpress
  bellwether wait wordpress --stable 20s --fail-fast --timeout 10m
  bellwether wait rollup/platform

Exit codes: 0 ready, 1 failed, 2 timed out, 3 unknown.";

#[derive(Debug, Args)]
pub struct Wait {
    /// The Application or Rollup
    pub name: String,

    /// The condition to wait for
    #[arg(long = "for", value_enum, default_value_t = Goal::Ready, value_name = "CONDITION")]
    pub goal: Goal,

    /// Require that the condition has been met for this long, e.g. 20s
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    pub stable: SignedDuration,

    /// End at the first failure instead of waiting for a repair
    #[arg(long)]
    pub fail_fast: bool,

    /// How long to wait, e.g. 90s, 5m or 1h
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5m")]
    pub timeout: SignedDuration,

    #[command(flatten)]
    pub input: InputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Goal {
    /// All members are ready
    Ready,
    /// The controllers of all members of an Application have acted on their latest generation
    Settled,
    /// All named components and dependencies of an Application exist
    Installed,
}

impl Wait {
    pub(crate) fn options(&self) -> wait::WaitOptions {
        let goal = match self.goal {
            Goal::Ready => wait::Goal::Ready,
            Goal::Settled => wait::Goal::Settled,
            Goal::Installed => wait::Goal::Installed,
        };
        wait::WaitOptions { goal, stable: self.stable, fail_fast: self.fail_fast, timeout: self.timeout }
    }
}

pub(super) const WHOSE_HELP: &str = "Examples:
  bellwether whose deploy/web
  bellwether whose statefulset/mysql --from dump/

Exit codes: 0 the object belongs to an Application or Rollup, 1 it belongs to none, 2 not all could be read.";

#[derive(Debug, Args)]
pub struct Whose {
    /// The object, e.g. deploy/web or statefulsets.apps/mysql
    #[arg(value_name = "KIND/NAME")]
    pub object: String,

    /// The output format
    #[arg(short, long, value_enum, default_value_t = ObjectFormat::Text)]
    pub output: ObjectFormat,

    #[command(flatten)]
    pub input: InputArgs,
}

pub(super) const ADOPT_HELP: &str = "Examples:
  bellwether adopt wordpress deploy/web statefulset/mysql svc/web svc/mysql
  bellwether adopt wordpress deploy/web --selector app=wordpress --dry-run
  bellwether adopt wordpress deploy/web --from manifests/ --dry-run -o yaml

Adds the labels of the selector and the annotation kubernetes.io/application to each object.
Then creates the Application. Other fields are not changed.

The Application owns the objects: deleting it deletes them.

Shows the changes first, after a dry run on the API server. If a change fails, the changes
before it are undone.

Exit codes: 0 done, 1 not done, 2 invalid input, or not all could be read.";

#[derive(Debug, Args)]
pub struct Adopt {
    /// The name of the Application to create
    pub name: String,

    /// The objects, e.g. deploy/web svc/web
    #[arg(required = true, value_name = "KIND/NAME")]
    pub objects: Vec<String>,

    /// The labels of the selector; defaults to app.kubernetes.io/part-of=NAME
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub selector: Vec<String>,

    /// The type of the Application, e.g. wordpress
    #[arg(long = "type", value_name = "TYPE")]
    pub type_: Option<String>,

    /// Only show the changes, after a dry run on the API server
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,

    /// The output format: the changes as text, or the manifest of the Application
    #[arg(short, long, value_enum, default_value_t = ObjectFormat::Text)]
    pub output: ObjectFormat,

    #[command(flatten)]
    pub input: InputArgs,
}

pub(super) const LINT_GROUPS_HELP: &str = "Examples:
  bellwether lint -f application.yaml
  bellwether lint deploy/ -o json
  helm template chart/ | bellwether lint -

Checks what the API server and the controller check, without a cluster. Other kinds are ignored.

Exit codes: 0 all objects are valid, 1 an object is invalid, 2 not all could be read.";

#[derive(Debug, Args)]
pub struct Lint {
    /// The same as FILE, for users of kubectl
    #[arg(short = 'f', long = "filename", value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub named: Vec<PathBuf>,

    /// A file with objects, a directory of such files, or - for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,

    /// The output format
    #[arg(short, long, value_enum, default_value_t = super::ExplainFormat::Text)]
    pub output: super::ExplainFormat,
}

pub(super) const DEMO_HELP: &str = "Examples:
  bellwether demo
  bellwether demo --once --speed 4

Needs no cluster, opens no connection and writes no file. Press Ctrl-C to end it.";

#[derive(Debug, Args)]
pub struct Demo {
    /// The speed as a factor, e.g. 2 for twice as fast
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = speed)]
    pub speed: f64,

    /// End after the last scene instead of starting again
    #[arg(long)]
    pub once: bool,
}

fn duration(text: &str) -> Result<SignedDuration, String> {
    let error = || "give a duration such as 90s, 5m or 1h30m".to_owned();
    let duration: SignedDuration = text.parse().map_err(|_| error())?;
    if duration.is_negative() { Err(error()) } else { Ok(duration) }
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed: &f64| (0.1..=1000.0).contains(speed));
    speed.ok_or_else(|| "give a number from 0.1 to 1000".to_owned())
}
