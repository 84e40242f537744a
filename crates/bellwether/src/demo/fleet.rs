//! The hub and the clusters, and the engine that the controller runs.

use std::{collections::BTreeMap, time::Duration};

use anyhow::Result;
use bellwether_engine::{
    Cluster, ClusterEvent, ClusterMetadata, ClusterSources, DiscoveredKinds, Driver, Effect, Engine, Event,
    Group, GroupKind, Now, Outcome,
};
use bellwether_inspect::{
    observe::ListedObject,
    owner_tree::{Node, owned_kinds, tree},
};
use bellwether_model::State;
use jiff::{SignedDuration, Timestamp};

use super::{
    action::Action, combined_status::CombinedStatus, delivery, simulated_cluster::SimulatedCluster,
    store::Store,
};

/// The time of the first scene, the same in each run: 2026-11-16 09:00 UTC.
const BEGINNING: Timestamp = Timestamp::constant(1_794_819_600, 0);

/// Writes in flight, as in the controller.
const MAX_WRITES: usize = 16;

/// A limit for bugs: the simulated controllers settle after a few rounds.
const MAX_ROUNDS: usize = 64;

/// Beside the hub.
const CLUSTERS: [&str; 3] = ["east", "north", "west"];

pub(super) struct Fleet {
    hub: SimulatedCluster,
    clusters: BTreeMap<Cluster, SimulatedCluster>,
    driver: Driver,
    elapsed: Duration,
}

impl Fleet {
    /// Without objects.
    pub(super) fn new() -> Self {
        let cluster = |name: &&str| (Cluster::named(name), SimulatedCluster::new(BEGINNING));
        let mut fleet = Self {
            hub: SimulatedCluster::new(BEGINNING),
            clusters: CLUSTERS.iter().map(cluster).collect(),
            driver: Driver::new(Engine::new().with_combined_statuses(), MAX_WRITES),
            elapsed: Duration::ZERO,
        };
        fleet.connect();
        fleet.settle();
        fleet
    }

    /// Registers the clusters in the inventory.
    fn connect(&mut self) {
        let kinds = DiscoveredKinds { served: self.hub.store.kinds(), ..DiscoveredKinds::default() };
        let mut events = vec![Event::Cluster(Cluster::hub(), ClusterEvent::Kinds(kinds.into()))];
        for cluster in self.clusters.keys() {
            let labels = BTreeMap::from([("location-group".to_owned(), "edge".to_owned())]);
            let metadata = ClusterMetadata { labels, annotations: BTreeMap::new() };
            let uid = format!("{}-kube-system", cluster.name());
            let joins = [
                ClusterEvent::Added,
                ClusterEvent::Metadata(metadata.into()),
                ClusterEvent::Connecting,
                ClusterEvent::Identified(uid.into()),
            ];
            events.extend(joins.map(|event| Event::Cluster(cluster.clone(), event)));
        }
        events.push(Event::InventoryListed);
        self.step(events);
    }

