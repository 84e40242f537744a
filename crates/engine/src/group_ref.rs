//! References to groups. Each group is one of our own objects in the hub.

use std::fmt;

use crate::{
    dialect::Dialect,
    id::{Cluster, GroupKind, NamespacedName, ObjectKey},
};

/// A kind whose objects are groups or rules: our own, and Applications of `app.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OwnKind {
    Application(Dialect),
    BindingPolicy,
    CombinedStatus,
    HealthRule,
    Rollup,
    StatusCollector,
}

impl OwnKind {
    pub(crate) const ALL: [Self; 7] = [
        Self::Application(Dialect::Bellwether),
        Self::Application(Dialect::AppK8sIo),
        Self::BindingPolicy,
        Self::CombinedStatus,
        Self::HealthRule,
        Self::Rollup,
        Self::StatusCollector,
    ];

    /// `None` for any other kind.
    pub fn of(kind: &GroupKind) -> Option<Self> {
        match (&*kind.group, &*kind.kind) {
            (bellwether_api::GROUP, "BindingPolicy") => Some(Self::BindingPolicy),
            (bellwether_api::GROUP, "CombinedStatus") => Some(Self::CombinedStatus),
            (bellwether_api::GROUP, "HealthRule") => Some(Self::HealthRule),
            (bellwether_api::GROUP, "Rollup") => Some(Self::Rollup),
            (bellwether_api::GROUP, "StatusCollector") => Some(Self::StatusCollector),
            _ => Dialect::of(kind).map(Self::Application),
        }
    }

    pub fn kind(self) -> GroupKind {
        match self {
            Self::Application(dialect) => dialect.kind(),
            Self::BindingPolicy => GroupKind::bellwether("BindingPolicy"),
            Self::CombinedStatus => GroupKind::bellwether("CombinedStatus"),
            Self::HealthRule => GroupKind::bellwether("HealthRule"),
            Self::Rollup => GroupKind::bellwether("Rollup"),
            Self::StatusCollector => GroupKind::bellwether("StatusCollector"),
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
