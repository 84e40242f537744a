//! What the engine wants done.

use std::{fmt, sync::Arc};

use bellwether_model::ConditionStatus;
use jiff::Timestamp;
use serde_json::Value;

use crate::{
    dialect::Dialect,
    facts::{Owner, ResourceVersion},
    group_ref::{GroupRef, OwnKind},
    id::{Cluster, FeedId, GroupKind, NamespacedName, ObjectKey},
    lens::Lens,
};

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Follow a kind: list it, then tell what changes. Of a feed that is followed already: list it again, through the new
    /// lens.
    Follow {
        /// What its news are told under.
        feed: FeedId,
        /// Where.
        cluster: Cluster,
        /// Which kind.
        kind: GroupKind,
        /// What is kept of its objects.
        lens: Arc<Lens>,
    },
    /// Follow it no longer.
    Leave {
        /// The feed.
        feed: FeedId,
        /// Where.
        cluster: Cluster,
    },
    /// From now on there may be something to write in this place; or there is not. [`Engine::change`](crate::Engine::change)
    /// says what, when its time has come: much may happen until then that would have been put into words in vain.
    Want(Slot, Option<Urgency>),
    /// A group may be told of in other words than before; without a name, all of its kind, also those that are not there.
    Changed(OwnKind, Option<NamespacedName>),
    /// Something has turned, and people may want to know.
    Record(Transition),
    /// Something is wrong that only people can put right.
    Warn(Warning),
    /// Tell the time then, at the latest. Replaces what was wished before.
    Wake(Option<Timestamp>),
}

/// A place where at most one change is wanted at a time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot {
    /// The object.
    pub object: ObjectKey,
    /// Which part of it.
    pub part: Part,
}

/// The parts of objects that are written, and for whom.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The status of a group, which is the object itself.
    Status,
    /// The owner references. All Applications of a namespace decide together who owns an object.
    Owners,
    /// Whether the object is there at all, and all of it: it is created, replaced and deleted for a group.
    Existence(GroupRef),
    /// The fields of the status of an object of somebody else's that are applied for a group.
    Applied(GroupRef),
}

impl Slot {
    /// The group that the slot belongs to; none for owner references, which are not one group's alone. Groups are in the hub:
    /// what has the name of one in another cluster is not that group.
    pub fn group(&self) -> Option<GroupRef> {
        match &self.part {
            Part::Status if !self.object.cluster.is_hub() => None,
            Part::Status => Some(GroupRef::new(OwnKind::of(&self.object.kind)?, self.object.name.clone())),
            Part::Owners => None,
            Part::Existence(group) | Part::Applied(group) => Some(group.clone()),
        }
    }

    /// The kind whose grouping asks for the change, and is told what became of it.
    pub(crate) fn grouping(&self) -> Option<OwnKind> {
        match &self.part {
            Part::Status => Some(self.group()?.kind),
            Part::Owners => Some(OwnKind::Application(Dialect::Bellwether)),
            Part::Existence(group) | Part::Applied(group) => Some(group.kind),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Status => "status",
            Self::Owners => "ownerReferences",
            Self::Existence(_) => "object",
            Self::Applied(_) => "applied status",
        })
    }
}

/// How urgent a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Words alone may have changed, and can wait.
    MessageOnly,
    /// Something turns, and somebody may wait for it.
    Transition,
}

/// A change to an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Merge this into its status.
    Status {
        /// The object must be this one,
        uid: Box<str>,
        /// in this version.
        version: ResourceVersion,
        /// The merge patch of its status.
        patch: Arc<Value>,
        /// What people are told when it is done.
        transitions: Box<[Transition]>,
        /// The kinds that the new status names, of which the group may own objects once it is written.
        claims: Box<[GroupKind]>,
    },
    /// Let these be its owners.
    Owners {
        /// The object must be this one,
        uid: Box<str>,
        /// in this version.
        version: ResourceVersion,
        /// All of its owners.
        owners: Arc<[Owner]>,
        /// The one that becomes an owner. It must be there when this is done: the garbage collector deletes what is owned
        /// by an object that is gone.
        requires: Option<Box<Exists>>,
    },
    /// Create it.
    Create {
        /// The object.
        manifest: Arc<Value>,
        /// The uid of the group that it is for.
        owner: Box<str>,
        /// Whether only to ask if it could be.
        dry_run: bool,
    },
    /// Replace all of it.
    Replace {
        /// The object must be this one,
        uid: Box<str>,
        /// in this version.
        version: ResourceVersion,
        /// The object.
        manifest: Arc<Value>,
    },
    /// Server-side apply of a part of its status, which is not ours alone.
    Apply {
        /// The object must be this one,
        uid: Box<str>,
        /// in this version: API servers do not compare the uid of what is applied to a status.
        version: ResourceVersion,
        /// The field manager, another for each group that applies to the object.
        manager: Arc<str>,
        /// The fields of the status that the manager has from now on, and no others.
        status: Arc<Value>,
        /// Whether to take fields over that other managers have.
        force: bool,
    },
    /// Delete it, if it is this one.
    Delete {
        /// The object must be this one.
        uid: Box<str>,
    },
}

/// An object that must be there, and must not be about to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exists {
    /// Its kind.
    pub kind: GroupKind,
    /// The version of its API.
    pub version: Box<str>,
    /// The kind as it stands in paths.
    pub plural: Box<str>,
    /// Its name.
    pub name: NamespacedName,
    /// Its identity.
    pub uid: Box<str>,
}

/// Something that only people can put right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// What it is about.
    pub object: ObjectKey,
    /// The object's identity.
    pub uid: Box<str>,
    /// What it is, in a word.
    pub reason: &'static str,
    /// What it is, and the way out.
    pub message: Arc<str>,
}

/// A condition that turned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// Whose.
    pub object: ObjectKey,
    /// The object's identity.
    pub uid: Box<str>,
    /// The type of the condition.
    pub condition: &'static str,
    /// What it was; none for the first time.
    pub from: Option<ConditionStatus>,
    /// What it is.
    pub to: ConditionStatus,
    /// Since when, as it is written.
    pub since: Timestamp,
    /// Why, in a word.
    pub reason: Arc<str>,
    /// Why, in a line.
    pub message: Arc<str>,
    /// Whether all is well with it.
    pub good: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Cluster, NamespacedName};

    #[test]
    fn what_has_the_name_of_a_group_in_another_cluster_is_not_that_group() {
        let status = |cluster| Slot {
            object: ObjectKey {
                cluster,
                kind: GroupKind::own("Rollup"),
                name: NamespacedName::new("", "all"),
            },
            part: Part::Status,
        };
        assert_eq!(
            status(Cluster::hub()).group(),
            Some(GroupRef::new(OwnKind::Rollup, NamespacedName::new("", "all")))
        );
        let elsewhere = status(Cluster::named("east"));
        assert_eq!((elsewhere.group(), elsewhere.grouping()), (None, None));
    }
}
