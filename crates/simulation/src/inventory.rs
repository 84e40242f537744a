//! Clusters that come and go.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{plan::Moment, site::Site};

/// The labels of a cluster.
pub(crate) type Labels = BTreeMap<String, String>;

/// A change of the inventory, or of a cluster as a whole. Part of the file format of histories, like `Plan`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum InventoryAction {
    /// Lists the cluster with these labels, or replaces its labels.
    Add(Site, Labels),
    Remove(Site),
    /// Removes the cluster and adds it at once, with the same labels.
    Replace(Site),
    /// Another cluster, without objects, has the name and the address.
    Rebuild(Site),
    /// Its network is unplugged for this long, or for ever.
    Unplug(Site, Option<Moment>),
}

/// What a controller knows of a cluster of the inventory.
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
#[derive(Clone, Debug)]
pub(crate) struct ConnectedCluster {
    /// Of the entry of the inventory.
    pub(crate) number: u64,
    pub(crate) labels: Labels,
    /// Whether its labels have changed since.
    pub(crate) relabelled: bool,
    /// Whether it was in the first list of the inventory.
    pub(crate) is_initial: bool,
    /// When it was added.
    pub(crate) added: Moment,
    /// When it was connected to; `None` while it waits for its turn.
    pub(crate) connecting: Option<Moment>,
    /// The identity that was reported last.
    pub(crate) uid: Option<String>,
    /// When it turned out to be another cluster than before.
    pub(crate) rebuilt: Option<Moment>,
    /// When the identity was last read; `None` if it must be read now.
    pub(crate) asked: Option<Moment>,
    /// When something last arrived.
    pub(crate) heard: Option<Moment>,
    /// The same, as the engine knows it.
    pub(crate) reported: Option<Moment>,
    /// Whether its watches were closed and nothing has arrived since.
    pub(crate) is_lost: bool,
    /// The same, as the engine knows it.
    pub(crate) was_lost: bool,
}

impl ConnectedCluster {
    pub(crate) fn new(number: u64, labels: Labels, is_initial: bool, added: Moment) -> Self {
        Self {
            number,
            labels,
            relabelled: false,
            is_initial,
            added,
            connecting: None,
            uid: None,
            rebuilt: None,
            asked: None,
            heard: None,
            reported: None,
            is_lost: false,
            was_lost: false,
        }
    }

    /// For how long nothing has arrived.
    pub(crate) fn silence(&self, now: Moment) -> Moment {
        now.saturating_sub(self.heard.unwrap_or(self.added))
    }
}

impl fmt::Display for InventoryAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(site, labels) => write!(f, "the inventory lists {} with {labels:?}", site.name()),
            Self::Remove(site) => write!(f, "the inventory does not list {} any more", site.name()),
            Self::Replace(site) => write!(f, "{} is removed from the inventory and added", site.name()),
            Self::Rebuild(site) => write!(f, "{} is rebuilt", site.name()),
            Self::Unplug(site, Some(lasts)) => write!(f, "{} is unplugged for {lasts} ms", site.name()),
            Self::Unplug(site, None) => write!(f, "{} is unplugged for ever", site.name()),
        }
    }
}
