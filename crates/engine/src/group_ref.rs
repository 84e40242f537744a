//! References to groups. Each group is one of our own objects in the hub: an Application, a Rollup or a
//! HealthRule.

use std::fmt;

use crate::{
    dialect::Dialect,
    id::{Cluster, GroupKind, NamespacedName, ObjectKey},
};

/// A kind whose objects are groups or rules: our own, and Applications of `app.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OwnKind {
    Application(Dialect),
    HealthRule,
    Rollup,
}

impl OwnKind {
    pub(crate) const ALL: [Self; 4] = [
        Self::Application(Dialect::Bellwether),
        Self::Application(Dialect::AppK8sIo),
        Self::HealthRule,
        Self::Rollup,
    ];

    /// `None` for any other kind.
    pub fn of(kind: &GroupKind) -> Option<Self> {
        match (&*kind.group, &*kind.kind) {
            (bellwether_api::GROUP, "HealthRule") => Some(Self::HealthRule),
            (bellwether_api::GROUP, "Rollup") => Some(Self::Rollup),
            _ => Dialect::of(kind).map(Self::Application),
        }
    }

    pub fn kind(self) -> GroupKind {
        match self {
            Self::Application(dialect) => dialect.kind(),
            Self::HealthRule => GroupKind::bellwether("HealthRule"),
            Self::Rollup => GroupKind::bellwether("Rollup"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GroupRef {
    pub kind: OwnKind,
    pub name: NamespacedName,
}

impl GroupRef {
    pub fn new(kind: OwnKind, name: NamespacedName) -> Self {
        Self { kind, name }
    }

    pub fn object(&self) -> ObjectKey {
        ObjectKey { cluster: Cluster::hub(), kind: self.kind.kind(), name: self.name.clone() }
    }
}

impl fmt::Display for GroupRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.object().fmt(f)
    }
}
