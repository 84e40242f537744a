//! The commands and their flags: the one definition from which parsing, help and completions come.

mod groups;
mod rollups;

pub use groups::{Adopt, Demo, Goal, GroupFormat, Lint, PlaceArgs, SceneArgs, Status, Tree, Wait, Whose};
pub use rollups::Rollups;

use std::{
    io::{IsTerminal as _, stdin},
    path::PathBuf,
};

use bellwether_health::{Context, user::UserRules};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use jiff::Timestamp;

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
    /// See what Bellwether does, without any cluster
    ///
    /// Tells a story in the terminal: an application is installed, rolled out, broken, repaired, and so is the platform below
    /// it. All of it happens in a cluster in memory, and what is shown comes from the same engine that looks after real ones.
    #[command(after_help = groups::DEMO_HELP)]
    Demo(Demo),

    /// Say how Applications and Rollups are, the worst first, or all about one
    ///
    /// Works with or without a controller in the cluster: what belongs together is found and judged here and now.
    #[command(after_help = groups::STATUS_HELP)]
    Status(Status),

    /// Show an Application or a Rollup with its members and all that they own
    ///
    /// Follows the references to owners: from a Deployment to its ReplicaSets to their Pods. Only what is not ready is
    /// opened.
    #[command(after_help = groups::TREE_HELP)]
    Tree(Tree),

    /// Wait until an Application or a Rollup is ready
    ///
    /// Shows how far along its members are: as bars on a terminal, and a line for each change elsewhere. The last line is
    /// the answer.
    #[command(after_help = groups::WAIT_HELP)]
    Wait(Wait),

    /// Say to which Application an object belongs, and to which Rollups
    #[command(after_help = groups::WHOSE_HELP)]
    Whose(Whose),

    /// Make an Application of objects that exist already
    #[command(after_help = groups::ADOPT_HELP)]
    Adopt(Adopt),

    /// Say what is wrong with objects of Bellwether's kinds, and where, before they are applied
    #[command(after_help = groups::LINT_GROUPS_HELP)]
    Lint(Lint),

    /// Say how objects from files are, the worst first
    ///
    /// Reads YAML of many documents, JSON, JSON lines and lists, and says of every object whether it is ready, why not, for
    /// how long and how far along. What is no Kubernetes object is an error, and the rest is judged all the same.
    #[command(after_help = ASSESS_HELP)]
    Assess(Assess),

    /// Say how the verdict on an object came about
    ///
    /// For an object of a cluster, or for every object of files: how it is, since when, which rule says so, the fields that the rule read with their values, and
    /// what time alone will change.
    #[command(after_help = EXPLAIN_HELP)]
    Explain(Explain),

    /// Check and try the rules that you write for your own kinds
    #[command(subcommand)]
    Rules(Rules),

    /// Keep the status of Applications true in a cluster
    ///
    /// Watches the kinds that Applications name, judges their objects, and writes what they come to into the status of each
    /// Application. It needs the CustomResourceDefinitions in the cluster. Several may run: one leads, the others stand by
    /// with all they need to take over.
    #[command(after_help = CONTROLLER_HELP)]
    Controller(Box<Controller>),

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

const CONTROLLER_HELP: &str = "Examples:
  bellwether crds | kubectl apply --server-side -f - && bellwether controller
  bellwether controller --context staging --watch-namespace shop --leader-elect=false

Every flag can also be given as an environment variable, such as BELLWETHER_WATCH_NAMESPACE.
It serves /healthz, /readyz and /metrics; how a group is, it tells on
/readyz/applications/NAMESPACE/NAME and /readyz/rollups/NAME. It ends on SIGINT and SIGTERM.";

/// The flags of `controller`.
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

Exit codes: 0 all are ready, 1 something is not, 2 something could not be read.";

const EXPLAIN_HELP: &str = "Examples:
  bellwether explain deploy/web -n shop
  bellwether explain pod/web-0 --from dump/
  kubectl get deploy web -o yaml | bellwether explain -
  bellwether explain -f web.yaml -o json

Exit codes: 0 all are ready, 1 something is not, 2 something could not be read.";

/// What can be done with rules.
#[derive(Debug, Subcommand)]
pub enum Rules {
    /// Say what is wrong with rules, and where
    ///
    /// Reads HealthRules from YAML, and Argo CD's health.lua from directories named GROUP/KIND, and checks them as the API
    /// server and the controller do: fields, expressions, scripts, and whether two rules are for the same kind.
    #[command(after_help = LINT_HELP)]
    Lint(RuleFiles),

    /// Try rules on objects whose health is known
    ///
    /// Runs every suite of tests in a directory: Argo CD's health_test.yaml as they are, and files of your own that end in
    /// _test.yaml, each with a list of objects and what is expected of them.
    #[command(after_help = TEST_HELP)]
    Test(RuleTests),
}

