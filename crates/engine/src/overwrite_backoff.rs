//! Backs off if another controller writes the same status, for example the one that managed these objects
//! before.
//!
//! Each of the two takes the other's write for a change and writes again. An occasional overwrite is
//! corrected at once. Repeated ones are corrected after growing delays, and a Warning Event says how to stop
//! one of the two.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

use crate::facts::ResourceVersion;

/// How many overwrites are corrected at once.
const IMMEDIATE_REWRITES: u32 = 3;

/// The delay after that, doubled each time.
const FIRST_BACKOFF: SignedDuration = SignedDuration::from_secs(5);
const MAX_BACKOFF: SignedDuration = SignedDuration::from_mins(5);

/// Without an overwrite for this long, the count starts again.
const RESET_AFTER: SignedDuration = SignedDuration::from_mins(15);

/// One of the versions may turn out to be our own write; more than one other does not matter. A standby
/// replica keeps observing versions, so they must be limited.
const MAX_VERSIONS: usize = 2;

#[derive(Debug, Default)]
pub(crate) struct OverwriteBackoff {
    /// Before our first write, there is nothing to overwrite.
    wrote: bool,
    /// Observed versions with another status than the known one. Our own write may be among them: the watch
    /// can be faster than the response.
    foreign_versions: VecDeque<ResourceVersion>,
    rounds: u32,
    last: Option<Timestamp>,
}

impl OverwriteBackoff {
    /// A version with another status than the known one was observed.
    pub(crate) fn observe_foreign(&mut self, version: &ResourceVersion) {
        if self.wrote && !self.foreign_versions.contains(version) {
            if self.foreign_versions.len() == MAX_VERSIONS {
                self.foreign_versions.pop_front();
            }
            self.foreign_versions.push_back(version.clone());
        }
    }

    /// Our write created this version. Returns whether to warn about the other controller.
    pub(crate) fn record_own_write(&mut self, version: &ResourceVersion, now: Timestamp) -> bool {
        self.wrote = true;
        self.foreign_versions.retain(|other| other != version);
        if std::mem::take(&mut self.foreign_versions).is_empty() {
            return false;
        }
        if self.last.is_some_and(|last| now.duration_since(last) > RESET_AFTER) {
            self.rounds = 0;
        }
        self.last = Some(now);
        self.rounds = self.rounds.saturating_add(1);
        self.rounds == IMMEDIATE_REWRITES + 1
    }

    /// Set while writes are postponed.
    pub(crate) fn backs_off_until(&self, now: Timestamp) -> Option<Timestamp> {
        let doublings = self.rounds.checked_sub(IMMEDIATE_REWRITES + 1)?;
        let backoff = FIRST_BACKOFF.saturating_mul(1 << doublings.min(10)).min(MAX_BACKOFF);
        self.last?.checked_add(backoff).ok().filter(|until| *until > now)
    }

    pub(crate) fn clock_set(&mut self, by: SignedDuration) {
        self.last = self.last.map(|last| last.checked_add(by).unwrap_or(last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_overwrites_are_corrected_with_backoff() {
        let mut now: Timestamp = "2026-11-14T10:00:00Z".parse().unwrap();
        let mut conflict = OverwriteBackoff::default();
        let (mut backoffs, mut warnings) = (Vec::new(), 0);
        for round in 0..12 {
            conflict.observe_foreign(&ResourceVersion::new(&format!("{round}0")));
            // The watch event of our own write comes before the response.
            conflict.observe_foreign(&ResourceVersion::new(&format!("{round}1")));
            warnings +=
                usize::from(conflict.record_own_write(&ResourceVersion::new(&format!("{round}1")), now));
            let until = conflict.backs_off_until(now).unwrap_or(now);
            backoffs.push(until.duration_since(now).as_secs());
            now = until;
        }
        assert_eq!(backoffs, [0, 0, 0, 0, 5, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(warnings, 1);
        now += RESET_AFTER * 2;
        conflict.observe_foreign(&ResourceVersion::new("200"));
        assert!(
            !conflict.record_own_write(&ResourceVersion::new("201"), now)
                && conflict.backs_off_until(now).is_none()
        );
    }

    #[test]
    fn own_writes_are_not_a_conflict() {
        let now: Timestamp = "2026-11-14T10:00:00Z".parse().unwrap();
        let mut conflict = OverwriteBackoff::default();
        for version in 0..20 {
            let version = ResourceVersion::new(&version.to_string());
            conflict.observe_foreign(&version);
            assert!(!conflict.record_own_write(&version, now) && conflict.backs_off_until(now).is_none());
        }
    }

    /// A standby replica observes all versions of the leader, and may become leader.
    #[test]
    fn a_standby_replica_keeps_few_versions() {
        let now: Timestamp = "2026-11-14T10:00:00Z".parse().unwrap();
        let mut conflict = OverwriteBackoff::default();
        conflict.record_own_write(&ResourceVersion::new("0"), now);
        for version in 1..=10_000 {
            conflict.observe_foreign(&ResourceVersion::new(&version.to_string()));
        }
        assert_eq!(conflict.foreign_versions.len(), MAX_VERSIONS);
        conflict.record_own_write(&ResourceVersion::new("10000"), now);
        assert_eq!(conflict.rounds, 1, "9999 was not ours");
    }
}
