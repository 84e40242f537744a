//! The commands and their flags. Doc comments are the help that users read.

mod groups;
mod rollups;

pub use groups::{Adopt, Demo, Goal, GroupFormat, InputArgs, Lint, LocationArgs, Status, Tree, Wait, Whose};
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

/// One trustworthy status for many Kubernetes objects.
///
/// Bellwether shows the health of an application, of the components of an operator, or of a single object:
/// whether it is ready, why not, since when, and its progress.
#[derive(Debug, Parser)]
#[command(
    name = "bellwether",
    version,
    arg_required_else_help = true,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "Exit codes: 0 success, 1 failure, 2 invalid usage. The help of each command has more."
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show what Bellwether does, without a cluster
    ///
    /// Runs a story in the terminal: an application is installed, updated, broken and repaired, and so is the
    /// platform below it. The cluster is simulated; the engine is the one that the controller runs.
    #[command(after_help = groups::DEMO_HELP)]
    Demo(Demo),

    /// Show the health of Applications and Rollups
    ///
    /// Reads the objects and assesses them. No controller needs to run in the cluster.
    #[command(after_help = groups::STATUS_HELP)]
    Status(Status),

    /// Show an Application or Rollup with its members and the objects that they own
    ///
    /// Follows owner references: from a Deployment to its ReplicaSets to their Pods. Ready objects are only
    /// counted, unless --all is given.
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

    /// Create an Application from existing objects
    #[command(after_help = groups::ADOPT_HELP)]
    Adopt(Adopt),

    /// Validate objects of Bellwether's kinds before they are applied
    #[command(after_help = groups::LINT_GROUPS_HELP)]
    Lint(Lint),

    /// Show the health of objects from files or stdin
    ///
    /// Reads YAML, JSON, JSON lines and lists. A document that is not a Kubernetes object is an error; the
    /// others are assessed nevertheless.
    #[command(after_help = ASSESS_HELP)]
    Assess(Assess),

    /// Explain the health verdict of an object
    ///
    /// For an object in the cluster, or for every object in files: its state and since when, the rule that
    /// was applied, the fields that the rule has read, and how the verdict will change with time alone.
    #[command(after_help = EXPLAIN_HELP)]
    Explain(Explain),

    /// Validate and test health rules for custom kinds
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
        after_help = "Examples:\n  bellwether crds | kubectl apply --server-side -f -\n  bellwether crds -o name"
    )]
    Crds {
        /// The output format
        #[arg(short, long, value_enum, default_value_t = CrdFormat::Yaml)]
        output: CrdFormat,
    },

    /// Print a completion script for a shell
    ///
    /// Load it in the current shell, or write it to the directory of completions of the shell.
    #[command(
        after_help = "Examples:\n  source <(bellwether completions bash)\n  bellwether completions fish > \
                      ~/.config/fish/completions/bellwether.fish"
    )]
    Completions {
        /// The shell
        shell: Shell,
    },
}

const CONTROLLER_HELP: &str = "Examples:
  bellwether crds | kubectl apply --server-side -f - && bellwether controller
  bellwether controller --context staging --watch-namespace shop --leader-elect=false

Every flag can also be given as an environment variable, e.g. BELLWETHER_WATCH_NAMESPACE.
Serves /healthz, /readyz and /metrics, and the health of a group on
/readyz/applications/NAMESPACE/NAME and /readyz/rollups/NAME. Ends on SIGINT and SIGTERM.";

#[derive(Debug, Args)]
pub struct Controller {
    /// Kubeconfig of the cluster; by default as kubectl finds it, and in a Pod the service account
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, env = "BELLWETHER_KUBECONFIG", hide_env = true)]
    pub kubeconfig: Option<PathBuf>,

    /// Context in the kubeconfig
    #[arg(long, value_name = "NAME", env = "BELLWETHER_CONTEXT", hide_env = true)]
    pub context: Option<String>,

    /// Namespace of the controller's Lease; by default that of the Pod, otherwise bellwether-system
    #[arg(long, value_name = "NAME", env = "BELLWETHER_NAMESPACE", hide_env = true)]
    pub namespace: Option<String>,

    /// Watch this namespace only; permissions in this namespace are then sufficient
    #[arg(long, value_name = "NAME", env = "BELLWETHER_WATCH_NAMESPACE", hide_env = true)]
    pub watch_namespace: Option<String>,

    /// Address to serve probes and metrics on; port 0 picks a free port and logs it
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:8080",
        env = "BELLWETHER_LISTEN",
        hide_env = true
    )]
    pub listen: String,

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

    /// Manage the Applications of app.k8s.io, too, if the cluster serves them
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

    /// The reports about Rollups.
    #[command(flatten)]
    pub rollups: Rollups,

    /// Log level: error, warn, info, debug or trace; also by module, such as info,bellwether_kube_io=debug
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "BELLWETHER_LOG", hide_env = true)]
    pub log: String,

    /// Log format
    #[arg(long, value_enum, default_value_t = LogFormat::Text, env = "BELLWETHER_LOG_FORMAT", hide_env = true)]
    pub log_format: LogFormat,
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text, one line for each event
    Text,
    /// JSON, one object for each line
    Json,
}

