//! What groupings work with.

use jiff::Timestamp;

use crate::{desk::Desk, feeds::Feeds};

/// What groupings work with.
pub(crate) struct Room<'a> {
    pub(crate) feeds: &'a mut Feeds,
    pub(crate) desk: &'a mut Desk,
    pub(crate) now: Timestamp,
}
