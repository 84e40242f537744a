//! The connection state of clusters, and when they were last heard from.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::{SignedDuration, Timestamp};

use crate::{
    event::{ClusterEvent, ClusterMetadata, DiscoveredKinds},
    id::Cluster,
};

/// API servers send a bookmark on every watch about once a minute. After two missed ones, what the cluster
/// reported is stale.
const SILENCE: SignedDuration = SignedDuration::from_mins(2);

/// API servers close watches regularly, and reflectors reopen them at once.
const RECONNECT: SignedDuration = SignedDuration::from_secs(3);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterStatus {
    /// The uid of the namespace `kube-system`; `None` if it cannot be read.
    pub uid: Option<Box<str>>,
    pub kinds: Arc<DiscoveredKinds>,
    pub metadata: Arc<ClusterMetadata>,
    /// When data or a bookmark last arrived.
    pub last_heard: Option<Timestamp>,
    pub disconnected_since: Option<Timestamp>,
    /// Since when it should answer; `None` while it waits to be connected to.
    pub connecting_since: Option<Timestamp>,
}

impl ClusterStatus {
    /// Set if the cluster has been silent for so long that its state is stale.
    pub fn silent_since(&self, now: Timestamp) -> Option<Timestamp> {
        self.last_heard.filter(|heard| heard.duration_until(now) >= SILENCE)
    }

    /// When the cluster becomes silent, if nothing arrives before.
    fn silent_at(&self) -> Option<Timestamp> {
        self.last_heard?.checked_add(SILENCE).ok()
    }

    /// Set if the connection is down for longer than a reconnect takes, or if the cluster is silent.
    pub fn unreachable_since(&self, now: Timestamp) -> Option<Timestamp> {
        let lost = self.disconnected_since.filter(|lost| lost.duration_until(now) > RECONNECT);
        lost.or_else(|| self.silent_since(now))
    }
}

/// An event that affects all feeds of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClusterChange {
    /// A new source, which follows no kind yet.
    Added,
    /// Another cluster has the name now.
    Replaced,
    Removed,
}

#[derive(Debug, Default)]
pub(crate) struct Clusters {
    status: BTreeMap<Cluster, ClusterStatus>,
    /// Pending silence timers.
    timers: BTreeMap<Cluster, Timestamp>,
    removed: BTreeSet<Cluster>,
}

impl Clusters {
    pub(crate) fn get(&self, cluster: &Cluster) -> Option<&ClusterStatus> {
        self.status.get(cluster)
    }

    pub(crate) fn is_removed(&self, cluster: &Cluster) -> bool {
        self.removed.contains(cluster)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&Cluster, &ClusterStatus)> {
        self.status.iter()
    }

    pub(crate) fn silent_since(&self, cluster: &Cluster, now: Timestamp) -> Option<Timestamp> {
        self.get(cluster)?.silent_since(now)
    }

    /// When to check for silence; `None` if a pending timer is early enough, or the cluster is silent
    /// already.
    pub(crate) fn next_timer(&mut self, cluster: &Cluster, now: Timestamp) -> Option<Timestamp> {
        let at = self.get(cluster)?.silent_at().filter(|at| *at > now)?;
        if self.timers.get(cluster).is_some_and(|timer| *timer <= at) {
            return None;
        }
        self.timers.insert(cluster.clone(), at);
        Some(at)
    }

    pub(crate) fn timer_fired(&mut self, cluster: &Cluster) {
        self.timers.remove(cluster);
    }

    /// A clock that was set is not silence.
    pub(crate) fn clock_set(&mut self, by: SignedDuration) {
        let times = self
            .status
            .values_mut()
            .flat_map(|status| {
                [&mut status.last_heard, &mut status.disconnected_since, &mut status.connecting_since]
            })
            .flatten();
        for time in times.chain(self.timers.values_mut()) {
            *time = time.checked_add(by).unwrap_or(*time);
        }
    }

