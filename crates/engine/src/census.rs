//! Counts for metrics and readiness probes.

use crate::{
    clusters::ClusterStatus,
    id::{Cluster, GroupKind},
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Census {
    /// Whether the initial lists of the base kinds have completed.
    pub open: bool,
    /// Applications by status of Ready: True, False, Unknown.
    pub applications: [usize; 3],
    /// Rollups by health: Healthy, Warning, Error.
    pub rollups: [usize; 3],
    pub feeds: usize,
    pub objects: usize,
    /// Index entries and pending changes, to detect leaks: memberships, owners, requested writes.
    pub notes: usize,
    /// Kinds of the hub whose initial list has not completed.
    pub unknown: Vec<GroupKind>,
    pub clusters: Vec<(Cluster, ClusterStatus)>,
}
