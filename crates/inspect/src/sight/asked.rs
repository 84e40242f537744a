//! A kind that somebody wants to see.

use std::sync::Arc;

use bellwether_engine::{Kind, Lens};

/// A kind that somebody wants to see, and what is kept of its objects.
pub(super) struct Asked {
    pub(super) kind: Kind,
    pub(super) lens: Arc<Lens>,
}
