//! Bound objects, for tasks that do not have the engine: their rows from the engine's memory, and the objects
//! themselves through the connections that watch them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bellwether_engine::{
    BoundRowKey, BoundRows, BoundRowsQuery, Cluster, GroupKind, NamespacedName, ServedResource,
};
use bellwether_wire::{ErrorClass, Verb};
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use kube::Client;
use tokio::{sync::Semaphore, task::JoinSet};

use crate::{
    read::{ClusterSnapshot, KindsReceiver, NoSuchKind, ReadError, ReaderSettings},
    status_queries::StatusHandle,
    write::{CallError, call},
};

/// Clusters from which objects are requested at the same time.
const CLUSTERS_AT_ONCE: usize = 100;

/// Requests to one cluster at the same time.
const REQUESTS_AT_ONCE: usize = 8;

/// A cluster that does not answer delays a response by this time at most.
const OBJECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Of the objects of one call together, in bytes: a bound of the memory.
const MAX_BYTES: usize = 64 << 20;

const UNREADABLE: &str = "cluster not connected, or kind not served";

const TOO_LARGE: &str = "the objects of this request have more than 64 MiB together. Ask for fewer objects";

#[derive(Clone)]
pub struct BoundObjects {
    queries: StatusHandle,
    hub: Client,
    /// Served by the hub.
    kinds: KindsReceiver,
    clusters_at_once: Arc<Semaphore>,
}

/// A kind that the hub serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HubKind {
    pub kind: GroupKind,
    pub served: ServedResource,
}

/// Why a word does not name a kind.
#[derive(Debug)]
pub enum KindError {
    NoSuchKind(NoSuchKind),
    /// The API server did not answer discovery.
    Unknown(String),
}

impl BoundObjects {
    pub(crate) fn new(queries: StatusHandle, hub: Client, kinds: KindsReceiver) -> Self {
        Self { queries, hub, kinds, clusters_at_once: Arc::new(Semaphore::new(CLUSTERS_AT_ONCE)) }
    }

    /// `None` if the hub does not serve the kind.
    pub fn served(&self, kind: &GroupKind) -> Option<ServedResource> {
        self.kinds.borrow().as_ref()?.served.get(kind).cloned()
    }

    /// The kind with this plural, with or without its group.
    pub fn kind(&self, word: &str) -> Result<HubKind, KindError> {
        let known = self.kinds.borrow().clone();
        let known =
            known.ok_or_else(|| KindError::Unknown("the hub has not answered discovery yet".to_owned()))?;
        let (plural, group) =
            word.split_once('.').map_or((word, None), |(plural, group)| (plural, Some(group)));
        let found = known.served.iter().filter(|(kind, served)| {
            *served.plural == *plural && group.is_none_or(|group| *kind.group == *group)
        });
        let candidates: Vec<_> = found.collect();
        // As kubectl, prefer the core group and our own.
        let is_preferred = |kind: &GroupKind| kind.group.is_empty() || kind.is_bellwether();
        let one = match &*candidates {
            [one] => Some(*one),
            several => several.iter().copied().find(|(kind, _)| is_preferred(kind)),
        };
        if let Some((kind, served)) = one {
            return Ok(HubKind { kind: kind.clone(), served: served.clone() });
        }
        let candidates: Vec<_> = candidates.into_iter().map(|(kind, _)| kind.clone()).collect();
        Err(KindError::NoSuchKind(NoSuchKind { word: word.to_owned(), candidates }))
    }

    /// The kind with this name, as kubectl accepts it. Sends requests to the API server.
    pub async fn discover(&self, word: &str) -> Result<HubKind, KindError> {
        let snapshot = ClusterSnapshot::at(self.hub.clone(), ReaderSettings::default()).await;
        let snapshot = snapshot.map_err(|error: ReadError| KindError::Unknown(error.to_string()))?;
        let kind = snapshot.kind(word).map_err(KindError::NoSuchKind)?;
        let served = snapshot.served(&kind).cloned();
        served.map(|served| HubKind { kind: kind.clone(), served }).ok_or_else(|| {
            KindError::NoSuchKind(NoSuchKind { word: word.to_owned(), candidates: Vec::new() })
        })
    }

