//! The commands about groups of objects, and where they look.

use std::path::PathBuf;

use bellwether_inspect::{observe::Location, wait};
use bellwether_kube_io::write::Login;
use clap::{Args, ValueEnum, ValueHint};
use jiff::{SignedDuration, Timestamp};

use super::time;

/// Where to look: a cluster, or files that stand for one.
#[derive(Clone, Debug, Args)]
pub struct PlaceArgs {
    /// The kubeconfig of the cluster; without one, as kubectl finds it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "from")]
    pub kubeconfig: Option<PathBuf>,

    /// The context in the kubeconfig
    #[arg(long, value_name = "NAME", conflicts_with = "from")]
    pub context: Option<String>,

    /// The namespace; without one, that of the context
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,

    /// Look at the objects in this file or directory instead of a cluster: a dump, or a repository of manifests
    #[arg(long, value_name = "DIR", value_hint = ValueHint::AnyPath)]
    pub from: Vec<PathBuf>,
}

impl PlaceArgs {
    /// The place that they name.
    pub(crate) fn place(&self) -> Location {
        let Self { kubeconfig, context, namespace, from } = self.clone();
        if from.is_empty() {
            Location::Cluster { login: Login { kubeconfig, context }, namespace }
        } else {
            Location::Files { paths: from, namespace }
        }
    }
}

/// Where to look, and when.
#[derive(Clone, Debug, Args)]
pub struct SceneArgs {
    /// Where.
    #[command(flatten)]
    pub place: PlaceArgs,

    /// Judge the objects of --from as of this time, such as 2026-11-14T12:00:00Z, instead of now
    #[arg(long, value_name = "TIME", value_parser = time, requires = "from")]
    pub now: Option<Timestamp>,
}

impl SceneArgs {
    /// The place that they name.
    pub(crate) fn place(&self) -> Location {
        self.place.place()
    }

    /// As of when objects are judged.
    pub(crate) fn now(&self) -> Timestamp {
        self.now.unwrap_or_else(Timestamp::now)
    }
}

pub(super) const STATUS_HELP: &str = "Examples:
  bellwether status                      what is in the namespace, the worst first
  bellwether status -A -w                all namespaces, as it changes
  bellwether status wordpress            one of them: what is wrong with it, and on what that rests
  bellwether status rollup/platform      a Rollup, where an Application has the same name
  bellwether status --from dump/         the same from files
  bellwether status -A --type wordpress -o json

Exit codes: 0 all are ready, 1 something is not, or there is nothing, 2 something could not be read.";

/// The arguments of `bellwether status`.
#[derive(Debug, Args)]
pub struct Status {
    /// An Application or a Rollup; without one, all of them
    pub name: Option<String>,

    /// In all namespaces
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "name"])]
    pub all_namespaces: bool,

    /// Only Applications of this type, such as wordpress
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "name")]
    pub type_: Option<String>,

    /// Go on, and show it anew whenever it changes
    #[arg(short, long, conflicts_with = "from")]
    pub watch: bool,

    /// List what is ready too, however much it is
    #[arg(long)]
    pub all: bool,

    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t = GroupFormat::Table)]
    pub output: GroupFormat,

    /// Where to look.
    #[command(flatten)]
    pub scene: SceneArgs,
}

/// The formats of commands about groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GroupFormat {
    /// For people: the worst first, cut to the width of the terminal
    Table,
    /// The same with more columns, and nothing left out
    Wide,
    /// For programs
    Json,
    /// The same as YAML
    Yaml,
    /// The names alone, one on a line
    Name,
}

pub(super) const TREE_HELP: &str = "Examples:
  bellwether tree wordpress
  bellwether tree wordpress --all --from dump/
  bellwether tree rollup/platform

Exit codes: 0 all is ready, 1 something is not, 2 something could not be read.";

/// The arguments of `bellwether tree`.
#[derive(Debug, Args)]
pub struct Tree {
    /// The Application or the Rollup
    pub name: String,

    /// Open what is ready too
    #[arg(long)]
    pub all: bool,

    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t = GroupFormat::Table)]
    pub output: GroupFormat,

    /// Where to look.
    #[command(flatten)]
    pub scene: SceneArgs,
}

pub(super) const WAIT_HELP: &str = "Examples:
  bellwether wait wordpress
  bellwether wait wordpress --stable 20s --fail-fast --timeout 10m
  bellwether wait rollup/platform

Exit codes: 0 it is ready, 1 it has failed, 2 the time is up, 3 nobody can tell.";

/// The arguments of `bellwether wait`.
#[derive(Debug, Args)]
pub struct Wait {
    /// The Application or the Rollup
    pub name: String,