const ASSESS_HELP: &str = "Examples:
  kubectl get deploy,pods -A -o yaml | bellwether assess -
  bellwether assess -f dump/ -o json
  bellwether assess web.yaml --explain

Exit codes: 0 all objects are Ready, 1 an object is not, 2 not all could be read.";

const EXPLAIN_HELP: &str = "Examples:
  bellwether explain deploy/web -n shop
  bellwether explain pod/web-0 --from dump/
  kubectl get deploy web -o yaml | bellwether explain -
  bellwether explain -f web.yaml -o json

Exit codes: 0 all objects are Ready, 1 an object is not, 2 not all could be read.";

#[derive(Debug, Subcommand)]
pub enum Rules {
    /// Validate health rules
    ///
    /// Reads HealthRules from YAML, and Argo CD's health.lua from directories named GROUP/KIND. Checks what
    /// the API server and the controller check: fields, expressions, scripts, and two rules for the same
    /// kind.
    #[command(after_help = LINT_HELP)]
    Lint(RuleFiles),

    /// Test health rules against example objects
    ///
    /// Runs every test suite in a directory: Argo CD's health_test.yaml unchanged, and files that end in
    /// _test.yaml, each with a list of objects and their expected health.
    #[command(after_help = TEST_HELP)]
    Test(RuleTests),
}

const LINT_HELP: &str = "Examples:
  bellwether rules lint rules/
  bellwether rules lint widgets.yaml -o json

Exit codes: 0 all rules are valid, 1 a rule is invalid, 2 not all could be read.";

const TEST_HELP: &str = "Examples:
  bellwether rules test rules/
  bellwether rules test argo-cd/resource_customizations

Exit codes: 0 all cases pass, 1 a case fails, 2 not all could be read.";

#[derive(Debug, Args)]
pub struct RuleFiles {
    /// A file with rules, or a directory of such files
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,

    /// The output format
    #[arg(short, long, value_enum, default_value_t = ExplainFormat::Text)]
    pub output: ExplainFormat,
}

#[derive(Debug, Args)]
pub struct RuleTests {
    /// A directory with rules and their tests, or one of its suites
    #[arg(required = true, value_name = "DIR", value_hint = ValueHint::AnyPath)]
    pub directories: Vec<PathBuf>,

    /// Assess as of this time, e.g. 2026-11-14T12:00:00Z; defaults to now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub now: Option<Timestamp>,

    /// The output format
    #[arg(short, long, value_enum, default_value_t = ExplainFormat::Text)]
    pub output: ExplainFormat,
}

#[derive(Debug, Args)]
pub struct Assess {
    #[command(flatten)]
    pub objects: Objects,

    /// The output format
    #[arg(short, long, value_enum, default_value_t = AssessFormat::Table)]
    pub output: AssessFormat,

    /// The tool whose verdicts to return; kstatus and Argo CD differ for some objects
    #[arg(long, value_enum, default_value_t = Dialect::Native)]
    pub dialect: Dialect,

    /// Show the fields that each verdict is based on
    #[arg(long)]
    pub explain: bool,

    /// List Ready objects even if there are many
    #[arg(long)]
    pub all: bool,
}

#[derive(Debug, Args)]
#[command(mut_arg("files", |files| files.help(
    "An object in the cluster as KIND/NAME, e.g. deploy/web; or a file with objects, a directory of such files, or - for \
     standard input"
)))]
pub struct Explain {
    #[command(flatten)]
    pub objects: Objects,

    #[command(flatten)]
    pub location: LocationArgs,

    /// The output format
    #[arg(short, long, value_enum, default_value_t = ExplainFormat::Text)]
    pub output: ExplainFormat,
}

/// Objects from files, and the rules to assess them with.
#[derive(Debug, Args)]
pub struct Objects {
    /// The same as FILE, for users of kubectl
    #[arg(short = 'f', long = "filename", value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub named: Vec<PathBuf>,

    /// A file with objects, a directory of such files, or - for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,

    /// Assess as of this time, e.g. 2026-11-14T12:00:00Z; defaults to now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub now: Option<Timestamp>,

    /// Use only generic rules, and none for particular kinds
    #[arg(long)]
    pub no_builtin: bool,

    /// Use the rules in this file or directory first: HealthRules, or Argo CD's GROUP/KIND/health.lua
    #[arg(long, value_name = "DIR", value_hint = ValueHint::AnyPath)]
    pub rules: Vec<PathBuf>,
}

impl Objects {
    /// The files of a command, which defaults to standard input. Fails if that is a terminal.
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
    text.parse().map_err(|_| "give a time such as 2026-11-14T12:00:00Z".to_owned())
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
