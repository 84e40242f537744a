//! The clusters beside the hub that the user names: each is read like an origin of its own, all at the same time.

use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    thread::{self, ScopedJoinHandle},
    time::Duration,
};

use anyhow::Result;
use bellwether_engine::{
    Cluster, ClusterEvent, ClusterMetadata, ClusterSources, Event, FeedEvent, FeedId, GroupKind,
    NamespacedName, Unreadable,
};
use bellwether_kube_io::client::Connection;
use bellwether_model::{Object, Value};
use jiff::Timestamp;

use super::{
    cluster::ObservedCluster,
    files::ManifestFiles,
    location::Location,
    origin::{Origin, PendingLists},
};
use crate::fleet::{ClusterToRead, ReadFrom};

pub(super) struct NamedCluster {
    pub(super) name: Cluster,
    metadata: Arc<ClusterMetadata>,
    uid: Option<String>,
    from: ReadFrom,
    /// Or why it cannot be read.
    pub(super) origin: Result<Origin, String>,
}

/// Why a named cluster could not be read, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterProblem {
    pub(super) cluster: Cluster,
    why: String,
}

impl fmt::Display for ClusterProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cluster {}: {}", self.cluster.name(), self.why)
    }
}

impl NamedCluster {
    /// One that does not answer delays no other.
    pub(super) fn open_all(location: &Location, now: Timestamp) -> Vec<Self> {
        let (clusters, within) = (&location.clusters, location.request_timeout);
        let namespace = location.namespace_without_hub();
        thread::scope(|scope| {
            let opening: Vec<_> = clusters
                .iter()
                .map(|cluster| scope.spawn(move || Self::open(cluster, namespace, within, now)))
                .collect();
            let opened = clusters.iter().zip(opening);
            opened
                .map(|(cluster, opening)| {
                    finished(opening).unwrap_or_else(|error| Self::unread(cluster, error))
                })
                .collect()
        })
    }

    fn open(cluster: &ClusterToRead, namespace: Option<&str>, within: Duration, now: Timestamp) -> Self {
        let origin = match &cluster.from {
            ReadFrom::ApiServer(login) => ObservedCluster::connect(login, namespace, within)
                .map(|cluster| Origin::Cluster(Box::new(cluster)))
                .map_err(|error| format!("{error:#}")),
            ReadFrom::Files(paths) => {
                Ok(Origin::Files(ManifestFiles::open(paths, namespace, now).of_whole_cluster()))
            }
        };
        let opened = Self { origin, ..Self::unread(cluster, String::new()) };
        Self { uid: opened.read_uid(), ..opened }
    }

    fn unread(cluster: &ClusterToRead, error: String) -> Self {
        let metadata = ClusterMetadata { labels: cluster.labels.clone(), ..ClusterMetadata::default() };
        Self {
            name: Cluster::named(&cluster.name),
            metadata: Arc::new(metadata),
            uid: None,
            from: cluster.from.clone(),
            origin: Err(error),
        }
    }

    /// Where its objects can be read.
    pub(super) fn readable(&self) -> Option<&Origin> {
        let has_objects = |origin: &&Origin| !matches!(origin, Origin::Files(files) if files.is_empty());
        self.origin.as_ref().ok().filter(has_objects)
    }

    /// To watch its API server, which may answer later if it has not answered yet. `None` for files, and without a
    /// valid kubeconfig.
    pub(super) async fn connection(&self) -> Option<Connection> {
        match (&self.origin, &self.from) {
            (Ok(Origin::Cluster(cluster)), _) => Some(cluster.connection().clone()),
            (Err(_), ReadFrom::ApiServer(login)) => login.connect().await.ok(),
            (Ok(Origin::Files(_)), _) | (Err(_), ReadFrom::Files(_)) => None,
        }
    }

    /// That of the namespace kube-system, if it can be read.
    fn read_uid(&self) -> Option<String> {
        let (kind, name) = (GroupKind::new("", "Namespace"), NamespacedName::new("", "kube-system"));
        let uid = |object: &Object<'_>| object.at("metadata.uid").and_then(Value::as_text).map(str::to_owned);
        self.origin.as_ref().ok()?.with(&kind, &name, &uid).ok().flatten().flatten()
    }

