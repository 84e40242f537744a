//! The engine and its outbox as one, for whoever drives them: a loop with a network and a clock, or one with neither.

#[cfg(feature = "planted")]
use std::collections::BTreeMap;

#[cfg(feature = "planted")]
use bellwether_health::Verdict;
use jiff::{SignedDuration, Timestamp};

#[cfg(feature = "planted")]
use crate::id::Cluster;
use crate::{
    census::Census,
    clock::{Clock, Now},
    effect::{Change, Effect, Slot},
    engine::Engine,
    event::{Event, Outcome},
    id::{GroupKind, NamespacedName},
    lens::Lens,
    outbox::Outbox,
    planted::Bug,
    view::{Group, GroupStatus},
};

/// The engine and its outbox.
#[derive(Debug)]
pub struct Driver {
    engine: Engine,
    outbox: Outbox,
    /// When the engine wants to be told the time.
    wake: Option<Timestamp>,
    clock: Clock,
    /// Whether somebody has set the clock, and the engine has not looked at that yet.
    clock_set: bool,
}

impl Driver {
    /// With an engine that knows nothing yet, and at most so many writes under way at a time.
    pub fn new(engine: Engine, max_in_flight: usize) -> Self {
        Self {
            engine,
            outbox: Outbox::new(max_in_flight),
            wake: None,
            clock: Clock::default(),
            clock_set: false,
        }
    }

    /// Takes in what has happened. What is to be written is kept until its time; the rest of what follows is given back:
    /// whom to follow, whom to leave, and what to tell people.
    pub fn step(&mut self, now: Now, events: impl IntoIterator<Item = Event>) -> Vec<Effect> {
        self.advance_clock(now);
        self.clock_set = false;
        let now = now.time;
        let mut effects = self.engine.step(now, events);
        effects.retain(|effect| match effect {
            Effect::Want(slot, urgency) => {
                self.outbox.want(now, slot, *urgency);
                false
            }
            Effect::Wake(time) => {
                self.wake = *time;
                false
            }
            Effect::Follow { .. }
            | Effect::Leave { .. }
            | Effect::Changed(..)
            | Effect::Record(_)
            | Effect::Warn(_) => true,
        });
        effects
    }

    /// Tells the time, if it is time to, or if somebody has set the clock.
    pub fn tick(&mut self, now: Now) -> Vec<Effect> {
        self.advance_clock(now);
        let is_time = self.clock_set || self.wake.is_some_and(|wake| wake <= now.time);
        if is_time { self.step(now, [Event::Tick]) } else { Vec::new() }
    }

    /// The writes that are due, and from now on under way; none for those who do not lead.
    pub fn write(&mut self, now: Now, leads: bool) -> Vec<(Slot, Change)> {
        self.advance_clock(now);
        let now = now.time;
        self.outbox.set_leading(leads || Bug::WriteWithoutLease.is_planted());
        self.outbox.take(now, |slot| self.engine.change(now, slot))
    }

    /// A write has ended. The server may have said how long it does not want to be asked again.
    pub fn written(
        &mut self,
        now: Now,
        (slot, change): (Slot, Change),
        outcome: Outcome,
        retry_after: Option<SignedDuration>,
    ) -> Vec<Effect> {
        self.advance_clock(now);
        self.outbox.done(now.time, &slot, &outcome, retry_after);
        self.step(now, [Event::Written { slot, change, outcome }])
    }

    /// When there is something to do, if nothing happens before.
    pub fn next(&self) -> Option<Timestamp> {
        if self.clock_set {
            return Some(Timestamp::MIN);
        }
        [self.wake, self.outbox.next()].into_iter().flatten().min()
    }

    /// How many writes wait.
    pub fn waiting(&self) -> usize {
        self.outbox.depth().0
    }

    /// How much there is.
    pub fn census(&self) -> Census {
        self.engine.census()
    }

    /// All groups of which something can be said, by their names.
    pub fn groups(&self, now: Timestamp) -> Vec<Group> {
        self.engine.groups(now)
    }

    /// How a group is as one, without its members; or that there is none, or why nobody can tell.
    pub fn summary(&self, now: Timestamp, kind: &GroupKind, name: &NamespacedName) -> GroupStatus {
        self.engine.summary(now, kind, name)
    }

    /// The verdicts on all objects of a kind in a cluster.
    #[cfg(feature = "planted")]
    pub fn verdicts(&self, cluster: &Cluster, kind: &GroupKind) -> BTreeMap<NamespacedName, Verdict> {
        self.engine.verdicts(cluster, kind)
    }

    /// What is kept of the objects of a kind, by the rules that are in force.
    pub fn lens(&self, kind: &GroupKind) -> Lens {
        self.engine.lens(kind)
    }

    /// Looks whether somebody has set the clock.
    fn advance_clock(&mut self, now: Now) {
        if let Some(by) = self.clock.advance(now) {
            self.engine.clock_set(by);
            self.outbox.clock_set(by);
            self.clock_set = true;
        }
    }
}