    /// One page, which may have fewer rows than the limit: see [`BoundRows::next`]. `None` before the lists of what
    /// policies can bind, and after the end of the controller.
    pub async fn rows(&self, query: BoundRowsQuery) -> Option<BoundRows> {
        self.queries.bound_rows(query).await?
    }

    /// Whether an object exists in the hub.
    pub async fn exists_in_hub(&self, kind: &HubKind, name: &NamespacedName) -> Result<bool, CallError> {
        let path = path(kind, name);
        match call(&self.hub, Verb::GetMetadata.request(&path, Vec::new()), OBJECT_TIMEOUT).await {
            Ok(_) => Ok(true),
            Err(CallError::Api(error)) if error.class == ErrorClass::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The JSON of each object in its cluster, in the order of the keys; `None` if it does not exist there. The
    /// cluster is the hub where its name is empty. Of Secrets and ConfigMaps, only the metadata is requested.
    pub async fn objects(&self, kind: &GroupKind, keys: Vec<BoundRowKey>) -> Vec<ReadObject> {
        let mut objects: Vec<_> = keys.iter().map(|_| Err(UNREADABLE.to_owned())).collect();
        let mut of_clusters: BTreeMap<Cluster, Vec<(usize, NamespacedName)>> = BTreeMap::new();
        for (index, BoundRowKey { object, cluster }) in keys.into_iter().enumerate() {
            of_clusters.entry(cluster_of(&cluster)).or_default().push((index, object));
        }
        let clusters = of_clusters.keys().cloned().collect();
        let connections = self.queries.connections(kind.clone(), clusters).await.unwrap_or_default();
        let (mut reading, left) = (JoinSet::new(), Arc::new(AtomicUsize::new(MAX_BYTES)));
        for (names, connection) in of_clusters.into_values().zip(connections) {
            let Some((client, Some(served))) = connection else { continue };
            let kind = HubKind { kind: kind.clone(), served };
            let (permits, left) = (Arc::clone(&self.clusters_at_once), Arc::clone(&left));
            reading.spawn(async move {
                let _permit = permits.acquire_owned().await;
                in_cluster(&client, &kind, names, &left).await
            });
        }
        while let Some(read) = reading.join_next().await {
            for (index, object) in read.unwrap_or_default() {
                if let Some(place) = objects.get_mut(index) {
                    *place = object;
                }
            }
        }
        objects
    }
}

/// `None` if the object does not exist.
pub type ReadObject = Result<Option<Bytes>, String>;

/// After one request without a response, no more are sent to the cluster. `left`: how many bytes may still be read.
async fn in_cluster(
    client: &Client,
    kind: &HubKind,
    names: Vec<(usize, NamespacedName)>,
    left: &AtomicUsize,
) -> Vec<(usize, ReadObject)> {
    let silent: &OnceLock<String> = &OnceLock::new();
    let read = names.into_iter().map(|(index, name)| async move {
        let object = match silent.get() {
            Some(why) => Err(why.clone()),
            None => object(client, kind, &name).await.map_err(|error| {
                let why = error.to_string();
                if matches!(error, CallError::Timeout(_) | CallError::NoResponse(_)) {
                    // Another request may have failed first.
                    let _ = silent.set(why.clone());
                }
                why
            }),
        };
        let object = object.and_then(|object| {
            let length = object.as_ref().map_or(0, Bytes::len);
            let take = |left: usize| left.checked_sub(length);
            let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
            taken.map(|_| object).map_err(|_| TOO_LARGE.to_owned())
        });
        (index, object)
    });
    stream::iter(read).buffer_unordered(REQUESTS_AT_ONCE).collect().await
}

fn cluster_of(name: &str) -> Cluster {
    if name.is_empty() { Cluster::hub() } else { Cluster::named(name) }
}

fn path(HubKind { kind, served }: &HubKind, name: &NamespacedName) -> String {
    served.path(&kind.group, Some(&name.namespace), Some(&name.name))
}

async fn object(client: &Client, kind: &HubKind, name: &NamespacedName) -> Result<Option<Bytes>, CallError> {
    let verb = if kind.kind.holds_data() { Verb::GetMetadata } else { Verb::Get };
    match call(client, verb.request(&path(kind, name), Vec::new()), OBJECT_TIMEOUT).await {
        Ok(object) => Ok(Some(object)),
        Err(CallError::Api(error)) if matches!(error.class, ErrorClass::NotFound | ErrorClass::NotServed) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
