//! A cluster in memory, the engine and its outbox. The test controls every watch event, every write and the
//! clock.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::{rc::Rc, sync::Arc};

use bellwether_engine::{
    Cluster, Dialect, Effect, Engine, Event, FeedEvent, FeedId, GroupKind, Lens, NamespacedName,
    ObservedObject, Outbox, Outcome, OwnKind, ProjectionContext, Slot, Transition, Unreadable, Warning,
    Write,
};
use bellwether_simulation::object::Object;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::{
    objects,
    received_objects::Received,
    server::{FeedMessage, Server},
    writes::{Fault, InFlightWrite},
};

/// More steps at one moment look like an endless loop.
const MAX_STEPS: usize = 20_000;

pub(crate) struct Feed {
    pub(crate) kind: GroupKind,
    pub(crate) received: Received,
    lens: Arc<Lens>,
    queue: VecDeque<FeedMessage>,
}

impl Feed {
    fn project(&self, object: &Object, now: Timestamp) -> (NamespacedName, ObservedObject) {
        let has_status = self.received.known.served.as_ref().map(|served| served.has_status);
        object.seen(&self.lens, ProjectionContext { now, has_status }).expect("an object")
    }
}

pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) now: Timestamp,
    pub(crate) feeds: BTreeMap<FeedId, Feed>,
    /// Every slot that the engine ever announced.
    slots: BTreeSet<Slot>,
    pub(crate) writes: Vec<(Slot, Write, Outcome)>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) transitions: Vec<Transition>,
    pub(crate) warnings: Vec<Warning>,
    /// For the next writes, one by one; then none.
    pub(crate) faults: VecDeque<Fault>,
    /// A ResourceQuota denies all Pods.
    pub(crate) quota_exceeded: bool,
    /// Kinds whose watch events are held back.
    pub(crate) held: BTreeSet<GroupKind>,
    pub(crate) writing: bool,
    /// Whether sending, applying and responding are separate steps.
    pub(crate) slow: bool,
    pub(crate) in_flight: Vec<InFlightWrite>,
    pub(crate) engine: Engine,
    pub(crate) outbox: Outbox,
    unreadable: BTreeMap<GroupKind, Unreadable>,
    wake: Option<Timestamp>,
    /// Chooses the feed that delivers next; without it, the oldest does.
    rng: Option<u64>,
}

impl World {
    /// A cluster that serves the kinds of [`objects::kinds`], and an empty engine.
    pub(crate) fn new() -> Self {
        let mut outbox = Outbox::new(4);
        outbox.set_leading(true);
        Self {
            server: Server::new(),
            now: "2026-11-14T10:00:00Z".parse().expect("a time"),
            feeds: BTreeMap::new(),
            slots: BTreeSet::new(),
            writes: Vec::new(),
            effects: Vec::new(),
            transitions: Vec::new(),
            warnings: Vec::new(),
            faults: VecDeque::new(),
            quota_exceeded: false,
            held: BTreeSet::new(),
            writing: true,
            slow: false,
            in_flight: Vec::new(),
            engine: Engine::new().with_kind(OwnKind::Application(Dialect::AppK8sIo)),
            outbox,
            unreadable: BTreeMap::new(),
            wake: None,
            rng: None,
        }
    }

    /// With these objects, settled.
    pub(crate) fn with(objects: impl IntoIterator<Item = Value>) -> Self {
        let mut world = Self::new();
        for object in objects {
            world.server.put(object);
        }
        world.settle();
        world
    }

    /// Feeds deliver in a random order from now on.
    pub(crate) fn shuffle(&mut self, seed: u64) {
        self.rng = Some(seed | 1);
    }

    /// Failover: a new engine without any state.
    pub(crate) fn restart(&mut self) {
        let fresh = Self::new();
        self.engine = fresh.engine;
        self.outbox = fresh.outbox;
        self.wake = None;
        self.feeds.clear();
        self.in_flight.clear();
    }

    /// And settles.
    pub(crate) fn put(&mut self, object: Value) -> &mut Self {
        self.server.put(object);
        self.settle()
    }

    /// And settles. The object is in the namespace of all tests.
    pub(crate) fn edit(&mut self, kind: &str, name: &str, edit: impl FnOnce(&mut Value)) -> &mut Self {
        let (kind, name) = objects::key(kind, name);
        assert!(self.server.get(&kind, &name).is_some(), "there is no {kind} {name}");
        self.server.edit(&kind, &name, edit);
        self.settle()
    }

