//! What groupings work with.

use jiff::Timestamp;

use crate::{effect_queue::EffectQueue, feeds::Feeds};

/// What groupings work with.
pub(crate) struct Context<'a> {
    pub(crate) feeds: &'a mut Feeds,
    pub(crate) queue: &'a mut EffectQueue,
    pub(crate) now: Timestamp,
}
