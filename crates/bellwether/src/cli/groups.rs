//! Arguments of the commands about Applications and Rollups, and where these commands read objects.

use std::{path::PathBuf, time::Duration};

use bellwether_engine::FAILED_AFTER;
use bellwether_inspect::{
    observe::{Location, Place},
    wait,
};
use bellwether_kube_io::client::ClientOptions;
use clap::{Args, ValueEnum, ValueHint};
use jiff::{SignedDuration, Timestamp};

use super::{NamedClusterArgs, ObjectFormat, query::timeout, time};

/// A cluster, or files instead of one.
#[derive(Clone, Debug, Args)]
pub struct LocationArgs {
    /// Path to the kubeconfig file; defaults to KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "from")]
    pub kubeconfig: Option<PathBuf>,

    /// The name of the kubeconfig context to use
    #[arg(long, value_name = "NAME", conflicts_with = "from")]
    pub context: Option<String>,

    /// The namespace; defaults to that of the context
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,

    /// Read objects from this file or directory instead of a cluster; can be repeated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub from: Vec<PathBuf>,

    /// Use built-in rules only, without the HealthRules of the cluster
    #[arg(long, conflicts_with = "from")]
    pub without_health_rules: bool,
}

impl LocationArgs {
    pub(crate) fn location(&self) -> Location {
        let Self { kubeconfig, context, namespace, from, without_health_rules } = self.clone();
        let place = if from.is_empty() {
            let login = ClientOptions { kubeconfig, context };
            Place::Cluster { login, namespace, without_health_rules }
        } else {
            Place::Files { paths: from, namespace }
        };
        Location {
            place,
            failed_after: Some(FAILED_AFTER),
            clusters: Vec::new(),
            request_timeout: REQUEST_TIMEOUT,
        }
    }

    pub(crate) fn location_with(&self, below: &BelowArgs) -> Location {
        Location { failed_after: below.failed_after(), ..self.location() }
    }
}

/// How long to wait for a response of a cluster, unless the user says so.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// The clusters of BindingPolicies. The hub is where the other flags read.
#[derive(Clone, Debug, Args)]
pub struct FleetArgs {
    #[command(flatten)]
    pub clusters: NamedClusterArgs,

    /// How long to wait for a response of a cluster of --cluster
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = timeout, requires = "clusters")]
    pub request_timeout: Duration,
}

impl FleetArgs {
    /// The location with these clusters.
    pub(crate) fn of(&self, location: Location) -> Result<Location, String> {
        let (clusters, request_timeout) = (self.clusters.to_read()?, self.request_timeout);
        Ok(Location { clusters, request_timeout, ..location })
    }
}

/// What counts below members. The controller and the commands take the same flags, to give the same answers.
#[derive(Clone, Debug, Args)]
pub struct BelowArgs {
    /// Read the Pods of workloads and the endpoints of Services, to report failures that the members do not
    #[arg(
        long,
        value_name = "true|false",
        default_value_t = true,
        num_args = 0..=1,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        env = "BELLWETHER_LOOK_BELOW",
        hide_env = true
    )]
    pub look_below: bool,

    /// How long a Pod must have failed until its workload is Failed
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "60s",
        value_parser = duration,
        env = "BELLWETHER_FAILED_AFTER",
        hide_env = true
    )]
    pub failed_after: SignedDuration,
}

impl BelowArgs {
    /// None: nothing below members is read.
    pub(crate) fn failed_after(&self) -> Option<SignedDuration> {
        self.look_below.then_some(self.failed_after)
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

    pub(crate) fn location_with(&self, below: &BelowArgs) -> Location {
        self.location.location_with(below)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.now.unwrap_or_else(Timestamp::now)
    }
}

pub(super) const STATUS_HELP: &str = "Examples:
  # List all Applications and Rollups in the namespace, worst first
  bellwether status

  # Watch the Applications and Rollups of all namespaces
  bellwether status -A -w

  # Show one Application with its causes and the fields behind them
  bellwether status wordpress

  # Show a Rollup that has the same name as an Application
  bellwether status rollup/platform

  # Read files instead of a cluster
  bellwether status --from dump/

  # Also show the objects of BindingPolicies in their clusters
  bellwether status --cluster east=east.yaml --cluster west=dump/

