//! The commands and their flags. Doc comments are the help that users read.

mod clusters;
mod groups;
mod http;
mod query;
mod rollups;

pub use clusters::{
    ClusterArgs, ClusterArgument, ClusterDirectory, ClusterLabels, ClusterTarget, NamedClusterArgs, cluster,
};
pub use groups::{
    Adopt, BelowArgs, Demo, FleetArgs, Goal, GroupFormat, InputArgs, Lint, LocationArgs, Status, Tree, Wait,
    Whose,
};
pub use http::HttpArgs;
pub use query::{Query, QueryFormat};
pub use rollups::Rollups;

use std::{
    io::{IsTerminal as _, stdin},
    path::PathBuf,
};

use bellwether_health::{Context, user::UserRules};
use bellwether_inspect::shell::program;
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use jiff::Timestamp;

/// Show one status for many Kubernetes objects.
///
/// Bellwether shows the health of an application, of the components of an operator, or of a single object:
/// whether it is ready, why not, since when, and its progress.
#[derive(Debug, Parser)]
#[command(
    name = "bellwether",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    after_help = "Exit codes differ by command; see its help. 2 is invalid usage."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show a demo in simulated clusters
    ///
    /// Plays a scenario in the terminal: an application is installed, updated, broken and repaired, and so is
    /// the platform below it; then a Deployment is rolled out in three clusters, one of which stops answering
    /// for a while. The clusters are simulated; the engine is the one that the controller runs.
    #[command(after_help = groups::DEMO_HELP)]
    Demo(Demo),

    /// Show the health of Applications and Rollups
    ///
    /// Reads the objects itself; does not need the controller.
    #[command(after_help = groups::STATUS_HELP)]
    Status(Status),

    /// Show an Application or Rollup with its members and the objects that they own
    ///
    /// Follows owner references: from a Deployment to its ReplicaSets to their Pods. Counts Ready objects;
    /// lists them with --all or -o wide.
    #[command(after_help = groups::TREE_HELP)]
    Tree(Tree),

    /// Wait until an Application or Rollup is ready
    ///
    /// Shows the progress of its members: bars on a terminal, otherwise a line for each change. The last line
    /// is the result.
    #[command(after_help = groups::WAIT_HELP)]
    Wait(Wait),

    /// Show which Applications and Rollups an object belongs to
    #[command(after_help = groups::WHOSE_HELP)]
    Whose(Whose),

    /// Create an Application that owns existing objects
    ///
    /// Warning: the Application owns the objects, so deleting it deletes them.
    ///
    /// Adds the labels of the selector and the annotation kubernetes.io/application to each object, then
    /// creates the Application. Does not change other fields. Shows the changes first, after a server-side
    /// dry run. If a change fails, the changes before it are undone.
    #[command(after_help = groups::ADOPT_HELP)]
    Adopt(Adopt),

    /// Combine the state of objects in many clusters, like an SQL SELECT
    ///
    /// Evaluates a StatusCollector, or the same as SQL, over objects in API servers or in directories, now,
    /// without creating an object.
    #[command(after_help = query::QUERY_HELP)]
    Query(Box<Query>),

    /// Validate objects of bellwether.dev in files
    ///
    /// Checks what the API server and the controller check, for all kinds of bellwether.dev. Does not need a
    /// cluster. Skips objects of other kinds.
    #[command(after_help = groups::LINT_GROUPS_HELP)]
    Lint(Lint),

    /// Show the health of objects from files or stdin
    ///
    /// Reads YAML, JSON, JSON lines and lists. A document that is not a Kubernetes object is an error; the
    /// other documents are still assessed.
    #[command(after_help = ASSESS_HELP)]
    Assess(Assess),

    /// Explain the state of an object
    ///
    /// For an object in the cluster, or for every object in files: its state and since when, the rule that
    /// was applied, the fields that the rule has read, and the next state if the object does not change.
    #[command(after_help = EXPLAIN_HELP)]
    Explain(Explain),

    /// Validate and test HealthRules
    #[command(subcommand)]
    Rules(Rules),

    /// Run the controller of Applications, Rollups and HealthRules
    ///
    /// Watches the kinds that Applications and Rollups name, assesses their objects with built-in rules and
    /// HealthRules, and writes the result to the status of each Application and Rollup. It requires the
    /// CustomResourceDefinitions in the cluster. Several replicas may run: one is the leader, the others are
    /// on standby with warm caches.
    #[command(after_help = CONTROLLER_HELP)]
    Controller(Box<Controller>),

    /// Print the CustomResourceDefinitions of Bellwether's kinds
    #[command(
        after_help = "Examples:\n  # Install the CustomResourceDefinitions\n  bellwether crds | kubectl apply \
                      --server-side -f -\n\n  # List their names\n  bellwether crds -o name"
    )]
    Crds {
        /// The output format
        #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = CrdFormat::Yaml)]
        output: CrdFormat,
    },

    /// Print a completion script for a shell
    ///
    /// Load it in the current shell, or write it to the shell's completion directory. It completes
    /// `bellwether`, not `kubectl bellwether`.
    #[command(
        alias = "completion",
        after_help = "Examples:\n  # Load it in the current shell\n  source <(bellwether completions bash)\n\n  # Load \
                      it in every fish shell\n  bellwether completions fish \\\n    > \
                      ~/.config/fish/completions/bellwether.fish"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
}

