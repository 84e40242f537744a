//! One attempt to make a change: what is asked of the API server, one request after the other, and how it ended.

use bellwether_engine::{Change, Outcome, Served, Slot, planted::Bug};
use http::{Request, response::Parts};

use crate::{adopter, answer::Done, request::Asked};

/// An attempt to make a change. It is made once: who wants it made again decides when.
#[derive(Clone, Debug)]
pub struct Attempt {
    served: Served,
    slot: Slot,
    change: Change,
    /// Whether the Application that takes the object over has been looked at.
    looked: bool,
}

impl Attempt {
    /// To make this change to an object of a kind that is served so.
    pub fn new(served: Served, slot: Slot, change: Change) -> Self {
        let looked =
            !matches!(change, Change::Owners { adopter: Some(_), .. }) || Bug::AdoptBlindly.is_planted();
        Self { served, slot, change, looked }
    }

    /// What to ask next; or how it ends, if there is no way to ask.
    pub fn request(&self) -> Result<Request<Vec<u8>>, Done> {
        let request = match &self.change {
            Change::Owners { adopter: Some(adopter), .. } if !self.looked => adopter::request(adopter),
            _ => self.asked().request(),
        };
        request
            .map_err(|error| Outcome::Refused(format!("no request can be made of it: {error}").into()).into())
    }

    /// Takes in the answer. Gives how it ended; if it has not, there is more to ask.
    pub fn answered(&mut self, parts: &Parts, body: &[u8]) -> Option<Done> {
        match &self.change {
            Change::Owners { adopter: Some(adopter), .. } if !self.looked => {
                self.looked = true;
                adopter::objection(adopter, parts, body)
            }
            _ => Some(self.asked().answered(parts, body)),
        }
    }

    fn asked(&self) -> Asked<'_> {
        Asked { served: &self.served, slot: &self.slot, change: &self.change }
    }
}
