//! A simulated cluster with its controllers and kubelets, and the engine that the controller runs.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bellwether_engine::{ClusterSources, Driver, Effect, Engine, Event, Group, GroupKind, Now, Outcome};
use bellwether_inspect::{
    observe::ListedObject,
    owner_tree::{Node, owned_kinds, tree},
};
use bellwether_memory_cluster::merge;
use bellwether_model::State;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{machines, memory::Memory, operators, store::Store, workloads};

/// The time of the first scene, the same in each run: 2026-11-16 09:00 UTC.
const BEGINNING: Timestamp = Timestamp::constant(1_794_819_600, 0);

/// Writes in flight, as in the controller.
const MAX_WRITES: usize = 16;

/// A limit for bugs: the simulated controllers settle after a few rounds.
const MAX_ROUNDS: usize = 64;

/// What a user does in a scene.
#[derive(Clone, Copy, Debug)]
pub(super) enum UserAction {
    Apply(&'static str),
    /// Adds components, as JSON, to the spec of the Application of this name.
    AddComponents(&'static str, &'static str),
    /// Sets the image of all containers of the Deployment of this name.
    SetImage(&'static str, &'static str),
    /// Deletes the StatefulSet of this name.
    Delete(&'static str),
    /// Group, kind and name of an object, and a merge patch.
    Patch(&'static str, &'static str, &'static str, &'static str),
}

pub(super) struct Cluster {
    store: Store,
    memory: Memory,
    driver: Driver,
    elapsed: Duration,
}

impl Cluster {
    /// Empty.
    pub(super) fn new() -> Self {
        let (store, memory) = (Store::new(BEGINNING), Memory::default());
        let mut cluster =
            Self { store, memory, driver: Driver::new(Engine::new(), MAX_WRITES), elapsed: Duration::ZERO };
        let effects = cluster.driver.step(cluster.clocks(), []);
        cluster.apply(effects);
        cluster.settle();
        cluster
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
        self.memory.set_elapsed(until);
        self.store.set_time(self.now());
        self.settle();
    }

    /// Performs an action, and lets all controllers react.
    pub(super) fn perform(&mut self, action: UserAction) -> Result<()> {
        match action {
            UserAction::Apply(manifests) => {
                let manifests: Vec<Value> =
                    serde_saphyr::from_multiple(manifests).context("invalid manifest in the demo")?;
                for manifest in &manifests {
                    self.store.apply(manifest);
                }
            }
            UserAction::AddComponents(application, components) => {
                let components: Value =
                    serde_json::from_str(components).context("invalid component in the demo")?;
                let patch = json!({ "spec": { "components": components } });
                self.store.patch(&GroupKind::bellwether("Application"), application, &patch);
            }
            UserAction::SetImage(name, image) => self.set_image(name, image),
            UserAction::Patch(group, kind, name, patch) => {
                let patch: Value = serde_json::from_str(patch).context("invalid patch in the demo")?;
                self.store.patch(&GroupKind::new(group, kind), name, &patch);
            }
            UserAction::Delete(name) => self.store.delete(&workloads::stateful_set(), name),
        }
        self.settle();
        Ok(())
    }

    fn set_image(&mut self, name: &str, image: &str) {
        let Some(deployment) = self.store.get(&workloads::deployment(), name) else { return };
        let containers = deployment["spec"]["template"]["spec"]["containers"].as_array();
        let mut containers = containers.cloned().unwrap_or_default();
        for container in &mut containers {
            merge(container, &json!({ "image": image }));
        }
        let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
        self.store.patch(&workloads::deployment(), name, &patch);
    }

    /// Runs all controllers until none of them changes an object.
    fn settle(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let before = self.store.revision();
            workloads::act(&mut self.store, &mut self.memory);
            machines::act(&mut self.store, &mut self.memory);
            operators::act(&mut self.store, &mut self.memory);
            // The engine runs last, so that the output skips intermediate states.
            if self.store.revision() == before && !self.run_engine() {
                return;
            }
        }
    }

    /// Applies all events to the engine and makes its writes. Returns whether an object has changed.
    fn run_engine(&mut self) -> bool {
        let before = self.store.revision();
        let effects = self.driver.tick(self.clocks());
        self.apply(effects);
        loop {
            let events = self.store.take_events();
            if events.is_empty() {
                break;
            }
            let events = events.into_iter().map(|(feed, event)| Event::Feed(feed, event));
            let effects = self.driver.step(self.clocks(), events);
            self.apply(effects);
        }
        for (slot, change) in self.driver.write(self.clocks(), true) {
            let mut sources = ClusterSources::hub(&mut self.store);
            let outcome = match sources.get_mut(&slot.object.cluster) {
                Ok(store) => store.write(&slot, &change),
                Err(error) => Outcome::from(error),
            };
            let effects = self.driver.written(self.clocks(), (slot, change), outcome, None);
            self.apply(effects);
        }
        self.store.revision() != before
    }

    fn apply(&mut self, effects: Vec<Effect>) {
        let now = self.clocks();
        // The driver keeps the writes. Events of Kubernetes are not shown.
        ClusterSources::hub(&mut self.store).route(effects, |unreadable| self.driver.step(now, unreadable));
    }

    pub(super) fn groups(&self) -> Vec<Group> {
        self.driver.groups(self.now())
    }

    /// The members of a group with the objects that they own. Without `all`, Ready members have no children.
    pub(super) fn tree(&self, group: &Group, all: bool) -> Vec<Node> {
        let below = owned_kinds(group.members.iter().filter(|member| all || member.state != State::Ready));
        let mut listed = Vec::new();
        for kind in below {
            let objects = self.store.observed(&kind, &self.driver.lens(&kind));
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
