//! Where to look, and how to name that place to other commands.

use std::path::PathBuf;

use bellwether_kube_io::write::Login;

use crate::shell::flag;

/// Where to look.
#[derive(Clone, Debug)]
pub enum Location {
    Cluster {
        login: Login,
        /// Without one, that of the context is meant.
        namespace: Option<String>,
    },
    /// Files that stand for a cluster: a dump, or a repository of manifests.
    Files {
        paths: Vec<PathBuf>,
        /// Without one, all are meant.
        namespace: Option<String>,
    },
}

/// How to look at the same place once more.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// For our own commands.
    pub own: String,
    /// For kubectl, which reads no files.
    pub kubectl: Option<String>,
}

impl Location {
    /// The flags that name it to other commands, as far as it is not the place that they would take.
    pub fn flags(&self) -> Flags {
        match self {
            Self::Cluster { login: Login { kubeconfig, context }, .. } => {
                let kubeconfig = kubeconfig.iter().map(|file| flag("kubeconfig", &file.to_string_lossy()));
                let context = context.iter().map(|context| flag("context", context));
                let flags: String = kubeconfig.chain(context).collect();
                Flags { own: flags.clone(), kubectl: Some(flags) }
            }
            Self::Files { paths, .. } => {
                let own = paths.iter().map(|path| flag("from", &path.to_string_lossy())).collect();
                Flags { own, kubectl: None }
            }
        }
    }
}
