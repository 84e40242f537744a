//! What a feed has told so far, kept the simplest way.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_engine::{Name, Served, Unreadable};
use serde_json::Value;

use crate::server::{Told, identity};

/// What has been told of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    pub(crate) served: Option<Served>,
    pub(crate) unreadable: Option<Unreadable>,
    pub(crate) listed: bool,
    pub(crate) objects: BTreeMap<Name, Value>,
    marked: BTreeSet<Name>,
}

impl Known {
    /// Takes note of what is told.
    pub(crate) fn hear(&mut self, told: &Told) {
        match told {
            Told::Served(served) => self.served = Some(served.clone()),
            Told::Unreadable(why) => {
                self.unreadable = Some(why.clone());
                if *why == Unreadable::NotServed {
                    self.objects.clear();
                }
            }
            Told::Listing => self.marked.clear(),
            Told::Set(object) => {
                let name = identity(object).1;
                self.marked.insert(name.clone());
                self.objects.insert(name, object.clone());
            }
            Told::Gone(name) => _ = self.objects.remove(name),
            Told::Listed => {
                self.listed = true;
                self.unreadable = None;
                self.objects.retain(|name, _| self.marked.contains(name));
            }
        }
    }

    /// Whether it is known what there is, or that this cannot be known.
    pub(crate) fn is_known(&self) -> bool {
        self.listed || self.unreadable.is_some()
    }
}