  # Print the Applications of one type as JSON
  bellwether status -A --type wordpress -o json

Exit codes: 0 all are Ready, 1 one is not Ready or none was found, 2 an input could not be read, or invalid usage.";

#[derive(Debug, Args)]
pub struct Status {
    /// The Application or Rollup, or with --cluster the BindingPolicy; defaults to all
    pub name: Option<String>,

    /// List the Applications of all namespaces
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "name"])]
    pub all_namespaces: bool,

    /// List only Applications with this spec.type
    #[arg(long = "type", value_name = "TYPE", conflicts_with = "name")]
    pub type_: Option<String>,

    /// Watch for changes and print each one; not with --from
    #[arg(short, long, conflicts_with = "from")]
    pub watch: bool,

    /// Also list Ready groups and members
    #[arg(long)]
    pub all: bool,

    /// The output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = GroupFormat::Table)]
    pub output: GroupFormat,

    #[command(flatten)]
    pub input: InputArgs,

    #[command(flatten)]
    pub below: BelowArgs,

    #[command(flatten)]
    pub fleet: FleetArgs,
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
  # Show an Application, its members and the objects below them
  bellwether tree wordpress

  # Also show Ready objects, from files
  bellwether tree wordpress --all --from dump/

  # Show a Rollup
  bellwether tree rollup/platform

  # Show the objects of a BindingPolicy in their clusters
  bellwether tree policy/edge --cluster a=a.yaml --cluster b=dump/

Exit codes: 0 it is Ready, 1 it is not Ready, 2 an input could not be read, or invalid usage.";

#[derive(Debug, Args)]
pub struct Tree {
    /// The Application or Rollup, or with --cluster the BindingPolicy
    pub name: String,

    /// Also show Ready objects
    #[arg(long)]
    pub all: bool,

    /// The output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = GroupFormat::Table)]
    pub output: GroupFormat,

    #[command(flatten)]
    pub input: InputArgs,

    #[command(flatten)]
    pub below: BelowArgs,

    #[command(flatten)]
    pub fleet: FleetArgs,
}

pub(super) const WAIT_HELP: &str = "Examples:
  # Wait until an Application is Ready, for at most 5 minutes
  bellwether wait wordpress

  # Wait until it has been Ready for 20 seconds; end if a member is Failed
  bellwether wait wordpress --stable 20s --fail-fast --timeout 10m

  # Wait for a Rollup
  bellwether wait rollup/platform

Exit codes: 0 condition met, 1 Failed, 2 timed out or invalid usage, 3 Unknown, not found, not readable, or no \
response from the API server.";

#[derive(Debug, Args)]
pub struct Wait {
    /// The Application or Rollup, or with --cluster the BindingPolicy
    pub name: String,

    /// The condition to wait for
    #[arg(long = "for", value_enum, default_value_t = Goal::Ready, value_name = "CONDITION")]
    pub goal: Goal,

    /// Require that the condition holds for this long, e.g. 20s
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "0s")]
    pub stable: SignedDuration,

    /// End as soon as a member of the Application, or the Rollup itself, is Failed
    #[arg(long)]
    pub fail_fast: bool,

    /// How long to wait, e.g. 90s, 5m or 1h
    #[arg(long, value_name = "DURATION", value_parser = duration, default_value = "5m")]
    pub timeout: SignedDuration,

    #[command(flatten)]
    pub input: InputArgs,

    #[command(flatten)]
    pub below: BelowArgs,

    #[command(flatten)]
    pub fleet: FleetArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Goal {
    /// The Application or Rollup is Ready (suspended members do not block it)
    Ready,
    /// The controllers of all members of the Application have observed the latest generation
    Settled,
    /// All named components and dependencies of the Application exist
    Installed,
}

impl Status {
    pub(crate) fn location(&self) -> Result<Location, String> {
        self.fleet.of(self.input.location_with(&self.below))
    }
}

impl Tree {
    pub(crate) fn location(&self) -> Result<Location, String> {
        self.fleet.of(self.input.location_with(&self.below))
    }
}

impl Wait {
    pub(crate) fn location(&self) -> Result<Location, String> {
        self.fleet.of(self.input.location_with(&self.below))
    }

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
  # Show the Applications and Rollups of a Deployment
  bellwether whose deploy/web