const CONTROLLER_HELP: &str = "Examples:
  # Install the CustomResourceDefinitions, then run in the terminal
  bellwether crds | kubectl apply --server-side -f -
  bellwether controller

  # Run for one namespace of another cluster, without a Lease
  bellwether controller --context staging --watch-namespace shop \\
    --leader-elect=false --without-health-rules

Every flag can also be set as an environment variable, e.g. BELLWETHER_WATCH_NAMESPACE. Serves /healthz, /readyz and \
/metrics, the health of an Application or Rollup on /readyz/applications/NAMESPACE/NAME and /readyz/rollups/NAME, and the \
state of bound objects in all clusters on /api/v1/rows. \
Ends on SIGINT and SIGTERM.";

#[derive(Debug, Args)]
pub struct Controller {
    /// Path to the kubeconfig file; defaults to the service account in a Pod, else as kubectl
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, env = "BELLWETHER_KUBECONFIG", hide_env = true)]
    pub kubeconfig: Option<PathBuf>,

    /// The name of the kubeconfig context to use
    #[arg(long, value_name = "NAME", env = "BELLWETHER_CONTEXT", hide_env = true)]
    pub context: Option<String>,

    /// The namespace of the controller's Lease; defaults to that of the Pod, else bellwether-system
    #[arg(long, value_name = "NAME", env = "BELLWETHER_NAMESPACE", hide_env = true)]
    pub namespace: Option<String>,

    /// Watch only this namespace; needs permissions only in this namespace and for its Lease, and to read HealthRules; ignores Rollups
    #[arg(long, value_name = "NAME", env = "BELLWETHER_WATCH_NAMESPACE", hide_env = true)]
    pub watch_namespace: Option<String>,

    #[command(flatten)]
    pub http: HttpArgs,

    /// How many Applications and Rollups have metrics of their own; further ones are only counted
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 10_000,
        env = "BELLWETHER_METRICS_GROUPS",
        hide_env = true
    )]
    pub metrics_groups: usize,

    /// Elect a leader, so that several controllers can run
    #[arg(
        long,
        value_name = "true|false",
        default_value_t = true,
        num_args = 0..=1,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        env = "BELLWETHER_LEADER_ELECT",
        hide_env = true
    )]
    pub leader_elect: bool,

    /// Also write the status of app.k8s.io Applications, if the cluster serves them
    #[arg(
        long,
        value_name = "true|false",
        default_value_t = true,
        num_args = 0..=1,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        env = "BELLWETHER_APP_K8S_IO",
        hide_env = true
    )]
    pub app_k8s_io: bool,

    /// Use built-in rules only; without it, all verdicts are Unknown if HealthRules cannot be read
    #[arg(
        long,
        value_name = "true|false",
        default_value_t = false,
        num_args = 0..=1,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        env = "BELLWETHER_WITHOUT_HEALTH_RULES",
        hide_env = true
    )]
    pub without_health_rules: bool,

    #[command(flatten)]
    pub clusters: ClusterArgs,

    #[command(flatten)]
    pub below: BelowArgs,

    /// The reports about Rollups.
    #[command(flatten)]
    pub rollups: Rollups,

    /// The log level: error, warn, info, debug or trace; also by module, e.g. info,bellwether_kube_io=debug
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "BELLWETHER_LOG", hide_env = true)]
    pub log: String,

    /// The log format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LogFormat::Text, env = "BELLWETHER_LOG_FORMAT", hide_env = true)]
    pub log_format: LogFormat,
}

