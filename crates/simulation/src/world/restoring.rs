//! A cluster that is restored from a backup: its resourceVersions go back while watches are open. Only the
//! second cluster is restored, because no controller writes there.

use bellwether_engine::ResourceVersion;
use bellwether_wire::restore_detector::Seen;
use rand::Rng as _;

use crate::{object::Object, plan::Moment, site::Site};

use super::{ScheduledEvent, World};

/// Milliseconds after a restore, or after the end of all faults, within which all controllers notice it.
const NOTICED: Moment = 240_000;

/// The longest pauses between comparisons, in milliseconds: usually, and after a version that went back.
const PAUSES: [Moment; 2] = [15_000, 1_000];

impl World<'_> {
    /// A controller lists a little in the second cluster. If the resourceVersions went back, it relists.
    pub(super) fn check_versions(&mut self, process: usize, epoch: u64) {
        let cluster = &self.clusters[Site::East];
        // A consistent read, also from an API server that lags behind.
        let version = cluster.store.revision + cluster.version_offset;
        let version = ResourceVersion::new(&version.to_string());
        let mut pause = PAUSES[0];
        if cluster.faults.outage <= self.now {
            match self.processes[process].restores.listed(&version) {
                Seen::Current => {}
                Seen::Stale => pause = PAUSES[1],
                Seen::Restored => self.relist_restored(process),
            }
        }
        let at = self.now + self.rng.random_range(pause / 2..pause);
        self.schedule(at, ScheduledEvent::CheckVersions(process, epoch));
    }

    fn relist_restored(&mut self, process: usize) {
        self.tell(|| format!("controller {process} notices that the second cluster was restored"));
        self.relist(process, Site::East);
    }

    /// A controller lists all kinds of a cluster, and accepts any resourceVersion.
    pub(super) fn relist(&mut self, process: usize, site: Site) {
        let feeds = self.processes[process].feeds.iter().filter(|(_, feed)| feed.site == site);
        for id in feeds.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.close(process, id);
            if let Some(feed) = self.processes[process].feeds.get_mut(&id) {
                feed.reflector.restored();
                feed.ticket += 1;
                feed.busy = false;
            }
            self.advance(process, id);
        }
    }

    /// Whether a controller may not have noticed yet that the second cluster was restored.
    pub(super) fn may_be_blind(&self) -> bool {
        let end = self.calm.unwrap_or(Moment::MAX);
        self.clusters[Site::East].restored.is_some_and(|at| self.now < at.max(end).saturating_add(NOTICED))
    }
}

/// The JSON of an object as an API server sends it.
pub(super) fn text(object: &Object, version_offset: u64) -> Vec<u8> {
    if version_offset == 0 {
        return object.text().to_vec();
    }
    let version = |version: u64| format!(r#""resourceVersion":"{version}""#);
    let text = String::from_utf8_lossy(object.text());
    text.replacen(&version(object.version()), &version(object.version() + version_offset), 1).into_bytes()
}