    /// Returns what the feeds of the cluster have to do, if anything.
    pub(crate) fn handle(
        &mut self,
        cluster: &Cluster,
        event: ClusterEvent,
        now: Timestamp,
    ) -> Option<ClusterChange> {
        if self.is_removed(cluster) && event != ClusterEvent::Added {
            return None;
        }
        let status = self.status.entry(cluster.clone()).or_default();
        match event {
            ClusterEvent::Added => {
                self.removed.remove(cluster);
                *status = ClusterStatus::default();
                return Some(ClusterChange::Added);
            }
            ClusterEvent::Removed => {
                self.removed.insert(cluster.clone());
                self.status.remove(cluster);
                return Some(ClusterChange::Removed);
            }
            ClusterEvent::Connecting => _ = status.connecting_since.get_or_insert(now),
            ClusterEvent::Connected => status.disconnected_since = None,
            ClusterEvent::Identified(uid) => {
                let before = status.uid.replace(uid);
                if before.is_some() && before != status.uid {
                    return Some(ClusterChange::Replaced);
                }
            }
            ClusterEvent::Kinds(kinds) => status.kinds = kinds,
            ClusterEvent::Metadata(metadata) => status.metadata = metadata,
            ClusterEvent::Heard(time) => status.last_heard = Some(time),
            ClusterEvent::Disconnected => _ = status.disconnected_since.get_or_insert(now),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[rstest]
    #[case::never_heard_from(None, None)]
    #[case::now(Some(1000), None)]
    #[case::a_bookmark_ago(Some(930), None)]
    #[case::two_bookmarks_ago(Some(879), Some(879))]
    #[case::by_a_clock_that_was_put_back(Some(5000), None)]
    fn a_cluster_is_silent_when_two_bookmarks_were_missed(
        #[case] heard: Option<i64>,
        #[case] since: Option<i64>,
    ) {
        let status = ClusterStatus { last_heard: heard.map(at), ..ClusterStatus::default() };
        assert_eq!(status.silent_since(at(1000)), since.map(at));
    }

    #[test]
    fn a_watch_that_reconnects_at_once_is_not_lost() {
        let (mut clusters, east) = (Clusters::default(), Cluster::named("east"));
        let mut since = |event, second, now| {
            clusters.handle(&east, event, at(second));
            clusters.get(&east).unwrap().unreachable_since(at(now))
        };
        assert_eq!(since(ClusterEvent::Heard(at(100)), 100, 101), None);
        assert_eq!(since(ClusterEvent::Disconnected, 110, 112), None);
        assert_eq!(since(ClusterEvent::Disconnected, 113, 114), Some(at(110)));
        assert_eq!(since(ClusterEvent::Connected, 115, 116), None);
        assert_eq!(since(ClusterEvent::Connected, 115, 221), Some(at(100)));
        assert_eq!(since(ClusterEvent::Heard(at(220)), 220, 221), None);
    }

    #[test]
    fn late_events_of_a_removed_source_are_ignored() {
        let (mut clusters, east) = (Clusters::default(), Cluster::named("east"));
        let uid = |clusters: &Clusters| clusters.get(&east).map(|status| status.uid.clone());
        let is_a = ClusterEvent::Identified("a".into());
        assert_eq!(clusters.handle(&east, ClusterEvent::Removed, at(0)), Some(ClusterChange::Removed));
        assert_eq!(clusters.handle(&east, is_a.clone(), at(0)), None);
        assert_eq!(uid(&clusters), None);
        assert_eq!(clusters.handle(&east, ClusterEvent::Added, at(0)), Some(ClusterChange::Added));
        assert_eq!(clusters.handle(&east, is_a, at(0)), None);
        assert_eq!(uid(&clusters), Some(Some("a".into())));
    }

    #[test]
    fn a_clock_that_is_set_is_not_silence() {
        let (mut clusters, east) = (Clusters::default(), Cluster::named("east"));
        clusters.handle(&east, ClusterEvent::Heard(at(100_000)), at(100_000));
        let mut set = |by, now| {
            clusters.clock_set(SignedDuration::from_secs(by));
            clusters.get(&east).unwrap().silent_since(at(now))
        };
        assert_eq!(set(86_400, 186_401), None);
        assert_eq!(set(-86_400, 100_121), Some(at(100_000)));
    }

    #[test]
    fn another_cluster_uid_means_a_replaced_cluster() {
        let (mut clusters, east) = (Clusters::default(), Cluster::named("east"));
        let mut handle = |event| clusters.handle(&east, event, at(0));
        let is = |uid: &str| ClusterEvent::Identified(uid.into());
        assert_eq!([handle(is("a")), handle(is("a"))], [None, None]);
        assert_eq!([handle(is("b")), handle(is("b"))], [Some(ClusterChange::Replaced), None]);
    }
}
