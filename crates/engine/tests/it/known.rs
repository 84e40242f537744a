//! What a feed has told so far.

use std::{collections::BTreeSet, rc::Rc};

use bellwether_engine::{NamespacedName, Unreadable};
use bellwether_simulation::known::Known;

use crate::server::Told;

/// What has been told of a kind.
#[derive(Default)]
pub(crate) struct Hearer {
    pub(crate) known: Known,
    /// What the list has named so far.
    marked: BTreeSet<NamespacedName>,
    /// Objects that were told without what operators say of them.
    narrow: BTreeSet<NamespacedName>,
}

impl Hearer {
    /// Takes note of how much was told of an object.
    pub(crate) fn look(&mut self, name: &NamespacedName, is_narrow: bool) {
        if is_narrow {
            self.narrow.insert(name.clone())
        } else {
            self.narrow.remove(name)
        };
    }

    /// Whether it is still to be told what operators say.
    pub(crate) fn is_blind(&self) -> bool {
        self.known.unreadable.is_none()
            && self.narrow.iter().any(|name| self.known.objects.contains_key(name))
    }

    /// Takes note of what is told.
    pub(crate) fn hear(&mut self, told: &Told) {
        let known = &mut self.known;
        match told {
            Told::Served(served) => known.served = Some(served.clone()),
            Told::Unreadable(why) => {
                known.unreadable = Some(why.clone());
                if *why == Unreadable::NotServed {
                    known.objects.clear();
                }
            }
            Told::Listing => {
                known.listing = true;
                self.marked.clear();
            }
            Told::Set(object) => {
                self.marked.insert(object.name.clone());
                known.objects.insert(object.name.clone(), Rc::clone(object));
            }
            Told::Gone(name) => _ = known.objects.remove(name),
            Told::Listed => {
                (known.listed, known.listing) = (true, false);
                known.unreadable = None;
                known.objects.retain(|name, _| self.marked.contains(name));
            }
        }
    }
}