/// The format of log entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text, one line per log entry
    Text,
    /// JSON, one line per log entry
    Json,
}

const ASSESS_HELP: &str = "Examples:
  # Assess objects of a cluster
  kubectl get deploy,pods -A -o yaml | bellwether assess -

  # Assess the files of a directory; print JSON
  bellwether assess -f dump/ -o json

  # Assess the objects of two clusters
  bellwether assess --cluster east=dump/east --cluster west=dump/west

  # Also show the fields behind each state
  bellwether assess web.yaml --explain

Exit codes: 0 all objects are Ready, 1 an object is not Ready, 2 an input could not be read, or invalid usage.";

const EXPLAIN_HELP: &str = "Examples:
  # Explain an object in the cluster
  bellwether explain deploy/web -n shop

  # Explain an object in files
  bellwether explain pod/web-0 --from dump/

  # Explain all objects that another command prints
  kubectl get deploy web -o yaml | bellwether explain -

  # Explain all objects in a file; print JSON
  bellwether explain -f web.yaml -o json

Exit codes: 0 all objects are Ready, 1 an object is not Ready, 2 an input could not be read, or invalid usage.";

#[derive(Debug, Subcommand)]
pub enum Rules {
    /// Validate HealthRules
    ///
    /// Reads HealthRules from YAML, and Argo CD's health.lua from directories named GROUP/KIND. Checks what
    /// the API server and the controller check: fields, expressions, scripts, and two rules for the same
    /// kind.
    #[command(after_help = LINT_HELP)]
    Lint(RuleFiles),

    /// Run the tests of HealthRules
    ///
    /// Runs every test file in a directory: Argo CD's health_test.yaml unchanged, and files that end in
    /// _test.yaml, each with a list of objects and their expected health.
    #[command(after_help = TEST_HELP)]
    Test(RuleTests),
}

const LINT_HELP: &str = "Examples:
  # Validate the rules in a directory
  bellwether rules lint rules/

  # Print the errors in a file as JSON
  bellwether rules lint widgets.yaml -o json

Exit codes: 0 all rules are valid, 1 a rule is invalid, 2 an input could not be read, or invalid usage.";

const TEST_HELP: &str = "Examples:
  # Run the tests in a directory
  bellwether rules test rules/

  # Run one test file
  bellwether rules test rules/widgets_test.yaml

  # Run the tests of Argo CD
  bellwether rules test argo-cd/resource_customizations

Exit codes: 0 all cases pass, 1 a case fails, 2 an input could not be read, or invalid usage.";

#[derive(Debug, Args)]
pub struct RuleFiles {
    /// File or directory with rules
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,

    /// The output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = ExplainFormat::Text)]
    pub output: ExplainFormat,
}

#[derive(Debug, Args)]
pub struct RuleTests {
    /// Directory with rules and their tests, or one test file
    #[arg(required = true, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub directories: Vec<PathBuf>,

    /// Assess as of this time, e.g. 2026-11-14T12:00:00Z; defaults to now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub now: Option<Timestamp>,

    /// The output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = ExplainFormat::Text)]
    pub output: ExplainFormat,
}

#[derive(Debug, Args)]
pub struct Assess {
    #[command(flatten)]
    pub objects: Objects,

