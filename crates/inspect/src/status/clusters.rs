//! The clusters that the members of groups are bound to.

use std::{collections::BTreeMap, fmt::Write as _};

use bellwether_api::NotReportingReason;
use bellwether_engine::{Detail, Group, SilentCluster};
use bellwether_terminal::{Screen, how_long, printable, wrap};
use jiff::Timestamp;

/// How many clusters report of how many: `2/3`. Empty for a group without clusters.
pub(super) fn fraction(group: &Group) -> String {
    let clusters = group.clusters.as_ref();
    clusters.map(|clusters| format!("{}/{}", clusters.reporting, clusters.bound)).unwrap_or_default()
}

/// Why a BindingPolicy has no members.
pub(crate) fn why_empty(group: &Group) -> Option<&'static str> {
    match group.detail {
        Detail::BindingPolicy { objects: 0, .. } => Some("binds no objects: check spec.downsync"),
        Detail::BindingPolicy { .. } if group.clusters.is_none() => {
            Some("selects none of the clusters: add labels with --cluster-labels")
        }
        _ => None,
    }
}

/// A line for each stale cluster of these groups: `west is stale: not heard from for 2m`.
pub(super) fn silent(groups: &[Group], now: Timestamp, screen: Screen) -> String {
    let mut stale = BTreeMap::new();
    for cluster in groups.iter().filter_map(|group| group.clusters.as_ref()).flat_map(|it| &it.not_reporting)
    {
        if cluster.reason == NotReportingReason::Stale {
            // Any group may say why.
            let known = stale.entry(&cluster.name).or_insert(cluster);
            if known.unreadable.is_none() && known.last_heard.is_none() {
                *known = cluster;
            }
        }
    }
    lines(stale.into_values(), "", now, screen)
}

/// A line for each cluster that does not report a member of the group.
pub(super) fn not_reporting(group: &Group, now: Timestamp, screen: Screen) -> String {
    let clusters = group.clusters.iter().flat_map(|clusters| &clusters.not_reporting);
    lines(clusters, "  ", now, screen)
}

fn lines<'c>(
    clusters: impl Iterator<Item = &'c SilentCluster>,
    indent: &str,
    now: Timestamp,
    screen: Screen,
) -> String {
    let mut text = String::new();
    for SilentCluster { name, reason, last_heard, unreadable } in clusters {
        let line = match (reason, unreadable, last_heard) {
            (NotReportingReason::Missing, ..) => format!("{name} does not have all bound objects"),
            (NotReportingReason::Stale, Some(why), _) => format!("{name} is stale: cannot read {why}"),
            (NotReportingReason::Stale, None, Some(heard)) => {
                format!("{name} is stale: not heard from for {}", how_long(*heard, now))
            }
            (NotReportingReason::Stale, None, None) => format!("{name} is stale"),
        };
        for line in wrap(&printable(&line), screen.page().saturating_sub(indent.len())) {
            let _ = writeln!(text, "{indent}{line}");
        }
    }
    text
}
