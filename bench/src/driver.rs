//! Runs an engine without a cluster: feeds it events, and confirms all its writes.

use std::{collections::BTreeSet, mem, sync::Arc};

use anyhow::{Context as _, Result};
use bellwether_engine::{
    Cluster, ClusterSource, ClusterSources, Effect, Engine, Event, FeedEvent, FeedId, GroupKind, Lens,
    NamespacedName, ObservedObject, Outcome, ProjectionContext, ResourceVersion, ServedResource, Slot, Write,
};
use bellwether_model::Object;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value as Json;

use crate::population::{Population, uid};

/// The maximum number of events in one step of a controller.
const BATCH: usize = 1024;

#[derive(Debug)]
pub struct Driver {
    engine: Engine,
    sources: ClusterSources<Feeds>,
    now: Timestamp,
    /// The feeds of Bellwether's kinds.
    own: Vec<(FeedId, GroupKind, Arc<Lens>)>,
    /// The feed of the members' kind, and its lens.
    members: (FeedId, Arc<Lens>),
    /// The slots that the engine wants to write.
    wanted: BTreeSet<Slot>,
    /// The last resourceVersion.
    version: usize,
}

/// A decoded object, as a watch delivers it.
#[derive(Clone, Debug)]
pub struct DecodedObject {
    name: NamespacedName,
    seen: ObservedObject,
}

/// The feeds that the engine follows, in the order in which it started to follow them.
#[derive(Debug, Default)]
struct Feeds(Vec<(FeedId, GroupKind, Arc<Lens>)>);

impl ClusterSource for Feeds {
    fn follow(&mut self, feed: FeedId, kind: &GroupKind, lens: Arc<Lens>) {
        match self.0.iter_mut().find(|(other, ..)| *other == feed) {
            Some((.., old)) => *old = lens,
            None => self.0.push((feed, kind.clone(), lens)),
        }
    }

    fn leave(&mut self, feed: FeedId) {
        self.0.retain(|(other, ..)| *other != feed);
    }

    fn served(&self, _: &GroupKind) -> Option<ServedResource> {
        None
    }
}

impl Driver {
    /// An engine with all Applications and none of their objects.
    pub fn new(population: &Population) -> Result<Self> {
        let applications = (0..population.applications()).map(|application| {
            let mut written = Population::application(application);
            written["metadata"]["uid"] = uid(population.objects() + application).into();
            written
        });
        Self::of("Application", applications, "deployments")
    }

    /// An engine with these objects of one of Bellwether's kinds and none of their members. `plural` is the
    /// plural of the only kind of members; of the kinds below it there are no objects.
    pub fn of(own_kind: &str, own: impl Iterator<Item = Json>, plural: &str) -> Result<Self> {
        let mut own: Vec<_> = own.collect();
        let mut engine = Engine::new();
        let mut sources = ClusterSources::hub(Feeds::default());
        let now = Timestamp::now();
        route(&mut engine, &mut sources, now, []);
        let mut events = Vec::new();
        let mut version = 0;
        let own_feeds = sources.get(&Cluster::hub())?.0.clone();
        for (feed, kind, lens) in &own_feeds {
            let plural = format!("{}s", kind.kind.to_lowercase());
            events.push(Event::Feed(*feed, FeedEvent::Served(served("v1alpha1", &plural))));
            events.push(Event::Feed(*feed, FeedEvent::ListStarted));
            for written in own.iter_mut().filter(|_| *kind.kind == *own_kind) {
                version += 1;
                let metadata = &mut written["metadata"];
                metadata["resourceVersion"] = version.to_string().into();
                metadata["generation"] = 1.into();
                let DecodedObject { name, seen } = decode(lens, written.to_string().as_bytes(), now)?;
                events.push(Event::Feed(*feed, FeedEvent::Applied(name, Box::new(seen))));
            }
            events.push(Event::Feed(*feed, FeedEvent::ListCompleted));
        }
        let mut effects = route(&mut engine, &mut sources, now, events);
        let followed = sources.get(&Cluster::hub())?.0[own_feeds.len()..].to_vec();
        let mut members = None;
        for (feed, kind, lens) in followed {
            let own_plural = format!("{}s", kind.kind.to_lowercase());
            let mut events = vec![FeedEvent::Served(served("v1", &own_plural))];
            if own_plural == plural {
                members = Some((feed, lens));
            } else {
                // Below the members there is nothing.
                events.extend([FeedEvent::ListStarted, FeedEvent::ListCompleted]);
            }
            let events = events.into_iter().map(|event| Event::Feed(feed, event));
            effects.extend(route(&mut engine, &mut sources, now, events));
        }
        let members = members.with_context(|| format!("the engine does not follow {plural}"))?;
        Ok(Self { engine, sources, now, own: own_feeds, members, wanted: wanted(effects).collect(), version })
    }