    /// As a controller announces a cluster to its engine.
    pub(super) fn announcement(&self, now: Timestamp) -> Vec<Event> {
        let mut events = vec![ClusterEvent::Added, ClusterEvent::Metadata(Arc::clone(&self.metadata))];
        // A cluster that is connecting may still report its UID: rows with it would wait.
        let may_follow = self.uid.is_some() || self.origin.is_err();
        events.extend(may_follow.then_some(ClusterEvent::Connecting));
        events.extend(self.uid.as_deref().map(|uid| ClusterEvent::Identified(uid.into())));
        events.extend(self.origin.is_ok().then_some(ClusterEvent::Heard(now)));
        events.into_iter().map(|event| Event::Cluster(self.name.clone(), event)).collect()
    }

    /// What could not be read.
    pub(super) fn problems(&self) -> Vec<ClusterProblem> {
        let problems = match &self.origin {
            Ok(Origin::Files(files)) => files.problems(),
            Ok(Origin::Cluster(_)) => Vec::new(),
            Err(error) => vec![error.clone()],
        };
        problems.into_iter().map(|why| ClusterProblem { cluster: self.name.clone(), why }).collect()
    }

    /// `cluster west: …`
    pub(super) fn about(&self, problem: &str) -> String {
        format!("cluster {}: {problem}", self.name.name())
    }
}

/// The sources of an engine that reads the hub and named clusters once. A cluster that cannot be read has none, so that
/// the engine takes it as not connected.
pub(super) fn sources<'o>(hub: &'o Origin, clusters: &'o [NamedCluster]) -> ClusterSources<PendingLists<'o>> {
    let mut sources = ClusterSources::hub(PendingLists::of(hub));
    for NamedCluster { name, origin, .. } in clusters {
        if let Ok(origin) = origin {
            sources.insert(name.clone(), PendingLists::of(origin));
        }
    }
    sources
}

/// What the engine requested, from all clusters.
#[derive(Default)]
pub(super) struct Listed {
    pub(super) events: Vec<(FeedId, FeedEvent)>,
    /// Named clusters that stopped responding.
    pub(super) problems: Vec<ClusterProblem>,
}

/// Lists what was requested since the last call, in all clusters at the same time; `None` without a request. `note` is
/// called with the events of each kind of the hub. Fails only if the hub does not respond.
pub(super) fn list(
    sources: &mut ClusterSources<PendingLists<'_>>,
    namespace: Option<&str>,
    note: impl FnMut(&GroupKind, &[FeedEvent]),
) -> Result<Option<Listed>> {
    thread::scope(|scope| {
        let (mut hub, mut others) = (None, BTreeMap::new());
        for (cluster, lists) in sources.iter_mut() {
            if cluster.is_hub() {
                hub = Some(lists);
            } else if !lists.is_empty() {
                others.insert(cluster, (lists.feeds(), scope.spawn(|| lists.list(None, |_, _| {}))));
            }
        }
        let of_hub = hub.map(|hub| hub.list(namespace, note)).transpose()?.flatten();
        if of_hub.is_none() && others.is_empty() {
            return Ok(None);
        }
        let mut listed = Listed { events: of_hub.unwrap_or_default(), ..Listed::default() };
        for (cluster, (feeds, listing)) in others {
            match finished(listing).and_then(|listed| listed.map_err(|error| format!("{error:#}"))) {
                Ok(events) => listed.events.extend(events.into_iter().flatten()),
                Err(why) => {
                    let unread = |feed| (feed, FeedEvent::Unreadable(Unreadable::NotConnected));
                    listed.events.extend(feeds.into_iter().map(unread));
                    listed.problems.push(ClusterProblem { cluster: cluster.clone(), why });
                }
            }
        }
        Ok(Some(listed))
    })
}

fn finished<T>(thread: ScopedJoinHandle<'_, T>) -> Result<T, String> {
    thread.join().map_err(|_| "cannot be read: a thread panicked. Please report this bug".to_owned())
}
