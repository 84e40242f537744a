//! A kind that somebody wants to see.

use std::sync::Arc;

use bellwether_engine::{GroupKind, Lens};

/// A kind that somebody wants to see, and what is kept of its objects.
pub(super) struct KindRequest {
    pub(super) kind: GroupKind,
    pub(super) lens: Arc<Lens>,
}
