//! How much an engine has to do with.

use crate::{
    clusters::ClusterStatus,
    id::{Cluster, GroupKind},
};

/// How much an engine has to do with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Whether our own kinds are known.
    pub open: bool,
    /// How many Applications are ready, are not, and of how many nobody can tell.
    pub applications: [usize; 3],
    /// How many Rollups are healthy, how many give a warning, and how many are in error.
    pub rollups: [usize; 3],
    /// How many kinds are followed.
    pub feeds: usize,
    /// How many objects are kept.
    pub objects: usize,
    /// How many notes are kept besides: what belongs to whom, who owns what, what has been asked for.
    pub notes: usize,
    /// The kinds of which it is not known yet what there is.
    pub unknown: Vec<GroupKind>,
    /// The clusters.
    pub clusters: Vec<(Cluster, ClusterStatus)>,
}
