//! The inventory: which clusters there are, with their labels and their credentials.
//!
//! Each source runs a task that declares clusters. [`Declarations`] merges them; the changes of the merged set go
//! to the controller loop, which connects and disconnects clusters.

mod access_providers;
mod cluster_profiles;
mod declarations;
mod exec_plugin;
mod kubeconfig;
mod kubeconfig_files;
mod object_watch;
mod secrets;

pub use access_providers::{AccessProviders, ProvidersError};
pub(crate) use declarations::InventoryChange;
pub use kubeconfig::AccessError;
pub use kubeconfig_files::KubeconfigCluster;

use std::{
    collections::BTreeSet,
    hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState},
    sync::{Arc, LazyLock},
    time::Duration,
};

use bellwether_engine::ClusterMetadata;
use bellwether_model::LAST_APPLIED;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use tokio::{
    sync::{Mutex, Semaphore, mpsc},
    task::JoinSet,
    time::sleep,
};
use tracing::{Instrument as _, Span, warn};

use crate::{
    client_switch::Access,
    read::{KindsReceiver, ReaderSettings},
    remote_cluster::RemoteSettings,
};
use cluster_profiles::ClusterProfiles;
use declarations::{Declaration, Declarations, Origin, Source};
use secrets::ClusterSecrets;

/// A source that takes longer does not hold back the others.
const LISTED_WITHIN: Duration = Duration::from_secs(15);

/// A full queue makes the sources wait.
const QUEUE_SIZE: usize = 64;

#[derive(Clone, Debug)]
pub struct InventorySettings {
    /// The namespace of Secrets with kubeconfigs.
    pub namespace: String,
    /// The clusters of the command line.
    pub clusters: Vec<KubeconfigCluster>,
    /// `None` to ignore ClusterProfiles.
    pub access_providers: Option<AccessProviders>,
    /// Whether Secrets and ClusterProfiles may turn off TLS, or the verification of certificates.
    pub allow_insecure: bool,
    /// How many clusters may connect at once.
    pub max_connecting: usize,
    /// How long a cluster may be silent until it is probed.
    pub probe_interval: Duration,
    pub reader: ReaderSettings,
}

/// Dropping it ends its tasks.
pub(crate) struct Inventory {
    changes: mpsc::Receiver<InventoryChange>,
    pub(crate) remote: RemoteSettings,
    _tasks: JoinSet<()>,
}

impl Inventory {
    /// `client` is for the hub, and `kinds` are those that it serves. Must be called within a tokio runtime.
    pub(crate) fn start(client: Client, kinds: KindsReceiver, settings: InventorySettings) -> Self {
        let InventorySettings {
            namespace,
            clusters,
            access_providers,
            allow_insecure,
            max_connecting,
            probe_interval,
            reader,
        } = settings;
        let (sender, changes) = mpsc::channel(QUEUE_SIZE);
        let whole = |source| Origin { source, object: "".into() };
        let files = clusters.iter().map(kubeconfig_files::origin_of);
        let profiles = access_providers.is_some().then_some(whole(Source::ClusterProfile));
        let unlisted = files.chain([whole(Source::Secret)]).chain(profiles).collect();
        let unlisted = Arc::new(Mutex::new(unlisted));
        let inventory = InventoryBuilder { declarations: Arc::default(), unlisted, changes: sender };
        let mut tasks = JoinSet::new();
        tasks.spawn({
            let inventory = inventory.clone();
            async move {
                sleep(LISTED_WITHIN).await;
                inventory.files_listed().await;
            }
        });
        for cluster in clusters {
            tasks.spawn(kubeconfig_files::follow(cluster, inventory.clone()).instrument(Span::current()));
        }
        if let Some(providers) = access_providers {
            let profiles = ClusterProfiles {
                client: client.clone(),
                kinds,
                settings: reader.clone(),
                providers,
                allow_insecure,
                inventory: inventory.clone(),
                profiles: Mutex::default(),
            };
            tasks.spawn(profiles.follow().instrument(Span::current()));
        }
        let secrets =
            ClusterSecrets { client, namespace, settings: reader.clone(), allow_insecure, inventory };
        let follow = async move { match secrets.follow().await {} };
        tasks.spawn(follow.instrument(Span::current()));
        let connecting = Arc::new(Semaphore::new(max_connecting.clamp(1, Semaphore::MAX_PERMITS)));
        Self { changes, remote: RemoteSettings { reader, connecting, probe_interval }, _tasks: tasks }
    }

    /// `None` if all sources have ended.
    pub(crate) async fn next(&mut self) -> Option<InventoryChange> {
        self.changes.recv().await
    }
}

/// Where the sources declare clusters.
#[derive(Clone)]
struct InventoryBuilder {
    /// Locked until the changes are sent, so that they are sent in order.
    declarations: Arc<Mutex<Declarations>>,
    /// Sources that have not reported yet what they have at the start.
    unlisted: Arc<Mutex<BTreeSet<Origin>>>,
    changes: mpsc::Sender<InventoryChange>,
}

impl InventoryBuilder {
    async fn declare(&self, origin: Origin, declaration: Declaration) {
        let mut declarations = self.declarations.lock().await;
        let changes = declarations.declare(origin.clone(), declaration);
        self.send(changes).await;
        drop(declarations);
        self.listed(&origin).await;
    }

    /// A source has reported what it has at the start, or cannot be read.
    async fn listed(&self, origin: &Origin) {
        let mut unlisted = self.unlisted.lock().await;
        if unlisted.remove(origin) && unlisted.is_empty() {
            self.send(vec![InventoryChange::Listed]).await;
        }
    }

    async fn source_listed(&self, source: Source) {
        self.listed(&Origin { source, object: "".into() }).await;
    }

    /// Does not wait any longer for files, whose plugins may hang. The hub must answer in any case.
    async fn files_listed(&self) {
        let unlisted = self.unlisted.lock().await.clone();
        for origin in unlisted.into_iter().filter(|origin| origin.source == Source::CommandLine) {
            warn!(%origin, "no answer yet: beginning without its clusters");
            self.listed(&origin).await;
        }
    }

    async fn withdraw(&self, origin: &Origin) {
        let mut declarations = self.declarations.lock().await;
        let changes = declarations.withdraw(origin);
        self.send(changes).await;
    }

    /// Withdraws all other declarations of a source.
    async fn keep_only(&self, source: Source, kept: &[Origin]) {
        let mut declarations = self.declarations.lock().await;
        for origin in declarations.of(source).iter().filter(|origin| !kept.contains(origin)) {
            let changes = declarations.withdraw(origin);
            self.send(changes).await;
        }
    }

    /// The access that an origin has declared before.
    async fn access(&self, origin: &Origin) -> Option<Access> {
        self.declarations.lock().await.access(origin).cloned()
    }

    async fn send(&self, changes: Vec<InventoryChange>) {
        for change in changes {
            // Without a receiver, the process ends.
            let _ = self.changes.send(change).await;
        }
    }
}

/// The labels and annotations of an object, which it loses.
fn metadata_of(object: &mut ObjectMeta) -> ClusterMetadata {
    let labels = object.labels.take().unwrap_or_default();
    let mut annotations = object.annotations.take().unwrap_or_default();
    annotations.remove(LAST_APPLIED);
    ClusterMetadata { labels, annotations }
}

/// Differs if the content differs. It is not the same in another process, and does not reveal the content.
fn fingerprint<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
    static STATE: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    let mut hasher = STATE.build_hasher();
    parts.into_iter().for_each(|part| part.hash(&mut hasher));
    hasher.finish()
}
