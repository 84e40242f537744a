//! The clusters that the members of a group are bound to, and which of them do not report.

use std::{collections::BTreeMap, sync::Arc};

use bellwether_api::{ClusterCounts, NotReportingReason};
use jiff::Timestamp;
use serde::{Serialize, Serializer};

/// Over all members: a cluster reports if it reports every member that is bound to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GroupClusters {
    pub bound: usize,
    pub reporting: usize,
    pub stale: usize,
    pub missing: usize,
    /// Stale ones, then those without a member, by name. A stored status names only the first ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_reporting: Vec<SilentCluster>,
}

/// A cluster that does not report a member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SilentCluster {
    pub name: String,
    pub reason: NotReportingReason,
    /// Of a stale cluster, if it is known and the age is why it is stale.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "text")]
    pub last_heard: Option<Timestamp>,
    /// What cannot be read there, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

#[expect(clippy::ref_option, reason = "serde calls it with a reference to the field")]
fn text<S: Serializer>(time: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_some(&time.map(|time| time.to_string()))
}

/// How one cluster reports an object. The worse ones are greater.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ClusterReport {
    Reporting,
    /// Not known yet.
    Pending,
    Missing,
    Stale {
        unreadable: Option<String>,
        last_heard: Option<Timestamp>,
    },
}

/// The worst report of each cluster.
#[derive(Debug, Default)]
pub(crate) struct ClusterReports(BTreeMap<Arc<str>, ClusterReport>);

impl ClusterReports {
    pub(crate) fn add(&mut self, cluster: Arc<str>, report: ClusterReport) {
        let worst = self.0.entry(cluster).or_insert(ClusterReport::Reporting);
        if report > *worst {
            *worst = report;
        }
    }

    /// `None` without a cluster.
    pub(crate) fn into_clusters(self) -> Option<GroupClusters> {
        let mut clusters = GroupClusters { bound: self.0.len(), ..GroupClusters::default() };
        for (name, report) in self.0 {
            let (reason, last_heard, unreadable) = match report {
                ClusterReport::Reporting => {
                    clusters.reporting += 1;
                    continue;
                }
                ClusterReport::Pending => continue,
                ClusterReport::Missing => {
                    clusters.missing += 1;
                    (NotReportingReason::Missing, None, None)
                }
                ClusterReport::Stale { last_heard, unreadable } => {
                    clusters.stale += 1;
                    (NotReportingReason::Stale, last_heard, unreadable)
                }
            };
            clusters.not_reporting.push(SilentCluster {
                name: name.to_string(),
                reason,
                last_heard,
                unreadable,
            });
        }
        // The sort is stable: by name within each reason.
        clusters.not_reporting.sort_by_key(|cluster| cluster.reason);
        (clusters.bound > 0).then_some(clusters)
    }
}

impl GroupClusters {
    /// By the stored CombinedStatuses of the members. They name only clusters that do not report, so that members
    /// that are bound to different clusters cannot be told from those that are bound to the same: the largest
    /// number counts. `None` without a CombinedStatus.
    pub fn of_stored<'c>(counts: impl IntoIterator<Item = &'c ClusterCounts>) -> Option<Self> {
        let (mut reports, mut bound, mut silent) = (ClusterReports::default(), None, 0);
        let number = |count: i32| usize::try_from(count).unwrap_or_default();
        for counts in counts {
            bound = bound.max(Some(number(counts.bound)));
            silent = silent.max(number(counts.bound) - number(counts.reporting).min(number(counts.bound)));
            for cluster in &counts.not_reporting {
                let report = match cluster.reason {
                    NotReportingReason::Stale => ClusterReport::Stale { unreadable: None, last_heard: None },
                    NotReportingReason::Missing => ClusterReport::Missing,
                };
                reports.add(cluster.name.as_str().into(), report);
            }
        }
        let bound = bound?;
        let named = reports.into_clusters().unwrap_or_default();
        let bound = bound.max(named.bound);
        Some(Self { bound, reporting: bound - silent.max(named.bound).min(bound), ..named })
    }
}

#[cfg(test)]
mod tests {
    use bellwether_api::NotReporting;

    use super::*;

    fn counts(bound: i32, reporting: i32, silent: &[(&str, NotReportingReason)]) -> ClusterCounts {
        let not_reporting =
            silent.iter().map(|(name, reason)| NotReporting { name: (*name).to_owned(), reason: *reason });
        ClusterCounts { bound, reporting, not_reporting: not_reporting.collect(), ..ClusterCounts::default() }
    }

    #[test]
    fn the_worst_report_of_a_cluster_counts() {
        let mut reports = ClusterReports::default();
        let stale = ClusterReport::Stale { unreadable: None, last_heard: Some(Timestamp::UNIX_EPOCH) };
        for (cluster, report) in [
            ("west", ClusterReport::Reporting),
            ("west", ClusterReport::Missing),
            ("west", ClusterReport::Reporting),
            ("east", ClusterReport::Reporting),
            ("north", stale),
            ("north", ClusterReport::Missing),
            ("south", ClusterReport::Pending),
        ] {
            reports.add(cluster.into(), report);
        }
        let clusters = reports.into_clusters().unwrap();
        assert_eq!((clusters.bound, clusters.reporting, clusters.stale, clusters.missing), (4, 1, 1, 1));
        let named: Vec<_> = clusters.not_reporting.iter().map(|it| (it.name.as_str(), it.reason)).collect();
        assert_eq!(named, [("north", NotReportingReason::Stale), ("west", NotReportingReason::Missing)]);
        assert_eq!(ClusterReports::default().into_clusters(), None);
    }

    #[test]
    fn stored_counts_of_several_members() {
        let of = |all: &[ClusterCounts]| {
            GroupClusters::of_stored(all).map(|clusters| {
                let named: Vec<_> = clusters.not_reporting.iter().map(|it| it.name.clone()).collect();
                (clusters.reporting, clusters.bound, named.join(" "))
            })
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[counts(0, 0, &[])]), Some((0, 0, String::new())));
        let east = counts(3, 2, &[("east", NotReportingReason::Missing)]);
        let west = counts(3, 2, &[("west", NotReportingReason::Stale)]);
        assert_eq!(of(&[east.clone(), west, counts(3, 3, &[])]), Some((1, 3, "west east".to_owned())));
        assert_eq!(of(&[east, counts(1, 1, &[])]), Some((2, 3, "east".to_owned())));
        assert_eq!(
            of(&[counts(100, 60, &[("a", NotReportingReason::Stale)])]),
            Some((60, 100, "a".to_owned()))
        );
    }
}
