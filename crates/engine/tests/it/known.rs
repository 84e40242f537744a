//! What a feed has told so far.

use std::{collections::BTreeSet, rc::Rc};

use bellwether_engine::{NamespacedName, Unreadable};
use bellwether_simulation::known::Known;

use crate::server::FeedMessage;

/// What has been told of a kind.
#[derive(Default)]
pub(crate) struct Received {
    pub(crate) known: Known,
    /// What the list has named so far.
    marked: BTreeSet<NamespacedName>,
    /// Objects that were told without what operators say of them.
    without_conditions: BTreeSet<NamespacedName>,
}

impl Received {
    /// Takes note of how much was told of an object.
    pub(crate) fn note(&mut self, name: &NamespacedName, lacks_conditions: bool) {
        if lacks_conditions {
            self.without_conditions.insert(name.clone())
        } else {
            self.without_conditions.remove(name)
        };
    }

    /// Whether it is still to be told what operators say.
    pub(crate) fn lacks_conditions(&self) -> bool {
        self.known.unreadable.is_none()
            && self.without_conditions.iter().any(|name| self.known.objects.contains_key(name))
    }

    /// Takes note of what is told.
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
