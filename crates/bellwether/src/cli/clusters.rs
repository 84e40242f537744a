//! Clusters that a command line names: `--cluster NAME=KUBECONFIG[:CONTEXT]` or `--cluster NAME=DIR`.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bellwether_engine::ClusterMetadata;
use bellwether_inspect::fleet::{ClusterToRead, ReadFrom};
use bellwether_kube_io::{client::ClientOptions, inventory::KubeconfigCluster};
use clap::{Args, ValueHint};
use jiff::SignedDuration;

use super::groups::duration;
use crate::schema::{NAME_RULE, is_name};

/// The flags of the controller about the clusters that it reads.
#[derive(Debug, Args)]
pub struct ClusterArgs {
    /// Also read this cluster, from a kubeconfig file; can be repeated, or separated by semicolons
    ///
    /// Without CONTEXT, its current-context. The file is read again when it changes. Clusters can also be
    /// registered at run time, in Secrets: see the documentation.
    #[arg(
        long = "cluster",
        value_name = "NAME=KUBECONFIG[:CONTEXT]",
        value_parser = cluster,
        value_delimiter = ';',
        conflicts_with = "watch_namespace",
        env = "BELLWETHER_CLUSTERS",
        hide_env = true
    )]
    pub clusters: Vec<ClusterArgument>,

    /// The labels of a cluster of --cluster, for the clusterSelectors of BindingPolicies; can be repeated
    #[arg(
        long = "cluster-labels",
        value_name = "NAME=KEY=VALUE,...",
        value_parser = labels,
        value_delimiter = ';',
        requires = "clusters",
        env = "BELLWETHER_CLUSTER_LABELS",
        hide_env = true
    )]
    pub labels: Vec<ClusterLabels>,

    /// Also read the clusters of ClusterProfiles, with the exec plugins in this file
    ///
    /// The file has the format of cluster-inventory-api: {"providers": [{"name": "…", "execConfig": {"command":
    /// "…"}}]}. A ClusterProfile chooses among them by name.
    #[arg(
        long,
        value_name = "FILE",
        value_hint = ValueHint::FilePath,
        conflicts_with = "watch_namespace",
        env = "BELLWETHER_CLUSTER_PROFILE_PROVIDERS",
        hide_env = true
    )]
    pub cluster_profile_providers: Option<PathBuf>,

    /// Accept insecure-skip-tls-verify and http in Secrets and ClusterProfiles; credentials can be stolen then
    #[arg(
        long,
        value_name = "true|false",
        default_value_t = false,
        num_args = 0..=1,
        default_missing_value = "true",
        action = clap::ArgAction::Set,
        env = "BELLWETHER_INSECURE_CLUSTERS",
        hide_env = true
    )]
    pub insecure_clusters: bool,

    /// How many clusters may connect at once, e.g. at the start
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 20,
        value_parser = clap::value_parser!(u16).range(1..),
        env = "BELLWETHER_MAX_CONNECTING_CLUSTERS",
        hide_env = true
    )]
    pub max_connecting_clusters: u16,

    /// How long a cluster may send nothing until it is probed
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "5s",
        value_parser = probe_interval,
        env = "BELLWETHER_PROBE_INTERVAL",
        hide_env = true
    )]
    pub probe_interval: Duration,
}

