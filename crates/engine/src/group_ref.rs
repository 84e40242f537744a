//! The kinds that groups are written in, and the groups themselves by name.

use std::fmt;

use crate::{
    dialect::Dialect,
    id::{Cluster, GroupKind, NamespacedName, ObjectKey},
};

/// A kind that a grouping reads: our own, and the Applications of `app.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OwnKind {
    /// An Application, in either API.
    Application(Dialect),
    /// A HealthRule.
    HealthRule,
    /// A Rollup.
    Rollup,
}

impl OwnKind {
    pub(crate) const ALL: [Self; 4] = [
        Self::Application(Dialect::Bellwether),
        Self::Application(Dialect::AppK8sIo),
        Self::HealthRule,
        Self::Rollup,
    ];

    /// Which of them a kind is, if any.
    pub fn of(kind: &GroupKind) -> Option<Self> {
        match (&*kind.group, &*kind.kind) {
            (bellwether_api::GROUP, "HealthRule") => Some(Self::HealthRule),
            (bellwether_api::GROUP, "Rollup") => Some(Self::Rollup),
            _ => Dialect::of(kind).map(Self::Application),
        }
    }

    /// The kind as API servers have it.
    pub fn kind(self) -> GroupKind {
        match self {
            Self::Application(dialect) => dialect.kind(),
            Self::HealthRule => GroupKind::own("HealthRule"),
            Self::Rollup => GroupKind::own("Rollup"),
        }
    }
}

/// One of our own objects, which are all in the hub.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupRef {
    /// Its kind.
    pub kind: OwnKind,
    /// Its name.
    pub name: NamespacedName,
}

impl GroupRef {
    /// The group of this kind and name.
    pub fn new(kind: OwnKind, name: NamespacedName) -> Self {
        Self { kind, name }
    }

    /// The object that an API server has.
    pub fn object(&self) -> ObjectKey {
        ObjectKey { cluster: Cluster::hub(), kind: self.kind.kind(), name: self.name.clone() }
    }
}

impl fmt::Display for GroupRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object().fmt(f)
    }
}
