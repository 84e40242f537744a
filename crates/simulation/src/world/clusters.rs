//! The clusters of a run, each with its store, API servers and faults.

use std::{
    collections::BTreeMap,
    ops::{Index, IndexMut},
};

use crate::{
    plan::{Moment, Plan},
    site::Site,
    store::{self, Store},
};

use super::{RESTORED_BY, active_faults::ActiveFaults, reading::RequestOrigin};

#[derive(Default)]
pub(super) struct Clusters {
    pub(super) hub: ClusterState,
    east: ClusterState,
    north: ClusterState,
    west: ClusterState,
}

pub(super) struct ClusterState {
    pub(super) store: Store,
    /// Each cluster has two API servers, and one may be stale: the revision that it knows.
    pub(super) behind: u64,
    pub(super) faults: ActiveFaults,
    /// The revisions that both API servers have sent to watches: the current one first.
    pub(super) passed_on: (u64, u64),
    /// What API servers add to each revision of the store, for a resourceVersion. A restore lowers it.
    pub(super) version_offset: u64,
    /// When it was restored last.
    pub(super) restored: Option<Moment>,
    /// What the inventory has; `None` if it does not list the cluster.
    pub(super) entry: Option<InventoryEntry>,
    /// How often it was rebuilt.
    pub(super) rebuilt: u64,
    /// Since when its network is unplugged: requests hang, and watches are silent.
    pub(super) unplugged: Option<Moment>,
    /// The requests that hang, and whether each is a list.
    pub(super) hanging: Vec<(RequestOrigin, bool)>,
}

/// A cluster in the inventory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InventoryEntry {
    pub(crate) labels: BTreeMap<String, String>,
    /// Tells it from an earlier entry of the same name.
    pub(crate) number: u64,
}

impl Clusters {
    pub(super) fn of(plan: &Plan) -> Self {
        let mut clusters = Self::default();
        clusters.east.version_offset = if plan.restores() { 10 * RESTORED_BY } else { 0 };
        clusters
    }
}

impl ClusterState {
    /// The uid of the namespace `kube-system`.
    pub(super) fn uid(&self, site: Site) -> String {
        format!("{}-{}", site.name(), self.rebuilt)
    }
}

impl Default for ClusterState {
    fn default() -> Self {
        Self {
            store: store::empty(),
            behind: 1,
            faults: ActiveFaults::default(),
            passed_on: (1, 1),
            version_offset: 0,
            restored: None,
            entry: None,
            rebuilt: 0,
            unplugged: None,
            hanging: Vec::new(),
        }
    }
}

impl Index<Site> for Clusters {
    type Output = ClusterState;

    fn index(&self, site: Site) -> &ClusterState {
        match site {
            Site::Hub => &self.hub,
            Site::East => &self.east,
            Site::North => &self.north,
            Site::West => &self.west,
        }
    }
}

impl IndexMut<Site> for Clusters {
    fn index_mut(&mut self, site: Site) -> &mut ClusterState {
        match site {
            Site::Hub => &mut self.hub,
            Site::East => &mut self.east,
            Site::North => &mut self.north,
            Site::West => &mut self.west,
        }
    }
}
