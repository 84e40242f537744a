//! A kind to list.

use std::sync::Arc;

use bellwether_engine::{GroupKind, Lens};

pub(super) struct KindRequest {
    pub(super) kind: GroupKind,
    /// What to keep of each object.
    pub(super) lens: Arc<Lens>,
}
