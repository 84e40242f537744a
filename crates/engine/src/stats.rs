//! Counts for metrics and readiness probes.

use bellwether_model::State;
use jiff::Timestamp;

use crate::{
    clusters::ClusterStatus,
    group_ref::GroupRef,
    group_state,
    id::{Cluster, GroupKind},
    members::Members,
    publication::Publication,
};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineStats {
    /// Whether the initial lists of the required kinds have completed.
    pub synced: bool,
    /// Applications by status of Ready: True, False, Unknown.
    pub applications: [usize; 3],
    /// Rollups by health: Healthy, Warning, Error.
    pub rollups: [usize; 3],
    /// HealthRules: valid, invalid.
    pub health_rules: [usize; 2],
    pub feeds: usize,
    pub objects: usize,
    /// Index entries and requested writes, to detect leaks: memberships, owners, slots.
    pub index_entries: usize,
    /// Kinds of the hub whose initial list has not completed.
    pub unlisted_kinds: Vec<GroupKind>,
    pub clusters: Vec<(Cluster, ClusterStatus)>,
}

/// Groups for metrics, without members and texts: the cost for each does not grow with its members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupSamples {
    limit: usize,
    pub samples: Vec<GroupSample>,
    /// How many groups are not among the samples, because there are more than the limit.
    pub without: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSample {
    pub group: GroupRef,
    pub state: State,
    /// In percent; `None` without members.
    pub progress: Option<u8>,
    /// Since when it is in this state, if known.
    pub since: Option<Timestamp>,
    /// Changes of the state since the start of the process.
    pub transitions: u64,
}

impl GroupSample {
    pub(crate) fn new(
        publication: &Publication,
        members: &Members,
        state: State,
        since: Option<Timestamp>,
    ) -> Self {
        Self {
            group: publication.group().clone(),
            state,
            progress: group_state::progress(members.progress(), state),
            since,
            transitions: publication.transitions,
        }
    }
}

impl GroupSamples {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    /// Evaluates the group only if it fits.
    pub(crate) fn add(&mut self, sample: impl FnOnce() -> GroupSample) {
        if self.samples.len() < self.limit {
            self.samples.push(sample());
        } else {
            self.without += 1;
        }
    }
}
