//! The clusters of a run: the hub, and three others with objects of the same names.

use bellwether_engine::{Cluster, GroupKind};
use serde::{Deserialize, Serialize};

use crate::objects;

/// Part of the file format of histories, like `Plan`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Site {
    Hub,
    East,
    North,
    West,
}

impl Site {
    pub(crate) const ALL: [Self; 4] = [Self::Hub, Self::East, Self::North, Self::West];

    /// Those that an inventory may list, sorted by name.
    pub(crate) const WORKLOAD: [Self; 3] = [Self::East, Self::North, Self::West];

    pub(crate) fn of(cluster: &Cluster) -> Option<Self> {
        Self::ALL.into_iter().find(|site| site.cluster() == *cluster)
    }

    /// Empty for the hub.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hub => "",
            Self::East => "east",
            Self::North => "north",
            Self::West => "west",
        }
    }

    pub(crate) fn cluster(self) -> Cluster {
        match self {
            Self::Hub => Cluster::hub(),
            Self::East | Self::North | Self::West => Cluster::named(self.name()),
        }
    }

    /// The kinds that controllers without an inventory follow there independent of groups.
    pub(crate) fn observed(self) -> impl Iterator<Item = GroupKind> {
        let kinds = match self {
            Self::Hub | Self::North | Self::West => &[][..],
            Self::East => {
                &["Application.bellwether.dev", "Deployment.apps", "Pod", "Service", "Widget.acme.io"]
            }
        };
        kinds.iter().map(|kind| objects::kind(kind))
    }
}
