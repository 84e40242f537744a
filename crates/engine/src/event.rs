//! Input of the engine: what reflectors, discovery and the writer report.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use jiff::Timestamp;

use crate::{
    effect::{Slot, Write},
    facts::{ObservedObject, ResourceVersion, ServedResource},
    id::{Cluster, FeedId, GroupKind, NamespacedName},
    reasons::unreadable,
};

#[derive(Clone, Debug)]
pub enum Event {
    /// From the reflector of one kind.
    Feed(FeedId, FeedEvent),
    /// About the cluster itself.
    Cluster(Cluster, ClusterEvent),
    /// Every cluster of the inventory has been added, as far as it is known. Before that, nothing is published that
    /// depends on which clusters there are.
    InventoryListed,
    /// A kind of the hub with objects whose status an earlier process wrote. The reason may have ended since.
    SingletonKind(GroupKind),
    Written {
        slot: Slot,
        write: Write,
        outcome: Outcome,
    },
    Tick,
}

/// What a source reports about its cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum ClusterEvent {
    /// The first connection is being made. Before that, the cluster waited for its turn.
    Connecting,
    Connected,
    /// The uid of the namespace `kube-system`.
    Identified(Box<str>),
    Kinds(Arc<DiscoveredKinds>),
    /// From the inventory of clusters: at first, and whenever they change.
    Metadata(Arc<ClusterMetadata>),
    /// Data or a bookmark arrived at this time.
    Heard(Timestamp),
    Disconnected,
    /// The cluster has a new source, which follows no kind yet.
    Added,
    /// The cluster has no source any more. Its late events are ignored.
    Removed,
}

/// The kinds that a cluster serves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiscoveredKinds {
    pub served: HashMap<GroupKind, ServedResource>,
    /// API groups whose API server did not respond: kinds of them may be missing.
    pub unavailable_groups: BTreeSet<Box<str>>,
}

/// The labels and annotations of a cluster in the inventory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterMetadata {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
}

/// What a reflector reports about one kind: whether it is served, then all objects between `ListStarted` and
/// `ListCompleted`, then single changes. A relist may come at any time; objects that it does not contain are
/// deleted.
#[derive(Clone, Debug)]
pub enum FeedEvent {
    Served(ServedResource),
    Unreadable(Unreadable),
    /// The cluster was restored from a backup: objects have lower resourceVersions than known, and are
    /// current.
    Restored,
    ListStarted,
    /// Added or modified, from a list or a watch.
    Applied(NamespacedName, Box<ObservedObject>),
    Deleted(NamespacedName),
    ListCompleted,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The cluster does not serve the kind.
    NotServed,
    Forbidden {
        /// As in RBAC rules: `statefulsets`.
        resource: Arc<str>,
    },
    NotConnected,
    /// The files given as input have no object of the kind, so its objects are unknown.
    NotInInput,
    /// No object could be read from the files given as input.
    InvalidInput,
    /// The API server keeps answering with an error.
    Failing {
        why: Arc<str>,
    },
}

impl Unreadable {
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NotServed => unreadable::NOT_SERVED,
            Self::Forbidden { .. } => unreadable::FORBIDDEN,
            Self::NotConnected => unreadable::NOT_CONNECTED,
            Self::NotInInput => unreadable::NOT_IN_INPUT,
            Self::InvalidInput | Self::Failing { .. } => unreadable::NOT_READABLE,
        }
    }

    /// What to do about it, to append to the error; may be empty.
    pub(crate) fn remedy(&self, kind: &GroupKind) -> String {
        match self {
            Self::Forbidden { resource } if kind.group.is_empty() => {
                format!("; grant get, list and watch on {resource}")
            }
            Self::Forbidden { resource } => {
                format!("; grant get, list and watch on {resource}.{}", kind.group)
            }
            Self::NotServed => "; check the group and kind, and that the CRD is installed".to_owned(),
            Self::NotConnected | Self::NotInInput | Self::InvalidInput | Self::Failing { .. } => {
                String::new()
            }
        }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotServed => f.write_str("kind not served by the cluster"),
            Self::Forbidden { .. } => f.write_str("forbidden"),
            Self::NotConnected => f.write_str("cluster not connected"),
            Self::NotInInput => f.write_str("no objects of this kind in the input"),
            Self::InvalidInput => f.write_str("no object could be read from the files"),
            Self::Failing { why } => write!(f, "API server error: {why}"),
        }
    }
}

/// A field that another field manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldConflict {
    /// Such as `.status.conditions[type="Ready"].status`.
    pub field: Box<str>,
    pub manager: Box<str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Written. The object has this resourceVersion now, if the response says so.
    Written(Option<ResourceVersion>),
    /// 409: the object has another resourceVersion or uid, or a name to create is taken.
    Conflict,
    /// 409 of a server-side apply: other field managers own some of the fields.
    FieldConflict(Arc<[FieldConflict]>),
    /// 404, or a delete found another uid: the object does not exist.
    NotFound,
    /// The API server rejects the request: forbidden, invalid, denied by admission, or too large.
    Rejected(Arc<str>),
    /// The request failed, or its response was lost: it may or may not have been applied.
    Failed(Arc<str>),
}
