//! What a reader has done so far, for those who count.

use std::{
    sync::{
        Mutex, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bellwether_engine::{ClusterEvent, Now};
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
    pulses: Mutex<Vec<Weak<Pulse>>>,
}

impl Tally {
    /// When that feed heard from the cluster which has not for longest. API servers speak up on every watch about once a
    /// minute, so what is much older than that is out of touch.
    pub fn heard_least_recently(&self) -> Option<Timestamp> {
        let pulses = self.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.iter().filter_map(|pulse| pulse.upgrade()?.last()).min().map(time_of)
    }

    /// When any feed last heard from the cluster.
    pub fn heard_last(&self) -> Option<Timestamp> {
        self.last_beat().map(time_of)
    }

    /// The same, by the clock that nobody sets.
    pub(crate) fn last_beat(&self) -> Option<Duration> {
        let pulses = self.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.iter().filter_map(|pulse| pulse.upgrade()?.last()).max()
    }

    /// Whether any watch is open; nothing as long as nothing was heard.
    pub fn connection(&self) -> Option<ClusterEvent> {
        self.last_beat()?;
        Some(if self.open_watches.get() > 0 { ClusterEvent::Connected } else { ClusterEvent::Lost })
    }

    pub(super) fn listen(&self, pulse: Weak<Pulse>) {
        let mut pulses = self.pulses.lock().unwrap_or_else(PoisonError::into_inner);
        pulses.retain(|pulse| pulse.strong_count() > 0);
        pulses.push(pulse);
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
    pub(super) fn one(&self) -> One<'_> {
        self.add(1);
        One(self)
    }
}

/// One that is counted as long as it lives.
pub(super) struct One<'c>(&'c Count);

impl Drop for One<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// When a feed last heard from its cluster, in milliseconds of [`Now::passed`]; 0 for never.
#[derive(Debug, Default)]
pub(super) struct Pulse(AtomicU64);

impl Pulse {
    pub(super) fn beat(&self, now: Now) {
        let passed = u64::try_from(now.passed.as_millis()).unwrap_or(u64::MAX);
        self.0.store(passed.max(1), Ordering::Relaxed);
    }

    fn last(&self) -> Option<Duration> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            passed => Some(Duration::from_millis(passed)),
        }
    }
}
