//! Tallies of all component reports, one per condition, updated as components come, change and go.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use bellwether_conditions::{Class, Contribution, Identity, Names, Tally};

use bellwether_api::RollupHealth;

use crate::members::MemberId;

use super::component_report::ComponentReport;

pub(super) type ComponentIdentity = Identity<Arc<str>>;

/// Sorts in the order in which messages name components.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ComponentKey {
    identity: Arc<ComponentIdentity>,
    /// Unique, unlike the identity: placeholders for entries of the spec may have equal ones.
    pub(super) member_id: MemberId,
}

/// Lower is worse.
type Rank = u8;

#[derive(Debug, Default)]
pub(super) struct ComponentReports {
    keys: HashMap<MemberId, (Rank, ComponentKey)>,
    /// Worst first.
    order: BTreeSet<(Rank, ComponentKey)>,
    names: Names<Arc<str>>,
    pub(super) available: Tally<ComponentKey>,
    pub(super) progressing: Tally<ComponentKey>,
    pub(super) degraded: Tally<ComponentKey>,
    pub(super) upgradeable: Tally<ComponentKey>,
    /// Components in the state of
    /// [`Triple::requires_intervention`](super::triple::Triple::requires_intervention).
    pub(super) requiring_intervention: Tally<ComponentKey>,
}

impl ComponentReports {
    pub(super) fn put(&mut self, member_id: MemberId, identity: ComponentIdentity, report: &ComponentReport) {
        self.remove(member_id);
        let key = ComponentKey { identity: Arc::new(identity), member_id };
        let set = |tally: &mut Tally<ComponentKey>, contribution: &Contribution<'_>| {
            tally.set(key.clone(), contribution.class, contribution.since);
        };
        set(&mut self.available, &report.available);
        set(&mut self.progressing, &report.progressing);
        set(&mut self.degraded, &report.degraded);
        if let Some(upgradeable) = &report.upgradeable {
            set(&mut self.upgradeable, upgradeable);
        }
        if report.triple().requires_intervention() {
            self.requiring_intervention.set(key.clone(), Class::Issue, report.progressing.since);
        }
        self.names.add(&key.identity);
        self.order.insert((rank(report), key.clone()));
        self.keys.insert(member_id, (rank(report), key));
    }

    pub(super) fn remove(&mut self, member_id: MemberId) {
        let Some(entry) = self.keys.remove(&member_id) else { return };
        self.order.remove(&entry);
        let (_, key) = entry;
        self.names.remove(&key.identity);
        let tallies = [
            &mut self.available,
            &mut self.progressing,
            &mut self.degraded,
            &mut self.upgradeable,
            &mut self.requiring_intervention,
        ];
        for tally in tallies {
            tally.remove(&key);
        }
    }

    pub(super) fn worst_first(&self) -> impl Iterator<Item = MemberId> {
        self.order.iter().map(|(_, key)| key.member_id)
    }

    pub(super) fn display(&self, key: &ComponentKey) -> String {
        self.names.display(&key.identity).into_owned()
    }
}

/// Error first, then Warning and components that object to an upgrade.
fn rank(report: &ComponentReport) -> Rank {
    let blocks_upgrade =
        report.upgradeable.as_ref().is_some_and(|contribution| contribution.class != Class::Fine);
    match report.triple().health() {
        RollupHealth::Error => 0,
        RollupHealth::Warning => 1,
        RollupHealth::Healthy if blocks_upgrade => 1,
        RollupHealth::Healthy => 2,
    }
}