    /// The simulated time.
    pub(super) fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.elapsed).unwrap_or(SignedDuration::MAX);
        BEGINNING.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
    }

    fn clocks(&self) -> Now {
        Now { time: self.now(), passed: self.elapsed }
    }

    /// Advances the time, and lets all controllers act.
    pub(super) fn wait(&mut self, until: Duration) {
        self.elapsed = until;
        let now = self.now();
        for cluster in self.clusters.values_mut().chain([&mut self.hub]) {
            cluster.set_time(until, now);
        }
        self.settle();
    }

    /// Performs an action, and lets all controllers react.
    pub(super) fn perform(&mut self, action: Action) -> Result<()> {
        action.perform(&mut self.hub.store, &mut self.clusters)?;
        self.settle();
        Ok(())
    }

    fn answering(&mut self) -> impl Iterator<Item = (&Cluster, &mut SimulatedCluster)> {
        self.clusters.iter_mut().filter(|(_, cluster)| cluster.answers)
    }

    /// Runs all controllers until none of them changes an object.
    fn settle(&mut self) {
        let now = self.now();
        let heard = |(cluster, _): (&Cluster, _)| Event::Cluster(cluster.clone(), ClusterEvent::Heard(now));
        let heard: Vec<_> = self.answering().map(heard).collect();
        self.step(heard);
        for _ in 0..MAX_ROUNDS {
            let before = self.revision();
            self.hub.act();
            self.deliver();
            self.clusters.values_mut().for_each(SimulatedCluster::act);
            // The engine runs last, so that the output skips intermediate states.
            if self.revision() == before && !self.run_engine() {
                return;
            }
        }
    }

    fn deliver(&mut self) {
        for template in delivery::templates(&self.hub.store) {
            let mut stores = self.answering().map(|(_, cluster)| &mut cluster.store);
            delivery::deliver(&template, &mut stores);
        }
    }

    /// The number of changes so far.
    fn revision(&self) -> u64 {
        self.clusters.values().chain([&self.hub]).map(|cluster| cluster.store.revision()).sum()
    }

    /// Applies all events to the engine and makes its writes. Returns whether an object has changed.
    fn run_engine(&mut self) -> bool {
        let before = self.revision();
        let effects = self.driver.tick(self.clocks());
        self.apply(effects);
        loop {
            let events = self.take_events();
            if events.is_empty() {
                break;
            }
            self.step(events);
        }
        for (slot, change) in self.driver.write(self.clocks(), true) {
            let outcome = match sources(&mut self.hub, &mut self.clusters).get_mut(&slot.object.cluster) {
                Ok(store) => store.write(&slot, &change),
                Err(error) => Outcome::from(error),
            };
            let effects = self.driver.written(self.clocks(), (slot, change), outcome, None);
            self.apply(effects);
        }
        self.revision() != before
    }

    /// Those of a cluster that does not answer arrive later.
    fn take_events(&mut self) -> Vec<Event> {
        let mut events = self.hub.store.take_events();
        events.extend(self.answering().flat_map(|(_, cluster)| cluster.store.take_events()));
        events.into_iter().map(|(feed, event)| Event::Feed(feed, event)).collect()
    }

    fn step(&mut self, events: impl IntoIterator<Item = Event>) {
        let effects = self.driver.step(self.clocks(), events);
        self.apply(effects);
    }

    fn apply(&mut self, effects: Vec<Effect>) {
        let now = self.clocks();
        let mut sources = sources(&mut self.hub, &mut self.clusters);
        // The driver keeps the writes. Events of Kubernetes are not shown.
        sources.route(effects, |unreadable| self.driver.step(now, unreadable));
    }

    pub(super) fn groups(&self) -> Vec<Group> {
        self.driver.groups(self.now())
    }

    pub(super) fn combined_statuses(&self) -> Vec<CombinedStatus> {
        let stored = self.hub.store.all(&GroupKind::bellwether("CombinedStatus"));
        stored.iter().filter_map(CombinedStatus::of).collect()
    }

    /// The members of a group with the objects that they own. Without `all`, Ready members have no children.
    pub(super) fn tree(&self, group: &Group, all: bool) -> Vec<Node> {
        let below = owned_kinds(group.members.iter().filter(|member| all || member.state != State::Ready));
        let mut listed = Vec::new();
        for kind in below {
            let objects = self.hub.store.observed(&kind, &self.driver.lens(&kind));
            let objects = objects.into_iter().map(|(name, object)| ListedObject {
                kind: kind.clone(),
                name,
                facts: object.facts,
            });
            listed.extend(objects);
        }
        tree(group, &listed)
    }
}

fn sources<'a>(
    hub: &'a mut SimulatedCluster,
    clusters: &'a mut BTreeMap<Cluster, SimulatedCluster>,
) -> ClusterSources<&'a mut Store> {
    let mut sources = ClusterSources::hub(&mut hub.store);
    for (name, cluster) in clusters {
        sources.insert(name.clone(), &mut cluster.store);
    }
    sources
}
