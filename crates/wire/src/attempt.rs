//! One attempt to make a change: what is asked of the API server, one request after the other, and how it ended.

use bellwether_engine::{Change, Outcome, Served, Slot, planted::Bug};
use http::{Request, response::Parts};

use crate::{answer::Done, exists, request::ChangeRequest};

/// An attempt to make a change. It is made once: who wants it made again decides when.
#[derive(Clone, Debug)]
pub struct Attempt {
    served: Served,
    slot: Slot,
    change: Change,
    /// Whether the object that must be there has been looked at.
    looked: bool,
}

impl Attempt {
    /// To make this change to an object of a kind that is served so.
    pub fn new(served: Served, slot: Slot, change: Change) -> Self {
        let looked =
            !matches!(change, Change::Owners { requires: Some(_), .. }) || Bug::AdoptBlindly.is_planted();
        Self { served, slot, change, looked }
    }

    /// What to ask next; or how it ends, if there is no way to ask.
    pub fn request(&self) -> Result<Request<Vec<u8>>, Done> {
        let request = match &self.change {
            Change::Owners { requires: Some(owner), .. } if !self.looked => exists::request(owner),
            _ => self.asked().request(),
        };
        request
            .map_err(|error| Outcome::Refused(format!("no request can be made of it: {error}").into()).into())
    }

    /// Takes in the answer. Gives how it ended; if it has not, there is more to ask.
    pub fn answered(&mut self, parts: &Parts, body: &[u8]) -> Option<Done> {
        match &self.change {
            Change::Owners { requires: Some(owner), .. } if !self.looked => {
                self.looked = true;
                exists::objection(owner, parts, body)
            }
            _ => Some(self.asked().answered(parts, body)),
        }
    }

    fn asked(&self) -> ChangeRequest<'_> {
        ChangeRequest { served: &self.served, slot: &self.slot, change: &self.change }
    }
}
