//! Objects of one kind in many clusters, read once, as the rows of StatusCollectors.
//!
//! [`read`] reads API servers and directories side by side: one that does not answer delays no other.
//! [`tables`] makes rows of what was read, and evaluates collectors over them. [`tables_of_bound`] does so over rows
//! from the memory of a controller.

mod api_server;
mod bound;
mod directory;
mod fields;
mod found;
mod label_selector;
mod rows;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use anyhow::Result;
use bellwether_engine::{GroupKind, NamespacedName};
use bellwether_health::{Context, user::UserRules};
use bellwether_kube_io::client::ClientOptions;
use bellwether_model::Value;
use jiff::Timestamp;
use tokio::{runtime::Builder, task::JoinSet};

use self::{
    api_server::Server,
    found::{FoundObject, inventory},
};
pub use self::{
    bound::{Completion, is_complete, tables_of_bound},
    fields::Fields,
    label_selector::Selector,
    rows::{Evaluated, Shape, tables},
};

/// A cluster to read.
#[derive(Clone, Debug)]
pub struct ClusterToRead {
    pub name: Arc<str>,
    /// In the inventory.
    pub labels: BTreeMap<String, String>,
    pub from: ReadFrom,
}

#[derive(Clone, Debug)]
pub enum ReadFrom {
    ApiServer(ClientOptions),
    /// A file, or a directory of manifests.
    Files(Vec<PathBuf>),
}

/// The objects to read.
#[derive(Clone, Debug)]
pub struct ObjectQuery {
    /// As the user writes it: `deploy`, `deployments.apps`.
    pub kind: String,
    /// Empty for all objects.
    pub names: Vec<String>,
    pub namespace: NamespaceChoice,
    pub selector: Selector,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamespaceChoice {
    All,
    One(String),
    /// The namespace of the first context; all namespaces if everything is read from files.
    Default,
}

/// How objects are read and assessed.
#[derive(Clone, Debug)]
pub struct ReadSettings {
    pub rules: Arc<UserRules>,
    pub now: Timestamp,
    /// For each request to an API server.
    pub request_timeout: Duration,
    pub fields: Fields,
}

impl ReadSettings {
    fn context(&self) -> Context<'_> {
        Context { rules: Some(&self.rules), ..Context::at(self.now) }
    }
}

/// An object, wherever it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectKey {
    pub kind: GroupKind,
    pub name: NamespacedName,
}

/// What was read of a cluster.
#[derive(Debug)]
pub struct ReadCluster {
    pub name: Arc<str>,
    inventory: Value<'static>,
    /// None if the cluster, or the kind in it, could not be read.
    objects: Option<BTreeMap<ObjectKey, FoundObject>>,
    /// The kind that the user means, if the cluster has it.
    pub kind: Option<GroupKind>,
    /// What could not be read, without the name of the cluster.
    pub errors: Vec<String>,
    pub notes: Vec<String>,
}

impl ReadCluster {
    fn unread(cluster: &ClusterToRead, error: String) -> Self {
        Self {
            name: Arc::clone(&cluster.name),
            inventory: inventory(cluster, None),
            objects: None,
            kind: None,
            errors: vec![error],
            notes: Vec::new(),
        }
    }

    /// Whether the cluster could be read.
    pub fn is_read(&self) -> bool {
        self.objects.is_some()
    }

    /// Whether an object with this name was found.
    pub fn has(&self, name: &str) -> bool {
        self.objects.iter().flat_map(BTreeMap::keys).any(|key| *key.name.name == *name)
    }
}

/// What was read.
#[derive(Debug)]
pub struct Fleet {
    /// In the order in which they were asked for.
    pub clusters: Vec<ReadCluster>,
    pub hub: Option<ReadCluster>,
    /// None for all namespaces.
    pub namespace: Option<String>,
}

/// Reads all clusters at the same time.
pub fn read(
    hub: Option<ClusterToRead>,
    clusters: Vec<ClusterToRead>,
    query: &ObjectQuery,
    settings: &ReadSettings,
) -> Result<Fleet> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let with_hub = hub.is_some();
    let all: Vec<_> = hub.into_iter().chain(clusters).collect();
    let fleet = runtime.block_on(async {
        let mut connecting = JoinSet::new();
        for (index, cluster) in all.into_iter().enumerate() {
            connecting.spawn(async move { (index, Server::connect(cluster).await) });
        }
        let mut sources = connecting.join_all().await;
        sources.sort_by_key(|(index, _)| *index);
        let namespace = match &query.namespace {
            NamespaceChoice::All => None,
            NamespaceChoice::One(namespace) => Some(namespace.clone()),
            NamespaceChoice::Default => sources.iter().find_map(|(_, source)| source.namespace()),
        };
        let mut reading = JoinSet::new();
        for (index, source) in sources {
            let (query, settings, namespace) = (query.clone(), settings.clone(), namespace.clone());
            reading.spawn(async move { (index, source.read(&query, namespace.as_deref(), &settings).await) });
        }
        let mut read = reading.join_all().await;
        read.sort_by_key(|(index, _)| *index);
        let mut read = read.into_iter().map(|(_, cluster)| cluster);
        let hub = if with_hub { read.next() } else { None };
        Fleet { hub, clusters: read.collect(), namespace }
    });
    // A cluster that never answers must not delay the exit.
    runtime.shutdown_background();
    Ok(fleet)
}