impl ClusterArgs {
    pub(crate) fn kubeconfigs(&self) -> Result<Vec<KubeconfigCluster>, String> {
        let mut names = BTreeSet::new();
        for ClusterArgument { name, target } in &self.clusters {
            if !names.insert(name) {
                return Err(format!("duplicate --cluster {name}. Give each cluster its own name"));
            }
            if let ClusterTarget::Directory(path) = target {
                let path = path.display();
                return Err(format!(
                    "invalid --cluster {name}={path}: a directory. Name a kubeconfig file: the controller reads clusters, \
                     not manifests"
                ));
            }
        }
        let mut labels = BTreeMap::<_, BTreeMap<_, _>>::new();
        for ClusterLabels { cluster, labels: more } in &self.labels {
            if !names.contains(cluster) {
                return Err(format!(
                    "--cluster-labels {cluster}: unknown cluster. Add --cluster {cluster}=KUBECONFIG"
                ));
            }
            labels.entry(cluster).or_default().extend(more.clone());
        }
        let kubeconfig = |ClusterArgument { name, target }: &ClusterArgument| match target {
            ClusterTarget::Directory(_) => None,
            ClusterTarget::Kubeconfig { path, context } => {
                let labels = labels.remove(name).unwrap_or_default();
                let metadata = ClusterMetadata { labels, ..ClusterMetadata::default() };
                Some(KubeconfigCluster {
                    name: name.clone(),
                    path: path.clone(),
                    context: context.clone(),
                    metadata,
                })
            }
        };
        Ok(self.clusters.iter().filter_map(kubeconfig).collect())
    }
}

/// Clusters that a command reads once.
#[derive(Clone, Debug, Args)]
pub struct NamedClusterArgs {
    /// Read this cluster: NAME=KUBECONFIG, NAME=KUBECONFIG:CONTEXT or NAME=DIR; can be repeated
    #[arg(long = "cluster", value_name = "NAME=…", value_parser = cluster)]
    pub clusters: Vec<ClusterArgument>,

    /// Labels of a cluster in the inventory: NAME=KEY=VALUE,…; can be repeated
    #[arg(long, value_name = "NAME=KEY=VALUE,…", value_parser = labels, requires = "clusters")]
    pub cluster_labels: Vec<ClusterLabels>,
}

impl NamedClusterArgs {
    pub(crate) fn to_read(&self) -> Result<Vec<ClusterToRead>, String> {
        let Self { clusters, cluster_labels } = self;
        let mut labels: BTreeMap<&str, BTreeMap<String, String>> = BTreeMap::new();
        for given in cluster_labels {
            if !clusters.iter().any(|cluster| cluster.name == given.cluster) {
                return Err(format!(
                    "--cluster-labels for unknown cluster {:?}. Add --cluster {}=…",
                    given.cluster, given.cluster
                ));
            }
            labels.entry(&given.cluster).or_default().extend(given.labels.clone());
        }
        refuse_duplicates(clusters.iter().map(|cluster| &*cluster.name))?;
        let mut named: Vec<ClusterToRead> = Vec::new();
        for cluster in clusters {
            let from = match &cluster.target {
                ClusterTarget::Kubeconfig { path, context } => ReadFrom::ApiServer(ClientOptions {
                    kubeconfig: Some(path.clone()),
                    context: context.clone(),
                }),
                ClusterTarget::Directory(path) => ReadFrom::Files(vec![path.clone()]),
            };
            let labels = labels.get(cluster.name.as_str()).cloned().unwrap_or_default();
            named.push(ClusterToRead { name: Arc::from(&*cluster.name), labels, from });
        }
        Ok(named)
    }
}

pub(super) fn refuse_duplicates<'n>(names: impl Iterator<Item = &'n str>) -> Result<(), String> {
    let mut known = BTreeSet::new();
    for name in names {
        if !known.insert(name) {
            return Err(format!("duplicate --cluster {name:?}: use different names"));
        }
    }
    Ok(())
}

/// A cluster whose objects are in a directory of manifests.
#[derive(Clone, Debug)]
pub struct ClusterDirectory {
    pub name: String,
    pub path: PathBuf,
}

/// A parser of values for clap.
pub(super) fn directory(text: &str) -> Result<ClusterDirectory, String> {
    let ClusterArgument { name, target } = cluster(text)?;
    match target {
        ClusterTarget::Directory(path) => Ok(ClusterDirectory { name, path }),
        ClusterTarget::Kubeconfig { path, .. } => Err(format!(
            "{} is not a directory. For objects in an API server, use kubectl get -o yaml",
            path.display()
        )),
    }
}

/// The value of one `--cluster-labels`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterLabels {
    pub cluster: String,
    pub labels: BTreeMap<String, String>,
}

