//! What becomes of the engine's writes on their way to the cluster and back.

use bellwether_engine::{Change, Event, Outcome, Part, Slot};

use crate::world::World;

/// What goes wrong with a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing: it is made, and the answer comes before the feed tells.
    None,
    /// The feed tells before the answer comes.
    EchoFirst,
    /// The API server will not have it.
    Refuse,
    /// It does not get through.
    Fail,
    /// It is made, and the answer is lost.
    Lose,
    /// Somebody else was quicker.
    Conflict,
    /// Nobody was, whatever the API server says.
    LieOfConflict,
    /// The API server that is asked does not know of it.
    Absent,
    /// It is made, and the answer does not say in which version.
    NoVersion,
}

/// A write that is under way.
#[derive(Debug)]
pub(crate) struct Flight {
    slot: Slot,
    change: Change,
    fault: Fault,
    /// How it ended, if it has been made.
    outcome: Option<Outcome>,
}

impl World {
    /// Makes the writes that are due, from first to last.
    pub(crate) fn write(&mut self) -> bool {
        let departed = self.depart();
        while let Some(flight) = self.flights.first() {
            let echo_first = flight.fault == Fault::EchoFirst;
            self.land(0);
            while echo_first && self.tell() {}
            self.answer(0);
        }
        departed
    }

    /// Whether owners are being written.
    pub(crate) fn owners_are_under_way(&self) -> bool {
        self.flights.iter().any(|flight| flight.slot.part == Part::Owners)
    }

    /// The writes that are due leave.
    pub(crate) fn depart(&mut self) -> bool {
        if !self.writing {
            return false;
        }
        let due = self.outbox.take(self.now, |slot| self.engine.change(self.now, slot));
        let departed = !due.is_empty();
        for (slot, change) in due {
            let fault = self.faults.pop_front().unwrap_or(Fault::None);
            self.flights.push(Flight { slot, change, fault, outcome: None });
        }
        departed
    }

    /// One of the writes that are under way is made, or answered.
    pub(crate) fn move_on(&mut self) -> bool {
        if self.flights.is_empty() {
            return false;
        }
        let at = self.throw(self.flights.len());
        if self.flights[at].outcome.is_none() {
            self.land(at);
        } else {
            self.answer(at);
        }
        true
    }

    /// A write reaches the API server, if it does.
    pub(crate) fn land(&mut self, at: usize) {
        let Flight { slot, change, fault, .. } = &self.flights[at];
        let no_answer = || Outcome::Failed("no answer".into());
        let outcome = match fault {
            Fault::None | Fault::EchoFirst => self.server.perform(slot, change),
            Fault::Refuse => Outcome::Refused("not today".into()),
            Fault::LieOfConflict => Outcome::Conflict,
            Fault::Absent => Outcome::Absent,
            Fault::Fail => no_answer(),
            Fault::Lose => {
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
        self.flights[at].outcome = Some(outcome);
    }

    /// The answer to a write arrives.
    pub(crate) fn answer(&mut self, at: usize) {
        let Flight { slot, change, outcome, .. } = self.flights.remove(at);
        let outcome = outcome.expect("it has been made");
        self.writes.push((slot.clone(), change.clone(), outcome.clone()));
        self.outbox.done(self.now, &slot, &outcome, None);
        self.step(Event::Written { slot, change, outcome });
    }
}