    /// Decodes an object as a watch does.
    pub fn decode(&self, json: &[u8]) -> Result<DecodedObject> {
        decode(&self.members.1, json, self.now)
    }

    /// The watch event for this state of an object, with a new resourceVersion.
    pub fn event(&mut self, decoded: &DecodedObject) -> Event {
        self.version += 1;
        let DecodedObject { name, mut seen } = decoded.clone();
        seen.facts.resource_version = ResourceVersion::new(&self.version.to_string());
        Event::Feed(self.members.0, FeedEvent::Applied(name, Box::new(seen)))
    }

    /// The watch event for an object of one of Bellwether's kinds.
    pub fn own_event(&mut self, mut written: Json, generation: i64) -> Result<Event> {
        self.version += 1;
        written["metadata"]["resourceVersion"] = self.version.to_string().into();
        written["metadata"]["generation"] = generation.into();
        let own = self.own.iter().find(|(_, kind, _)| written["kind"] == *kind.kind);
        let (feed, _, lens) = own.context("not one of Bellwether's kinds")?;
        let DecodedObject { name, seen } = decode(lens, written.to_string().as_bytes(), self.now)?;
        Ok(Event::Feed(*feed, FeedEvent::Applied(name, Box::new(seen))))
    }

    /// Feeds the list of all objects, in batches as a controller does.
    pub fn list(&mut self, events: impl IntoIterator<Item = Event>) {
        let feed = self.members.0;
        let begin = [Event::Feed(feed, FeedEvent::ListStarted)];
        let end = [Event::Feed(feed, FeedEvent::ListCompleted)];
        let mut events = begin.into_iter().chain(events).chain(end).peekable();
        while events.peek().is_some() {
            self.step(events.by_ref().take(BATCH));
        }
    }

    /// One step of the engine.
    pub fn step(&mut self, events: impl IntoIterator<Item = Event>) {
        self.wanted.extend(wanted(route(&mut self.engine, &mut self.sources, self.now, events)));
    }

    /// Renders all wanted changes, one second later.
    pub fn render_statuses(&mut self) -> Vec<(Slot, Write)> {
        self.now += SignedDuration::from_secs(1);
        let wanted = mem::take(&mut self.wanted);
        wanted
            .into_iter()
            .filter_map(|slot| self.engine.render_write(self.now, &slot).map(|change| (slot, change)))
            .collect()
    }

    /// Reports to the engine that the changes are written, if their cluster is connected.
    pub fn written(&mut self, changes: Vec<(Slot, Write)>) {
        for (slot, change) in changes {
            self.version += 1;
            let outcome = match self.sources.get(&slot.object.cluster) {
                Ok(_) => Outcome::Written(Some(ResourceVersion::new(&self.version.to_string()))),
                Err(error) => error.into(),
            };
            self.step([Event::Written { slot, write: change, outcome }]);
        }
    }

    /// The number of healthy Rollups.
    pub fn healthy(&self) -> usize {
        self.engine.stats().rollups[0]
    }

    /// The number of ready Applications.
    pub fn ready(&self) -> usize {
        self.engine.stats().applications[0]
    }
}

/// One step of the engine. Returns the effects that the sources do not handle.
fn route(
    engine: &mut Engine,
    sources: &mut ClusterSources<Feeds>,
    now: Timestamp,
    events: impl IntoIterator<Item = Event>,
) -> Vec<Effect> {
    let effects = engine.step(now, events);
    sources.route(effects, |events| engine.step(now, events))
}

/// The slots to write.
fn wanted(effects: Vec<Effect>) -> impl Iterator<Item = Slot> {
    effects.into_iter().filter_map(|effect| match effect {
        Effect::EnqueueWrite(slot, Some(_)) => Some(slot),
        _ => None,
    })
}

fn served(version: &str, plural: &str) -> ServedResource {
    ServedResource {
        version: version.into(),
        versions: [version.into()].into(),
        plural: plural.into(),
        namespaced: true,
        has_status: true,
    }
}

fn decode(lens: &Lens, json: &[u8], now: Timestamp) -> Result<DecodedObject> {
    let object = Object::from_json(json, lens.plan())?;
    let (name, seen) = lens.project(&object, ProjectionContext { now, has_status: Some(true) });
    Ok(DecodedObject { name, seen })
}
