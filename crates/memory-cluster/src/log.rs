//! The log of all changes: events for watches, and states at earlier revisions.

use std::{collections::BTreeMap, rc::Rc};

use bellwether_engine::{GroupKind, NamespacedName};

use crate::{
    cluster::{LogEntry, MemoryCluster},
    object::Stored,
};

impl<O: Stored> LogEntry<O> {
    fn is_of(&self, kind: &GroupKind, name: &NamespacedName) -> bool {
        let object = self.object.object();
        object.kind == *kind && object.name == *name
    }
}

/// Queries of past states, as far back as [`MemoryCluster::log`] reaches.
impl<O: Stored> MemoryCluster<O> {
    /// All objects of a kind at a revision.
    pub fn at(&self, kind: &GroupKind, revision: u64) -> BTreeMap<NamespacedName, Rc<O>> {
        let mut objects = BTreeMap::new();
        for entry in self.log.iter().take_while(|entry| entry.revision <= revision) {
            let object = entry.object.object();
            if object.kind != *kind {
                continue;
            }
            if entry.gone {
                objects.remove(&object.name);
            } else {
                objects.insert(object.name.clone(), Rc::clone(&entry.object));
            }
        }
        objects
    }

    /// An object at a revision, if it existed.
    pub fn get_at(&self, kind: &GroupKind, name: &NamespacedName, revision: u64) -> Option<&Rc<O>> {
        let is_it = |entry: &&LogEntry<O>| entry.revision <= revision && entry.is_of(kind, name);
        self.log.iter().rfind(is_it).filter(|entry| !entry.gone).map(|entry| &entry.object)
    }

    /// The state of an object at a revision and all later states, in order. `None` where it does not exist.
    pub fn since(&self, kind: &GroupKind, name: &NamespacedName, revision: u64) -> Vec<Option<&Rc<O>>> {
        let mut states = vec![None];
        for entry in self.log.iter().filter(|entry| entry.is_of(kind, name)) {
            if entry.revision <= revision {
                states.clear();
            }
            states.push((!entry.gone).then_some(&entry.object));
        }
        states
    }
}
