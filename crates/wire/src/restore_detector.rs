//! Notices that a cluster was restored from a backup while its watches are open: resourceVersions go back.
//!
//! A watch does not show it. An API server accepts a watch from a resourceVersion in its future, and sends
//! nothing until the cluster has passed that version.

use std::time::Duration;

use bellwether_engine::{ResourceVersion, planted::Bug};

/// After this many stale lists of a kind in a row and [`RESTORED_TIME`], the cluster was restored from a
/// backup. A reflector that accepts an older list replaces newer objects, so it is slower to believe one than
/// a [`RestoreDetector`].
const RESTORED_LISTS: u32 = 5;
pub(crate) const RESTORED_TIME: Duration = Duration::from_mins(1);

/// A [`RestoreDetector`] believes this many older lists in a row. A list without resourceVersion is a
/// consistent read: its version never goes back in the same etcd. It must be believed soon, because versions
/// catch up, and then no list shows the restore any more. The second one excludes a single answer of a broken
/// cache or proxy; a restore that is believed in error costs one relist of every kind.
const OLDER_LISTS: u32 = 2;

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
    /// Older lists in a row.
    older: u32,
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

    /// A list without resourceVersion has this resourceVersion.
    pub fn listed(&mut self, version: &ResourceVersion) -> Seen {
        if !self.is_older(version) {
            self.accept(version);
            return Seen::Current;
        }
        self.older += 1;
        if self.older < OLDER_LISTS {
            return Seen::Stale;
        }
        self.accept(version);
        Seen::Restored
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
        self.older = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(number: u64) -> ResourceVersion {
        ResourceVersion::new(&number.to_string())
    }

    #[test]
    fn two_older_lists_in_a_row_mean_a_restore() {
        let mut detector = RestoreDetector::default();
        let seen = [292, 228, 300, 237, 238, 239, 239, 301].map(|number| detector.listed(&version(number)));
        let expected = [
            Seen::Current,
            Seen::Stale,
            // A single one was an error.
            Seen::Current,
            Seen::Stale,
            Seen::Restored,
            // It is reported once.
            Seen::Current,
            Seen::Current,
            Seen::Current,
        ];
        assert_eq!(seen, expected);
    }

    #[test]
    fn an_object_that_goes_back_means_a_restore() {
        let mut detector = RestoreDetector::default();
        let seen = [292, 292, 293, 228, 229].map(|number| detector.read(&version(number)));
        assert_eq!(seen, [Seen::Current, Seen::Current, Seen::Current, Seen::Restored, Seen::Current]);
    }
}
