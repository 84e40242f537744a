use jiff::Timestamp;

use crate::{effect_queue::EffectQueue, feeds::Feeds};

/// What the engine lends a grouping while it handles an event.
pub(crate) struct Context<'a> {
    pub(crate) feeds: &'a mut Feeds,
    pub(crate) queue: &'a mut EffectQueue,
    pub(crate) now: Timestamp,
}
