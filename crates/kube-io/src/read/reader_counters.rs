//! Counters and liveness of a reader.

use std::{
    ops::Add,
    sync::{
        Mutex, PoisonError, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bellwether_engine::{ClusterEvent, FeedEvent, Now};
use jiff::Timestamp;

use crate::clock::time_of;

#[derive(Debug, Default)]
pub struct ReaderCounters {
    /// Lists started, without further pages.
    pub lists: Count,
    /// Lists started by a feed that had completed a list before.
    pub relists: Count,
    /// Watches started.
    pub watches: Count,
    /// Watches open now.
    pub open_watches: Count,
    /// Objects in lists and watch events decoded.
    pub decoded: Count,
    /// Malformed objects.
    pub malformed: Count,
    /// Failed lists, watches and discoveries, without those that are forbidden.
    pub errors: Count,
    /// Lists and watches that are forbidden. A right may be withheld on purpose.
    pub forbidden: Count,
    /// Discoveries started.
    pub discoveries: Count,
    feeds: Mutex<Vec<Weak<FeedLiveness>>>,
    /// The last response to a probe, as [`FeedLiveness::last`].
    probed: AtomicU64,
}

/// The values of [`ReaderCounters`], or their sum over several readers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReaderTotals {
    pub(crate) lists: u64,
    pub(crate) relists: u64,
    pub(crate) watches: u64,
    pub(crate) open_watches: u64,
    pub(crate) decoded: u64,
    pub(crate) malformed: u64,
    pub(crate) errors: u64,
    pub(crate) forbidden: u64,
    pub(crate) discoveries: u64,
}

impl Add for ReaderTotals {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            lists: self.lists + other.lists,
            relists: self.relists + other.relists,
            watches: self.watches + other.watches,
            open_watches: self.open_watches + other.open_watches,
            decoded: self.decoded + other.decoded,
            malformed: self.malformed + other.malformed,
            errors: self.errors + other.errors,
            forbidden: self.forbidden + other.forbidden,
            discoveries: self.discoveries + other.discoveries,
        }
    }
}

impl ReaderCounters {
    pub(crate) fn totals(&self) -> ReaderTotals {
        ReaderTotals {
            lists: self.lists.get(),
            relists: self.relists.get(),
            watches: self.watches.get(),
            open_watches: self.open_watches.get(),
            decoded: self.decoded.get(),
            malformed: self.malformed.get(),
            errors: self.errors.get(),
            forbidden: self.forbidden.get(),
            discoveries: self.discoveries.get(),
        }
    }

    /// The time of the last response to the feed that has been silent longest. API servers send a bookmark on
    /// every watch about once a minute.
    pub fn oldest_response(&self) -> Option<Timestamp> {
        let feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        feeds.iter().filter_map(|liveness| liveness.upgrade()?.last()).min().map(time_of)
    }

    /// The time of the last response to any feed or probe.
    pub fn last_response(&self) -> Option<Timestamp> {
        self.last_activity().map(time_of)
    }

    /// [`ReaderCounters::last_response`] by the monotonic clock.
    pub(crate) fn last_activity(&self) -> Option<Duration> {
        let feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        let of_feeds = feeds.iter().filter_map(|liveness| liveness.upgrade()?.last());
        of_feeds.chain(passed(&self.probed)).max()
    }

    /// The API server has responded to a probe.
    pub(crate) fn probed(&self, now: Now) {
        store_passed(&self.probed, now);
    }

    /// Whether each feed has completed its first list, or cannot be read.
    pub(crate) fn are_feeds_known(&self) -> bool {
        let feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        feeds.iter().filter_map(Weak::upgrade).all(|liveness| liveness.known.load(Ordering::Relaxed))
    }

    /// `Connected` if the watches of all listed kinds are open, otherwise `Lost`. `None` before the first
    /// list.
    pub fn connection(&self) -> Option<ClusterEvent> {
        let feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        let watches = feeds.iter().filter_map(|liveness| liveness.upgrade()?.is_open());
        let all_open = watches.reduce(|one, other| one && other)?;
        Some(if all_open { ClusterEvent::Connected } else { ClusterEvent::Disconnected })
    }

