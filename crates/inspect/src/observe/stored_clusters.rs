//! The clusters of groups by the stored CombinedStatuses of their members, where no cluster is named: a controller has
//! read the clusters.

use std::{collections::HashMap, sync::Arc};

use bellwether_api::ClusterCounts;
use bellwether_engine::{Facts, Group, GroupClusters, GroupKind, Lens, Member, RequestedFields};
use bellwether_health::user::UserRules;

/// By the UID of the object.
#[derive(Debug, Default)]
pub(super) struct StoredClusters(HashMap<Box<str>, Vec<ClusterCounts>>);

pub(super) fn combined_status() -> GroupKind {
    GroupKind::bellwether("CombinedStatus")
}

const CLUSTERS: &str = "clusters";

/// What is read of a CombinedStatus.
pub(super) fn requested() -> RequestedFields {
    RequestedFields::paths([&[CLUSTERS][..]])
}

pub(super) fn lens(rules: Arc<UserRules>) -> Lens {
    Lens::with(&combined_status(), rules, Arc::new(requested()))
}

impl StoredClusters {
    pub(super) fn of<'f>(combined_statuses: impl IntoIterator<Item = &'f Facts>) -> Self {
        let mut stored = Self::default();
        for facts in combined_statuses {
            // Another version may have written it.
            if let Some(counts) = counts(facts) {
                for owner in &facts.owners {
                    stored.0.entry(owner.uid.clone()).or_default().push(counts.clone());
                }
            }
        }
        stored
    }

    /// Sets the clusters of a group.
    pub(super) fn add_to(&self, group: &mut Group) {
        let of_member = |member: &Member| self.0.get(member.uid.as_deref()?);
        group.clusters = GroupClusters::of_stored(group.members.iter().filter_map(of_member).flatten());
    }
}

fn counts(facts: &Facts) -> Option<ClusterCounts> {
    let clusters = facts.values.as_ref()?.fields.at(CLUSTERS)?;
    serde_json::from_value(serde_json::to_value(clusters).ok()?).ok()
}