  # Show which BindingPolicies bind it, and to which clusters
  bellwether whose deploy/web --cluster a=a.yaml --cluster b=dump/

  # The same for a StatefulSet in files
  bellwether whose statefulset/mysql --from dump/

Exit codes: 0 it belongs to a group, 1 it belongs to none, 2 an input could not be read, or invalid \
usage.";

#[derive(Debug, Args)]
pub struct Whose {
    /// The object, e.g. deploy/web or statefulsets.apps/mysql
    #[arg(value_name = "KIND/NAME")]
    pub object: String,

    /// The output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = ObjectFormat::Text)]
    pub output: ObjectFormat,

    #[command(flatten)]
    pub input: InputArgs,

    #[command(flatten)]
    pub fleet: FleetArgs,
}

pub(super) const ADOPT_HELP: &str = "Examples:
  # Create an Application that owns two workloads and a Service
  bellwether adopt wordpress deploy/web statefulset/mysql svc/web

  # Show the changes only, with a selector of your own
  bellwether adopt wordpress deploy/web --selector app=web --dry-run

  # Print the manifest of the Application for objects in files
  bellwether adopt wordpress deploy/web --from dump/ --dry-run -o yaml

Exit codes: 0 created, or can be created with --dry-run, 1 not created, 2 an input could not be read, or invalid usage.";

#[derive(Debug, Args)]
pub struct Adopt {
    /// The name of the Application to create
    pub name: String,

    /// The objects, e.g. deploy/web svc/web
    #[arg(required = true, value_name = "KIND/NAME")]
    pub objects: Vec<String>,

    /// Labels to select by; added to the objects (KEY=VALUE, comma-separated); defaults to
    /// app.kubernetes.io/part-of=NAME
    #[arg(long, value_name = "KEY=VALUE", value_delimiter = ',')]
    pub selector: Vec<String>,

    /// The spec.type of the Application, e.g. wordpress
    #[arg(long = "type", value_name = "TYPE")]
    pub type_: Option<String>,

    /// Show the changes without making them; runs a server-side dry run unless --from is given
    #[arg(long)]
    pub dry_run: bool,

    /// Do not ask for confirmation
    #[arg(short, long)]
    pub yes: bool,

    /// The output format: the changes as text, or the manifest of the Application
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = ObjectFormat::Text)]
    pub output: ObjectFormat,

    #[command(flatten)]
    pub input: InputArgs,
}

pub(super) const LINT_GROUPS_HELP: &str = "Examples:
  # Validate a file
  bellwether lint -f application.yaml

  # Validate the files of a directory; print errors as JSON
  bellwether lint deploy/ -o json

  # Validate the output of another command
  helm template chart/ | bellwether lint -

Exit codes: 0 all objects are valid, 1 an object is invalid, 2 an input could not be read, or invalid usage.";

#[derive(Debug, Args)]
pub struct Lint {
    /// File or directory with objects, or - for stdin; same as the argument FILE
    #[arg(short = 'f', long = "filename", value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub named: Vec<PathBuf>,

    /// File or directory with objects, or - for stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,

    /// The output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = super::ExplainFormat::Text)]
    pub output: super::ExplainFormat,
}

pub(super) const DEMO_HELP: &str = "Examples:
  # Play until Ctrl-C
  bellwether demo

  # Play once, four times as fast
  bellwether demo --once --speed 4

Needs no cluster, opens no connection and writes no file. Press Ctrl-C to end it.";

#[derive(Debug, Args)]
pub struct Demo {
    /// Playback speed, e.g. 2 for twice as fast
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, value_parser = speed)]
    pub speed: f64,

    /// End after the last scene instead of starting again
    #[arg(long)]
    pub once: bool,
}

pub(super) fn duration(text: &str) -> Result<SignedDuration, String> {
    let error = || "use a duration such as 90s, 5m or 1h30m".to_owned();
    let duration: SignedDuration = text.parse().map_err(|_| error())?;
    if duration.is_negative() { Err(error()) } else { Ok(duration) }
}

fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed: &f64| (0.1..=1000.0).contains(speed));
    speed.ok_or_else(|| "use a number from 0.1 to 1000".to_owned())
}
