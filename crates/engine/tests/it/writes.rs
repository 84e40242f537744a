//! What becomes of the engine's writes on their way to the cluster and back.

use bellwether_engine::{Change, Event, Outcome, Part, Slot};

use crate::world::World;

/// What goes wrong with a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing: it is made, and the answer comes before the feed tells.
    None,
    /// The feed tells before the answer comes.
    WatchFirst,
    /// The API server will not have it.
    Refuse,
    /// It does not get through.
    Fail,
    /// It is made, and the answer is lost.
    LoseResponse,
    /// Somebody else was quicker.
    Conflict,
    /// Nobody was, whatever the API server says.
    FalseConflict,
    /// The API server that is asked does not know of it.
    NotFound,
    /// It is made, and the answer does not say in which version.
    NoVersion,
}

/// A write that is under way.
#[derive(Debug)]
pub(crate) struct InFlightWrite {
    slot: Slot,
    change: Change,
    fault: Fault,
    /// How it ended, if it has been made.
    outcome: Option<Outcome>,
}

impl World {
    /// Makes the writes that are due, from first to last.
    pub(crate) fn write(&mut self) -> bool {
        let sent = self.send();
        while let Some(flight) = self.in_flight.first() {
            let echo_first = flight.fault == Fault::WatchFirst;
            self.arrive(0);
            while echo_first && self.deliver() {}
            self.respond(0);
        }
        sent
    }

    /// Whether owners are being written.
    pub(crate) fn owners_in_flight(&self) -> bool {
        self.in_flight.iter().any(|flight| flight.slot.part == Part::Owners)
    }

    /// The writes that are due leave.
    pub(crate) fn send(&mut self) -> bool {
        if !self.writing {
            return false;
        }
        let due = self.outbox.take(self.now, |slot| self.engine.change(self.now, slot));
        let sent = !due.is_empty();
        for (slot, change) in due {
            let fault = self.faults.pop_front().unwrap_or(Fault::None);
            self.in_flight.push(InFlightWrite { slot, change, fault, outcome: None });
        }
        sent
    }

    /// One of the writes that are under way is made, or answered.
    pub(crate) fn advance_write(&mut self) -> bool {
        if self.in_flight.is_empty() {
            return false;
        }
        let at = self.random(self.in_flight.len());
        if self.in_flight[at].outcome.is_none() {
            self.arrive(at);
        } else {
            self.respond(at);
        }
        true
    }

    /// A write reaches the API server, if it does.
    pub(crate) fn arrive(&mut self, at: usize) {
        let InFlightWrite { slot, change, fault, .. } = &self.in_flight[at];
        let no_answer = || Outcome::Failed("no answer".into());
        let outcome = match fault {
            Fault::None | Fault::WatchFirst => self.server.perform(slot, change),
            Fault::Refuse => Outcome::Refused("not today".into()),
            Fault::FalseConflict => Outcome::Conflict,
            Fault::NotFound => Outcome::Absent,
            Fault::Fail => no_answer(),
            Fault::LoseResponse => {
                self.server.perform(slot, change);
                no_answer()
            }
            Fault::NoVersion => match self.server.perform(slot, change) {
                Outcome::Done(_) => Outcome::Done(None),
                other => other,
            },
            Fault::Conflict => {
                self.server.edit(&slot.object.kind, &slot.object.name, |object| {
                    object["metadata"]["labels"]["example.com/quicker"] = "yes".into();
                });
                self.server.perform(slot, change)
            }
        };
        self.in_flight[at].outcome = Some(outcome);
    }

    /// The answer to a write arrives.
    pub(crate) fn respond(&mut self, at: usize) {
        let InFlightWrite { slot, change, outcome, .. } = self.in_flight.remove(at);
        let outcome = outcome.expect("it has been made");
        self.writes.push((slot.clone(), change.clone(), outcome.clone()));
        self.outbox.done(self.now, &slot, &outcome, None);
        self.step(Event::Written { slot, change, outcome });
    }
}