    /// A list or watch failed.
    pub(super) fn failed(&self, is_forbidden: bool) {
        let count = if is_forbidden { &self.forbidden } else { &self.errors };
        count.add(1);
    }

    pub(super) fn track(&self, liveness: Weak<FeedLiveness>) {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        feeds.retain(|liveness| liveness.strong_count() > 0);
        feeds.push(liveness);
    }
}

#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    /// Adds one until the guard is dropped.
    pub(super) fn guard(&self) -> CountGuard<'_> {
        self.add(1);
        CountGuard(self)
    }
}

pub(super) struct CountGuard<'c>(&'c Count);

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
pub(super) struct FeedLiveness {
    /// The last response, in milliseconds of [`Now::passed`]; 0 for never.
    last: AtomicU64,
    /// Whether the kind is listed and readable, so that a watch should be open.
    listed: AtomicBool,
    /// Whether the first list has completed, or the kind cannot be read.
    known: AtomicBool,
    open: AtomicBool,
}

fn store_passed(last: &AtomicU64, now: Now) {
    let passed = u64::try_from(now.passed.as_millis()).unwrap_or(u64::MAX);
    last.store(passed.max(1), Ordering::Relaxed);
}

fn passed(last: &AtomicU64) -> Option<Duration> {
    match last.load(Ordering::Relaxed) {
        0 => None,
        passed => Some(Duration::from_millis(passed)),
    }
}

impl FeedLiveness {
    /// The API server has responded.
    pub(super) fn responded(&self, now: Now) {
        store_passed(&self.last, now);
    }

    /// The feed has sent this event to the engine.
    pub(super) fn sent(&self, event: &FeedEvent) {
        if matches!(event, FeedEvent::ListCompleted | FeedEvent::Unreadable(_)) {
            self.known.store(true, Ordering::Relaxed);
        }
        match event {
            FeedEvent::ListCompleted => self.listed.store(true, Ordering::Relaxed),
            FeedEvent::Unreadable(_) => self.listed.store(false, Ordering::Relaxed),
            _ => {}
        }
    }

    /// Marks the watch as open until the guard is dropped.
    pub(super) fn open(&self) -> OpenWatch<'_> {
        self.open.store(true, Ordering::Relaxed);
        OpenWatch(self)
    }

    /// `None` while the feed needs no watch.
    fn is_open(&self) -> Option<bool> {
        self.listed.load(Ordering::Relaxed).then(|| self.open.load(Ordering::Relaxed))
    }

    fn last(&self) -> Option<Duration> {
        passed(&self.last)
    }
}

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
    fn one_closed_watch_of_a_listed_kind_is_a_lost_connection() {
        let (counters, [pods, nodes]) =
            (ReaderCounters::default(), [(); 2].map(|()| Arc::new(FeedLiveness::default())));
        for liveness in [&pods, &nodes] {
            counters.track(Arc::downgrade(liveness));
        }
        assert_eq!(counters.connection(), None, "nothing has been listed");
        assert!(!counters.are_feeds_known());
        pods.sent(&FeedEvent::ListCompleted);
        let open = pods.open();
        assert_eq!(counters.connection(), Some(ClusterEvent::Connected));
        nodes.sent(&FeedEvent::ListCompleted);
        assert_eq!(counters.connection(), Some(ClusterEvent::Disconnected));
        nodes.sent(&FeedEvent::Unreadable(Unreadable::NotServed));
        assert_eq!(counters.connection(), Some(ClusterEvent::Connected), "there is nothing to watch");
        assert!(counters.are_feeds_known());
        drop(open);
        assert_eq!(counters.connection(), Some(ClusterEvent::Disconnected));
        drop(pods);
        assert_eq!(counters.connection(), None, "no feed is left");
    }
}
