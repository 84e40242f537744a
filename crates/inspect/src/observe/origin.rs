//! Where objects are read: a cluster, or files. The differences between the two are here.

use std::{collections::BTreeMap, mem, sync::Arc};

use anyhow::{Result, bail};
use bellwether_engine::{
    ClusterSource, DiscoveredKinds, FeedEvent, FeedId, GroupKind, Lens, NamespacedName, ServedResource,
    Unreadable,
};
use bellwether_model::Object;
use jiff::Timestamp;

use super::{
    APPLICATIONS,
    cluster::{ObservedCluster, crds_not_installed},
    evaluator::rollup,
    files::ManifestFiles,
    kind_request::KindRequest,
    location::{Location, Place},
    stored_clusters::{self, StoredClusters},
};

pub(super) enum Origin {
    Cluster(Box<ObservedCluster>),
    Files(ManifestFiles),
}

impl Origin {
    pub(super) fn open(location: &Location, all_namespaces: bool, now: Timestamp) -> Result<Self> {
        Ok(match &location.place {
            Place::Cluster { login, namespace, .. } => {
                let cluster = ObservedCluster::open(login, namespace.as_deref(), all_namespaces)?;
                Self::Cluster(Box::new(cluster))
            }
            Place::Files { paths, namespace } => {
                Self::Files(ManifestFiles::open(paths, namespace.as_deref(), now))
            }
        })
    }

    pub(super) fn cluster(&self) -> Option<&ObservedCluster> {
        match self {
            Self::Cluster(cluster) => Some(cluster),
            Self::Files(_) => None,
        }
    }

    /// The namespace of objects that are named without one.
    pub(super) fn namespace(&self) -> &str {
        match self {
            Self::Cluster(cluster) => cluster.namespace(),
            Self::Files(files) => files.namespace(),
        }
    }

    /// The namespace of the groups to evaluate; none for all. Without `-n`, files are read whole.
    pub(super) fn only_namespace(&self, all_namespaces: bool) -> Option<String> {
        match self {
            Self::Cluster(cluster) => (!all_namespaces).then(|| cluster.namespace().to_owned()),
            Self::Files(files) => files.only_namespace().map(str::to_owned),
        }
    }

    /// `in namespace shop`, `in dump/, namespace shop`
    pub(super) fn whereabouts(&self, only_namespace: Option<&str>) -> String {
        match (self, only_namespace) {
            (Self::Cluster(_), Some(namespace)) => format!("in namespace {namespace}"),
            (Self::Cluster(_), None) => "in any namespace".to_owned(),
            (Self::Files(files), Some(namespace)) => format!("in {files}, namespace {namespace}"),
            (Self::Files(files), None) => format!("in {files}"),
        }
    }

    /// Fails if the cluster serves no kind of groups.
    pub(super) fn check_crds(&self) -> Result<()> {
        if let Self::Cluster(cluster) = self
            && !APPLICATIONS.iter().any(|dialect| cluster.serves(&dialect.kind()))
            && !cluster.serves(&rollup())
        {
            bail!("{}", crds_not_installed());
        }
        Ok(())
    }

    pub(super) fn served(&self, kind: &GroupKind) -> Option<ServedResource> {
        match self {
            Self::Cluster(cluster) => cluster.served(kind),
            Self::Files(files) => files.served(kind),
        }
    }

    /// The kinds that it serves.
    pub(super) fn discovered(&self) -> DiscoveredKinds {
        match self {
            Self::Cluster(cluster) => cluster.discovered(),
            Self::Files(files) => files.discovered(),
        }
    }

    pub(super) fn is_namespaced(&self, kind: &GroupKind) -> bool {
        match self {
            Self::Cluster(cluster) => cluster.is_namespaced(kind),
            Self::Files(files) => files.is_namespaced(kind),
        }
    }

    /// A sentence about a kind that could not be listed.
    pub(super) fn cannot_list(&self, kind: &GroupKind, why: &Unreadable, namespace: Option<&str>) -> String {
        match (self, why) {
            (Self::Cluster(cluster), Unreadable::Forbidden { .. }) => cluster.forbidden(kind, namespace),
            (Self::Cluster(cluster), Unreadable::Failing { why }) => {
                format!("cannot list {}: {why}", cluster.resource(kind))
            }
            _ => format!("cannot list {kind}: {why}"),
        }
    }

