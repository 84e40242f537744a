//! What the components of a Rollup say, counted as they come, change and go.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use bellwether_conditions::{Class, Contribution, Identity, Names, Tally};

use bellwether_api::RollupHealth;

use crate::members::Whose;

use super::word::Word;

/// Which component. In the order of these they are named.
pub(super) type Key = Arc<Identity<Arc<str>>>;

/// How much a component has to do with what is not well: less is worse.
type Rank = u8;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Sources {
    whose: BTreeMap<Key, Whose>,
    keys: HashMap<Whose, (Rank, Key)>,
    /// The worst first.
    order: BTreeMap<(Rank, Key), Whose>,
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
        if let Some(other) = self.whose(&key) {
            debug_assert!(false, "two components are one: {other:?} and {whose:?}");
            self.remove(other);
        }
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
        self.order.insert((rank(word), Arc::clone(&key)), whose);
        self.keys.insert(whose, (rank(word), key));
    }

    /// One is no more.
    pub(super) fn remove(&mut self, whose: Whose) {
        let Some((rank, key)) = self.keys.remove(&whose) else { return };
        self.whose.remove(&key);
        self.names.remove(&key);
        self.order.remove(&(rank, Arc::clone(&key)));
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

    /// All of them, the worst first.
    pub(super) fn worst_first(&self) -> impl Iterator<Item = Whose> {
        self.order.values().copied()
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

/// Those in error come first, then those of which there is anything to tell.
fn rank(word: &Word) -> Rank {
    let objects = word.upgradeable.as_ref().is_some_and(|said| said.class != Class::Fine);
    match word.triple().health() {
        RollupHealth::Error => 0,
        RollupHealth::Warning => 1,
        RollupHealth::Healthy if objects => 1,
        RollupHealth::Healthy => 2,
    }
}