const LINT_HELP: &str = "Examples:
  bellwether rules lint rules/
  bellwether rules lint widgets.yaml -o json

Exit codes: 0 all are right, 1 something is wrong with a rule, 2 something could not be read.";

const TEST_HELP: &str = "Examples:
  bellwether rules test rules/
  bellwether rules test argo-cd/resource_customizations

Exit codes: 0 all cases pass, 1 a case fails, 2 something could not be read.";

/// The arguments of `bellwether rules lint`.
#[derive(Debug, Args)]
pub struct RuleFiles {
    /// A file with rules, or a directory of such files
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,

    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t = ExplainFormat::Text)]
    pub output: ExplainFormat,
}

/// The arguments of `bellwether rules test`.
#[derive(Debug, Args)]
pub struct RuleTests {
    /// A directory with rules and their tests, or one of its suites
    #[arg(required = true, value_name = "DIR", value_hint = ValueHint::AnyPath)]
    pub directories: Vec<PathBuf>,

    /// Judge as of this time, such as 2026-11-14T12:00:00Z, instead of now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub now: Option<Timestamp>,

    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t = ExplainFormat::Text)]
    pub output: ExplainFormat,
}

/// The arguments of `bellwether assess`.
#[derive(Debug, Args)]
pub struct Assess {
    /// The objects.
    #[command(flatten)]
    pub objects: Objects,

    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t = AssessFormat::Table)]
    pub output: AssessFormat,

    /// In whose words: kstatus and Argo CD judge some objects differently
    #[arg(long, value_enum, default_value_t = Dialect::Native)]
    pub dialect: Dialect,

    /// Show the fields that each verdict rests on
    #[arg(long)]
    pub explain: bool,

    /// List what is ready too, however much it is
    #[arg(long)]
    pub all: bool,
}

/// The arguments of `bellwether explain`.
#[derive(Debug, Args)]
#[command(mut_arg("files", |files| files.help(
    "An object of a cluster as KIND/NAME, such as deploy/web; or a file with objects, a directory of such files, or - for \
     standard input"
)))]
pub struct Explain {
    /// The objects.
    #[command(flatten)]
    pub objects: Objects,

    /// Where to look for those that are named.
    #[command(flatten)]
    pub place: PlaceArgs,

    /// How to print the answer
    #[arg(short, long, value_enum, default_value_t = ExplainFormat::Text)]
    pub output: ExplainFormat,
}

/// Objects from files, and what their verdicts depend on besides them.
#[derive(Debug, Args)]
pub struct Objects {
    /// The same as FILE, as kubectl has it
    #[arg(short = 'f', long = "filename", value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub named: Vec<PathBuf>,

    /// A file with objects, a directory of such files, or - for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,

    /// Judge as of this time, such as 2026-11-14T12:00:00Z, instead of now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub now: Option<Timestamp>,

    /// Judge by the generic rules alone, without those for particular kinds
    #[arg(long)]
    pub no_builtin: bool,

    /// Judge by the rules in this file or directory first: HealthRules, or Argo CD's GROUP/KIND/health.lua
    #[arg(long, value_name = "DIR", value_hint = ValueHint::AnyPath)]
    pub rules: Vec<PathBuf>,
}

impl Objects {
    /// Where the objects are, for a command of this name.
    pub(crate) fn inputs(&self, command: &str) -> Result<Vec<PathBuf>, String> {
        let inputs: Vec<_> = self.named.iter().chain(&self.files).cloned().collect();
        if !inputs.is_empty() {
            return Ok(inputs);
        }
        if stdin().is_terminal() {
            return Err(format!(
                "there is nothing to judge: name files or directories, or pipe objects in, as in kubectl get pods -o yaml | \
                 bellwether {command} -"
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
    text.parse().map_err(|_| "a time looks like 2026-11-14T12:00:00Z".to_owned())
}

/// The formats of `bellwether assess`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AssessFormat {
    /// For people: the worst first, cut to the width of the terminal
    Table,
    /// The same with reasons and rules, and nothing left out
    Wide,
    /// An array, in the order of the input
    Json,
    /// The same as YAML
    Yaml,
    /// The names of the objects, one on a line
    Name,
}

/// The formats of `bellwether explain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainFormat {
    /// For people
    Text,
    /// An array, in the order of the input
    Json,
    /// The same as YAML
    Yaml,
}

/// In whose words objects are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Dialect {
    /// Our own
    Native,
    /// Those of kstatus (cli-utils 0.37.2, and its newer rule for suspended Jobs)
    Kstatus,
    /// Those of the checks that are built into Argo CD 3.6
    Argo,
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
