//! Engine and outbox combined, for the loops that drive them: the controller, the demo and the simulation.

#[cfg(feature = "planted")]
use std::collections::BTreeMap;

#[cfg(feature = "planted")]
use bellwether_health::Verdict;
use jiff::{SignedDuration, Timestamp};

#[cfg(feature = "planted")]
use crate::id::Cluster;
use crate::{
    clock::{Clock, Now},
    combined_status::{BoundRows, BoundRowsQuery},
    effect::{Effect, Slot, Write},
    engine::Engine,
    event::{Event, Outcome},
    id::{GroupKind, NamespacedName},
    lens::Lens,
    outbox::Outbox,
    planted::Bug,
    stats::{EngineStats, GroupSamples},
    view::{Group, GroupStatus},
};

#[derive(Debug)]
pub struct Driver {
    engine: Engine,
    outbox: Outbox,
    /// When the engine wants its next step.
    wake: Option<Timestamp>,
    clock: Clock,
    /// The wall clock was set, and the engine has not had a step since.
    clock_set: bool,
}

impl Driver {
    /// `max_in_flight` limits the concurrent writes per cluster.
    pub fn new(engine: Engine, max_in_flight: usize) -> Self {
        Self {
            engine,
            outbox: Outbox::new(max_in_flight),
            wake: None,
            clock: Clock::default(),
            clock_set: false,
        }
    }

    /// Handles events. Writes go to the outbox; all other effects are returned.
    pub fn step(&mut self, now: Now, events: impl IntoIterator<Item = Event>) -> Vec<Effect> {
        self.advance_clock(now);
        self.clock_set = false;
        let now = now.time;
        let mut effects = self.engine.step(now, events);
        effects.retain(|effect| match effect {
            Effect::EnqueueWrite(slot, urgency) => {
                self.outbox.enqueue(now, slot, *urgency);
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

    /// Does a step if one is due, or if the wall clock was set.
    pub fn tick(&mut self, now: Now) -> Vec<Effect> {
        self.advance_clock(now);
        let is_time = self.clock_set || self.wake.is_some_and(|wake| wake <= now.time);
        if is_time { self.step(now, [Event::Tick]) } else { Vec::new() }
    }

    /// Takes the writes that are due and counts them as in flight. Empty unless this process is the leader.
    pub fn write(&mut self, now: Now, leads: bool) -> Vec<(Slot, Write)> {
        self.advance_clock(now);
        let now = now.time;
        self.outbox.set_leading(leads || Bug::WriteWithoutLease.is_planted());
        self.outbox.take(now, |slot| self.engine.render_write(now, slot))
    }

    /// Handles the outcome of a write. `retry_after` is the server's Retry-After.
    pub fn written(
        &mut self,
        now: Now,
        (slot, write): (Slot, Write),
        outcome: Outcome,
        retry_after: Option<SignedDuration>,
    ) -> Vec<Effect> {
        self.advance_clock(now);
        self.outbox.done(now.time, &slot, &outcome, retry_after);
        self.step(now, [Event::Written { slot, write, outcome }])
    }

    /// When to call `tick` or `write` next, if nothing happens before.
    pub fn next(&self) -> Option<Timestamp> {
        if self.clock_set {
            return Some(Timestamp::MIN);
        }
        [self.wake, self.outbox.next()].into_iter().flatten().min()
    }

    /// When a write is due, or when time alone may change something, as long as all clusters respond.
    #[cfg(feature = "planted")]
    pub fn next_change(&self) -> Option<Timestamp> {
        if self.clock_set {
            return Some(Timestamp::MIN);
        }
        [self.engine.next_change(), self.outbox.next()].into_iter().flatten().min()
    }

    pub fn waiting(&self) -> usize {
        self.outbox.depth().0
    }

    pub fn stats(&self) -> EngineStats {
        self.engine.stats()
    }

    pub fn group_samples(&self, limit: usize) -> GroupSamples {
        self.engine.group_samples(limit)
    }

    pub fn groups(&self, now: Timestamp) -> Vec<Group> {
        self.engine.groups(now)
    }

    pub fn summary(&self, now: Timestamp, kind: &GroupKind, name: &NamespacedName) -> GroupStatus {
        self.engine.summary(now, kind, name)
    }

    pub fn bound_rows(&self, query: &BoundRowsQuery) -> Option<BoundRows> {
        self.engine.bound_rows(query)
    }

    #[cfg(feature = "planted")]
    pub fn verdicts(&self, cluster: &Cluster, kind: &GroupKind) -> BTreeMap<NamespacedName, Verdict> {
        self.engine.verdicts(cluster, kind)
    }

    pub fn lens(&self, kind: &GroupKind) -> Lens {
        self.engine.lens(kind)
    }

    fn advance_clock(&mut self, now: Now) {
        if let Some(by) = self.clock.advance(now) {
            self.engine.clock_set(by);
            self.outbox.clock_set(by);
            self.clock_set = true;
        }
    }
}
