//! The result of queries: a group with all its members, or a summary without them.

use std::sync::Arc;

use bellwether_api::{DependencyStatus, ObjectCause, ObjectCounts, RollupHealth};
use bellwether_conditions::Statement;
use bellwether_health::{Rule, Source, Verdict};
use bellwether_model::{ConditionStatus, State};
use jiff::Timestamp;

use crate::{
    event::Unreadable,
    group_clusters::GroupClusters,
    id::{GroupKind, NamespacedName},
};

#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub kind: GroupKind,
    pub name: NamespacedName,
    /// The worst state among the members that keep the group from being ready.
    pub state: State,
    /// It has a `deletionTimestamp`. An Application is also Terminating while a member is.
    pub deleting: bool,
    /// `None` if unknown.
    pub since: Option<Timestamp>,
    /// The most important first: Ready of an Application, Available of a Rollup.
    pub conditions: Vec<Condition>,
    pub counts: ObjectCounts,
    /// The mean over the members.
    pub progress: Option<u8>,
    /// Complete; worst first, then by kind and name.
    pub members: Vec<Member>,
    /// Set if members are bound to clusters.
    pub clusters: Option<GroupClusters>,
    pub detail: Detail,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Detail {
    Application {
        /// `spec.type`, or `spec.descriptor.type` of `app.k8s.io`.
        type_: Option<String>,
        /// `spec.version`, or `spec.descriptor.version` of `app.k8s.io`.
        version: Option<String>,
        dependencies: Vec<DependencyStatus>,
    },
    Rollup {
        health: RollupHealth,
        /// The combination of the conditions as a sentence.
        meaning: String,
    },
    BindingPolicy {
        /// The number of bound objects. Each is a member once for each cluster.
        objects: usize,
        /// Whether they are ready in all clusters. The policy has no condition for it.
        ready: Statement,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    pub type_: &'static str,
    pub statement: Statement,
    /// Since when it has its status, if known.
    pub since: Option<Timestamp>,
    /// If damping holds back a bad status: until when. The message describes the issue.
    pub held_until: Option<Timestamp>,
}

/// A group without its members: its cost does not grow with their number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusSummary {
    pub kind: GroupKind,
    pub name: NamespacedName,
    /// Ready is True, or all conditions of the Rollup are good; and the group is not terminating.
    pub healthy: bool,
    /// As of [`Group::state`].
    pub state: State,
    /// Since when `healthy` has its value, if known.
    pub since: Option<Timestamp>,
    /// In the order of [`Group::conditions`].
    pub conditions: Vec<(&'static str, Statement)>,
    /// Rollups only.
    pub meaning: Option<String>,
}

/// The answer to a query about one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupStatus {
    Known(Box<StatusSummary>),
    NotFound,
    /// The cluster has been silent for too long to trust its state.
    Silent {
        since: Timestamp,
    },
    /// These kinds have not been listed yet, or cannot be read.
    Unknown(Vec<(GroupKind, Option<Unreadable>)>),
}

impl GroupStatus {
    pub(crate) fn waiting_for(kinds: impl IntoIterator<Item = GroupKind>) -> Self {
        Self::Unknown(kinds.into_iter().map(|kind| (kind, None)).collect())
    }

    /// There is no such group in the store: it does not exist, unless its kind cannot be read.
    pub(crate) fn absent_or_unreadable(kind: &GroupKind, unreadable: Option<Unreadable>) -> Self {
        match unreadable {
            None | Some(Unreadable::NotServed) => Self::NotFound,
            unreadable => Self::Unknown(vec![(kind.clone(), unreadable)]),
        }
    }
}

/// A member, or a placeholder for one that does not exist.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    pub kind: GroupKind,
    /// The name of an object, or what [`StandsFor`] says.
    pub name: NamespacedName,
    /// The cluster that it is in. `None` for the hub.
    pub cluster: Option<Arc<str>>,
    pub stands_for: StandsFor,
    /// `None` if it does not exist.
    pub uid: Option<Box<str>>,
    pub state: State,
    pub progress: u8,
    pub reason: String,
    pub message: String,
    /// `None` if unknown.
    pub since: Option<Timestamp>,
    /// The rule that gave the verdict; `None` if the object does not exist or is a component of a Rollup.
    pub rule: Option<Rule>,
    /// The object below it because of which it is not ready.
    pub cause: Option<ObjectCause>,
    /// Components of Rollups only.
    pub component_conditions: Option<ReportedConditions>,
}

/// What a [`Member`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StandsFor {
    /// An object, which may be missing.
    Object,
    /// A selector that matches no object, or whose kind cannot be read. The name is the text of the selector.
    Selector,
    /// An invalid entry of the spec. The name is its path.
    Entry,
}

/// The conditions of a component, as its operator reports them or as the Rollup assumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedConditions {
    pub available: ConditionStatus,
    pub progressing: ConditionStatus,
    pub degraded: ConditionStatus,
    /// Set if the component reports it and the Rollup asks for it.
    pub upgradeable: Option<ConditionStatus>,
}

/// How a group relates to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupRelation {
    pub kind: GroupKind,
    pub name: NamespacedName,
    pub relation: Relation,
    /// Those that a BindingPolicy binds the object to.
    pub clusters: Vec<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// A member, and owned.
    Owner,
    /// A member, to be owned.
    FutureOwner,
    Member,
    /// The selector matches, but the spec does not contain the kind.
    KindNotListed,
    NotSelected,
    /// The selector matches, but the annotation names another Application or is missing, or the object is the
    /// Application itself.
    NotAMember,
    /// A Rollup that names it as a component.
    Names,
    Selects,
    /// A BindingPolicy that binds it.
    Binds,
}

impl StatusSummary {
    pub fn condition(&self, type_: &str) -> Option<&Statement> {
        self.conditions.iter().find(|(other, _)| *other == type_).map(|(_, statement)| statement)
    }
}

impl Group {
    pub fn is_rollup(&self) -> bool {
        matches!(self.detail, Detail::Rollup { .. })
    }

    pub fn is_policy(&self) -> bool {
        matches!(self.detail, Detail::BindingPolicy { .. })
    }

    pub fn dependencies(&self) -> &[DependencyStatus] {
        match &self.detail {
            Detail::Application { dependencies, .. } => dependencies,
            Detail::Rollup { .. } | Detail::BindingPolicy { .. } => &[],
        }
    }

    /// See [`Detail::Rollup`]; `None` for other groups.
    pub fn meaning(&self) -> Option<&str> {
        match &self.detail {
            Detail::Application { .. } | Detail::BindingPolicy { .. } => None,
            Detail::Rollup { meaning, .. } => Some(meaning),
        }
    }

    /// The verdict of the group's own object by this evaluation, not by its stored status.
    pub fn verdict(&self, stored: &Verdict) -> Option<Verdict> {
        // A HealthRule for groups comes before their evaluation. The object of a BindingPolicy is not the objects that
        // it binds.
        if stored.rule.source == Source::User || self.is_policy() {
            return Some(stored.clone());
        }
        let statement = self.deciding_condition()?;
        // Deletion comes before all rules. Only the object has its time.
        if stored.state == State::Terminating {
            let is_rollup = self.is_rollup();
            let reason = if is_rollup { stored.reason.clone() } else { statement.reason.to_string().into() };
            return Some(Verdict { reason, ..stored.clone() });
        }
        Some(Verdict {
            state: self.state,
            progress: self.progress.unwrap_or_default(),
            reason: statement.reason.to_string().into(),
            message: statement.message.to_string().into(),
            since: self.since,
            later: None,
            ..stored.clone()
        })
    }
}
