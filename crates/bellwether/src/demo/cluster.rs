//! A cluster in which everybody plays their part, and the engine that looks at it: the same that the controller runs.

use std::time::Duration;

use anyhow::{Context as _, Result};
use bellwether_engine::{Driver, Effect, Engine, Event, Group, GroupKind, Now, Outcome, Sources};
use bellwether_inspect::{
    observe::ListedObject,
    owner_tree::{Node, family, kinds_below},
};
use bellwether_memory_cluster::merge;
use bellwether_model::State;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{machines, memory::Memory, operators, store::Store, workloads};

/// When every story begins: nine in the morning, on a day of its own. What is told is the same each time.
const BEGINNING: Timestamp = Timestamp::constant(1_794_819_600, 0);

/// So many writes are under way at a time, as in the controller.
const WRITES_AT_A_TIME: usize = 16;

/// So often those who play react to each other at one moment. They are done after a few times.
const MOST_TURNS: usize = 64;

/// Something that a person does to the cluster.
#[derive(Clone, Copy, Debug)]
pub(super) enum UserAction {
    /// Applies these manifests.
    Apply(&'static str),
    /// Lets an Application expect one more component, as its spec has it.
    Expect(&'static str, &'static str),
    /// Gives the containers of a Deployment another image.
    SetImage(&'static str, &'static str),
    /// Deletes the StatefulSet of this name.
    Delete(&'static str),
    /// Changes an object of this group and kind and of this name.
    Patch(&'static str, &'static str, &'static str, &'static str),
}

/// The cluster and the engine.
pub(super) struct Cluster {
    store: Store,
    memory: Memory,
    driver: Driver,
    passed: Duration,
}

impl Cluster {
    /// One in which nothing has happened yet.
    pub(super) fn new() -> Self {
        let (store, memory) = (Store::new(BEGINNING), Memory::default());
        let mut cluster = Self {
            store,
            memory,
            driver: Driver::new(Engine::new(), WRITES_AT_A_TIME),
            passed: Duration::ZERO,
        };
        let effects = cluster.driver.step(cluster.clocks(), []);
        cluster.follow_up(effects);
        cluster.settle();
        cluster
    }

    /// What the time is in the story.
    pub(super) fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.passed).unwrap_or(SignedDuration::MAX);
        BEGINNING.saturating_add(passed).unwrap_or(Timestamp::MAX)
    }

    fn clocks(&self) -> Now {
        Now { time: self.now(), passed: self.passed }
    }

    /// Time passes, and everybody does what they do by then.
    pub(super) fn wait(&mut self, until: Duration) {
        self.passed = until;
        self.memory.tell_time(until);
        self.store.tell_time(self.now());
        self.settle();
    }

    /// Somebody does something, and everybody reacts.
    pub(super) fn suffer(&mut self, deed: UserAction) -> Result<()> {
        match deed {
            UserAction::Apply(manifests) => {
                let manifests: Vec<Value> = serde_saphyr::from_multiple(manifests)
                    .context("a manifest of the demo cannot be read")?;
                for manifest in &manifests {
                    self.store.apply(manifest);
                }
            }
            UserAction::Expect(application, components) => {
                let components: Value =
                    serde_json::from_str(components).context("a component of the demo cannot be read")?;
                let patch = json!({ "spec": { "components": components } });
                self.store.patch(&GroupKind::own("Application"), application, &patch);
            }
            UserAction::SetImage(name, image) => self.set_image(name, image),
            UserAction::Patch(group, kind, name, patch) => {
                let patch: Value =
                    serde_json::from_str(patch).context("a change of the demo cannot be read")?;
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

    /// Everybody reacts to what the others do, until there is nothing more to do at this moment.
    fn settle(&mut self) {
        for _ in 0..MOST_TURNS {
            let before = self.store.revision();
            workloads::act(&mut self.store, &mut self.memory);
            machines::act(&mut self.store, &mut self.memory);
            operators::act(&mut self.store, &mut self.memory);
            // The engine looks when they have come to rest: they are quicker than anybody can see.
            if self.store.revision() == before && !self.engine_acts() {
                return;
            }
        }
    }

    /// The engine hears what is new and writes what follows from it. Gives whether there was anything.
    fn engine_acts(&mut self) -> bool {
        let before = self.store.revision();
        let effects = self.driver.tick(self.clocks());
        self.follow_up(effects);
        loop {
            let news = self.store.news();
            if news.is_empty() {
                break;
            }
            let events = news.into_iter().map(|(feed, news)| Event::Feed(feed, news));
            let effects = self.driver.step(self.clocks(), events);
            self.follow_up(effects);
        }
        for (slot, change) in self.driver.write(self.clocks(), true) {
            let mut sources = Sources::hub(&mut self.store);
            let outcome = match sources.get_mut(&slot.object.cluster) {
                Ok(store) => store.write(&slot, &change),
                Err(error) => Outcome::from(error),
            };
            let effects = self.driver.written(self.clocks(), (slot, change), outcome, None);
            self.follow_up(effects);
        }
        self.store.revision() != before
    }

    fn follow_up(&mut self, effects: Vec<Effect>) {
        let now = self.clocks();
        // What turns is on the screen; the driver has kept the rest.
        Sources::hub(&mut self.store).route(effects, |unread| self.driver.step(now, unread));
    }

    /// The groups as the engine sees them.
    pub(super) fn groups(&self) -> Vec<Group> {
        self.driver.groups(self.now())
    }

    /// The members of a group with what they own. What is ready needs no look below it, unless somebody wants to see all.
    pub(super) fn family(&self, group: &Group, all: bool) -> Vec<Node> {
        let below = kinds_below(group.members.iter().filter(|member| all || member.state != State::Ready));
        let mut beside = Vec::new();
        for kind in below {
            let seen = self.store.seen(&kind, &self.driver.lens(&kind));
            let seen = seen.into_iter().map(|(name, seen)| ListedObject {
                kind: kind.clone(),
                name,
                facts: seen.facts,
            });
            beside.extend(seen);
        }
        family(group, &beside)
    }
}