pub(super) fn labels(text: &str) -> Result<ClusterLabels, String> {
    let usage = || "use NAME=KEY=VALUE,KEY=VALUE, such as east=region=eu,tier=edge".to_owned();
    let (cluster, list) = text.split_once('=').ok_or_else(usage)?;
    let mut labels = BTreeMap::new();
    for label in list.split(',') {
        let (key, value) = label.split_once('=').ok_or_else(usage)?;
        let is_legal = |text: &str, more: &str| {
            text.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c) || more.contains(c))
        };
        if key.is_empty() || !is_legal(key, "/") || value.len() > 63 || !is_legal(value, "") {
            return Err(format!("invalid label {label:?}: {}", usage()));
        }
        labels.insert(key.to_owned(), value.to_owned());
    }
    Ok(ClusterLabels { cluster: cluster.to_owned(), labels })
}

fn probe_interval(text: &str) -> Result<Duration, String> {
    let interval: SignedDuration = duration(text)?;
    let interval = Duration::try_from(interval).unwrap_or_default();
    let range = Duration::from_secs(1)..=Duration::from_mins(10);
    if range.contains(&interval) { Ok(interval) } else { Err("use a duration from 1s to 10m".to_owned()) }
}

/// The value of one `--cluster`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterArgument {
    pub name: String,
    pub target: ClusterTarget,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterTarget {
    Kubeconfig {
        path: PathBuf,
        /// `None` for the current-context.
        context: Option<String>,
    },
    /// Of manifests.
    Directory(PathBuf),
}

/// A parser of values for clap.
///
/// The first colon ends the path of a kubeconfig, because names of contexts contain colons more often than
/// paths do. A path that exists as it is written has no context.
pub fn cluster(text: &str) -> Result<ClusterArgument, String> {
    let Some((name, target)) = text.split_once('=') else {
        return Err("use NAME=KUBECONFIG, NAME=KUBECONFIG:CONTEXT or NAME=DIR".to_owned());
    };
    if !is_name(name) {
        return Err(format!("invalid name {name:?}: {NAME_RULE}"));
    }
    Ok(ClusterArgument { name: name.to_owned(), target: target_of(target)? })
}

