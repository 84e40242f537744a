//! What the engine learns.

use std::{collections::HashMap, fmt, sync::Arc};

use jiff::Timestamp;

use crate::{
    effect::{Change, Slot},
    facts::{ObservedObject, ResourceVersion, Served},
    id::{Cluster, FeedId, GroupKind, NamespacedName},
    reasons::unreadable,
};

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// There is news from a kind that is followed.
    Feed(FeedId, FeedEvent),
    /// There is news of a cluster itself.
    Cluster(Cluster, ClusterEvent),
    /// A write has ended.
    Written {
        /// Where it was wanted.
        slot: Slot,
        /// What was to be done.
        change: Change,
        /// What became of it.
        outcome: Outcome,
    },
    /// Time has passed; nothing else has happened.
    Tick,
}

/// What a source tells of its cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum ClusterEvent {
    /// Its connections are open.
    Connected,
    /// Its identity, which is the uid of the namespace `kube-system`.
    Identified(Box<str>),
    /// The kinds that it serves now.
    Kinds(Arc<HashMap<GroupKind, Served>>),
    /// It was heard from then, if only by a bookmark.
    Heard(Timestamp),
    /// Its connections are lost.
    Lost,
    /// It has a source, of which nothing was asked yet.
    Added,
    /// It has no source any more. What the source has told and was not heard yet is not heard.
    Removed,
}

/// What a feed tells: first whether the kind is there, then all its objects between `Listing` and `Listed`, then what
/// becomes of them. A second list may come at any time; what it does not name is gone.
#[derive(Clone, Debug)]
pub enum FeedEvent {
    /// The cluster serves the kind.
    Served(Served),
    /// It cannot be read.
    Unreadable(Unreadable),
    /// The cluster was put back to an earlier time: what comes has lower versions than what is known, and is true.
    Restored,
    /// A list begins.
    ListStarted,
    /// An object is so: from the list, or because it has changed.
    Applied(NamespacedName, Box<ObservedObject>),
    /// An object is gone.
    Deleted(NamespacedName),
    /// The list is complete.
    ListCompleted,
}

/// Why a kind cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The cluster has no such kind.
    NotServed,
    /// We may not.
    Forbidden {
        /// The kind as rules of RBAC have it: `statefulsets`.
        resource: Arc<str>,
    },
    /// No source is connected to its cluster.
    NotConnected,
    /// Nothing of it is in what was given to read, so that nobody can tell what there is.
    NotInInput,
    /// The cluster has it, and answers all the same with an error that does not go away.
    Failing {
        /// The error.
        why: Arc<str>,
    },
}

impl Unreadable {
    /// Why, in a word.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NotServed => unreadable::NOT_SERVED,
            Self::Forbidden { .. } => unreadable::FORBIDDEN,
            Self::NotConnected => unreadable::NOT_CONNECTED,
            Self::NotInInput => unreadable::NOT_IN_INPUT,
            Self::Failing { .. } => unreadable::NOT_READABLE,
        }
    }

    /// What to do about it, to be appended to the error; empty where there is nothing to advise.
    pub(crate) fn remedy(&self, kind: &GroupKind) -> String {
        match self {
            Self::Forbidden { resource } if kind.group.is_empty() => {
                format!("; grant get, list and watch on {resource}")
            }
            Self::Forbidden { resource } => {
                format!("; grant get, list and watch on {resource}.{}", kind.group)
            }
            Self::NotServed => "; check its group and kind, and that its CRD is installed".to_owned(),
            Self::NotConnected | Self::NotInInput | Self::Failing { .. } => String::new(),
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
            Self::Failing { why } => write!(f, "API server error: {why}"),
        }
    }
}

/// A field that another manager has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldConflict {
    /// The path of the field: `.status.conditions[type="Ready"].status`.
    pub field: Box<str>,
    /// The other field manager.
    pub manager: Box<str>,
}

/// How a write ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is done, and the object has this version now.
    Done(Option<ResourceVersion>),
    /// The object has changed in the meantime, or there is one of this name already.
    Conflict,
    /// Other field managers have some of the fields that were to be applied, with other values.
    FieldConflict(Arc<[FieldConflict]>),
    /// There is no such object.
    Absent,
    /// The API server will not have it, however often it is sent.
    Refused(Arc<str>),
    /// It did not get through, or nobody knows whether it did.
    Failed(Arc<str>),
}
