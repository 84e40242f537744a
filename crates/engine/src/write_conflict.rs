//! Somebody else who writes what we write, such as the controller that looked after the objects before us.
//!
//! Each of the two takes the other's words for a change, and writes again. What is overwritten now and then is put right
//! at once; what is overwritten again and again is put right later and later, and people are told how to end it.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};

use crate::facts::ResourceVersion;

/// So often is it put right at once.
const IMMEDIATE_REWRITES: u32 = 3;

/// Then after so long, and each time after twice as long, up to the longest.
const FIRST_BACKOFF: SignedDuration = SignedDuration::from_secs(5);
const MAX_BACKOFF: SignedDuration = SignedDuration::from_mins(5);

/// After so long without, all is forgotten.
const RESET_AFTER: SignedDuration = SignedDuration::from_mins(15);

/// So many versions are kept: one may turn out to be ours, and whether there is another is all that matters. Whoever does not
/// write any more, because somebody else leads, goes on seeing versions.
const MAX_VERSIONS: usize = 2;

/// What is known of somebody else who writes what we write.
#[derive(Debug, Default)]
pub(crate) struct WriteConflict {
    /// Whether we have written at all: before that, there is nothing to overwrite.
    wrote: bool,
    /// The latest versions in which something else stood than what was known. What we write ourselves may be seen before the
    /// answer.
    overwritten: VecDeque<ResourceVersion>,
    /// How often we have written over what somebody had written over ours.
    rounds: u32,
    last: Option<Timestamp>,
}

impl WriteConflict {
    /// In this version of the object, its status is not what was known.
    pub(crate) fn differs(&mut self, version: &ResourceVersion) {
        if self.wrote && !self.overwritten.contains(version) {
            if self.overwritten.len() == MAX_VERSIONS {
                self.overwritten.pop_front();
            }
            self.overwritten.push_back(version.clone());
        }
    }

    /// We have written this version. Gives back whether people should be told that somebody else writes, too.
    pub(crate) fn wrote(&mut self, version: &ResourceVersion, now: Timestamp) -> bool {
        self.wrote = true;
        self.overwritten.retain(|other| other != version);
        if std::mem::take(&mut self.overwritten).is_empty() {
            return false;
        }
        if self.last.is_some_and(|last| now.duration_since(last) > RESET_AFTER) {
            self.rounds = 0;
        }
        self.last = Some(now);
        self.rounds = self.rounds.saturating_add(1);
        self.rounds == IMMEDIATE_REWRITES + 1
    }

    /// Until when nothing is written, if not now.
    pub(crate) fn backs_off_until(&self, now: Timestamp) -> Option<Timestamp> {
        let doublings = self.rounds.checked_sub(IMMEDIATE_REWRITES + 1)?;
        let backoff = FIRST_BACKOFF.saturating_mul(1 << doublings.min(10)).min(MAX_BACKOFF);
        self.last?.checked_add(backoff).ok().filter(|until| *until > now)
    }

    /// Somebody has set the clock.
    pub(crate) fn clock_set(&mut self, by: SignedDuration) {
        self.last = self.last.map(|last| last.checked_add(by).unwrap_or(last));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_overwritten_again_and_again_rests_longer_and_longer() {
        let mut now: Timestamp = "2026-11-14T10:00:00Z".parse().unwrap();
        let mut conflict = WriteConflict::default();
        let (mut backoffs, mut warnings) = (Vec::new(), 0);
        for round in 0..12 {
            conflict.differs(&ResourceVersion::new(&format!("{round}0")));
            // What we wrote is seen before the answer.
            conflict.differs(&ResourceVersion::new(&format!("{round}1")));
            warnings += usize::from(conflict.wrote(&ResourceVersion::new(&format!("{round}1")), now));
            let until = conflict.backs_off_until(now).unwrap_or(now);
            backoffs.push(until.duration_since(now).as_secs());
            now = until;
        }
        assert_eq!(backoffs, [0, 0, 0, 0, 5, 10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(warnings, 1);
        now += RESET_AFTER * 2;
        conflict.differs(&ResourceVersion::new("200"));
        assert!(
            !conflict.wrote(&ResourceVersion::new("201"), now) && conflict.backs_off_until(now).is_none()
        );
    }

    #[test]
    fn what_we_write_ourselves_is_no_contest() {
        let now: Timestamp = "2026-11-14T10:00:00Z".parse().unwrap();
        let mut conflict = WriteConflict::default();
        for version in 0..20 {
            let version = ResourceVersion::new(&version.to_string());
            conflict.differs(&version);
            assert!(!conflict.wrote(&version, now) && conflict.backs_off_until(now).is_none());
        }
    }

    /// Another replica writes now: this one hears of all its versions, and may lead again.
    #[test]
    fn whoever_does_not_write_keeps_little() {
        let now: Timestamp = "2026-11-14T10:00:00Z".parse().unwrap();
        let mut conflict = WriteConflict::default();
        conflict.wrote(&ResourceVersion::new("0"), now);
        for version in 1..=10_000 {
            conflict.differs(&ResourceVersion::new(&version.to_string()));
        }
        assert_eq!(conflict.overwritten.len(), MAX_VERSIONS);
        conflict.wrote(&ResourceVersion::new("10000"), now);
        assert_eq!(conflict.rounds, 1, "9999 was not ours");
    }
}
