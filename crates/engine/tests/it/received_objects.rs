//! What a feed has delivered so far: the input of the oracle.

use std::{collections::BTreeSet, rc::Rc};

use bellwether_engine::{NamespacedName, Unreadable};
use bellwether_simulation::known::Known;

use crate::server::FeedMessage;

#[derive(Default)]
pub(crate) struct Received {
    pub(crate) known: Known,
    /// Objects in the current list.
    marked: BTreeSet<NamespacedName>,
    /// Objects that were delivered through a lens without conditions.
    without_conditions: BTreeSet<NamespacedName>,
}

impl Received {
    /// Records whether an object was delivered with its conditions.
    pub(crate) fn note(&mut self, name: &NamespacedName, lacks_conditions: bool) {
        if lacks_conditions {
            self.without_conditions.insert(name.clone())
        } else {
            self.without_conditions.remove(name)
        };
    }

    /// Whether conditions of a component are still to be delivered.
    pub(crate) fn lacks_conditions(&self) -> bool {
        self.known.unreadable.is_none()
            && self.without_conditions.iter().any(|name| self.known.objects.contains_key(name))
    }

    pub(crate) fn receive(&mut self, message: &FeedMessage) {
        let known = &mut self.known;
        match message {
            FeedMessage::Served(served) => known.served = Some(served.clone()),
            FeedMessage::Unreadable(why) => {
                known.unreadable = Some(why.clone());
                if *why == Unreadable::NotServed {
                    known.objects.clear();
                }
            }
            FeedMessage::Listing => {
                known.listing = true;
                self.marked.clear();
            }
            FeedMessage::Set(object) => {
                self.marked.insert(object.name.clone());
                known.objects.insert(object.name.clone(), Rc::clone(object));
            }
            FeedMessage::Gone(name) => _ = known.objects.remove(name),
            FeedMessage::Listed => {
                (known.listed, known.listing) = (true, false);
                known.unreadable = None;
                known.objects.retain(|name, _| self.marked.contains(name));
            }
        }
    }
}