    /// Read the objects of this cluster from a directory of manifests; can be repeated
    #[arg(
        long = "cluster",
        value_name = "NAME=DIR",
        value_parser = clusters::directory,
        conflicts_with_all = ["named", "files"]
    )]
    pub clusters: Vec<ClusterDirectory>,

    /// The output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = AssessFormat::Table)]
    pub output: AssessFormat,

    /// Report the states of this tool, by its rules
    #[arg(long, value_name = "TOOL", value_enum, default_value_t = Dialect::Native)]
    pub dialect: Dialect,

    /// Show the fields that each state is based on
    #[arg(long)]
    pub explain: bool,

    /// List all Ready objects (default: hidden if more than 20)
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
#[command(mut_arg("files", |files| files.value_name("KIND/NAME | FILE").help(
    "Object in the cluster, e.g. deploy/web; or file or directory with objects, or - for stdin"
)))]
pub struct Explain {
    #[command(flatten)]
    pub objects: Objects,

    #[command(flatten)]
    pub location: LocationArgs,

    #[command(flatten)]
    pub below: BelowArgs,

    #[command(flatten)]
    pub fleet: FleetArgs,

    /// The output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = ExplainFormat::Text)]
    pub output: ExplainFormat,
}

/// Files and directories, with the name of their cluster, if the user names clusters.
type ClusterInputs = (Option<String>, Vec<PathBuf>);

impl Assess {
    pub(crate) fn inputs(&self) -> Result<Vec<ClusterInputs>, String> {
        if self.clusters.is_empty() {
            return Ok(vec![(None, self.objects.inputs("assess")?)]);
        }
        clusters::refuse_duplicates(self.clusters.iter().map(|cluster| &*cluster.name))?;
        let inputs = self.clusters.iter().cloned();
        Ok(inputs.map(|ClusterDirectory { name, path }| (Some(name), vec![path])).collect())
    }
}

/// Objects from files, and the rules to assess them with.
#[derive(Debug, Args)]
pub struct Objects {
    /// File or directory with objects, or - for stdin; same as the argument FILE
    #[arg(short = 'f', long = "filename", value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub named: Vec<PathBuf>,

    /// File or directory with objects, or - for stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,

    /// Assess as of this time, e.g. 2026-11-14T12:00:00Z; defaults to now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub now: Option<Timestamp>,

    /// Use only the generic rules, not the built-in rules of each kind
    #[arg(long)]
    pub no_builtin: bool,

    /// Use these rules before the built-in rules: HealthRules, or Argo CD's GROUP/KIND/health.lua
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub rules: Vec<PathBuf>,
}

impl Objects {
    /// The files of a command, which defaults to stdin. Fails if that is a terminal.
    pub(crate) fn inputs(&self, command: &str) -> Result<Vec<PathBuf>, String> {
        let inputs: Vec<_> = self.named.iter().chain(&self.files).cloned().collect();
        if !inputs.is_empty() {
            return Ok(inputs);
        }
        if stdin().is_terminal() {
            return Err(format!(
                "no input. Give files or directories, or pipe objects in: kubectl get pods -o yaml | {} {command} -",
                program()
            ));
        }
        Ok(vec![PathBuf::from("-")])
    }

    pub(crate) fn context<'a>(&self, rules: &'a UserRules) -> Context<'a> {
        Context {
            builtin: !self.no_builtin,
            rules: Some(rules),
            ..Context::at(self.now.unwrap_or_else(Timestamp::now))
        }
    }
}

fn time(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "use a time such as 2026-11-14T12:00:00Z".to_owned())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AssessFormat {
    /// Text, the worst first, cut to the width of the terminal
    Table,
    /// Text with reasons and rules, not cut
    Wide,
    /// A JSON array, in the order of the input
    Json,
    /// A YAML list, in the order of the input
    Yaml,
    /// The names of the objects, one per line
    Name,
}

/// Of commands that print a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// Text
    Text,
    /// A JSON array, in the order of the input
    Json,
    /// A YAML list, in the order of the input
    Yaml,
}

/// Of commands that print one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ObjectFormat {
    /// Text
    Text,
    /// A JSON object
    Json,
    /// A YAML document
    Yaml,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dialect {
    /// Bellwether
    Native,
    /// kstatus (cli-utils 0.37.2, and its newer rule for suspended Jobs)
    Kstatus,
    /// The checks that are built into Argo CD 3.6
    Argo,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CrdFormat {
    /// A YAML document for each kind
    Yaml,
    /// A single JSON List
    Json,
    /// The names, one per line
    Name,
}
