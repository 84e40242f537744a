//! Counts for metrics and readiness probes.

use crate::{
    clusters::ClusterStatus,
    id::{Cluster, GroupKind},
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Whether the initial lists of the required kinds have completed.
    pub synced: bool,
    /// Applications by status of Ready: True, False, Unknown.
    pub applications: [usize; 3],
    /// Rollups by health: Healthy, Warning, Error.
    pub rollups: [usize; 3],
    pub feeds: usize,
    pub objects: usize,
    /// Index entries and requested writes, to detect leaks: memberships, owners, slots.
    pub index_entries: usize,
    /// Kinds of the hub whose initial list has not completed.
    pub unlisted_kinds: Vec<GroupKind>,
    pub clusters: Vec<(Cluster, ClusterStatus)>,
}
