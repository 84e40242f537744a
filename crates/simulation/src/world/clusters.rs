//! What the clusters have, and what goes wrong with their API servers.

use std::ops::{Index, IndexMut};

use crate::{
    site::Site,
    store::{self, Store},
};

use super::active_faults::ActiveFaults;

/// The clusters of a run.
#[derive(Default)]
pub(super) struct Clusters {
    pub(super) hub: ClusterState,
    east: ClusterState,
}

/// What a cluster has, and what goes wrong with its API servers.
pub(super) struct ClusterState {
    pub(super) store: Store,
    /// What the API server knows that may be behind.
    pub(super) behind: u64,
    pub(super) trouble: ActiveFaults,
    /// How many changes the API servers have passed on.
    pub(super) passed_on: (u64, u64),
}

impl Default for ClusterState {
    fn default() -> Self {
        Self { store: store::empty(), behind: 1, trouble: ActiveFaults::default(), passed_on: (1, 1) }
    }
}

impl Index<Site> for Clusters {
    type Output = ClusterState;

    fn index(&self, site: Site) -> &ClusterState {
        match site {
            Site::Hub => &self.hub,
            Site::East => &self.east,
        }
    }
}

impl IndexMut<Site> for Clusters {
    fn index_mut(&mut self, site: Site) -> &mut ClusterState {
        match site {
            Site::Hub => &mut self.hub,
            Site::East => &mut self.east,
        }
    }
}