    /// And settles. The object is in the namespace of all tests.
    pub(crate) fn delete(&mut self, kind: &str, name: &str) -> &mut Self {
        let (kind, name) = objects::key(kind, name);
        assert!(self.server.get(&kind, &name).is_some(), "there is no {kind} {name}");
        self.server.remove(&kind, &name);
        self.settle()
    }

    /// Makes a kind unreadable, or readable again.
    pub(crate) fn unreadable(&mut self, kind: &str, why: Option<Unreadable>) {
        let kind = objects::kind(kind);
        match why {
            Some(why) => self.unreadable.insert(kind.clone(), why),
            None => self.unreadable.remove(&kind),
        };
        self.relist(&kind);
    }

    /// Breaks the watch of a kind: pending events are lost, and a relist follows.
    pub(crate) fn relist(&mut self, kind: &GroupKind) {
        self.distribute();
        let list = self.list(kind);
        for feed in self.feeds.values_mut().filter(|feed| feed.kind == *kind) {
            feed.queue = list.iter().cloned().collect();
        }
    }

    /// Until nothing is left to do, postponed message changes included.
    pub(crate) fn settle(&mut self) -> &mut Self {
        self.pass(SignedDuration::from_secs(2))
    }

    pub(crate) fn pass(&mut self, time: SignedDuration) -> &mut Self {
        let end = self.now + time;
        for _ in 0..MAX_STEPS {
            self.settle_now();
            let writing = self.outbox.next().filter(|_| self.writing);
            let Some(next) = [writing, self.wake].into_iter().flatten().min().filter(|next| *next <= end)
            else {
                self.now = end;
                return self;
            };
            self.now = self.now.max(next);
            self.step(Event::Tick);
        }
        panic!("time does not pass: {:?}, {:?}", self.outbox, self.wake);
    }

    pub(crate) fn set_clock(&mut self, by: SignedDuration) -> &mut Self {
        self.now += by;
        self.engine.clock_set(by);
        self.outbox.clock_set(by);
        self.step(Event::Tick);
        self
    }

    /// Does everything that can happen without time passing.
    pub(crate) fn settle_now(&mut self) {
        if self.feeds.is_empty() {
            self.step(Event::Tick);
        }
        for _ in 0..MAX_STEPS {
            if !self.advance() {
                return;
            }
        }
        panic!("it never ends: {:?}", self.writes.last());
    }

    /// Does one thing, if anything can happen.
    pub(crate) fn advance(&mut self) -> bool {
        if !self.slow {
            return self.deliver() || self.write();
        }
        let first = self.random(3);
        (0..3).any(|number| match (first + number) % 3 {
            0 => self.deliver(),
            1 => self.send(),
            _ => self.advance_write(),
        })
    }

    /// Delivers one message of one feed, if there is any.
    pub(crate) fn deliver(&mut self) -> bool {
        self.distribute();
        let has_news = |feed: &Feed| !feed.queue.is_empty() && !self.held.contains(&feed.kind);
        let ready: Vec<_> = self.feeds.iter().filter(|(_, feed)| has_news(feed)).map(|(id, _)| *id).collect();
        let Some(id) = ready.get(self.random(ready.len())).copied() else { return false };
        self.deliver_from(id);
        true
    }

    /// Delivers everything that the feeds have, in one step of the engine; then what that makes them list,
    /// and so on.
    pub(crate) fn deliver_in_batches(&mut self) {
        loop {
            self.distribute();
            let feeds: Vec<_> = self.feeds.keys().copied().collect();
            let mut batch = Vec::new();
            for id in feeds {
                while let Some(event) = self.receive(id) {
                    batch.push(event);
                }
            }
            if batch.is_empty() {
                return;
            }
            self.step_through(batch);
        }
    }

    pub(crate) fn wants(&self) -> BTreeMap<Slot, Write> {
        self.slots.iter().filter_map(|slot| Some((slot.clone(), self.wanted(slot)?))).collect()
    }

    pub(crate) fn wanted(&self, slot: &Slot) -> Option<Write> {
        self.engine.render_write(self.now, slot)
    }

    /// One step of the engine.
    pub(crate) fn step(&mut self, event: Event) {
        self.step_through([event]);
    }

