//! What the components of a Rollup say, counted as they come, change and go.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use bellwether_conditions::{Class, Contribution, Identity, Names, Tally};

use crate::members::Whose;

use super::word::Word;

/// Which component. In the order of these they are named.
pub(super) type Key = Arc<Identity<Arc<str>>>;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Sources {
    whose: BTreeMap<Key, Whose>,
    keys: HashMap<Whose, Key>,
    names: Names<Arc<str>>,
    pub(super) available: Tally<Key>,
    pub(super) progressing: Tally<Key>,
    pub(super) degraded: Tally<Key>,
    pub(super) upgradeable: Tally<Key>,
    /// Those that need a human.
    pub(super) stuck: Tally<Key>,
}

impl Sources {
    /// One says this, instead of what it said before. No other has its key.
    pub(super) fn put(&mut self, whose: Whose, key: Key, word: &Word) {
        self.remove(whose);
        let set = |tally: &mut Tally<Key>, said: &Contribution<'_>| {
            tally.set(Arc::clone(&key), said.class, said.since);
        };
        set(&mut self.available, &word.available);
        set(&mut self.progressing, &word.progressing);
        set(&mut self.degraded, &word.degraded);
        if let Some(upgradeable) = &word.upgradeable {
            set(&mut self.upgradeable, upgradeable);
        }
        if word.triple().is_stuck() {
            self.stuck.set(Arc::clone(&key), Class::Issue, word.progressing.since);
        }
        self.names.add(&key);
        self.whose.insert(Arc::clone(&key), whose);
        self.keys.insert(whose, key);
    }

    /// One is no more.
    pub(super) fn remove(&mut self, whose: Whose) {
        let Some(key) = self.keys.remove(&whose) else { return };
        self.whose.remove(&key);
        self.names.remove(&key);
        let tallies = [
            &mut self.available,
            &mut self.progressing,
            &mut self.degraded,
            &mut self.upgradeable,
            &mut self.stuck,
        ];
        for tally in tallies {
            tally.remove(&key);
        }
    }

    /// Who a key is of.
    pub(super) fn whose(&self, key: &Key) -> Option<Whose> {
        self.whose.get(key).copied()
    }

    /// What one is called.
    pub(super) fn display(&self, key: &Key) -> String {
        self.names.display(key).into_owned()
    }
}
