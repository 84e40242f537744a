//! Where objects are read, and the flags with which other commands give the same answer.

use std::{path::PathBuf, time::Duration};

use bellwether_engine::FAILED_AFTER;
use bellwether_kube_io::client::ClientOptions;
use jiff::SignedDuration;

use crate::{
    fleet::{ClusterToRead, ReadFrom},
    shell::flag,
};

#[derive(Clone, Debug)]
pub struct Location {
    pub place: Place,
    /// How long a Pod must have failed until its workload is Failed. None: nothing below members is read.
    pub failed_after: Option<SignedDuration>,
    /// Beside the hub, which is the place.
    pub clusters: Vec<ClusterToRead>,
    /// For each request to one of the clusters.
    pub request_timeout: Duration,
}

#[derive(Clone, Debug)]
pub enum Place {
    Cluster {
        login: ClientOptions,
        /// Defaults to that of the context.
        namespace: Option<String>,
        /// Do without HealthRules, for a user who may not read them.
        without_health_rules: bool,
    },
    /// A dump, or a repository of manifests. Empty without a hub.
    Files {
        paths: Vec<PathBuf>,
        /// Defaults to all.
        namespace: Option<String>,
    },
}

/// To be appended to a command, so that it reads the same cluster or files.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    pub own: String,
    /// None for files, which kubectl does not read.
    pub kubectl: Option<String>,
}

impl Location {
    pub(super) fn is_without_health_rules(&self) -> bool {
        matches!(self.place, Place::Cluster { without_health_rules: true, .. })
    }

    /// Reads the named clusters alone if the user has no kubeconfig and names no hub.
    #[must_use]
    pub fn or_without_hub(self) -> Self {
        let place = match self.place {
            Place::Cluster { login, namespace, .. }
                if !self.clusters.is_empty() && login.context.is_none() && !login.is_configured() =>
            {
                Place::Files { paths: Vec::new(), namespace }
            }
            place => place,
        };
        Self { place, ..self }
    }

    pub fn has_hub(&self) -> bool {
        !matches!(&self.place, Place::Files { paths, .. } if paths.is_empty())
    }

    /// The namespace that the user gives, where no hub has one.
    pub(super) fn namespace_without_hub(&self) -> Option<&str> {
        match &self.place {
            Place::Files { paths, namespace } if paths.is_empty() => namespace.as_deref(),
            _ => None,
        }
    }

    fn of_clusters(&self) -> String {
        let mut flags = String::new();
        for ClusterToRead { name, labels, from } in &self.clusters {
            let place = match from {
                ReadFrom::ApiServer(ClientOptions { kubeconfig, context }) => {
                    let path = kubeconfig.as_deref().map(|path| path.to_string_lossy()).unwrap_or_default();
                    let context = context.as_ref().map(|context| format!(":{context}")).unwrap_or_default();
                    format!("{path}{context}")
                }
                ReadFrom::Files(paths) => {
                    paths.first().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default()
                }
            };
            flags += &flag("cluster", &format!("{name}={place}"));
            let labels: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            if !labels.is_empty() {
                flags += &flag("cluster-labels", &format!("{name}={}", labels.join(",")));
            }
        }
        flags
    }

    pub fn flags(&self) -> Flags {
        let below = match self.failed_after {
            Some(FAILED_AFTER) => String::new(),
            Some(duration) => flag("failed-after", &format!("{duration:#}").replace(' ', "")),
            None => " --look-below=false".to_owned(),
        };
        let below = self.of_clusters() + &below;
        match &self.place {
            Place::Cluster { login: ClientOptions { kubeconfig, context }, without_health_rules, .. } => {
                let kubeconfig = kubeconfig.iter().map(|file| flag("kubeconfig", &file.to_string_lossy()));
                let context = context.iter().map(|context| flag("context", context));
                let flags: String = kubeconfig.chain(context).collect();
                let rules = if *without_health_rules { " --without-health-rules" } else { "" };
                Flags { own: format!("{flags}{rules}{below}"), kubectl: Some(flags) }
            }
            Place::Files { paths, .. } => {
                let own: String = paths.iter().map(|path| flag("from", &path.to_string_lossy())).collect();
                Flags { own: own + &below, kubectl: None }
            }
        }
    }
}