    /// One step of the engine with a batch of events.
    ///
    /// # Panics
    ///
    /// If an effect is for another cluster than the hub, which is the only one here.
    fn step_through(&mut self, events: impl IntoIterator<Item = Event>) {
        let effects = self.engine.step(self.now, events);
        for effect in &effects {
            match effect {
                Effect::Follow { feed, cluster, kind, lens } => {
                    assert_eq!(*cluster, Cluster::hub(), "{kind} is followed in another cluster");
                    let queue = self.list(kind);
                    let feed = self.feeds.entry(*feed).or_insert_with(|| Feed {
                        kind: kind.clone(),
                        received: Received::default(),
                        lens: Arc::clone(lens),
                        queue: VecDeque::new(),
                    });
                    // By other rules: what is known is outdated until it is listed again.
                    feed.received.known.listing |=
                        feed.received.known.listed && !feed.lens.has_same_rules(lens);
                    feed.lens = Arc::clone(lens);
                    feed.queue.extend(queue);
                }
                Effect::Leave { feed, cluster } => {
                    assert_eq!(*cluster, Cluster::hub(), "{feed} is left in another cluster");
                    self.feeds.remove(feed).expect("only what is followed is left");
                }
                Effect::EnqueueWrite(slot, urgency) => {
                    assert_eq!(slot.object.cluster, Cluster::hub(), "{} is wanted", slot.object);
                    self.outbox.enqueue(self.now, slot, *urgency);
                    self.slots.insert(slot.clone());
                }
                Effect::Changed(..) => {}
                Effect::Record(transition) => self.transitions.push(transition.clone()),
                Effect::Warn(warning) => self.warnings.push(warning.clone()),
                Effect::Wake(time) => self.wake = *time,
            }
        }
        self.effects.extend(effects);
    }

    /// Delivers an old version of a known object again.
    pub(crate) fn repeat(&mut self, object: &Object) {
        let knows = |feed: &Feed| {
            let known = feed.received.known.objects.get(&object.name);
            let is_known =
                |known: &Rc<Object>| known.uid() == object.uid() && known.version() >= object.version();
            feed.kind == object.kind && known.is_some_and(is_known)
        };
        let Some((id, feed)) = self.feeds.iter().find(|(_, feed)| knows(feed)) else { return };
        let (name, seen) = feed.project(object, self.now);
        self.step(Event::Feed(*id, FeedEvent::Applied(name, Box::new(seen))));
    }

    fn deliver_from(&mut self, id: FeedId) {
        if let Some(event) = self.receive(id) {
            self.step(event);
        }
    }

    /// The next message of a feed, as the event for the engine.
    fn receive(&mut self, id: FeedId) -> Option<Event> {
        let feed = self.feeds.get_mut(&id)?;
        let message = feed.queue.pop_front()?;
        feed.received.receive(&message);
        let event = match message {
            FeedMessage::Served(served) => FeedEvent::Served(served),
            FeedMessage::Unreadable(why) => FeedEvent::Unreadable(why),
            FeedMessage::Listing => FeedEvent::ListStarted,
            FeedMessage::Listed => FeedEvent::ListCompleted,
            FeedMessage::Gone(name) => FeedEvent::Deleted(name),
            FeedMessage::Set(object) => {
                let (name, seen) = feed.project(&object, self.now);
                feed.received.note(&name, seen.facts.component_conditions.is_none());
                FeedEvent::Applied(name, Box::new(seen))
            }
        };
        Some(Event::Feed(id, event))
    }

    /// Queues new changes for the feeds of their kinds.
    fn distribute(&mut self) {
        for (kind, message) in self.server.changes() {
            if self.unreadable.contains_key(&kind) || !self.server.kinds.contains_key(&kind) {
                continue;
            }
            for feed in self.feeds.values_mut().filter(|feed| feed.kind == kind) {
                feed.queue.push_back(message.clone());
            }
        }
    }

    fn list(&mut self, kind: &GroupKind) -> Vec<FeedMessage> {
        // Changes before the list go to the existing feeds first.
        self.distribute();
        let Some(served) = self.server.kinds.get(kind) else {
            return vec![FeedMessage::Unreadable(Unreadable::NotServed)];
        };
        if let Some(why) = self.unreadable.get(kind) {
            return vec![FeedMessage::Unreadable(why.clone())];
        }
        let objects = self.server.of_kind(kind).map(|object| FeedMessage::Set(Rc::clone(object)));
        let begin = [FeedMessage::Served(served.clone()), FeedMessage::Listing];
        begin.into_iter().chain(objects).chain([FeedMessage::Listed]).collect()
    }

    pub(crate) fn random(&mut self, below: usize) -> usize {
        let Some(rng) = &mut self.rng else { return 0 };
        *rng ^= *rng << 13;
        *rng ^= *rng >> 7;
        *rng ^= *rng << 17;
        usize::try_from(*rng >> 33).unwrap_or_default() % below.max(1)
    }
}
