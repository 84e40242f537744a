//! Notices that a cluster was restored from a backup while its watches are open: resourceVersions go back.
//!
//! A watch does not show it. An API server accepts a watch from a resourceVersion in its future, and sends
//! nothing until the cluster has passed that version.

use std::time::Duration;

use bellwether_engine::{ResourceVersion, planted::Bug};

/// After this many stale lists in a row and [`RESTORED_TIME`], the cluster was restored from a backup. Before
/// that, one API server may lag behind.
const RESTORED_LISTS: u32 = 5;
pub(crate) const RESTORED_TIME: Duration = Duration::from_mins(1);

/// Stale lists in a row.
#[derive(Debug, Default)]
pub(crate) struct StaleLists(Option<(Duration, u32)>);

impl StaleLists {
    /// Counts a stale list. Returns whether the cluster was restored.
    pub(crate) fn add(&mut self, now: Duration) -> bool {
        let (since, lists) = self.0.get_or_insert((now, 0));
        *lists += 1;
        *lists >= RESTORED_LISTS && now.saturating_sub(*since) >= RESTORED_TIME
    }

    pub(crate) fn end(&mut self) {
        self.0 = None;
    }
}

/// Compares the resourceVersions of successive reads of the same list or object.
#[derive(Debug, Default)]
pub struct RestoreDetector {
    highest: Option<ResourceVersion>,
    stale: StaleLists,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    Current,
    /// Older than an earlier read. Read again soon.
    Stale,
    /// List everything again, and accept any resourceVersion.
    Restored,
}

impl RestoreDetector {
    /// Whether it has something to compare with.
    pub fn has_read(&self) -> bool {
        self.highest.is_some()
    }

    /// A list has this resourceVersion. An API server that lags behind may answer lists.
    pub fn listed(&mut self, version: &ResourceVersion, now: Duration) -> Seen {
        if !self.is_older(version) {
            self.accept(version);
            Seen::Current
        } else if self.stale.add(now) {
            self.accept(version);
            Seen::Restored
        } else {
            Seen::Stale
        }
    }

    /// An object that was read alone or written has this resourceVersion. Such answers come from etcd and are
    /// never stale.
    pub fn read(&mut self, version: &ResourceVersion) -> Seen {
        let is_older = self.is_older(version);
        self.accept(version);
        if is_older { Seen::Restored } else { Seen::Current }
    }

    fn is_older(&self, version: &ResourceVersion) -> bool {
        let is_older = self.highest.as_ref().is_some_and(|highest| version.is_before(highest));
        is_older && !Bug::IgnoreRestore.is_planted()
    }

    fn accept(&mut self, version: &ResourceVersion) {
        self.highest = Some(version.clone());
        self.stale.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u64) -> ResourceVersion {
        ResourceVersion::new(&number.to_string())
    }

    #[test]
    fn lists_that_stay_older_mean_a_restore() {
        let (mut detector, begun) = (RestoreDetector::default(), Duration::from_secs(7));
        let seen = |detector: &mut RestoreDetector, number, after: Duration| {
            detector.listed(&version(number), begun + after)
        };
        assert_eq!(seen(&mut detector, 292, Duration::ZERO), Seen::Current);
        for number in 228..238 {
            assert_eq!(seen(&mut detector, number, Duration::ZERO), Seen::Stale, "it may lag");
        }
        assert_eq!(seen(&mut detector, 300, RESTORED_TIME), Seen::Current, "it has caught up");
        for number in 228..232 {
            assert_eq!(seen(&mut detector, number, RESTORED_TIME), Seen::Stale, "the count starts again");
        }
        assert_eq!(seen(&mut detector, 232, 2 * RESTORED_TIME), Seen::Restored);
        assert_eq!(seen(&mut detector, 233, 2 * RESTORED_TIME), Seen::Current, "it is reported once");
    }

    #[test]
    fn an_object_that_goes_back_means_a_restore() {
        let mut detector = RestoreDetector::default();
        let seen = [292, 292, 293, 228, 229].map(|number| detector.read(&version(number)));
        assert_eq!(seen, [Seen::Current, Seen::Current, Seen::Current, Seen::Restored, Seen::Current]);
    }
}
