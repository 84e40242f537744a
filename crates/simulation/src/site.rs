//! The clusters of a run: the hub, and another one whose objects have the same names.

use bellwether_engine::{Cluster, GroupKind};

use crate::objects;

/// A cluster of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Site {
    Hub,
    East,
}

impl Site {
    pub(crate) const ALL: [Self; 2] = [Self::Hub, Self::East];

    pub(crate) fn of(cluster: &Cluster) -> Option<Self> {
        Self::ALL.into_iter().find(|site| site.cluster() == *cluster)
    }

    pub(crate) fn cluster(self) -> Cluster {
        match self {
            Self::Hub => Cluster::hub(),
            Self::East => Cluster::named("east"),
        }
    }

    /// The kinds that are followed there, whatever groups need.
    pub(crate) fn observed(self) -> impl Iterator<Item = GroupKind> {
        let kinds = match self {
            Self::Hub => &[][..],
            Self::East => {
                &["Application.bellwether.dev", "Deployment.apps", "Pod", "Service", "Widget.acme.io"]
            }
        };
        kinds.iter().map(|kind| objects::kind(kind))
    }
}
