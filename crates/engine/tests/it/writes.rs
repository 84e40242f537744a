//! The path of a write to the API server and back, with faults: 409 conflict, 404, timeout, lost response.

use bellwether_engine::{Event, Outcome, Part, Slot, Write};

use crate::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Written; the response comes before the watch event.
    None,
    /// Written; the watch event comes before the response.
    WatchFirst,
    Refuse,
    /// A ResourceQuota denies a Pod.
    ExceedQuota,
    /// Not written, no response.
    Fail,
    LoseResponse,
    /// Another writer was faster.
    Conflict,
    /// A 409 without another writer.
    FalseConflict,
    /// A 404 from another replica of the API server.
    NotFound,
    /// Written; the response has no resourceVersion.
    NoVersion,
}

#[derive(Debug)]
pub(crate) struct InFlightWrite {
    slot: Slot,
    change: Write,
    fault: Fault,
    /// Set once the API server has handled it.
    outcome: Option<Outcome>,
}

impl World {
    /// Sends, applies and responds to all writes that are due.
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

    pub(crate) fn owners_in_flight(&self) -> bool {
        self.in_flight.iter().any(|flight| flight.slot.part == Part::OwnerReferences)
    }

    pub(crate) fn send(&mut self) -> bool {
        if !self.writing {
            return false;
        }
        let due = self.outbox.take(self.now, |slot| self.engine.render_write(self.now, slot));
        let sent = !due.is_empty();
        for (slot, change) in due {
            let is_denied = self.quota_exceeded && matches!(change, Write::Create { .. });
            let fault = self.faults.pop_front().unwrap_or(Fault::None);
            let fault = if is_denied { Fault::ExceedQuota } else { fault };
            self.in_flight.push(InFlightWrite { slot, change, fault, outcome: None });
        }
        sent
    }

    /// Applies or responds to a random write.
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

    /// The write reaches the API server, unless its fault prevents that.
    pub(crate) fn arrive(&mut self, at: usize) {
        let InFlightWrite { slot, change, fault, .. } = &self.in_flight[at];
        let no_answer = || Outcome::Failed("no answer".into());
        let outcome = match fault {
            Fault::None | Fault::WatchFirst => self.server.perform(slot, change),
            Fault::Refuse => Outcome::Rejected("not today".into()),
            Fault::ExceedQuota => {
                Outcome::Rejected(r#"pods "web" is forbidden: exceeded quota: small"#.into())
            }
            Fault::FalseConflict => Outcome::Conflict,
            Fault::NotFound => Outcome::NotFound,
            Fault::Fail => no_answer(),
            Fault::LoseResponse => {
                self.server.perform(slot, change);
                no_answer()
            }
            Fault::NoVersion => match self.server.perform(slot, change) {
                Outcome::Written(_) => Outcome::Written(None),
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

    /// The response reaches the engine.
    pub(crate) fn respond(&mut self, at: usize) {
        let InFlightWrite { slot, change, outcome, .. } = self.in_flight.remove(at);
        let outcome = outcome.expect("it has been made");
        self.writes.push((slot.clone(), change.clone(), outcome.clone()));
        self.outbox.done(self.now, &slot, &outcome, None);
        self.step(Event::Written { slot, write: change, outcome });
    }
}
