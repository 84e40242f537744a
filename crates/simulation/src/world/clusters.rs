//! The clusters of a run, each with its store, API servers and faults.

use std::ops::{Index, IndexMut};

use crate::{
    plan::{Moment, Plan},
    site::Site,
    store::{self, Store},
};

use super::{RESTORED_BY, active_faults::ActiveFaults};

#[derive(Default)]
pub(super) struct Clusters {
    pub(super) hub: ClusterState,
    east: ClusterState,
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
}

impl Clusters {
    pub(super) fn of(plan: &Plan) -> Self {
        let mut clusters = Self::default();
        clusters.east.version_offset = if plan.restores() { 10 * RESTORED_BY } else { 0 };
        clusters
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
        }
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
