//! What a reader has done so far, for those who count.

use std::{
    sync::{
        Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bellwether_engine::{ClusterEvent, FeedEvent, Now};
use jiff::Timestamp;

use crate::clock::time_of;

/// What a reader has done so far.
#[derive(Debug, Default)]
pub struct Tally {
    /// Lists that were begun.
    pub lists: Count,
    /// Those among them that were not the first of their feed.
    pub relists: Count,
    /// Watches that were begun.
    pub watches: Count,
    /// Watches that are open now.
    pub open_watches: Count,
    /// Objects and events that were understood.
    pub read: Count,
    /// Objects that were not.
    pub unreadable: Count,
    /// Attempts that failed.
    pub errors: Count,
    /// Looks at which kinds there are.
    pub looks: Count,
    /// When the feeds last heard from the cluster.
    pulses: Mutex<Vec<Weak<FeedLiveness>>>,
}

impl Tally {
    /// When that feed heard from the cluster which has not for longest. API servers speak up on every watch about once a
    /// minute, so what is much older than that is out of touch.
    pub fn heard_least_recently(&self) -> Option<Timestamp> {
        let pulses = self.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.iter().filter_map(|liveness| liveness.upgrade()?.last()).min().map(time_of)
    }

    /// When any feed last heard from the cluster.
    pub fn heard_last(&self) -> Option<Timestamp> {
        self.last_beat().map(time_of)
    }

    /// The same, by the monotonic clock.
    pub(crate) fn last_beat(&self) -> Option<Duration> {
        let pulses = self.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.iter().filter_map(|liveness| liveness.upgrade()?.last()).max()
    }

    /// Whether all watches are open that should be; nothing as long as none should be.
    pub fn connection(&self) -> Option<ClusterEvent> {
        let pulses = self.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        let watches = pulses.iter().filter_map(|liveness| liveness.upgrade()?.is_open());
        let all_open = watches.reduce(|one, other| one && other)?;
        Some(if all_open { ClusterEvent::Connected } else { ClusterEvent::Lost })
    }

    pub(super) fn listen(&self, liveness: Weak<FeedLiveness>) {
        let mut pulses = self.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.retain(|liveness| liveness.strong_count() > 0);
        pulses.push(liveness);
    }
}

/// A number that others may read at any time.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// How many.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    /// Counts one for as long as what this gives back lives.
    pub(super) fn one(&self) -> CountGuard<'_> {
        self.add(1);
        CountGuard(self)
    }
}

/// One that is counted as long as it lives.
pub(super) struct CountGuard<'c>(&'c Count);

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether a feed hears from its cluster.
#[derive(Debug, Default)]
pub(super) struct FeedLiveness {
    /// When it last did, in milliseconds of [`Now::passed`]; 0 for never.
    last: AtomicU64,
    /// Whether its kind has been listed and can be read, so that a watch should be open.
    listed: AtomicBool,
    open: AtomicBool,
}

impl FeedLiveness {
    pub(super) fn beat(&self, now: Now) {
        let passed = u64::try_from(now.passed.as_millis()).unwrap_or(u64::MAX);
        self.last.store(passed.max(1), Ordering::Relaxed);
    }

    /// The feed has told this.
    pub(super) fn told(&self, news: &FeedEvent) {
        match news {
            FeedEvent::ListCompleted => self.listed.store(true, Ordering::Relaxed),
            FeedEvent::Unreadable(_) => self.listed.store(false, Ordering::Relaxed),
            _ => {}
        }
    }

    /// A watch is open for as long as what this gives back lives.
    pub(super) fn open(&self) -> OpenWatch<'_> {
        self.open.store(true, Ordering::Relaxed);
        OpenWatch(self)
    }

    /// Whether its watch is open; nothing as long as it should not be.
    fn is_open(&self) -> Option<bool> {
        self.listed.load(Ordering::Relaxed).then(|| self.open.load(Ordering::Relaxed))
    }

    fn last(&self) -> Option<Duration> {
        match self.last.load(Ordering::Relaxed) {
            0 => None,
            passed => Some(Duration::from_millis(passed)),
        }
    }
}

/// A watch that is open as long as this lives.
pub(super) struct OpenWatch<'p>(&'p FeedLiveness);

impl Drop for OpenWatch<'_> {
    fn drop(&mut self) {
        self.0.open.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bellwether_engine::Unreadable;

    use super::*;

    #[test]
    fn one_watch_that_should_be_open_and_is_not_is_a_connection_that_is_lost() {
        let (tally, [pods, nodes]) = (Tally::default(), [(); 2].map(|()| Arc::new(FeedLiveness::default())));
        for liveness in [&pods, &nodes] {
            tally.listen(Arc::downgrade(liveness));
        }
        assert_eq!(tally.connection(), None, "nothing has been listed");
        pods.told(&FeedEvent::ListCompleted);
        let open = pods.open();
        assert_eq!(tally.connection(), Some(ClusterEvent::Connected));
        nodes.told(&FeedEvent::ListCompleted);
        assert_eq!(tally.connection(), Some(ClusterEvent::Lost));
        nodes.told(&FeedEvent::Unreadable(Unreadable::NotServed));
        assert_eq!(tally.connection(), Some(ClusterEvent::Connected), "there is nothing to watch");
        drop(open);
        assert_eq!(tally.connection(), Some(ClusterEvent::Lost));
        drop(pods);
        assert_eq!(tally.connection(), None, "no feed is left");
    }
}
