//! Merges what the sources declare into one set of named clusters.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use bellwether_engine::{Cluster, ClusterMetadata};
use jiff::Timestamp;
use tracing::{info, warn};

use crate::client_switch::Access;

/// In the order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Source {
    CommandLine,
    Secret,
    ClusterProfile,
}

/// The flag or the object that declares a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Origin {
    pub(super) source: Source,
    /// `NAMESPACE/NAME`, or the name of the cluster for the command line.
    pub(super) object: Arc<str>,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = match self.source {
            Source::CommandLine => "--cluster",
            Source::Secret => "Secret",
            Source::ClusterProfile => "ClusterProfile",
        };
        write!(f, "{source} {}", self.object)
    }
}

#[derive(Clone, Debug)]
pub(super) struct Declaration {
    pub(super) name: Arc<str>,
    /// When the object was created: of two that are alike, the older one wins.
    pub(super) created: Option<Timestamp>,
    pub(super) metadata: Arc<ClusterMetadata>,
    /// `None` if the kubeconfig cannot be used.
    pub(super) access: Option<Access>,
}

/// A change of the set of clusters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum InventoryChange {
    Added {
        cluster: Cluster,
        metadata: Arc<ClusterMetadata>,
        access: Option<Access>,
    },
    Metadata(Cluster, Arc<ClusterMetadata>),
    Access(Cluster, Access),
    Removed(Cluster),
    /// Every source has declared the clusters that it has at the start.
    Listed,
}

/// Sorts first what wins: a declaration without a usable kubeconfig takes the name from no other one.
type Rank = (bool, Source, Option<Timestamp>, Origin);

#[derive(Debug, Default)]
pub(super) struct Declarations {
    by_origin: HashMap<Origin, Declaration>,
    by_name: BTreeMap<Arc<str>, BTreeSet<Rank>>,
    /// What was reported last for each cluster, and where it comes from.
    reported: BTreeMap<Arc<str>, (Origin, Declaration)>,
}

fn rank(origin: &Origin, declaration: &Declaration) -> Rank {
    (declaration.access.is_none(), origin.source, declaration.created, origin.clone())
}

impl Declarations {
    /// A declaration whose kubeconfig has become unusable keeps the previous one.
    pub(super) fn declare(&mut self, origin: Origin, mut declaration: Declaration) -> Vec<InventoryChange> {
        let before = self.take(&origin);
        let name_before = before.as_ref().map(|before| Arc::clone(&before.name));
        if let Some(before) = before.filter(|before| before.name == declaration.name) {
            declaration.access = declaration.access.or(before.access);
        }
        let name = Arc::clone(&declaration.name);
        self.by_name.entry(Arc::clone(&name)).or_default().insert(rank(&origin, &declaration));
        self.by_origin.insert(origin, declaration);
        let renamed = name_before.filter(|before| *before != name);
        renamed.into_iter().chain([name]).flat_map(|name| self.report(&name)).collect()
    }

    pub(super) fn withdraw(&mut self, origin: &Origin) -> Vec<InventoryChange> {
        let before = self.take(origin);
        before.map(|before| self.report(&before.name)).unwrap_or_default()
    }

    /// The origins of one source.
    pub(super) fn of(&self, source: Source) -> Vec<Origin> {
        self.by_origin.keys().filter(|origin| origin.source == source).cloned().collect()
    }

    /// The access that an origin has now.
    pub(super) fn access(&self, origin: &Origin) -> Option<&Access> {
        self.by_origin.get(origin)?.access.as_ref()
    }

    fn take(&mut self, origin: &Origin) -> Option<Declaration> {
        let before = self.by_origin.remove(origin)?;
        if let Some(ranks) = self.by_name.get_mut(&before.name) {
            ranks.remove(&rank(origin, &before));
            if ranks.is_empty() {
                self.by_name.remove(&before.name);
            }
        }
        Some(before)
    }

    /// The difference to what was reported.
    fn report(&mut self, name: &Arc<str>) -> Vec<InventoryChange> {
        let cluster = Cluster::named(name);
        let mut ranks = self.by_name.get(name).into_iter().flatten().map(|(.., origin)| origin);
        let Some(origin) = ranks.next() else {
            return match self.reported.remove(name) {
                Some((origin, _)) => {
                    info!(cluster = &**name, was = %origin, "cluster removed from the inventory");
                    vec![InventoryChange::Removed(cluster)]
                }
                None => Vec::new(),
            };
        };
        for ignored in ranks {
            warn!(cluster = &**name, using = %origin, %ignored, "cluster registered twice");
        }
        let Some(now) = self.by_origin.get(origin).cloned() else { return Vec::new() };
        let mut changes = Vec::new();
        match self.reported.get(name) {
            None => {
                info!(cluster = &**name, from = %origin, "cluster added to the inventory");
                let (metadata, access) = (Arc::clone(&now.metadata), now.access.clone());
                changes.push(InventoryChange::Added { cluster, metadata, access });
            }
            Some((_, before)) => {
                if before.metadata != now.metadata {
                    changes.push(InventoryChange::Metadata(cluster.clone(), Arc::clone(&now.metadata)));
                }
                if let Some(access) =
                    now.access.clone().filter(|access| before.access.as_ref() != Some(access))
                {
                    changes.push(InventoryChange::Access(cluster, access));
                }
            }
        }
        self.reported.insert(Arc::clone(name), (origin.clone(), now));
        changes
    }
}