fn target_of(text: &str) -> Result<ClusterTarget, String> {
    let whole = Path::new(text);
    if whole.is_dir() {
        return Ok(ClusterTarget::Directory(whole.to_owned()));
    }
    let (path, context) = match text.split_once(':') {
        Some((path, context)) if !whole.exists() => (path, Some(context)),
        _ => (text, None),
    };
    match (path, context) {
        ("", _) => Err("path missing after '='".to_owned()),
        (path, Some("")) => Err(format!("context missing after {path}:")),
        (path, Some(_)) if Path::new(path).is_dir() => {
            Err(format!("{path} is a directory. Leave out the context, or name a kubeconfig file"))
        }
        (path, context) => {
            Ok(ClusterTarget::Kubeconfig { path: path.into(), context: context.map(str::to_owned) })
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    const DIRECTORY: &str = env!("CARGO_MANIFEST_DIR");

    #[rstest]
    #[case("east=/etc/east.yaml", "east", "/etc/east.yaml", None)]
    #[case("east=/etc/east.yaml:admin", "east", "/etc/east.yaml", Some("admin"))]
    #[case(
        "eu.east-1=conf:arn:aws:eks:eu-1:42:cluster/e=1",
        "eu.east-1",
        "conf",
        Some("arn:aws:eks:eu-1:42:cluster/e=1")
    )]
    #[case(&format!("east={FILE}"), "east", FILE, None)]
    #[case(&format!("east={FILE}:admin"), "east", FILE, Some("admin"))]
    fn kubeconfigs(
        #[case] text: &str,
        #[case] name: &str,
        #[case] path: &str,
        #[case] context: Option<&str>,
    ) {
        let target = ClusterTarget::Kubeconfig { path: path.into(), context: context.map(str::to_owned) };
        assert_eq!(cluster(text), Ok(ClusterArgument { name: name.to_owned(), target }));
    }

    #[test]
    fn a_directory() {
        let target = ClusterTarget::Directory(DIRECTORY.into());
        let expected = ClusterArgument { name: "east".to_owned(), target };
        assert_eq!(cluster(&format!("east={DIRECTORY}")), Ok(expected));
    }

    fn arguments(clusters: &[&str], cluster_labels: &[&str]) -> ClusterArgs {
        ClusterArgs {
            clusters: clusters.iter().map(|text| cluster(text).unwrap()).collect(),
            labels: cluster_labels.iter().map(|text| labels(text).unwrap()).collect(),
            cluster_profile_providers: None,
            insecure_clusters: false,
            max_connecting_clusters: 20,
            probe_interval: Duration::from_secs(5),
        }
    }

    #[test]
    fn labels_of_clusters_are_merged() {
        let both = arguments(&["east=e", "west=w:c"], &["east=region=eu,tier=edge", "east=tier=,a.io/b=c"]);
        let both = both.kubeconfigs().unwrap();
        let labels = |index: usize| -> Vec<_> {
            both[index].metadata.labels.iter().map(|(key, value)| format!("{key}={value}")).collect()
        };
        assert_eq!(labels(0), ["a.io/b=c", "region=eu", "tier="]);
        assert!(labels(1).is_empty());
        assert_eq!(both[1].context.as_deref(), Some("c"));
    }

    #[rstest]
    #[case(&["east=e", "east=f"], &[], "duplicate --cluster east. Give each cluster its own name")]
    #[case(
        &["east=e"],
        &["west=a=b"],
        "--cluster-labels west: unknown cluster. Add --cluster west=KUBECONFIG"
    )]
    #[case(
        &[concat!("east=", env!("CARGO_MANIFEST_DIR"))],
        &[],
        &format!(
            "invalid --cluster east={DIRECTORY}: a directory. Name a kubeconfig file: the controller reads clusters, not \
             manifests"
        )
    )]
    fn contradictions(#[case] clusters: &[&str], #[case] labels: &[&str], #[case] expected: &str) {
        assert_eq!(arguments(clusters, labels).kubeconfigs(), Err(expected.to_owned()));
    }

    #[rstest]
    #[case("east")]
    #[case("east=region")]
    #[case("east=region=eu,tier")]
    #[case("east==eu")]
    #[case("east=region=e u")]
    fn invalid_labels(#[case] text: &str) {
        let error = labels(text).unwrap_err();
        assert!(error.ends_with("use NAME=KEY=VALUE,KEY=VALUE, such as east=region=eu,tier=edge"), "{error}");
    }

    #[rstest]
    #[case("5s", Some(5))]
    #[case("1m", Some(60))]
    #[case("0s", None)]
    #[case("500ms", None)]
    #[case("1h", None)]
    #[case("five", None)]
    fn probe_intervals(#[case] text: &str, #[case] seconds: Option<u64>) {
        assert_eq!(probe_interval(text).ok(), seconds.map(Duration::from_secs));
    }

    #[rstest]
    #[case::no_name("/etc/east.yaml", "use NAME=KUBECONFIG, NAME=KUBECONFIG:CONTEXT or NAME=DIR")]
    #[case::empty("", "use NAME=KUBECONFIG, NAME=KUBECONFIG:CONTEXT or NAME=DIR")]
    #[case::empty_name("=/etc/east.yaml", &format!(r#"invalid name "": {NAME_RULE}"#))]
    #[case::capitals("East=/etc/east.yaml", &format!(r#"invalid name "East": {NAME_RULE}"#))]
    #[case::no_path("east=", "path missing after '='")]
    #[case::only_a_context("east=:admin", "path missing after '='")]
    #[case::no_context("east=/etc/east.yaml:", "context missing after /etc/east.yaml:")]
    #[case::context_of_a_directory(
        &format!("east={DIRECTORY}:admin"),
        &format!("{DIRECTORY} is a directory. Leave out the context, or name a kubeconfig file")
    )]
    fn invalid_values_name_the_way_out(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(cluster(text), Err(expected.to_owned()));
    }
}
