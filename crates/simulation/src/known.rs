//! What a controller knows of one kind, in the simplest form.

use std::{collections::BTreeMap, rc::Rc};

use bellwether_engine::{NamespacedName, ServedResource, Unreadable};

use crate::object::Object;

#[derive(Clone, Debug, Default)]
pub struct Known {
    pub served: Option<ServedResource>,
    pub unreadable: Option<Unreadable>,
    /// Whether a list of the kind completed at least once.
    pub listed: bool,
    /// Whether a list has started and has not completed.
    pub listing: bool,
    pub objects: BTreeMap<NamespacedName, Rc<Object>>,
}

impl Known {
    /// Whether the kind was listed, or is known to be unreadable.
    pub fn is_known(&self) -> bool {
        self.listed || self.unreadable.is_some()
    }

    /// Whether a relist is in progress, so that objects are from two points in time.
    pub fn is_torn(&self) -> bool {
        self.listing && self.unreadable.is_none()
    }
}