#[cfg(test)]
mod tests {
    use kube::{Client, Config};

    use super::*;

    fn origin(source: Source, object: &str) -> Origin {
        Origin { source, object: object.into() }
    }

    fn labels(text: &str) -> Arc<ClusterMetadata> {
        let labels = [("tier".to_owned(), text.to_owned())].into();
        Arc::new(ClusterMetadata { labels, ..ClusterMetadata::default() })
    }

    fn access(fingerprint: u64) -> Access {
        let client = Client::try_from(Config::new("https://10.0.0.1".parse().unwrap())).unwrap();
        Access { client, server: "https://10.0.0.1/".into(), fingerprint, rejected: Arc::default() }
    }

    fn declared(name: &str, created: i64, tier: &str, fingerprint: Option<u64>) -> Declaration {
        let created = Timestamp::from_second(created).ok();
        Declaration { name: name.into(), created, metadata: labels(tier), access: fingerprint.map(access) }
    }

    fn said(changes: Vec<InventoryChange>) -> Vec<String> {
        let said = |change| match change {
            InventoryChange::Added { cluster, metadata, access } => {
                let access = access.map(|access| access.fingerprint);
                format!("{} added: {} {access:?}", cluster.name(), metadata.labels["tier"])
            }
            InventoryChange::Metadata(cluster, metadata) => {
                format!("{} is {}", cluster.name(), metadata.labels["tier"])
            }
            InventoryChange::Access(cluster, access) => {
                format!("{} by {}", cluster.name(), access.fingerprint)
            }
            InventoryChange::Removed(cluster) => format!("{} removed", cluster.name()),
            InventoryChange::Listed => "listed".to_owned(),
        };
        changes.into_iter().map(said).collect()
    }

    #[tokio::test]
    async fn only_what_differs_is_reported() {
        let (mut all, secret) = (Declarations::default(), origin(Source::Secret, "b/east"));
        let mut declare = |it| said(all.declare(secret.clone(), it));
        assert_eq!(declare(declared("east", 1, "edge", Some(1))), ["east added: edge Some(1)"]);
        assert!(declare(declared("east", 1, "edge", Some(1))).is_empty());
        assert_eq!(declare(declared("east", 1, "core", Some(1))), ["east is core"]);
        assert_eq!(declare(declared("east", 1, "core", Some(2))), ["east by 2"]);
        assert_eq!(
            declare(declared("west", 1, "core", Some(2))),
            ["east removed", "west added: core Some(2)"]
        );
        assert_eq!(said(all.withdraw(&secret)), ["west removed"]);
        assert!(said(all.withdraw(&secret)).is_empty());
    }

    #[tokio::test]
    async fn a_kubeconfig_that_becomes_unusable_stays_in_force() {
        let (mut all, secret) = (Declarations::default(), origin(Source::Secret, "b/east"));
        let mut declare = |it| said(all.declare(secret.clone(), it));
        assert_eq!(declare(declared("east", 1, "edge", None)), ["east added: edge None"]);
        assert_eq!(declare(declared("east", 1, "edge", Some(1))), ["east by 1"]);
        assert!(declare(declared("east", 1, "edge", None)).is_empty());
        assert_eq!(declare(declared("west", 1, "edge", None)), ["east removed", "west added: edge None"]);
    }

    #[tokio::test]
    async fn of_two_sources_the_first_one_wins() {
        let mut all = Declarations::default();
        let [flag, secret, older, profile] = [
            origin(Source::CommandLine, "east"),
            origin(Source::Secret, "b/east"),
            origin(Source::Secret, "b/older"),
            origin(Source::ClusterProfile, "a/east"),
        ];
        let added = all.declare(profile.clone(), declared("east", 1, "profile", Some(1)));
        assert_eq!(said(added), ["east added: profile Some(1)"]);
        let unusable = all.declare(secret.clone(), declared("east", 9, "secret", None));
        assert!(said(unusable).is_empty(), "a cluster that works is not taken away");
        let wins = all.declare(secret.clone(), declared("east", 9, "secret", Some(2)));
        assert_eq!(said(wins), ["east is secret", "east by 2"]);
        let wins = all.declare(older.clone(), declared("east", 5, "older", Some(3)));
        assert_eq!(said(wins), ["east is older", "east by 3"]);
        let wins = all.declare(flag.clone(), declared("east", 0, "flag", Some(4)));
        assert_eq!(said(wins), ["east is flag", "east by 4"]);
        assert!(said(all.withdraw(&older)).is_empty());
        assert_eq!(said(all.withdraw(&flag)), ["east is secret", "east by 2"]);
        assert_eq!(said(all.withdraw(&secret)), ["east is profile", "east by 1"]);
        assert_eq!(said(all.withdraw(&profile)), ["east removed"]);
    }
}
