//! Arguments of `bellwether query`.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum, ValueHint};
use jiff::Timestamp;

use super::{NamedClusterArgs, groups::duration, time};

pub(super) const QUERY_HELP: &str = "Examples:
  # Count the Deployments of three clusters by health
  bellwether query --cluster a=a.yaml --cluster b=all.yaml:b \\
    --cluster lab=dump/ \\
    'SELECT propagation.health, COUNT(*) FROM deployments GROUP BY 1'

  # List the clusters where a Deployment is not fully available
  bellwether query -n shop --cluster a=a.yaml --cluster b=dump/ \\
    'SELECT inventory.name FROM deployments/web
     WHERE status.availableReplicas < spec.replicas'

  # Evaluate StatusCollectors for each Deployment with a label
  bellwether query collectors/ deployments -l app=web --cluster b=dump/

  # Ask a running controller for all its clusters
  kubectl -n bellwether-system port-forward deploy/bellwether 8080 &
  BELLWETHER_TOKEN=$(kubectl create token viewer) \\
    bellwether query --controller http://127.0.0.1:8080 -n shop \\
    'SELECT inventory.name, propagation.health FROM deployments/web'

  # Print the StatusCollector that a statement means
  bellwether query --show \\
    'SELECT status.phase, COUNT(*) FROM pods GROUP BY status.phase'

Exit codes: 0 answered, 2 invalid usage or an invalid collector, 3 a cluster could not be read, an object was not found, \
or a row could not be evaluated.";

#[derive(Debug, Args)]
pub struct Query {
    /// A SELECT statement; or a file or directory with StatusCollectors, or - for stdin
    #[arg(value_name = "SELECT | FILE")]
    pub query: String,

    /// The objects, e.g. deployments or deployments/web; a statement can name them after FROM instead
    #[arg(value_name = "KIND[/NAME]")]
    pub objects: Vec<String>,

    #[command(flatten)]
    pub clusters: NamedClusterArgs,

    /// Ask the controller at this address, which reads the objects that BindingPolicies bind
    ///
    /// It needs no kubeconfig: the controller answers for all its clusters from memory, as far as the user of
    /// the token may read the objects in the hub. To reach a controller in a cluster, run kubectl port-forward.
    #[arg(
        long,
        value_name = "URL",
        conflicts_with_all = [
            "clusters", "cluster_labels", "from", "kubeconfig", "context", "rules", "now", "request_timeout",
        ]
    )]
    pub controller: Option<String>,

    /// A file with the bearer token for --controller; defaults to the environment variable BELLWETHER_TOKEN
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "controller")]
    pub token_file: Option<PathBuf>,

    /// The namespace; defaults to that of the first context, and to all if only files are read, or with --controller
    #[arg(short, long, value_name = "NAME", conflicts_with = "all_namespaces")]
    pub namespace: Option<String>,

    /// Read the objects of all namespaces
    #[arg(short = 'A', long)]
    pub all_namespaces: bool,

    /// Read only objects with these labels, e.g. app=web,tier!=test
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,

    /// The kubeconfig of the hub, whose objects are `obj`; without --cluster, of the only cluster
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "from")]
    pub kubeconfig: Option<PathBuf>,

    /// The kubeconfig context of the hub; without --cluster, of the only cluster
    #[arg(long, value_name = "NAME", conflicts_with = "from")]
    pub context: Option<String>,

    /// Read the objects of the hub from this file or directory; can be repeated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub from: Vec<PathBuf>,

    /// How long to wait for a response of an API server
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = timeout)]
    pub request_timeout: Duration,

    /// Print at most this many rows, instead of the limit of the statement or the collector
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,

    /// Skip this many rows
    #[arg(long, value_name = "NUMBER")]
    pub offset: Option<u64>,

    /// Print the StatusCollectors as YAML for kubectl apply, and read no cluster
    #[arg(long)]
    pub show: bool,

    /// Assess objects with these rules before the built-in rules: HealthRules, or Argo CD's GROUP/KIND/health.lua
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub rules: Vec<PathBuf>,

    /// Assess objects as of this time, e.g. 2026-11-14T12:00:00Z; defaults to now
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub now: Option<Timestamp>,

    /// The output format
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = QueryFormat::Table)]
    pub output: QueryFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum QueryFormat {
    /// Text; on a terminal cut to its width, with bars for the counts of groups
    Table,
    /// Text, not cut
    Wide,
    /// A JSON array with one entry for each result
    Json,
    /// A YAML list with one entry for each result
    Yaml,
    /// Comma-separated values with a header (RFC 4180)
    Csv,
    /// The values of the first column, one per line
    Name,
}

pub(super) fn timeout(text: &str) -> Result<Duration, String> {
    // As kubectl takes it: a number is of seconds.
    let is_number = !text.is_empty() && text.chars().all(|char| char.is_ascii_digit());
    let text = if is_number { format!("{text}s") } else { text.to_owned() };
    let within: Duration = duration(&text)?.try_into().map_err(|_| "use a duration such as 5s".to_owned())?;
    if within.is_zero() { Err("must be more than 0s".to_owned()) } else { Ok(within) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts() {
        assert_eq!(timeout("5"), Ok(Duration::from_secs(5)));
        assert_eq!(timeout("1m30s"), Ok(Duration::from_secs(90)));
        for invalid in ["0s", "", "x", "-1s"] {
            assert!(timeout(invalid).is_err(), "{invalid}");
        }
    }
}
