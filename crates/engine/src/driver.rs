//! The engine and its outbox as one, for whoever drives them: a loop with a network and a clock, or one with neither.

use jiff::{SignedDuration, Timestamp};

use crate::{
    effect::{Change, Effect, Slot},
    engine::{Census, Engine},
    event::{Event, Outcome},
    outbox::Outbox,
    planted::Bug,
};

/// The engine and its outbox.
#[derive(Debug)]
pub struct Driver {
    engine: Engine,
    outbox: Outbox,
    /// When the engine wants to be told the time.
    wake: Option<Timestamp>,
    /// What the time was when it was last told.
    now: Timestamp,
}

impl Driver {
    /// One that knows nothing, and has at most so many writes under way at a time.
    pub fn new(most: usize) -> Self {
        Self { engine: Engine::new(), outbox: Outbox::new(most), wake: None, now: Timestamp::MIN }
    }

    /// Takes in what has happened. What is to be written is kept until its time; the rest of what follows is given back:
    /// whom to follow, whom to leave, and what to tell people.
    pub fn step(&mut self, now: Timestamp, events: impl IntoIterator<Item = Event>) -> Vec<Effect> {
        self.now = now;
        let mut effects = self.engine.step(now, events);
        effects.retain(|effect| match effect {
            Effect::Want(slot, haste) => {
                self.outbox.want(now, slot, *haste);
                false
            }
            Effect::Wake(time) => {
                self.wake = *time;
                false
            }
            Effect::Follow { .. } | Effect::Leave { .. } | Effect::Record(_) => true,
        });
        effects
    }

    /// Tells the time, if it is time to, or if it is earlier than it was.
    pub fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        let is_time = self.wake.is_some_and(|wake| wake <= now) || now < self.now;
        if is_time { self.step(now, [Event::Tick]) } else { Vec::new() }
    }

    /// The writes that are due, and from now on under way; none for those who do not lead.
    pub fn write(&mut self, now: Timestamp, leads: bool) -> Vec<(Slot, Change)> {
        self.outbox.lead(leads || Bug::WriteWithoutLease.is_planted());
        self.outbox.take(now, |slot| self.engine.change(now, slot))
    }

    /// A write has ended. The server may have said how long it does not want to be asked again.
    pub fn written(
        &mut self,
        now: Timestamp,
        (slot, change): (Slot, Change),
        outcome: Outcome,
        retry_after: Option<SignedDuration>,
    ) -> Vec<Effect> {
        self.outbox.done(now, &slot, &outcome, retry_after);
        self.step(now, [Event::Written { slot, change, outcome }])
    }

    /// When there is something to do, if nothing happens before.
    pub fn next(&self) -> Option<Timestamp> {
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
}
