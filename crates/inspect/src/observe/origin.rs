//! Where objects are read: a cluster, or files. Everything that differs between the two is asked here.

use std::{collections::BTreeMap, mem, sync::Arc};

use anyhow::{Result, bail};
use bellwether_engine::{FeedEvent, FeedId, GroupKind, Lens, NamespacedName, Served, Source};
use bellwether_model::Object;
use jiff::Timestamp;

use super::{
    APPLICATIONS, cluster::ObservedCluster, evaluator::rollup, files::ManifestFiles,
    kind_request::KindRequest, location::Location,
};

/// Where the objects are.
pub(super) enum Origin {
    Cluster(Box<ObservedCluster>),
    Files(ManifestFiles),
}

impl Origin {
    pub(super) fn open(place: &Location, all_namespaces: bool, now: Timestamp) -> Result<Self> {
        Ok(match place {
            Location::Cluster { login, namespace } => {
                let cluster = ObservedCluster::open(login, namespace.as_deref(), all_namespaces)?;
                Self::Cluster(Box::new(cluster))
            }
            Location::Files { paths, namespace } => {
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

    /// The namespace that is meant where none is named.
    pub(super) fn namespace(&self) -> &str {
        match self {
            Self::Cluster(cluster) => cluster.namespace(),
            Self::Files(files) => files.namespace(),
        }
    }

    /// The one namespace whose groups are meant; none for all. What is in files is what was meant.
    pub(super) fn scope(&self, all_namespaces: bool) -> Option<String> {
        match self {
            Self::Cluster(cluster) => (!all_namespaces).then(|| cluster.namespace().to_owned()),
            Self::Files(files) => files.chosen().map(str::to_owned),
        }
    }

    /// Where is looked, in words.
    pub(super) fn whereabouts(&self, scope: Option<&str>) -> String {
        match (self, scope) {
            (Self::Cluster(_), Some(namespace)) => format!("in namespace {namespace}"),
            (Self::Cluster(_), None) => "in any namespace".to_owned(),
            (Self::Files(files), Some(namespace)) => format!("of namespace {namespace} in {files}"),
            (Self::Files(files), None) => format!("in {files}"),
        }
    }

    /// Fails if there cannot be any group.
    pub(super) fn is_worth_a_look(&self) -> Result<()> {
        if let Self::Cluster(cluster) = self
            && !APPLICATIONS.iter().any(|dialect| cluster.serves(&dialect.kind()))
            && !cluster.serves(&rollup())
        {
            bail!("{}", cluster.lacks("Applications"));
        }
        Ok(())
    }

    pub(super) fn served(&self, kind: &GroupKind) -> Option<Served> {
        match self {
            Self::Cluster(cluster) => cluster.served(kind),
            Self::Files(files) => files.served(kind),
        }
    }

    pub(super) fn is_namespaced(&self, kind: &GroupKind) -> bool {
        match self {
            Self::Cluster(cluster) => cluster.is_namespaced(kind),
            Self::Files(files) => files.is_namespaced(kind),
        }
    }

    /// What there is of some kinds, in one namespace or in all. What is in files is all that there is.
    pub(super) fn answer(
        &self,
        asked: Vec<KindRequest>,
        namespace: Option<&str>,
    ) -> Result<Vec<(GroupKind, Vec<FeedEvent>)>> {
        match self {
            Self::Cluster(cluster) => cluster.answer(asked, namespace),
            Self::Files(files) => Ok(files.answer(asked)),
        }
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

/// An origin as the source of an engine. It reads nothing before it is told to, so that all that was asked for is listed
/// at once. If a kind is asked for twice, it is the second lens that counts.
pub(super) struct PendingLists<'o> {
    origin: &'o Origin,
    asked: BTreeMap<GroupKind, (FeedId, Arc<Lens>)>,
}

impl<'o> PendingLists<'o> {
    pub(super) fn to(origin: &'o Origin) -> Self {
        Self { origin, asked: BTreeMap::new() }
    }

    /// Reads what was asked for since it was last called, in one namespace or in all, and gives back what the engine has
    /// to be told; nothing if nothing was asked for. `note` hears what was read of each kind.
    pub(super) fn answer(
        &mut self,
        namespace: Option<&str>,
        mut note: impl FnMut(&GroupKind, &[FeedEvent]),
    ) -> Result<Option<Vec<(FeedId, FeedEvent)>>> {
        let requested = mem::take(&mut self.asked);
        if requested.is_empty() {
            return Ok(None);
        }
        let asked = requested
            .iter()
            .map(|(kind, (_, lens))| KindRequest { kind: kind.clone(), lens: Arc::clone(lens) });
        let mut told = Vec::new();
        for (kind, news) in self.origin.answer(asked.collect(), namespace)? {
            note(&kind, &news);
            if let Some((feed, _)) = requested.get(&kind) {
                told.extend(news.into_iter().map(|news| (*feed, news)));
            }
        }
        Ok(Some(told))
    }
}

impl Source for PendingLists<'_> {
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
        self.asked.insert(kind.clone(), (feed, lens));
    }

    fn leave(&mut self, feed: FeedId) {
        self.asked.retain(|_, (asked, _)| *asked != feed);
    }

    fn served(&self, kind: &GroupKind) -> Option<Served> {
        self.origin.served(kind)
    }
}
