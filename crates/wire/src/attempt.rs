//! One attempt at a write: its requests, one after the other, and its outcome.

use bellwether_engine::{Outcome, ServedResource, Slot, Write, planted::Bug};
use http::{Request, response::Parts};

use crate::{owner_check, write_outcome::WriteResult, write_request::WriteRequest};

/// One attempt at a write. It does not retry: the outbox does.
#[derive(Clone, Debug)]
pub struct Attempt {
    served: ServedResource,
    slot: Slot,
    write: Write,
    /// Whether the response about the required owner has arrived.
    owner_checked: bool,
}

impl Attempt {
    pub fn new(served: ServedResource, slot: Slot, write: Write) -> Self {
        let owner_checked = !matches!(write, Write::OwnerReferences { required_owner: Some(_), .. })
            || Bug::AdoptWithoutOwnerCheck.is_planted();
        Self { served, slot, write, owner_checked }
    }

    /// The next request; the outcome if it cannot be built.
    pub fn request(&self) -> Result<Request<Vec<u8>>, WriteResult> {
        let request = match &self.write {
            Write::OwnerReferences { required_owner: Some(owner), .. } if !self.owner_checked => {
                owner_check::request(owner)
            }
            _ => self.change_request().request(),
        };
        request.map_err(|error| Outcome::Rejected(format!("cannot build the request: {error}").into()).into())
    }

    /// Returns the outcome, or `None` if another request follows.
    pub fn answered(&mut self, parts: &Parts, body: &[u8]) -> Option<WriteResult> {
        match &self.write {
            Write::OwnerReferences { required_owner: Some(owner), .. } if !self.owner_checked => {
                self.owner_checked = true;
                owner_check::check_response(owner, parts, body)
            }
            _ => Some(self.change_request().answered(parts, body)),
        }
    }

    fn change_request(&self) -> WriteRequest<'_> {
        WriteRequest { served: &self.served, slot: &self.slot, write: &self.write }
    }
}