    /// Lists kinds in one namespace or in all. Files are always listed whole.
    pub(super) fn list(
        &self,
        requests: Vec<KindRequest>,
        namespace: Option<&str>,
    ) -> Result<Vec<(GroupKind, Vec<FeedEvent>)>> {
        match self {
            Self::Cluster(cluster) => cluster.list(requests, namespace),
            Self::Files(files) => Ok(files.list(requests)),
        }
    }

    /// Empty if there are none, or if the user may not list CombinedStatuses.
    pub(super) fn stored_clusters(&self, namespace: Option<&str>) -> Result<StoredClusters> {
        let kind = stored_clusters::combined_status();
        if self.served(&kind).is_none() {
            return Ok(StoredClusters::default());
        }
        let lens = Arc::new(stored_clusters::lens(Arc::default()));
        let listed = self.list(vec![KindRequest { kind, lens }], namespace)?;
        let facts = listed.iter().flat_map(|(_, events)| events).filter_map(|event| match event {
            FeedEvent::Applied(_, object) => Some(&object.facts),
            _ => None,
        });
        Ok(StoredClusters::of(facts))
    }

    pub(super) fn object_named(&self, kind: &str, name: &str) -> Result<(GroupKind, NamespacedName)> {
        match self {
            Self::Cluster(cluster) => cluster.object_named(kind, name),
            Self::Files(files) => files.object_named(kind, name),
        }
    }

    pub(super) fn with<R: Send>(
        &self,
        kind: &GroupKind,
        name: &NamespacedName,
        make: &(dyn Fn(&Object<'_>) -> R + Sync),
    ) -> Result<Option<R>> {
        match self {
            Self::Cluster(cluster) => cluster.with(kind, name, make),
            Self::Files(files) => Ok(files.with(kind, name, make)),
        }
    }
}

/// The source of an engine that reads an origin once. It collects requests, so that they are listed in
/// parallel. Of two requests for a kind, the second lens is used.
pub(super) struct PendingLists<'o> {
    origin: &'o Origin,
    requests: BTreeMap<GroupKind, (FeedId, Arc<Lens>)>,
}

impl<'o> PendingLists<'o> {
    pub(super) fn of(origin: &'o Origin) -> Self {
        Self { origin, requests: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The feeds that were requested.
    pub(super) fn feeds(&self) -> Vec<FeedId> {
        self.requests.values().map(|(feed, _)| *feed).collect()
    }

    /// Takes back the request for a kind, whose objects do not come from the origin.
    pub(super) fn take(&mut self, kind: &GroupKind) -> Option<(FeedId, Arc<Lens>)> {
        self.requests.remove(kind)
    }

    /// Lists what was requested since the last call, and returns the events for the engine; none without a
    /// request. `note` is called with the events of each kind.
    pub(super) fn list(
        &mut self,
        namespace: Option<&str>,
        mut note: impl FnMut(&GroupKind, &[FeedEvent]),
    ) -> Result<Option<Vec<(FeedId, FeedEvent)>>> {
        let pending = mem::take(&mut self.requests);
        if pending.is_empty() {
            return Ok(None);
        }
        let requests = pending
            .iter()
            .map(|(kind, (_, lens))| KindRequest { kind: kind.clone(), lens: Arc::clone(lens) });
        let mut feed_events = Vec::new();
        for (kind, events) in self.origin.list(requests.collect(), namespace)? {
            note(&kind, &events);
            if let Some((feed, _)) = pending.get(&kind) {
                feed_events.extend(events.into_iter().map(|event| (*feed, event)));
            }
        }
        Ok(Some(feed_events))
    }
}

impl ClusterSource for PendingLists<'_> {
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
        self.requests.insert(kind.clone(), (feed, lens));
    }

    fn leave(&mut self, feed: FeedId) {
        self.requests.retain(|_, (requested, _)| *requested != feed);
    }

    fn served(&self, kind: &GroupKind) -> Option<ServedResource> {
        self.origin.served(kind)
    }
}
