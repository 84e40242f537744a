//! The context in which groupings handle events.

use jiff::Timestamp;

use crate::{clusters::Clusters, effect_queue::EffectQueue, feeds::Feeds};

/// Access to the store, the effects and the time while a grouping handles an event.
pub(crate) struct GroupingContext<'a> {
    pub(crate) feeds: &'a mut Feeds,
    pub(crate) clusters: &'a Clusters,
    pub(crate) queue: &'a mut EffectQueue,
    pub(crate) now: Timestamp,
}
