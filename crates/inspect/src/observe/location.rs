//! Where objects are read, and the flags that name the same place in other commands.

use std::path::PathBuf;

use bellwether_kube_io::client::ClientOptions;

use crate::shell::flag;

#[derive(Clone, Debug)]
pub enum Location {
    Cluster {
        login: ClientOptions,
        /// Defaults to that of the context.
        namespace: Option<String>,
        /// Do without HealthRules, for a user who may not read them.
        without_health_rules: bool,
    },
    /// A dump, or a repository of manifests.
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
        matches!(self, Self::Cluster { without_health_rules: true, .. })
    }

    pub fn flags(&self) -> Flags {
        match self {
            Self::Cluster { login: ClientOptions { kubeconfig, context }, without_health_rules, .. } => {
                let kubeconfig = kubeconfig.iter().map(|file| flag("kubeconfig", &file.to_string_lossy()));
                let context = context.iter().map(|context| flag("context", context));
                let flags: String = kubeconfig.chain(context).collect();
                let rules = if *without_health_rules { " --without-health-rules" } else { "" };
                Flags { own: format!("{flags}{rules}"), kubectl: Some(flags) }
            }
            Self::Files { paths, .. } => {
                let own = paths.iter().map(|path| flag("from", &path.to_string_lossy())).collect();
                Flags { own, kubectl: None }
            }
        }
    }
}
