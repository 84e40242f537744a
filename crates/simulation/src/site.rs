//! The clusters of a run: the hub, and a second one with objects of the same names.

use bellwether_engine::{Cluster, GroupKind};

use crate::objects;

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

    /// The kinds that controllers follow there independent of groups.
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
