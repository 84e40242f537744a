//! What the components of a Rollup say, counted as they come, change and go.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use bellwether_conditions::{Class, Contribution, Identity, Names, Tally};

use bellwether_api::RollupHealth;

use crate::members::MemberId;

use super::component_report::ComponentReport;

/// What a component is called.
pub(super) type ComponentIdentity = Identity<Arc<str>>;

/// Which component. In the order of these they are named.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ComponentKey {
    called: Arc<ComponentIdentity>,
    /// Tells those apart that are called the same: entries of the spec may be called anything.
    pub(super) whose: MemberId,
}

/// How much a component has to do with what is not well: less is worse.
type Rank = u8;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct ComponentReports {
    keys: HashMap<MemberId, (Rank, ComponentKey)>,
    /// The worst first.
    order: BTreeSet<(Rank, ComponentKey)>,
    names: Names<Arc<str>>,
    pub(super) available: Tally<ComponentKey>,
    pub(super) progressing: Tally<ComponentKey>,
    pub(super) degraded: Tally<ComponentKey>,
    pub(super) upgradeable: Tally<ComponentKey>,
    /// Those that need a human.
    pub(super) stuck: Tally<ComponentKey>,
}

impl ComponentReports {
    /// One says this, instead of what it said before.
    pub(super) fn put(&mut self, whose: MemberId, called: ComponentIdentity, word: &ComponentReport) {
        self.remove(whose);
        let key = ComponentKey { called: Arc::new(called), whose };
        let set = |tally: &mut Tally<ComponentKey>, said: &Contribution<'_>| {
            tally.set(key.clone(), said.class, said.since);
        };
        set(&mut self.available, &word.available);
        set(&mut self.progressing, &word.progressing);
        set(&mut self.degraded, &word.degraded);
        if let Some(upgradeable) = &word.upgradeable {
            set(&mut self.upgradeable, upgradeable);
        }
        if word.triple().is_stuck() {
            self.stuck.set(key.clone(), Class::Issue, word.progressing.since);
        }
        self.names.add(&key.called);
        self.order.insert((rank(word), key.clone()));
        self.keys.insert(whose, (rank(word), key));
    }

    /// One is no more.
    pub(super) fn remove(&mut self, whose: MemberId) {
        let Some(place) = self.keys.remove(&whose) else { return };
        self.order.remove(&place);
        let (_, key) = place;
        self.names.remove(&key.called);
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
    pub(super) fn worst_first(&self) -> impl Iterator<Item = MemberId> {
        self.order.iter().map(|(_, key)| key.whose)
    }

    /// What one is called.
    pub(super) fn display(&self, key: &ComponentKey) -> String {
        self.names.display(&key.called).into_owned()
    }
}

/// Those in error come first, then those of which there is anything to tell.
fn rank(word: &ComponentReport) -> Rank {
    let objects = word.upgradeable.as_ref().is_some_and(|said| said.class != Class::Fine);
    match word.triple().health() {
        RollupHealth::Error => 0,
        RollupHealth::Warning => 1,
        RollupHealth::Healthy if objects => 1,
        RollupHealth::Healthy => 2,
    }
}
