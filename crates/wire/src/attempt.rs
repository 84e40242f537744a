//! One attempt at a write: its requests, one after the other, and its outcome.

use bellwether_engine::{Change, Outcome, Served, Slot, planted::Bug};
use http::{Request, response::Parts};

use crate::{answer::Done, exists, request::ChangeRequest};

/// One attempt at a write. It does not retry: the outbox does.
#[derive(Clone, Debug)]
pub struct Attempt {
    served: Served,
    slot: Slot,
    change: Change,
    /// Whether the response about the required owner has arrived.
    owner_checked: bool,
}

impl Attempt {
    pub fn new(served: Served, slot: Slot, change: Change) -> Self {
        let owner_checked =
            !matches!(change, Change::Owners { requires: Some(_), .. }) || Bug::AdoptBlindly.is_planted();
        Self { served, slot, change, owner_checked }
    }

    /// The next request; the outcome if it cannot be built.
    pub fn request(&self) -> Result<Request<Vec<u8>>, Done> {
        let request = match &self.change {
            Change::Owners { requires: Some(owner), .. } if !self.owner_checked => exists::request(owner),
            _ => self.change_request().request(),
        };
        request.map_err(|error| Outcome::Refused(format!("cannot build the request: {error}").into()).into())
    }

    /// Returns the outcome, or `None` if another request follows.
    pub fn answered(&mut self, parts: &Parts, body: &[u8]) -> Option<Done> {
        match &self.change {
            Change::Owners { requires: Some(owner), .. } if !self.owner_checked => {
                self.owner_checked = true;
                exists::objection(owner, parts, body)
            }
            _ => Some(self.change_request().answered(parts, body)),
        }
    }

    fn change_request(&self) -> ChangeRequest<'_> {
        ChangeRequest { served: &self.served, slot: &self.slot, change: &self.change }
    }
}
