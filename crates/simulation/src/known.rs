//! What is known of a kind, kept the simplest way.

use std::{collections::BTreeMap, rc::Rc};

use bellwether_engine::{NamespacedName, Served, Unreadable};

use crate::object::Object;

/// What is known of a kind.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// How it is served.
    pub served: Option<Served>,
    /// Why it cannot be read.
    pub unreadable: Option<Unreadable>,
    /// Whether all its objects have been told once.
    pub listed: bool,
    /// Whether a list has begun and is not complete.
    pub listing: bool,
    /// Its objects.
    pub objects: BTreeMap<NamespacedName, Rc<Object>>,
}

impl Known {
    /// Whether it is known what there is, or that this cannot be known.
    pub fn is_known(&self) -> bool {
        self.listed || self.unreadable.is_some()
    }

    /// Whether a part of a list has been told, and the rest is as it was before.
    pub fn is_torn(&self) -> bool {
        self.listing && self.unreadable.is_none()
    }
}
