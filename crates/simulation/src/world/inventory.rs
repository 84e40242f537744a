//! How controllers follow the inventory: the events that kube-io sends when clusters come, go, respond and fall
//! silent.

use std::sync::Arc;

use bellwether_engine::{ClusterEvent, ClusterMetadata, DiscoveredKinds, Event, GroupKind, SINGLETON_LABEL};
use bellwether_wire::read_error::ReadError;
use jiff::SignedDuration;
use rand::Rng as _;

use crate::{
    inventory::{ConnectedCluster, InventoryAction},
    plan::Moment,
    site::Site,
    store,
};

use super::{ScheduledEvent, World, active_faults::ActiveFaults, clusters::InventoryEntry, reading::Input};

/// A cluster is probed when nothing has arrived for this long, in milliseconds.
const PROBE_INTERVAL: Moment = 5_000;

/// The identity is read at least this often, in milliseconds.
const IDENTITY_INTERVAL: Moment = 60_000;

/// Within this time, the engine learns when a cluster was last heard from, in milliseconds.
const LIVENESS_INTERVAL: Moment = 1_000;

impl World<'_> {
    pub(super) fn change_inventory(&mut self, action: &InventoryAction) {
        self.tell(|| action.to_string());
        self.number += 1;
        let number = self.number;
        match action {
            InventoryAction::Add(site, labels) => {
                let before = self.clusters[*site].entry.take();
                let number = before.map_or(number, |before| before.number);
                self.clusters[*site].entry = Some(InventoryEntry { labels: labels.clone(), number });
            }
            InventoryAction::Remove(site) => self.clusters[*site].entry = None,
            InventoryAction::Replace(site) => {
                if let Some(entry) = &mut self.clusters[*site].entry {
                    entry.number = number;
                }
            }
            InventoryAction::Rebuild(site) => return self.rebuild(*site),
            InventoryAction::Unplug(site, lasts) => return self.unplug(*site, *lasts),
        }
        for process in 0..self.processes.len() {
            let epoch = self.processes[process].epoch;
            let at = self.now + self.rng.random_range(10..1_500);
            self.schedule(at, ScheduledEvent::ReadInventory(process, epoch));
        }
    }

    fn rebuild(&mut self, site: Site) {
        let cluster = &mut self.clusters[site];
        cluster.rebuilt += 1;
        cluster.store = store::rebuilt(cluster.rebuilt);
        (cluster.behind, cluster.passed_on) = (1, (1, 1));
        cluster.faults = ActiveFaults::default();
        self.cut(site, None, true);
        self.kinds_changed(site);
    }

    fn unplug(&mut self, site: Site, lasts: Option<Moment>) {
        self.clusters[site].unplugged.get_or_insert(self.now);
        self.hush(site);
        if let Some(lasts) = lasts {
            self.schedule(self.now + lasts, ScheduledEvent::PlugIn(site));
        }
    }

    /// The requests that hang fail, and so do the watches.
    pub(super) fn plug_in(&mut self, site: Site) {
        if self.clusters[site].unplugged.take().is_none() {
            return;
        }
        self.tell(|| format!("{} responds again", site.name()));
        for (origin, is_list) in std::mem::take(&mut self.clusters[site].hanging) {
            let error = ReadError::unavailable("no answer");
            let input = if is_list { Input::Page(Err(error)) } else { Input::Opened(Err(error)) };
            self.soon(ScheduledEvent::Deliver(origin, input));
        }
        self.close_hushed(site);
        self.kinds_changed(site);
    }

    /// Steps the engine of a controller with events about clusters.
    fn report(&mut self, process: usize, events: Vec<Event>) {
        let now = self.clock(process);
        let effects = self.processes[process].driver.step(now, events);
        self.follow_up(process, effects);
        let gone_on = self.go_on(process);
        self.violation = self.violation.take().or(gone_on.err());
    }

    /// A controller compares the inventory with what it knows.
    pub(super) fn read_inventory(&mut self, process: usize) {
        let outage = self.clusters.hub.faults.outage;
        if outage > self.now {
            let epoch = self.processes[process].epoch;
            let at = outage + self.rng.random_range(0..500);
            return self.schedule(at, ScheduledEvent::ReadInventory(process, epoch));
        }
        let is_initial = !self.processes[process].has_inventory;
        for site in Site::WORKLOAD {
            let entry = self.clusters[site].entry.clone();
            let known = self.processes[process].connected.get(&site);
            let is_same =
                |known: &ConnectedCluster| entry.as_ref().is_some_and(|entry| entry.number == known.number);
            if known.is_some_and(|known| !is_same(known)) {
                self.disconnect(process, site);
            }
            match (self.processes[process].connected.get_mut(&site), entry) {
                (Some(known), Some(entry)) if known.labels != entry.labels => {
                    (known.labels, known.relabelled) = (entry.labels, true);
                    let metadata = metadata(known);
                    self.report(process, vec![Event::Cluster(site.cluster(), metadata)]);
                }
                (None, Some(entry)) => self.join(process, site, entry, is_initial),
                _ => {}
            }
            if !self.processes[process].alive {
                return;
            }
        }
        if is_initial {
            self.processes[process].has_inventory = true;
            self.report(process, vec![Event::InventoryListed]);
        }
    }

    fn join(&mut self, process: usize, site: Site, entry: InventoryEntry, is_initial: bool) {
        let connected = ConnectedCluster::new(entry.number, entry.labels, is_initial, self.now);
        let metadata = metadata(&connected);
        let it = &mut self.processes[process];
        let epoch = it.epoch;
        // Late events of an earlier connection.
        let feeds = &it.feeds;
        it.inbox.retain(|(feed, ..)| feeds.contains_key(feed));
        it.connected.insert(site, connected);
        let cluster = site.cluster();
        let added = [ClusterEvent::Added].into_iter();
        let added = added.map(|event| Event::Cluster(cluster.clone(), event));
        let added = added.chain([Event::Cluster(cluster.clone(), metadata)]).collect();
        // Sometimes it waits for its turn.
        let pause = if self.rng.random_bool(0.1) { self.rng.random_range(0..9_000) } else { self.latency() };
        self.schedule(self.now + pause, ScheduledEvent::Connect(process, epoch, site, entry.number));
        self.report(process, added);
    }

    fn disconnect(&mut self, process: usize, site: Site) {
        let it = &mut self.processes[process];
        let feeds: Vec<_> =
            it.feeds.iter().filter(|(_, feed)| feed.site == site).map(|(id, _)| *id).collect();
        it.connected.remove(&site);
        it.kinds.remove(&site);
        for feed in feeds {
            self.close(process, feed);
            self.processes[process].feeds.remove(&feed);
        }
        self.report(process, vec![Event::Cluster(site.cluster(), ClusterEvent::Removed)]);
    }

    /// Whether a controller has the cluster of this entry of the inventory.
    fn is_connected(&self, process: usize, site: Site, number: u64) -> bool {
        let connected = self.processes[process].connected.get(&site);
        connected.is_some_and(|connected| connected.number == number)
    }

    pub(super) fn connect(&mut self, process: usize, epoch: u64, site: Site, number: u64) {
        if !self.is_connected(process, site, number) {
            return;
        }
        if let Some(connected) = self.processes[process].connected.get_mut(&site) {
            connected.connecting = Some(self.now);
        }
        self.soon(ScheduledEvent::Kinds(process, epoch, site));
        self.soon(ScheduledEvent::Probe(process, epoch, site, number));
        self.report(process, vec![Event::Cluster(site.cluster(), ClusterEvent::Connecting)]);
    }

    /// A controller reads the identity of a cluster, if it has to.
    pub(super) fn probe(&mut self, process: usize, epoch: u64, site: Site, number: u64) {
        if !self.is_connected(process, site, number) {
            return;
        }
        let pause = self.rng.random_range(PROBE_INTERVAL * 8 / 10..PROBE_INTERVAL * 12 / 10);
        self.schedule(self.now + pause, ScheduledEvent::Probe(process, epoch, site, number));
        if !self.responds(site) {
            return;
        }
        let (now, uid) = (self.now, self.clusters[site].uid(site));
        let Some(connected) = self.processes[process].connected.get_mut(&site) else { return };
        let must_identify = connected.asked.is_none_or(|asked| now - asked >= IDENTITY_INTERVAL);
        if !must_identify && connected.silence(now) < pause {
            return;
        }
        connected.asked = Some(now);
        let before = connected.uid.replace(uid.clone());
        let is_new = before.as_ref() != Some(&uid);
        if is_new && before.is_some() {
            connected.rebuilt = Some(now);
        }
        self.heard(process, site);
        if is_new && before.is_some() {
            self.relist(process, site);
        }
        if is_new {
            let identified = ClusterEvent::Identified(uid.into());
            self.report(process, vec![Event::Cluster(site.cluster(), identified)]);
        }
    }

    fn responds(&mut self, site: Site) -> bool {
        let cluster = &self.clusters[site];
        let faults = &cluster.faults;
        let is_up = cluster.unplugged.is_none() && faults.outage <= self.now;
        let is_lossy = faults.lost_requests.max(faults.lost_answers).max(faults.errors.1) > self.now;
        is_up && !(is_lossy && self.rng.random_bool(0.5))
    }

    /// Something arrived from a cluster.
    pub(super) fn heard(&mut self, process: usize, site: Site) {
        let now = self.now;
        let it = &mut self.processes[process];
        let Some(connected) = it.connected.get_mut(&site) else { return };
        (connected.heard, connected.is_lost) = (Some(now), false);
        if !it.checks_liveness {
            it.checks_liveness = true;
            let epoch = it.epoch;
            let at = now + self.rng.random_range(0..LIVENESS_INTERVAL);
            self.schedule(at, ScheduledEvent::CheckLiveness(process, epoch));
        }
    }

    /// The watches of a cluster were closed.
    pub(super) fn lost(&mut self, site: Site) {
        for process in &mut self.processes {
            if let Some(connected) = process.connected.get_mut(&site) {
                (connected.is_lost, connected.asked) = (true, None);
            }
        }
    }

    /// Tells the engine when clusters were last heard from.
    pub(super) fn check_liveness(&mut self, process: usize) {
        let (now, wall) = (self.now, self.wall(process));
        let it = &mut self.processes[process];
        it.checks_liveness = false;
        let mut events = Vec::new();
        for (site, connected) in &mut it.connected {
            if let Some(heard) = connected.heard.filter(|heard| connected.reported != Some(*heard)) {
                connected.reported = Some(heard);
                let ago = SignedDuration::from_millis(i64::try_from(now - heard).unwrap_or_default());
                let heard = ClusterEvent::Heard(wall.saturating_sub(ago).unwrap_or(wall));
                events.push(Event::Cluster(site.cluster(), heard));
            }
            if std::mem::replace(&mut connected.was_lost, connected.is_lost) != connected.is_lost {
                let event =
                    if connected.is_lost { ClusterEvent::Disconnected } else { ClusterEvent::Connected };
                events.push(Event::Cluster(site.cluster(), event));
            }
        }
        if !events.is_empty() {
            self.report(process, events);
        }
    }

    /// Tells the engine which kinds discovery found.
    pub(super) fn report_kinds(&mut self, process: usize, site: Site) {
        if !self.plan.has_inventory() {
            return;
        }
        let Some(kinds) = self.processes[process].kinds.get(&site) else { return };
        let served = kinds.iter().map(|(kind, served)| (kind.clone(), served.clone())).collect();
        let kinds = DiscoveredKinds { served, ..DiscoveredKinds::default() };
        self.report(process, vec![Event::Cluster(site.cluster(), ClusterEvent::Kinds(Arc::new(kinds)))]);
    }

    /// Looks for objects whose status an earlier process wrote. A kind that cannot be listed is tried again.
    pub(super) fn find_singletons(&mut self, process: usize, epoch: u64) {
        let kinds = self.processes[process].kinds.get(&Site::Hub).map(|kinds| (**kinds).clone());
        let is_discovered = kinds.is_some();
        let mut has_failed = false;
        let mut found = Vec::new();
        for (kind, served) in kinds.unwrap_or_default() {
            if !served.has_status || self.processes[process].searched.contains(&kind) {
                continue;
            }
            if self.read_error(Site::Hub, &kind).is_some() {
                has_failed = true;
                continue;
            }
            if self.has_labelled(&kind) {
                found.push(Event::SingletonKind(kind.clone()));
            }
            self.processes[process].searched.insert(kind);
        }
        if has_failed || !is_discovered {
            let at = self.now + self.rng.random_range(500..3_000);
            self.schedule(at, ScheduledEvent::FindSingletons(process, epoch));
        }
        if !found.is_empty() {
            self.report(process, found);
        }
    }

    fn has_labelled(&self, kind: &GroupKind) -> bool {
        let mut objects = self.clusters.hub.store.of_kind(kind);
        objects.any(|object| object.metadata()["labels"][SINGLETON_LABEL] == "true")
    }

    /// Whether no cluster of the inventory is about to become stale.
    pub(super) fn is_freshness_settled(&self) -> bool {
        /// Longer than any threshold of a plan.
        const LONG: Moment = 90_000;
        Site::WORKLOAD.into_iter().all(|site| {
            let cluster = &self.clusters[site];
            let is_settled = |connected: &ConnectedCluster| {
                let silence = connected.silence(self.now);
                // A probe that is not needed is left out, so that the next one may be two intervals away.
                let is_reported = connected.reported == connected.heard;
                let is_heard = silence <= PROBE_INTERVAL * 12 / 10 && is_reported;
                let is_known = connected.uid.as_ref() == Some(&cluster.uid(site));
                if cluster.unplugged.is_some() { silence > LONG } else { is_known && is_heard }
            };
            cluster.entry.as_ref().is_none_or(|entry| {
                self.processes.iter().filter(|process| process.alive).all(|process| {
                    process
                        .connected
                        .get(&site)
                        .is_some_and(|connected| connected.number == entry.number && is_settled(connected))
                })
            })
        })
    }
}

fn metadata(connected: &ConnectedCluster) -> ClusterEvent {
    let labels = connected.labels.clone();
    ClusterEvent::Metadata(Arc::new(ClusterMetadata { labels, ..ClusterMetadata::default() }))
}
