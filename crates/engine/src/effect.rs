//! Output of the engine: what the caller has to watch, write, record as an Event, or wait for.

use std::{fmt, sync::Arc};

use jiff::Timestamp;
use serde_json::Value;

use crate::{
    dialect::Dialect,
    facts::{OwnerReference, ResourceVersion},
    group_ref::{GroupRef, OwnKind},
    id::{Cluster, FeedId, GroupKind, NamespacedName, ObjectKey},
    lens::Lens,
    requested_fields::FieldPath,
};

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// List and watch a kind. For a feed that exists already: relist it through the new lens.
    Follow { feed: FeedId, cluster: Cluster, kind: GroupKind, lens: Arc<Lens> },
    /// Stop watching.
    Leave { feed: FeedId, cluster: Cluster },
    /// The slot may need a write; `None` withdraws it. [`Engine::render_write`](crate::Engine::render_write)
    /// renders it when it is due, so that changes in between cost no rendering.
    EnqueueWrite(Slot, Option<Urgency>),
    /// The status of a group may have changed. Without a name: of all groups of the kind, also of names that
    /// do not exist.
    Changed(OwnKind, Option<NamespacedName>),
    /// Record an Event for a transition that was written.
    Record(Transition),
    /// Record an Event for a problem that a person has to solve.
    Warn(Warning),
    /// Call [`Engine::step`](crate::Engine::step) at this time. Replaces the previous `Wake`.
    Wake(Option<Timestamp>),
}

/// A part of an object for which at most one write is pending.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot {
    pub object: ObjectKey,
    pub part: Part,
}

/// Parts of objects that are written independently.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The status of a group's own object.
    Status,
    /// `ownerReferences`. All Applications of a namespace decide together who owns an object.
    OwnerReferences,
    /// The whole object: created, replaced or deleted on behalf of a group.
    Object(GroupRef),
    /// The status of a foreign object. All BindingPolicies that bind the object decide together.
    ForeignStatus,
}

impl Slot {
    /// The group that the slot belongs to; `None` if several decide. Groups are in the hub: an object of
    /// the same kind and name in another cluster is not a group.
    pub fn group(&self) -> Option<GroupRef> {
        match &self.part {
            Part::Status if !self.object.cluster.is_hub() => None,
            Part::Status => Some(GroupRef::new(OwnKind::of(&self.object.kind)?, self.object.name.clone())),
            Part::OwnerReferences | Part::ForeignStatus => None,
            Part::Object(group) => Some(group.clone()),
        }
    }

    /// The grouping that requests the write and handles its outcome.
    pub(crate) fn grouping(&self) -> Option<OwnKind> {
        match &self.part {
            Part::Status => Some(self.group()?.kind),
            Part::OwnerReferences => Some(OwnKind::Application(Dialect::Bellwether)),
            Part::ForeignStatus => Some(OwnKind::BindingPolicy),
            Part::Object(group) => Some(group.kind),
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Status => "status",
            Self::OwnerReferences => "ownerReferences",
            Self::Object(_) => "object",
            Self::ForeignStatus => "copied status",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Urgency {
    /// Only messages or lists may differ; the write can wait.
    MessageOnly,
    /// A condition changes its status; the write should not wait.
    Transition,
    /// The state changes, or the main condition; the write passes those that also do not wait.
    StateChange,
}

/// A write. `uid` and `version` are preconditions.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// A merge patch of the status subresource.
    Status {
        uid: Box<str>,
        resource_version: ResourceVersion,
        patch: Arc<Value>,
        /// Events to record once it is written.
        transitions: Box<[Transition]>,
        /// The kinds in `status.ownedKinds` of the patch. The group may own objects of them once it is
        /// written.
        owned_kinds: Box<[GroupKind]>,
    },
    OwnerReferences {
        uid: Box<str>,
        resource_version: ResourceVersion,
        /// The complete list.
        owners: Arc<[OwnerReference]>,
        /// The new owner, which must exist at the time of the write: the garbage collector deletes objects
        /// whose owner does not exist.
        required_owner: Option<Box<RequiredOwner>>,
    },
    Create {
        manifest: Arc<Value>,
        /// The uid of the group for which it is created.
        owner: Box<str>,
        dry_run: bool,
    },
    /// A JSON patch: the values are stored as they are, nulls in them included. A field is removed if its value is
    /// null.
    SetFields {
        uid: Box<str>,
        resource_version: ResourceVersion,
        /// Of the object, or of its status subresource.
        part: Patched,
        fields: Arc<[(FieldPath, Value)]>,
    },
    /// Server-side apply of fields in the status of a foreign object.
    Apply {
        uid: Box<str>,
        /// Also stands in for the uid: API servers do not compare the uid when they apply to a status.
        resource_version: ResourceVersion,
        manager: Arc<str>,
        /// All fields that the manager owns from now on.
        status: Arc<Value>,
        /// Whether to take over fields of other managers.
        force: bool,
    },
    Delete {
        uid: Box<str>,
    },
}

/// The endpoint that a patch is sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patched {
    Object,
    Status,
}

/// An object that must exist and must not be terminating.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredOwner {
    pub kind: GroupKind,
    pub api_version: Box<str>,
    /// As in URLs: `applications`.
    pub plural: Box<str>,
    pub name: NamespacedName,
    pub uid: Box<str>,
}

/// A Warning Event that is not about a transition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub object: ObjectKey,
    pub uid: Box<str>,
    pub reason: &'static str,
    /// What is wrong, and what to do.
    pub message: Arc<str>,
}

/// A change of the state of a group, or of the status of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    pub object: ObjectKey,
    pub uid: Box<str>,
    /// [`STATE`](Self::STATE), or the type of the condition.
    pub subject: &'static str,
    /// `None` if it is new.
    pub from: Option<&'static str>,
    pub to: &'static str,
    /// The time that was written with it: `lastTransitionTime`, or that of `lastEvent`.
    pub since: Timestamp,
    /// Of the condition, or the name of the state.
    pub reason: Arc<str>,
    pub message: Arc<str>,
    /// A Normal Event, otherwise a Warning.
    pub good: bool,
}

impl Transition {
    /// The subject of a change of `status.state`.
    pub const STATE: &'static str = "State";
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Cluster, NamespacedName};

    #[test]
    fn a_namesake_in_another_cluster_is_not_a_group() {
        let status = |cluster| Slot {
            object: ObjectKey {
                cluster,
                kind: GroupKind::bellwether("Rollup"),
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