    /// What to wait for
    #[arg(long = "for", value_enum, default_value_t = Goal::Ready, value_name = "WHAT")]
    pub goal: Goal,

    /// It must have been so for this long, such as 20s
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s")]
    pub stable: SignedDuration,

    /// End as soon as something has failed, instead of hoping that it mends itself until the time is up
    #[arg(long)]
    pub fail_fast: bool,

    /// How long to wait, such as 90s, 5m or 1h
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "5m")]
    pub timeout: SignedDuration,

    /// Where to look.
    #[command(flatten)]
    pub scene: SceneArgs,
}

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Goal {
    /// All members are ready
    Ready,
    /// All members of an Application have been acted on in their latest version
    Settled,
    /// All named components and dependencies of an Application exist
    Installed,
}

impl Wait {
    /// How long to wait, and for what.
    pub(crate) fn terms(&self) -> wait::WaitOptions {
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

Exit codes: 0 it belongs to an Application or a Rollup, 1 it belongs to none, 2 something could not be read.";

/// The arguments of `bellwether whose`.
#[derive(Debug, Args)]
pub struct Whose {
    /// The object, as kubectl has it: deploy/web, statefulsets.apps/mysql
    #[arg(value_name = "KIND/NAME")]
    pub object: String,

    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t = super::ExplainFormat::Text)]
    pub output: super::ExplainFormat,

    /// Where to look.
    #[command(flatten)]
    pub scene: SceneArgs,
}

pub(super) const ADOPT_HELP: &str = "Examples:
  bellwether adopt wordpress deploy/web statefulset/mysql svc/web svc/mysql
  bellwether adopt wordpress deploy/web --selector app=wordpress --dry-run
  bellwether adopt wordpress deploy/web --from manifests/ --dry-run -o yaml

Each object gets the labels of the selector and the annotation that hands it over; then the Application is created that
names them all. Nothing else of the objects is changed. All of it is tried out first, and shown; if a step fails, all
before it are undone.

Exit codes: 0 it is done, 1 it is not, 2 something could not be read or makes no sense.";

/// The arguments of `bellwether adopt`.
#[derive(Debug, Args)]
pub struct Adopt {
    /// The name of the Application to create
    pub name: String,

    /// The objects, as kubectl has them: deploy/web, svc/web
    #[arg(required = true, value_name = "KIND/NAME")]
    pub objects: Vec<String>,

    /// The labels that make an object a member; without any, app.kubernetes.io/part-of=NAME
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub selector: Vec<String>,

    /// What kind of application it is, such as wordpress
    #[arg(long = "type", value_name = "TYPE")]
    pub type_: Option<String>,

    /// Only show what would be done, after the API server has been asked whether it would do it
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask
    #[arg(short, long)]
    pub yes: bool,

    /// How to print what is done: in words, or the Application that is created
    #[arg(short, long, value_enum, default_value_t = super::ExplainFormat::Text)]
    pub output: super::ExplainFormat,

    /// Where to look.
    #[command(flatten)]
    pub scene: SceneArgs,
}

pub(super) const LINT_GROUPS_HELP: &str = "Examples:
  bellwether lint -f application.yaml
  bellwether lint deploy/ -o json
  helm template chart/ | bellwether lint -

Checks them as the API server and the controller do, without either. Objects of other kinds are passed over.

Exit codes: 0 all are right, 1 something is wrong, 2 something could not be read.";

/// The arguments of `bellwether lint`.
#[derive(Debug, Args)]
pub struct Lint {
    /// The same as FILE, as kubectl has it
    #[arg(short = 'f', long = "filename", value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub named: Vec<PathBuf>,

    /// A file with objects, a directory of such files, or - for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,

    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t = super::ExplainFormat::Text)]
    pub output: super::ExplainFormat,
}

pub(super) const DEMO_HELP: &str = "Examples:
  bellwether demo
  bellwether demo --once --speed 4

It needs no cluster, opens no connection and writes no file. Ctrl-C ends it.";

/// The arguments of `bellwether demo`.
#[derive(Debug, Args)]
pub struct Demo {
    /// How many times as fast as usual
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = speed)]
    pub speed: f64,

    /// Tell the story once instead of again and again
    #[arg(long)]
    pub once: bool,
}

/// A length of time as people write it: `90s`, `5m`, `1h30m`.
fn duration(text: &str) -> Result<SignedDuration, String> {
    let wrong = || "a time looks like 90s, 5m or 1h30m".to_owned();
    let duration: SignedDuration = text.parse().map_err(|_| wrong())?;
    if duration.is_negative() { Err(wrong()) } else { Ok(duration) }
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed: &f64| (0.1..=1000.0).contains(speed));
    speed.ok_or_else(|| "the speed is a number from 0.1 to 1000".to_owned())
}
